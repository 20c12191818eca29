"""Small corpora in the layouts of the real ones, to be damaged by the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

WriteAudio = Callable[..., None]


@pytest.fixture
def write_audio() -> WriteAudio:
    """Write seeded noise; the seed makes the content, so equal seeds make equal files."""

    def write(
        path: Path, *, seed: int = 0, seconds: float = 0.2, rate: int = 16_000, channels: int = 1, peak: float = 0.3
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(seed).uniform(-peak, peak, (round(seconds * rate), channels))
        soundfile.write(path, noise, rate)

    return write


@pytest.fixture
def crema_d(tmp_path: Path, write_audio: WriteAudio) -> Path:
    """Four actors (1001 and 1003 male) × two sentences × two emotions: 16 clips."""
    root = tmp_path / "CREMA-D"
    rows = ['"ActorID","Age","Sex","Race","Ethnicity"']
    seed = 0
    for actor in range(1001, 1005):
        sex = "Male" if actor % 2 else "Female"
        rows.append(f'{actor},{actor - 950},"{sex}","African American","Not Hispanic"')
        for sentence in ("AAA", "BBB"):
            for emotion in ("NEU", "SAD"):
                seed += 1
                write_audio(root / "AudioWAV" / f"{actor}_{sentence}_{emotion}_XX.wav", seed=seed)
    (root / "VideoDemographics.csv").write_text("\n".join(rows) + "\n")
    (root / "README.md").write_text(
        "# Sentences\n\n- The door is open (AAA).\n- Bread is on the table (BBB).\n- Sad (SAD)\n"
    )
    return root


@pytest.fixture
def l2_arctic(tmp_path: Path, write_audio: WriteAudio) -> Callable[..., Path]:
    """Speakers who read the given sentences, arctic_a0001 and up."""

    def make(sentences: Sequence[str], speakers: Sequence[str] = ("ABA", "SKA", "BWC")) -> Path:
        root = tmp_path / "l2arctic"
        for s, speaker in enumerate(speakers):
            for n, text in enumerate(sentences, start=1):
                name = f"arctic_a{n:04d}"
                write_audio(root / speaker / "wav" / f"{name}.wav", seed=100 * s + n, rate=44_100, seconds=0.1)
                transcript = root / speaker / "transcript" / f"{name}.txt"
                transcript.parent.mkdir(exist_ok=True)
                transcript.write_text(text)
        return root

    return make


STEREOSET_VOTES = (
    "{'stereotype': ['stereotype', 'stereotype', 'irrelevant'], 'irrelevant': ['irrelevant', 'irrelevant', "
    "'irrelevant'], 'anti-stereotype': ['stereotype', 'anti-stereotype', 'irrelevant']}"
)


@pytest.fixture
def spoken_stereoset(tmp_path: Path, write_audio: WriteAudio) -> Path:
    """Two contexts, each read by two female (ann, eve) and two male (bob, jon) voices: eight instances."""
    root = tmp_path / "spoken_stereoset"
    lines = ["id,speaker,gender,context,irrelevant,stereotypical,anti-stereotypical,labels,annotators"]
    number = 0
    for context in ("I read at night.", "My garden is small."):
        for speaker, gender in (("ann", "female"), ("bob", "male"), ("eve", "female"), ("jon", "male")):
            first, second = ("Poems.", "Manuals.") if gender == "female" else ("Manuals.", "Poems.")
            options = f"Chalk is white.,{first},{second}"
            lines.append(f'{number:05d},{speaker},{gender},{context},{options},"{STEREOSET_VOTES}","[11, 12, 13]"')
            write_audio(root / "speech" / "gender" / f"{number:05d}_{speaker}.wav", seed=number)
            number += 1
    (root / "metadata").mkdir()
    (root / "metadata" / "gender_v1.0.csv").write_text("\n".join(lines) + "\n")
    return root
