from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.media import (
    MediaError,
    checked_image,
    container_of,
    decode_audio,
    encode_audio,
    inspect_audio,
    inspect_image,
    sha256,
)


def encode(samples: np.ndarray, rate: int = 16_000, *, kind: str = "WAV", subtype: str | None = None) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def tone(seconds: float = 0.5, *, rate: int = 16_000, pitch: float = 440.0, peak: float = 0.5) -> np.ndarray:
    return peak * np.sin(2 * np.pi * pitch * np.arange(round(seconds * rate)) / rate)


@pytest.mark.parametrize(
    ("kind", "subtype", "container"),
    [
        ("WAV", "PCM_16", "wav"),
        ("WAV", "FLOAT", "wav"),
        ("WAVEX", "PCM_24", "wav"),
        ("FLAC", "PCM_16", "flac"),
        ("OGG", "VORBIS", "ogg"),
        ("MP3", "MPEG_LAYER_III", "mp3"),
    ],
)
def test_the_format_is_found_in_the_bytes(kind: str, subtype: str, container: str) -> None:
    data = encode(tone(), kind=kind, subtype=subtype)
    facts = inspect_audio(data)
    assert (container_of(data), facts.sampling_rate, facts.problem) == (container, 16_000, None)
    assert facts.duration_s == pytest.approx(0.5, abs=0.15 if kind == "MP3" else 1e-9)  # mp3 pads whole frames
    decoded = decode_audio(data, name="misleading.wav")
    assert decoded.dtype == np.float32
    assert len(decoded) == round(facts.duration_s * 16_000)


@pytest.mark.parametrize("mark", [b"\0\0\0\x1cftypM4A ", b"\x1aE\xdf\xa3", b"#!AMR", b"0&\xb2u", b"\xff\xf1"])
def test_ffmpeg_decodes_other_containers_and_no_playlist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: bytes
) -> None:
    (tmp_path / "sound.wav").write_bytes(encode(tone()))
    program = tmp_path / "ffmpeg"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/options\n/bin/cat {tmp_path}/sound.wav\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert inspect_audio(mark + b"rest").duration_s == 0.5
    assert len(decode_audio(mark + b"rest", name="a.m4a")) == 8000
    assert "-protocol_whitelist file,pipe -f " in (tmp_path / "options").read_text()
    program.unlink()
    assert "install ffmpeg" in str(inspect_audio(mark + b"rest").problem)


@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "FLOAT"), ("OGG", "VORBIS")])
def test_no_interrupt_is_lost_because_libsndfile_calls_no_python(kind: str, subtype: str) -> None:
    called: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        # soundfile's callbacks, in which Python drops what a signal handler raises
        if event == "call" and frame.f_code.co_name.startswith("vio_"):
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        data = encode_audio(tone(), sampling_rate=16_000, container=kind, subtype=subtype)
        decode_audio(data, name="clip")
        inspect_audio(data)
        assert called == []
        soundfile.read(io.BytesIO(data))
        assert "vio_read" in called
    finally:
        sys.setprofile(None)


def promise(data: bytes, size: int) -> bytes:
    """Return a WAV file whose header states another number of bytes."""
    return data[:40] + size.to_bytes(4, "little") + data[44:]


NOISE = encode(np.random.default_rng(0).uniform(-0.5, 0.5, 32_000), kind="FLAC")
CLIPS = [
    (b"", "empty file"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12\n", "git lfs pull"),
    (b"<html>404 not found</html>", "not wav, flac, ogg or mp3"),
    (b"RIFF\x24\x00\x00\x00WAVEgarbage that is no chunk", "unreadable"),
    (b"OggS" + bytes(200), "unreadable"),
    (b"fLaC" + b"\xff" * 200, "unreadable"),
    (b"\xff\xfb\x90\x00" + b"\x01\x02" * 300, ""),
    (encode(np.zeros(0)), r"empty \(0 samples\)"),
    (encode(np.zeros(16_000)), "silent"),
    (encode(np.full(16_000, 0.25)), "silent"),  # a constant is no sound
    (encode(np.stack([tone(), -tone()], axis=1)), "100% of the sound cancels"),
    (encode(np.stack([tone(), -0.9 * tone()], axis=1)), "95% of the sound cancels"),
    *((encode(np.stack([tone(), share * tone()], axis=1)), None) for share in (-0.8, -0.5, 0.0, 1.0)),
    (b"\0\0\0\x1cftypM4A ", "install ffmpeg, or convert it"),
    (encode(np.where(np.arange(8000) == 7, np.nan, tone()), subtype="FLOAT"), "not finite"),
    (encode(np.where(np.arange(8000) == 7, np.inf, tone()), subtype="FLOAT"), "not finite"),
    (encode(np.array([[np.inf, -np.inf], [0.1, 0.2]] * 4000), subtype="FLOAT"), "not finite"),
    (encode(tone(0.01)), r"too short \(0.010 s\)"),
    (encode(tone(2.0))[:32_044], "cut short: 50%"),  # 64,044 bytes: 44 of header, half of 64,000
    (NOISE, None),
    (NOISE[: len(NOISE) // 2], "cut short|unreadable"),
    (promise(encode(tone()), 0xFFFFFFFF), None),  # written to a pipe
    # Some encoders count the header's 44 bytes; 32,000 bytes are a second, and 1,600 are the shortest clip.
    *((promise(encode(tone(2.0)), 64_000 + more), None) for more in (2, 44, 1_500)),
    *((promise(encode(tone(2.0)), 64_000 + more), "cut short") for more in (1_700, 64_000)),
    (encode(np.clip(tone(peak=3.0), -1, 1)), None),
]


@pytest.mark.parametrize(("data", "words"), CLIPS)
def test_a_clip_that_is_not_usable_says_why(data: bytes, words: str | None) -> None:
    problem = inspect_audio(data).problem
    assert (problem is None) == (words is None)
    assert problem is None or (re.search(words or "", problem) and "\n" not in problem)


def test_loud_clips_are_flagged() -> None:
    assert inspect_audio(encode(np.clip(tone(peak=3.0), -1, 1))).clipped
    assert not inspect_audio(encode(tone(peak=0.99))).clipped


def test_stereo_at_another_rate_becomes_mono_at_16_khz() -> None:
    # One channel has a 440 Hz tone of peak 0.5, the other is silent: mono has the tone at 0.25.
    left = tone(1.0, rate=44_100)
    decoded = decode_audio(encode(np.stack([left, 0 * left], axis=1), 44_100), name="a.wav")
    assert decoded.shape == (16_000,)
    assert np.abs(decoded[1000:-1000] - tone(1.0, peak=0.25)[1000:-1000]).max() < 2e-3


def test_no_resampling_leaves_the_samples_as_they_are() -> None:
    samples = np.round(tone() * 32_768) / 32_768
    assert np.array_equal(decode_audio(encode(samples), name="a.wav"), samples.astype(np.float32))
    assert len(decode_audio(encode(samples), name="a.wav", sampling_rate=8000)) == 4000


@pytest.mark.parametrize(
    "data", [b"", b"not audio", encode(np.zeros(0)), encode(np.array([np.nan, 0.1] * 800), subtype="FLOAT")]
)
def test_decoding_names_the_clip_that_it_cannot_read(data: bytes) -> None:
    with pytest.raises(MediaError, match=r"broken\.wav: ") as raised:
        decode_audio(data, name="broken.wav")
    assert isinstance(raised.value, EquivoxError)


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="sampling_rate"):
        decode_audio(encode(tone()), name="a.wav", sampling_rate=0)


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'soundfile', 'datasets', 'pyarrow', 'yaml'}"
    code = f"import sys, equivox.core.media, equivox.dataset_builders; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.paper
def test_the_published_spoken_stereoset_clips_decode(reference_data: Path) -> None:
    """24 clips as distributed; 9 of the 14 on age are MP3 data in files named .wav."""
    folder = reference_data / "spoken_stereoset" / "sample"
    rows = list(csv.DictReader((folder / "manifest.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 24
    for row in rows:
        data = (folder / "speech" / row["domain"] / row["file"]).read_bytes()
        facts = inspect_audio(data)
        assert facts.problem is None
        assert container_of(data) == row["codec"].split()[0]
        assert facts.sampling_rate == int(row["sample_rate"])
        assert facts.duration_s == pytest.approx(float(row["duration_s"]), abs=5e-5)  # four decimals
        assert sha256(data) == row["sha256"]
        assert len(decode_audio(data, name=row["file"])) == pytest.approx(facts.duration_s * 16_000, abs=1)
    assert sum(row["codec"].startswith("mp3") for row in rows) == 9


def make_photograph(kind: str, orientation: int) -> bytes:
    """A grey picture of 40 x 20 pixels with a red bar at its left, with a tag that says how to turn it."""
    picture = Image.new("RGB", (40, 20), (200, 200, 200))
    picture.paste((220, 0, 0), (0, 0, 8, 20))
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    more = {"save_all": True, "append_images": [picture.resize((20, 10))]} if kind == "MPO" else {}
    picture.save(buffer, kind, exif=exif.tobytes(), **more)  # type: ignore[arg-type]
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "MPO", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "size", "red"),  # the middle of the side where the bar belongs, by the definition of the tag
    [(1, (40, 20), (2, 10)), (3, (40, 20), (37, 10)), (6, (20, 40), (10, 2)), (8, (20, 40), (10, 37))],
)
def test_a_photograph_is_sent_upright(kind: str, orientation: int, size: tuple[int, int], red: tuple[int, int]) -> None:
    """Servers ignore the tag, and photographs of phones hold a second picture: one group's lay on the side."""
    data, mime = checked_image(make_photograph(kind, orientation), name="a")
    sent = Image.open(io.BytesIO(data))
    assert (sent.size, sent.getexif().get(0x0112, 1)) == (size, 1)
    assert mime == (
        "image/jpeg" if kind in ("JPEG", "MPO") else "image/png" if orientation > 1 else f"image/{kind.lower()}"
    )
    pixel = sent.convert("RGB").getpixel(red)
    assert isinstance(pixel, tuple) and pixel[0] > 180 and pixel[1] < 60


def encoded(picture: Image.Image, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind)
    return buffer.getvalue()


def test_transparent_pixels_are_put_on_white() -> None:
    picture = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    picture.putpixel((5, 5), (0, 0, 0, 255))
    data, mime = checked_image(encoded(picture), name="a")
    sent = Image.open(io.BytesIO(data)).convert("RGB")
    assert (mime, sent.getpixel((0, 0)), sent.getpixel((5, 5))) == ("image/png", (255, 255, 255), (0, 0, 0))


def dotted(picture: Image.Image, color: Any) -> Image.Image:
    picture.putpixel((3, 3), color)
    return picture


BLACK, BLANK = Image.new("RGB", (8, 8), "black"), "blank (a single colour)"
SILHOUETTE = np.where(np.arange(256).reshape(8, 8, 4) % 32 == 19, 255, 0).astype(np.uint8)  # in the fourth channel
DEEP = np.arange(64, dtype=np.uint16).reshape(8, 8) * 500 + 1000  # eight bits cut these greys to white
PICTURES = [
    (b"", "empty file (0 bytes)"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "a git-lfs pointer instead of an image"),
    (b"GIF89a and more", "not PNG, JPEG or WebP (begins with 47 49 46 38 39 61 20 61)"),
    (encoded(BLACK, "JPEG")[:400], "not a readable image"),
    *((encoded(BLACK, kind), BLANK) for kind in ("PNG", "JPEG", "WEBP")),
    *((encoded(dotted(BLACK.resize((64, 48)), (255, 255, 255)), kind), None) for kind in ("PNG", "JPEG", "WEBP")),
    (encoded(dotted(Image.new("RGBA", (8, 8), (255, 255, 255, 0)), (255, 255, 255, 255))), BLANK),  # white on white
    (encoded(Image.fromarray(np.full((8, 8, 4), 7, np.uint8))), BLANK),
    (encoded(Image.fromarray(np.full((8, 8), 1000, np.uint16))), BLANK),
    (encoded(Image.fromarray(SILHOUETTE)), None),
    (encoded(Image.fromarray(DEEP)), None),
]


@pytest.mark.parametrize(("data", "words"), PICTURES)
def test_a_picture_that_shows_nobody_says_why(data: bytes, words: str | None) -> None:
    problem = inspect_image(data, name="a")
    assert problem is None if words is None else str(problem).startswith(words)
    if words == BLANK:
        checked_image(data, name="a")  # people look at it
