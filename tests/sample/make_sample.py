"""Make the embedded sample: two small synthetic corpora, laid out like CREMA-D and like L2-ARCTIC.

Needs `espeak-ng` (made with 1.51), `sox` (14.4.2) and `opusenc` (0.2, with libopus 1.3.1); nothing at run time or
test time does. Run it with `python tests/sample/make_sample.py [FOLDER]`; the same versions of all programs
give the same bytes.

Accents: espeak-ng's Arabic, Mandarin, Hindi and Korean voices pass Latin text to an English voice, and the
Spanish one reads it as Spanish. So every accent voice receives the phonemes of the English voice
(`espeak-ng -x`), each replaced by the nearest one that all voices have (`NEAREST`); vowels, rhythm and tone
are then those of the accent voice.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

SENTENCES = {
    "TTC": "The train to the coast leaves from platform nine.",
    "BBS": "The blue bus stops near the library at half past seven.",
    "PLB": "Please put the large box under the table by the window.",
    "SSP": "The soup needs a little more salt and pepper.",
    "IRT": "It will probably rain again tomorrow afternoon.",
    "KSD": "The keys are on the shelf next to the door.",
    "BOS": "The bakery opens early on Saturday morning.",
    "SLC": "A small lamp is enough for this quiet corner.",
    "PFP": "The printer on the second floor is out of paper.",
    "STW": "These shoes are too wet to wear outside.",
    "MCR": "The museum is closed for repairs until Monday.",
    "FCK": "There is fresh coffee in the kitchen.",
}
ACCENTS = {
    "arabic": "ar",
    "hindi": "hi",
    "korean": "ko",
    "mandarin": "cmn",
    "spanish": "es",
    "vietnamese": "vi",
}
AGES = (22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 62, 66)
RACES = ("African American", "Asian", "Caucasian")
NEAREST = {
    **{p: p for p in (*"pbtdkgfvTDszSZhmnNlrwj", "tS", "dZ")},
    **{"r-": "r", "t#": "t", "t2": "t", ":": "", ";": "", "@L": "@l"},
    **{"a": "a", "aa": "a", "a#": "@", "A:": "a", "A@": "ar", "0": "o", "V": "a"},
    **{"@": "@", "@2": "@", "3": "@r"},
    **{"3:": "er", "E": "e", "e@": "er", "I": "i", "I#": "i", "I2": "i", "i": "i", "i:": "i:", "i@": "i@"},
    **{"i@3": "ir", "O": "o", "O2": "o", "O:": "o", "O@": "or", "o@": "or", "U": "u", "u:": "u:"},
    **{"aI": "aj", "aI@": "aj@", "aU": "aw", "eI": "ej", "OI": "oj", "oU": "ow"},
}
"""English phonemes in espeak-ng's notation → the nearest phoneme that all accent voices have."""
TRIM = "silence 1 0.01 0.2% reverse silence 1 0.01 0.2% reverse pad 0.05 0.05 norm -3"


class Speech(NamedTuple):
    """One clip to synthesize: pitch from 0 to 99, rate in words per minute, as for espeak-ng."""

    path: Path
    voice: str
    text: str
    pitch: int
    rate: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Make both samples in a folder; they replace earlier ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("sample"))
    folder: Path = parser.parse_args(arguments).folder
    if (missing := missing_program()) is not None:
        sys.stderr.write(f"{missing} is missing; install it to make the sample again\n")
        return 2
    jobs = [*crema_d(_empty(folder / "crema_d")), *l2_arctic(_empty(folder / "l2_arctic"))]
    with ThreadPoolExecutor() as pool:
        sizes = list(pool.map(speak, jobs))
    sys.stdout.write(f"{len(sizes)} clips, {sum(sizes) / 1e6:.1f} MB in {folder}\n")
    return 0


def crema_d(folder: Path) -> list[Speech]:
    """Write the tables of the CREMA-D sample and return the clips to synthesize.

    36 female and 36 male voices get the same ages, races and ethnicities. Each voice speaks four of the twelve
    sentences, two neutrally and two happily (higher and faster). Voices of every kind speak each sentence.
    """
    rows, jobs = [], []
    for i in range(72):
        actor, female, k = 2001 + i, i % 2 == 0, i // 2
        variant = f"f{k % 5 + 1}" if female else f"m{k % 8 + 1}"
        # espeak-ng ignores the variant of plain en-gb, and with it the gender.
        voice = f"{('en-us', 'en-gb-x-rp')[k // 6 % 2]}+{variant}"
        pitch, rate = (52 if female else 30) + k * 5 % 36, 150 + 4 * (k * 7 % 12) + k // 12
        ethnicity = "Hispanic" if k % 4 == 0 else "Not Hispanic"
        rows.append((actor, AGES[k * 5 % 12], "Female" if female else "Male", RACES[k % 3], ethnicity))
        for n, (code, text) in choose_sentences(k // 12):
            happy = n % 2 == 1
            jobs.append(
                Speech(
                    path=folder / "AudioWAV" / f"{actor}_{code}_{'HAP' if happy else 'NEU'}_XX.ogg",
                    voice=voice,
                    text=text,
                    pitch=pitch + 12 * happy,
                    rate=round(rate * (1.08 if happy else 1)),
                )
            )
    (folder / "AudioWAV").mkdir()
    _table(folder / "VideoDemographics.csv", ("ActorID", "Age", "Sex", "Race", "Ethnicity"), rows)
    published = {"clips": 288, "speakers": 72, "male": 36, "female": 36, "sentences": 12, "emotions": 2}
    _facts(folder, "CREMA-D", published)
    lines = "".join(f"- {text.removesuffix('.')} ({code}).\n" for code, text in SENTENCES.items())
    readme = README.format(corpus="CREMA-D", details=CREMA_DETAILS + lines)
    (folder / "README.md").write_text(readme, encoding="utf-8")
    return jobs


def choose_sentences(part: int) -> list[tuple[int, tuple[str, str]]]:
    """Return four sentences with their numbers, codes and texts; there are three such parts."""
    return [*enumerate(SENTENCES.items())][4 * part : 4 * part + 4]


def l2_arctic(folder: Path) -> list[Speech]:
    """Write transcripts and the table of speakers of the L2-ARCTIC sample and return the clips to synthesize.

    All voices say the same four sentences: the corpus holds the sentences that every speaker has.
    """
    spoken = {text: shared_phonemes(text) for _, (_, text) in choose_sentences(0)}
    rows, jobs = [], []
    for a, (accent, voice) in enumerate(ACCENTS.items()):
        for k in range(12):
            female = k < 6
            speaker = f"{voice[:2].upper()}{'F' if female else 'M'}{k % 6 + 1}"
            variant = f"f{(2 * a + k) % 5 + 1}" if female else f"m{(2 * a + k) % 8 + 1}"
            pitch, rate = (54 if female else 32) + 3 * ((2 * a + k * 5) % 12), 146 + 3 * ((a * 3 + k * 5) % 14)
            rows.append((speaker, "female" if female else "male", accent))
            for part in ("wav", "transcript"):
                (folder / speaker / part).mkdir(parents=True)
            for n, (text, phonemes) in enumerate(spoken.items(), start=1):
                name = f"arctic_a{9000 + n}"
                (folder / speaker / "transcript" / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
                jobs.append(
                    Speech(
                        path=folder / speaker / "wav" / f"{name}.ogg",
                        voice=f"{voice}+{variant}",
                        text=f"[[{phonemes}]]",
                        pitch=pitch,
                        rate=rate,
                    )
                )
    _table(folder / "speakers.csv", ("speaker", "gender", "accent"), rows)
    published = {
        "recordings": 288,
        "clips": 288,
        "speakers": 72,
        "male": 36,
        "female": 36,
        "accents": 6,
        "sentences": 4,
    }
    _facts(folder, "L2-ARCTIC", published)
    (folder / "README.md").write_text(README.format(corpus="L2-ARCTIC", details=L2_DETAILS), encoding="utf-8")
    return jobs


def shared_phonemes(text: str) -> str:
    """Return the English phonemes of a text, each replaced by the nearest one that all accent voices have."""
    words = _run(["espeak-ng", "-v", "en-us", "-x", "-q", "--sep=_", "--", text]).decode().split()
    return " ".join(_nearest(word) for word in words)


def speak(job: Speech) -> int:
    """Speak one clip as `write_speech` does; return its size in bytes."""
    write_speech(job.path, job.voice, job.text, pitch=job.pitch, rate=job.rate)
    return job.path.stat().st_size


def missing_program() -> str | None:
    """Return the first program that is needed and not installed; None if all are."""
    return next((name for name in ("espeak-ng", "sox", "opusenc") if shutil.which(name) is None), None)


def write_speech(path: Path, voice: str, text: str, *, pitch: int, rate: int) -> None:
    """Write a text as 16 kHz mono Ogg Opus of about 10 kbit/s, silence trimmed, peak at -3 dB."""
    spoken = _run([*f"espeak-ng -v {voice} -p {pitch} -s {rate} --stdout --".split(), text])
    trimmed = _run(f"sox -R -D -t wav - -r 16000 -c 1 -b 16 -t wav - {TRIM}".split(), spoken)
    # A stream has a random number unless it is given one.
    opus = "opusenc --quiet --bitrate 10 --framesize 60 --serial 1 --discard-comments - -"
    path.write_bytes(_run(opus.split(), trimmed))


def _nearest(word: str) -> str:
    parts = []
    for phoneme in filter(None, word.split("_")):
        mark = phoneme[0] if phoneme[0] in "'," else ""
        bare = phoneme[len(mark) :]
        if bare not in NEAREST:
            raise SystemExit(f"no nearest phoneme for {bare!r} of {word!r}; add it to NEAREST")
        parts.append(mark + NEAREST[bare])
    return "".join(parts)


def _run(command: Sequence[str], given: bytes = b"") -> bytes:
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _facts(folder: Path, corpus: str, published: dict[str, int]) -> None:
    facts = {
        "title": f"synthetic sample in the layout of {corpus}",
        "licence": "CC0 1.0",
        "licence_id": "cc0-1.0",
        **dict.fromkeys(("homepage", "paper", "doi", "citation")),
        "published": published,
        "cannot_say": [
            "The speakers are synthetic voices; results on the sample say nothing about people.",
            "Demographic labels were assigned by the script that made the voices.",
        ],
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


README = """\
# A synthetic sample in the layout of {corpus}

288 clips: 72 synthetic speakers say four sentences each, which were written for this sample. It exists so that every
part of equivox can be tried and tested without a download.

**The speakers are not people.** They are espeak-ng voices that differ in variant, pitch and rate, and their
demographic labels were assigned by the script. Results on this sample say nothing about people, nor about
how a model treats them.

Made by `make_sample.py` in the folder above, with espeak-ng, sox and opusenc: 16 kHz mono Ogg Opus, silence trimmed,
peak at -3 dB. `facts.json` states the sample's own counts, in place of those of {corpus}. No recording and
no sentence of {corpus} is in it.

Dedicated to the public domain under CC0 1.0 <https://creativecommons.org/publicdomain/zero/1.0/>.

{details}"""
CREMA_DETAILS = """\
`AudioWAV/<actor>_<sentence>_<emotion>_<level>.ogg`: 36 female and 36 male voices with the same ages, races and
ethnicities. Six sentences are neutral (NEU), six are happy (HAP), which here means higher and faster.

"""
L2_DETAILS = """\
`<speaker>/wav/` and `<speaker>/transcript/`; `speakers.csv` has each speaker's gender and accent. An accent
is an espeak-ng voice of that language which reads the English phonemes of the sentence, each replaced by the
nearest one that all six voices have: English with the vowels, rhythm and tones of another language, not a
recording of a learner.
"""


if __name__ == "__main__":
    sys.exit(main())
