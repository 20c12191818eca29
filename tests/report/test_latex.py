"""Tables for LaTeX: a comparison's numbers, and names from runs that stay names."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_scores import SUBJECT, made_score

from equivox.compare.pairs import PairedTest
from equivox.compare.ranking import Judged, Rank
from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.metric import CohortScore
from equivox.metrics.ntvd.metric import METRIC
from equivox.report.details import list_comparison_tables, list_score_grids, make_comparison_frames
from equivox.report.table import as_latex, tex

HOSTILE = (
    r"\input{/etc/passwd}",
    r"\write18{ls} & b \\ c % d",
    "[5cm] *evil* #1 $x^2$ ~a_b",
    r"\end{tabular}\end{table}^^5cinput",
    "\"quotes\" 'and' `ticks` <x> | --- é",
    "new\nline\ttab\x00nul\x1b[31m",
)

PRINTED = {
    r"\textbackslash{}": "\\", r"\{": "{", r"\}": "}", r"\$": "$", r"\&": "&", r"\#": "#", r"\%": "%", r"\_": "_",
    r"\textasciicircum{}": "^", r"\textasciitilde{}": "~", r"\textless{}": "<", r"\textgreater{}": ">",
    r"\textbar{}": "|", r"\char34{}": '"', r"\textquotesingle{}": "'", r"\textasciigrave{}": "`", "{-}": "-",
    "{[}": "[", "{]}": "]", "{*}": "*", "---": "—", "--": "–", r"\ensuremath{-}": "−", r"\ensuremath{\times}": "×",
    r"\ensuremath{\tau}": "τ",
}  # fmt: skip
TOKEN = re.compile("|".join(map(re.escape, sorted(PRINTED, key=len, reverse=True))) + r"|[^\\{}$&#%_^~\[\]*\-\"'`<>|]")


def printed(source: str) -> str:
    """Return what LaTeX prints for `source`; fails where anything in it acts."""
    found, place = [], 0
    while place < len(source):
        match = TOKEN.match(source, place)
        assert match, f"acts: {source[place:]!r}"
        found.append(PRINTED.get(match[0], match[0]))
        place = match.end()
    return "".join(found)


@given(st.text(alphabet=st.one_of(st.sampled_from("\\{}$&#%_^~<>|\"'`-[]*"), st.characters(codec="utf-8"))))
def test_no_text_acts(text: str) -> None:
    plain = "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
    assert printed(tex(text)).replace("−", "-") == plain.replace("−", "-")


def comparison(tasks: int = 2) -> tuple[Comparison, Judged]:
    runs, tests, standings, cohorts = [], [], [], []
    for number, model in enumerate(HOSTILE):
        scores = [
            made_score(
                task=f"family:{HOSTILE[(number + shift) % 6]}", condition=r"\condition", dimension="100 %",
                value=float(number), p=0.01, undefined_reason=r"no \reason_ at all" if number == 3 else None,
            )
            for shift in range(tasks)
        ]  # fmt: skip
        runs.append(ComparedRun(model, Path("x"), "rules", scores, {"family": METRIC}))
        vars(runs[-1])["value_shares"] = []  # nothing of these runs is on the disk
        common = SUBJECT | {"dimension": "100 %", "condition": "a", "family": "f_f", "task": model}
        for _ in range(9):
            tests.append(
                PairedTest(**common, model_a=model, model_b=model, difference=-1.5, further=-1.5, p=0.0001, q=0.0004)
            )
        tests.append(PairedTest(**common, model_a=model, model_b=model, undefined=r"\bad & worse"))
        standings.append(Rank(**common, model=model, distance=1.0, rank=1, low=1, high=2))
        cohorts.append(
            CohortScore(family="f", condition="a", cohort=model, members=(model,), model=model, parts={"M1": 1.0})
        )
    return Comparison(runs, []), Judged(tests, standings, cohorts)


def latex_tables(compared: Comparison, judged: Judged) -> dict[str, str]:
    frames = make_comparison_frames(compared, judged)
    tables = {"scores": list_score_grids(compared.runs), **list_comparison_tables(frames, details=True)}
    return {name: text for name, shown in tables.items() if (text := as_latex(shown))}


def test_the_tables_hold_the_numbers() -> None:
    found = latex_tables(*comparison(tasks=6))
    assert set(found) == {"scores", "ranks", "paired_tests", "cohort", "correlations"}
    assert r"\ensuremath{-}1.50" in found["paired_tests"]
    assert "1 to 2" in found["ranks"]
    # 54 rows do not fit on a page, 6 do.
    assert r"\begin{longtable}" in found["paired_tests"] and r"\begin{tabular}" in found["ranks"]
    for text in found.values():
        assert r"\input" not in text and r"\write" not in text
        assert text.count(r"\begin{table}") == text.count(r"\end{table}")
        for line in text.splitlines():
            if line.endswith(r" \\"):
                assert re.match(r"[^\[*]", line)


def test_a_comparison_of_one_model_has_scores_alone() -> None:
    alone, _ = comparison()
    found = latex_tables(Comparison(alone.runs[:1], []), Judged((), (), ()))
    assert set(found) == {"scores"}
    assert latex_tables(Comparison([], []), Judged((), (), ())) == {}


def test_an_undefined_score_is_a_dash_with_its_reason() -> None:
    text = latex_tables(*comparison())["scores"]
    assert "--- & ---" in text
    assert r"no \textbackslash{}reason\_ at all" in text
    assert "nan" not in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX: pdflatex is not installed")
def test_it_compiles(tmp_path: Path) -> None:
    found = latex_tables(*comparison())
    for name, text in found.items():
        (tmp_path / f"{name}.tex").write_text(text, "utf-8")
    head = r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}"
    body = "\n".join(rf"\input{{{name}}}" for name in found)
    (tmp_path / "all.tex").write_text(f"{head}\n{body}\n\\end{{document}}\n", "utf-8")
    command = ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
