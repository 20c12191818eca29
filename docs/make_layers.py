"""Draw `docs/layers.svg` from the contract of layers in `pyproject.toml`: `python docs/make_layers.py`.

The picture and the contract cannot disagree: a test compares the committed file with what this script draws.
"""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "layers.svg"

SAYS = {
    "cli": "commands; each calls one function below",
    "api": "measure, open_run, load_task, list_tasks",
    "integrations": "the Hub, lighteval, flat results: other projects' formats",
    "report": "tables, figures, pages; renders results, computes none",
    "labels": "labels from people: sheet, agreement, correction",
    "compare": "paired tests, ranks, agreement of annotators, gate",
    "tasks": "declarations, and the registry of all tasks",
    "run": "plan, generate, annotate, score; store, manifest, resume",
    "metrics": "one folder and one METRIC object each",
    "annotate": "from a response to attributes: rules, models, tools",
    "engines": "vLLM, endpoint, transformers, simulated; the pool",
    "dataset_builders": "corpora: raw distribution to parquet",
    "configs": "models, annotators, vocabularies as YAML",
    "statistics": "tests, intervals, distances; pure numpy",
    "core": "Task, Request, Response, Samples, Metric, Score, errors; no I/O",
}
"""The contents of each room."""

WIDTH, ROW, GAP, TOP, LEFT = 760, 44, 8, 58, 20


def layers() -> list[list[str]]:
    """Return the rooms of each layer, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract["type"] == "layers")
    return [[room.strip().removeprefix("equivox.") for room in layer.split("|")] for layer in contract["layers"]]


def draw() -> str:
    """Return the picture."""
    rows = layers()
    height = TOP + len(rows) * (ROW + GAP) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d" '
        'font-family="system-ui, sans-serif">',
        '<title id="t">The layers of equivox</title>',
        f'<desc id="d">{escape("; ".join(" and ".join(rooms) for rooms in rows))}, from top to bottom. '
        "A room imports only rooms of layers below it.</desc>",
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#f7f9fb"/>',
        f'<text x="{LEFT}" y="34" font-size="14" font-weight="600" fill="#17324a">'
        "A room imports only rooms below it</text>",
    ]
    for number, rooms in enumerate(rows):
        y = TOP + number * (ROW + GAP)
        width = (WIDTH - 2 * LEFT - GAP * (len(rooms) - 1)) / len(rooms)
        for place, room in enumerate(rooms):
            x = LEFT + place * (width + GAP)
            lines += [
                f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{ROW}" rx="8" fill="#fff" stroke="#2f6f9f"/>',
                f'<text x="{x + 12:g}" y="{y + 18}" font-size="12.5" font-weight="600" fill="#17324a">{room}</text>',
                f'<text x="{x + 12:g}" y="{y + 35}" font-size="11.5" fill="#44586a">{escape(SAYS[room])}</text>',
            ]
    lines += [
        f'<text x="{LEFT}" y="{height - 14}" font-size="11.5" fill="#44586a">'
        "Rooms side by side do not import each other. tasks, metrics, dataset_builders and configs are content.</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
