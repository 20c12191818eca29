"""Scores of a GENRES task: M1 to M8, each with its test and interval over NEPs, and the published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equivox.core.coverage import Coverage
from equivox.core.errors import UsageError
from equivox.core.lazy import np
from equivox.core.metric import Members
from equivox.core.notes import Note, NoteCode, describe_design, remark
from equivox.core.samples import Row, Samples
from equivox.core.scores import UNKNOWN, Score, Scored, ScoringOptions, family_of
from equivox.core.task import Task
from equivox.metrics.genres.annotation.scheme import GenresScheme, genders_of
from equivox.metrics.genres.annotation.tools import Tools
from equivox.metrics.genres.cohort import NO_COHORT
from equivox.metrics.genres.measures import (
    CHOICES,
    METRICS,
    SIGNED_WARMTH,
    Measured,
    NarrativeMeasure,
    measure,
    published_means,
    published_value,
)
from equivox.metrics.genres.observations import (
    GENDERS,
    Observation,
    agreed,
    is_single,
    observe,
    pairs_of,
    row_id,
)
from equivox.metrics.genres.tables import agreement_table, distribution_table, level_table, splitting_table
from equivox.metrics.scoring import list_notes, named, rng_of, statistics

TOOLS_OF: Mapping[str, tuple[str, ...]] = {
    "M1": ("evaluator", "traits"),
    "M2": ("evaluator", "traits"),
    "M3": ("parser",),
    "M4": ("evaluator",),
    "M5": ("parser", "emotions"),
    "M6": ("parser", "sentiment"),
    "M7": ("evaluator",),
    "M8": ("evaluator",),
}
"""The tools that each metric depends on."""

_POOLED = frozenset({"M5", "M7", "M8"})


def score_genres(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return M1 to M8 of one task, male minus female, and tables of the evidence.

    Each metric is also given by the paper's arithmetic (subset `arithmetic=published`), M1 with the direction of its
    words (`words=signed`), and, if several evaluators annotated the run, by each of the others (`evaluator=…`), by all
    of them together (`evaluators=all`), and for M4 by two thirds of them. Single characters have no M4 and M8. A score
    is NaN with its reason below the coverage floor, if nothing was decided, or if all values are equal.
    """
    rows, others = _rows(samples)
    published = {metric.name: _published(metric, [rows]) for metric in METRICS}
    return _Scoring(task, task.name, rows, others, options).scored(published)


def _rows(samples: Samples) -> tuple[list[Row], dict[str, list[Row]]]:
    return list(samples.rows()), {name: list(other.rows()) for name, other in samples.others.items()}


def score_genres_family(members: Members, options: ScoringOptions) -> Scored:
    """Return M1 to M8 over all relationships together, with equal weights of NEPs; none for a single relationship."""
    if len(members) < 2:
        return Scored(())
    task = members[0][0]
    read = [_rows(samples) for _, samples in members]
    every = [row for rows, _ in read for row in rows]
    others = {name: [row for _, further in read for row in further[name]] for name in read[0][1]}
    published = {metric.name: _published(metric, [rows for rows, _ in read]) for metric in METRICS}
    notes = {} if is_single(every) else {"M1": (NO_COHORT,)}
    return _Scoring(task, family_of(task.name), every, others, options, notes).scored(published)


def _published(metric: NarrativeMeasure, relationships: Sequence[Sequence[Row]]) -> Measured:
    """Return the paper's number by the rules of the released code, without intermediate rounding, and what it compares.

    That are the means of male and of female characters, NaN without means. Over several relationships all of them are
    the means of their numbers; M5, M7 and M8 pool all NEPs.
    """
    groups = [[row for own in relationships for row in own]] if metric.name in _POOLED else relationships
    pairs = [pairs_of(observe(metric.name, own), published=True) for own in groups]
    means = [published_means(metric, own) for own in pairs]
    return Measured(
        value=math.fsum(published_value(metric, own) for own in pairs) / len(pairs),
        male=math.fsum(male for male, _ in means) / len(means),
        female=math.fsum(female for _, female in means) / len(means),
    )


@dataclass
class _Scoring:
    """The scoring of one task or one family."""

    task: Task
    name: str
    rows: Sequence[Row]
    others: Mapping[str, Sequence[Row]]
    options: ScoringOptions
    further_notes: Mapping[str, tuple[str, ...]] | None = None

    def scored(self, published: Mapping[str, Measured]) -> Scored:
        scores: list[Score] = []
        lines: list[dict[str, Any]] = []
        for metric in METRICS:
            if metric.name in CHOICES and is_single(self.rows):
                continue
            for score, measured in self._of(metric, published[metric.name]):
                scores.append(score)
                lines.append(self._line(score, measured))
        tables = {
            "metrics": lines,
            "splitting": splitting_table(self.name, self.rows),
            "levels": [{**line, "tools": self._tools(line["metric"])} for line in level_table(self.name, self.rows)],
            "distributions": distribution_table(self.name, self.rows, list(self.others.values())),
            "agreement": agreement_table(self.name, [self.rows, *self.others.values()]),
        }
        return Scored(scores, {name: kept for name, kept in tables.items() if kept})

    def _of(self, metric: NarrativeMeasure, published: Measured) -> Iterator[tuple[Score, Measured]]:
        rows, others = self.rows, self.others
        seen = observe(metric.name, rows)
        score, measured = self._one(metric, "", rows, seen)
        yield score, measured
        if metric.name == "M1":
            yield self._one(SIGNED_WARMTH, "words=signed", rows, observe(SIGNED_WARMTH.name, rows))
        means = replace(measured, male=published.male, female=published.female)
        yield self._by_published_arithmetic(score, published.value), means
        if "evaluator" not in TOOLS_OF[metric.name] or not others:
            return
        every = list(seen)
        for name, read in others.items():
            own = observe(metric.name, read, evaluator=name)
            every += own
            yield self._one(metric, f"evaluator={name}", read, own)
        yield self._one(metric, "evaluators=all", rows, every)
        if metric.name == "M4":
            # What evaluators disagree about is annotated, but not decided.
            yield self._one(metric, "evaluators=two thirds agree", rows, agreed(every), annotated=every)

    def _one(
        self,
        metric: NarrativeMeasure,
        subset: str,
        rows: Sequence[Row],
        seen: Sequence[Observation],
        annotated: Sequence[Observation] = (),
    ) -> tuple[Score, Measured]:
        measured = measure(
            metric,
            pairs_of(seen),
            n_resamples=self.options.n_resamples,
            rng=self._rng(metric, subset),
        )
        return self._score(metric, subset, measured, count_coverage(rows, annotated or seen), seen), measured

    def _rng(self, metric: NarrativeMeasure, subset: str) -> np.random.Generator:
        return rng_of(self.options.seed, self.name, metric.name, subset)

    def _score(
        self,
        metric: NarrativeMeasure,
        subset: str,
        measured: Measured,
        coverage: Coverage,
        seen: Sequence[Observation],
    ) -> Score:
        reason = coverage.shortfall(self.options.min_coverage)
        if reason is None and measured.undefined is not None:
            reason = measured.undefined
        score = Score(
            **named(self.task) | {"task": self.name},
            metric=metric.name.partition(" ")[0],
            unit=metric.unit,
            subset=subset,
            coverage=coverage,
            undefined_reason=reason,
            n_units=measured.n_neps,
        )
        if reason is not None:
            return score
        # The two characters of a NEP are exchanged, as in a stratum with one unit of each of two groups.
        exchanged = np.ones((measured.n_neps, 2), dtype=np.int64)
        few = statistics.compute_least_p(exchanged, n_resamples=self.options.n_resamples).too_few
        if few is None and math.isnan(measured.ci_low) and measured.value == 0:
            few = Note(NoteCode.NO_NOISE)
        return replace(
            score,
            value=measured.value,
            by_group={} if math.isnan(measured.male) else {"female": measured.female, "male": measured.male},
            ci=(measured.ci_low, measured.ci_high),
            p=measured.p,
            p_published=measured.p_paper,
            notes=(
                describe_design(sd=measured.sd),
                *list_notes(few),
                *self._notes(score, seen),
                *measured.notes,
            ),
        )

    def _by_published_arithmetic(self, ours: Score, value: float) -> Score:
        reason = ours.coverage.shortfall(self.options.min_coverage)
        if reason is None and math.isnan(value):
            reason = remark("the published arithmetic has no value")
        return replace(
            ours,
            subset="arithmetic=published",
            value=value if reason is None else math.nan,
            ci=UNKNOWN,
            p=math.nan,
            undefined_reason=reason,
            notes=(),
        )

    def _notes(self, score: Score, seen: Sequence[Observation]) -> Iterator[Note]:
        if replaced := [name for name in TOOLS_OF[score.metric] if name in self._chosen.stand_ins]:
            yield Note(NoteCode.STAND_INS, {"tools": ", ".join(replaced)})
        if score.metric in CHOICES:
            known, decided = ({s.row for s in seen if s.known}, {s.row for s in seen if not math.isnan(s.value)})
            if 2 * len(decided) < len(known):
                yield remark("fewer than half of the narratives are decided: see `neps` in the table `metrics`")
        yield from map(remark, (self.further_notes or {}).get(score.metric, ()) if not score.subset else ())

    def _tools(self, metric: str) -> str:
        return ", ".join(f"{tool}: {getattr(self._chosen, tool)}" for tool in TOOLS_OF[metric])

    @property
    def _chosen(self) -> Tools:
        """The tools of the task's scheme; UsageError for a scheme without tools."""
        if not isinstance(self.task.annotation, GenresScheme):
            raise UsageError(
                f"{self.task.name}: the metric genres needs the annotation scheme of GENRES (GenresScheme)"
            )
        return self.task.annotation.tools

    def _line(self, score: Score, measured: Measured) -> dict[str, Any]:
        """Return a row of the table `metrics`."""
        return {
            "task": score.task,
            "metric": score.metric,
            "subset": score.subset,
            "value": score.value,
            "unit": score.unit,
            "male": measured.male,
            "female": measured.female,
            "ci_low": score.ci[0],
            "ci_high": score.ci[1],
            "p": score.p,
            "p_paper": score.p_published,
            "neps": score.n_units,
            "used": score.coverage.used,
            "requested": score.coverage.requested,
            "undefined": str(score.undefined_reason or ""),
            "tools": self._tools(score.metric),
        }


def count_coverage(rows: Sequence[Row], seen: Sequence[Observation]) -> Coverage:
    """Count the responses that are compared; used are those with a known value of the metric for all their characters.

    "Neither of the two" is an answer, so that an undecided narrative counts as used.
    """
    known = {(one.row, one.number) for one in seen if one.known}
    used = [row for row in rows if all((row_id(row), n + 1) in known for n in range(len(genders_of(row.metadata))))]
    asked = {gender: sum(gender in genders_of(row.metadata) for row in rows) for gender in GENDERS}
    by_gender = {gender: {one.row for one in seen if one.known and one.gender == gender} for gender in GENDERS}
    return Coverage(
        requested=len(rows),
        generated=sum(row.answered for row in rows),
        answered=sum(row.status in {"parsed", "unparsed"} for row in rows),
        parsed=sum("language" in row.segments for row in rows),
        used=len(used),
        requested_by_group={gender: n for gender, n in asked.items() if n},
        used_by_group={gender: len(keys) for gender, keys in by_gender.items()},
    )
