"""The papers' tables: the numbers as printed, and the same tables from hand-made runs."""

from __future__ import annotations

import io
import itertools
import math
import re
import shutil
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import csv_rows
from made_scores import made_score
from rich.console import Console
from scipy.stats import pearsonr
from scipy.stats import t as student_t

import equivox
from equivox.compare.published import ReproducedCell, ReproducedTable, TableRun, reproduced
from equivox.compare.published_lists import reproduced_lists
from equivox.compare.stored import StoredRun, _score
from equivox.configs import read_config_file
from equivox.configs.published import PublishedPaper, Source, published_names, published_paper
from equivox.core.errors import RequestError
from equivox.core.fields import checked_form, load_yaml
from equivox.core.files import read_document, write_document
from equivox.core.scores import NAN, Score, ScoringOptions
from equivox.core.task import Task
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import ModelFile, model_names
from equivox.metrics.genres.cohort import published_cohorts
from equivox.report.published_figures import draw_published
from equivox.report.published_tables import cell_tables, published_table, write_tables
from equivox.report.table import print_tables
from equivox.run.run_files import open_run_file, settings_of
from equivox.run.scoring import read_records, read_scores
from equivox.tasks.registry import resolve_tasks

ROOT = Path(__file__).resolve().parents[2]
QUICK = ScoringOptions(n_resamples=99)
PUBLISHED = "arithmetic=published"
EVALUATORS = ("llama-3.1-8b-instruct", "glm-4-9b-chat", "mistral-small-24b-instruct")


def cell_of(tables: list[ReproducedTable], name: str, block: str, row: str, column: str) -> ReproducedCell:
    (table,) = (table for table in tables if table.name == name)
    (found,) = (c for c in table.cells if (c.block, c.row, c.column) == (block, row, column))
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
    rows = printed("vibe/vibe_table1.csv")
    columns = {"Adv.": "Adv", "Cast.": "Cast", "Shop.": "Shop", "Story": "Story", "Cand.": "Cand"}
    places = {(r["dimension"], r["model"], name): (r, own) for r in rows for name, own in columns.items()}
    assert numbers("vibe", "table_1") == {place: float(row[own]) for place, (row, own) in places.items()}
    assert numbers("vibe", "table_1", "stars") == {
        place: int(row[f"{own}_stars"]) for place, (row, own) in places.items()
    }
    rows = printed("vibe/vibe_table2.csv")
    columns = {
        "VIBE Story": ("vibe_story_nTVD_gender", "vibe_stars"),
        "Spoken Stereoset": ("spoken_stereoset_2x_abs_50_minus_slbs", "sss_stars"),
    }
    two = {("", r["model"], name): (r, own) for r in rows for name, own in columns.items()}
    assert numbers("vibe", "table_2") == {place: float(row[own[0]]) for place, (row, own) in two.items()}
    assert numbers("vibe", "table_2", "stars") == {place: int(row[own[1]]) for place, (row, own) in two.items()}


@pytest.mark.paper
def test_the_correlations_of_vibe_follow_from_its_table(printed: Callable[[str], list[dict[str, str]]]) -> None:
    found = numbers("vibe", "table_1")
    columns: dict[str, list[float]] = {}
    for (block, _, column), number in found.items():
        if block == "gender":
            assert number is not None
            columns.setdefault(column.removesuffix("."), []).append(number)
    rows = [row for row in printed("vibe/fig3_gender_correlations.csv") if row["dimension"] == "gender"]
    assert len(rows) == len(list(itertools.combinations(columns, 2))) == 10
    for row in rows:
        r = pearsonr(columns[row["task1"]], columns[row["task2"]]).statistic
        assert float(r) == pytest.approx(float(row["r_printed"]), abs=0.005 + 1e-9)


@pytest.mark.paper
def test_spoken_stereoset_as_printed(printed: Callable[[str], list[dict[str, str]]]) -> None:
    rows = printed("spoken_stereoset/table3_counts.csv")
    expected: dict[tuple[str, str, str], float | None] = {
        (r["domain"], r["model"], name): float(r[name]) for r in rows for name in ("slifs", "slms", "slbs")
    }
    baselines = {
        "Oracle baseline": (100, 100, 50),
        "Biased baseline": (None, None, 100),
        "Random baseline": (None, 66.67, 50),
    }
    for domain in ("gender", "age"):
        for row, own in baselines.items():
            expected |= {
                (domain, row, name): number for name, number in zip(("slifs", "slms", "slbs"), own, strict=True)
            }
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
def test_the_tables_name_models_and_cohorts_that_exist(name: str) -> None:
    paper = published_paper(name)
    assert re.match(r"arXiv \d{4}\.\d{5}, Tables? ", paper.source)
    for table in paper.tables:
        cells = [(block, row, name) for block in table.blocks for row in table.rows_of(block) for name in table.columns]
        for block, row, column in cells:
            source = table.source(block, row, column)
            assert source.model in model_names() or source.model.startswith("simulated:")
            assert sum(map(bool, (source.score, source.table, source.cohort_total))) == 1
            assert not source.cohort or source.cohort in published_cohorts()


@pytest.mark.parametrize("name", published_names())
def test_the_run_file_of_a_paper_makes_its_tables(name: str) -> None:
    """Every published cell has a model, a setting, a task and an annotator of the run file that names the paper."""
    file = open_run_file(name)
    assert file.paper == name
    settings = settings_of(file, resolve_tasks)
    paper = published_paper(name)
    for table in paper.tables:
        cells = [(block, row, name) for block in table.blocks for row in table.rows_of(block) for name in table.columns]
        for source in (table.source(*cell) for cell in cells):
            fitting = [
                setting
                for setting in settings
                if (not source.setting or source.setting == setting.name)
                and source.task_name in {name for task in setting.varied for name in (task.name, family_of(task))}
                and any(loads(model) == loads(source.model) for model in setting.file.models)
            ]
            assert len(fitting) == 1, source
            assert (source.annotator or paper.annotator) in fitting[0].file.annotators


def family_of(task: Task) -> str:
    name, at, condition = task.name.partition("@")
    return f"{name.partition(':')[0]}{at}{condition}"


def loads(model: str) -> str:
    if model.startswith("simulated:"):
        return model
    return str(read_config_file(ModelFile, model, "models").model_parameters["model_name"])


def test_a_file_that_does_not_add_up_is_one_line() -> None:
    text = (ROOT / "configs" / "published" / "spoken_stereoset.yaml").read_text("utf-8")
    for old, new, told in (
        ("[81.10, 71.58, 52.31]", "[81.10, 71.58]", "2 numbers for 3 columns"),
        ("Qwen-Audio-Chat: [81.10", "Qwen: [81.10", "not in `rows`"),
        ("slifs: {score: slifs}", "slifs: {score: slifs, model: ltu-as}", "a model is chosen by rows or by blocks"),
        ("label: age", "label: gender", "two blocks have one label"),
        (
            "        published:\n          Oracle baseline: [100, 100, 50]",
            "        p: {Qwen-Audio-Chat: {r: 0.1}}\n        published:\n          Oracle baseline: [100, 100, 50]",
            "has a p of 'r', which is not in `columns`",
        ),
        ("slifs: {score: slifs}", "slifs: {scores: slifs}", "scores"),
    ):
        assert old in text
        with pytest.raises(RequestError, match=re.escape(told)):
            checked_form(PublishedPaper, load_yaml(text.replace(old, new)), where="mine.yaml")
    with pytest.raises(RequestError, match="no tables of 'vibes'"):
        published_paper("vibes")


# Tables from runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Hand-made runs on the embedded sample, read-only."""
    root = tmp_path_factory.mktemp("runs")
    asked = {
        "vibe": ("simulated:planted,shift=0.2", "vibe_gender:story,vibe_gender:advisory", None),
        "refusing": ("simulated:biased,refusal=0.9", "vibe_gender:story", None),
        "few": ("simulated:biased", "vibe_gender:story", 96),
        "standin": ("simulated:planted,shift=0.2", "genres_standin", None),
        "other": ("simulated:biased", "genres_standin", None),
        "badf": ("simulated:planted,shift=0.2", "badf_two:gender,badf_two:race", None),
        "choices": ("simulated:random", "spoken_stereoset_orders:gender", None),
    }
    for name, (model, tasks, limit) in asked.items():
        sampling = "greedy" if name == "choices" else "as-declared"
        equivox.measure(model, tasks, data="sample", output=root / name, limit=limit, sampling=sampling, options=QUICK)
    return {name: root / name for name in asked}


def whole(folder: Path, task: str, name: str = "nTVD", subset: str = "") -> Score:
    (found,) = (s for s in read_scores(folder) if (s.task, s.name, s.subset, s.attribute) == (task, name, subset, None))
    return found


def test_a_run_stands_beside_the_published_numbers(runs: dict[str, Path]) -> None:
    tables = reproduced("vibe", [TableRun(runs["vibe"], "qwen2.5-omni-3b")])
    cell = cell_of(tables, "table_1", "gender", "Qwen2.5-Omni-3B", "Story")
    score = whole(runs["vibe"], "vibe_gender:story")
    assert (cell.published, cell.stars_published) == (1.64, 2)
    assert cell.measured == score.value > 10
    assert cell.deviation == pytest.approx(score.value - 1.64)
    assert (cell.estimate, cell.low, cell.high, cell.q) == (score.estimate, score.ci_low, score.ci_high, score.q)
    assert cell.stars_found == (2 if score.q < 0.001 else 1 if score.q < 0.05 else 0)
    assert cell.evaluations == 1 and math.isnan(cell.spread) and cell.undefined is None
    # Table 2 shows the same number in its first column.
    assert cell_of(tables, "table_2", "", "Qwen2.5-Omni-3B", "VIBE Story").measured == cell.measured
    told = "qwen2.5-omni-3b: the embedded sample (288 samples a task), not the published corpus"
    assert all(told in table.remarks for table in tables)
    assert "qwen2.5-omni-3b: annotated by rules, in the paper by qwen3-8b" in tables[0].remarks


def test_what_was_not_measured_says_why(runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    given = [
        TableRun(runs["vibe"], "qwen2.5-omni-3b"),
        TableRun(runs["refusing"], "qwen2.5-omni-7b"),
        TableRun(tmp_path / "empty", "audio-flamingo-3"),
    ]
    tables = reproduced("vibe", given)
    for table in tables:
        for cell in table.cells:
            assert math.isnan(cell.measured) == (cell.undefined is not None)
            assert math.isnan(cell.deviation) == math.isnan(cell.measured) or table.draw
            assert cell.undefined != ""
    story = cell_of(tables, "table_1", "gender", "Qwen2.5-Omni-7B", "Story")
    assert story.undefined == whole(runs["refusing"], "vibe_gender:story").undefined
    assert story.undefined is not None and "below the floor" in story.undefined
    assert cell_of(tables, "table_1", "gender", "DeSTA", "Story").undefined == "no run of desta2.5-audio-llama-3.1-8b"
    asked = cell_of(tables, "table_1", "accent", "Qwen2.5-Omni-3B", "Story").undefined
    assert asked == "vibe_accent:story was not asked"
    broken = cell_of(tables, "table_1", "gender", "AF3", "Story").undefined
    assert broken is not None and "is not a run" in broken and str(tmp_path) not in broken
    lines = "\n".join(tables[0].remarks)
    assert "— no run of desta2.5-audio-llama-3.1-8b, phi-4-multimodal-instruct" in lines
    assert f"Qwen2.5-Omni-7B, Story: {story.undefined}" in lines
    assert "— accent, Qwen2.5-Omni-3B; accent, Qwen2.5-Omni-7B: was not asked" in lines
    assert "— gender, Qwen2.5-Omni-7B, Adv., Cast., Shop., Cand.: was not asked" in lines


def test_a_row_is_filled_by_its_own_model_alone(runs: dict[str, Path], tmp_path: Path) -> None:
    run = shutil.copytree(runs["vibe"], tmp_path / "run")
    manifest = read_document(run / "manifest.json")
    asked = manifest["identity"]["model"]["model"]
    for served, is_itself in ((f"{asked}-2024-08-06", True), ("gemini-3.5-flash-lite", False)):
        write_document(run / "manifest.json", manifest | {"served_as": [served]})
        tables = reproduced("vibe", [TableRun(run, "gemini-2.5-flash")])
        (own,) = (
            c for c in tables[0].cells
            if (c.block, c.column) == ("gender", "Story") and c.model == "gemini-2.5-flash"
        )  # fmt: skip
        others = {c.row for c in tables[0].cells if "answered by" in c.row}
        assert math.isfinite(own.measured) is is_itself
        assert others == (set() if is_itself else {"gemini-2.5-flash (answered by gemini-3.5-flash-lite)"})


def test_new_models_have_rows_of_their_own(runs: dict[str, Path]) -> None:
    model = "simulated:planted,shift=0.2"
    tables = reproduced("vibe", [TableRun(runs["vibe"], model)])
    cell = cell_of(tables, "table_1", "gender", model, "Adv.")
    assert cell.measured == whole(runs["vibe"], "vibe_gender:advisory").value
    assert math.isnan(cell.published) and math.isnan(cell.deviation) and cell.stars_published is None
    # It was not asked with accents: no row there, but one for each dimension that it was asked in.
    assert [c.block for c in tables[0].cells if c.row == model] == ["gender"] * 5
    (stereoset, _) = reproduced("spoken_stereoset", [TableRun(runs["vibe"], model)])
    assert f"— {model}: nothing was measured for spoken_stereoset" in stereoset.remarks
    assert not [c for c in stereoset.cells if c.row == model]


def test_a_model_is_known_by_what_it_loads(runs: dict[str, Path]) -> None:
    for given in ("vllm:model_name=Qwen/Qwen2.5-Omni-3B,dtype=bfloat16", "endpoint:model_name=Qwen/Qwen2.5-Omni-3B"):
        tables = reproduced("vibe", [TableRun(runs["vibe"], given)])
        assert cell_of(tables, "table_1", "gender", "Qwen2.5-Omni-3B", "Story").undefined is None
        assert len({cell.row for cell in tables[0].cells}) == 11
    tables = reproduced("vibe", [TableRun(runs["vibe"], "vllm:model_name=Qwen/Qwen2.5-Omni-30B")])
    assert cell_of(tables, "table_1", "gender", "vllm:Qwen/Qwen2.5-Omni-30B", "Story").undefined is None


def test_a_setting_names_its_run(runs: dict[str, Path]) -> None:
    both = [
        TableRun(runs["vibe"], "audio-flamingo-3", "open_ended"),
        TableRun(runs["choices"], "audio-flamingo-3", "choices"),
    ]
    tables = reproduced("vibe", both)
    cell = cell_of(tables, "table_2", "", "AF3", "Spoken Stereoset")
    assert cell.measured == whole(runs["choices"], "spoken_stereoset_orders_greedy:gender", "parity deviation").value
    other = [replace(both[1], setting="another")]
    cell = cell_of(reproduced("vibe", other), "table_2", "", "AF3", "Spoken Stereoset")
    assert cell.undefined == "spoken_stereoset_orders_greedy:gender was not asked in the setting choices"
    with pytest.raises(RequestError, match="2 runs of audio-flamingo-3 have vibe_gender:story"):
        reproduced("vibe", [both[0], TableRun(runs["few"], "audio-flamingo-3")])


def test_a_limit_is_said(runs: dict[str, Path]) -> None:
    tables = reproduced("vibe", [TableRun(runs["few"], "gemini-2.5-flash")])
    assert "gemini-2.5-flash: 96 samples a task (`--limit 96`)" in tables[0].remarks
    assert any("`--limit 96`" in line for cell in tables[0].cells for line in cell.remarks)


def test_a_corpus_that_is_not_the_published_one_is_said() -> None:
    story, grid = (resolve_tasks(name)[0] for name in ("vibe_gender:story", "badf_two:gender"))

    def told(task: Task, n: int, fingerprint: str = "another") -> str | None:
        run = StoredRun(TableRun(Path("run"), "m"), {"identity": {"corpora": {task.data.corpus: fingerprint}}})
        vars(run)["_samples"] = {task.name: n}
        return run._unlike(task)

    assert told(story, 7442) is None
    assert told(story, 7441) == "7,441 samples, the published corpus has 7,442"
    own = replace(story, data=replace(story.data, table=Path("mine.csv")))
    assert told(own, 7442) == "7,442 samples of a corpus of one's own"
    elsewhere = replace(story, data=replace(story.data, corpus="elsewhere", builder=""))
    assert told(elsewhere, 5) == "5 samples; how many the published corpus has is not known"
    # The published grid of names is made without data: its fingerprint tells.
    assert told(grid, 9) == "9 samples, not of the published corpus"
    assert told(grid, 9, open_corpus(grid.data, None).fingerprint) is None


@pytest.mark.parametrize(("q", "stars"), [(0.05, 0), (0.049, 1), (0.001, 1), (0.0009, 2), (NAN, None)])
def test_a_cell_has_stars_by_q_and_is_empty_where_nothing_was_measured(q: float, stars: int | None) -> None:
    cell = ReproducedCell(
        block="", row="m", column="Story", model="m", task="t", q=q, published=12.5, undefined="no run"
    )
    assert cell.stars_found == stars and math.isnan(cell.deviation)
    assert (cell.evaluations, cell.places, cell.with_p, cell.comparable) == (0, 2, False, True)
    assert replace(cell, measured=15.0).deviation == 2.5
    assert math.isnan(replace(cell, measured=15.0, comparable=False).deviation)


def test_a_number_by_the_papers_arithmetic_has_the_test_of_the_score_beside_it() -> None:
    def score(**changes: Any) -> Score:
        fields = {
            "value": 20.0, "q": 0.01, "estimate": 12.0, "estimate_unclipped": 12.0, "ci_low": 5.0, "ci_high": 19.0,
            "p_paper": 0.002,
        }  # fmt: skip
        return made_score(**fields | changes)

    own, other = score(), score(subset=PUBLISHED, value=30.0, p_paper=0.5, estimate=NAN, q=NAN)
    asked = Source(score="nTVD", subset=PUBLISHED)
    told = _score(asked, "f:t", [own, other, score(attribute="hobby")])
    assert (told.measured, told.estimate, told.low, told.high, told.q, told.p) == (30, 12, 5, 19, 0.01, 0.5)
    assert told.evaluations == 1
    plain = _score(Source(score="nTVD"), "f:t", [own])
    assert (plain.measured, plain.estimate, plain.p) == (20, 12, 0.002)
    # A score that is its own estimate shows none beside it, and an undefined one beside it has no test.
    same = _score(Source(score="nTVD"), "f:t", [score(estimate=NAN, estimate_unclipped=NAN)])
    assert same.measured == 20 and math.isnan(same.estimate) and same.low == 5
    alone = _score(asked, "f:t", [score(undefined="too few", value=NAN), other])
    assert (alone.measured, alone.evaluations, alone.p) == (30, 1, 0.5) and math.isnan(alone.low)
    assert _score(asked, "f:t", [own]).undefined == f"the run has no nTVD of f:t ({PUBLISHED})"
    assert _score(Source(score="M1"), "f:t", [own]).undefined == "the run has no M1 of f:t"
    assert _score(Source(score="nTVD"), "f:t", [score(undefined="too few")]).undefined == "too few"


def test_a_number_without_a_star_says_that_its_design_cannot_tell(runs: dict[str, Path], tmp_path: Path) -> None:
    """In the paper's layout a missing star reads as no difference, whatever the design could have found."""
    folder = shutil.copytree(runs["vibe"], tmp_path / "run")
    document = read_document(folder / "scores.json")
    for score in document["scores"]:
        if score["attribute"] is None and score["task"] in ("vibe_gender:story", "vibe_gender:advisory"):
            score |= {"q": 0.3, "p_cluster": 0.2, "cannot_tell": "20 permutations: no p below 0.1"}
    one = document["scores"][0]["coverage"]["requested_by_group"]["female"]
    for score in document["scores"]:
        if score["attribute"] is None and score["task"] == "vibe_gender:story":
            score["coverage"]["used_by_group"]["female"] = one // 2
    write_document(folder / "scores.json", document)
    table, *_ = reproduced("vibe", [TableRun(folder, "qwen2.5-omni-3b")])
    named = "qwen2.5-omni-3b, {}: "
    assert f"{named.format('Adv., Story')}this design cannot tell: 20 permutations: no p below 0.1" in table.remarks
    missing = "50 % of the answers of group female are missing, 0 % of group male"
    assert f"{named.format('Story')}{missing}" in table.remarks


def test_responses_that_came_after_the_scores_are_said(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["few"], tmp_path / "run")
    document = read_document(folder / "scores.json")
    assert document["answered"] == 96
    write_document(folder / "scores.json", document | {"answered": 90})
    table, *_ = reproduced("vibe", [TableRun(folder, "gemini-2.5-flash")])
    assert "gemini-2.5-flash: scored with 90 of now 96 responses: `equivox score`" in table.remarks


def evaluated(folder: Path, name: str, value: float | None) -> None:
    """Store scores by a further annotator: those of the run, with another nTVD of the story."""
    document = read_document(folder / "scores.json")
    for record in document["scores"]:
        if (record["task"], record["attribute"], record["name"]) == ("vibe_gender:story", None, "nTVD"):
            record["value"] = value
            record["undefined"] = "nobody could tell" if value is None else None
    write_document(folder / f"scores-{name}.json", document)


def test_independent_evaluations_are_averaged(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["vibe"], tmp_path / "run")
    evaluated(folder, "judge@1", 10.0)
    evaluated(folder, "judge@2", 13.0)
    own = tmp_path / "own.yaml"
    text = (ROOT / "configs" / "published" / "vibe.yaml").read_text("utf-8")
    own.write_text(text.replace("select: {score: nTVD, places: 2, ", "select: {score: nTVD, annotator: judge, "))
    given = TableRun(folder, "audio-flamingo-3", annotators={"judge": ["judge@1", "judge@2"]})
    cell = cell_of(reproduced(str(own), [given]), "table_1", "gender", "AF3", "Story")
    # (10 + 13) / 2 = 11.5; deviations -1.5 and 1.5, squares 2.25 + 2.25 = 4.5, over n - 1 = 1: 4.5 ** 0.5.
    assert (cell.measured, cell.evaluations) == (11.5, 2)
    assert cell.spread == pytest.approx(4.5**0.5) and cell.deviation == pytest.approx(11.5 - 18.41)
    assert math.isnan(cell.low) and math.isnan(cell.q) and cell.stars_found is None
    assert cell.annotators == ("judge@1", "judge@2")
    # One evaluation without a number: no mean of the others.
    evaluated(folder, "judge@3", None)
    three = replace(given, annotators={"judge": ["judge@1", "judge@2", "judge@3"]})
    cell = cell_of(reproduced(str(own), [three]), "table_1", "gender", "AF3", "Story")
    assert cell.undefined == "judge@3: nobody could tell" and math.isnan(cell.measured)
    nobody = cell_of(reproduced(str(own), [TableRun(folder, "audio-flamingo-3")]), "table_1", "gender", "AF3", "Story")
    assert nobody.undefined == "no scores by judge: `equivox annotate`, then `equivox score`"


@pytest.fixture
def with_stand_ins(tmp_path: Path) -> str:
    """The tables of GENRES for the family that stand-ins annotate."""
    text = (ROOT / "configs" / "published" / "genres.yaml").read_text("utf-8")
    (tmp_path / "standin.yaml").write_text(text.replace("family: genres", "family: genres_standin"))
    return str(tmp_path / "standin.yaml")


def test_a_family_of_stand_ins_is_not_the_published_one(runs: dict[str, Path]) -> None:
    tables = reproduced("genres", [TableRun(runs["standin"], "simulated:x"), TableRun(runs["other"], "gpt-4o")])
    for table in tables:
        assert "— simulated:x: nothing was measured for genres" in table.remarks
        assert all(cell.undefined for cell in table.cells)
    assert cell_of(tables, "table_2", "GLM-4-9B", "GPT-4o", "TBS").undefined == "genres was not asked"


def test_genres_by_the_papers_arithmetic(runs: dict[str, Path], with_stand_ins: str) -> None:
    read_by = {name: ["rules"] for name in EVALUATORS[:1]}
    given = [
        TableRun(runs["standin"], "janus-pro-7b", annotators=read_by),
        TableRun(runs["other"], "simulated:biased", annotators=read_by),
    ]
    tables = reproduced(with_stand_ins, given)
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
    drawn = {row[1]: row for row in published_table(tables[0]).rows if row[0] == "Llama-3.1-8B"}
    shown = str(drawn["Janus-7B"][2 + 6])
    p = whole(runs["standin"], "genres_standin", "M7", "arithmetic=published").p_paper
    assert f"▲ ({p:.3f}) (0.032 ▲ (0.001); +" in shown
    assert str(drawn["Qwen-3B"][2]) == "— (7.859 ▼)"
    told = "Llama-3.1-8B: TBS is relative to 2 measured models: Janus-7B, simulated:biased; the paper's cohort is"
    assert any(line.startswith(told) for line in tables[0].remarks)
    assert "janus-pro-7b: annotated by stand-ins, comparable with nothing else" in tables[0].remarks
    # Tables 3 and 12: the difference of the means is M3 by the same arithmetic, in every relationship.
    for row, task in (("CS", "genres_standin:cs"), ("Avg", "genres_standin")):
        male, female = (cell_of(tables, "tables_3_and_12", "Janus-7B", row, who) for who in ("male", "female"))
        expected = whole(runs["standin"], task, "M3", "arithmetic=published").value
        assert male.measured - female.measured == pytest.approx(expected)
    gap = cell_of(tables, "tables_3_and_12", "Janus-7B", "CS", "Δ")
    assert gap.published == -0.18 and gap.measured == whole(runs["standin"], "genres_standin:cs", "M3", PUBLISHED).value
    assert cell_of(tables, "tables_3_and_12", "simulated:biased", "CS", "male").measured > 0
    # Figures 8 and 17: every correlation comes with the paper's p, which sizes the bubble.
    bubble = cell_of(tables, "figures_8_17", "Llama-3.1-8B: stereoscopic", "Janus-7B", "AR")
    score = whole(runs["standin"], "genres_standin:ar", "M7", PUBLISHED)
    assert (bubble.measured, bubble.p) == (score.value, score.p_paper)


def test_figures_are_drawn_from_their_cells(runs: dict[str, Path], with_stand_ins: str, tmp_path: Path) -> None:
    read_by = {name: ["rules"] for name in EVALUATORS[:1]}
    files = write_tables(with_stand_ins, [TableRun(runs["standin"], "janus-pro-7b", annotators=read_by)], tmp_path)
    drawn = {file.stem: file.read_text("utf-8") for file in files if file.suffix == ".svg"}
    assert set(drawn) == {"figures_5_15_16", "figure_6", "figure_7", "figures_8_17"}
    for name, own in (
        ("figures_5_15_16", "GLM-4-9B"),
        ("figure_6", "equal"),
        ("figure_7", "emotion words per narrative"),
    ):
        assert f">{own}<" in drawn[name] and ">Janus-7B<" in drawn[name]
    # One panel of six has numbers; every other row has a dash.
    assert drawn["figures_8_17"].count("> —<") == 4 * 4


def test_figure_3_has_the_papers_order_and_form() -> None:
    """From the numbers of Table 1, the figure's ten correlations with two decimals, in a lower triangle."""
    (table,) = (t for t in published_paper("vibe").tables if t.name == "figure_3")
    assert list(table.columns) == ["Adv.", "Cast.", "Shop.", "Story", "Cand."]
    cells = [
        ReproducedCell(block=block, row=row, column=column, model=row, task="", measured=number or 0.0)
        for (block, row, column), number in numbers("vibe", "table_1").items()
    ]
    figure = ReproducedTable(
        name="figure_3", caption="", source="", columns=tuple(table.columns), cells=cells, draw="correlations"
    )
    panels = [axes for axes in draw_published(figure).axes if axes.get_title(loc="left")]
    told = {axes.get_title(loc="left"): [text.get_text() for text in axes.texts] for axes in panels}
    assert " ".join(told["gender"]) == "1.00 0.95 1.00 0.86 0.85 1.00 0.31 0.27 0.65 1.00 0.88 0.85 0.92 0.63 1.00"
    assert " ".join(told["accent"]) == "1.00 0.59 1.00 0.27 0.67 1.00 0.88 0.72 0.38 1.00 0.75 0.41 0.06 0.72 1.00"


def test_one_measured_model_joins_the_published_cohort(runs: dict[str, Path], with_stand_ins: str) -> None:
    given = TableRun(runs["standin"], "janus-pro-7b", annotators={"glm-4-9b-chat": ["rules"]})
    tables = reproduced(with_stand_ins, [given])
    cell = cell_of(tables, "table_2", "GLM-4-9B", "Janus-7B", "TBS")
    own = {f"M{n}": cell_of(tables, "table_2", "GLM-4-9B", "Janus-7B", f"M{n}").measured for n in range(1, 9)}
    found = numbers("genres", "table_2")
    total = 0.0
    for name, value in own.items():
        members = [number or 0.0 for key, number in found.items() if key[0] == "GLM-4-9B" and key[2] == name]
        total += abs(value - statistics.fmean([*members, value])) / statistics.pstdev([*members, value])
    assert cell.measured == pytest.approx(total) and math.isnan(cell.deviation)
    assert any("relative to published-glm-4-9b and Janus-7B" in line for line in tables[0].remarks)
    # Two measured models that are alike in a metric have no spread in it to be measured by.
    same = TableRun(runs["standin"], "simulated:same", annotators={"glm-4-9b-chat": ["rules"]})
    alike = cell_of(reproduced(with_stand_ins, [given, same]), "table_2", "GLM-4-9B", "Janus-7B", "TBS")
    assert alike.undefined is not None and math.isnan(alike.measured)


def test_badf_from_the_stored_table(runs: dict[str, Path]) -> None:
    name = "simulated:planted,shift=0.2"
    tables = reproduced(
        "badf", [TableRun(runs["badf"], "transformers:model_name=Qwen/Qwen3-8B", "two"), TableRun(runs["badf"], name)]
    )
    rows = {row["identity"]: row for row in read_records(runs["badf"], "badf_two", "summary") or []}
    for block in ("Qwen3-8B", f"{name}, two"):
        cell = cell_of(tables, "table_14", block, "count", "Female")
        assert cell.measured == rows["female"]["count"] > 0
        assert cell_of(tables, "table_14", block, "p", "Male").measured == rows["male"]["mean_p"]
        missing = cell_of(tables, "table_14", block, "count", "Judaism")
        assert missing.undefined == "the table summary of badf_two has no row with identity=jewish"
    assert cell_of(tables, "table_14", "Qwen3-8B", "count", "Female").deviation == rows["female"]["count"] - 458
    assert {cell.block for cell in tables[0].cells if math.isnan(cell.published)} == {f"{name}, two"}
    assert f"{name}: 2 of the 3 tasks of badf_two" in tables[0].remarks


def test_the_associations_stand_beside_the_papers(runs: dict[str, Path], tmp_path: Path) -> None:
    given = [TableRun(runs["badf"], "transformers:model_name=Qwen/Qwen3-8B", "two")]
    lists = reproduced_lists("badf", given)
    # Tables 15 to 17: five runs of three dimensions; 18 to 20: two, four and four identities in three settings.
    assert len(lists) == 5 * 3 + (2 + 4 + 4) * 3 == 45 and all(len(one.published) == 10 for one in lists)
    (one,) = (x for x in lists if (x.table, x.block, x.column) == ("table_17", "Qwen3-8B", "Gender"))
    top = [
        row for row in read_records(runs["badf"], "badf_two", "top_of_all") or [] if row["task"] == "badf_two:gender"
    ]
    assert (
        list(one.measured) == [f"{r['category']} ↔ {r['phrase']} ({r['identity']})" for r in top]
        and one.undefined is None
    )
    assert one.published[0] == "law policy ↔ determined (female)" and one.shared == []
    (lacking,) = (x for x in lists if (x.table, x.block, x.column) == ("table_18", "Female", "Base"))
    assert lacking.undefined == "no run of llama-3.2-3b-instruct" and not lacking.measured
    # A model that the paper does not have has lists of its own, once for each setting.
    fresh = [x for x in reproduced_lists("badf", [TableRun(runs["badf"], "simulated:x", "two")]) if not x.published]
    assert [(x.table, x.block, x.column) for x in fresh if x.table != "table_20"] == [
        *(("table_15", "simulated:x, two", name) for name in ("Gender", "Race")),
        *(("table_17", "simulated:x, two", name) for name in ("Gender", "Race")),
        *(("table_18", f"simulated:x, {who}", "Base") for who in ("Female", "Male")),
        *(("table_19", f"simulated:x, {who}", "Base") for who in ("Asian", "Black", "Middle-east", "White")),
    ]
    assert list(fresh[0].measured) == list(one.measured)
    files = {file.name: file for file in write_tables("badf", given, tmp_path)}
    rows = [row for row in csv_rows(files["table_17.csv"]) if (row["block"], row["column"]) == ("Qwen3-8B", "Gender")]
    assert [row["measured"] for row in rows][: len(top)] == list(one.measured) and rows[0]["in_paper"] == "False"
    text = files["table_18.tex"].read_text("utf-8")
    assert "law policy" in text and "no run of llama" in text
    assert {"figure_5.svg", "figure_9.svg"} <= set(files)


def test_counts_are_added_up_over_identities(runs: dict[str, Path]) -> None:
    tables = reproduced("badf", [TableRun(runs["badf"], "transformers:model_name=Qwen/Qwen3-8B", "two")])
    rows = read_records(runs["badf"], "badf_two", "heat_map") or []
    place = rows[0]["category"]
    cell = cell_of(tables, "figure_9", "Qwen3-8B", place, "Two-Character")
    assert cell.measured == sum(row["count"] for row in rows if row["category"] == place) > 0


# The files


def test_the_files_hold_every_cell(runs: dict[str, Path], tmp_path: Path) -> None:
    hostile = r"vllm:model_name=my_models/50%&{x}\input$1"
    given = [TableRun(runs["vibe"], hostile), TableRun(runs["few"], "gemini-2.5-flash")]
    files = write_tables("vibe", given, tmp_path / "tables")
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


def test_nothing_is_written_if_a_table_cannot_be_made(runs: dict[str, Path], tmp_path: Path) -> None:
    twice = [TableRun(runs["vibe"], "audio-flamingo-3"), TableRun(runs["few"], "audio-flamingo-3")]
    with pytest.raises(RequestError):
        write_tables("vibe", twice, tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_the_terminal_shows_the_models_that_were_run(runs: dict[str, Path]) -> None:
    tables = reproduced("vibe", [TableRun(runs["vibe"], "audio-flamingo-3")])
    console = Console(record=True, width=110, file=io.StringIO())
    print_tables(console, cell_tables(tables))
    text = console.export_text()
    assert "18.41**" in text and "46.77" not in text and "no run of desta" in text
    layout = published_table(tables[0])
    assert len(layout.rows) == 22 and {len(row) for row in layout.rows} == {7}


def test_the_largest_and_the_smallest_of_a_column_are_marked(runs: dict[str, Path]) -> None:
    one, other = TableRun(runs["vibe"], "audio-flamingo-3"), TableRun(runs["few"], "gemma-3n-e2b-it")
    tables = reproduced("vibe", [one, other])
    column = [c for c in tables[0].cells if (c.block, c.column) == ("gender", "Story")]
    known = {c.row: c.measured for c in column if math.isfinite(c.measured)}
    assert len(known) == 2
    expected = {max(known, key=known.__getitem__): "largest", min(known, key=known.__getitem__): "smallest"}
    assert {c.row: c.extreme for c in column if c.extreme} == expected
    # Alone, a model is neither; and tables whose paper marks none have no marks.
    assert not any(c.extreme for c in reproduced("vibe", [one])[0].cells)
    assert not any(c.extreme for c in tables[1].cells)
