"""Single answers on the page: pairs that show a difference, one answer of either group."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from equivox.compare.runs import ComparedRun
from equivox.core.lazy import np
from equivox.report.findings import TaskVerdict, list_verdicts
from equivox.report.page.document import name_groups
from equivox.report.view.answers import UNREAD, Answers, RunTables
from equivox.report.view.media import Corpora, read_medium

Pair = list[dict[str, Any]]


def find_examples(runs: Sequence[ComparedRun], wanted: int, data: str | None) -> dict[tuple[str, str], list[Pair]]:
    """Return `wanted` pairs of answers for each difference, by model and task, with their recordings or pictures.

    `data` is where the corpora are now. UsageError where a recording or picture is not there.
    """
    corpora: Corpora = {}
    examples: dict[tuple[str, str], list[Pair]] = {}
    for run in runs:
        tables = RunTables.read(run.folder, run.annotator)
        for verdict in list_verdicts(run):
            if verdict.outcome == "difference" and verdict.declared is not None:
                answers = Answers.read(tables, verdict.declared)
                examples[run.model, verdict.score.task] = pairs = find_pairs(verdict, answers, wanted)
                for one in (one for pair in pairs for one in pair):
                    media = [read_medium(answers, one["row"], n, data, corpora) for n in range(len(one["media"]))]
                    one["sources"] = [f"data:{kind};base64,{base64.b64encode(part).decode()}" for part, kind in media]
    return examples


def find_pairs(verdict: TaskVerdict, answers: Answers, wanted: int) -> list[Pair]:
    """Return pairs of answers in which the group that gets more of something has it, and the other does not.

    For a mean, any pair that could be read is returned. [] where no pair shows it.
    """
    if not verdict.rates:
        return []
    rate, names = verdict.rates[0], name_groups(verdict)
    groups = [names.get(group, group) for group in (rate.groups[0], rate.groups[-1])]
    most, least = (answers.match(group=group) for group in groups)
    has = lacks = answers.match(status="parsed")
    if verdict.kind in ("choice", "open"):
        has = answers.match(values=list_wordings(verdict.run, rate.name))
        lacks = lacks & ~has
    elif verdict.kind in ("refusal", "loss"):
        has = answers.match(status=UNREAD)
    pairs = np.intersect1d(answers.pairs[has & most], answers.pairs[lacks & least])[:wanted]
    return [[one for one in pair if one["group"] in groups] for pair in answers.describe(pairs.tolist())]


def list_wordings(run: ComparedRun, value: str) -> set[str]:
    """Return the wordings that count as a value, itself among them."""
    return {value, *(word for (_, name), words in run.wordings.items() if name == value for word in words)}
