"""Decode audio and images; the format is determined from the bytes, never from the file's name.

wav, flac, ogg (Vorbis, Opus) and mp3 are read through libsndfile, one whole decode per clip, so that a damaged file is
found when a corpus is built and not in the middle of a run. Nothing heavy is imported until a clip is read.
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

_LFS_POINTER = b"version https://git-lfs"
_SILENCE = 2e-4
"""A clip is silent when its samples differ by no more than this (full scale is 2.0): six 16-bit steps."""
_SHORTEST_S = 0.05
"""A clip shorter than this, in seconds, holds no speech."""
_CLIPPED_SHARE = 0.01
"""A clip is called clipped if more than this share of its samples are at full scale."""
_LEAST_MIXED = 0.05
"""The share of the louder channel that is left after mixing, at least; less is heard as almost nothing."""
_BLOCK = 1 << 16
_UNKNOWN_LENGTH = 0x7FFF0000  # encoders that write to a pipe leave a length at or above this in a wav header
_CONTAINERS = (
    (4, b"ftyp", "mov"), (0, b"\x1aE\xdf\xa3", "matroska"), (0, b"#!AMR", "amr"), (0, b"0&\xb2u", "asf"),
    (0, b"FORM", "aiff"), (0, b"caff", "caf"), (0, b".snd", "au"), (0, b"\xff\xf1", "aac"), (0, b"\xff\xf9", "aac"),
)  # fmt: skip
"""Containers that ffmpeg decodes: where their mark stands, the mark, and ffmpeg's name of it."""
MOST_SOUND_BYTES = 64 * 2**20
"""A longer spoken answer is refused; 35 minutes of mono WAV at 16,000 Hz are as long."""
LARGEST_IMAGE_PIXELS = 50_000_000
"""An image with more pixels is refused before it is decoded, because a small file can decode to gigabytes."""
IMAGES_SENT = "upright, transparent parts on white"
"""How pictures are sent to a model, for the manifest."""
_ORIENTATION = 0x0112
"""The tag of a photograph that says how to turn it."""


class MediaError(EquivoxError, ValueError):
    """A clip that cannot be decoded; the message names it and says why."""


@dataclass(frozen=True)
class AudioFacts:
    """Properties of a clip, measured by one full decode."""

    sampling_rate: int
    """Samples per second and channel; 0 when the header could not be read."""
    duration_s: float
    """Seconds of audio that were decoded, not what the header promises; 0 when none."""
    problem: str | None
    """Why the clip is not usable, in words; None means that it is usable."""
    clipped: bool = False
    """Whether more than 1 % of the samples are at full scale; the clip is usable."""


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def is_lfs_pointer(data: bytes) -> bool:
    """Return whether `data` is the small text file that git-lfs leaves if content was not downloaded."""
    return data.startswith(_LFS_POINTER)


def inspect_audio(data: bytes) -> AudioFacts:
    """Decode a whole clip, block by block, and return its properties and whether it is usable.

    A clip has a problem when it is not audio, is damaged or cut short, has no samples, has samples that are not finite,
    is silent once mixed to mono, or is shorter than 0.05 s. A clip whose channels cancel by 95 % or more when they are
    mixed has one, too. Loud clips are flagged as clipped, not refused.
    """
    samples, full_scale, mixed, apart = 0, 0, 0.0, 0.0
    low, high, failure = math.inf, -math.inf, None
    try:
        with _open_audio(data) as (data, sound), np.errstate(all="ignore"):  # of infinite samples
            rate, kind, promised = int(sound.samplerate), sound.format, int(sound.frames)
            try:
                while len(block := sound.read(_BLOCK, dtype="float32", always_2d=True)):
                    samples += len(block)
                    mono = block.mean(axis=1)
                    # NaN and infinity stay in these two.
                    low, high = float(np.minimum(low, mono.min())), float(np.maximum(high, mono.max()))
                    mixed += float(np.square(mono).sum())
                    apart += float(np.square(block).sum(axis=0).max())
                    full_scale += int((np.abs(block) >= 0.9999).any(axis=1).sum())
            except (RuntimeError, OSError) as error:
                failure = _words(error)
    except MediaError as error:
        return AudioFacts(0, 0.0, str(error))
    duration, missing = samples / rate, _missing_share(data, kind, promised, samples)
    problem: str | None = None
    if failure is not None:
        problem = f"unreadable after {duration:.3f} s: {failure}"
    elif samples == 0:
        problem = "empty (0 samples)"
    elif not math.isfinite(high - low):
        problem = "not finite (NaN or infinite samples)"
    # Some encoders count their header as sound: what lacks could not be heard.
    elif missing * duration > (1 - missing) * _SHORTEST_S:
        problem = f"cut short: {missing:.0%} of the audio that its header promises is missing"
    elif apart and mixed <= _LEAST_MIXED**2 * apart:
        lost = 1 - math.sqrt(mixed / apart)
        problem = f"channels out of phase: {lost:.0%} of the sound cancels when they are mixed; turn one channel around"
    elif high - low <= _SILENCE:
        problem = "silent"
    elif duration < _SHORTEST_S:
        problem = f"too short ({duration:.3f} s)"
    return AudioFacts(rate, duration, problem, problem is None and full_scale > _CLIPPED_SHARE * samples)


def decode_audio(data: bytes, *, name: str, sampling_rate: int = 16_000) -> NDArray[np.float32]:
    """Decode a clip to mono float32 in [-1, 1] at `sampling_rate` samples per second.

    Channels are averaged; resampling is polyphase (`scipy.signal.resample_poly`), so a clip of n samples at rate r has
    ceil(n · sampling_rate / r) samples. Silence decodes; the caller decides whether it is usable. MediaError if the
    clip is not audio, is damaged, has no samples, or has samples that are not finite.
    """
    if sampling_rate < 1:
        raise UsageError(f"`sampling_rate` must be at least 1, got {sampling_rate}; 16000 suits speech")
    try:
        with _open_audio(data) as (_, sound):
            samples, rate = sound.read(dtype="float32", always_2d=True), sound.samplerate
    except MediaError as error:
        raise MediaError(f"{name}: {error}") from error
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
def _open_audio(data: bytes) -> Iterator[tuple[bytes, soundfile.SoundFile]]:
    """Yield the bytes of a clip in a container that libsndfile reads, and the clip; MediaError for anything else."""
    data = _read_container(data)
    if not data:
        raise MediaError("empty file (0 bytes)")
    if is_lfs_pointer(data):
        raise MediaError("a git-lfs pointer instead of audio; run `git lfs pull` in the corpus")
    if container_of(data) is None:
        cure = "install ffmpeg, or convert it to one" if _name_container(data) else "convert it to one"
        raise MediaError(f"not wav, flac, ogg or mp3 (begins with {data[:8].hex(' ')}); {cure}")
    with audio_file(data) as descriptor:
        try:
            sound = soundfile.SoundFile(descriptor, closefd=False)
        except (RuntimeError, OSError) as error:
            raise MediaError(f"unreadable: {_words(error)}") from error
        with sound:
            yield data, sound


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
    if data[:4] in (b"fLaC", b"OggS"):
        return data[:4].decode().lower().removesuffix("s")
    # Without a tag, an MPEG frame begins with 11 bits set, and no field of its header has a reserved value.
    a, b, c = data[:3] if len(data) > 3 else (0, 0, 0)
    frame = a == 0xFF and b & 0xE0 == 0xE0 and b & 0x18 != 0x08 and b & 0x06 and c & 0xF0 != 0xF0 and c & 0x0C != 0x0C
    return "mp3" if data[:3] == b"ID3" or frame else None


def _name_container(data: bytes) -> str | None:
    """Return ffmpeg's name of another container of sound, by its first bytes; None for anything else."""
    return next((name for place, mark, name in _CONTAINERS if data[place : place + len(mark)] == mark), None)


def _read_container(data: bytes) -> bytes:
    """Return a clip of another container as WAV, decoded by ffmpeg; unchanged if that cannot be done.

    ffmpeg receives the format and may read nothing but this file: a playlist could name others.
    """
    container, program = _name_container(data), shutil.which("ffmpeg")
    if container is None or program is None:
        return data
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = [program, "-v", "error", "-protocol_whitelist", "file,pipe", "-f", container, "-i", file.name]
        command += ["-vn", "-c:a", "pcm_s16le", "-f", "wav", "pipe:1"]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 and done.stdout else data


def _missing_share(data: bytes, kind: str, promised: int, decoded: int) -> float:
    """Return the share of a clip that its header promises and the bytes lack; 0 when unknown, as for mp3 and ogg."""
    if kind.startswith("WAV") and data[:4] == b"RIFF":
        position = 12
        while data[position : position + 4] not in (b"data", b""):
            size = int.from_bytes(data[position + 4 : position + 8], "little")
            position += 8 + size + size % 2
        promised, decoded = int.from_bytes(data[position + 4 : position + 8], "little"), len(data) - position - 8
    elif kind != "FLAC":
        return 0.0
    return 1 - decoded / promised if 0 < decoded < promised < _UNKNOWN_LENGTH else 0.0


def _words(error: Exception) -> str:
    """Return libsndfile's reason on one line, without the Python object that it mentions."""
    reason = getattr(error, "error_string", None) or str(error)
    return " ".join(str(reason).split()).rstrip(".") or type(error).__name__


def silent_wav(seconds: float) -> bytes:
    """Return a WAV file of silence, mono, 16,000 Hz, 32-bit float; at least one sample."""
    samples = np.zeros(max(1, round(seconds * 16_000)), dtype=np.float32)
    return encode_audio(samples, sampling_rate=16_000, container="WAV", subtype="FLOAT")


def compact_audio(data: bytes, *, name: str) -> bytes:
    """Return a clip as a small ogg file, mono, for a page and no model; MediaError as in `decode_audio`."""
    return encode_audio(decode_audio(data, name=name), sampling_rate=16_000, container="OGG", subtype="VORBIS")


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

    MediaError for an image that is empty, damaged, cut short, or has more than `LARGEST_IMAGE_PIXELS` pixels;
    UsageError without Pillow.
    """
    try:
        from PIL import Image, ImageOps
    except ModuleNotFoundError:
        how = 'install it in a checkout of equivox: `pip install -c constraints.txt ".[images]"`'
        raise UsageError(f"images need Pillow; {how}") from None
    try:
        if not data:
            raise MediaError("empty (0 bytes)")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit below is stricter
            image = Image.open(io.BytesIO(data))
        with image:
            if image.width * image.height > LARGEST_IMAGE_PIXELS:
                size = f"{image.width} x {image.height} pixels"
                raise MediaError(f"{size}, more than {LARGEST_IMAGE_PIXELS:,}; scale it down")
            image.load()
            turned, transparent = image.getexif().get(_ORIENTATION, 1) != 1, image.has_transparency_data
            sent = ImageOps.exif_transpose(image) if turned else image
            if transparent:
                sent = Image.alpha_composite(Image.new("RGBA", sent.size, "white"), sent.convert("RGBA"))
            if not blank and all(low == high for low, high in np.reshape(sent.getextrema(), (-1, 2))):
                raise MediaError("blank (a single colour)")
            if image.format in ("PNG", "JPEG", "WEBP") and not turned and not transparent:
                return data, f"image/{image.format.lower()}"
            kind, buffer = "JPEG" if image.format in ("JPEG", "MPO") else "PNG", io.BytesIO()
            sent.convert("RGB").save(buffer, format=kind, quality=95, subsampling=0)  # a PNG has neither setting
            return buffer.getvalue(), f"image/{kind.lower()}"
    except MediaError as error:
        raise MediaError(f"{name}: {error}") from error
    except Exception as error:  # Pillow's plug-ins raise many kinds on damaged files
        raise MediaError(f"{name}: not a readable image: {_words(error)}") from error
