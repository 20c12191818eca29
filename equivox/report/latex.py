"""A comparison as LaTeX tables in the manner of the papers (booktabs); nothing from a run is a command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

import equivox
from equivox.compare.pairs import PairedTest
from equivox.compare.ranking import Judged, Standing
from equivox.compare.runs import Comparison, TaskCorrelation, task_correlations
from equivox.core.scores import Score
from equivox.report.judged_cells import (
    COHORT_LEGEND,
    RANK_COLUMNS,
    RANKS_LEGEND,
    TEST_COLUMNS,
    TESTS_LEGEND,
    cohort_cells,
    cohort_notes,
    correlation_cells,
    in_order,
    rank_cells,
    tested_cells,
)
from equivox.report.numbers import DASH, score_value, stars

_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "{-}",
    "—": "---",
    "–": "--",
    "−": r"\ensuremath{-}",
    "×": r"\ensuremath{\times}",
    "τ": r"\ensuremath{\tau}",
}
"""What LaTeX reads as more than the sign itself: two hyphens as a dash, a bracket or star after a row as its own."""
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")


def tex(text: str) -> str:
    r"""Return `text` as LaTeX that prints it: no sign of it acts, breaks a line or ends a table.

    >>> print(tex(r"50 % \input{x} a_b $1"))
    50 \% \textbackslash{}input\{x\} a\_b \$1
    """
    plain = _MINUS.sub("−", " ".join(text.split()))
    return "".join(_SIGNS.get(sign, sign) for sign in plain if sign.isprintable())


_PAGE = 40


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of texts: `align` in LaTeX's letters, a rule after each row in `rules` (counted from 1)."""

    caption: str
    header: Sequence[str]
    align: str
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    rules: frozenset[int] = frozenset()

    @property
    def is_long(self) -> bool:
        """Whether it needs more than a page."""
        return len(self.rows) > _PAGE


def latex_tables(comparison: Comparison, judged: Judged) -> dict[str, str]:
    """Return the tables of a comparison by file name: scores, correlations, ranks, paired tests, total bias scores.

    A table without rows has no file.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        block_start_string="((*", block_end_string="*))", variable_start_string="((", variable_end_string="))",
        comment_start_string="((#", comment_end_string="#))", trim_blocks=True, autoescape=False,
        undefined=StrictUndefined,
    )  # fmt: skip
    environment.filters["tex"] = tex
    template = environment.from_string(resources.files(__package__).joinpath("tables.tex.j2").read_text("utf-8"))
    tables = {
        "scores": _scores(comparison),
        "correlations": _correlations(task_correlations(comparison)),
        "ranks": _ranks(judged.standings),
        "paired_tests": _tests(judged.tests),
        "cohort": _cohort(judged),
    }
    found = {}
    for name, parts in tables.items():
        texts = [template.render(table=table, version=equivox.__version__) for table in parts if table.rows]
        if texts:
            found[name] = "\n".join(texts) + "\n"
    return found


_STARS = "* p < 0.05, ** p < 0.001, labels moved between clusters."


def _scores(comparison: Comparison) -> Iterator[Table]:
    """Yield models × tasks for each metric, dimension and condition."""
    whole = [(model, s) for model, s in comparison.scores() if s.is_whole and s.role == "outcome"]
    for name, dimension, condition in dict.fromkeys((s.name, s.dimension, s.condition) for _, s in whole):
        rows = [(model, s) for model, s in whole if (s.name, s.dimension, s.condition) == (name, dimension, condition)]
        tasks = list(dict.fromkeys(score.task for _, score in rows))
        cells = {(model, score.task): score for model, score in rows}
        reasons = [f"{DASH} {model}, {s.task}: {s.undefined}." for model, s in rows if not s.defined]
        unit = rows[0][1].unit
        yield Table(
            caption=f"{name} ({unit}), {dimension}, condition {condition}. 0 means: {rows[0][1].zero_means}.",
            header=["model", *(task.partition(":")[2] or task for task in tasks)],
            align="l" + "r" * len(tasks),
            rows=[
                [model, *(_cell(cells.get((model, task))) for task in tasks)]
                for model in dict.fromkeys(model for model, _ in rows)
            ],
            notes=[_STARS, *reasons],
        )


def _cell(score: Score | None) -> str:
    return DASH if score is None else score_value(score.value, score.unit) + stars(score.p_cluster)


def _correlations(found: Sequence[TaskCorrelation]) -> Iterator[Table]:
    for dimension, condition in dict.fromkeys((c.dimension, c.condition) for c in found):
        pairs = [c for c in found if (c.dimension, c.condition) == (dimension, condition)]
        yield Table(
            caption=f"Pearson's r of the tasks' nTVD over models, {dimension}, condition {condition}.",
            header=("task", "task", "models", "r", "95 % interval", "p", "q", "r of excess"),
            align="llrrrrrr",
            rows=[[c.first, c.second, *correlation_cells(c)] for c in pairs],
            notes=list(dict.fromkeys(f"{c.undefined}." for c in pairs if c.undefined)),
        )


def _ranks(standings: Sequence[Standing]) -> Iterator[Table]:
    for family, condition, dimension in dict.fromkeys((s.family, s.condition, s.dimension) for s in standings):
        own = [s for s in standings if (s.family, s.condition, s.dimension) == (family, condition, dimension)]
        rows, rules = [], set()
        for task, metric in dict.fromkeys((s.task, s.metric) for s in own):
            members = in_order([s for s in own if (s.task, s.metric) == (task, metric)])
            rows += [[task, metric, standing.model, *rank_cells(standing)] for standing in members]
            rules.add(len(rows))
        reasons = [f"{DASH} {s.model}, {s.task}, {s.metric}: {s.undefined}." for s in own if s.undefined]
        yield Table(
            caption=f"Places of the models, the first nearest to no bias: {family}, {dimension}, condition {condition}.",
            header=("task", "metric", "model", *RANK_COLUMNS),
            align="lllrrrl",
            rows=rows,
            rules=frozenset(rules),
            notes=[RANKS_LEGEND, *reasons],
        )


def _tests(tests: Sequence[PairedTest]) -> Iterator[Table]:
    for metric, condition in dict.fromkeys((test.metric, test.condition) for test in tests):
        own = [test for test in tests if (test.metric, test.condition) == (metric, condition)]
        reasons = dict.fromkeys(
            f"{DASH} {t.model_a} and {t.model_b}, {t.task}: {t.undefined}." for t in own if t.undefined
        )
        yield Table(
            caption=f"Models two by two on the items that both answered: {metric}, condition {condition}.",
            header=("task", "a", "b", *TEST_COLUMNS),
            align="lll" + "r" * len(TEST_COLUMNS),
            rows=[[t.task, t.model_a, t.model_b, *tested_cells(t)] for t in own if t.undefined is None],
            notes=[TESTS_LEGEND, *reasons],
        )


def _cohort(judged: Judged) -> Iterator[Table]:
    for cohort in dict.fromkeys(score.cohort for score in judged.cohorts):
        own = [score for score in judged.cohorts if score.cohort == cohort]
        metrics = list(own[0].parts)
        yield Table(
            caption=f"Total bias score (TBS), {own[0].family}; cohort: {cohort}.",
            header=("model", "TBS", "95 % interval", *metrics),
            align="lrr" + "r" * len(metrics),
            rows=[[score.model, *cohort_cells(score)] for score in own],
            notes=[COHORT_LEGEND, *cohort_notes(own)],
        )
