"""Common Voice: volunteers read sentences aloud, and say of themselves what they like.

Data:       One language of Mozilla Common Voice, scripted speech, as distributed (CC0; the terms of the Mozilla Data
            Collective forbid to host or share the files again): `validated.tsv` and `clips/*.mp3`. The layout was
            checked against the project's description of releases up to 27 and its lists of ages and genders; the
            recordings themselves were not at hand.
Paper:      Ardila et al. 2020, arXiv 1912.06670
Departs:    A release can have 100,000 speakers. Of those who state a gender, an age or an accent, 2,000 are used: the
            ones whose `client_id` has the smallest SHA-256, with at most 4 clips each, chosen likewise. Speakers who
            state "teens" are not used, since VIBE's questions are about employment and romantic appeal. `gender` is
            female or male, since few state another; `stated_gender` has every gender that is stated. "other",
            "do_not_wish_to_say" and an empty cell are null, and so is what a speaker states in several ways. `accent`
            is what at least 20 of the speakers used state in the same words. A speaker is named by the first 16 signs
            of the `client_id`.
Cannot say: whether a difference is the voice's: everybody reads other sentences, on another microphone. Speakers chose
            to take part and what to state, and most of them are men. One `client_id` may be several people, and one
            person may have several.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.core.media import sha256
from equivox.dataset_builders.base import (
    Builder,
    Clip,
    Column,
    CorpusFacts,
    Scan,
    count,
    found_instead,
    held_by_few,
    listed,
    read_tab_separated,
    refuse_below_one,
    speakers_with,
)

TABLE = "validated.tsv"
COLUMNS = ("client_id", "path", "sentence", "up_votes", "down_votes", "age", "gender")
SPEAKERS, CLIPS_PER_SPEAKER, SPEAKERS_PER_ACCENT = 2_000, 4, 20
GENDERS = {
    "female": "female",
    "female_feminine": "female",
    "male": "male",
    "male_masculine": "male",
    "intersex": "intersex",
    "transgender": "transgender",
    "non-binary": "non-binary",
}
"""The genders that releases offer or offered, and ours."""
AGES = {
    "teens": "teens",
    "twenties": "20-29",
    "thirties": "30-39",
    "fourties": "40-49",
    "forties": "40-49",
    "fifties": "50-59",
    "sixties": "60-69",
    "seventies": "70-79",
    "eighties": "80-89",
    "nineties": "90-99",
}
"""The ages that releases offer, and ours; the first are 18 and below."""
NOT_STATED = frozenset({"", "other", "do_not_wish_to_say"})
CLIP = re.compile(r"[\w.-]+")


class CommonVoice(Builder):
    """Common Voice in one language: at most `speakers` speakers with `clips_per_speaker` clips each."""

    NOT_PASSED_ON = "the terms of the Mozilla Data Collective forbid to host or share Common Voice again"
    FACTS = CorpusFacts(
        name="common_voice",
        title="Mozilla Common Voice",
        licence="CC0 1.0; the terms of the Mozilla Data Collective forbid to host or share the files again",
        licence_id="cc0-1.0",
        homepage="https://commonvoice.mozilla.org",
        paper="Common Voice: A Massively-Multilingual Speech Corpus, arXiv 1912.06670",
        citation=(
            "Ardila R., Branson M., Davis K., Henretty M., Kohler M., Meyer J., Morais R., Saunders L., Tyers F. M., "
            "Weber G. (2020). Common Voice: A Massively-Multilingual Speech Corpus. LREC 2020, 4211-4215."
        ),
        columns=(
            Column(name="gender", meaning="the gender that the speaker stated, if female or male"),
            Column(name="stated_gender", meaning="the gender that the speaker stated, if any"),
            Column(name="age_group", meaning="the age that the speaker stated, such as 20-29"),
            Column(name="accent", meaning="the accent that the speaker stated, if enough stated it in the same words"),
            Column(name="up_votes", meaning="people who said that the clip matches its text", role="other"),
            Column(name="down_votes", meaning="people who said that it does not", role="other"),
        ),
        cannot_say=(
            "Everybody reads other sentences on another microphone: neither can be held equal.",
            "The speakers chose to take part and what to state; most of them are men.",
            "One client_id may be several people, and one person may have several.",
            "Nobody may try to identify the speakers: whoever downloads Common Voice agrees to that.",
        ),
    )

    def __init__(
        self,
        source: Path | str,
        *,
        speakers: int = SPEAKERS,
        clips_per_speaker: int = CLIPS_PER_SPEAKER,
        speakers_per_accent: int = SPEAKERS_PER_ACCENT,
    ) -> None:
        refuse_below_one("speakers", speakers, SPEAKERS)
        refuse_below_one("clips_per_speaker", clips_per_speaker, CLIPS_PER_SPEAKER)
        refuse_below_one("speakers_per_accent", speakers_per_accent, SPEAKERS_PER_ACCENT)
        self.speakers = speakers
        self.clips_per_speaker = clips_per_speaker
        self.speakers_per_accent = speakers_per_accent
        super().__init__(source)

    def _check_source(self) -> None:
        if not (self.source / TABLE).is_file() or not (self.source / "clips").is_dir():
            raise RequestError(
                f"{self.source} is not a language of Common Voice: expected {TABLE} and clips/, "
                f"{found_instead(self.source)}; give the folder of the language, such as cv-corpus-…/en"
            )

    def _facts(self) -> CorpusFacts:
        broken: list[str] = []
        locale = next((row["locale"] for row in self._rows(broken) if row.get("locale")), super()._facts().language)
        return dataclasses.replace(super()._facts(), language=locale)

    def _rows(self, broken: list[str]) -> Iterator[dict[str, str]]:
        return read_tab_separated(self.source / TABLE, COLUMNS, broken)

    def _scan(self) -> Scan:
        broken: list[str] = []
        everybody: dict[str, _Speaker] = defaultdict(_Speaker)
        rows = 0
        for row in self._rows(broken):
            rows += 1
            everybody[row["client_id"]].add(row)
        adults = {key: one for key, one in everybody.items() if "teens" not in one.ages}
        stating = [key for key, one in adults.items() if one.genders or one.ages or one.accents]
        chosen = {key: adults[key] for key in sorted(stating, key=lambda key: sha256(key.encode()))[: self.speakers]}
        rare = held_by_few((one.accent for one in chosen.values()), self.speakers_per_accent)
        clips, strange, theirs = self._clips(chosen, rare)
        genders = speakers_with(clips, "stated_gender")
        counts = {
            "rows": rows,
            "clips": len(clips),
            "speakers": len({clip.speaker for clip in clips}),
            "male": genders.get("male", 0),
            "female": genders.get("female", 0),
            "accents": len(speakers_with(clips, "accent")),
        }
        named = {key[:16]: one for key, one in chosen.items()}
        oddities = {
            f"lines of {TABLE} with more or fewer cells than the header, not used": broken,
            "paths that are no file name in clips/, not used": strange,
            **{
                f"speakers who stated several {what} (null)": [
                    k for k, one in named.items() if len(vars(one)[what]) > 1
                ]
                for what in ("genders", "ages", "accents")
            },
            "genders that no release offers (null)": _unknown((one.genders for one in everybody.values()), GENDERS),
            "ages that no release offers (null)": _unknown((one.ages for one in everybody.values()), AGES),
        }
        for column in ("stated_gender", "age_group"):
            oddities[f"speakers without {column} (null)"] = sorted(
                {clip.speaker for clip in clips if clip.columns[column] is None}
            )
        further = {name: n for name, n in genders.items() if name not in {"female", "male"}}
        fell = {
            "who stated to be in their teens": len(everybody) - len(adults),
            "who stated no gender, age or accent": len(adults) - len(stating),
            f"beyond the first {self.speakers:,} by SHA-256 of their client_id": len(stating) - len(chosen),
        }
        notes = [f"speakers not used {why}: {n:,} of {len(everybody):,}" for why, n in fell.items() if n]
        if theirs > len(clips):
            notes.append(f"clips not used beyond {self.clips_per_speaker} of a speaker: {theirs - len(clips):,}")
        if further:
            told = listed(f"{name} {n:,}" for name, n in further.items())
            notes.append(f"speakers whose `gender` is null and whose `stated_gender` is not: {told}")
        if rare:
            notes.append(
                f"speakers without an accent (null), because fewer than {self.speakers_per_accent} stated theirs: "
                f"{sum(rare.values()):,} of {len(chosen):,} ({listed(rare)})"
            )
        return Scan(clips=clips, counts=counts, oddities=oddities, notes=tuple(notes))

    def _clips(
        self, chosen: Mapping[str, _Speaker], rare: Mapping[str, int]
    ) -> tuple[tuple[Clip, ...], list[str], int]:
        """Return the clips used, the paths that cannot be used, and the number of clips of the speakers chosen."""
        rows: dict[str, list[dict[str, str]]] = defaultdict(list)
        strange = []
        for row in self._rows([]):
            if row["client_id"] not in chosen:
                continue
            if CLIP.fullmatch(row["path"]):
                rows[row["client_id"]].append(row)
            else:
                strange.append(row["path"])
        clips = [
            self._clip(row, chosen[key], rare)
            for key, theirs in rows.items()
            for row in sorted(theirs, key=lambda row: sha256(row["path"].encode()))[: self.clips_per_speaker]
        ]
        return tuple(clips), strange, sum(map(len, rows.values()))

    def _clip(self, row: Mapping[str, str], speaker: _Speaker, rare: Mapping[str, int]) -> Clip:
        name = row["path"] if row["path"].endswith(".mp3") else f"{row['path']}.mp3"
        gender = speaker.gender
        return Clip(
            clip_id=name.removesuffix(".mp3"),
            path=self.source / "clips" / name,
            text=row["sentence"] or None,
            speaker=row["client_id"][:16],
            columns={
                "gender": gender if gender in {"female", "male"} else None,
                "stated_gender": gender,
                "age_group": speaker.age_group,
                "accent": None if speaker.accent in rare else speaker.accent,
                "up_votes": row["up_votes"] or None,
                "down_votes": row["down_votes"] or None,
            },
        )


@dataclass
class _Speaker:
    """The statement of a speaker in all clips, as it is written; what counts as not stated is left out."""

    genders: set[str] = field(default_factory=set)
    ages: set[str] = field(default_factory=set)
    accents: set[str] = field(default_factory=set)

    def add(self, row: Mapping[str, str]) -> None:
        """Add what the row of a clip states; releases call the accent `accents` or, formerly, `accent`."""
        accent = row.get("accents", row.get("accent", ""))
        for stated, cell in ((self.genders, row["gender"]), (self.ages, row["age"]), (self.accents, accent)):
            if cell not in NOT_STATED:
                stated.add(cell)

    @property
    def gender(self) -> str | None:
        return GENDERS.get(_one(self.genders))

    @property
    def age_group(self) -> str | None:
        return AGES.get(_one(self.ages))

    @property
    def accent(self) -> str | None:
        return _one(self.accents) or None


def _one(stated: set[str]) -> str:
    """Return the only entry; an empty text if there is none or several."""
    return next(iter(stated)) if len(stated) == 1 else ""


def _unknown(stated: Iterable[set[str]], known: Mapping[str, str]) -> list[str]:
    """Return the entries that are not `known`, each with the number of speakers who stated it."""
    counted = Counter(entry for entries in stated for entry in entries if entry not in known)
    return [f"{entry!r} of {count([entry] * n, 'speaker')}" for entry, n in sorted(counted.items())]
