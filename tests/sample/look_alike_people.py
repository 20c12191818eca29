"""A folder of grey squares in the layout of FairFace.

Every number, name and label is made up: there is no face in them. `look_alike.py` writes it by name.
"""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

from equivox.dataset_builders.fairface import CATEGORIES


def _halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_fairface(folder: Path, *, damage: bool = False) -> dict[str, str]:
    """Write a look-alike of FairFace: four grey squares of each gender, race and age, half of them in each split."""
    from PIL import Image

    genders, races, ages = CATEGORIES["gender"], CATEGORIES["race"], CATEGORIES["age"]
    tables = {split: ["file,age,gender,race,service_test"] for split in ("train", "val")}
    for n, (_, age, gender, race) in enumerate(itertools.product(range(4), ages, genders, races)):
        split = ("train", "val")[n % 2]
        name = f"{split}/{n // 2 + 1}.jpg"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.frombytes("L", (16, 16), hashlib.shake_128(name.encode()).digest(256)).save(path, quality=90)
        tables[split].append(f"{name},{age},{gender.title()},{race.title()},{n % 3 == 0}")
    done = {}
    if damage:
        rows = tables["val"]
        adults = [n for n, row in enumerate(rows) if ",30-39," in row]
        kinds = ("missing photograph", "cut photograph", "row removed", "age that became a date", "race that is none")
        done = {kind: rows[n].partition(",")[0] for kind, n in zip(kinds, adults, strict=False)}
        (folder / done["missing photograph"]).unlink()
        _halve(folder / done["cut photograph"])
        rows[adults[3]] = rows[adults[3]].replace(",30-39,", ",03-Sep,")
        cells = rows[adults[4]].split(",")
        rows[adults[4]] = ",".join([*cells[:3], "Asian", cells[4]])
        del rows[adults[2]]
    for split, rows in tables.items():
        (folder / f"fairface_label_{split}.csv").write_text("\n".join(rows) + "\n", "utf-8")
    return done
