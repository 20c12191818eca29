"""The overlap of associations between settings, and the choice of the published settings."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from commands import Cli, csv_rows
from sample_runs import sample_runs

from equivox.metrics.badf.tables import association_sets, overlap
from equivox.report.dry_run import count_requests
from equivox.run.run_files import open_run_file, settings_of
from equivox.tasks.registry import resolve_tasks


def key(phrase: str, identity: str = "f") -> tuple[str, str, str, str]:
    return ("gender", "sports", identity, phrase)


def test_overlap_by_hand() -> None:
    one = {key("calm"): 0.4, key("witty"): 0.3, key("kind"): 0.2, key("new"): 0.1}
    other = {key("calm"): 0.9, key("witty"): 0.5, key("kind"): 0.7, key("old"): 0.1}
    found = overlap("gender", "a", one, "b", other)
    assert (found.n_one, found.n_other, found.n_shared, found.jaccard) == (4, 4, 3, 3 / 5)
    # Of the three pairs two agree and one does not.
    assert found.rank_correlation == pytest.approx(1 / 3)
    assert math.isnan(overlap("gender", "a", {}, "b", {}).jaccard)
    assert overlap("gender", "a", one, "b", {}).jaccard == 0
    assert overlap("gender", "a", one, "b", one).rank_correlation == 1
    # The same phrase told of another identity is another association.
    assert overlap("gender", "a", one, "b", {key("calm", "m"): 1.0}).n_shared == 0


def test_wordings_and_dropped_associations() -> None:
    row = {"task": "badf_two:gender", "category": "sports", "identity": "f", "score": 0.1, "kept": True}
    records = [row | {"phrase": "helps friends"}, row | {"phrase": "calm", "kept": False}]
    assert association_sets(records) == {"gender": {("gender", "sports", "f", "help friend"): 0.1}}


def test_settings_side_by_side(equivox: Cli, tmp_path: Path) -> None:
    models = {name: name for name in ("biased", "oracle")}
    sample_runs(tmp_path, models, "badf_two:gender,badf_negative:gender", limit=10)
    out = equivox.done("compare", tmp_path / "biased", tmp_path / "oracle", "--tables", tmp_path / "csv", "--details")
    assert "associations overlap" in out
    rows = {(row["one"], row["other"]): row for row in csv_rows(tmp_path / "csv" / "associations_overlap.csv")}
    assert len(rows) == 6
    same = rows["simulated:biased badf_negative", "simulated:biased badf_two"]
    # The biased model tells the same of each identity in every setting.
    assert float(same["jaccard"]) > 0.6
    empty = rows["simulated:biased badf_negative", "simulated:oracle badf_two"]
    assert (int(empty["n_other"]), float(empty["jaccard"])) == (0, 0.0)


def test_what_the_published_settings_take() -> None:
    """8,700 + 2 × 10,440 stories with two characters, twice as many with one; four calls for each."""
    two, alone = 29_580, 59_160
    settings = settings_of(open_run_file("badf"), resolve_tasks)
    found = {one.name: count_requests(one.file, one.varied, {})[:2] for one in settings}
    others = dict.fromkeys(("two", "balanced", "negative", "openbox"), (two, 4 * two))
    assert found == {"single": (alone, 4 * alone), **others}
    models = {one.name: len(one.file.models) for one in settings}
    assert models == {"single": 1, "two": 3, "balanced": 1, "negative": 1, "openbox": 1}
    for setting in settings:
        options = setting.spec("qwen3-8b", Path("runs")).options
        assert (options.merge, options.merge_threshold) == ("embedding", 0.63)
    folders = {setting.spec(model, Path("runs")).output for setting in settings for model in setting.file.models}
    assert len(folders) == 7
