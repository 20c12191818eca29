"""Write a corpus as parquet with its audio inside, a data card and a record of the build.

The result is a folder that `datasets.load_dataset` reads without equivox: `train-*.parquet` shards of at most
500 MB, `README.md` (the data card, which the Hugging Face Hub and `datasets` read) and `build.json`.  It is written
under a temporary name in the same parent folder and renamed when it is complete, so an interrupted build or a full disk
leaves the earlier build, or nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from equivox.core.errors import RunError, UsageError
from equivox.core.files import file_hash
from equivox.core.lazy import datasets, pa, pq, soundfile
from equivox.core.media import AudioFacts
from equivox.core.plain import split_by
from equivox.core.progress import Event, Progress, no_progress
from equivox.core.text import listed
from equivox.core.version import __version__
from equivox.dataset_builders.base import Builder, CorpusFacts
from equivox.dataset_builders.schema import COMMON, COMMON_IMAGE, Row, features, rows

SHARD_BYTES = 480_000_000
GROUP_BYTES = 16_000_000
GROUP_ROWS = 256
RECORD = "build.json"
CARD = "README.md"
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M"}


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """The result of a build.

    Attributes
    ----------
    status
        `built`, `rebuilt` (the source had changed) or `up to date` (nothing was written).
    differences
        The differences of the source from published facts.
    problems
        Problem in words by clip id: these rows exist but cannot be used.
    clipped
        The number of clips with more than 1 % of samples at full scale; they are usable.
    """

    status: Literal["built", "rebuilt", "up to date"]
    folder: Path
    rows: int
    files: tuple[str, ...]
    fingerprint: str
    differences: tuple[str, ...]
    problems: Mapping[str, str]
    clipped: int


def build(
    builder: Builder,
    output: Path | str,
    *,
    progress: Progress = no_progress,
    origin: Mapping[str, str] | None = None,
) -> BuildReport:
    """Write a corpus to `<output>/<name>/`, unless an existing build is from the same source.

    Parameters
    ----------
    progress
        Function that is called with (clips done, all clips) after each clip.
    origin
        The origin of the source (a repository and its revision), stored in the record.

    Raises
    ------
    UsageError
        The folder contains files that no build wrote, or cannot be made.
    RunError
        The build could not be finished: a full disk, or a source that changed while it was read.
    """
    folder = Path(output).expanduser() / builder.facts.name
    earlier = read_record(folder)
    fingerprint = builder.fingerprint()
    if earlier is not None and earlier["fingerprint"] == fingerprint and _is_whole(folder, earlier):
        return _report("up to date", folder, earlier)
    try:
        with whole_folder(folder) as partial:
            record = _write(builder, partial, fingerprint, progress, origin or {})
    except OSError as error:
        raise RunError(f"{builder.facts.name} was not built in {folder}: {error}; nothing was changed there") from error
    return _report("built" if earlier is None else "rebuilt", folder, record)


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return the record of an earlier build; None for a folder that is missing or empty.

    UsageError for a folder with files that no build wrote, because a rebuild replaces the whole folder.
    """
    if not folder.exists():
        return None
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else {folder.name}
    record: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    foreign = sorted(names - {RECORD, CARD, *record.get("files", {})})
    if foreign:
        raise UsageError(
            f"{folder} holds files that were not built here ({listed(foreign)}); move them or choose another folder"
        )
    return record or None


def _is_whole(folder: Path, record: Mapping[str, Any]) -> bool:
    sizes = {name: entry["bytes"] for name, entry in record["files"].items()}
    return (folder / CARD).is_file() and all(
        (folder / name).is_file() and (folder / name).stat().st_size == size for name, size in sizes.items()
    )


def _write(
    builder: Builder, folder: Path, fingerprint: str, progress: Progress, origin: Mapping[str, str]
) -> dict[str, Any]:
    clips, digests = builder.clips(), builder.digests
    heard: dict[str, AudioFacts] = {}

    def read() -> Iterator[Row]:
        for row, audio in rows(builder):
            if row[f"{builder.MEDIA}_sha256"] != digests[row["clip_id"]]:
                raise RunError(
                    f"{row[builder.MEDIA]['path']} changed while it was read; let the source rest and build again"
                )
            heard[row["clip_id"]] = audio
            yield row
            progress(Event("clips", len(heard), len(clips)))

    columns = features(builder.facts, builder.MEDIA)
    files, size = write_shards(folder, columns, builder.MEDIA, read())
    by_rate = split_by((clip for clip in heard if heard[clip].sampling_rate), lambda clip: heard[clip].sampling_rate)
    record = {
        "builder": {"name": builder.FACTS.name, "version": builder.facts.version},
        "origin": dict(origin),
        "facts": dataclasses.asdict(builder.facts),
        "fingerprint": fingerprint,
        "rows": len(clips),
        "bytes_in_memory": size,
        "duration_s": round(sum(audio.duration_s for audio in heard.values()), 3),
        "counts": builder.counts(),
        "differences": [*builder.differences(), *_unusual_rates(by_rate)],
        "sampling_rates": {str(rate): len(ids) for rate, ids in sorted(by_rate.items())},
        "oddities": builder.oddities(),
        "problems": {clip: audio.problem for clip, audio in heard.items() if audio.problem is not None},
        "clipped": sum(audio.clipped for audio in heard.values()),
        "files": files,
        "versions": _versions(),
    }
    (folder / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / CARD).write_text(card(builder.facts, record, columns), encoding="utf-8")
    return record


def _unusual_rates(by_rate: Mapping[int, list[str]]) -> list[str]:
    """Return remarks on clips whose sampling rate is not the most common one; they are resampled when they are sent."""
    if len(by_rate) < 2:
        return []
    usual = max(by_rate, key=lambda rate: len(by_rate[rate]))
    return [
        f"clips at {rate:,} Hz instead of {usual:,} Hz (kept): {len(ids):,} ({listed(ids)})"
        for rate, ids in sorted(by_rate.items())
        if rate != usual
    ]


def write_shards(
    folder: Path, columns: datasets.Features, media: str | None, given: Iterable[Row], *, split: str = "train"
) -> tuple[dict[str, dict[str, Any]], int]:
    """Write rows as parquet files of at most about 500 MB, in small row groups, so that memory use is constant.

    `media` is the column with bytes, None if there is none; `split` is the beginning of the files' names. Returns the
    bytes and the SHA-256 of the files by their names, which contain their number, and the bytes of all rows in memory.
    """
    paths: list[Path] = []
    written, total, schema, writer = 0, 0, columns.arrow_schema, None
    try:
        for group, size in _groups(given, media):
            if writer is not None and written + size > SHARD_BYTES:
                writer.close()
                writer = None
            if writer is None:
                paths.append(folder / f"{len(paths)}.part")
                writer, written = pq.ParquetWriter(paths[-1], schema, write_page_index=True), 0
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            written, total = written + size, total + size
    finally:
        if writer is not None:
            writer.close()
    names = [f"{split}-{i:05d}-of-{len(paths):05d}.parquet" for i in range(len(paths))]
    paths = [path.rename(path.with_name(name)) for path, name in zip(paths, names, strict=True)]
    return {path.name: {"bytes": path.stat().st_size, "sha256": file_hash(path)} for path in paths}, total


def _groups(given: Iterable[Row], media: str | None) -> Iterator[tuple[list[Row], int]]:
    """Yield rows that are written together, with about the bytes that they take in memory."""
    group, size = list[Row](), 0
    for row in given:
        group.append(row)
        size += (len(row[media]["bytes"] or b"") if media else 0) + 200
        if size >= GROUP_BYTES or len(group) >= GROUP_ROWS:
            yield group, size
            group, size = [], 0
    if group:
        yield group, size


def _report(status: Literal["built", "rebuilt", "up to date"], folder: Path, record: Mapping[str, Any]) -> BuildReport:
    told = {name: record[name] for name in ("rows", "fingerprint", "problems", "clipped")}
    files, differences = tuple(record["files"]), tuple(record["differences"])
    return BuildReport(status=status, folder=folder, files=files, differences=differences, **told)


def _versions() -> dict[str, str]:
    import pyarrow

    return {
        "equivox": __version__,
        "python": platform.python_version(),
        "datasets": datasets.__version__,
        "pyarrow": pyarrow.__version__,
        "soundfile": soundfile.__version__,
        "libsndfile": soundfile.__libsndfile_version__,
    }


def card(facts: CorpusFacts, record: Mapping[str, Any], columns: datasets.Features) -> str:
    """Return the card as Markdown with a YAML header, from the corpus's facts and the record of the build."""
    import yaml

    head = yaml.safe_dump(header(facts, record, columns), sort_keys=False, allow_unicode=True, width=110)
    return f"---\n{head}---\n\n{_body(facts, record, 'image' if 'image' in columns else 'audio')}"


def header(facts: CorpusFacts, record: Mapping[str, Any], columns: datasets.Features) -> dict[str, Any]:
    """Return the machine-readable part: files, columns, sizes, licence, language."""
    stored = sum(entry["bytes"] for entry in record["files"].values())
    types = [
        {"name": name, "dtype": {name: {"decode": False}} if name in {"audio", "image"} else kind.dtype}
        for name, kind in columns.items()
    ]
    split = {"name": "train", "num_bytes": record["bytes_in_memory"], "num_examples": record["rows"]}
    return {
        "pretty_name": facts.title,
        "license": facts.licence_id,
        **({"language": [facts.language]} if facts.language else {}),
        "task_categories": ["image-text-to-text" if "image" in columns else "audio-text-to-text"],
        "size_categories": [size_category(record["rows"])],
        "tags": [*(["image"] if "image" in columns else ["audio", "speech"]), "bias", "fairness", "equivox"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "train-*.parquet"}]}],
        "dataset_info": {
            "features": types,
            "splits": [split],
            "download_size": stored,
            "dataset_size": record["bytes_in_memory"],
        },
    }


def _body(facts: CorpusFacts, record: Mapping[str, Any], media: str) -> str:
    problems: Mapping[str, str] = record["problems"]
    size = f"{record['rows']:,} images"
    if media == "audio":
        size = f"{record['rows']:,} clips, {record['duration_s'] / 60:,.1f} minutes of audio"
    items = "Clips whose audio" if media == "audio" else "Images that"
    common = COMMON if media == "audio" else COMMON_IMAGE
    about = [
        *about_corpus(facts),
        f"**Size:** {size}",
        f"**Compare:** {', '.join(facts.demographics) or 'no demographic column'}; the label belongs to each "
        f"`{facts.cluster}`; held equal: {', '.join(facts.strata) or 'nothing'}",
    ]
    names = [*facts.published, *(name for name in record["counts"] if name not in facts.published)]
    counted = [
        f"| {name} | {_number(facts.published.get(name))} | {_number(record['counts'].get(name))} |" for name in names
    ]
    unusable = [f"`{clip}`: {problem}" for clip, problem in problems.items()]
    described = {**common, **{c.name: f"{c.meaning} ({c.role})" for c in facts.columns}}
    sections = [
        f"# {facts.title}\n\n" + "\n".join(f"- {line}" for line in about),
        "## Counts\n\n| | published | found |\n|---|---:|---:|\n" + "\n".join(counted),
        "## Differences from what is published\n\n" + _bullets(record["differences"], "None."),
        f"## {items} cannot be used\n\nThey are rows all the same, so that they are counted.\n\n"
        + _bullets(unusable, "None."),
        "## Columns\n\n| column | meaning |\n|---|---|\n"
        + "\n".join(f"| `{name}` | {meaning} |" for name, meaning in described.items()),
        "## What it cannot say\n\n" + _bullets(facts.cannot_say, "Nothing is stated."),
        "## How it was built\n\n"
        + f"By the equivox builder `{record['builder']['name']}`, version {record['builder']['version']}, with "
        + ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        + f".\n\nFingerprint of the source: `{record['fingerprint']}`. The {media} is stored as "
        + "distributed, neither decoded nor changed; `build.json` holds all of this for programs.",
    ]
    return "\n\n".join(sections) + "\n"


def size_category(rows: int) -> str:
    """Return the Hub's category of a number of rows."""
    return next((name for limit, name in _SIZES.items() if rows < limit), "n>1M")


def about_corpus(facts: CorpusFacts) -> list[str]:
    """Return licence, source, paper and citation of a corpus in Markdown, as far as they are stated."""
    return [
        f"**Licence:** {facts.licence}",
        *([f"**Source:** <{facts.homepage}>"] if facts.homepage else []),
        *([f"**Paper:** {facts.paper}" + (f", doi {facts.doi}" if facts.doi else "")] if facts.paper else []),
        *([f"**Cite:** {facts.citation}"] if facts.citation else []),
    ]


def _bullets(lines: Any, nothing: str) -> str:
    lines = list(lines)
    if not lines:
        return nothing
    return "\n".join(f"- {line}" for line in lines[:100]) + (
        f"\n- and {len(lines) - 100:,} more" if len(lines) > 100 else ""
    )


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` in the end; after an error `folder` is as it was.

    What a process left that was killed meanwhile goes away with the next. UsageError if no folder can be made there.
    """
    partial, replaced = (folder.with_name(f".{folder.name}.{what}") for what in ("partial", "replaced"))
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"`output`: cannot write in {folder.parent} ({error.strerror}); choose another") from error
    try:
        yield partial
        if folder.exists():
            folder.rename(replaced)
        partial.rename(folder)
    finally:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        for left in (partial, replaced):
            shutil.rmtree(left, ignore_errors=True)
