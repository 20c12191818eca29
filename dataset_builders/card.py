"""The data card of a built corpus: the README.md that the Hugging Face Hub and `datasets` read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from equivox.core.lazy import datasets
from equivox.dataset_builders.base import CorpusFacts
from equivox.dataset_builders.schema import COMMON, COMMON_IMAGE

_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M"}


def card(facts: CorpusFacts, record: Mapping[str, Any], columns: datasets.Features) -> str:
    """Return the card as Markdown with a YAML header, from the corpus's facts and the record of the build."""
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
