"""Recordings whose voice is changed on purpose: its pitch alone, or its pitch and the length of its vocal tract.

WORLD splits a recording into pitch (F0), spectral envelope and aperiodicity, and a voice is made of them again. The
change is given in semitones: F0 × 2^(N/12). 0 changes nothing, so it shows what making the voice again does.

`pitch`
    The spectral envelope stays, and with it the vocal tract: the same person, who speaks higher or lower.
`voice`
    The envelope is stretched along frequency by 2^(N/36), so that formants move by a third of the semitones: another
    person's vocal tract. Between men, women and children formants go about with the cube root of F0 (Miller). From the
    men to the women of Peterson & Barney F0 rises 1.69 times and formants 1.16 times; 1.69^(1/3) = 1.19.

Sources: WORLD, Morise, Yokomori & Ozawa 2016, doi:10.1587/transinf.2015EDP7457; Miller 1989,
doi:10.1121/1.397862; Peterson & Barney 1952, doi:10.1121/1.1906875. Nothing heavy is imported until a
recording is changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from equivox.core.errors import RequestError
from equivox.core.lazy import NDArray, np
from equivox.core.media import MediaError, decode_audio, encode_audio

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

ALGORITHM = "WORLD 1"
"""The name of the method, raised whenever the same recording would sound otherwise: it is part of requests' keys."""
RATE = 16_000
"""Samples per second of what is made; every engine resamples recordings to this rate in any case."""
FRAME_MS = 5.0
LOWEST_HZ, HIGHEST_HZ = 60.0, 800.0
"""The range in which F0 is looked for."""
LEAST_VOICED_S, LEAST_VOICED = 0.1, 0.05
"""With less voice than this, in seconds and as a share, a recording has no pitch: noise seems voiced at moments."""
FORMANTS = 1 / 3
"""The semitones that formants move for each semitone of F0, where the vocal tract changes too."""


def changed_voice(data: bytes, *, semitones: float, vocal_tract: bool, name: str) -> bytes:
    """Return a recording with its voice moved by `semitones`, as WAV: mono, 16 kHz, 24 bit.

    Channels are averaged. It is as long as before, to the sample, and as loud (equal root mean square), unless its
    peak would pass full scale. The same bytes always give the same bytes. With `vocal_tract` the formants move too.

    Raises
    ------
    MediaError
        The recording cannot be decoded, or less than 0.1 s or 5 % of it is voice: its pitch cannot be changed, and
        unchanged it would pass for another dose.
    RequestError
        pyworld is not installed.
    """
    world = require_world()
    samples = decode_audio(data, name=name, sampling_rate=RATE).astype(np.float64)
    if (parts := _parts(samples.tobytes())) is None:
        raise MediaError(f"{name}: no voice was found in it, so its pitch cannot be changed")
    f0, envelope, aperiodicity = parts
    if vocal_tract:
        envelope = _stretched(envelope, 2 ** (semitones * FORMANTS / 12))
    made = world.synthesize(f0 * 2 ** (semitones / 12), envelope, aperiodicity, RATE, FRAME_MS)
    made = np.pad(made, (0, max(0, len(samples) - len(made))))[: len(samples)]
    made *= _loudness(samples) / max(_loudness(made), 1e-12)
    made /= max(1.0, float(np.abs(made).max()))
    # A WAV file of floats holds the time at which it was written.
    return encode_audio(made, sampling_rate=RATE, container="WAV", subtype="PCM_24")


def load_changed(load: Callable[[], bytes], semitones: float, vocal_tract: bool, name: str) -> bytes:
    """Return the recording that `load` reads with its voice changed; a request calls it when it is sent."""
    return changed_voice(load(), semitones=semitones, vocal_tract=vocal_tract, name=name)


def median_f0(data: bytes, *, name: str) -> float:
    """Return the median F0 of a recording in Hz; NaN if no voice is found. Otherwise raises as `changed_voice`."""
    f0, _ = _f0(require_world(), decode_audio(data, name=name, sampling_rate=RATE).astype(np.float64))
    return float(np.median(f0[f0 > 0])) if _is_voiced(f0) else math.nan


def voiced_f0(samples: Floats) -> Floats:
    """Return the F0 in Hz of what is voiced in samples at 16 kHz, a value every 5 ms; none if no voice is found."""
    f0, _ = _f0(require_world("measuring the pitch of an answer"), samples)
    return f0[f0 > 0] if _is_voiced(f0) else f0[:0]


def require_world(what: str = "changing a voice") -> Any:
    """Return pyworld; RequestError, which says that `what` needs it, if it is not installed or cannot be imported."""
    try:
        import pyworld
    except ImportError as error:
        # pyworld 0.3.5 is found and does not import where setuptools no longer has pkg_resources.
        found = "" if getattr(error, "name", "") == "pyworld" else f" (what is installed does not import: {error})"
        raise RequestError(f'{what} needs pyworld{found}; install it with `pip install "equivox[voice]"`') from None
    return pyworld


@lru_cache(maxsize=4)
def _parts(samples: bytes) -> tuple[Floats, Floats, Floats] | None:
    """Return F0, spectral envelope and aperiodicity of some samples, 64-bit floats; None if no voice is found.

    They are kept for the next doses of a recording, whose requests are neighbours: they take two thirds of the time.
    """
    world, column = require_world(), np.frombuffer(samples, dtype=np.float64)
    f0, times = _f0(world, column)
    if not _is_voiced(f0):
        return None
    return f0, world.cheaptrick(column, f0, times, RATE), world.d4c(column, f0, times, RATE)


def _f0(world: Any, samples: Floats) -> tuple[Floats, Floats]:
    """Return F0 in Hz, 0 where there is no voice, and its times in seconds: a value every 5 ms."""
    rough, times = world.dio(samples, RATE, f0_floor=LOWEST_HZ, f0_ceil=HIGHEST_HZ, frame_period=FRAME_MS)
    return world.stonemask(samples, rough, times, RATE), times


def _is_voiced(f0: Floats) -> bool:
    voiced = int((f0 > 0).sum())
    return voiced * FRAME_MS / 1000 >= LEAST_VOICED_S and voiced >= LEAST_VOICED * len(f0)


def _loudness(samples: Floats) -> float:
    return math.sqrt(float((samples**2).mean()))


def _stretched(envelope: Floats, factor: float) -> Floats:
    """Return a spectral envelope, frames x frequencies, with what was at a frequency f now at f × `factor`.

    It is interpolated in its logarithm; above what was known its last value is repeated, as in WORLD's own example.
    """
    last = envelope.shape[1] - 1
    place = np.minimum(np.arange(last + 1) / factor, last)
    low = np.minimum(place.astype(np.int64), last - 1)
    logs, part = np.log(envelope), place - low
    stretched: Floats = np.exp((1 - part) * logs[:, low] + part * logs[:, low + 1])
    return np.ascontiguousarray(stretched)
