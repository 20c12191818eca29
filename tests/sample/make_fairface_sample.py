"""Draw the sample of FairFace: shapes instead of faces, labelled by this script, in the layout of the distribution.

python make_fairface_sample.py FOLDER. The drawings depend on their number alone, never on a label, so nobody is
caricatured and nothing can be seen in them. Two of each gender, race and age of
adults; two of each age below 20, which are not used.
"""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

SIZE = 32
GENDERS = ("Male", "Female")
RACES = ("East Asian", "Indian", "Black", "White", "Middle Eastern", "Latino_Hispanic", "Southeast Asian")
ADULT_AGES = ("20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
MINOR_AGES = ("0-2", "3-9", "10-19")


def labels() -> list[tuple[str, str, str]]:
    """Return age, gender and race of each drawing, in a fixed order without meaning."""
    adults = [*itertools.product(ADULT_AGES, GENDERS, RACES)] * 2
    minors = [(age, gender, "White") for age in MINOR_AGES for gender in GENDERS]
    found = [*adults, *minors]
    random.Random("fairface sample").shuffle(found)
    return found


def draw(number: int, path: Path) -> None:
    """Draw one image; its content depends only on `number`."""
    from PIL import Image, ImageDraw

    rng = random.Random(f"fairface sample {number}")
    image = Image.new("L", (SIZE, SIZE), rng.randint(170, 250))
    pen = ImageDraw.Draw(image)
    for _ in range(4):
        left, top = rng.randint(0, 20), rng.randint(0, 20)
        box = (left, top, left + rng.randint(4, 12), top + rng.randint(4, 12))
        rng.choice((pen.rectangle, pen.ellipse))(box, fill=rng.randint(0, 160))
    image.save(path, quality=70, optimize=True)


def main(folder: Path) -> int:
    """Write the drawings and their label file."""
    (folder / "val").mkdir(parents=True, exist_ok=True)
    rows = ["file,age,gender,race,service_test"]
    for number, (age, gender, race) in enumerate(labels(), start=1):
        draw(number, folder / "val" / f"{number}.jpg")
        rows.append(f"val/{number}.jpg,{age},{gender},{race},False")
    (folder / "fairface_label_val.csv").write_text("\n".join(rows) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.stderr.write("give the folder that is to be written\n")
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
