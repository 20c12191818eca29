"""CREMA-D: 91 actors speak twelve sentences in six emotions.

Data:       CREMA-D 1.0 as distributed on GitHub with git-lfs (ODbL 1.0): `AudioWAV/` and
            `VideoDemographics.csv`. Sentences are read from the distribution's README.md, or from a
            `sentences.csv` (code, text) beside it.
Paper:      Cao et al. 2014, doi 10.1109/TAFFC.2014.2336244
Departs:    Race and ethnicity keep the distribution's categories, in lower case; its "Unknown" is null,
            because it is not a group of people. `age_group` is added: the decade that `age` falls into.
Cannot say: anything about speech that is not acted, about other English than the actors', or about languages
            other than English; age, race and ethnicity are unbalanced and are those of the actor,
            self-reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.dataset_builders.base import (
    Builder,
    Clip,
    Published,
    Scan,
    audio_files,
    decade,
    found_instead,
    normal,
    read_rows,
    refuse_lfs_pointers,
    speakers_with,
)

CLIP_NAME = re.compile(r"(?P<speaker>\d+)_(?P<sentence>[A-Z]{3})_(?P<emotion>[A-Z]{3})_(?P<level>[A-Z]{1,2})")
LEVELS = ("LO", "MD", "HI", "XX")
SENTENCE_LINE = re.compile(r"^\s*[-*]\s+(?P<text>.*?\w)\s*\((?P<code>[A-Z]{3})\)(?P<stop>\.?)\s*$", re.MULTILINE)
TABLE = "VideoDemographics.csv"


class CremaD(Builder):
    """CREMA-D as distributed."""

    FACTS = Published("crema_d")

    def _check_source(self) -> None:
        if self.source.name == "AudioWAV":
            raise UsageError(f"`source` is {self.source}; give the folder that holds AudioWAV, {self.source.parent}")
        missing = [name for name in ("AudioWAV/", TABLE) if not (self.source / name).exists()]
        if missing:
            raise UsageError(
                f"{self.source} is not CREMA-D: expected AudioWAV/ and {TABLE}, "
                f"{found_instead(self.source)}; give the folder of the git clone"
            )
        refuse_lfs_pointers([self.source / TABLE])

    def _scan(self) -> Scan:
        sentences = self._sentences()
        rows = read_rows(self.source / TABLE, ("ActorID", "Age", "Sex", "Race", "Ethnicity"))
        actors = {row["ActorID"]: row for row in reversed(rows)}
        clips: dict[str, Clip] = {}
        strange: list[str] = []
        doubles: list[str] = []
        for path in audio_files((self.source / "AudioWAV").iterdir()):
            match = CLIP_NAME.fullmatch(path.stem)
            if match is None:
                strange.append(path.name)
            elif path.stem in clips:
                doubles.append(path.name)
            else:
                clips[path.stem] = _clip(path, match, actors.get(match["speaker"], {}), sentences)
        files = {
            "files not named <actor>_<sentence>_<emotion>_<level>, not used": strange,
            "second files of a clip, not used": doubles,
            f"actors with several rows in {TABLE}, first used": [
                row["ActorID"] for row in rows if actors[row["ActorID"]] is not row
            ],
        }
        return self._found(tuple(clips.values()), set(actors), files)

    def _sentences(self) -> dict[str, str]:
        """Return the text of each sentence code; empty if the source does not have it."""
        table, readme = self.source / "sentences.csv", self.source / "README.md"
        if table.is_file():
            return {row["code"]: row["text"] for row in read_rows(table, ("code", "text"))}
        if not readme.is_file():
            return {}
        lines = SENTENCE_LINE.finditer(readme.read_text(encoding="utf-8", errors="replace"))
        return {line["code"]: line["text"] + line["stop"] for line in lines}

    def _found(self, clips: tuple[Clip, ...], actors: set[str], files: Mapping[str, Sequence[str]]) -> Scan:
        speakers = {clip.speaker for clip in clips}
        genders = speakers_with(clips, "gender")
        counts = {
            "clips": len(clips),
            "speakers": len(speakers),
            "male": genders.get("male", 0),
            "female": genders.get("female", 0),
            "sentences": len({clip.columns["sentence"] for clip in clips}),
            "emotions": len({clip.columns["emotion"] for clip in clips}),
        }
        listed_names = self.source / "SentenceFilenames.csv"
        names = [row["Filename"] for row in read_rows(listed_names, ("Filename",))] if listed_names.is_file() else []
        present = {clip.clip_id for clip in clips}
        no_row = sorted(speakers - set(actors))
        oddities = {
            **files,
            f"clips that {listed_names.name} lists and AudioWAV lacks": [n for n in names if n not in present],
            f"speakers without a row in {TABLE} (kept, demographics null)": no_row,
            f"rows of {TABLE} without a clip": sorted(actors - speakers),
            "clips with a level other than LO, MD, HI, XX (kept)": [
                clip.clip_id for clip in clips if clip.columns["level"] not in LEVELS
            ],
        }
        for column in ("gender", "age", "race", "ethnicity"):
            empty = {clip.speaker for clip in clips if clip.columns[column] is None} - set(no_row)
            oddities[f"speakers without {column} (null)"] = sorted(empty)
        return Scan(clips=clips, counts=counts, oddities=oddities)


def _clip(path: Path, match: re.Match[str], actor: Mapping[str, str], sentences: Mapping[str, str]) -> Clip:
    age = int(actor["Age"]) if actor.get("Age", "").isdecimal() else None
    return Clip(
        clip_id=path.stem,
        path=path,
        text=sentences.get(match["sentence"]),
        speaker=match["speaker"],
        columns={
            "sentence": match["sentence"],
            "emotion": match["emotion"],
            "level": match["level"],
            "gender": normal(actor.get("Sex", "")),
            "age": age,
            "age_group": decade(age),
            "race": normal(actor.get("Race", "")),
            "ethnicity": normal(actor.get("Ethnicity", "")),
        },
    )
