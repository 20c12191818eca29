"""Make folders in the layouts of corpora, with all names and tables, but no speech.

They show that a builder handles the full size before the real corpus was downloaded, and that it finds damage:

    python tests/sample/look_alike.py crema_d look-alikes/CREMA-D --damage
    equivox data build crema_d --source look-alikes/CREMA-D --output look-alikes/built

The clips are 60 ms of noise; a score on them has no meaning. The counts are the full ones.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import wave
from collections.abc import Sequence
from pathlib import Path

from equivox.core.media import sha256
from equivox.dataset_builders.l2_arctic import SPEAKERS, identity_words

SENTENCES = ("DFA", "IEO", "IOM", "ITH", "ITS", "IWL", "IWW", "MTI", "TAI", "TIE", "TSI", "WSI")
EMOTIONS = ("ANG", "DIS", "FEA", "HAP", "NEU", "SAD")
GRADED = "IEO"
"""The sentence of CREMA-D that is spoken at three strengths of each emotion."""
MALE_ACTORS, ACTORS, CREMA_CLIPS = 48, 91, 7_442
PROMPTS = (("a", 593), ("b", 539))
RECORDINGS = 26_867
NAMING = 400
"""The number of sentences of the look-alike that name a gender, an age or a race."""

_SAMPLES, _RATE, _WRONG_RATE = 960, 16_000, 8_000
_NOUNS = (
    "lamp", "river", "engine", "ladder", "orchard", "kettle", "harbor", "ticket", "blanket", "signal", "bridge",
    "jar",
)  # fmt: skip
_VERBS = (
    "hides", "leaves", "follows", "warms", "opens", "crosses", "needs", "marks", "covers", "moves", "keeps",
    "turns",
)  # fmt: skip
_PLACES = (
    "gate", "meadow", "station", "cellar", "corner", "valley", "market", "tower", "garden", "island", "roof",
    "field",
)  # fmt: skip


def write_clip(path: Path, seed: str, *, rate: int = _RATE) -> None:
    """Write 60 ms of noise that is different for every seed, as 16-bit wav."""
    noise = hashlib.shake_128(seed.encode()).digest(2 * _SAMPLES)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(noise)


def crema_d_names() -> list[str]:
    """Return the clip names of a look-alike of CREMA-D: 82 per actor, less the number that the real one lacks."""
    every = [
        f"{1001 + actor}_{sentence}_{emotion}_{level}"
        for actor in range(ACTORS)
        for sentence in SENTENCES
        for emotion in EMOTIONS
        for level in (("LO", "MD", "HI") if sentence == GRADED and emotion != "NEU" else ("XX",))
    ]
    lacking = sorted(every, key=lambda name: sha256(name.encode()))[: len(every) - CREMA_CLIPS]
    return sorted(set(every) - set(lacking))


def make_crema_d(folder: Path, *, damage: bool = False) -> dict[str, str]:
    """Write a look-alike of CREMA-D to `folder`; with `damage`, return what was damaged: kind → name."""
    names = crema_d_names()
    clips = folder / "AudioWAV"
    clips.mkdir(parents=True)
    for name in names:
        write_clip(clips / f"{name}.wav", name)
    rows = [
        f"{1001 + n},{20 + n % 55},{'Male' if n < MALE_ACTORS else 'Female'},"
        f"{('Caucasian', 'African American', 'Asian')[n % 3]},{('Not Hispanic', 'Hispanic')[n % 9 == 0]}"
        for n in range(ACTORS)
    ]
    done = {}
    if damage:
        done = _damage_clips(clips, names)
        done["missing actor row"] = rows.pop(60).partition(",")[0]
    (folder / "VideoDemographics.csv").write_text("ActorID,Age,Sex,Race,Ethnicity\n" + "\n".join(rows) + "\n", "utf-8")
    said = "\n".join(f"{code},{_sentence(n)}" for n, code in enumerate(SENTENCES))
    (folder / "sentences.csv").write_text(f"code,text\n{said}\n", "utf-8")
    return done


def l2_arctic_prompts() -> dict[str, str]:
    """Return 1,132 made-up sentences by the real prompts' names; `NAMING` of them name a group."""
    words = sorted(word for word in identity_words() if word.isalpha())
    prompts = {}
    for number, name in enumerate(f"arctic_{part}{n:04d}" for part, last in PROMPTS for n in range(1, last + 1)):
        naming = f" near the {words[number % len(words)]}" if number < NAMING else ""
        prompts[name] = f"{_sentence(number)[:-1]}{naming}."
    return prompts


def make_l2_arctic(folder: Path, *, damage: bool = False) -> dict[str, str]:
    """Write a look-alike of L2-ARCTIC to `folder`; with `damage`, return what was damaged: kind → name."""
    prompts = l2_arctic_prompts()
    speakers = [speaker for group in SPEAKERS.values() for speaker in group]
    # The real corpus lacks some recordings; here the missing ones are all of sentences that name a group.
    lacking = len(speakers) * len(prompts) - RECORDINGS
    absent = {(speakers[n % len(speakers)], list(prompts)[n]) for n in range(lacking)}
    for speaker in speakers:
        (folder / speaker / "wav").mkdir(parents=True)
        (folder / speaker / "transcript").mkdir()
        for name, text in prompts.items():
            if (speaker, name) not in absent:
                write_clip(folder / speaker / "wav" / f"{name}.wav", f"{speaker} {name}")
                (folder / speaker / "transcript" / f"{name}.txt").write_text(text, "utf-8")
    if not damage:
        return {}
    clean = list(prompts)[NAMING:]
    done = _damage_clips(folder / speakers[0] / "wav", clean)
    done["different transcript"] = clean[40]
    (folder / speakers[1] / "transcript" / f"{clean[40]}.txt").write_text("Something else is said here.", "utf-8")
    return done


def _damage_clips(clips: Path, names: Sequence[str]) -> dict[str, str]:
    """Rename one clip, empty one, copy one over another, and change the sampling rate of one."""
    renamed, empty, original, copy, slow = (names[place] for place in (5, 10, 15, 20, 25))
    (clips / f"{renamed}.wav").rename(clips / f"{renamed} (1).wav")
    (clips / f"{empty}.wav").write_bytes(b"")
    (clips / f"{copy}.wav").write_bytes((clips / f"{original}.wav").read_bytes())
    write_clip(clips / f"{slow}.wav", slow, rate=_WRONG_RATE)
    return {"renamed file": f"{renamed} (1)", "empty file": empty, "duplicate": copy, "other sampling rate": slow}


def _sentence(number: int) -> str:
    noun, rest = number % len(_NOUNS), number // len(_NOUNS)
    verb, place = rest % len(_VERBS), rest // len(_VERBS)
    return f"The {_NOUNS[noun]} {_VERBS[verb]} the {_PLACES[place % len(_PLACES)]}."


MAKERS = {
    "crema_d": make_crema_d,
    "l2_arctic": make_l2_arctic,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the requested look-alike and print what was damaged."""
    parser = argparse.ArgumentParser(description="Make a corpus of tiny clips that is shaped like a real one.")
    parser.add_argument("corpus", choices=sorted(MAKERS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--damage", action="store_true", help="plant the kinds of damage that builders must find")
    given = parser.parse_args(arguments)
    if given.folder.exists() and any(given.folder.iterdir()):
        parser.error(f"{given.folder} is not empty")
    for kind, name in MAKERS[given.corpus](given.folder, damage=given.damage).items():
        print(f"{kind}: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
