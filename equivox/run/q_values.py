"""Multiple testing: the q-value of every score, with everything that is shown together as one hierarchy of tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from equivox.core.scores import Score


def with_q(scores: Sequence[Score]) -> list[Score]:
    """Return the scores of one run with `q`, `q_least` and `level`, see `with_common_q`."""
    return with_common_q([scores])[0]


def with_common_q(runs: Sequence[Sequence[Score]]) -> list[list[Score]]:
    """Return the scores of runs that are shown together with `q`, `q_least` and `level` filled in.

    The scores of whole tasks, of all runs, conditions and metrics, are corrected for one another by Holm's method. The
    attributes in a task's mean, and each kind of breakdown of a task, stand below its score: their q is never below its
    q (`equivox.statistics.adjust_hierarchy`). An attribute that no mean contains, such as a refusal, stands beside the
    tasks. A score without a p-value keeps q NaN and counts nowhere.
    """
    from equivox.statistics import adjust_hierarchy

    named = {f"{run}/{place}": score for run, scores in enumerate(runs) for place, score in enumerate(scores)}
    least = {name: score.p_least for name, score in named.items()}
    found = adjust_hierarchy({name: score.p for name, score in named.items()}, _below(named), least=least)
    done = {
        name: replace(score, q=found.q[name], q_least=found.q_least[name], level=found.level[name])
        for name, score in named.items()
    }
    return [[done[f"{run}/{place}"] for place in range(len(scores))] for run, scores in enumerate(runs)]


def _below(named: dict[str, Score]) -> list[tuple[str, list[str]]]:
    """Return the families below the scores of tasks: the attributes of a mean, and each kind of breakdown."""
    wholes = {_task(name, score): name for name, score in named.items() if score.is_whole}
    families: dict[tuple[str, str], list[str]] = {}
    for name, score in named.items():
        first = wholes.get(_task(name, score))
        if first is None or score.is_whole:
            continue
        if score.attribute is None or score.subset or score.attribute in named[first].parts:
            families.setdefault((first, score.subset.partition("=")[0]), []).append(name)
    return [(first, family) for (first, _), family in families.items()]


def _task(name: str, score: Score) -> tuple[str, str, str, str]:
    return name.partition("/")[0], score.task, score.condition, score.name
