"""The overlap of associations between settings, and the choice of the published settings."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.metrics.badf.overlap import association_sets, overlap
from equivox.run.run_files import Estimate, RunFile, estimate, open_run_file
from equivox.tasks.registry import resolve_tasks

Cli = Callable[..., tuple[int, str, str]]


def reckoned(file: RunFile) -> Estimate:
    return estimate(file, resolve_tasks(file.tasks))


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
    for model in ("biased", "oracle"):
        code, _, err = equivox(
            *("run", f"simulated:{model}", "badf_two:gender,badf_negative:gender", "--data", "sample"),
            *("--limit", 10, "--resamples", 99, "--output", tmp_path / model),
        )
        assert code == 0, err
    code, out, err = equivox("compare", tmp_path / "biased", tmp_path / "oracle", "--csv", tmp_path / "csv")
    assert code == 0, err
    assert "associations shared by settings and models" in out
    with (tmp_path / "csv" / "associations_overlap.csv").open(newline="") as file:
        rows = {(row["one"], row["other"]): row for row in csv.DictReader(file)}
    assert len(rows) == 6
    same = rows["simulated:biased badf_negative", "simulated:biased badf_two"]
    # The biased model tells the same of each identity in every setting.
    assert float(same["jaccard"]) > 0.6
    empty = rows["simulated:biased badf_negative", "simulated:oracle badf_two"]
    assert (int(empty["n_other"]), float(empty["jaccard"])) == (0, 0.0)


def test_what_the_published_settings_take() -> None:
    """8,700 + 2 × 10,440 stories with two characters, twice as many with one; four calls for each."""
    two, alone = 29_580, 59_160
    expected = {"badf": (3, two), "badf_llama_3b": (1, alone + 2 * two), "badf_openbox": (1, two)}
    for name, (n_models, stories) in expected.items():
        found = reckoned(open_run_file(name))
        assert [(m.responses, m.annotator_calls) for m in found.models] == [(stories, 4 * stories)] * n_models
        assert all(model.gpu_hours > 0 for model in found.models)
    file = open_run_file("badf")
    options = file.spec("qwen3-8b", (), Path("runs")).options
    assert (options.merge, options.merge_threshold) == ("embedding", 0.63)
