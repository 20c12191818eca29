"""Speech Accent Archive: 2,140 speakers of 200 first languages read one English paragraph.

Data:       The archive's recordings as its widely used copy has them (CC BY-NC-SA 2.0): `speakers_all.csv`,
            `recordings/*.mp3` or `recordings/recordings/*.mp3`, `reading-passage.txt`. The layout and the counts were
            checked against copies of the table; the recordings themselves were not at hand.
Paper:      Weinberger and Kunath 2011, Language and Computers 73, 265-281
Departs:    The table's four synthesized voices are not people and are not used; nor are speakers below 18, since VIBE
            asks about employment and romantic appeal. `accent` is the first language where at least 20 of the speakers
            used have it, else null; `native_language` has all of them. A sex other than female or male, such as the
            table's "famale", is null. `age_group` is added.
Cannot say: anything about other sentences: all speakers read the same paragraph, once. Speakers sent their recordings
            in or were met by students, so microphones and rooms differ, and may differ with the language. The accent
            of somebody who speaks English as a first language is called English wherever they are from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.dataset_builders.base import (
    ADULT,
    AUDIO_SUFFIXES,
    Builder,
    Clip,
    Column,
    CorpusFacts,
    Scan,
    decade,
    found_instead,
    held_by_few,
    listed,
    normal,
    read_table,
    refuse_below_one,
    speakers_with,
)

TABLE = "speakers_all.csv"
PASSAGE = "reading-passage.txt"
COLUMNS = ("age", "age_onset", "birthplace", "filename", "native_language", "sex", "speakerid", "country")
MISSING = "file_missing?"
SYNTHESIZED = "synthesized"
SPEAKERS_PER_ACCENT = 20
FILE_NAME = re.compile(r"[\w'() -]+")


class SpeechAccentArchive(Builder):
    """The Speech Accent Archive; an `accent` is a first language that at least `speakers_per_accent` speakers have."""

    FACTS = CorpusFacts(
        name="speech_accent_archive",
        title="Speech Accent Archive",
        licence="Creative Commons Attribution-NonCommercial-ShareAlike 2.0 (CC BY-NC-SA 2.0), as copies of it state",
        licence_id="cc-by-nc-sa-2.0",
        homepage="https://accent.gmu.edu",
        paper="The Speech Accent Archive: towards a typology of English accents",
        citation="Weinberger S. (2015). Speech Accent Archive. George Mason University. https://accent.gmu.edu",
        published={"recordings": 2140, "speakers": 2132, "female": 1031, "male": 1100, "accents": 21, "clips": 2132},
        columns=(
            Column(name="gender", meaning="the speaker's sex as published: female or male"),
            Column(name="accent", meaning="the first language if enough speakers have it, else null"),
            Column(name="native_language", meaning="the speaker's first language as published"),
            Column(name="age", meaning="the speaker's age in full years", kind="int64"),
            Column(name="age_group", meaning="the decade that age falls into, such as 20-29"),
            Column(name="country", meaning="the country that the speaker was born in, as published"),
            Column(name="age_onset", meaning="the age at which English was begun", role="other", kind="float64"),
        ),
        cannot_say=(
            "All speakers read one paragraph once: nothing shows for other sentences.",
            "Microphones and rooms differ between speakers, and may differ with the first language.",
            "English as a first language is one accent here, whether from Leeds or Lagos.",
            "Nobody may try to identify the speakers.",
        ),
    )

    def __init__(self, source: Path | str, *, speakers_per_accent: int = SPEAKERS_PER_ACCENT) -> None:
        refuse_below_one("speakers_per_accent", speakers_per_accent, SPEAKERS_PER_ACCENT)
        self.speakers_per_accent = speakers_per_accent
        super().__init__(source)

    def _check_source(self) -> None:
        if not (self.source / TABLE).is_file() or not (self.source / "recordings").is_dir():
            raise RequestError(
                f"{self.source} is not the Speech Accent Archive: expected {TABLE} and recordings/, "
                f"{found_instead(self.source)}; give the folder that the archive was unpacked into"
            )

    def _recordings(self) -> tuple[Path, dict[str, Path]]:
        """Return the folder of the recordings, which may be inside one of the same name, and its files by name."""
        inner = self.source / "recordings" / "recordings"
        folder = inner if inner.is_dir() else inner.parent
        return folder, {path.stem: path for path in folder.iterdir() if path.suffix.lower() in AUDIO_SUFFIXES}

    def _scan(self) -> Scan:
        folder, files = self._recordings()
        rows = read_table(self.source / TABLE, (*COLUMNS, MISSING))
        here = [row for row in rows if row[MISSING].upper() != "TRUE"]
        people = [row for row in here if row["native_language"] != SYNTHESIZED]
        unusable = [row["filename"] for row in people if not FILE_NAME.fullmatch(row["filename"])]
        adults = [row for row in people if (_age(row) or ADULT) >= ADULT and row["filename"] not in unusable]
        used = {row["filename"]: row for row in reversed(adults)}
        languages = {name: normal(row["native_language"]) for name, row in used.items()}
        rare = held_by_few(languages.values(), self.speakers_per_accent)
        passage = self.source / PASSAGE
        text = " ".join(passage.read_text("utf-8-sig", errors="replace").split()) if passage.is_file() else ""
        clips = tuple(
            Clip(
                clip_id=name,
                path=files.get(name, folder / f"{name}.mp3"),
                text=text or None,
                speaker=name,
                columns=_columns(row, languages[name], accent=None if languages[name] in rare else languages[name]),
            )
            for name, row in used.items()
        )
        genders = speakers_with(clips, "gender")
        counts = {
            "recordings": len(files),
            "clips": len(clips),
            "speakers": len(clips),
            "male": genders.get("male", 0),
            "female": genders.get("female", 0),
            "accents": len(speakers_with(clips, "accent")),
            "native_languages": len(speakers_with(clips, "native_language")),
        }
        oddities = {
            f"recordings without a row in {TABLE}, not used": sorted(set(files) - {row["filename"] for row in rows}),
            f"file names that {TABLE} repeats, first used": [
                row["filename"] for row in adults if used[row["filename"]] is not row
            ],
            f"file names of {TABLE} that no file can have, not used": unusable,
            f"recordings that {TABLE} calls missing, not used": sorted(
                {row["filename"] for row in rows} & set(files) - {row["filename"] for row in here}
            ),
            "speakers whose sex is neither female nor male (null)": [
                f"{name}: {row['sex']!r}" for name, row in used.items() if row["sex"] not in {"female", "male"}
            ],
            "speakers whose age is no number (null)": [name for name, row in used.items() if _age(row) is None],
        }
        for column in ("native_language", "country"):
            oddities[f"speakers without {column} (null)"] = [c.clip_id for c in clips if c.columns[column] is None]
        fell = {
            "whose recording the table calls missing": len(rows) - len(here),
            "synthesized, not people": len(here) - len(people),
            f"below {ADULT} years": len(people) - len(unusable) - len(adults),
        }
        notes = [f"rows not used, {why}: {n:,} of {len(rows):,}" for why, n in fell.items() if n]
        if rare:
            notes.append(
                f"speakers without an accent (null), because fewer than {self.speakers_per_accent} have their first "
                f"language: {sum(rare.values()):,} of {len(clips):,} ({listed(rare)})"
            )
        return Scan(clips=clips, counts=counts, oddities=oddities, notes=tuple(notes))


def _columns(row: Mapping[str, str], language: str | None, *, accent: str | None) -> dict[str, str | float | None]:
    age = _age(row)
    return {
        "gender": row["sex"] if row["sex"] in {"female", "male"} else None,
        "accent": accent,
        "native_language": language,
        "age": age,
        "age_group": decade(age),
        "country": normal(row["country"]),
        "age_onset": _number(row["age_onset"]),
    }


def _age(row: Mapping[str, str]) -> int | None:
    """Return the full years of a speaker; None for no number and for 0, which means that it is unknown."""
    return int(_number(row["age"]) or 0) or None


def _number(cell: str) -> float | None:
    return float(cell) if re.fullmatch(r"\d+(\.\d+)?", cell) else None
