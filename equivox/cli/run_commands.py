"""The commands about one stored run: score, annotate, status; nothing heavy is imported at start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import (
    DetailsOption,
    ExplainOption,
    QuietOption,
    RayAddressOption,
    RedoJudgeOption,
    RunArgument,
    ScoringOption,
    WorkersOption,
    names_in,
)
from equivox.cli.output import show_explanation, show_tables
from equivox.core.errors import UsageError
from equivox.core.requests import Workers
from equivox.core.scores import Score, ScoringOptions
from equivox.core.segments import select_redone
from equivox.core.variants import parse_comparisons
from equivox.report.progress_bars import progress_bars
from equivox.run.spec import scoring_of


def score(
    run: RunArgument,
    annotator: Annotated[
        str | None, typer.Option(help="Score the annotations of this annotator; default: the run's.")
    ] = None,
    use: Annotated[
        str | None,
        typer.Option(metavar="ANNOTATOR", help="Make this annotator the run's judge; all tables then show its scores."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(help="Also compare the stored answers by these columns: accent,gender×accent.")
    ] = None,
    scoring: ScoringOption = None,
    details: DetailsOption = False,
    explain: ExplainOption = None,
    quiet: QuietOption = False,
) -> int:
    """Score a stored run again, without the model."""
    from equivox.run.pipeline import rescore, use_annotator
    from equivox.run.scoring import scored_with

    if explain is not None:
        return show_explanation(explain)
    if use is not None and annotator is not None:
        raise UsageError("`--use` already scores by that annotator; leave out `--annotator`")
    further = () if compare is None else parse_comparisons(compare)
    options = scored_with(run, annotator) if scoring is None else scoring_of(scoring)
    with progress_bars(quiet=quiet) as progress:
        if use is not None:
            scores = use_annotator(run, use, options, progress=progress)
        else:
            scores = rescore(run, annotator=annotator, compare=further, options=options, progress=progress)
    return _show(run, scores, use or annotator, details=details)


def annotate(
    run: RunArgument,
    annotator: Annotated[str | None, typer.Option(help="Name the new judge: a model or a YAML file.")] = None,
    panel: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Combine three or more of the run's annotators by majority."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat failed requests to the judge.")] = False,
    redo_judge: RedoJudgeOption = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Repeat all annotations by this judge.")] = False,
    scoring: ScoringOption = None,
    workers: WorkersOption = 1,
    ray_address: RayAddressOption = None,
    quiet: QuietOption = False,
) -> int:
    """Annotate a run with another judge, score it, and print the agreement."""
    from equivox.annotate import annotator_name
    from equivox.cli.show import show_agreement
    from equivox.run.declarations import read_tasks
    from equivox.run.pipeline import annotate_run
    from equivox.run.scoring import scored_with

    if (annotator is None) == (panel is None):
        raise UsageError("give `--annotator NAME`, or `--panel A,B,C` with annotators that the run has")
    options = scored_with(run) if scoring is None else scoring_of(scoring)
    redo = select_redone(retry_failed=retry_failed, redo_judge=redo_judge, fresh=fresh)
    if panel is not None:
        if redo:
            raise UsageError(
                "`--panel` uses stored annotations; leave out `--fresh`, `--redo-judge` and `--retry-failed`"
            )
        return _panel(run, names_in(panel), options)
    with progress_bars(quiet=quiet) as progress:
        scores = annotate_run(
            run, str(annotator), options,
            redo=redo, workers=Workers(workers, ray_address), progress=progress,
        )  # fmt: skip
    code = _show(run, scores, annotator_name(str(annotator)))
    show_agreement(run, read_tasks(run))
    return code


def _panel(run: Path, members: Sequence[str], options: ScoringOptions) -> int:
    """Score the majority of several annotators, and show what their disagreement changes."""
    from equivox.report.audit_tables import panel_table
    from equivox.run.declarations import read_tasks
    from equivox.run.panel import PANEL, score_panel

    scores, compared = score_panel(run, read_tasks(run), members, options)
    code = _show(run, scores, PANEL)
    show_tables([panel_table(members, compared)])
    return code


def status(run: RunArgument) -> int:
    """Count the finished, missing and failed requests of a run."""
    from equivox.cli.show import show_status
    from equivox.run.declarations import read_tasks

    return show_status(run, read_tasks(run))


def _show(run: Path, scores: Sequence[Score], annotator: str | None, *, details: bool = False) -> int:
    """Show the scores of a stored run by `annotator`, None: its own; return 1 if a task's score is undefined."""
    from equivox.cli.show import show_scores
    from equivox.engines import model_label
    from equivox.run.manifest import read_manifest

    model = model_label(read_manifest(run)["command"]["model"])
    return show_scores([(model, run, scores, annotator)], details=details)
