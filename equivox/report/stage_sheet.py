"""Blind sheets of one stage of an annotation: what the annotator saw there, without its answer, group or model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.annotate.model import prompt_text
from equivox.core.errors import RequestError
from equivox.core.samples import Row, Samples
from equivox.core.segments import Segment
from equivox.core.task import Task, digest
from equivox.core.variants import SHUFFLED
from equivox.report.blind_sheet import Drawn, draw
from equivox.run.annotating import stored_texts
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import run_tasks
from equivox.run.stages import SEEN, check_stage, questions_at, segments_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STATUS = "status."


def draw_sheet(
    folders: Sequence[Path],
    stage: str | None,
    *,
    n: int,
    per: Sequence[str],
    seed: int = 0,
    annotator: str | None = None,
    judge: bool = False,
) -> list[Drawn]:
    """Return responses as `draw` does, or what the annotator saw at a stage as `draw_stage` does."""
    if stage is not None:
        return draw_stage(folders, stage, n=n, per=per, seed=seed, annotator=annotator, judge=judge)
    if judge:
        raise RequestError("`--judge` is about one stage of an annotation; give `--stage`, or leave it out")
    return draw(folders, n=n, per=per, seed=seed, annotator=annotator)


def draw_stage(
    folders: Sequence[Path],
    stage: str,
    *,
    n: int,
    per: Sequence[str],
    seed: int = 0,
    annotator: str | None = None,
    judge: bool = False,
) -> list[Drawn]:
    """Return what the annotator saw at a stage for `n` responses of every combination of `per`, in random order.

    A response with several segments at the stage, such as two profiles, is there once for each. Of questions about
    findings `n` are drawn for every run, whatever `per` says: they belong to no response. With `judge` the annotator's
    lists stand below, and people are asked for their precision and recall. RequestError for an unknown stage, if the
    annotator answered nothing there, and for `judge` where it gave no lists.
    """
    drawn: list[Drawn] = []
    of_responses: list[Path] = []
    for folder in folders:
        tasks = [task for task in run_tasks(folder) if task.condition != SHUFFLED]
        check_stage(stage, tasks, folder)
        if any(stage in task.annotation.stages() for task in tasks):
            of_responses.append(folder)
        if any(stage in task.metric.follow_up_stages for task in tasks):
            drawn += _questions(folder, tasks, stage, n, seed, annotator)
    if of_responses:
        among = partial(_having, stage)
        responses = draw(of_responses, n=n, per=per, seed=seed, annotator=annotator, among=among)
        for folder in of_responses:
            own = [one for one in responses if one.run == folder]
            texts = stored_texts(folder, [one.row.key for one in own])
            for one in own:
                for segment in segments_at(one.task, one.row, texts[one.row.key] or "", stage):
                    item = digest([seed, "item", one.item, segment.name])[:12]
                    at = replace(one, item=item, text=prompt_text(segment), segment=segment, stage=stage)
                    drawn.append(_judged(at, segment) if judge else at)
    if judge:
        drawn = [one for one in drawn if one.judged]
        if not drawn:
            raise RequestError(f"the annotator gives no lists at the stage {stage!r}, so leave `--judge` out")
    if not drawn:
        raise RequestError(
            f"the annotator answered nothing at the stage {stage!r} of {', '.join(map(str, folders))}; name another "
            "stage or `--annotator`"
        )
    return sorted(drawn, key=lambda one: one.item)


def _judged(one: Drawn, segment: Segment) -> Drawn:
    """Return a text with the annotator's lists below it; unchanged if there are none that could be read."""
    answer = one.row.segments[segment.name]
    lists = [attribute for attribute in segment.attributes if attribute.is_list]
    if answer.status != "parsed" or not lists:
        return one
    listed = [f"- {a.name} ({a.asks}): {'; '.join(answer.values.get(a.name, ())) or 'nothing'}" for a in lists]
    return replace(one, text="\n".join([one.text, "", "What was listed:", *listed]), judged=True)


def _having(stage: str, task: Task, samples: Samples) -> NDArray[np.bool_]:
    """Return which samples of a task have a segment at the stage that the annotator answered about."""
    import numpy as np

    found = np.zeros(len(samples), dtype=bool)
    if stage in task.annotation.stages():
        for column in samples.columns:
            name = column.removeprefix(_STATUS)
            if column != name and task.annotation.stage_of(name) == stage:
                found |= samples.has_status(*SEEN, segment=name)
    return found


def _questions(
    folder: Path, tasks: Sequence[Task], stage: str, n: int, seed: int, annotator: str | None
) -> list[Drawn]:
    manifest = read_manifest(folder)["command"]
    asked = questions_at(folder, tasks, annotator or str(manifest["annotator"]), stage)
    model = str(manifest["model"])
    found = {
        digest([seed, "item", model, str(folder), segment.digest])[:12]: (task, segment) for task, segment, _ in asked
    }
    chosen = sorted(found.items(), key=lambda entry: digest([seed, "draw", entry[0]]))[:n]
    nobody = Row(group="", cluster="", stratum="", status="parsed")
    return [
        Drawn(item, folder, model, task, nobody, prompt_text(segment), len(found) / len(chosen), segment, stage)
        for item, (task, segment) in chosen
    ]
