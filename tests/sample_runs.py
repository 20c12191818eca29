"""Runs of simulated models on the embedded sample, for tests of what comes after a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equivox import measure


def sample_run(folder: Path, model: str, tasks: str, n_resamples: int = 99, **settings: Any) -> Path:
    """Make the run of `simulated:MODEL` in `folder`, which is returned."""
    options = f"n_resamples={n_resamples}"
    measure(f"simulated:{model}", tasks, output=folder, data="sample", options=options, **settings)
    return folder


def sample_runs(
    folder: Path, models: Mapping[str, str], tasks: str, n_resamples: int = 99, **settings: Any
) -> dict[str, Path]:
    """Make a run of each model below `folder`; return their folders by name."""
    return {name: sample_run(folder / name, model, tasks, n_resamples, **settings) for name, model in models.items()}
