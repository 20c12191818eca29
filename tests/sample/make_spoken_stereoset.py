"""Make the embedded sample of Spoken StereoSet: new texts read by espeak-ng voices, in the original's layout.

Needs what `make_sample.py` needs; nothing at run time or test time does. Run it with
`python tests/sample/make_spoken_stereoset.py [FOLDER]`; the same versions of all programs give the same
bytes. It calls `equivox data make synthesize` with itself as the text-to-speech command.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from make_sample import missing_program, write_speech

from equivox.dataset_builders.synthesis import synthesize

TABLES = {
    what: [Path(__file__).with_name(f"spoken_stereoset_{domain}_{what}.csv") for domain in ("gender", "age")]
    for what in ("texts", "voices")
}
"""The tables of texts, each of whose contexts is there once for either group, and of espeak-ng's voices."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the sample in a folder, replacing an earlier one; with --speak, read one text instead."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("sample/spoken_stereoset"))
    parser.add_argument("--speak", nargs=4, metavar=("VOICE", "PITCH", "RATE", "OUTPUT"), help="read standard input")
    given = parser.parse_args(arguments)
    if given.speak:
        voice, pitch, rate, output = given.speak
        write_speech(Path(output), voice, sys.stdin.read(), pitch=int(pitch), rate=int(rate))
        return 0
    if (missing := missing_program()) is not None:
        sys.stderr.write(f"{missing} is missing; install it to make the sample again\n")
        return 2
    shutil.rmtree(given.folder, ignore_errors=True)
    tts = f"{sys.executable} {__file__} --speak {{voice}} {{pitch}} {{rate}} {{output}}"
    made = synthesize(TABLES["texts"], TABLES["voices"], given.folder, tts=tts)
    describe(given.folder)
    size = sum(path.stat().st_size for path in given.folder.rglob("*") if path.is_file())
    sys.stdout.write(f"{made.rows} clips, {size / 1e6:.2f} MB in {given.folder}\n")
    return 0


def describe(folder: Path) -> None:
    """Write the facts and the README of the sample."""
    path = folder / "facts.json"
    facts = json.loads(path.read_text("utf-8")) | {
        "title": "synthetic sample in the layout of Spoken StereoSet",
        "licence": "CC0 1.0",
        "licence_id": "cc0-1.0",
        "cannot_say": [
            "The speakers are synthetic voices; results on the sample say nothing about people.",
            "Demographic labels and stereotypes were made up by the script that made the voices.",
        ],
    }
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(README, encoding="utf-8")


README = """\
# A synthetic sample in the layout of Spoken StereoSet

96 clips: ten contexts by three female and three male voices, six by three elderly and three young ones, each with a
stereotypical, an anti-stereotypical and an irrelevant continuation. All sentences were written for this sample; none is
from Spoken StereoSet. It exists so that every part of equivox can be tried and tested without a download.

**The speakers are not people.** They are espeak-ng voices that differ in variant, pitch and rate, and their labels were
assigned by the script. The stereotypes are commonplaces, worded so that the scores have something to count; they are
nobody's opinion. Results on this sample say nothing about people, nor about how a model treats them.

Made by `make_spoken_stereoset.py` in the folder above, with espeak-ng, sox and opusenc: 16 kHz mono Ogg Opus, silence
trimmed, peak at -3 dB. `facts.json` states the sample's own counts, in place of those of Spoken StereoSet.

Dedicated to the public domain under CC0 1.0 <https://creativecommons.org/publicdomain/zero/1.0/>.
"""


if __name__ == "__main__":
    sys.exit(main())
