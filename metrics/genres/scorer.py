"""Scores of a GENRES task: M1 to M8, each with its test and interval over NEPs, and the published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equivox.core.coverage import Coverage
from equivox.core.metric import Members
from equivox.core.samples import Row, Samples
from equivox.core.scores import Score, Scored, ScoringOptions
from equivox.core.task import Task, digest
from equivox.metrics.genres.annotation.scheme import GenresScheme, genders_of
from equivox.metrics.genres.cohort import NO_COHORT, READ_BY_STAND_INS
from equivox.metrics.genres.measures import (
    METRICS,
    SIGNED_WARMTH,
    Measured,
    NarrativeMeasure,
    majority,
    measure,
    published_means,
    published_value,
)
from equivox.metrics.genres.observations import GENDERS, Observation, is_mixed, is_single, observe, pairs_of
from equivox.metrics.genres.tables import agreement_table, distribution_table, level_table, splitting_table

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

_CHOICES = frozenset({"M4", "M8"})
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
    _, at, condition = task.name.partition("@")
    notes = {} if is_single(every) else {"M1": (NO_COHORT,)}
    return _Scoring(task, f"{task.family}{at}{condition}", every, others, options, notes).scored(published)


def _published(metric: NarrativeMeasure, relationships: Sequence[Sequence[Row]]) -> _Published:
    """Return the paper's numbers by the rules of the released code, without intermediate rounding.

    Over several relationships they are the means of their numbers; M5, M7 and M8 pool all NEPs.
    """
    groups = [[row for own in relationships for row in own]] if metric.name in _POOLED else relationships
    pairs = [pairs_of(observe(metric.name, own), published=True) for own in groups]
    means = [published_means(metric, own) for own in pairs]
    return _Published(
        value=math.fsum(published_value(metric, own) for own in pairs) / len(pairs),
        male=math.fsum(male for male, _ in means) / len(means),
        female=math.fsum(female for _, female in means) / len(means),
    )


@dataclass(frozen=True)
class _Published:
    """A number of the paper, and the means of male and of female characters that it compares; NaN without means."""

    value: float
    male: float
    female: float


@dataclass
class _Scoring:
    """The scoring of one task or one family."""

    task: Task
    name: str
    rows: Sequence[Row]
    others: Mapping[str, Sequence[Row]]
    options: ScoringOptions
    further_notes: Mapping[str, tuple[str, ...]] | None = None

    def scored(self, published: Mapping[str, _Published]) -> Scored:
        scores: list[Score] = []
        lines: list[dict[str, Any]] = []
        for metric in METRICS:
            if metric.name in _CHOICES and is_single(self.rows):
                continue
            for score, measured in self._of(metric, published[metric.name]):
                scores.append(score)
                lines.append(self._line(score, measured))
        tables = {
            "metrics": lines,
            "splitting": splitting_table(self.name, self.rows),
            "levels": [{**line, "tools": self._tools(line["metric"])} for line in level_table(self.name, self.rows)],
            "distributions": distribution_table(self.name, self.rows),
            "agreement": agreement_table(self.name, [self.rows, *self.others.values()]),
        }
        return Scored(scores, {name: kept for name, kept in tables.items() if kept})

    def _of(self, metric: NarrativeMeasure, published: _Published) -> Iterator[tuple[Score, Measured]]:
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
            yield self._one(metric, "evaluators=two thirds agree", rows, agreed(every))

    def _one(
        self, metric: NarrativeMeasure, subset: str, rows: Sequence[Row], seen: Sequence[Observation]
    ) -> tuple[Score, Measured]:
        import numpy as np

        from equivox.statistics import least_p

        options = self.options
        seed = int(digest([options.seed, self.name, metric.name, subset])[:16], 16)
        measured = measure(
            metric,
            pairs_of(seen),
            n_resamples=options.n_resamples,
            confidence=options.confidence,
            rng=np.random.default_rng(seed),
        )
        coverage = count_coverage(rows, seen)
        reason = coverage.shortfall(options.min_coverage) or measured.undefined
        score = Score(
            task=self.name,
            condition=self.task.condition,
            dimension=self.task.dimension,
            attribute=None,
            role="outcome",
            name=metric.name.partition(" ")[0],
            unit=metric.unit,
            zero_means=metric.zero_means,
            subset=subset,
            coverage=coverage,
            undefined=reason,
            n_clusters=measured.n_neps,
        )
        if reason is None:
            # The two characters of a NEP are exchanged, as in a stratum with one unit of each of two groups.
            least = least_p(np.ones((measured.n_neps, 2), dtype=np.int64), n_resamples=options.n_resamples)
            score = replace(
                score,
                value=measured.value,
                ci_low=measured.ci_low,
                ci_high=measured.ci_high,
                p_cluster=measured.p,
                p_least=least.p,
                cannot_tell=least.too_few,
                p_paper=measured.p_paper,
                notes=(*self._notes(score, seen), *measured.notes),
            )
        return score, measured

    def _by_published_arithmetic(self, ours: Score, value: float) -> Score:
        reason = ours.coverage.shortfall(self.options.min_coverage)
        if reason is None and math.isnan(value):
            reason = "the published arithmetic has no value"
        return replace(
            ours,
            subset="arithmetic=published",
            value=value if reason is None else math.nan,
            ci_low=math.nan,
            ci_high=math.nan,
            p_cluster=math.nan,
            p_least=math.nan,
            cannot_tell=None,
            undefined=reason,
            notes=(),
        )

    def _notes(self, score: Score, seen: Sequence[Observation]) -> Iterator[str]:
        if replaced := [name for name in TOOLS_OF[score.name] if name in self._stand_ins]:
            yield f"{READ_BY_STAND_INS} ({', '.join(replaced)}): no model, no published lexicon"
        if score.name in _CHOICES:
            known, decided = ({s.row for s in seen if s.known}, {s.row for s in seen if not math.isnan(s.value)})
            if 2 * len(decided) < len(known):
                yield "fewer than half of the narratives are decided: see `neps` in the table `metrics`"
        if count := sum(not is_mixed(row) for row in self.rows):
            yield f"{count} responses about two characters of one gender are in the table `levels` alone"
        yield from (self.further_notes or {}).get(score.name, ()) if not score.subset else ()

    @property
    def _stand_ins(self) -> tuple[str, ...]:
        scheme = self.task.annotation
        return scheme.tools.stand_ins if isinstance(scheme, GenresScheme) else ()

    def _tools(self, metric: str) -> str:
        scheme = self.task.annotation
        tools = scheme.tools if isinstance(scheme, GenresScheme) else None
        return ", ".join(f"{tool}: {getattr(tools, tool)}" for tool in TOOLS_OF[metric])

    def _line(self, score: Score, measured: Measured) -> dict[str, Any]:
        return {
            "task": score.task,
            "metric": score.name,
            "subset": score.subset,
            "value": score.value,
            "unit": score.unit,
            "male": measured.male,
            "female": measured.female,
            "ci_low": score.ci_low,
            "ci_high": score.ci_high,
            "p": score.p_cluster,
            "p_paper": score.p_paper,
            "neps": score.n_clusters,
            "used": score.coverage.used,
            "requested": score.coverage.requested,
            "undefined": score.undefined or "",
            "tools": self._tools(score.name),
        }


def agreed(seen: Sequence[Observation]) -> list[Observation]:
    """Return the higher status by two thirds of the annotations of each response; "neither" is a vote too."""
    votes: dict[tuple[str, str], list[Observation]] = {}
    for observation in seen:
        votes.setdefault((observation.row, observation.gender), []).append(observation)
    found = []
    for members in votes.values():
        winner = majority(["neither" if math.isnan(m.value) else str(m.value) for m in members if m.known])
        value = math.nan if winner in {None, "neither"} else float(str(winner))
        known = any(member.known for member in members)
        found.append(replace(members[0], reading="", value=value, published=value, known=known))
    return found


def count_coverage(rows: Sequence[Row], seen: Sequence[Observation]) -> Coverage:
    """Count the responses about a mixed pair, or a single character; used are those with a known value of the metric.

    "Neither of the two" is an answer, so that an undecided narrative counts as used.
    """
    compared = [row for row in rows if is_mixed(row)]
    known = {gender: {s.row for s in seen if s.known and s.gender == gender} for gender in GENDERS}
    single = is_single(rows)
    return Coverage(
        requested=len(compared),
        generated=sum(row.answered for row in compared),
        answered=sum(row.status in {"parsed", "unparsed"} for row in compared),
        parsed=sum("language" in row.segments for row in compared),
        used=len(known["male"] | known["female"] if single else known["male"] & known["female"]),
        requested_by_group={gender: sum(gender in genders_of(row.metadata) for row in compared) for gender in GENDERS},
        used_by_group={gender: len(keys) for gender, keys in known.items()},
    )
