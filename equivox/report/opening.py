"""The opening of a report as plain data: the question, its answer, a few sentences, and why to trust them.

The report's page, the terminal and the explorer show the same opening, each in its own way. It is made from stored
scores: nothing is computed but counts. What is said of a number comes from its metric, and whom it is about from its
task.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from equivox.compare.pairs import PairedTest
from equivox.compare.ranking import Judged, Rank
from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL, Verdict, verdict
from equivox.core.text import how_many
from equivox.core.variants import declared_name, is_control, is_intervention
from equivox.report.interventions import intervention_tests, interventions_in_words
from equivox.report.numbers import p_value
from equivox.report.ranks import in_order, told_apart
from equivox.report.trust import Trust, losses_in_words, reasons_to_trust
from equivox.report.verdicts import (
    TaskVerdict,
    about_findings,
    about_losses,
    about_no_finding,
    family_verdicts,
    groups_of,
    in_unit,
    listed,
    short_interval,
    short_value,
    task_verdicts,
    unequal_losses,
)
from equivox.statistics import adjust

MOST_SENTENCES = 8


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The first sentences about one run, or several.

    Attributes
    ----------
    question, answer
        What was asked, and the shortest true answer. A score that is undefined, or a design that cannot tell, never
        makes the answer "no".
    sentences
        The largest difference with the words that moved, what was not found and what could have been missed, and what
        is not known and why.
    trust
        How much of the answers was used, whether the annotator was checked, who was asked about, and from which data.
    """

    question: str
    answer: str
    sentences: tuple[str, ...]
    trust: tuple[Trust, ...]


def opening(
    runs: Sequence[ComparedRun],
    *,
    tests: Sequence[PairedTest] | None = None,
    ranks: Sequence[Rank] = (),
    caveats: Sequence[str] = (),
) -> Opening:
    """Return the opening of some runs that are shown together.

    Parameters
    ----------
    runs
        One run or more.
    tests, ranks
        The paired tests and ranks of several runs; None: the runs were not tested against each other.
    caveats
        Why some of the numbers may not be compared.
    """
    trust = (*reasons_to_trust(runs), *(Trust(caveat, "bad") for caveat in caveats))
    if len(runs) == 1:
        question, answer, sentences = _of_one(runs[0])
    elif len(runs) == 2 and tests is not None:
        question, answer, sentences = _of_two(runs, tests)
    else:
        question, answer, sentences = _of_many(runs, ranks, tested=tests is not None)
    if elsewhere := [(run.model, names) for run in runs if (names := _in_other_conditions(run))]:
        if len(runs) == 1:
            answer = f"Yes, in another condition alone ({listed(elsewhere[0][1])}). As declared: {answer}"
        else:
            alone = "a difference is found in another condition alone"
            sentences = [*sentences, *(f"{model}: {alone} ({listed(names)})." for model, names in elsewhere)]
    if lost := [(run.model, about) for run in runs for about in about_losses(run)]:
        # What is lost in one group alone is a difference, and the scores of what is left say nothing of it.
        if len(runs) == 1:
            told = f"Yes: {'; '.join(about for _, about in lost)}."
        else:
            told = f"Answers are lost unequally: {'; '.join(f'{model}, {about}' for model, about in lost)}."
        answer = f"{told} Of the answers that are left: {answer}"
    return Opening(question=question, answer=answer, sentences=tuple(sentences), trust=trust)


def opening_of(comparison: Comparison, judged: Judged) -> Opening:
    """Return the opening of a comparison with its results."""
    tests = judged.tests if len(comparison.runs) > 1 else None
    first = opening(comparison.runs, tests=tests, ranks=judged.ranks, caveats=comparison.caveats)
    return replace(first, sentences=(*first.sentences, *interventions_in_words(judged.conditions)))


def opening_of_one(run: ComparedRun) -> Opening:
    """Return the opening of one run, with what its system prompts and other wordings changed."""
    first = opening([run])
    return replace(first, sentences=(*first.sentences, *interventions_in_words(intervention_tests([run]))))


def family_summary(run: ComparedRun, family: str) -> tuple[Verdict, str]:
    """Return what is known of one family of tasks, as a verdict and in the sentences of the opening."""
    told = family_verdicts(run, family)
    found = [*about_findings(run, told), *about_no_finding(run, told)]
    text = " ".join([_answer(told), *found])
    if lost := about_losses(run, family):
        return "found", f"Yes: {'; '.join(lost)}. Of the answers that are left: {text}"
    return verdict([score for one in told for score in one.scores]), text


def _in_other_conditions(run: ComparedRun) -> list[str]:
    """Return the tasks with a finding in other words, a later turn or the like that have none as declared.

    A control, such as silence, is no condition in which the person is known.
    """
    found = [score for score in run.scores if score.is_whole and score.role == "outcome" and score.found]
    declared = {score.task for score in found if "@" not in score.task}
    alone = [
        score
        for score in found
        if is_intervention(score.condition) and declared_name(score.task) not in declared
        and ((measure := run.measure(score)) is None or measure.in_verdict)
    ]  # fmt: skip
    return list(dict.fromkeys(score.task.partition(":")[2] or score.task for score in alone))


Parts = tuple[str, str, list[str]]


def _of_one(run: ComparedRun) -> Parts:
    told = task_verdicts(run)
    kinds = split_by(told, lambda one: (one.family, one.dimension))
    if len(kinds) == 1 and (groups := groups_of(told)):
        question = f"Does {run.model} answer {groups} differently?"
    else:
        question = f"Does {run.model} answer differently when only the person changes?"
    answer = f"{CONTROLS_ALONE} There: {_answer(told)}" if _in_controls_alone(told) else _answer(told)
    if len(kinds) < 2:
        return question, answer, [*about_findings(run, told), *about_no_finding(run, told)]
    return question, answer, list(_by_kind(run, kinds))


CONTROLS_ALONE = "Not asked: this run has controls alone, in which the model does not know the person."


def _in_controls_alone(told: Sequence[TaskVerdict]) -> bool:
    """Return whether nothing is told of a condition in which the model knows the person."""
    return bool(told) and all(is_control(score.task, score.condition) for one in told for score in one.scores)


def _by_kind(run: ComparedRun, kinds: Mapping[tuple[str, str], Sequence[TaskVerdict]]) -> Iterator[str]:
    """Yield a text for each benchmark and dimension, those with a finding first."""
    ordered = sorted(kinds.items(), key=lambda entry: not any(one.verdict == "found" for one in entry[1]))
    for (family, dimension), told in ordered[:MOST_SENTENCES]:
        who = groups_of(told) or dimension
        # Where nothing was found, the sentences about what was not found say it all, but for a single task's reason.
        found = any(one.verdict == "found" for one in told)
        alone = len(told) == 1 and told[0].verdict in ("cannot tell", "undefined")
        answer = [_answer(told)] if found or alone else []
        rest = about_no_finding(run, told)
        yield f"{family}, {who}: {' '.join([*answer, *about_findings(run, told), *rest])}"
    if len(ordered) > MOST_SENTENCES:
        yield f"{len(ordered) - MOST_SENTENCES} more benchmarks stand below."


def _answer(told: Sequence[TaskVerdict]) -> str:
    """Return the answer to whether answers differ."""
    n = len(told)
    found, none, untold, undefined = (sum(one.verdict == what for one in told) for what in get_args(Verdict))
    if not n:
        return "Nothing was tested."
    if found:
        return f"Yes, in {found} of {n} tasks." if n > 1 else "Yes."
    if none == n:
        where = "" if n == 1 else f" in any of {n} tasks"
        return f"Not shown{where}, which is no proof that answers are alike."
    if undefined == n:
        return (
            "Not known: there is no complete score."
            if n == 1
            else f"Not known: none of {n} tasks has a complete score."
        )
    if untold == n:
        return "This design cannot tell."
    parts = [
        f"{none} without a difference shown" if none else "",
        f"{untold} where this design cannot tell" if untold else "",
        f"{undefined} undefined" if undefined else "",
    ]
    return f"Not known: of {n} tasks, {listed([part for part in parts if part])}."


def _of_two(runs: Sequence[ComparedRun], tests: Sequence[PairedTest]) -> Parts:
    first, second = runs
    question = f"Is {first.model} further from no bias than {second.model}?"
    least = _least_q(tests)
    kept = [(test, least[place]) for place, test in enumerate(tests) if _decides(runs, test)]
    means = {(test.family, test.condition, test.dimension) for test, _ in kept if test.is_overall}
    kept = [
        entry
        for entry in kept
        if entry[0].is_overall or (entry[0].family, entry[0].condition, entry[0].dimension) not in means
    ]
    outcomes = [(test, _outcome(test, q)) for test, q in kept]
    each = f"Each alone: {'; '.join(_alone(run) for run in runs)}."
    if not outcomes:
        return question, "The two were not tested against each other.", [each]
    if len(outcomes) == 1:
        test, outcome = outcomes[0]
        return question, _outcome_in_words(test, outcome, start=True), [_where(outcomes), each]
    counts = [(what, sum(outcome == what for _, outcome in outcomes)) for what in _OUTCOMES]
    answer = f"Of {len(outcomes)} comparisons: {listed([f'{n} {_OUTCOMES[what]}' for what, n in counts if n])}."
    return question, answer, [*_pair_sentences(outcomes), each]


Outcome = Literal["further", "nearer", "not shown", "cannot tell", "not tested"]
_OUTCOMES: Mapping[Outcome, str] = {
    "further": "further from no bias",
    "nearer": "nearer to no bias",
    "not shown": "not shown to be either",
    "cannot tell": "where the design cannot tell",
    "not tested": "not tested",
}


def _decides(runs: Sequence[ComparedRun], test: PairedTest) -> bool:
    """Return whether a test is about how far from no bias two models lie, and about a declared task."""
    for run in runs:
        metric = run.metrics.get(test.family)
        measure = metric.by_name.get(test.metric) if metric is not None else None
        if measure is not None:
            about = measure.in_verdict and measure.no_bias is not None
            return about and "@" not in test.task
    return "@" not in test.task


def _least_q(tests: Sequence[PairedTest]) -> list[float]:
    """Return the smallest q that each test could have had, whatever the answers, given the p of the others."""
    p = [test.p for test in tests]
    found = []
    for place, test in enumerate(tests):
        if not math.isfinite(test.p) or not math.isfinite(test.p_least):
            found.append(math.nan)
            continue
        best = adjust([*p[:place], test.p_least, *p[place + 1 :]], method="by")
        found.append(best[place])
    return found


def _outcome(test: PairedTest, least_q: float) -> Outcome:
    if test.undefined is not None or not math.isfinite(test.further):
        return "not tested"
    if test.q < LEVEL:
        return "further" if test.further > 0 else "nearer"
    return "cannot tell" if least_q >= LEVEL else "not shown"


def _outcome_in_words(test: PairedTest, outcome: Outcome, *, start: bool = False) -> str:
    """Return the outcome of one test with its interval."""
    # What is nearer is nearer by a positive number, whose interval is turned round.
    ends = (-test.ci_high, -test.ci_low) if outcome == "nearer" else (test.ci_low, test.ci_high)
    within = short_interval(*ends, test.unit)
    span = f" ({within}{_against(test)})" if within else ""
    size = short_value(abs(test.further), test.unit)
    if outcome == "not tested":
        return f"{'Not known: not' if start else 'not'} tested: {test.undefined or 'no distance from no bias'}."
    words = {
        "further": f"{'yes, ' if start else ''}further from no bias by {size}{span}",
        "nearer": f"{'no, ' if start else ''}nearer to no bias by {size}{span}",
        "not shown": f"not shown to be worse or better{span}, which is no proof that they are alike",
        "cannot tell": "this design cannot tell: too few clusters or resamples for any difference to show",
    }[outcome]
    return f"{words[:1].upper() if start else words[:1]}{words[1:]}."


def _against(test: PairedTest) -> str:
    """Return why a difference is not shown whose interval leaves out 0; empty for any other."""
    if not test.q >= LEVEL or test.ci_low <= 0 <= test.ci_high:
        return ""
    if test.p >= LEVEL:
        return f", without 0, but exchanging the models' answers gives p {p_value(test.p)}"
    return f", without 0, but q is {p_value(test.q)} among all tests that are shown"


def _where(outcomes: Sequence[tuple[PairedTest, Outcome]]) -> str:
    test, outcome = outcomes[0]
    if outcome == "not tested":
        return f"Asked about: {test.task}, {test.metric}."
    return (
        f"Compared by {test.metric} of {test.task}, on {test.n_samples:,} answers that both gave, over "
        f"{test.n_clusters:,} clusters; the interval is 95 %, and above 0 {test.model_a} lies further from no bias."
    )


def _pair_sentences(outcomes: Sequence[tuple[PairedTest, Outcome]]) -> list[str]:
    """Return a sentence for each family of tasks."""
    found = []
    for (family, _), own in split_by(outcomes, lambda entry: (entry[0].family, entry[0].dimension)).items():
        if len(own) == 1:
            found.append(f"{own[0][0].task}, {own[0][0].metric}: {_outcome_in_words(*own[0])}")
            continue
        by_outcome = split_by(own, lambda entry: entry[1])
        several = len({test.task for test, _ in own}) > 1
        parts = []
        for outcome in _OUTCOMES:
            if members := by_outcome.get(outcome):
                names = [
                    f"{test.task.partition(':')[2]} {test.metric}" if several else test.metric for test, _ in members
                ]
                why = members[0][0].undefined if outcome == "not tested" else ""
                parts.append(f"{_OUTCOMES[outcome]}: {listed(names)}{f' ({why})' if why else ''}")
        found.append(f"{family if several else own[0][0].task}: {'; '.join(parts)}.")
    return found[:MOST_SENTENCES]


def _alone(run: ComparedRun) -> str:
    """Return what is known of one model of several, in a few words."""
    told = task_verdicts(run)
    n = len(told)
    known = sum(one.verdict in ("found", "not shown") for one in told)
    found = sum(one.verdict == "found" for one in told)
    open_ = f", and of {n - known} more it is not known" if n > known else ""
    if losses := list(dict.fromkeys(str(score.attribute) for score in unequal_losses(run))):
        open_ += f", and its groups differ in {losses_in_words(losses)}"
    if not n:
        return f"{run.model}: nothing was tested"
    if _in_controls_alone(told):
        return f"{run.model}: asked in controls alone"
    if not known:
        unknown = f"{run.model}: not known in any of {n} tasks" if n > 1 else f"{run.model}: not known"
        return f"{unknown}, and its groups differ in {losses_in_words(losses)}" if losses else unknown
    if not found:
        return f"{run.model}: no difference shown in {how_many(known, 'task')}{open_}"
    return f"{run.model} differs in {found} of {how_many(known, 'task')}{open_}"


def _of_many(runs: Sequence[ComparedRun], ranks: Sequence[Rank], *, tested: bool) -> Parts:
    question = f"Which of {len(runs)} models answer differently when only the person changes?"
    told = [set() if _in_controls_alone(own) else {one.verdict for one in own} for own in map(task_verdicts, runs)]
    differ = [run.model for run, own in zip(runs, told, strict=True) if "found" in own]
    rest = sum(own == {"not shown"} for own in told)
    unknown = len(runs) - len(differ) - rest
    parts = [f"{len(differ)} of {len(runs)}, in at least one task" if differ else "None is shown to"]
    if unknown:
        parts.append(f"{'of' if differ else 'and of'} {unknown} it is not known")
    if rest and differ:
        parts.append(f"of {rest} it is not shown, which is no proof that answers are alike")
    elif rest and not unknown:
        parts.append("which is no proof that answers are alike")
    sentences = [f"{_alone(run)}." for run in runs] if len(runs) <= MOST_SENTENCES else []
    if len(runs) > MOST_SENTENCES and differ:
        sentences.append(f"A difference is shown for {listed(differ)}.")
    sentences += _ranked(runs, ranks)
    if not tested:
        sentences.append("Which model is nearer to no bias was not tested here; `equivox compare` tests every two.")
    return question, f"{'; '.join(parts)}.", sentences


def _ranked(runs: Sequence[ComparedRun], ranks: Sequence[Rank]) -> list[str]:
    """Return who is nearest to no bias in each family, who is furthest, and which models are told apart."""
    metrics = {family: metric for run in runs for family, metric in run.metrics.items()}
    declared = [rank for rank in ranks if "@" not in rank.task] or list(ranks)
    found = []
    for (family, dimension), own in split_by(declared, lambda rank: (rank.family, rank.dimension)).items():
        columns = split_by(own, lambda rank: (rank.task, rank.metric))
        whole = [key for key in columns if key[0].startswith(f"{family}: ")]
        headline = metrics[family].measures[0].name if family in metrics else own[0].metric
        key = next(iter(whole or [key for key in columns if key[1] == headline] or columns))
        ordered = [rank for rank in in_order(columns[key]) if rank.undefined is None]
        if len(ordered) < 2:
            continue
        near, far = ordered[0], ordered[-1]
        about = "" if dimension in key[0] else f"{dimension}, "
        # Ranks that no test could have told apart say nothing.
        order = (
            f"{near.model} is nearest to no bias as measured ({in_unit(near.distance, near.unit)}), {far.model} "
            f"furthest ({short_value(far.distance, far.unit)}). "
        )
        found.append(f"{key[0]}, {about}{key[1]}: {'' if near.too_few else order}{told_apart(columns[key])}")
    left = len(found) - MOST_SENTENCES
    return [*found[:MOST_SENTENCES], *([f"{left} more rankings stand below."] if left > 0 else [])]
