"""VCTK: 110 speakers of English from many places read the same two paragraphs.

Data:       CSTR VCTK Corpus 0.92 as distributed (CC BY 4.0): `speaker-info.txt`, `txt/<speaker>/*.txt`,
            `wav48_silence_trimmed/<speaker>/<speaker>_<number>_mic1.flac`. The layout was checked against the
            distribution's README and published copies of its table; the recordings themselves were not at hand.
Paper:      Veaux, Yamagishi and King 2013, doi 10.1109/ICSDA.2013.6709856
Departs:    Only the sentences that all speakers read are used: those numbered 001 to 024, which are the elicitation
            paragraph of the Speech Accent Archive and the rainbow passage. The newspaper sentences differ between
            speakers and would be confounded with them. A recording whose transcript is not that of most speakers is
            left out. Accents are in lower case with spaces; "Unknown" is null, and so is an accent that only one
            speaker has. `age_group` is added.
Cannot say: anything about spontaneous speech or other languages. Accent goes with region, and a few accents have two
            or three speakers: English, American and Scottish ones make up most of the corpus. Most speakers are in
            their twenties.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.dataset_builders.base import (
    Builder,
    Clip,
    Column,
    CorpusFacts,
    Scan,
    audio_files,
    count,
    decade,
    found_instead,
    held_by_few,
    listed,
    normal,
    refuse_below_one,
    speakers_with,
)

TABLE = "speaker-info.txt"
AUDIO = "wav48_silence_trimmed"
SHARED = 24
"""The sentences numbered 1 to 24 are the same for all speakers."""
MICROPHONES = ("mic1", "mic2")
SPEAKERS_PER_ACCENT = 2
CLIP_NAME = re.compile(r"(?P<speaker>[ps]\d+)_(?P<number>\d{3})_(?P<microphone>mic[12])")
ROW = re.compile(r"(?P<id>[ps]\d+)\s+(?P<age>\S+)\s+(?P<gender>\S+)\s+(?P<accent>\S+)(?P<region>[^(]*)(\(.*\))?\s*")
GENDERS = {"F": "female", "M": "male"}
NOBODY = {"gender": None, "accent": None, "age": None, "age_group": None, "region": None}
"""The columns of a speaker without a row in the table."""
_WORD = re.compile(r"[a-z']+")


class Vctk(Builder):
    """VCTK 0.92 as distributed; `microphone` is mic1 or mic2, which two speakers lack."""

    FACTS = CorpusFacts(
        name="vctk",
        title="CSTR VCTK Corpus 0.92",
        licence="Creative Commons Attribution 4.0 (CC BY 4.0)",
        licence_id="cc-by-4.0",
        homepage="https://datashare.ed.ac.uk/handle/10283/3443",
        paper="The voice bank corpus: Design, collection and data analysis of a large regional accent speech database",
        doi="10.1109/ICSDA.2013.6709856",
        citation=(
            "Veaux C., Yamagishi J., MacDonald K. CSTR VCTK Corpus: English Multi-speaker Corpus for CSTR Voice "
            "Cloning Toolkit. The Centre for Speech Technology Research, University of Edinburgh."
        ),
        published={"speakers": 110},
        columns=(
            Column(name="sentence", meaning="number of the sentence read, 001 to 024", role="stratum"),
            Column(name="gender", meaning="the speaker's gender as published: female or male"),
            Column(name="accent", meaning="the speaker's accent as published, in lower case"),
            Column(name="age", meaning="the speaker's age in years", kind="int64"),
            Column(name="age_group", meaning="the decade that age falls into, such as 20-29"),
            Column(name="region", meaning="where the speaker is from, as published", role="other"),
        ),
        cannot_say=(
            "Accent goes with region, and some accents have two or three speakers: a difference may be theirs.",
            "Most speakers are in their twenties; ages can hardly be compared.",
            "The speech is read, in English, and of two paragraphs only.",
            "Nobody may try to identify the speakers.",
        ),
    )

    def __init__(
        self, source: Path | str, *, microphone: str = MICROPHONES[0], speakers_per_accent: int = SPEAKERS_PER_ACCENT
    ) -> None:
        if microphone not in MICROPHONES:
            raise RequestError(f"`microphone` is one of {', '.join(MICROPHONES)}, got {microphone!r}")
        refuse_below_one("speakers_per_accent", speakers_per_accent, SPEAKERS_PER_ACCENT)
        self.microphone = microphone
        self.speakers_per_accent = speakers_per_accent
        super().__init__(source)

    def _check_source(self) -> None:
        if not (self.source / AUDIO).is_dir() or not (self.source / TABLE).is_file():
            raise RequestError(
                f"{self.source} is not VCTK 0.92: expected {AUDIO}/, txt/ and {TABLE}, {found_instead(self.source)}; "
                "give the folder that VCTK-Corpus-0.92.zip was unpacked into"
            )

    def _scan(self) -> Scan:
        table, files = self._table(), self._files()
        folders = {entry.name for entry in (self.source / AUDIO).iterdir() if entry.is_dir()}
        texts = {speaker: self._transcripts(speaker) for speaker in folders}
        usual = _usual_texts(texts)
        rare = held_by_few((_accent_of(table, speaker) for speaker in folders), self.speakers_per_accent)
        clips, other_text = [], []
        for (speaker, number), path in sorted(files.used.items()):
            text = texts[speaker].get(number)
            if text is not None and _words(text) != usual[number]:
                other_text.append(f"{speaker}_{number}")
                continue
            columns = dict(table.speakers.get(speaker, NOBODY))
            columns["accent"] = None if columns["accent"] in rare else columns["accent"]
            name = f"{speaker}_{number}"
            clips.append(
                Clip(clip_id=name, path=path, text=text, speaker=speaker, columns={"sentence": number, **columns})
            )
        genders = speakers_with(clips, "gender")
        counts = {
            "recordings": files.recordings,
            "clips": len(clips),
            "speakers": len(folders),
            "male": genders.get("male", 0),
            "female": genders.get("female", 0),
            "accents": len(speakers_with(clips, "accent")),
            "sentences": len({clip.columns["sentence"] for clip in clips}),
        }
        oddities = {
            f"files not named <speaker>_<number>_<{'|'.join(MICROPHONES)}>, not used": files.strange,
            "second files of a clip, not used": files.doubles,
            "clips whose transcript is not that of most speakers, not used": other_text,
            f"lines of {TABLE} that cannot be read, not used": table.broken,
            f"speakers of {TABLE} without a folder": sorted(set(table.speakers) - folders),
            f"speakers without a row in {TABLE} (kept, demographics null)": sorted(folders - set(table.speakers)),
            "speakers whose gender is neither F nor M (null)": table.genders,
            "speakers whose age is no number (null)": table.ages,
            "speakers without an accent (null)": sorted(
                speaker for speaker in folders & set(table.speakers) if table.speakers[speaker]["accent"] is None
            ),
            f"speakers without a used recording by {self.microphone}": sorted(folders - {c.speaker for c in clips}),
            "transcripts of shared sentences without a recording": [
                f"{speaker}_{number}"
                for speaker in sorted(folders)
                for number in sorted(texts[speaker])
                if (speaker, number) not in files.used
            ],
        }
        notes = []
        if files.own_sentences:
            notes.append(
                f"recordings not used because each speaker reads other sentences there: {files.own_sentences:,} of "
                f"{files.recordings:,} by {self.microphone}"
            )
        if rare:
            notes.append(
                f"accents that fewer than {self.speakers_per_accent} speakers have (null): "
                f"{count(list(rare), 'accent')} ({listed(rare)})"
            )
        return Scan(clips=tuple(clips), counts=counts, oddities=oddities, notes=tuple(notes))

    def _table(self) -> _Table:
        """Return the rows of the table of speakers, whose columns are separated by spaces."""
        head, *lines = (self.source / TABLE).read_text("utf-8", errors="replace").splitlines() or [""]
        if head.split()[:4] != ["ID", "AGE", "GENDER", "ACCENTS"]:
            raise RequestError(
                f"{self.source / TABLE}: the columns are ID, AGE, GENDER, ACCENTS, REGION, got {head[:80]!r}; "
                "take the file as distributed"
            )
        table = _Table()
        for number, line in enumerate(lines, start=2):
            match = ROW.fullmatch(line)
            if match is None or match["id"] in table.speakers:
                table.broken += [f"line {number}"] if line.strip() else []
                continue
            gender, age = GENDERS.get(match["gender"]), int(match["age"]) if match["age"].isdecimal() else None
            table.genders += [match["id"]] if gender is None else []
            table.ages += [match["id"]] if age is None else []
            table.speakers[match["id"]] = {
                "gender": gender,
                "accent": normal(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", match["accent"])),
                "age": age,
                "age_group": decade(age),
                "region": " ".join(match["region"].split()) or None,
            }
        return table

    def _files(self) -> _Files:
        """Return the recordings by speaker and number, those of the other microphone left out."""
        found = _Files()
        for path in audio_files((self.source / AUDIO).glob("*/*")):
            match = CLIP_NAME.fullmatch(path.stem)
            if match is None or match["speaker"] != path.parent.name:
                found.strange.append(f"{path.parent.name}/{path.name}")
            elif match["microphone"] != self.microphone:
                continue
            elif int(match["number"]) > SHARED:
                found.recordings += 1
                found.own_sentences += 1
            elif (match["speaker"], match["number"]) in found.used:
                found.doubles.append(f"{path.parent.name}/{path.name}")
            else:
                found.recordings += 1
                found.used[match["speaker"], match["number"]] = path
        return found

    def _transcripts(self, speaker: str) -> dict[str, str]:
        """Return the text of each shared sentence by its number."""
        texts = {}
        for number in (f"{n:03d}" for n in range(1, SHARED + 1)):
            path = self.source / "txt" / speaker / f"{speaker}_{number}.txt"
            if path.is_file() and (text := " ".join(path.read_text("utf-8-sig", errors="replace").split())):
                texts[number] = text
        return texts


@dataclass
class _Table:
    """The table of speakers, and what could not be read in it."""

    speakers: dict[str, dict[str, str | int | None]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    genders: list[str] = field(default_factory=list)
    ages: list[str] = field(default_factory=list)


@dataclass
class _Files:
    """The recordings by one microphone: those of shared sentences by speaker and number, and the others counted."""

    used: dict[tuple[str, str], Path] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    recordings: int = 0
    own_sentences: int = 0


def _accent_of(table: _Table, speaker: str) -> str | None:
    """Return the published accent of a speaker; None without one."""
    accent = table.speakers.get(speaker, NOBODY)["accent"]
    return None if accent is None else str(accent)


def _usual_texts(texts: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the words that most speakers have for each number; of equally frequent ones, the first by alphabet."""
    counted: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for mine in texts.values():
        for number, text in mine.items():
            counted[number][_words(text)] += 1
    return {number: min(said, key=lambda words: (-said[words], words)) for number, said in counted.items()}


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))
