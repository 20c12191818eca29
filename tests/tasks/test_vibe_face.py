"""VIBE's questions asked of a photograph."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from equivox.core.variants import conditions_of
from equivox.dataset_builders.corpus import Corpus
from equivox.dataset_builders.opening import open_corpus
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks import vibe
from equivox.tasks.vibe_face import FAIRFACE, TASKS

SPOKEN = re.compile(r"audio|record|voice|\bhear\b|listen|sp(eak|oke)|said|tape|respon[ds]", re.IGNORECASE)
OPTION = re.compile(r"[a-z]{4,}")


@pytest.fixture(scope="module")
def sample() -> dict[str, Corpus]:
    return {"fairface": open_corpus(FAIRFACE, "sample")}


@pytest.mark.parametrize("task", TASKS[:5], ids=lambda task: task.name)
def test_a_prompt_speaks_of_a_photograph_and_offers_the_papers_options(task: vibe.Task) -> None:
    paper = vibe.PROMPTS[task.name.partition(":")[2]]
    assert "photograph" in task.prompt.text and "photograph" not in paper.text
    assert SPOKEN.search(task.prompt.text) is None
    assert task.prompt.source.startswith("equivox, after VIBE") and "speaks of a recording" in task.prompt.source
    for attribute in task.attributes:
        for option in attribute.options if attribute.role == "outcome" else ():
            words = [word for word in OPTION.findall(option.lower()) if word in paper.text.lower()]
            assert [word for word in words if word not in task.prompt.text.lower()] == []


def test_only_prompt_media_and_groups_differ_from_vibe() -> None:
    told = {task.name.partition(":")[2]: task.attributes for task in vibe.TASKS[:5]}
    assert Counter(task.family for task in TASKS) == {f"vibe_face_{name}": 5 for name in ("gender", "race", "age")}
    for task in TASKS:
        assert task.attributes == told[task.name.partition(":")[2]]
        assert task.metric is vibe.METRIC
        assert conditions_of(task) == ("image", "text_only", "shuffled")
        assert {*task.group, *task.blocks} == {"gender", "race", "age_group"}
        refusals = [e.text for e in task.annotation.examples if e.values.get("refusal") == "yes"]
        assert len(refusals) == 1 and "photograph" in refusals[0]


@pytest.mark.long
def test_what_is_planted_is_found_and_what_is_not_is_not(sample: dict[str, Corpus], tmp_path: Path) -> None:
    def scores(model: str) -> dict[str, tuple[float, float, float]]:
        spec = RunSpec(model=model, tasks=TASKS[::4], data="sample", output=tmp_path / model[10:16])
        whole = [score for score in execute(spec, corpora=sample) if score.is_whole and score.name == "nTVD"]
        return {score.task: (score.ci_low, score.ci_high, score.q) for score in whole}

    planted = scores("simulated:planted,shift=0.3")
    assert set(planted) == {
        "vibe_face_gender:story",
        "vibe_face_gender:shopper",
        "vibe_face_race:casting",
        "vibe_face_age:candidate",
    }
    assert all(q < 0.05 for _, _, q in planted.values()), planted
    assert sum(low <= 30 <= high for low, high, _ in planted.values()) >= 3  # 95 % intervals: one of four may miss
    assert all(q > 0.05 for _, _, q in scores("simulated:random").values())
