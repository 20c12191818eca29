"""L2-ARCTIC: 24 speakers of six first languages read the same English sentences.

Data:       L2-ARCTIC v5 as distributed (CC BY-NC 4.0): `<SPEAKER>/wav/arctic_*.wav`,
            `<SPEAKER>/transcript/*.txt`. A `speakers.csv` (speaker, gender, accent) in the source replaces
            the table of speakers below.
Paper:      Zhao et al. 2018, doi 10.21437/Interspeech.2018-1110
Departs:    As VIBE does, only sentences that every speaker read and that name nobody's gender, age or race
            are kept (the words are in `identity_words.yaml`), and 600 of them are used: those whose id has
            the smallest SHA-256, which is a fixed and arbitrary order. VIBE does not publish its words. Ours
            leave 610 of the 1,132 ARCTIC prompts, and fewer once those that a speaker did not read are taken
            away. Another 354 have no listed word but a pronoun of somebody else (he, she); as many of them as are
            needed make up the 600, and the differences say how many.
Cannot say: anything about first languages other than these six, about accents of native speakers, or about
            spontaneous speech; four speakers stand for a first language, two women and two men.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.core.media import sha256
from equivox.dataset_builders.base import (
    Builder,
    Clip,
    Published,
    Scan,
    audio_files,
    found_instead,
    normal,
    read_rows,
    speakers_with,
)

SPEAKERS = {
    "arabic": {"ABA": "male", "SKA": "female", "YBAA": "male", "ZHAA": "female"},
    "hindi": {"ASI": "male", "RRBI": "male", "SVBI": "female", "TNI": "female"},
    "korean": {"HJK": "female", "HKK": "male", "YDCK": "female", "YKWK": "male"},
    "mandarin": {"BWC": "male", "LXC": "female", "NCC": "female", "TXHC": "male"},
    "spanish": {"EBVS": "male", "ERMS": "male", "MBMPS": "female", "NJS": "female"},
    "vietnamese": {"HQTV": "male", "PNV": "female", "THV": "female", "TLV": "male"},
}
"""The published speakers: first language → speaker → gender."""
SENTENCES = 600
"""The largest number of sentences used."""
CLIP_NAME = re.compile(r"arctic_[ab]\d{4}")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


class L2Arctic(Builder):
    """L2-ARCTIC as distributed."""

    FACTS = Published("l2_arctic")

    def _check_source(self) -> None:
        if not self._folders():
            raise UsageError(
                f"{self.source} is not L2-ARCTIC: expected <SPEAKER>/wav/ and <SPEAKER>/transcript/, "
                f"{found_instead(self.source)}; give the folder with all speakers, each one unpacked"
            )

    def _folders(self) -> dict[str, Path]:
        """Return each speaker's folder, even if it was unpacked into a folder of the same name."""
        folders = {}
        for entry in sorted(self.source.iterdir()):
            for folder in (entry, entry / entry.name):
                if (folder / "wav").is_dir() and not entry.name.startswith("."):
                    folders[entry.name] = folder
                    break
        return folders

    def _speakers(self) -> dict[str, dict[str, str | None]]:
        table = self.source / "speakers.csv"
        if table.is_file():
            rows = read_rows(table, ("speaker", "gender", "accent"))
            return {r["speaker"]: {"gender": normal(r["gender"]), "accent": normal(r["accent"])} for r in rows}
        return {
            speaker: {"gender": gender, "accent": accent}
            for accent, speakers in SPEAKERS.items()
            for speaker, gender in speakers.items()
        }

    def _scan(self) -> Scan:
        known, folders = self._speakers(), self._folders()
        recordings: dict[str, dict[str, Path]] = {}
        texts: dict[str, dict[str, str]] = {}
        strange: list[str] = []
        doubles: list[str] = []
        for speaker, folder in folders.items():
            mine = recordings.setdefault(speaker, {})
            for path in audio_files((folder / "wav").iterdir()):
                if CLIP_NAME.fullmatch(path.stem) is None:
                    strange.append(f"{speaker}/{path.name}")
                elif path.stem in mine:
                    doubles.append(f"{speaker}/{path.name}")
                else:
                    mine[path.stem] = path
            texts[speaker] = _transcripts(folder / "transcript")
        chosen, fell = self._choose(recordings, texts)
        clips = tuple(
            Clip(
                clip_id=f"{speaker}_{sentence}",
                path=mine[sentence],
                text=texts[speaker].get(sentence),
                speaker=speaker,
                columns={"sentence": sentence, **known.get(speaker, {"gender": None, "accent": None})},
            )
            for speaker, mine in recordings.items()
            for sentence in chosen
        )
        said = {s: {" ".join(_WORD.findall(mine[s].lower())) for mine in texts.values() if s in mine} for s in chosen}
        genders = speakers_with(clips, "gender")
        counts = {
            "recordings": sum(len(mine) for mine in recordings.values()),
            "clips": len(clips),
            "speakers": len(recordings),
            "male": genders.get("male", 0),
            "female": genders.get("female", 0),
            "accents": len(speakers_with(clips, "accent")),
            "sentences": len(chosen),
        }
        oddities = {
            "files not named arctic_a<number> or arctic_b<number>, not used": strange,
            "second files of a clip, not used": doubles,
            "speakers of the table without a folder": sorted(set(known) - set(folders)),
            "speakers without a row in the table (kept, gender and accent null)": sorted(set(folders) - set(known)),
            "transcripts without a recording": [
                f"{speaker}/{sentence}"
                for speaker in folders
                for sentence in sorted(texts[speaker])
                if sentence not in recordings[speaker]
            ],
            "sentences whose transcripts differ between speakers": [s for s in chosen if len(said[s]) > 1],
        }
        return Scan(clips=clips, counts=counts, oddities=oddities, notes=tuple(fell))

    def _choose(
        self, recordings: Mapping[str, Mapping[str, Path]], texts: Mapping[str, Mapping[str, str]]
    ) -> tuple[list[str], list[str]]:
        """Return the sentences used, and for each rule, in words, the number that it excluded."""
        every = set().union(*recordings.values())
        read_by_all = every.intersection(*recordings.values())
        words, pronouns = identity_words(), identity_words("pronouns")
        told = {
            sentence: words & frozenset().union(*(words_of(mine.get(sentence, "")) for mine in texts.values()))
            for sentence in read_by_all
        }
        naming = {sentence for sentence, found in told.items() if found - pronouns}
        # A pronoun is about somebody else, never about the speaker: such sentences are taken if the others are too few.
        kept = sorted(read_by_all - naming, key=lambda name: (bool(told[name]), sha256(name.encode())))
        chosen = sorted(kept[:SENTENCES])
        filled = sum(bool(told[sentence]) for sentence in chosen)
        fell = {
            "not used that not every speaker read": len(every) - len(read_by_all),
            "not used that name a gender, an age or a race": len(naming),
            "not used that say he or she": sum(map(bool, told.values())) - len(naming) - filled,
            f"used that say he or she, as fewer than {SENTENCES:,} do not": filled,
            f"not used beyond the first {SENTENCES:,} by SHA-256 of their id": sum(
                not told[sentence] for sentence in kept[SENTENCES:]
            ),
        }
        return chosen, [f"sentences {why}: {n:,} of {len(every):,}" for why, n in fell.items() if n]


@cache
def identity_words(*kinds: str) -> frozenset[str]:
    """Return the words of `identity_words.yaml`, in lower case; with `kinds`, only those of these headings."""
    from equivox.core.yaml_files import packaged_yaml

    groups = packaged_yaml("dataset_builders/identity_words.yaml")
    return frozenset(word for kind in kinds or groups for word in groups[kind])


def words_of(text: str) -> set[str]:
    """Return the words of a text in lower case; a possessive counts as its noun.

    >>> sorted(words_of("The Queen's mule; it's HERS."))
    ['hers', "it's", 'mule', 'queen', "queen's", 'the']
    """
    words = set(_WORD.findall(text.lower().replace("\u2019", "'")))
    return words | {word.removesuffix("'s") for word in words if word not in {"it's", "that's", "there's"}}


def _transcripts(folder: Path) -> dict[str, str]:
    texts = {}
    for path in sorted(folder.glob("*.txt")):
        text = " ".join(path.read_text(encoding="utf-8-sig", errors="replace").split())
        if text:
            texts[path.stem] = text
    return texts
