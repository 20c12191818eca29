"""Tables of scores: whole tasks, attributes, models × tasks, and the shares of values by group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from equivox.compare.runs import ComparedRun, ValueShares
from equivox.core.metric import Measure
from equivox.core.plain import split_by
from equivox.core.scores import Score
from equivox.core.text import how_many
from equivox.report.numbers import (
    DASH,
    UNEVEN,
    UNTOLD,
    p_value,
    percent,
    score_interval,
    score_value,
    share,
    stars,
)
from equivox.report.table import Cell, Strip, Table

Rows = Sequence[tuple[ComparedRun, Score]]
Texts = Mapping[str, Callable[[ComparedRun, Score], str]]
"""Columns of texts: the heading of each, and what it says of a score of a run."""

STARS = (
    f"* q < 0.05, ** q < 0.001, q over the tests of the run; {UNTOLD} this design cannot tell: it may miss the "
    f"shift that is looked for, or no answers could have given a star; {UNEVEN} more answers of one group are missing."
)
_Q_NOTE = (
    f"q: p after correction for all tests of the run, tasks first and attributes below them (* q < 0.05, "
    f"** q < 0.001;\n{UNTOLD} this design cannot tell; {UNEVEN} more answers of one group are missing)"
)
_METRIC_NOTE = (
    "no bias: the value that an even-handed model has; interval: 95 %, over clusters; p cluster: over clusters;\n"
    f"{_Q_NOTE};\np paper: as published; used: usable, of all requested."
)


_BY_PEOPLE = ("with labels", "interval")
_BY_PEOPLE_NOTE = (
    "with labels: the estimate as people would annotate the answers, from their labels of some of them; its interval "
    "holds the noise of the labels too."
)


def evidence_table(
    caption: str,
    labels: Texts,
    rows: Rows,
    *,
    value: str = "value",
    null_mean: bool = False,
    last: Texts | None = None,
    remarks: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return scores with their evidence, a line each, between the columns `labels` and `last`.

    `value` names the published number. With a null mean the estimate comes first. Where people labelled answers, the
    scores as their labels correct them stand behind the evidence.
    """
    p, people, last = _p_headings(rows), _by_people(rows), last or {}
    first = ("estimate", "interval", value, "max", "null mean", "rare") if null_mean else (value, "no bias", "interval")
    columns = [*first, *p, "q", "p paper", "used", *(_BY_PEOPLE if people else ())]
    return Table(
        caption=caption,
        columns=[*labels, *columns, *last],
        align="l" * len(labels) + "r" * len(columns) + "l" * len(last),
        rows=[
            [
                *(text(*row) for text in labels.values()),
                *_evidence(row[1], null_mean=null_mean, p=p),
                *corrected,
                *(text(*row) for text in last.values()),
            ]
            for row, corrected in zip(rows, people or [[]] * len(rows), strict=True)
        ],
        grouped=len(labels) - 1,
        remarks=remarks,
        notes=[*notes, *([_BY_PEOPLE_NOTE] if people and notes else [])],
    )


def _p_headings(rows: Rows) -> tuple[str, ...]:
    """Return the headings of the p-values of some scores: two if a metric says which clusters a p speaks of."""
    measures = [measure for run, score in rows if (measure := run.measure(score)) is not None]
    both = next((measure for measure in measures if measure.p_these), None)
    if both is not None:
        return both.p_these, both.p_cluster
    return (measures[0].p_cluster if measures else "p cluster",)


def marked(score: Score) -> str:
    """Return the stars of a finding or the mark of a score that may have missed one, and that of unequal losses."""
    if not score.defined:
        return ""
    uneven = UNEVEN if score.coverage.uneven is not None else ""
    return (stars(score.q) if score.untold is None else UNTOLD) + uneven


def _evidence(score: Score, *, null_mean: bool, p: Sequence[str]) -> list[str]:
    """Return a score and its evidence as texts, the headline first; with a null mean that is the estimate."""
    interval = score_interval(score.ci_low, score.ci_high, score.unit)
    if null_mean:
        numbers = (score.value, score.attainable_max, score.null_mean)
        rare = DASH if math.isnan(score.removed_share) else f"{100 * score.removed_share:.0f} %"
        middle = [interval, *(score_value(number, score.unit) for number in numbers), rare]
    else:
        middle = [score_value(score.target, score.unit), interval]
    tested = (score.p_these, score.p_cluster) if len(p) > 1 else (score.p_cluster,)
    return [
        score_value(score.headline if null_mean else score.value, score.unit) + marked(score),
        *middle,
        *(p_value(p) for p in (*tested, score.q, score.p_paper)),
        share(score.coverage.used, score.coverage.requested),
    ]


_TASK: Texts = {"task": lambda run, score: score.task}
_MODEL_AND_TASK: Texts = {"model": lambda run, score: run.model, **_TASK}


def task_tables(runs: Sequence[ComparedRun]) -> list[list[Table]]:
    """Return the scores of whole tasks, a line per model and task: means over attributes, then all others.

    A measure that is a mean over attributes has one table per dimension; others have one per family of tasks.
    """
    rows = [(run, score) for run in runs for score in run.scores if score.is_whole]
    means, others = _split(rows)
    return [
        [mean_table(f"{name[0]}: mean {name[1]} over a task's attributes", own) for name, own in means.items()],
        [
            evidence_table(
                family, {**_MODEL_AND_TASK, "metric": measure_name}, own, remarks=reasons(own),
                notes=[_METRIC_NOTE, *_helps(own)],
            )
            for family, own in others.items()
        ],
    ]  # fmt: skip


def attribute_tables(run: ComparedRun) -> list[Table]:
    """Return a line per attribute with the value that differs most; for other measures, a line per breakdown."""
    means, others = _split([(run, score) for score in run.scores if not score.is_whole])
    return [
        *(
            evidence_table(
                f"{dimension}: by attribute", {**_TASK, "attribute": _part}, own, value=name, null_mean=True,
                last={"moves most": _mover}, remarks=reasons(own, named=False),
            )
            for (dimension, name), own in means.items()
        ),
        *(
            evidence_table(
                f"{family}: in detail", {**_TASK, "metric": measure_name, "of": _part}, own,
                remarks=reasons(own, named=False),
            )
            for family, own in others.items()
        ),
    ]  # fmt: skip


def _split(rows: Rows) -> tuple[Mapping[tuple[str, str], Rows], Mapping[str, Rows]]:
    """Return the scores that are means over attributes, by dimension and name, and all others by family."""
    by_name: dict[tuple[str, str], list[tuple[ComparedRun, Score]]] = {}
    by_family: dict[str, list[tuple[ComparedRun, Score]]] = {}
    for run, score in rows:
        measure = run.measure(score)
        if measure is not None and measure.overall:
            by_name.setdefault((score.dimension, score.name), []).append((run, score))
        else:
            by_family.setdefault(score.family, []).append((run, score))
    return by_name, by_family


def mean_table(caption: str, rows: Rows) -> Table:
    """Return scores that have a null mean with their evidence, a line per model and task."""
    first = rows[0][1]
    spoken_of = (
        f"{first.dimension}: these numbers speak of clusters like these, asked about these items with this prompt."
        f"{_new_items(rows)}{_same_units(rows)}"
    )
    notes = [_mean_note(rows[0][0].measure(first), rows), spoken_of]
    return evidence_table(
        caption, _MODEL_AND_TASK, rows, value=first.name, null_mean=True, remarks=reasons(rows), notes=notes
    )


def _by_people(rows: Rows) -> list[list[str]]:
    """Return each score as people's labels correct it, and its interval, as texts; empty if there are no labels."""
    found = [run.corrected(score) for run, score in rows]
    if not any(found):
        return []
    return [
        [DASH, DASH]
        if one is None
        else [score_value(one.corrected, score.unit), score_interval(one.ci_low, one.ci_high, score.unit)]
        for one, (_, score) in zip(found, rows, strict=True)
    ]


def _helps(rows: Rows) -> list[str]:
    """Return, once each, what metrics say of their p-values."""
    helps = (measure.p_help for run, score in rows if (measure := run.measure(score)) is not None)
    return list(dict.fromkeys(filter(None, helps)))


def measure_name(run: ComparedRun, score: Score) -> str:
    """Return the name of a measure, with its unit where tasks have different ones."""
    measure = run.measure(score)
    return f"{score.name} ({score.unit})" if measure is not None and measure.in_unit else score.name


def _part(run: ComparedRun, score: Score) -> str:
    """Return of which part of a task a score is: a breakdown, an attribute, or a way to lose answers."""
    if score.subset or score.role in {"outcome", "refusal"}:
        return score.subset or ("refusal" if score.role == "refusal" else str(score.attribute))
    return f"{score.attribute} ({score.role})"


def _mover(run: ComparedRun, score: Score) -> str:
    mover = score.mover
    if mover is None:
        return DASH
    return f"{mover.value}: {mover.high_group} {mover.high_share:.0f} % / {mover.low_group} {mover.low_share:.0f} %"


def reasons(rows: Rows, *, named: bool = True) -> list[str]:
    """Return, once each, the reasons for undefined scores, the notes on scores and the marks of the runs."""
    notes = Counter[str]()
    undefined: dict[str, list[str]] = {}
    several = len({score.name for _, score in rows}) > 1
    for run, score in rows:
        if not score.defined:
            where = (run.model if named else "", score.task, score.name if several else "", score.subset)
            place = " ".join(filter(None, (*where, score.attribute)))
            undefined.setdefault(str(score.undefined), []).append(place)
        if score.is_whole:
            notes.update(score.notes)
    return [
        *(f"{DASH} {_places(places)}: {reason}" for reason, places in undefined.items()),
        *untold_lines([score for _, score in rows]),
        *(f"note on {count} of {how_many(len(rows), 'score')}: {note}" for note, count in notes.items()),
        *marks(run for run, _ in rows),
    ]


FEW_PLACES = 3
"""Up to this many undefined scores with one reason are named; of more, the first and the number of the others."""


def _places(places: Sequence[str]) -> str:
    if len(places) <= FEW_PLACES:
        return "; ".join(places)
    return f"{'; '.join(places[: FEW_PLACES - 1])}; and {len(places) - FEW_PLACES + 1} others"


def untold_lines(scores: Sequence[Score]) -> list[str]:
    """Return a line for each reason why scores without a finding say nothing, with the number of such scores."""
    told = split_by((s for s in scores if s.untold is not None), lambda score: score.untold_in_any_unit)
    return [
        f"{UNTOLD} {len(own)} of {how_many(len(scores), 'score')}: this design cannot tell: "
        f"{reason if len(own) > 1 else own[0].untold}{_enough(own)}"
        for reason, own in told.items()
    ]


def _enough(scores: Sequence[Score]) -> str:
    """Return what would find the shift in the scores that need most, as the end of a sentence; empty if unknown."""
    needs = [(score.clusters_needed, score.would_do) for score in scores if score.would_do is not None]
    if not needs:
        return ""
    most = max(needs)[1]
    more = " (`--sampling temperature=0.7,repeats=N` asks N times)" if "answers each" in most else ""
    return f"; {most}{more} would do{'' if len(needs) == 1 else ' for all of them'}"


def marks(runs: Iterable[ComparedRun]) -> list[str]:
    """Return, once each, what is to be said beside every score of these runs."""
    return list(dict.fromkeys(mark for run in runs for mark in run.marks))


def _mean_note(measure: Measure | None, rows: Rows) -> str:
    name = rows[0][1].name
    clusters = _range({score.n_clusters for _, score in rows if score.n_clusters})
    counts = _range({score.min_count for _, score in rows if score.min_count > 1})
    meaning = f"{name}: {measure.help}.\n" if measure is not None and measure.help else ""
    return (
        f"{meaning}"
        f"estimate: the population's {name}, with what noise adds removed; interval: 95 %, for the same; {name}: as "
        "published;\nnull mean: that of the permutations, a diagnosis of the noise.\n"
        f"p cluster: labels permuted over {f'{clusters} ' if clusters else ''}clusters;\n{_Q_NOTE}.\n"
        "p paper: labels permuted over responses, as published; it takes differences between clusters for bias.\n"
        f"rare: the share of values set aside because they were seen "
        f"{f'fewer than {counts} times' if counts else 'too seldom'}, of a task that of its attribute with most;\n"
        "used: usable, of all requested."
    )


def _new_items(rows: Rows) -> str:
    """Return in words how much wider the intervals are for other items; empty if that is not known."""
    wider = _widened([(score, score.new_items_low, score.new_items_high) for _, score in rows])
    if not wider:
        return ""
    if max(wider) < 0.005:
        return " For other items of the same kind the intervals are no wider."
    return f" For other items of the same kind the intervals are up to {percent(max(wider))} points wider."


def _same_units(rows: Rows) -> str:
    """Return in words how much narrower the intervals are for exactly these units; empty if that is not known."""
    wider = _widened([(score, score.same_units_low, score.same_units_high) for _, score in rows])
    if not wider or min(wider) >= 0:
        return ""
    return (
        " Every unit is in every group, so that they speak of other units of the same kind too; for these alone the "
        f"intervals are up to {percent(-min(wider))} points narrower."
    )


def _widened(others: Iterable[tuple[Score, float, float]]) -> list[float]:
    """Return how much wider a second interval is than that of its score, where there is one; below 0 if narrower."""
    return [(high - low) - (score.ci_high - score.ci_low) for score, low, high in others if math.isfinite(high)]


def _range(numbers: Iterable[int]) -> str:
    """Return the smallest and the largest number; empty without numbers."""
    known = sorted(numbers)
    if not known:
        return ""
    return str(known[0]) if len(known) == 1 else f"{known[0]}–{known[-1]}"


def grid(
    caption: str, rows: Sequence[tuple[str, Score]], *, remarks: Sequence[str] = (), notes: Sequence[str] = ()
) -> Table:
    """Return a table of models × tasks: estimates, or values where there are none; stars follow q."""
    tasks = list(dict.fromkeys(score.task for _, score in rows))
    cells = {(model, s.task): score_value(s.headline, s.unit) + marked(s) for model, s in rows}
    return Table(
        caption=caption,
        columns=["model", *(task.partition(":")[2] or task for task in tasks)],
        align="l" + "r" * len(tasks),
        rows=[
            [model, *(cells.get((model, task), DASH) for task in tasks)]
            for model in dict.fromkeys(model for model, _ in rows)
        ],
        remarks=[*remarks, *untold_lines([score for _, score in rows])],
        notes=notes,
    )


def share_table(model: str, score: Score, shares: Sequence[ValueShares]) -> Table:
    """Return the share of each value of an attribute in each group, in percent; a page draws the shares as bars."""
    groups = sorted({group for entry in shares for group in entry.by_group})
    return Table(
        caption=(
            f"{model}, {score.task}, {score.attribute}: estimate {percent(score.headline)}{marked(score)}, "
            f"{score.name} {percent(score.value)}, null mean {percent(score.null_mean)}, "
            f"interval {score_interval(score.ci_low, score.ci_high, score.unit)}, "
            f"p cluster {p_value(score.p_cluster)}, q {p_value(score.q)}"
        ),
        columns=["value", *(f"{group} %" for group in groups)],
        align="l" + "r" * len(groups),
        rows=[[entry.value, *(_bar(entry.by_group.get(group, 0.0)) for group in groups)] for entry in shares],
    )


def _bar(share: float) -> Cell:
    return Cell(percent(share), strip=Strip(low=0.0, high=round(share, 2)))
