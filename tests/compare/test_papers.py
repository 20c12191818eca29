"""The papers' tables: the numbers as printed, and the same tables from hand-made runs."""

from __future__ import annotations

import io
import math
import re
import shutil
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import Cli, csv_rows
from made_scores import made_score
from rich.console import Console
from sample_runs import sample_run, sample_runs
from scipy.stats import t as student_t

import equivox
from equivox.compare.paper_runs import compare_corpus, read_score
from equivox.compare.papers import FilledTable, TableRun, fill_tables
from equivox.configs import read_config_file
from equivox.configs.published import PublishedPaper, Source, published_names, published_paper
from equivox.core.errors import UsageError
from equivox.core.fields import checked_form
from equivox.core.files import read_document, write_document
from equivox.core.notes import Note, NoteCode, remark
from equivox.core.scores import NAN, Score, ScoringOptions, family_of
from equivox.core.yaml_files import load_yaml
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import ModelFile, model_names
from equivox.metrics.genres.cohort import published_cohorts
from equivox.report.notes import write_note
from equivox.report.papers import cell_tables, draw_table, format_cell, paper_table, write_tables
from equivox.report.table import print_tables
from equivox.run.run_files import open_run_file, settings_of
from equivox.run.scoring import read_records, read_scores
from equivox.tasks.registry import resolve_tasks

ROOT = Path(__file__).resolve().parents[2]
QUICK = ScoringOptions(n_resamples=99)
PUBLISHED = "arithmetic=published"
EVALUATORS = ("llama-3.1-8b-instruct", "glm-4-9b-chat", "mistral-small-24b-instruct")


def cells_of(table: FilledTable) -> list[Any]:
    return list(table.cells.itertuples())


def cell_of(tables: list[FilledTable], name: str, block: str, row: str, column: str) -> Any:
    (table,) = (table for table in tables if table.declared.name == name)
    (found,) = (c for c in cells_of(table) if (c.block, c.row, c.column) == (block, row, column))
    return found


def numbers(paper: str, table: str, what: str = "published") -> dict[tuple[str, str, str], float | None]:
    """The printed numbers of a table, or its `stars` or `p`, by block, row and column."""
    (found,) = (t for t in published_paper(paper).tables if t.name == table)
    return {
        (block.label, row, column): number
        for block in found.blocks
        for row, own in getattr(block, what).items()
        for column, number in (own.items() if isinstance(own, Mapping) else zip(found.columns, own, strict=True))
    }


# The numbers


@pytest.fixture
def printed(reference_data: Path) -> Callable[[str], list[dict[str, str]]]:
    return lambda name: csv_rows(reference_data / name)


@pytest.mark.paper
def test_vibe_as_printed(printed: Callable[[str], list[dict[str, str]]]) -> None:
    columns = {f"{name}.": (name, f"{name}_stars") for name in ("Adv", "Cast", "Shop", "Cand")}
    columns |= {"Story": ("Story", "Story_stars"), "VIBE Story": ("vibe_story_nTVD_gender", "vibe_stars")}
    columns |= {"Spoken Stereoset": ("spoken_stereoset_2x_abs_50_minus_slbs", "sss_stars")}
    for name, n in (("table_1", 2 * 11 * 5), ("table_2", 10 * 2)):
        rows = {
            (row.get("dimension", ""), row["model"]): row for row in printed(f"vibe/vibe_{name.replace('_', '')}.csv")
        }
        for what, place in (("published", 0), ("stars", 1)):
            found = numbers("vibe", name, what)
            assert found == {key: float(rows[key[:2]][columns[key[2]][place]]) for key in found}
            assert len(found) == n


@pytest.mark.paper
def test_spoken_stereoset_as_printed(printed: Callable[[str], list[dict[str, str]]]) -> None:
    columns, rows = ("slifs", "slms", "slbs"), printed("spoken_stereoset/table3_counts.csv")
    expected: dict[tuple[str, str, str], float | None] = {
        (r["domain"], r["model"], name): float(r[name]) for r in rows for name in columns
    }
    for row, own in (("Oracle", (100, 100, 50)), ("Biased", (None, None, 100)), ("Random", (None, 66.67, 50))):
        for domain in ("gender", "age"):
            expected |= {(domain, f"{row} baseline", name): n for name, n in zip(columns, own, strict=True)}
    assert numbers("spoken_stereoset", "table_3") == expected
    assert len(numbers("spoken_stereoset", "table_4")) == len(expected) == 24 + 18


@pytest.mark.paper
def test_genres_as_printed(printed: Callable[[str], list[dict[str, str]]]) -> None:
    for file, table in (
        ("genres/genres_table3_12_subjects.csv", "tables_3_and_12"),
        ("genres/genres_table4_13_positive_ratio.csv", "tables_4_and_13"),
    ):
        rows = printed(file)
        expected = {(r["model"], r["relationship"], who): float(r[who]) for r in rows for who in ("male", "female")}
        found = numbers("genres", table)
        assert {place: number for place, number in found.items() if place[2] != "Δ"} == expected and len(expected) == 60
        # Δ is printed as a magnitude, rounded from numbers with more places: within 0.01 of the printed difference.
        for (block, row, column), number in found.items():
            if column == "Δ":
                assert number == pytest.approx(found[block, row, "male"] - found[block, row, "female"], abs=0.0101)
    found = numbers("genres", "table_2")
    checked = 0
    for row in printed("genres/table2_llama_glm.csv"):
        (block,) = {key[0] for key in found if key[0].startswith(row["evaluator"][:3])}
        for name in ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "TBS"):
            assert found[block, row["model"], name] == float(row[name])
            checked += 1
    assert checked == 108 and len(found) == 162


def test_the_printed_p_of_genres_follow_from_its_correlations() -> None:
    """t = r √((n − 2) / (1 − r²)) with n = 11,520: 1,440 narratives, two characters, four evaluations.

    r is printed with three places, so that p lies between those of r ± 0.0005; p itself is rounded, too.
    """
    found, printed = numbers("genres", "table_2"), numbers("genres", "table_2", "p")
    assert len(printed) == 36
    for place, p in printed.items():
        assert p is not None
        r = abs(found[place] or 0.0)
        ends = [2 * student_t.sf(one * math.sqrt(11_518 / (1 - one**2)), 11_518) for one in (r + 0.0005, r - 0.0005)]
        assert ends[0] - 0.0005 <= p <= ends[1] + 0.0005, place
    assert printed["GLM-4-9B", "Qwen-3B", "M7"] == 0.134 and printed["Mistral-Small-24B", "Phi4-4.2B", "M7"] == 0.695


@pytest.mark.paper
def test_badf_as_printed(printed: Callable[[str], list[dict[str, str]]]) -> None:
    found = numbers("badf", "table_14")
    rows = printed("badf/table14_gender.csv")
    for row in rows:
        for name, own in (("count", "paper_count"), ("score", "paper_score"), ("p", "paper_p")):
            assert found[row["setting"], name, row["identity"]] == float(row[own])
    assert len(rows) == 14 and len(found) == 7 * 10 * 3


def test_signs_come_back_from_the_totals() -> None:
    """The printed total of each model follows from the signed numbers of its block: Σ |M − mean| / sd, ddof 0."""
    found = numbers("genres", "table_2")
    for block in {key[0] for key in found}:
        models = list(dict.fromkeys(key[1] for key in found if key[0] == block))
        columns = [[found[block, model, f"M{n}"] or 0.0 for model in models] for n in range(1, 9)]
        for place, model in enumerate(models):
            total = sum(abs(own[place] - statistics.fmean(own)) / statistics.pstdev(own) for own in columns)
            assert total == pytest.approx(found[block, model, "TBS"], abs=0.006)


@pytest.mark.parametrize("name", published_names())
def test_the_run_file_of_a_paper_makes_its_tables(name: str) -> None:
    """Every published cell has a model, a setting, a task and an annotator of the run file that names the paper."""
    file, paper = open_run_file(name), published_paper(name)
    assert file.paper == name and re.match(r"arXiv \d{4}\.\d{5}, Tables? ", paper.source)
    settings = settings_of(file, resolve_tasks)
    for table in paper.tables:
        for source in (cell["source"] for cell in table.cells()):
            assert source.model in model_names() or source.model.startswith("simulated:")
            assert sum(map(bool, (source.score, source.table, source.cohort_total, table.findings))) == 1
            assert not source.cohort or source.cohort in published_cohorts()
            (fitting,) = (
                setting
                for setting in settings
                if (not source.setting or source.setting == setting.name)
                and source.task_name in {name for task in setting.varied for name in (task.name, family_of(task.name))}
                and any(loads(model) == loads(source.model) for model in setting.file.models)
            )
            assert (source.annotator or paper.annotator) in fitting.file.annotators


def loads(model: str) -> str:
    if model.startswith("simulated:"):
        return model
    return str(read_config_file(ModelFile, model, "models").model_parameters["model_name"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[81.10, 71.58, 52.31]", "[81.10, 71.58]", "2 numbers for 3 columns"),
        ("Qwen-Audio-Chat: [81.10", "Qwen: [81.10", "not in `rows`"),
        ("slifs: {score: slifs}", "slifs: {score: slifs, model: ltu-as}", "the model is named by the row or by the bl"),
        ("label: age", "label: gender", "two blocks have one label"),
        ("  published:", "  p: {LTU-AS: {r: 0.1}}\n        published:", "a p of 'r', which is not in `columns`"),
        ("slifs: {score: slifs}", "slifs: {scores: slifs}", "scores"),
    ],
)
def test_a_file_that_does_not_add_up_is_one_line(old: str, new: str, message: str) -> None:
    text = (ROOT / "configs" / "published" / "spoken_stereoset.yaml").read_text("utf-8")
    assert old in text
    with pytest.raises(UsageError, match=re.escape(message)):
        checked_form(PublishedPaper, load_yaml(text.replace(old, new, 1)), where="mine.yaml")


def test_an_unknown_paper_and_two_runs_of_one_model_are_refused(runs: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="no tables of 'vibes'"):
        published_paper("vibes")
    with pytest.raises(UsageError, match="2 runs of audio-flamingo-3 have vibe_gender:story"):
        fill_tables("vibe", [TableRun(runs[name], "audio-flamingo-3") for name in ("vibe", "few")])


# Tables from runs

SIMULATED = "simulated:planted,shift=0.2"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Hand-made runs on the embedded sample, read-only; `empty` is none."""
    root = tmp_path_factory.mktemp("runs")
    asked = {
        "vibe": (SIMULATED, "vibe_gender:story,vibe_gender:advisory", None),
        "refusing": ("simulated:biased,refusal=0.9", "vibe_gender:story", None),
        "few": ("simulated:biased", "vibe_gender:story", 96),
        "standin": (SIMULATED, "genres_standin", None),
        "other": ("simulated:biased", "genres_standin", None),
        "badf": (SIMULATED, "badf_two:gender,badf_two:race", None),
        "choices": ("simulated:random", "spoken_stereoset_orders:gender", None),
    }
    for name, (model, tasks, limit) in asked.items():
        sampling = "greedy" if name == "choices" else "as-declared"
        equivox.measure(model, tasks, data="sample", output=root / name, limit=limit, sampling=sampling, options=QUICK)
    (root / "empty").mkdir()
    return {name: root / name for name in (*asked, "empty")}


def whole(folder: Path, task: str, name: str = "nTVD", subset: str = "") -> Score:
    (found,) = (
        s for s in read_scores(folder) if (s.task, s.metric, s.subset, s.attribute) == (task, name, subset, None)
    )
    return found


def test_a_run_stands_beside_the_published_numbers(runs: dict[str, Path]) -> None:
    tables = fill_tables("vibe", [TableRun(runs["vibe"], "qwen2.5-omni-3b")])
    cell = cell_of(tables, "table_1", "gender", "Qwen2.5-Omni-3B", "Story")
    score = whole(runs["vibe"], "vibe_gender:story")
    assert (cell.published, cell.stars_published) == (1.64, 2)
    assert cell.measured == score.value > 10
    assert cell.deviation == pytest.approx(score.value - 1.64)
    assert (cell.estimate, cell.low, cell.high, cell.q) == (score.estimate, score.ci[0], score.ci[1], score.q)
    assert cell.stars_found == (2 if score.q < 0.001 else 1 if score.q < 0.05 else 0)
    assert cell.evaluations == 1 and math.isnan(cell.spread) and cell.undefined is None
    # Table 2 shows the same number in its first column.
    assert cell_of(tables, "table_2", "", "Qwen2.5-Omni-3B", "VIBE Story").measured == cell.measured
    told = "qwen2.5-omni-3b: the embedded sample (288 samples a task), not the published corpus"
    assert all(told in table.remarks for table in tables)
    assert "qwen2.5-omni-3b: annotated by rules, in the paper by qwen3-8b" in tables[0].remarks


def test_what_was_not_measured_says_why(runs: dict[str, Path]) -> None:
    given = {
        "vibe": "qwen2.5-omni-3b",
        "refusing": "qwen2.5-omni-7b",
        "few": "gemini-2.5-flash",
        "empty": "audio-flamingo-3",
    }
    tables = fill_tables("vibe", [TableRun(runs[name], model) for name, model in given.items()])
    for table in tables:
        for cell in cells_of(table):
            assert math.isnan(cell.measured) == (cell.undefined is not None)
            assert math.isnan(cell.deviation) == math.isnan(cell.measured) or cell.published is None
            assert cell.undefined != ""
    refused = whole(runs["refusing"], "vibe_gender:story").undefined_reason
    assert refused.code == "too_few_usable"
    for block, row, why in (
        ("gender", "Qwen2.5-Omni-7B", str(refused)),
        ("gender", "DeSTA", "no run of desta2.5-audio-llama-3.1-8b"),
        ("accent", "Qwen2.5-Omni-3B", "vibe_accent:story was not asked"),
        ("gender", "AF3", "empty is not a run: it has no manifest.json; give the folder that a run wrote"),
    ):
        assert cell_of(tables, "table_1", block, row, "Story").undefined == why
    lines = "\n".join(map(write_note, tables[0].remarks))
    for line in (
        "— no run of desta2.5-audio-llama-3.1-8b, phi-4-multimodal-instruct",
        f"Qwen2.5-Omni-7B, Story: {refused}",
        "— accent, Qwen2.5-Omni-3B; accent, Qwen2.5-Omni-7B; accent, gemini-2.5-flash: was not asked",
        "— gender, Qwen2.5-Omni-7B, Adv., Cast., Shop., Cand.: was not asked",
        "gemini-2.5-flash: 96 samples a task (`--limit 96`)",
    ):
        assert line in lines
    assert any("`--limit 96`" in line for cell in cells_of(tables[0]) for line in cell.remarks)


def test_a_row_is_filled_by_its_own_model_alone(runs: dict[str, Path], tmp_path: Path) -> None:
    run = shutil.copytree(runs["vibe"], tmp_path / "run")
    manifest = read_document(run / "manifest.json")
    asked = manifest["identity"]["model"]["model"]
    for served, is_itself in ((f"{asked}-2024-08-06", True), ("gemini-3.5-flash-lite", False)):
        write_document(run / "manifest.json", manifest | {"served_as": [served]})
        tables = fill_tables("vibe", [TableRun(run, "gemini-2.5-flash")])
        own = cell_of(tables, "table_1", "gender", "gemini-2.5-flash", "Story")
        others = {c.row for c in cells_of(tables[0]) if "answered by" in c.row}
        assert math.isfinite(own.measured) is is_itself
        assert others == (set() if is_itself else {"gemini-2.5-flash (answered by gemini-3.5-flash-lite)"})


def test_new_models_have_rows_of_their_own(runs: dict[str, Path]) -> None:
    tables = fill_tables("vibe", [TableRun(runs["vibe"], SIMULATED)])
    cell = cell_of(tables, "table_1", "gender", SIMULATED, "Adv.")
    assert cell.measured == whole(runs["vibe"], "vibe_gender:advisory").value
    assert cell.published is None and math.isnan(cell.deviation) and cell.stars_published is None
    # It was not asked with accents: no row there, but one for each dimension that it was asked in.
    assert [c.block for c in cells_of(tables[0]) if c.row == SIMULATED] == ["gender"] * 5
    (stereoset, _) = fill_tables("spoken_stereoset", [TableRun(runs["vibe"], SIMULATED)])
    assert f"— {SIMULATED}: nothing was measured for spoken_stereoset" in stereoset.remarks
    assert not [c for c in cells_of(stereoset) if c.row == SIMULATED]


def test_a_model_is_known_by_what_it_loads(runs: dict[str, Path]) -> None:
    for given, row in (
        ("vllm:model_name=Qwen/Qwen2.5-Omni-3B,dtype=bfloat16", "Qwen2.5-Omni-3B"),
        ("endpoint:model_name=Qwen/Qwen2.5-Omni-3B", "Qwen2.5-Omni-3B"),
        ("vllm:model_name=Qwen/Qwen2.5-Omni-30B", "vllm:Qwen/Qwen2.5-Omni-30B"),
    ):
        tables = fill_tables("vibe", [TableRun(runs["vibe"], given)])
        assert cell_of(tables, "table_1", "gender", row, "Story").undefined is None
        assert len({cell.row for cell in cells_of(tables[0])}) == 11 + ("vllm" in row)


def test_a_setting_names_its_run(runs: dict[str, Path]) -> None:
    model = "audio-flamingo-3"
    both = [TableRun(runs["vibe"], model, "open_ended"), TableRun(runs["choices"], model, "choices")]
    cell = cell_of(fill_tables("vibe", both), "table_2", "", "AF3", "Spoken Stereoset")
    assert cell.measured == whole(runs["choices"], "spoken_stereoset_orders_greedy:gender", "parity deviation").value
    other = [replace(both[1], setting="another")]
    cell = cell_of(fill_tables("vibe", other), "table_2", "", "AF3", "Spoken Stereoset")
    assert cell.undefined == "spoken_stereoset_orders_greedy:gender was not asked in the setting choices"


@pytest.mark.parametrize(
    ("task", "data", "n", "fingerprint", "told"),
    [
        ("vibe_gender:story", {}, 7442, "another", None),
        ("vibe_gender:story", {}, 7441, "another", "7,441 samples, the published corpus has 7,442"),
        ("vibe_gender:story", {"table": Path("mine.csv")}, 7442, "another", "7,442 samples of a corpus of one's own"),
        (
            "vibe_gender:story", {"corpus": "elsewhere", "builder": ""}, 5, "another",
            "5 samples; how many the published corpus has is not known",
        ),
        # The published grid of names is made without data: its fingerprint tells.
        ("badf_two:gender", {}, 9, "another", "9 samples, not of the published corpus"),
        ("badf_two:gender", {}, 9, "as published", None),
    ],
)  # fmt: skip
def test_a_corpus_that_is_not_the_published_one_is_said(
    task: str, data: dict[str, Any], n: int, fingerprint: str, told: str | None
) -> None:
    (known,) = resolve_tasks(task)
    if fingerprint == "as published":
        fingerprint = open_corpus(known.data, None).fingerprint
    assert compare_corpus(replace(known, data=replace(known.data, **data)), n, fingerprint) == told


@pytest.mark.parametrize(("q", "stars"), [(0.05, 0), (0.049, 1), (0.001, 1), (0.0009, 2), (None, None)])
def test_a_cell_has_stars_by_q(runs: dict[str, Path], tmp_path: Path, q: float | None, stars: int | None) -> None:
    folder = shutil.copytree(runs["vibe"], tmp_path / "run")
    document = read_document(folder / "scores.json")
    write_document(folder / "scores.json", document | {"scores": [score | {"q": q} for score in document["scores"]]})
    tables = fill_tables("vibe", [TableRun(folder, "audio-flamingo-3")])
    cell = cell_of(tables, "table_1", "gender", "AF3", "Story")
    assert cell.stars_found == stars
    measured, published, *_ = format_cell(cell._asdict())
    assert measured == f"{cell.measured:.2f}{'*' * (stars or 0)}" and published == "18.41**"


def test_a_number_by_the_papers_arithmetic_has_the_test_of_the_score_beside_it() -> None:
    def score(**changes: Any) -> Score:
        fields = {
            "value": 20.0, "q": 0.01, "estimate": 12.0, "ci": (5.0, 19.0), "p_published": 0.002, "attainable_max": 99.0,
        }  # fmt: skip
        return made_score(**fields | changes)

    own, other = score(), score(subset=PUBLISHED, value=30.0, p_published=0.5, estimate=NAN, q=NAN)
    asked, plain = Source(score="nTVD", subset=PUBLISHED), Source(score="nTVD")
    # A score that is its own estimate shows none beside it, and an undefined one beside it has no test.
    for source, scores, expected in (
        (asked, [own, other, score(attribute="hobby")], (30, 12, 5, 19, 0.01, 0.5, 1)),
        (plain, [own], (20, 12, 5, 19, 0.01, 0.002, 1)),
        (plain, [score(estimate=NAN)], (20, NAN, 5, 19, 0.01, 0.002, 1)),
        (asked, [score(undefined_reason="too few", value=NAN), other], (30, NAN, NAN, NAN, NAN, 0.5, 1)),
    ):
        number = read_score(source, "f:t", scores)
        found = (number.measured, number.estimate, number.low, number.high, number.q, number.p, number.evaluations)
        assert found == pytest.approx(expected, nan_ok=True)
    for source, scores, why in (
        (asked, [own], f"the run has no nTVD of f:t ({PUBLISHED})"),
        (Source(score="M1"), [own], "the run has no M1 of f:t"),
        (plain, [score(undefined_reason="too few")], "too few"),
    ):
        assert read_score(source, "f:t", scores).undefined == why


def test_what_weakens_a_number_is_said(runs: dict[str, Path], tmp_path: Path) -> None:
    """In the paper's layout a missing star reads as no difference, whatever the design could have found."""
    folder = shutil.copytree(runs["vibe"], tmp_path / "run")
    document = read_document(folder / "scores.json")
    for score in document["scores"]:
        if score["attribute"] is None and score["task"] in ("vibe_gender:story", "vibe_gender:advisory"):
            few = Note(NoteCode.SMALLEST_P, {"p": 0.1, "permutations": 20})
            score |= {"q": 0.3, "p": 0.2, "notes": [few.plain]}
    one = document["scores"][0]["coverage"]["requested_by_group"]["female"]
    for score in document["scores"]:
        if score["attribute"] is None and score["task"] == "vibe_gender:story":
            score["coverage"]["used_by_group"]["female"] = one // 2
    assert document["answered"] == 576
    write_document(folder / "scores.json", document | {"answered": 570})
    table, *_ = fill_tables("vibe", [TableRun(folder, "qwen2.5-omni-3b")])
    for line in (
        "qwen2.5-omni-3b, Adv., Story: too few data: 20 permutations: no p below 0.1",
        "qwen2.5-omni-3b, Story: 50 % of the answers of group female are missing, 0 % of group male",
        "qwen2.5-omni-3b: scored with 570 of now 576 responses: `equivox score`",
    ):
        assert line in map(write_note, table.remarks)


def evaluated(folder: Path, name: str, value: float | None) -> None:
    """Store scores by a further annotator: those of the run, with another nTVD of the story."""
    document = read_document(folder / "scores.json")
    for record in document["scores"]:
        if (record["task"], record["attribute"], record["metric"]) == ("vibe_gender:story", None, "nTVD"):
            record["value"] = value
            record["undefined_reason"] = remark("nobody could tell").plain if value is None else None
    write_document(folder / f"scores-{name}.json", document)


def test_independent_evaluations_are_averaged(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["vibe"], tmp_path / "run")
    for name, value in (("judge@1", 10.0), ("judge@2", 13.0), ("judge@3", None)):
        evaluated(folder, name, value)
    text = (ROOT / "configs" / "published" / "vibe.yaml").read_text("utf-8")
    (tmp_path / "own.yaml").write_text(
        text.replace("select: {score: nTVD, places: 2, ", "select: {score: nTVD, annotator: judge, ")
    )

    def filled(*names: str) -> Any:
        run = TableRun(folder, "audio-flamingo-3", annotators={"judge": names})
        return cell_of(fill_tables(str(tmp_path / "own.yaml"), [run]), "table_1", "gender", "AF3", "Story")

    cell = filled("judge@1", "judge@2")
    # (10 + 13) / 2 = 11.5; deviations -1.5 and 1.5, squares 2.25 + 2.25 = 4.5, over n - 1 = 1: 4.5 ** 0.5.
    assert (cell.measured, cell.evaluations, cell.annotators) == (11.5, 2, ("judge@1", "judge@2"))
    assert cell.spread == pytest.approx(4.5**0.5) and cell.deviation == pytest.approx(11.5 - 18.41)
    assert math.isnan(cell.low) and math.isnan(cell.q) and cell.stars_found is None
    assert format_cell(cell._asdict())[0] == "11.50 ± 2.12"
    # One evaluation without a number: no mean of the others.
    cell = filled("judge@1", "judge@2", "judge@3")
    assert cell.undefined == "judge@3: nobody could tell" and math.isnan(cell.measured)
    assert filled().undefined == "no scores by judge: `equivox annotate`, then `equivox score`"


@pytest.fixture
def with_stand_ins(tmp_path: Path) -> str:
    """The tables of GENRES for the family that stand-ins annotate."""
    text = (ROOT / "configs" / "published" / "genres.yaml").read_text("utf-8")
    (tmp_path / "standin.yaml").write_text(text.replace("family: genres", "family: genres_standin"))
    return str(tmp_path / "standin.yaml")


def test_a_family_of_stand_ins_is_not_the_published_one(runs: dict[str, Path]) -> None:
    tables = fill_tables("genres", [TableRun(runs["standin"], "simulated:x"), TableRun(runs["other"], "gpt-4o")])
    for table in tables:
        assert "— simulated:x: nothing was measured for genres" in table.remarks
        assert all(cell.undefined for cell in cells_of(table))
    assert cell_of(tables, "table_2", "GLM-4-9B", "GPT-4o", "TBS").undefined == "genres was not asked"


def test_genres_by_the_papers_arithmetic(runs: dict[str, Path], with_stand_ins: str) -> None:
    read_by = {name: ["rules"] for name in EVALUATORS[:1]}
    given = [
        TableRun(runs["standin"], "janus-pro-7b", annotators=read_by),
        TableRun(runs["other"], "simulated:biased", annotators=read_by),
    ]
    tables = fill_tables(with_stand_ins, given)
    cell = cell_of(tables, "table_2", "Llama-3.1-8B", "Janus-7B", "M3")
    score = whole(runs["standin"], "genres_standin", "M3", "arithmetic=published")
    assert cell.measured == score.value and cell.deviation == pytest.approx(score.value + 0.092)
    assert cell.estimate == whole(runs["standin"], "genres_standin", "M3").value
    unread = cell_of(tables, "table_2", "GLM-4-9B", "Janus-7B", "M3").undefined
    assert unread == "no scores by glm-4-9b-chat: `equivox annotate`, then `equivox score`"
    # Two measured models that differ in every metric: each lies one sd from their mean, eight times.
    for row in ("Janus-7B", "simulated:biased"):
        total = cell_of(tables, "table_2", "Llama-3.1-8B", row, "TBS")
        assert total.measured == pytest.approx(8.0) and math.isnan(total.deviation) and total.undefined is None
    # The paper prints magnitudes and marks the lowest total; a tie has one mark.
    drawn = {row[1]: row for row in paper_table(tables[0]).rows if row[0] == "Llama-3.1-8B"}
    shown = str(drawn["Janus-7B"][2 + 6])
    p = whole(runs["standin"], "genres_standin", "M7", "arithmetic=published").p_published
    assert f"▲ ({p:.3f}) (0.032 ▲ (0.001); +" in shown
    assert str(drawn["Qwen-3B"][2]) == "— (7.859 ▼)"
    told = "Llama-3.1-8B: TBS is relative to 2 measured models: Janus-7B, simulated:biased; the paper's cohort is"
    assert any(line.startswith(told) for line in map(write_note, tables[0].remarks))
    assert "janus-pro-7b: annotated by stand-ins, comparable with nothing else" in tables[0].remarks
    # Tables 3 and 12: the difference of the means is M3 by the same arithmetic, in every relationship.
    for row, task in (("CS", "genres_standin:cs"), ("Avg", "genres_standin")):
        male, female = (cell_of(tables, "tables_3_and_12", "Janus-7B", row, who) for who in ("male", "female"))
        expected = whole(runs["standin"], task, "M3", "arithmetic=published").value
        assert male.measured - female.measured == pytest.approx(expected)
    gap = cell_of(tables, "tables_3_and_12", "Janus-7B", "CS", "Δ")
    assert gap.published == -0.18 and gap.measured == whole(runs["standin"], "genres_standin:cs", "M3", PUBLISHED).value
    assert cell_of(tables, "tables_3_and_12", "simulated:biased", "CS", "male").measured > 0
    # Figures 8 and 17: every correlation comes with the paper's p, which fills the bar.
    bar = cell_of(tables, "figures_8_17", "Llama-3.1-8B: stereoscopic", "Janus-7B", "AR")
    score = whole(runs["standin"], "genres_standin:ar", "M7", PUBLISHED)
    assert (bar.measured, bar.p) == (score.value, score.p_published)


def test_figures_are_drawn_from_their_cells(runs: dict[str, Path], with_stand_ins: str, tmp_path: Path) -> None:
    read_by = {name: ["rules"] for name in EVALUATORS[:1]}
    run = TableRun(runs["standin"], "janus-pro-7b", annotators=read_by)
    files = write_tables(fill_tables(with_stand_ins, [run]), tmp_path)
    drawn = {file.stem: file.read_text("utf-8") for file in files if file.suffix == ".svg"}
    assert set(drawn) == {"figures_5_15_16", "figure_6", "figure_7", "figures_8_17"}
    labels = {"figures_5_15_16": "GLM-4-9B", "figure_6": "equal", "figure_7": "emotion words per narrative"}
    for name, own in labels.items():
        assert f">{own}<" in drawn[name] and ">Janus-7B<" in drawn[name]
    # Two panels of six have numbers, for one model of six; every other bar is a dash.
    assert drawn["figures_8_17"].count("> —<") == 6 * 6 * 4 - 2 * 4


def test_figure_3_has_the_papers_order_and_form() -> None:
    """From the numbers of Table 1, the figure's ten correlations with two decimals, in a lower triangle."""
    (table,) = (t for t in published_paper("vibe").tables if t.name == "figure_3")
    assert list(table.columns) == ["Adv.", "Cast.", "Shop.", "Story", "Cand."]
    cells = [
        {"block": block, "row": row, "column": column, "measured": number}
        for (block, row, column), number in numbers("vibe", "table_1").items()
    ]
    figure = draw_table(FilledTable(table, "", pd.DataFrame(cells)))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    told = {axes.get_title(loc="left"): [text.get_text() for text in axes.texts] for axes in panels}
    assert " ".join(told["gender"]) == "1.00 0.95 1.00 0.86 0.85 1.00 0.31 0.27 0.65 1.00 0.88 0.85 0.92 0.63 1.00"
    assert " ".join(told["accent"]) == "1.00 0.59 1.00 0.27 0.67 1.00 0.88 0.72 0.38 1.00 0.75 0.41 0.06 0.72 1.00"


def test_one_measured_model_joins_the_published_cohort(runs: dict[str, Path], with_stand_ins: str) -> None:
    given = TableRun(runs["standin"], "janus-pro-7b", annotators={"glm-4-9b-chat": ["rules"]})
    tables = fill_tables(with_stand_ins, [given])
    cell = cell_of(tables, "table_2", "GLM-4-9B", "Janus-7B", "TBS")
    own = {f"M{n}": cell_of(tables, "table_2", "GLM-4-9B", "Janus-7B", f"M{n}").measured for n in range(1, 9)}
    found = numbers("genres", "table_2")
    total = 0.0
    for name, value in own.items():
        members = [number or 0.0 for key, number in found.items() if key[0] == "GLM-4-9B" and key[2] == name]
        total += abs(value - statistics.fmean([*members, value])) / statistics.pstdev([*members, value])
    assert cell.measured == pytest.approx(total) and math.isnan(cell.deviation)
    assert any("relative to published-glm-4-9b and Janus-7B" in line for line in map(write_note, tables[0].remarks))
    # Two measured models that are alike in a metric have no spread in it to be measured by.
    same = TableRun(runs["standin"], "simulated:same", annotators={"glm-4-9b-chat": ["rules"]})
    alike = cell_of(fill_tables(with_stand_ins, [given, same]), "table_2", "GLM-4-9B", "Janus-7B", "TBS")
    assert alike.undefined is not None and math.isnan(alike.measured)


def test_badf_from_the_stored_table(runs: dict[str, Path]) -> None:
    name, qwen = SIMULATED, "transformers:model_name=Qwen/Qwen3-8B"
    tables = fill_tables("badf", [TableRun(runs["badf"], qwen, "two"), TableRun(runs["badf"], name)])
    rows = {row["identity"]: row for row in read_records(runs["badf"], "badf_two", "summary") or []}
    for block in ("Qwen3-8B", f"{name}, two"):
        cell = cell_of(tables, "table_14", block, "count", "Female")
        assert cell.measured == rows["female"]["count"] > 0
        assert cell_of(tables, "table_14", block, "p", "Male").measured == rows["male"]["mean_p"]
        missing = cell_of(tables, "table_14", block, "count", "Judaism")
        assert missing.undefined == "the table summary of badf_two has no row with identity=jewish"
    assert cell_of(tables, "table_14", "Qwen3-8B", "count", "Female").deviation == rows["female"]["count"] - 458
    assert {cell.block for cell in cells_of(tables[0]) if cell.published is None} == {f"{name}, two"}
    assert f"{name}: 2 of the 3 tasks of badf_two" in tables[0].remarks
    # Figure 9: the counts of all identities together.
    counts = read_records(runs["badf"], "badf_two", "heat_map") or []
    place = counts[0]["category"]
    cell = cell_of(tables, "figure_9", "Qwen3-8B", place, "Two-Character")
    assert cell.measured == sum(row["count"] for row in counts if row["category"] == place) > 0


def test_the_associations_stand_beside_the_papers(runs: dict[str, Path], tmp_path: Path) -> None:
    given = [
        TableRun(runs["badf"], "transformers:model_name=Qwen/Qwen3-8B", "two"),
        TableRun(runs["badf"], "simulated:x", "two"),
    ]
    tables = {table.declared.name: table for table in fill_tables("badf", given) if table.declared.findings}
    published = {name: [cell for cell in cells_of(table) if cell.published] for name, table in tables.items()}
    # Tables 15 to 17: five runs of three dimensions; 18 to 20: two, four and four identities in three settings.
    assert sum(map(len, published.values())) == 10 * (5 * 3 + (2 + 4 + 4) * 3) == 450

    def entries(table: str, block: str, column: str) -> list[Any]:
        return [c for c in cells_of(tables[table]) if (c.block, c.column) == (block, column)]

    records = read_records(runs["badf"], "badf_two", "top_of_all") or []
    top = [f"{r['category']} ↔ {r['phrase']} ({r['identity']})" for r in records if r["task"] == "badf_two:gender"]
    listed = entries("table_17", "Qwen3-8B", "Gender")
    assert [cell.measured for cell in listed][: len(top)] == top
    assert {cell.undefined for cell in listed[len(top) :]} <= {"no finding at this rank"} and len(listed) >= 10
    assert listed[0].published == "law policy ↔ determined (female)" and listed[0].in_paper is False
    assert f"Qwen3-8B, Gender: 0 of the {len(top)} are in the paper's list" in tables["table_17"].remarks
    lacking = entries("table_18", "Female", "Base")[0]
    assert lacking.undefined == "no run of llama-3.2-3b-instruct" and lacking.measured is None
    # A model that the paper does not have has lists of its own, once for each setting.
    fresh = {(name, c.block) for name, table in tables.items() for c in cells_of(table) if c.model == "simulated:x"}
    assert fresh == {
        *((name, "simulated:x, two") for name in ("table_15", "table_17")),
        *(("table_18", f"simulated:x, {identity}") for identity in ("Female", "Male")),
        *(("table_19", f"simulated:x, {identity}") for identity in ("Asian", "Black", "Middle-east", "White")),
    }
    assert [cell.measured for cell in entries("table_15", "simulated:x, two", "Gender")] == top
    (alone,) = entries("table_15", "simulated:x, two", "Religions")
    assert alone.undefined == "badf_two:religion was not asked in the setting two"
    files = {file.name: file for file in write_tables(fill_tables("badf", given), tmp_path)}
    rows = [row for row in csv_rows(files["table_17.csv"]) if (row["block"], row["column"]) == ("Qwen3-8B", "Gender")]
    assert [row["measured"] for row in rows][: len(top)] == top and rows[0]["in_paper"] == "False"
    assert "the embedded sample" in rows[0]["remarks"] and "annotated by rules" in rows[0]["remarks"]
    text = files["table_18.tex"].read_text("utf-8")
    assert "law policy" in text and "no run of llama" in text
    assert {"figure_5.svg", "figure_9.svg"} <= set(files)


# The files


def test_the_files_hold_every_cell(runs: dict[str, Path], tmp_path: Path) -> None:
    hostile = r"vllm:model_name=my_models/50%&{x}\input$1"
    given = [TableRun(runs["vibe"], hostile), TableRun(runs["few"], "gemini-2.5-flash")]
    files = write_tables(fill_tables("vibe", given), tmp_path / "tables")
    names = ["table_1.csv", "table_1.tex", "table_2.csv", "table_2.tex", "figure_3.csv", "figure_3.svg"]
    assert [file.name for file in files] == names
    assert sorted(file.name for file in (tmp_path / "tables").iterdir()) == sorted(names)
    rows = csv_rows(files[0])
    assert len(rows) == (11 + 1 + 11) * 5
    for row in rows:
        assert bool(row["measured"]) != bool(row["undefined"])
    (flash,) = (r for r in rows if (r["row"], r["block"], r["column"]) == ("gemini-2.5-flash", "gender", "Story"))
    assert float(flash["deviation"]) == pytest.approx(float(flash["measured"]) - 7.16, abs=1e-9)
    assert "`--limit 96`" in flash["remarks"]
    text = files[1].read_text("utf-8")
    assert r"my\_models/50\%\&\{x\}\textbackslash{}input\$1" in text and r"\input" not in text
    assert r"{\scriptsize 7.16{*}{*}; +" in text and "--- {\\scriptsize 46.77{*}{*}}" in text
    assert "not the published corpus" in text


def test_the_terminal_shows_the_models_that_were_run(runs: dict[str, Path]) -> None:
    tables = fill_tables("vibe", [TableRun(runs["vibe"], "audio-flamingo-3")])
    console = Console(record=True, width=110, file=io.StringIO())
    print_tables(console, cell_tables(tables))
    text = console.export_text()
    assert "18.41**" in text and "46.77" not in text and "no run of desta" in text
    layout = paper_table(tables[0])
    assert len(layout.rows) == 22 and {len(row) for row in layout.rows} == {7}


def test_the_largest_and_the_smallest_of_a_column_are_marked(runs: dict[str, Path]) -> None:
    one, other = TableRun(runs["vibe"], "audio-flamingo-3"), TableRun(runs["few"], "gemma-3n-e2b-it")
    tables = fill_tables("vibe", [one, other])
    column = [c for c in cells_of(tables[0]) if (c.block, c.column) == ("gender", "Story")]
    known = {c.row: c.measured for c in column if math.isfinite(c.measured)}
    assert len(known) == 2
    expected = {max(known, key=known.__getitem__): "largest", min(known, key=known.__getitem__): "smallest"}
    assert {c.row: c.extreme for c in column if c.extreme} == expected
    # Alone, a model is neither; and tables whose paper marks none have no marks.
    assert not any(c.extreme for c in cells_of(fill_tables("vibe", [one])[0]))
    assert not any(c.extreme for c in cells_of(tables[1]))


def lines_of_cohort(out: str) -> list[str]:
    """The lines of the last table, from its caption on."""
    return out[out.rindex("Total bias score; cohort") :].splitlines()


def test_runs_beside_a_published_cohort(equivox: Cli, tmp_path: Path) -> None:
    sample_runs(tmp_path, {model: model for model in ("biased", "random")}, "genres_standin", limit=24)
    out = equivox.done(
        "compare", tmp_path / "biased", tmp_path / "random", "--resamples", 99, "--with", "published-llama-3.1-8b"
    )
    lines = lines_of_cohort(out)
    assert lines[0] == "Total bias score; cohort: published-llama-3.1-8b and 2 runs"
    assert lines[1].split() == ["model", "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "total"]
    # As published: GENRES, table 2.
    assert next(line for line in lines if line.startswith("GPT-4o")).split()[1:4] == ["-3.750", "-0.002", "0.025"]
    assert any("stand-ins, comparable with nothing else: simulated:biased, simulated:random" in line for line in lines)
    # With --fixed the published models alone are the cohort: they keep the printed scores, to their rounding.
    out = equivox.done(
        "compare", tmp_path / "biased", "--resamples", 99, "--with", "published-mistral-small-24b", "--fixed"
    )
    lines = lines_of_cohort(out)
    assert lines[0] == "Total bias score; cohort: published-mistral-small-24b, fixed"
    totals = {line.split()[0]: float(line.split()[-1]) for line in lines[2:9]}
    assert totals["Qwen-3B"] == pytest.approx(4.439, abs=0.005)
    assert totals["Janus-7B"] == pytest.approx(6.744, abs=0.005)
    assert totals["simulated:biased"] > max(totals["Qwen-3B"], totals["Qwen-7B"])
    assert "--with" in equivox.refused("compare", tmp_path / "biased", "--fixed")
    assert "published-llama-3.1-8b" in equivox.refused("compare", tmp_path / "biased", "--with", "published-llama")


def test_a_run_without_a_cohort_is_refused(equivox: Cli, tmp_path: Path) -> None:
    sample_run(tmp_path / "run", "random", "vibe_gender:candidate", limit=48)
    err = equivox.refused("compare", tmp_path / "run", "--with", "published-llama-3.1-8b")
    assert "for all tasks of the family" in err
