"""Draw the images of the GENRES sample: two figures and a background, different for every NEP.

python make_genres_sample.py FOLDER, with FOLDER the sample folder that holds elements.yaml. The figures show no
gender; the same names always give the same images.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import yaml

SIZE = 96
COLOURS = ("#c8553d", "#588b8b", "#f28f3b", "#2d3047", "#93b7be", "#6a4c93", "#8ac926", "#1982c4")
GROUNDS = ("#f4f1de", "#e0ecef", "#fdf0d5", "#e9edc9", "#f1e3f3")


def draw(name: str, path: Path) -> None:
    """Draw one image; its content depends only on `name`."""
    from PIL import Image, ImageDraw

    rng = random.Random(f"genres sample {name}")
    image = Image.new("RGB", (SIZE, SIZE), rng.choice(GROUNDS))
    pen = ImageDraw.Draw(image)
    horizon = rng.randint(50, 66)
    pen.rectangle((0, horizon, SIZE, SIZE), fill=rng.choice(COLOURS[4:]))
    left, top = rng.randint(34, 50), rng.randint(8, 20)
    pen.rectangle((left, top, left + rng.randint(10, 26), horizon), outline="#333333", fill=rng.choice(GROUNDS))
    for place in (rng.randint(8, 22), rng.randint(62, 78)):
        head, height = rng.randint(6, 8), rng.randint(24, 34)
        foot = rng.randint(78, 90)
        pen.rounded_rectangle((place, foot - height, place + 2 * head, foot), radius=5, fill=rng.choice(COLOURS))
        pen.ellipse((place, foot - height - 2 * head, place + 2 * head, foot - height), fill="#e8c39e")
    image.quantize(16).save(path, optimize=True)


def main(folder: Path) -> int:
    """Draw every image that elements.yaml names."""
    try:
        import PIL  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write('the images need Pillow: `pip install -c constraints.txt ".[images]"`\n')
        return 2
    elements = yaml.safe_load((folder / "elements.yaml").read_text("utf-8"))["elements"]
    for image in (image for element in elements for image in element["images"]):
        (folder / image).parent.mkdir(parents=True, exist_ok=True)
        draw(image, folder / image)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.stderr.write("give the folder that holds elements.yaml\n")
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
