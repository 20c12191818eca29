"""Folders of tiny clips or drawings in the layouts of VCTK and FairFace.

Every number, name and label is made up: there is no speech and no face in them. `look_alike.py` writes them by name.
"""

from __future__ import annotations

import hashlib
import io
import itertools
from pathlib import Path

from equivox.dataset_builders.fairface import CATEGORIES
from equivox.dataset_builders.vctk import SHARED

RATE, SECONDS = 16_000, 0.06
ACCENTS = ("English", "Scottish", "American", "NorthernIrish", "Irish")
LANGUAGES = ("amharic", "korean", "polish", "turkish")
STATED = ("England English", "United States English", "India and South Asia (India, Pakistan, Sri Lanka)")


def _noise(path: Path, seed: str, kind: str) -> None:
    """Write 60 ms of noise that is different for every seed, as flac or mp3."""
    import numpy as np
    import soundfile

    noise = np.frombuffer(hashlib.shake_128(seed.encode()).digest(2 * int(RATE * SECONDS)), dtype=np.int16) // 4
    buffer = io.BytesIO()
    soundfile.write(buffer, noise, RATE, format=kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())


def _halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_vctk(folder: Path, *, damage: bool = False) -> dict[str, str]:
    """Write a look-alike of VCTK: 110 speakers, the shared sentences, one of their own each, one without texts."""
    rows = ["ID  AGE  GENDER  ACCENTS  REGION COMMENTS "]
    speakers = [f"p{225 + n}" for n in range(109)] + ["s5"]
    for n, speaker in enumerate(speakers):
        rows.append(f"{speaker}  {18 + n % 12}  {'FM'[n % 2]}    {ACCENTS[n % len(ACCENTS)]}  Somewhere  {n}")
        for number in range(1, SHARED + 2):
            name = f"{speaker}_{number:03d}"
            shared = number <= SHARED
            for microphone in ("mic1", "mic2") if number == 1 else ("mic1",):
                _noise(folder / f"wav48_silence_trimmed/{speaker}/{name}_{microphone}.flac", name + microphone, "FLAC")
            text = folder / "txt" / speaker / f"{name}.txt"
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text(
                f"Sentence {_word(number)} is read by everybody." if shared else f"Only {speaker} reads this."
            )
    for path in (folder / "txt" / "p315").iterdir():
        path.unlink()
    rows[rows.index(next(row for row in rows if row.startswith("p280")))] = "p280  25  F    Unknown  France (no mic2)"
    done = {}
    if damage:
        audio = folder / "wav48_silence_trimmed"
        done = {
            "missing clip": "p226_003",
            "cut clip": "p226_004",
            "other transcript": "p227_005",
            "misnamed file": "p228_06_mic1",
            "speaker without a row": rows.pop(5).split()[0],
            "gender that is none": "p231",
            "age that is none": "p232",
        }
        (audio / "p226" / "p226_003_mic1.flac").unlink()
        _halve(audio / "p226" / "p226_004_mic1.flac")
        (folder / "txt" / "p227" / "p227_005.txt").write_text("Something else is said here.")
        (audio / "p228" / "p228_006_mic1.flac").rename(audio / "p228" / "p228_06_mic1.flac")
        rows = [row.replace("  M  ", "  X  ").replace("  F  ", "  X  ") if row[:4] == "p231" else row for row in rows]
        rows = [f"p232  ?  {row.split(maxsplit=2)[2]}" if row[:4] == "p232" else row for row in rows]
    (folder / "speaker-info.txt").write_text("\n".join(rows) + "\n", "utf-8")
    return done


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


def _word(number: int) -> str:
    """Return a made-up word that is different for every number up to 400."""
    syllables = (
        "ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "wo", "zu", "na", "ri", "lo",
        "mu", "si",
    )  # fmt: skip
    return syllables[number % 20] + syllables[number // 20 % 20]
