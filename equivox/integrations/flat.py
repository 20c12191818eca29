"""One task's scores as a flat dictionary of floats, for leaderboards, result files and other frameworks.

All benchmarks have the same scheme of names. A score of the whole task gives its value under its name (`ntvd`, `slbs`,
`m1`) and each piece of its evidence under that name and the field's (`ntvd_ci_low`); refusals begin with `refusal_`.
`ntvd_cannot_tell` is 1 where the design could not have found anything, so that a large p says nothing, 0 elsewhere, and
NaN without a score. A breakdown that every task of the family has gives only its value (`letter_share_a`,
`m1_arithmetic_published`).
`coverage_requested` to `coverage_used` count the responses behind the first score of the whole task.

Attributes, groups and clusters differ between the tasks of a family and are left out, so that all tasks of one family
have the same keys; `equivox score RUN --details` shows them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from equivox.core.coverage import STAGES
from equivox.core.scores import NAN, Score

EVIDENCE = (
    "estimate",
    "null_mean",
    "attainable_max",
    "ci_low",
    "ci_high",
    "missing_low",
    "missing_high",
    "p",
    "p_published",
    "q",
)
"""The fields of a score that are given in addition to its value, as `equivox.core.scores.Score` defines them. Then
come `coverage`, the share of its requested responses that it uses (0 to 1), and `coverage_least`, that of the group of
which the least is used."""

COMMON_BREAKDOWNS = frozenset({"arithmetic", "letter", "unit", "words"})
"""Kinds of breakdown (the word before `=`) that every task of a family has."""


def flat_metrics(scores: Sequence[Score]) -> dict[str, float]:
    """Return the scores of one task as floats by name; each value comes before its evidence.

    NaN means that a number is undefined (`Score.undefined_reason` has the reason) or that the score has no such field;
    the key exists in both cases. Raises ValueError for no scores, for scores of several tasks, and for two scores of
    one name.

    >>> from equivox.core.coverage import Coverage
    >>> share = Score(task="t:a", condition="audio", dimension="gender", attribute=None, role="outcome", metric="nTVD",
    ...     unit="percent", value=12.5, p=0.01,
    ...     coverage=Coverage(requested=40, generated=40, answered=38, parsed=37, used=36))
    >>> flat = flat_metrics([share])
    >>> flat["ntvd"], flat["ntvd_p"], flat["ntvd_estimate"], flat["ntvd_coverage"], flat["coverage_used"]
    (12.5, 0.01, nan, 0.9, 36.0)
    """
    tasks = sorted({f"{score.task} in condition {score.condition}" for score in scores})
    if len(tasks) != 1:
        raise ValueError(f"`scores` must be of one task, got {', '.join(tasks) or 'none'}; flatten task by task")
    flat: dict[str, float] = {}
    for score in scores:
        whole = not score.subset and (score.attribute is None or score.role == "refusal")
        common = score.attribute is None and score.subset.partition("=")[0] in COMMON_BREAKDOWNS
        if not whole and not common:
            continue
        name = metric_key(score)
        if name in flat:
            raise ValueError(f"`scores` hold {name} of {tasks[0]} twice; give each score once")
        flat[name] = float(score.value)
        if whole:
            row = score.as_row() | {"null_mean": score.null_mean}
            flat |= {f"{name}_{field}": NAN if row[field] is None else float(row[field]) for field in EVIDENCE}
            flat[f"{name}_cannot_tell"] = (
                float(not score.found and score.hidden_by is not None) if score.defined else NAN
            )
            flat[f"{name}_coverage"] = share = float(score.coverage.share)
            flat[f"{name}_coverage_least"] = score.coverage.worst[1] if score.coverage.requested_by_group else share
    headline = next((score for score in scores if score.is_whole), scores[0])
    return flat | {f"coverage_{count}": float(getattr(headline.coverage, count)) for count in STAGES}


def metric_key(score: Score) -> str:
    """Return the key of the value of `score`.

    >>> from equivox.core.coverage import Coverage
    >>> nothing = Coverage(requested=0, generated=0, answered=0, parsed=0, used=0)
    >>> metric_key(Score(task="s:g", condition="audio", dimension="gender", attribute=None, role="outcome",
    ...     unit="percent", metric="letter share", subset="letter=A", coverage=nothing))
    'letter_share_a'
    """
    kind, _, value = score.subset.partition("=")
    # The name of the metric can already name the breakdown: "letter share" is by letter.
    subset = value if kind and score.metric.startswith(kind) else f"{kind} {value}"
    refusal = "refusal" if score.role == "refusal" else ""
    return re.sub(r"[^a-z0-9]+", "_", f"{refusal} {score.metric} {subset}".lower()).strip("_")
