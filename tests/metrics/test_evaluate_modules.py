"""The folders of `metrics/` as modules of `evaluate`: loaded offline from the checkout, used as its users use them."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("ntvd", "numbers", "spoken_stereoset", "genres", "concept_associations")
GROUPS = ["a"] * 6 + ["b"] * 6
VALUES = ["chess"] * 5 + ["yoga", "chess", "yoga", "yoga", "yoga", "chess", "yoga"]
SPEAKERS = [f"s{row // 2}" for row in range(12)]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Any:
    evaluate = pytest.importorskip("evaluate")
    from equivox.metrics.ntvd.columns import METRIC  # what the modules import must be there before they are copied

    assert METRIC.name == "ntvd"
    cache = tmp_path_factory.mktemp("evaluate")

    def load(name: str) -> Any:
        return evaluate.load(str(ROOT / "metrics" / name), cache_dir=str(cache))

    return load


@pytest.mark.parametrize("name", NAMES)
def test_card(name: str, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    card = ROOT / "metrics" / name / "README.md"
    examples = doctest.DocTestParser().get_doctest(card.read_text("utf-8"), {}, name, str(card), 0)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples)
    assert results.attempted > 4
    assert results.failed == 0


def test_batches_are_the_whole(load: Any) -> None:
    ntvd = load("ntvd")
    whole = ntvd.compute(groups=GROUPS, values=VALUES, clusters=SPEAKERS, min_count=1)
    for part in (slice(0, 5), slice(5, 12)):
        ntvd.add_batch(groups=GROUPS[part], values=[[word] for word in VALUES[part]], clusters=SPEAKERS[part])
    assert ntvd.compute(min_count=1) == whole
    for group, value, speaker in zip(GROUPS, VALUES, SPEAKERS, strict=True):
        ntvd.add(groups=group, values=value, clusters=speaker)
    assert ntvd.compute(min_count=1) == whole
    assert whole["ntvd"] == pytest.approx(50)


def test_nothing_is_left_of_an_earlier_call(load: Any) -> None:
    ntvd = load("ntvd")
    first = ntvd.compute(groups=GROUPS, values=VALUES, clusters=SPEAKERS, min_count=1)
    second = ntvd.compute(groups=GROUPS[::2], values=VALUES[::2], min_count=1)
    assert (first["n_responses"], second["n_responses"], second["n_clusters"]) == (12, 6, 6)
    with pytest.raises(ValueError, match="no rows"):
        ntvd.compute()


def test_missing_values_survive_the_way_through_arrow(load: Any) -> None:
    ntvd = load("ntvd")
    found = ntvd.compute(groups=GROUPS, values=[*VALUES[:10], None, None], min_count=1)
    assert math.isnan(found["ntvd"])
    assert (found["n_used"], found["undefined"]) == (
        10,
        "too_few_usable: group b, share 0.666, needed 0.8",
    )
    concepts = load("concept_associations")
    told: list[list[str] | None] = [["kind"], [], ["calm"], ["kind"]]
    # An empty list is a document that says nothing, None is no document; neither is used.
    assert concepts.compute(identities=["f", "m", "m", "f"], phrases=told)["coverage"] == 0.75
    assert concepts.compute(identities=["f", "m", "m", "f"], phrases=[*told[:3], None])["coverage"] == 0.5


def test_a_row_without_an_answer_is_added_and_counted(load: Any) -> None:
    ntvd = load("ntvd")
    for group, value in (("a", "chess"), ("a", None), ("b", "yoga"), ("b", "yoga")):
        ntvd.add(groups=group, values=value)
    found = ntvd.compute(min_count=1)
    assert (found["n_responses"], found["n_used"], found["coverage"]) == (4, 3, 0.75)


def test_combine(load: Any) -> None:
    import evaluate

    both = evaluate.combine({"all": load("ntvd"), "genders": load("ntvd")})
    found = both.compute(groups=GROUPS, values=VALUES, clusters=SPEAKERS, min_count=1)
    assert found["all_ntvd"] == found["genders_ntvd"] == pytest.approx(50)


def test_results_are_flat(load: Any) -> None:
    inputs: dict[str, dict[str, list[Any]]] = {
        "ntvd": {"groups": GROUPS, "values": VALUES},
        "spoken_stereoset": {"kinds": ["stereotypical", "anti_stereotypical"] * 3},
        "genres": {"metrics": ["M3"] * 2, "pairs": ["p", "q"], "male": [2, 3], "female": [1, 1]},
        "concept_associations": {"identities": ["f", "m"] * 4, "phrases": ["kind", "calm"] * 4},
    }
    for name, columns in inputs.items():
        for key, value in load(name).compute(**columns).items():
            assert value is None or isinstance(value, (int, float, str)), (name, key)


def test_bad_columns(load: Any) -> None:
    ntvd = load("ntvd")
    with pytest.raises(ValueError, match="has no column or option `predictions`"):
        ntvd.compute(predictions=VALUES, references=GROUPS)
    with pytest.raises(ValueError, match="has no column or option `n_resample`; did you mean n_resamples; it takes"):
        ntvd.compute(groups=GROUPS, values=VALUES, n_resample=99)
    with pytest.raises(ValueError, match="unequal lengths"):
        ntvd.add_batch(groups=GROUPS, values=VALUES[:3])
    with pytest.raises(ValueError, match="`values` is missing"):
        ntvd.add_batch(groups=GROUPS)


def test_equivox_itself_needs_no_evaluate() -> None:
    code = "import sys, equivox.metrics.ntvd.columns; sys.exit('evaluate' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
