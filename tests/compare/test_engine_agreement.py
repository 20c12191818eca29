"""One model on two engines: counted by hand, and shown by compare."""

from __future__ import annotations

import shutil
from pathlib import Path

from sample_runs import sample_runs

from equivox.compare.agreement import parities
from equivox.compare.ranking import judge
from equivox.compare.runs import open_comparison
from equivox.core.files import read_document, write_document
from equivox.report.comparison_tables import verdict_tables
from equivox.run.store import Store, response_schema


def named(folder: Path, engine: str, model: str) -> Path:
    """Let a run say that this engine ran this model."""
    manifest = read_document(folder / "manifest.json")
    manifest["identity"]["model"] |= {"engine": engine, "model": model}
    write_document(folder / "manifest.json", manifest)
    return folder


def texts(folder: Path) -> list[str]:
    return sorted(record["text"] for record in Store(folder / "responses", response_schema()).records())


def test_answers_of_one_model_on_two_engines(tmp_path: Path) -> None:
    sample_runs(tmp_path, {"one": "random", "same": "random", "other": "biased"}, "vibe_gender:casting", limit=20)
    one = named(tmp_path / "one", "vllm", "/models/tiny")
    same = named(tmp_path / "same", "endpoint", "tiny")
    other = named(tmp_path / "other", "transformers", "tiny")
    assert texts(one) == texts(same) != texts(other)
    first, second, third = parities(open_comparison([one, same, other]))
    assert (first.model, first.asked, first.same) == ("tiny", 20, 20)
    assert (second.asked, third.asked) == (20, 20)
    assert second.same == third.same < 20
    comparison = open_comparison([one, other])
    tables = [table for group in verdict_tables(comparison, judge(comparison, n_resamples=99)) for table in group]
    (shown,) = (table for table in tables if table.caption == "One model on two engines")
    assert shown.rows[0][3:5] == ["20", str(second.same)]
    # A request that only one of them answered says nothing.
    shutil.copytree(one, tmp_path / "less")
    store = Store(tmp_path / "less" / "responses", response_schema())
    key = next(record["key"] for record in store.records())
    with store:
        store.append({"key": key, "text": None, "error": "lost"})
    less = named(tmp_path / "less", "transformers", "tiny")
    (found,) = parities(open_comparison([one, less]))
    assert (found.asked, found.same) == (19, 19)
    # One engine, or two models: nothing to say.
    assert parities(open_comparison([named(same, "vllm", "tiny"), one])) == []
    assert parities(open_comparison([named(same, "endpoint", "small"), one])) == []
