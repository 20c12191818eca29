"""What a system prompt, another wording, a further turn or an answer by voice changed, in words.

Less difference is no improvement where fewer answers are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from equivox.compare.conditions import ANSWERS, REFUSED, USED, ConditionTest, condition_tests
from equivox.compare.pairs import PairedTest, open_one
from equivox.compare.runs import ComparedRun
from equivox.core.coverage import UNEVEN
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL
from equivox.core.text import how_many
from equivox.core.variants import SPOKEN, SYSTEM, TURN, WORDING, is_intervention, turn_of
from equivox.report.numbers import not_tested, score_interval, score_value, shortened

INTERVENTIONS_NOTE = (
    "further by: how much further from no bias the first condition is than the second, less what noise adds to "
    "either;\nof the answers, a − b; interval: 95 %; p: two-sided, the conditions are exchanged within whole clusters; "
    "q: after\nBenjamini–Yekutieli, over all scores shown, and apart from them over all measures of answers\n"
    "(* q < 0.05, ** q < 0.001)."
)


def intervention_tests(runs: Sequence[ComparedRun]) -> list[ConditionTest]:
    """Return the tests between the declared condition and each system prompt and wording; empty if none was asked."""
    asked = [run for run in runs if any(is_intervention(score.condition) for score in run.scores)]
    tests = condition_tests([open_one(run) for run in asked]) if asked else []
    return [entry for entry in tests if is_intervention(entry[1].model_b)]


def what_changes(condition: str) -> str:
    """Return what is asked of an intervention, as the heading of its table asks it."""
    if condition.startswith(SYSTEM):
        return "what does the system prompt change"
    if condition == SPOKEN:
        return "what does answering by voice change"
    return "does it persist in the next turns" if turn_of(condition) else "what do other words change"


def interventions_in_words(tests: Sequence[ConditionTest]) -> list[str]:
    """Return what system prompts and other wordings changed, in a sentence or two.

    One per model, family and system prompt says whether that is fairer; one per model and family says how far the
    result hangs on the wording.
    """
    prompts = [entry for entry in tests if entry[1].model_b.startswith(SYSTEM)]
    told = [
        f"{model}, {family}, with {own[0][1].model_b}: {_of_a_system_prompt(*_scores_and_answers(own))}"
        for (model, family, _), own in split_by(prompts, lambda e: (e[0], e[1].family, e[1].condition)).items()
    ]
    for kind, (where, plain) in _COMPARED_WITH.items():
        chosen = [entry for entry in tests if entry[1].model_b.startswith(kind)]
        for (model, family), own in split_by(chosen, lambda e: (e[0], e[1].family)).items():
            told.append(f"{model}, {family}, {_of_others(*_scores_and_answers(own), where, plain)}")
    return told


_COMPARED_WITH = {
    WORDING: ("in {} other wordings", "the declared wording"),
    TURN: ("in {} further turns", "the first answer"),
    SPOKEN: ("in {} spoken conditions", "the written answer"),
}
"""Where other conditions are, and what their bias is compared with, in words, by the beginning of their names."""


def _scores_and_answers(tests: Sequence[ConditionTest]) -> tuple[list[PairedTest], list[PairedTest]]:
    """Return the tests of scores, and those of answers."""
    scores = [test for _, test in tests if test.metric not in ANSWERS]
    return scores, [test for _, test in tests if test.metric in ANSWERS]


def _of_others(scores: Sequence[PairedTest], answers: Sequence[PairedTest], several: str, plain: str) -> str:
    """Return how many tests of scores differ from the plain condition, the largest change, and what answers lose."""
    tested = [test for test in scores if test.undefined is None]
    names = dict.fromkeys(test.model_b for test in scores or answers)
    where = next(iter(names)) if len(names) == 1 else several.format(len(names))
    lost = [*_losses(answers, large=True), *_losses(answers, large=False)]
    if not tested:
        return f"{where}: {_untested(scores)}; {', '.join(lost or [_kept(answers)])}."
    changed = sum(test.q < LEVEL for test in tested)
    most = max(tested, key=lambda test: abs(_change(test)))
    nearer = _change(most) > 0
    ends = (most.ci_low, most.ci_high) if nearer else (-most.ci_high, -most.ci_low)
    n = how_many(len(tested), "test")
    told = (
        f"{where}: {changed or 'none'} of {n} {'show' if changed > 1 else 'shows'} another bias than "
        f"{plain}; the largest change is in {most.task}, {most.model_b}: "
        f"{'nearer to' if nearer else 'further from'} no bias by {score_value(abs(_change(most)), most.unit)} "
        f"(interval {score_interval(*ends, most.unit)})"
        f"{not_tested([test.undefined for test in scores])}"
    )
    return f"{told}; {', '.join(lost)}." if lost else f"{told}."


def _change(test: PairedTest) -> float:
    """Return how much nearer to no bias the other condition is; the difference where no value means no bias."""
    return test.difference if math.isnan(test.further) else test.further


def _of_a_system_prompt(scores: Sequence[PairedTest], answers: Sequence[PairedTest]) -> str:
    """Return what the tests of scores say, and whether fewer answers are left."""
    tested = [test for test in scores if test.undefined is None]
    smaller = sum(test.q < LEVEL and test.further > 0 for test in tested)
    larger = sum(test.q < LEVEL and test.further < 0 for test in tested)
    lost, small = list(_losses(answers, large=True)), list(_losses(answers, large=False))
    n = how_many(len(tested), "test")
    found = [
        f"{count} {what}" for count, what in ((smaller, "nearer to no bias"), (larger, "further from it")) if count
    ]
    lacking = not_tested([test.undefined for test in scores])
    if found:
        counted = f"{' and '.join(found)}, of {n}{lacking}"
    elif tested:
        counted = f"none of {n} shows a change of bias{lacking}"
    else:
        counted = _untested(scores)
    if lost:
        so = "this is no evidence of fairer answers" if smaller or not tested else "fewer answers are left"
        return f"{counted}, but {', '.join([*lost, *small])}: {so}."
    if not tested:
        return f"{counted}."
    also = f"; {', '.join(small)}" if small else ""
    if smaller:
        return f"{counted}{also}; {_kept(answers)}."
    return f"{counted}{also}. " + (
        "It made things worse." if larger else "It did not help visibly, or the design is too small to tell."
    )


def _untested(scores: Sequence[PairedTest]) -> str:
    """Return why no score was tested between the conditions."""
    reason = next((test.undefined for test in scores), None) or "its scores have no test between conditions"
    return f"no bias could be compared ({shortened(reason, 160)})"


def _losses(answers: Sequence[PairedTest], *, large: bool) -> Iterator[str]:
    """Yield in which ways fewer answers are left, each by the task where it is worst: what is large, or what is not.

    A large loss counts whether or not it is significant, because a design may be too small to show it; a small one
    counts where it is. A measure without a test has no loss to tell.
    """
    for metric in ANSWERS:
        worst = max((test for test in answers if test.metric == metric), key=_loss, default=None)
        if worst is None or _loss(worst) <= 0:
            continue
        if (_loss(worst) >= UNEVEN) == large and (large or worst.q < LEVEL):
            chance = "" if worst.q < LEVEL else ", which may be chance"
            yield f"{_in_words(worst)} ({worst.task.partition(':')[2] or worst.task}{chance})"


def _loss(test: PairedTest) -> float:
    """Return how much is lost, as a share of the requests; 0 if it is not known."""
    if test.undefined is not None:
        return 0.0
    return (-test.difference if test.metric == REFUSED else test.difference) / 100


def _in_words(test: PairedTest) -> str:
    a, b = test.value_a, test.value_b
    if test.metric == REFUSED:
        return f"{b:.0f} % of the requests are refused, {a:.0f} % without"
    return f"{b:.0f} % of the answers can be used, {a:.0f} % without"


def _kept(answers: Sequence[PairedTest]) -> str:
    """Return how many answers are left, in the task where they are fewest; what they say is not measured."""
    unknown = "whether the answers still say as much is not known"
    used = [test.value_b for test in answers if test.metric == USED and test.undefined is None]
    return f"{min(used):.0f} % of the answers are used where they are fewest; {unknown}" if used else unknown
