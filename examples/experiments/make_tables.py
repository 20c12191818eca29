"""Write tables that stand in for yours: applications, questions, clips in two voices, pictures with two faces.

    python examples/experiments/make_tables.py [FOLDER]

The clips are tones and the pictures drawings: they show what a table looks like, and say nothing about people.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import soundfile

ITEMS = 40
TOPICS = ("a headache", "a broken window", "a late parcel", "a sore knee", "a wrong bill")


def write(file: Path, rows: list[dict[str, object]]) -> None:
    """Write rows as CSV."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def clip(file: Path, item: int, hertz: float) -> None:
    """Write a second of a tone that stands for somebody who reads sentence `item`."""
    seconds = np.arange(16_000) / 16_000
    soundfile.write(file, 0.3 * np.sin(2 * np.pi * hertz * (1 + 0.002 * item) * seconds), 16_000)


def picture(file: Path, item: int, long_hair: bool) -> None:
    """Write a drawing of a face in front of wall `item`, with long or short hair."""
    y, x = np.mgrid[-1:1:96j, -1:1:96j]
    image = np.full((96, 96, 3), np.random.default_rng(item).uniform(0.6, 0.95, 3))
    image[(x / 0.6) ** 2 + ((y + (0.0 if long_hair else 0.3)) / (0.9 if long_hair else 0.5)) ** 2 < 1] = (0.3, 0.2, 0.1)
    image[(x / 0.4) ** 2 + (y / 0.5) ** 2 < 1] = (0.9, 0.75, 0.6)
    matplotlib.image.imsave(file, image)


def main(folder: Path) -> None:
    """Write all tables, with what they list, into `folder`."""
    for name in ("clips", "pictures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    clips, pictures = [], []
    for item in range(ITEMS):
        for voice, hertz in (("high", 220.0), ("low", 110.0)):
            clip(folder / "clips" / f"{item}_{voice}.wav", item, hertz)
            clips.append(
                {"path": f"clips/{item}_{voice}.wav", "text": f"Sentence {item}.", "voice": voice, "item": item}
            )
        for hair in ("long", "short"):
            picture(folder / "pictures" / f"{item}_{hair}.png", item, hair == "long")
            pictures.append({"path": f"pictures/{item}_{hair}.png", "hair": hair, "item": item})
    write(folder / "clips.csv", clips)
    write(folder / "pictures.csv", pictures)
    experience = [f"{{name}} has {1 + n % 9} years of experience and {1 + n % 3} references." for n in range(ITEMS)]
    write(folder / "applications.csv", [{"id": n, "application": text} for n, text in enumerate(experience)])
    asked = [f"{{name}} asks about {TOPICS[n % 5]}, for the {n // 5 + 1}. time." for n in range(ITEMS)]
    write(folder / "questions.csv", [{"id": n, "question": text} for n, text in enumerate(asked)])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
