"""Public copies of the corpora on the Hub: a pinned snapshot is converted to the original layout, then built.

A copy is declared by a file of `configs/hub`: its corpus, its repository, and the meaning of its columns. Its rows
pass through the same builder as the original distribution, so that oddities are found.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from equivox.configs import config_names, read_config_file
from equivox.core.errors import UsageError, nearest
from equivox.core.lazy import pq
from equivox.dataset_builders.base import normal
from equivox.dataset_builders.l2_arctic import CLIP_NAME

DEMOGRAPHICS = "VideoDemographics.csv"

_PLAIN_NAME = re.compile(r"\w[\w-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NEEDED = {"crema_d": ("audio",), "l2_arctic": ("audio", "text", "speaker", "gender", "accent"), "genres": ()}
_FILES = {"genres": ["*.jsonl", "*.png", "*.jpg", "*.jpeg", "*.webp", "*.md"]}
_BATCH = 64


class HubFile(BaseModel):
    """The fields of a file that declares a copy on the Hub; unknown fields are refused.

    `columns` maps our names to the copy's: `audio` (bytes and path), and, if the corpus needs them, `text`,
    `speaker`, `gender`, `accent` and `file` (the clip's name, if it is not in the audio's path). GENRES needs none,
    because its repository is the original.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    corpus: Literal["crema_d", "l2_arctic", "genres"]
    hf_repo: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    columns: dict[Literal["audio", "text", "speaker", "gender", "accent", "file"], str] = {}
    revision: str | None = None
    split: str | None = None


def open_hub_file(name: str) -> HubFile:
    """Return the copy called `name`: a packaged one, or a YAML file."""
    known = config_names("hub")
    if not name.endswith((".yaml", ".yml")) and name not in known:
        raise UsageError(f"unknown copy {name!r}{nearest(name, known)}; known: {', '.join(known)}, or a .yaml file")
    declared = read_config_file(HubFile, name, "hub")
    missing = [column for column in _NEEDED[declared.corpus] if column not in declared.columns]
    if missing:
        raise UsageError(f"{name}: `columns` lacks {missing[0]!r}, which {declared.corpus} needs")
    return declared


def download(copy: HubFile, revision: str | None) -> Path:
    """Return the folder of a pinned snapshot, downloaded if necessary; HF_HOME and HF_HUB_OFFLINE are honoured.

    UsageError without a full commit hash (a branch can change), and if the Hub refuses the download.
    """
    pinned = revision or copy.revision
    if pinned is None or not _COMMIT.fullmatch(pinned):
        raise UsageError(
            f"`revision` must be a commit of {copy.hf_repo}, 40 hexadecimal digits, got {pinned!r}; its page "
            "huggingface.co/datasets/<repository>/commits/main shows them"
        )
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(
            huggingface_hub.snapshot_download(
                copy.hf_repo,
                repo_type="dataset",
                revision=pinned,
                allow_patterns=_FILES.get(copy.corpus, ["*.parquet", "*.md"]),
            )
        )
    except LocalEntryNotFoundError as error:
        raise UsageError(
            f"{copy.hf_repo} at {pinned[:12]} is not on this machine and could not be downloaded; "
            "name a snapshot with `--source`, or go online (HF_HUB_OFFLINE unset)"
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise UsageError(f"{copy.hf_repo} could not be downloaded: {' '.join(str(error).split())[:200]}") from error


@contextmanager
def original_layout(
    copy: HubFile, snapshot: Path, scratch: Path, *, demographics: Path | None = None
) -> Iterator[Path]:
    """Yield a folder below `scratch` with the rows of a snapshot in the original layout; it is removed afterwards.

    `demographics` is the VideoDemographics.csv that CREMA-D's copies lack. UsageError for missing columns.
    """
    if copy.corpus == "genres":
        yield snapshot
        return
    shards = sorted(
        path for path in snapshot.rglob("*.parquet") if copy.split is None or path.name.startswith(f"{copy.split}-")
    )
    if not shards:
        raise UsageError(f"{snapshot} holds no parquet file; name the folder of a snapshot of {copy.hf_repo}")
    if copy.corpus == "crema_d" and (demographics is None or not demographics.is_file()):
        raise UsageError(
            f"{copy.hf_repo} tells neither sex nor race nor age: give the {DEMOGRAPHICS} of the original distribution "
            "with `--demographics`"
        )
    scratch.mkdir(parents=True, exist_ok=True)
    with (
        _gone_if_empty(scratch),
        tempfile.TemporaryDirectory(prefix=".hub-", dir=scratch, ignore_cleanup_errors=True) as made,
    ):
        folder = Path(made)
        if copy.corpus == "crema_d" and demographics is not None:
            _lay_out_crema_d(copy, shards, folder, demographics)
        else:
            _lay_out_l2_arctic(copy, shards, folder)
        yield folder


@contextmanager
def _gone_if_empty(folder: Path) -> Iterator[None]:
    """Remove a folder in which nothing was written, as for a copy that is refused."""
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def _rows(copy: HubFile, shards: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of all shards with our column names; few rows are in memory at a time."""
    for shard in shards:
        file = pq.ParquetFile(shard)
        has = file.schema_arrow.names
        for ours, theirs in copy.columns.items():
            if theirs not in has:
                raise UsageError(
                    f"{shard.name} of {copy.hf_repo} has no column {theirs!r} for {ours}{nearest(theirs, has)}; "
                    f"it has {', '.join(has)}: give a copy's YAML file with other `columns`"
                )
        for batch in file.iter_batches(batch_size=_BATCH, columns=list(copy.columns.values())):
            for row in batch.to_pylist():
                yield {ours: row[theirs] for ours, theirs in copy.columns.items()}


def _clip(copy: HubFile, row: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the name and the bytes of a row's clip."""
    audio = row["audio"]
    if not isinstance(audio, Mapping) or audio.get("bytes") is None:
        raise UsageError(
            f"the column {copy.columns['audio']!r} of {copy.hf_repo} holds no audio bytes; name the column that does"
        )
    return PurePosixPath(str(row.get("file") or audio.get("path") or "")).name, audio["bytes"]


def _lay_out_crema_d(copy: HubFile, shards: list[Path], folder: Path, demographics: Path) -> None:
    (folder / "AudioWAV").mkdir()
    shutil.copyfile(demographics, folder / DEMOGRAPHICS)
    for extra in ("sentences.csv", "README.md"):
        beside = demographics.parent / extra
        if beside.is_file():
            shutil.copyfile(beside, folder / extra)
    for number, row in enumerate(_rows(copy, shards)):
        name, data = _clip(copy, row)
        _write_new(folder / "AudioWAV" / (name or f"unnamed-{number}.wav"), data, number)


def _lay_out_l2_arctic(copy: HubFile, shards: list[Path], folder: Path) -> None:
    """Write L2-ARCTIC in its original layout; if clips lost their names, equal texts are one sentence."""
    speakers: dict[str, tuple[str, str]] = {}
    names: dict[str, str] = {}
    for number, row in enumerate(_rows(copy, shards)):
        name, data = _clip(copy, row)
        speaker, text = str(row["speaker"]), " ".join(str(row["text"] or "").split())
        if not _PLAIN_NAME.fullmatch(speaker):
            raise UsageError(f"{copy.hf_repo} calls a speaker {speaker!r}; a code of letters and digits is needed")
        speakers[speaker] = (normal(str(row["gender"])) or "", normal(str(row["accent"])) or "")
        stem = PurePosixPath(name).stem
        if CLIP_NAME.fullmatch(stem) is None:
            # The original has no numbers from 9000: such ids are given to texts, in order of first occurrence.
            stem = names.setdefault(text.casefold(), f"arctic_b{9000 + len(names):04d}")
        for part in ("wav", "transcript"):
            (folder / speaker / part).mkdir(parents=True, exist_ok=True)
        suffix = PurePosixPath(name).suffix or ".wav"
        written = _write_new(folder / speaker / "wav" / f"{stem}{suffix}", data, number)
        (folder / speaker / "transcript" / f"{written.stem}.txt").write_text(text, "utf-8")
    table = "\n".join(f"{speaker},{gender},{accent}" for speaker, (gender, accent) in sorted(speakers.items()))
    (folder / "speakers.csv").write_text(f"speaker,gender,accent\n{table}\n", "utf-8")


def _write_new(path: Path, data: bytes, number: int) -> Path:
    """Write a clip; if the name exists, the row's number is added, so that the builder reports it."""
    if path.exists():
        path = path.with_name(f"{path.stem} (row {number}){path.suffix}")
    path.write_bytes(data)
    return path
