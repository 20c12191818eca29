"""FairFace: 73,659 photographs of adults' faces, balanced over seven groups of race.

Data:       FairFace as distributed (CC BY 4.0): `fairface_label_train.csv` and `fairface_label_val.csv` (either will
            do), and the photographs that they name, `train/*.jpg` and `val/*.jpg`. The layout and all counts were
            checked against published copies of both tables; the photographs themselves were not at hand.
Paper:      Kärkkäinen and Joo 2021, arXiv 1908.04913
Departs:    People below 20, and those without a readable age, are not used, since VIBE's questions are about employment
            and romantic appeal. Categories keep the distribution's words, in lower case. A photograph is taken as
            one person.
Cannot say: how the people see themselves. Gender, race and age are what paid annotators saw in a face, with two genders
            and seven races to choose from, and photographs on which they did not agree were left out. Whether
            two photographs show one person is not known. A difference may come from what goes with the
            person in a photograph, such as clothes, light and place.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.dataset_builders.base import Builder, Clip, Published, Scan, found_instead, speakers_with
from equivox.dataset_builders.plain_tables import read_table

SPLITS = ("train", "val")
COLUMNS = ("file", "age", "gender", "race", "service_test")
PHOTOGRAPH = re.compile(r"(train|val)/\d+\.jpg")
MINORS = ("0-2", "3-9", "10-19")
CATEGORIES = {
    "gender": ("female", "male"),
    "race": ("black", "east asian", "indian", "latino hispanic", "middle eastern", "southeast asian", "white"),
    "age": (*MINORS, "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"),
}
"""The published categories, in lower case."""


class FairFace(Builder):
    """FairFace as distributed, with either margin around the faces."""

    MEDIA = "image"
    FACTS = Published("fairface")

    def _check_source(self) -> None:
        if not self._tables() or not any((self.source / split).is_dir() for split in SPLITS):
            raise RequestError(
                f"{self.source} is not FairFace: expected fairface_label_val.csv and val/, or the same of train, "
                f"{found_instead(self.source)}; give the folder of photographs with the label files in it"
            )

    def _tables(self) -> dict[str, Path]:
        paths = {split: self.source / f"fairface_label_{split}.csv" for split in SPLITS}
        return {split: path for split, path in paths.items() if path.is_file()}

    def _scan(self) -> Scan:
        clips: dict[str, Clip] = {}
        strange: list[str] = []
        doubles: list[str] = []
        unknown: dict[str, list[str]] = {name: [] for name in CATEGORIES}
        rows, minors = Counter[str](), 0
        named = set()
        for split, table in self._tables().items():
            for row in read_table(table, COLUMNS):
                rows[split] += 1
                named.add(row["file"])
                if PHOTOGRAPH.fullmatch(row["file"]) is None:
                    strange.append(row["file"])
                    continue
                values = {name: _category(name, row[name]) for name in CATEGORIES}
                for name, value in values.items():
                    if value is None:
                        unknown[name].append(f"{row['file']}: {row[name]!r}")
                if values["age"] in MINORS:
                    minors += 1
                elif values["age"] is None:
                    continue  # a child whose age became a date in a spreadsheet must not pass as an adult
                elif row["file"] in clips:
                    doubles.append(row["file"])
                else:
                    clips[row["file"]] = self._clip(row, values, split)
        found = tuple(clips.values())
        genders = speakers_with(found, "gender")
        counts = {
            "photographs": rows.total(),
            **{split: rows[split] for split in SPLITS},
            "clips": len(found),
            "female": genders.get("female", 0),
            "male": genders.get("male", 0),
            "races": len(speakers_with(found, "race")),
            "age_groups": len(speakers_with(found, "age_group")),
        }
        oddities = {
            "rows whose file is not train/<number>.jpg or val/<number>.jpg, not used": strange,
            "rows that repeat a photograph, first used": doubles,
            "photographs without a row, not used": [
                name
                for split in self._tables()
                for path in sorted((self.source / split).glob("*"))
                if (name := f"{split}/{path.name}") not in named
            ],
            "photographs whose age is no published category, not used": unknown.pop("age"),
            **{f"photographs whose {name} is no published category (null)": which for name, which in unknown.items()},
        }
        notes = (f"photographs of people below 20, not used: {minors:,} of {rows.total():,}",) if minors else ()
        return Scan(clips=found, counts=counts, oddities=oddities, notes=notes)

    def _clip(self, row: dict[str, str], values: dict[str, str | None], split: str) -> Clip:
        name = row["file"].removesuffix(".jpg")
        return Clip(
            clip_id=name,
            path=self.source / row["file"],
            text=None,
            speaker=name,
            columns={
                "gender": values["gender"],
                "race": values["race"],
                "age_group": values["age"],
                "photograph": name,
                "split": split,
                "service_test": row["service_test"].lower() or None,
            },
        )


def _category(column: str, cell: str) -> str | None:
    """Return a published category in lower case; None for any other cell, such as an age that became a date."""
    value = " ".join(cell.lower().replace("_", " ").split())
    return value if value in CATEGORIES[column] else None
