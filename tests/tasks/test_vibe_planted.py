"""All ten tasks, from the sample's clips to scores, over 3 seeds: what is planted is found, what is not is not.

The nominal 95 % is for each interval; over 30 of them, 28.5 are expected to hold the
planted shift, with a standard deviation of 1.2.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from equivox.core.scores import Score, ScoringOptions
from equivox.dataset_builders.corpus import Corpus
from equivox.dataset_builders.opening import open_corpus
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks
from equivox.tasks.vibe import CREMA_D, L2_ARCTIC, TASKS

pytestmark = pytest.mark.slow

SEEDS = range(3)


@pytest.fixture(scope="module")
def corpora() -> dict[str, Corpus]:
    return {source.corpus: open_corpus(source, "sample") for source in (CREMA_D, L2_ARCTIC)}


def task_scores(model: str, folder: Path, corpora: dict[str, Corpus]) -> list[Score]:
    spec = RunSpec(
        model=model,
        tasks=resolve_tasks("vibe_gender,vibe_accent"),
        data="sample",
        output=folder,
        options=ScoringOptions(n_resamples=999),
    )
    return [score for score in execute(spec, corpora=corpora) if score.is_whole]


def test_a_planted_shift_lies_in_its_interval(corpora: dict[str, Corpus], tmp_path: Path) -> None:
    held: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for seed in SEEDS:
        for score in task_scores(f"simulated:planted,shift=0.2,seed={seed}", tmp_path / str(seed), corpora):
            held[score.task] += score.ci[0] <= 20 <= score.ci[1]
            found[score.task] += score.p < 0.05
    assert held.total() >= 26, held
    assert all(held[task.name] >= 2 for task in TASKS), held
    assert all(found[task.name] >= 2 for task in TASKS), found


@pytest.mark.long
def test_speakers_who_differ_are_not_called_biased(corpora: dict[str, Corpus], tmp_path: Path) -> None:
    by_cluster = by_response = 0
    for seed in SEEDS:
        for score in task_scores(f"simulated:random,speaker=0.5,seed={seed}", tmp_path / str(seed), corpora):
            by_cluster += score.q < 0.05
            by_response += score.p_published < 0.05
    # The published test calls nearly all of the 30 biased; q, with speakers as the unit, no more than its level.
    assert by_response > 27
    assert by_cluster <= 2
