"""Tables of a comparison: paired tests, ranks, cohort-relative scores, correlations, overlaps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from equivox.compare.conditions import ConditionTest
from equivox.compare.dimensions import DimensionContrast
from equivox.compare.pairs import PairedTest, untested_measures
from equivox.compare.ranking import Judged, PublishedTotals, Rank, missing_cohorts
from equivox.compare.runs import Comparison, TaskCorrelation, task_correlations, top_movers
from equivox.core.metric import CohortScore, Metric, Overlap
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL, NAN
from equivox.core.text import how_many
from equivox.core.variants import is_intervention
from equivox.report.interventions import INTERVENTIONS_NOTE, interventions_in_words, what_changes
from equivox.report.numbers import DASH, UNEVEN, not_tested, p_value, score_interval, score_value, stars
from equivox.report.ranks import in_order, rank_interval
from equivox.report.score_tables import STARS, grid, marks, mean_table, share_table, task_tables
from equivox.report.table import Table

TESTS_NOTE = (
    "a further by: how much further a lies from no bias, less what noise adds to either (a − b where no value says "
    "no bias);\ninterval: 95 %; p: two-sided, whole clusters are exchanged; q: after "
    "Benjamini–Yekutieli,\nover all pairs, tasks and metrics (* q < 0.05, ** q < 0.001)."
)
CONDITIONS_NOTE = (
    "further by: how much further from no bias with the voice or face than without, less what noise adds to either;\n"
    "interval: 95 %; p: two-sided, the conditions are exchanged within whole clusters; q: after "
    "Benjamini–Yekutieli,\nover all models, tasks and metrics (* q < 0.05, ** q < 0.001). Without a difference the "
    "cause may lie in the text."
)
RANKS_NOTE = (
    "distance: from no bias, less the null mean; rank interval: the ranks that the paired tests allow, 95 % for all "
    "models together\n(Mogstad et al. 2024, with Holm's correction over the pairs of a task); models that share a "
    "letter are not told apart, which is no proof\nthat they are alike."
)

FEW_PAIRS = 3
"""Up to this many untested pairs of models with one reason are named; more are counted."""


def comparison_tables(comparison: Comparison, contrasts: Sequence[DimensionContrast]) -> list[list[Table]]:
    """Return models × tasks, the evidence behind each number, refusals, correlations, and the largest shifts."""
    means = [(run, s) for run in comparison.runs for s in run.scores if (m := run.measure(s)) and m.overall]
    grids, refusals = [], []
    for whole in (True, False):
        rows = [(run, s) for run, s in means if (s.is_whole if whole else s.role == "refusal")]
        for key, own in split_by(rows, lambda row: (row[1].dimension, row[1].condition, row[1].name)).items():
            caption = f"{key[0]}, condition {key[1]}: {'' if whole else 'refusal '}{key[2]}"
            table = grid(caption, [(run.model, s) for run, s in own], remarks=marks(run for run, _ in own))
            if whole:
                grids.append(table)
            elif any(s.defined for _, s in own):
                refusals += [table, mean_table(caption, own)]
            else:
                told = Counter(s.undefined for _, s in own)
                lines = [f"{DASH} {n} of {how_many(len(own), 'score')}: {reason}" for reason, n in told.items()]
                refusals.append(Table(caption=caption, remarks=lines))
    movers = [
        share_table(run.model, score, shares)
        for run in comparison.runs
        for score, shares in top_movers(run, attributes=3, values=5)
    ]
    caveats = Table(remarks=[f"{DASH} {caveat}" for caveat in comparison.caveats])
    found = task_correlations(comparison)
    between = [*correlation_tables(found), *contrast_tables(contrasts)]
    return [grids, *task_tables(comparison.runs), refusals, between, movers, [caveats]]


def verdict_tables(comparison: Comparison, judged: Judged) -> list[list[Table]]:
    """Return the paired tests of every two models, the rank intervals, and cohort-relative scores."""
    tests = paired_tables(judged.tests)
    if tests:
        untested = [f"{DASH} {name}: no paired test: {why}" for name, why in untested_measures(comparison).items()]
        tests.append(Table(remarks=untested))
    cohorts = cohort_tables(comparison.metrics, judged.cohorts)
    if not cohorts:
        missing = [f"{DASH} {reason}" for reason in missing_cohorts(comparison)]
        cohorts.append(Table(remarks=missing))
    return [condition_tables(judged.conditions), tests, rank_tables(judged.ranks), cohorts]


def paper_tables(comparison: Comparison, judged: Judged) -> dict[str, list[Table]]:
    """Return the tables of a comparison for a paper, by the names of their files; none is without rows."""
    tables: dict[str, list[Table]] = {
        "scores": _score_grids(comparison),
        "correlations": correlation_tables(task_correlations(comparison)),
        "ranks": rank_tables(judged.ranks),
        "conditions": condition_tables(judged.conditions),
        "paired_tests": paired_tables(judged.tests),
        "cohort": cohort_tables(comparison.metrics, judged.cohorts),
    }
    kept = {name: [table for table in own if table.rows] for name, own in tables.items()}
    return {name: own for name, own in kept.items() if own}


def _score_grids(comparison: Comparison) -> list[Table]:
    """Return models × tasks for each metric, dimension and condition."""
    whole = [(model, s) for model, s in comparison.scores() if s.is_whole and s.role == "outcome"]
    found = []
    for key, rows in split_by(whole, lambda row: (row[1].name, row[1].dimension, row[1].condition)).items():
        first = rows[0][1]
        caption = f"{key[0]} ({first.unit}), {key[1]}, condition {key[2]}. 0 means: {first.zero_means}."
        missing = [f"{DASH} {model}, {s.task}: {s.undefined}." for model, s in rows if not s.defined]
        found.append(grid(caption, rows, notes=[STARS], remarks=missing))
    return found


def paired_tables(tests: Sequence[PairedTest]) -> list[Table]:
    """Return the tests of every two models, a table per family and condition."""
    found = []
    for key, own in split_by(tests, lambda test: (test.family, test.condition)).items():
        found.append(
            Table(
                caption=f"{key[0]}, condition {key[1]}: pairs of models, on the samples that both answered",
                columns=(
                    "task", "metric", "a", "b", "value of a", "value of b", "a further by", "interval", "p", "q",
                    "samples", "clusters",
                ),
                align="llllrrrrrrrr",
                rows=[_test_row(test) for test in own if test.undefined is None],
                grouped=2,
                remarks=_untested(own),
                notes=[TESTS_NOTE],
            )
        )  # fmt: skip
    return found


def condition_tables(tests: Sequence[ConditionTest]) -> list[Table]:
    """Return the tests between conditions of each model, a table per family and pair of conditions."""
    found = []
    for key, own in split_by(tests, lambda entry: (entry[1].family, entry[1].condition)).items():
        a, b = own[0][1].model_a, own[0][1].model_b
        intervention = is_intervention(b)
        asks = what_changes(b) if intervention else f"is it the {a}"
        untested = [(model, test) for model, test in own if test.undefined]
        reasons = split_by(untested, lambda entry: (entry[0], entry[1].undefined))
        found.append(
            Table(
                caption=f"{key[0]}, {key[1]}: {asks}? The same samples in both conditions",
                columns=(
                    "model", "task", "metric", a, b, f"{a} further by", "interval", "p", "q", "samples", "clusters",
                ),
                align="lllrrrrrrrr",
                rows=[
                    [model, *(cell for place, cell in enumerate(_test_row(test)) if place not in (2, 3))]
                    for model, test in own
                    if test.undefined is None
                ],
                grouped=1,
                remarks=[
                    f"{DASH} {model}, {', '.join(dict.fromkeys(test.task for _, test in members))}: not tested: "
                    f"{reason}"
                    for (model, reason), members in reasons.items()
                ],
                notes=[INTERVENTIONS_NOTE if intervention else CONDITIONS_NOTE],
            )
        )  # fmt: skip
    return found


def conditions_in_words(tests: Sequence[ConditionTest]) -> list[str]:
    """Return a sentence per model and pair of conditions: how many scores differ, and what that says."""
    told = interventions_in_words(tests)
    controls = [entry for entry in tests if not is_intervention(entry[1].model_b)]
    for (model, _, _), own in split_by(controls, lambda e: (e[0], e[1].family, e[1].condition)).items():
        first = own[0][1]
        tested = [test for _, test in own if test.undefined is None]
        larger = sum(test.q < LEVEL and not test.further < 0 for test in tested)
        smaller = sum(test.q < LEVEL and test.further < 0 for test in tested)
        where = f"{model}, {first.family}: with {first.model_a} against {first.model_b}"
        lacking = not_tested([test.undefined for _, test in own])
        if not tested:
            told.append(f"{where} nothing could be tested.")
        elif larger or smaller:
            found = [f"{n} {side}" for n, side in ((larger, "further from no bias"), (smaller, "nearer")) if n]
            told.append(f"{where} {' and '.join(found)}, of {len(tested)} tests{lacking}.")
        else:
            told.append(
                f"{where} none of {len(tested)} tests shows a difference{lacking}. What was found may lie in the text, "
                "or the design may be too small."
            )
    return told


def _test_row(test: PairedTest) -> list[str]:
    further = test.difference if test.further != test.further else test.further
    return [
        *(test.task, test.metric, test.model_a, test.model_b),
        *(score_value(value, test.unit) for value in (test.value_a, test.value_b)),
        score_value(further, test.unit) + stars(test.q),
        score_interval(test.ci_low, test.ci_high, test.unit),
        *(p_value(test.p), p_value(test.q), f"{test.n_samples:,}", f"{test.n_clusters:,}"),
    ]


def _untested(tests: Sequence[PairedTest]) -> list[str]:
    """Return lines about the pairs that were not tested; a reason for several pairs of a task takes one line."""
    found = []
    for (task, reason), own in split_by((t for t in tests if t.undefined), lambda t: (t.task, t.undefined)).items():
        pairs = list(dict.fromkeys(f"{test.model_a} and {test.model_b}" for test in own))
        named = "; ".join(pairs) if len(pairs) <= FEW_PAIRS else f"{len(pairs)} pairs"
        found.append(f"{DASH} {task}: {named} not tested: {reason}")
    return found


def rank_tables(ranks: Sequence[Rank]) -> list[Table]:
    """Return the models by rank, a table per family, condition and dimension."""
    found = []
    for key, own in split_by(ranks, lambda s: (s.family, s.condition, s.dimension)).items():
        ordered = [s for members in split_by(own, lambda s: (s.task, s.metric)).values() for s in in_order(members)]
        missing = Counter(f"{DASH} {s.task}, {s.model} has no rank: {s.undefined}" for s in own if s.undefined)
        found.append(
            Table(
                caption=f"{key[0]}, {key[2]}, condition {key[1]}: ranks, the first nearest to no bias",
                columns=("task", "metric", "model", "distance", "rank", "rank interval", "letters"),
                align="lllrrrl",
                rows=[[s.task, s.metric, s.model, *_rank_cells(s)] for s in ordered],
                grouped=2,
                remarks=[
                    *(line if n == 1 else f"{line} ({n} metrics)" for line, n in missing.items()),
                    *dict.fromkeys(f"{UNEVEN} {s.task}, {s.model}: {s.uneven}" for s in own if s.rank and s.uneven),
                ],
                notes=[RANKS_NOTE],
            )
        )
    return found


def _rank_cells(rank: Rank) -> list[str]:
    if rank.undefined is not None:
        return [score_value(NAN, rank.unit), DASH, DASH, ""]
    distance = score_value(rank.distance, rank.unit) + (UNEVEN if rank.uneven else "")
    return [distance, str(rank.rank), rank_interval(rank), rank.letters]


def cohort_tables(metrics: Mapping[str, Metric], cohorts: Sequence[CohortScore]) -> list[Table]:
    """Return the total of every model with its interval and parts, a table per family and cohort."""
    found = []
    for key, own in split_by(cohorts, lambda score: (score.family, score.cohort)).items():
        cohort = metrics[key[0]].cohort if key[0] in metrics else None
        name, parts = own[0].name or "total", list(own[0].parts)
        title = f"{cohort.title} ({name})" if cohort is not None else name
        found.append(
            Table(
                caption=f"{title}, {key[0]}; cohort: {key[1]}",
                columns=("model", name, "95 % interval", *parts),
                align="lrr" + "r" * len(parts),
                rows=[
                    [
                        score.model,
                        score_value(score.total, ""),
                        score_interval(score.ci_low, score.ci_high, ""),
                        *(score_value(z, "") for z in score.parts.values()),
                    ]
                    for score in own
                ],
                remarks=_cohort_remarks(own, cohort.stand_ins if cohort is not None else ""),
                notes=[cohort.legend] if cohort is not None else [],
            )
        )
    return found


def published_cohort_tables(found: Sequence[PublishedTotals]) -> list[Table]:
    """Return the total scores of runs beside those of a published cohort, a table per family."""
    tables = []
    for own in found:
        undefined = {model: why for model, why in own.totals.undefined.items() if model in own.models}
        remarks = [f"{DASH} no score for {model}: {why}" for model, why in undefined.items()]
        if own.by_stand_ins:
            remarks.append(
                f"{DASH} {own.cohort.stand_ins}, comparable with nothing else: {', '.join(own.by_stand_ins)}"
            )
        tables.append(
            Table(
                caption=f"{own.cohort.title}; cohort: {own.totals.cohort}",
                columns=("model", *own.measures, "total"),
                align="lr" + "r" * len(own.measures),
                rows=[
                    [
                        model,
                        *(score_value(values.get(name, math.nan), "") for name in own.measures),
                        score_value(own.totals.total[model], ""),
                    ]
                    for model, values in own.totals.values.items()
                ],
                remarks=remarks,
                notes=[own.cohort.legend],
            )
        )
    return tables


def _cohort_remarks(scores: Sequence[CohortScore], why: str) -> list[str]:
    told = [f"{DASH} {score.model} has no total: {score.undefined}" for score in scores if score.undefined]
    told += dict.fromkeys(f"{DASH} no interval: {score.no_interval}" for score in scores if score.no_interval)
    if made_up := [score.model for score in scores if score.stand_ins]:
        told.append(f"{DASH} {why or 'stand-ins'}, comparable with nothing else: {', '.join(made_up)}")
    return told


def correlation_tables(found: Sequence[TaskCorrelation]) -> list[Table]:
    """Return the correlations of tasks over models, a table per dimension and condition.

    Where no correlation is known, as with two models, a table has the reason and no rows.
    """
    tables = []
    for key, pairs in split_by(found, lambda c: (c.dimension, c.condition, c.metric)).items():
        missing = Counter(c.undefined for c in pairs if c.undefined)
        shown = [] if all(math.isnan(c.r) for c in pairs) else pairs
        tables.append(
            Table(
                caption=f"Pearson's r of the tasks' {key[2]} over models, {key[0]}, condition {key[1]}",
                columns=("task", "task", "models", "r", "95 % interval", "p", "q", "r of estimates"),
                align="llrrrrrr",
                rows=[
                    [
                        *(c.first, c.second, str(c.n_models), score_value(c.r, "r")),
                        *(score_interval(c.ci_low, c.ci_high, "r"), p_value(c.p), p_value(c.q)),
                        score_value(c.r_estimate, "r"),
                    ]
                    for c in shown
                ],
                remarks=[f"{DASH} {n} of {how_many(len(pairs), 'pair')}: {reason}" for reason, n in missing.items()],
            )
        )
    return tables


def contrast_tables(found: Sequence[DimensionContrast]) -> list[Table]:
    """Return the differences between two dimensions of the same tasks, a table for every two."""
    return [
        Table(
            caption=f"{metric}, {first} minus {second}, over models, condition {condition}",
            columns=("task", "models", "as published", "of estimates", "95 % interval", "p"),
            align="lrrrrr",
            rows=[
                [
                    *(c.task or "mean of the tasks", str(c.n_models), score_value(c.difference, "")),
                    *(score_value(c.estimate, ""), score_interval(c.ci_low, c.ci_high, ""), p_value(c.p)),
                ]
                for c in own
            ],
            remarks=[f"{DASH} {c.task or 'mean of the tasks'}: {c.undefined}" for c in own if c.undefined],
            notes=[
                "p: the two dimensions exchanged within models; it speaks of the corpora, too",
                "an estimate is too low where a difference is spread over many values: interval and p allow for it",
            ],
        )
        for (first, second, condition, metric), own in split_by(
            found, lambda c: (c.first, c.second, c.condition, c.metric)
        ).items()
    ]


def overlap_tables(overlaps: Sequence[Overlap]) -> list[Table]:
    """Return the overlap of the findings of every two settings and models, a table for each kind of findings."""
    return [
        Table(
            caption=f"{findings} shared by settings and models",
            columns=("dimension", "one", "other", "of one", "of other", "shared", "Jaccard", "rank correlation"),
            align="lllrrrrr",
            rows=[
                [
                    *(o.dimension, o.one, o.other, str(o.n_one), str(o.n_other), str(o.n_shared)),
                    *(score_value(value, "share") for value in (o.jaccard, o.rank_correlation)),
                ]
                for o in kind
            ],
            notes=["Jaccard: shared of what either has; rank correlation: Kendall's τ of shared scores"],
        )
        for findings, kind in split_by(overlaps, lambda overlap: overlap.findings).items()
    ]
