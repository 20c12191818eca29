"""`equivox cohort`: total bias scores of GENRES, which only exist relative to a cohort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path


def cohort(folders: Sequence[Path], published: str | None, family: str | None) -> int:
    """Print the total bias score of every member of the cohort; 1 when a run has none."""
    from rich.table import Table

    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.cli.show import console
    from equivox.core.errors import RequestError
    from equivox.metrics.genres.cohort import METRICS, published_cohort, total_bias
    from equivox.metrics.genres.scorer import READ_BY_STAND_INS
    from equivox.report.numbers import score_value

    runs: dict[str, dict[str, float]] = {}
    makeshift: dict[str, bool] = {}
    for folder in folders:
        name, values, by_stand_ins = _model(folder, family)
        if name in runs:
            raise RequestError(f"two runs are of {name}; a cohort holds each model once")
        runs[name], makeshift[name] = values, by_stand_ins
    found = total_bias(runs, published=published)
    out = console()
    table = Table(title=f"Total bias score; cohort: {found.cohort}", title_justify="left", box=None, pad_edge=False)
    for column in ("model", *METRICS, "TBS"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, values in {**(published_cohort(published) if published else {}), **runs}.items():
        signed = [score_value(values.get(metric, math.nan), "") for metric in METRICS]
        table.add_row(name, *signed, score_value(found.total[name], ""))
    out.print(table)
    reasons = {name: reason for name, reason in found.undefined.items() if name in runs}
    for name, reason in reasons.items():
        out.print(f"  no score for {name}: {reason}", style="yellow", markup=False)
    if made_up := [name for name, by_stand_ins in makeshift.items() if by_stand_ins]:
        out.print(
            f"  {READ_BY_STAND_INS}, comparable with nothing else: {', '.join(made_up)}", style="yellow", markup=False
        )
    out.print(
        "TBS: over M1 to M8, the distances from the cohort's means in its standard deviations, added up; 0 is typical, "
        "which is not unbiased.",
        style="dim",
    )
    return EXIT_INCOMPLETE if reasons else EXIT_DONE


def _model(folder: Path, family: str | None) -> tuple[str, dict[str, float], bool]:
    """Return the model of a run, its M1 to M8 over all relationships, and whether stand-ins read them."""
    from equivox.core.errors import RequestError
    from equivox.metrics.genres.cohort import METRICS
    from equivox.metrics.genres.scorer import READ_BY_STAND_INS
    from equivox.run.manifest import read_manifest
    from equivox.run.scoring import read_scores

    scores = [score for score in read_scores(folder) if score.name in METRICS and score.is_whole]
    families = list(dict.fromkeys(score.task for score in scores if ":" not in score.task))
    chosen = [name for name in families if family in {None, name}]
    if len(chosen) != 1:
        known = f"it has {', '.join(families)}: name one with `--family`" if families else "run all four of its tasks"
        raise RequestError(f"{folder} has not one family of GENRES over all relationships; {known}")
    model = str(read_manifest(folder)["command"]["model"])
    own = [score for score in scores if score.task == chosen[0]]
    by_stand_ins = any(note.startswith(READ_BY_STAND_INS) for score in own for note in score.notes)
    return model, {score.name: score.value for score in own}, by_stand_ins
