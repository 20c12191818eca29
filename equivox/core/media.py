"""Decode audio and images; the format is determined from the bytes, never from the file's name.

wav, flac, ogg (Vorbis, Opus) and mp3 are read through libsndfile, one whole decode per clip, so that a
damaged file is found when a corpus is built and not in the middle of a run.  Nothing heavy is imported until
a clip is read.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import math
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.lazy import NDArray, np, soundfile

LFS_POINTER = b"version https://git-lfs"
SILENCE = 2e-4
"""A clip is silent when its samples differ by no more than this (full scale is 2.0): six 16-bit steps."""
SHORTEST_S = 0.05
"""A clip shorter than this, in seconds, holds no speech."""
CLIPPED_SHARE = 0.01
"""A clip is called clipped if more than this share of its samples are at full scale."""

_BLOCK = 1 << 16
_UNKNOWN_LENGTH = 0x7FFF0000  # encoders that write to a pipe leave a length at or above this in a wav header


_LEAST_MIXED = 0.05
"""The share of the louder channel that is left after mixing, at least; less is heard as almost nothing."""
_FFMPEG_S = 60
_CONTAINERS = (
    (4, b"ftyp", "mov"), (0, b"\x1aE\xdf\xa3", "matroska"), (0, b"#!AMR", "amr"), (0, b"0&\xb2u", "asf"),
    (0, b"FORM", "aiff"), (0, b"caff", "caf"), (0, b".snd", "au"), (0, b"\xff\xf1", "aac"), (0, b"\xff\xf9", "aac"),
)  # fmt: skip
"""Containers that ffmpeg decodes: where their mark stands, the mark, and ffmpeg's name of it."""


class MediaError(EquivoxError, ValueError):
    """A clip that cannot be decoded; the message names it and says why."""


@dataclass(frozen=True)
class AudioFacts:
    """Properties of a clip, found by one full decode.

    Attributes
    ----------
    sampling_rate
        Samples per second and channel; 0 when the header could not be read.
    duration_s
        Seconds of audio that were decoded, not what the header promises; 0 when none.
    problem
        Why the clip is not usable, in words; None means that it is usable.
    clipped
        More than 1 % of the samples are at full scale; the clip is usable.
    """

    sampling_rate: int
    duration_s: float
    problem: str | None
    clipped: bool = False


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` in lower-case hexadecimal.

    >>> sha256(b"")[:16]
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(data).hexdigest()


def is_lfs_pointer(data: bytes) -> bool:
    """Return whether `data` is the small text file that git-lfs leaves if content was not downloaded."""
    return data.startswith(LFS_POINTER)


def inspect_audio(data: bytes) -> AudioFacts:
    """Decode a whole clip, block by block, and return its properties and whether it is usable.

    A clip has a problem when it is not audio, is damaged or cut short, has no samples, has samples that are
    not finite, is silent once mixed to mono, or is shorter than 0.05 s.  A clip whose channels cancel by 95 %
    or more when they are mixed has one, too.  Loud clips are flagged as clipped, not refused.
    """
    data = _read_container(data)
    if reason := _not_audio(data):
        return AudioFacts(0, 0.0, reason)
    with audio_file(data) as descriptor:
        return _inspected(data, descriptor)


def _inspected(data: bytes, descriptor: int) -> AudioFacts:
    try:
        sound = soundfile.SoundFile(descriptor, closefd=False)
    except (RuntimeError, OSError) as error:
        return AudioFacts(0, 0.0, f"unreadable: {_words(error)}")
    samples, full_scale = 0, 0
    low, high, finite, failure = math.inf, -math.inf, True, None
    mixed, apart = 0.0, 0.0
    with sound:
        rate = int(sound.samplerate)
        try:
            while len(block := sound.read(_BLOCK, dtype="float32", always_2d=True)):
                samples += len(block)
                finite = finite and bool(np.isfinite(block).all())
                if finite:
                    mono = block.mean(axis=1)
                    low, high = min(low, float(mono.min())), max(high, float(mono.max()))
                    mixed += float(np.square(mono).sum())
                    apart += float(np.square(block).sum(axis=0).max())
                    full_scale += int((np.abs(block) >= 0.9999).any(axis=1).sum())
        except (RuntimeError, OSError) as error:
            failure = _words(error)
        kind, promised = sound.format, int(sound.frames)
    duration = samples / rate
    problem: str | None = None
    if failure is not None:
        problem = f"unreadable after {duration:.3f} s: {failure}"
    elif samples == 0:
        problem = "empty (0 samples)"
    elif not finite:
        problem = "not finite (NaN or infinite samples)"
    # Some encoders count their header as sound: what lacks could not be heard.
    elif (missing := _missing_share(data, kind, promised, samples)) * duration > (1 - missing) * SHORTEST_S:
        problem = f"cut short: {missing:.0%} of the audio that its header promises is missing"
    elif apart and mixed <= _LEAST_MIXED**2 * apart:
        lost = 1 - math.sqrt(mixed / apart)
        problem = f"channels out of phase: {lost:.0%} of the sound cancels when they are mixed; turn one channel around"
    elif high - low <= SILENCE:
        problem = "silent"
    elif duration < SHORTEST_S:
        problem = f"too short ({duration:.3f} s)"
    clipped = problem is None and full_scale > CLIPPED_SHARE * samples
    return AudioFacts(rate, duration, problem, clipped)


def decode_audio(data: bytes, *, name: str, sampling_rate: int = 16_000) -> NDArray[np.float32]:
    """Decode a clip to mono float32 in [-1, 1] at `sampling_rate` samples per second.

    Channels are averaged; resampling is polyphase (`scipy.signal.resample_poly`), so a clip of n samples at
    rate r has ceil(n · sampling_rate / r) samples.  Silence decodes; the caller decides whether it is usable.

    Raises
    ------
    MediaError
        The clip is not audio, is damaged, has no samples, or has samples that are not finite.
    """
    if sampling_rate < 1:
        raise UsageError(f"`sampling_rate` must be at least 1, got {sampling_rate}; 16000 suits speech")
    data = _read_container(data)
    if reason := _not_audio(data):
        raise MediaError(f"{name}: {reason}")
    samples: NDArray[np.float32]
    with audio_file(data) as descriptor:
        try:
            samples, rate = soundfile.read(descriptor, dtype="float32", always_2d=True, closefd=False)
        except (RuntimeError, OSError) as error:
            raise MediaError(f"{name}: unreadable: {_words(error)}") from error
    if not len(samples):
        raise MediaError(f"{name}: empty (0 samples)")
    if not np.isfinite(samples).all():
        raise MediaError(f"{name}: not finite (NaN or infinite samples)")
    mono = samples.mean(axis=1, dtype=np.float32)
    if rate != sampling_rate:
        from scipy.signal import resample_poly

        common = math.gcd(rate, sampling_rate)
        mono = resample_poly(mono, sampling_rate // common, rate // common)
    return np.ascontiguousarray(mono, dtype=np.float32)


@contextmanager
def audio_file(data: bytes = b"") -> Iterator[int]:
    """Yield the descriptor of a file without a name that holds `data`, for soundfile to read or to write.

    libsndfile works on a descriptor by itself. On a Python object it works through callbacks, and an interrupt that
    arrives within a callback is lost: the clip seems damaged, and the run goes on.
    """
    in_memory = hasattr(os, "memfd_create")  # Linux
    with os.fdopen(os.memfd_create("clip"), "w+b") if in_memory else tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


def encode_audio(samples: Any, *, sampling_rate: int, container: str, subtype: str) -> bytes:
    """Return `samples`, floats in [-1, 1], as a file of the `container` and `subtype` that libsndfile calls so."""
    with audio_file() as descriptor:
        soundfile.write(descriptor, samples, sampling_rate, format=container, subtype=subtype, closefd=False)
        os.lseek(descriptor, 0, os.SEEK_SET)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()


def container_of(data: bytes) -> str | None:
    """Return the name of the container that the first bytes belong to, or None for an unknown one."""
    if data[:4] in (b"RIFF", b"RIFX", b"RF64") and data[8:12] == b"WAVE":
        return "wav"
    if data[:4] == b"fLaC":
        return "flac"
    if data[:4] == b"OggS":
        return "ogg"
    if data[:3] == b"ID3" or _is_mpeg_frame(data):
        return "mp3"
    return None


def _is_mpeg_frame(data: bytes) -> bool:
    """Return whether `data` begins with an MPEG audio frame header with every field valid."""
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xE0 != 0xE0:
        return False
    version, layer = data[1] >> 3 & 3, data[1] >> 1 & 3
    bit_rate, rate = data[2] >> 4, data[2] >> 2 & 3
    return version != 1 and layer != 0 and bit_rate != 15 and rate != 3


def _not_audio(data: bytes) -> str | None:
    if not data:
        return "empty file (0 bytes)"
    if is_lfs_pointer(data):
        return "a git-lfs pointer instead of audio; run `git lfs pull` in the corpus"
    if container_of(data) is None:
        cure = "install ffmpeg, or convert it to one" if _name_container(data) else "convert it to one"
        return f"not wav, flac, ogg or mp3 (begins with {data[:8].hex(' ')}); {cure}"
    return None


def _name_container(data: bytes) -> str | None:
    """Return ffmpeg's name of another container of sound, by its first bytes; None for anything else."""
    return next((name for place, mark, name in _CONTAINERS if data[place : place + len(mark)] == mark), None)


def _read_container(data: bytes) -> bytes:
    """Return a clip of another container as WAV, decoded by ffmpeg; unchanged if that cannot be done.

    ffmpeg is given the format and may read nothing but the one file: a playlist could name others.
    """
    container, program = _name_container(data), shutil.which("ffmpeg")
    if container is None or program is None:
        return data
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = [program, "-v", "error", "-protocol_whitelist", "file,pipe", "-f", container, "-i", file.name]
        command += ["-vn", "-c:a", "pcm_s16le", "-f", "wav", "pipe:1"]
        done = subprocess.run(command, capture_output=True, timeout=_FFMPEG_S, check=False)
    return done.stdout if done.returncode == 0 and done.stdout else data


def _missing_share(data: bytes, kind: str, promised: int, decoded: int) -> float:
    """Return the share of a wav or flac clip that its header promises and the bytes lack; 0 when unknown.

    mp3 and ogg headers do not promise an exact length, so their share is always 0.
    """
    if kind == "FLAC":
        return 1 - decoded / promised if 0 < decoded < promised < _UNKNOWN_LENGTH else 0.0
    if not kind.startswith("WAV") or data[:4] != b"RIFF":
        return 0.0
    position = 12
    while position + 8 <= len(data):
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        if data[position : position + 4] == b"data":
            present = len(data) - position - 8
            return 1 - present / size if present < size < _UNKNOWN_LENGTH else 0.0
        position += 8 + size + size % 2
    return 0.0


def _words(error: Exception) -> str:
    """Return libsndfile's reason on one line, without the Python object that it mentions."""
    reason = getattr(error, "error_string", None) or str(error)
    return " ".join(str(reason).split()).rstrip(".") or type(error).__name__


def silent_wav(seconds: float) -> bytes:
    """Return a WAV file of silence, mono, 16,000 Hz, 32-bit float; at least one sample.

    >>> decode_audio(silent_wav(0.5), name="silence").shape
    (8000,)
    """
    samples = np.zeros(max(1, round(seconds * 16_000)), dtype=np.float32)
    return encode_audio(samples, sampling_rate=16_000, container="WAV", subtype="FLOAT")


def compact_audio(data: bytes, *, name: str) -> bytes:
    """Return a clip as a small ogg file, mono, for a page and no model; MediaError as in `decode_audio`."""
    samples = decode_audio(data, name=name, sampling_rate=16_000)
    return encode_audio(samples, sampling_rate=16_000, container="OGG", subtype="VORBIS")


MOST_SOUND_BYTES = 64 * 2**20
"""A longer spoken answer is refused; 35 minutes of mono WAV at 16,000 Hz are as long."""

LARGEST_IMAGE_PIXELS = 50_000_000
"""An image with more pixels is refused before it is decoded, because a small file can decode to gigabytes."""
IMAGES_SENT = "upright, transparent parts on white"
"""How pictures are sent to a model, for the manifest."""
_ORIENTATION = 0x0112
"""The tag of a photograph that says how to turn it."""
_SENT_AS_IS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


def begins_as_image(data: bytes) -> bool:
    """Return whether the first bytes are those of a PNG, a JPEG or a WebP."""
    return data.startswith((b"\x89PNG", b"\xff\xd8\xff")) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def inspect_image(data: bytes, *, name: str) -> str | None:
    """Return why an image cannot be used, or None; checks the first bytes and, with Pillow, decodes the image.

    One of a single colour shows nobody, as a silent clip: filters of models that make pictures return such.
    """
    if not data:
        return "empty file (0 bytes)"
    if is_lfs_pointer(data):
        return "a git-lfs pointer instead of an image; run `git lfs pull` in the corpus"
    if not begins_as_image(data):
        return f"not PNG, JPEG or WebP (begins with {data[:8].hex(' ')}); convert it to one"
    if importlib.util.find_spec("PIL") is not None:
        try:
            checked_image(data, name=name, blank=False)
        except MediaError as error:
            return str(error).removeprefix(f"{name}: ")
    return None


def checked_image(data: bytes, *, name: str, blank: bool = True) -> tuple[bytes, str]:
    """Return an image's bytes and MIME type, upright and opaque, after one full decode.

    PNG, JPEG and WebP are returned unchanged if they are upright and opaque. Photographs that a tag turns are turned,
    because many servers ignore the tag. Transparent pixels are put on white. Other formats that Pillow reads become
    PNG, photographs with a second picture (MPO) become JPEG. A single colour is accepted if it may be `blank`.

    Raises
    ------
    MediaError
        The image is empty, damaged, cut short, or has more than `LARGEST_IMAGE_PIXELS` pixels.
    UsageError
        Pillow is not installed.
    """
    try:
        from PIL import Image, ImageOps
    except ModuleNotFoundError:
        raise UsageError(
            'images need Pillow; install it in a checkout of equivox: `pip install -c constraints.txt ".[images]"`'
        ) from None
    if not data:
        raise MediaError(f"{name}: empty (0 bytes)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit below is stricter
            image = Image.open(io.BytesIO(data))
        with image:
            if image.width * image.height > LARGEST_IMAGE_PIXELS:
                raise MediaError(
                    f"{name}: {image.width} x {image.height} pixels, more than {LARGEST_IMAGE_PIXELS:,}; scale it down"
                )
            image.load()
            turned, transparent = image.getexif().get(_ORIENTATION, 1) != 1, image.has_transparency_data
            sent = ImageOps.exif_transpose(image) if turned else image
            if transparent:
                sent = Image.alpha_composite(Image.new("RGBA", sent.size, "white"), sent.convert("RGBA"))
            if not blank and all(low == high for low, high in np.reshape(sent.getextrema(), (-1, 2))):
                raise MediaError(f"{name}: blank (a single colour)")
            if image.format in _SENT_AS_IS and not turned and not transparent:
                return data, _SENT_AS_IS[image.format]
            buffer = io.BytesIO()
            if image.format in ("JPEG", "MPO"):
                sent.convert("RGB").save(buffer, format="JPEG", quality=95, subsampling=0)
                return buffer.getvalue(), "image/jpeg"
            sent.convert("RGB").save(buffer, format="PNG")
            return buffer.getvalue(), "image/png"
    except MediaError:
        raise
    except Exception as error:  # Pillow's plug-ins raise many kinds on damaged files
        raise MediaError(f"{name}: not a readable image: {_words(error)}") from error
