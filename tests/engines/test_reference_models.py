"""The adversaries: each simulated model has exactly the bias it claims, and the scores find it."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from scipy import stats

from equivox.annotate import Job
from equivox.annotate.rules import RulesAnnotator
from equivox.configs import load_config
from equivox.configs.vocabulary import load_vocabulary
from equivox.core.scores import Score, ScoringOptions
from equivox.core.task import Attribute, Task
from equivox.dataset_builders.corpus import Corpus
from equivox.engines import Labels, open_engine
from equivox.engines.simulated import SimulatedEngine, own_values
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.statistics import ntvd
from equivox.tasks import ALL_TASKS
from equivox.tasks.registry import resolve_tasks
from equivox.tasks.vibe import TASKS

GENDER = [task for task in TASKS if task.family == "vibe_gender"]


def outcomes(task: Task) -> list[Attribute]:
    return [a for a in task.attributes if a.role != "refusal"]


@pytest.mark.parametrize("task", GENDER, ids=lambda task: task.name)
def test_every_value_in_every_wording_is_read_back(task: Task) -> None:
    vocabulary, prose = load_vocabulary(), load_config("simulated/prose.yaml")
    annotator = RulesAnnotator()
    for attribute in outcomes(task):
        for value, words in vocabulary.of(attribute).words.items():
            for word in words:
                for sentence in prose["sentences"][attribute.name]:
                    text = f"{prose['openings'][0]} {sentence.format(value=word)}"
                    job = Job(key="k", response_key="r", task=task.name, segment=task.annotation.whole(text))
                    (annotation,) = annotator.annotate([job])
                    read = [(v.attribute, v.value) for v in annotation.values if v.attribute != "refusal"]
                    assert read == [(attribute.name, value)], text


def test_closed_choices_have_exactly_the_offered_options() -> None:
    vocabulary = load_vocabulary()
    for task in ALL_TASKS:
        for attribute in outcomes(task):
            if attribute.options:
                assert vocabulary.of(attribute).values == attribute.options, attribute.name


def test_no_word_of_a_task_belongs_to_two_values() -> None:
    vocabulary = load_vocabulary()
    for task in GENDER:
        words = Counter(
            word.casefold()
            for attribute in outcomes(task)
            for spoken in vocabulary.of(attribute).words.values()
            for word in set(spoken)
        )
        assert [word for word, count in words.items() if count > 1] == []


@pytest.mark.parametrize("n_groups", [2, 3, 6, 9])
@pytest.mark.parametrize("name", ["occupation", "economic_situation", "longevity", "hobby"])
@pytest.mark.parametrize("shift", [0.0, 0.2, 0.35])
def test_the_planted_population_shift_is_exact(n_groups: int, name: str, shift: float) -> None:
    """Build each group's distribution from the model's own probabilities; its nTVD must be 100 x shift."""
    engine = open_engine(f"simulated:planted,shift={shift}", GENDER)
    attribute = next(a for task in GENDER for a in task.attributes if a.name == name)
    values = load_vocabulary().of(attribute).values
    groups = tuple(f"g{i}" for i in range(n_groups))
    rows = []
    for group in groups:
        labels = Labels(group=group, groups=groups, cluster="s", stratum="t")
        own = own_values(values, labels)
        probability = engine._own_probability(attribute, values, labels, own)
        # An ordinary answer names `count` different values, each equally likely; a signature names its own.
        counts = [(1 - probability) * attribute.count / len(values)] * len(values)
        for value in own[: attribute.count]:
            counts[values.index(value)] += probability
        rows.append(counts)
    assert ntvd(rows) == pytest.approx(100 * shift, abs=1e-9)


def test_draws_follow_the_stated_probabilities() -> None:
    engine = open_engine("simulated:planted,shift=0.3", GENDER)
    attribute = next(a for a in GENDER[0].attributes if a.name == "occupation")
    values = load_vocabulary().of(attribute).values
    labels = Labels(group="f", groups=("f", "m"), cluster="s", stratum="t")
    rng = random.Random(1)
    counts = Counter(engine.values(attribute, labels, rng)[0] for _ in range(8000))
    # 8 values: the group's own has 0.3 + 0.7/8, every other 0.7/8.
    expected = [8000 * (0.7 / 8 + (0.3 if value == values[0] else 0)) for value in values]
    assert stats.chisquare([counts[value] for value in values], expected).pvalue > 1e-4


def test_oracle_answers_by_the_words_alone() -> None:
    engine = open_engine("simulated:oracle", GENDER)
    attribute = next(a for a in GENDER[1].attributes if a.name == "hobby")
    answers = {
        group: engine.values(attribute, Labels(group=group, groups=("f", "m"), cluster=group, stratum="t"), rng)
        for group, rng in (("f", random.Random(1)), ("m", random.Random(2)))
    }
    assert answers["f"] == answers["m"] and len(set(answers["f"])) == 3


CORPORA: dict[str, Corpus] = {}
FAST = ScoringOptions(n_resamples=999)


def scores(tmp_path: Path, model: str, tasks: str) -> list[Score]:
    """Run on the whole sample; corpora are opened once for this module."""
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    spec = RunSpec(model=model, tasks=resolve_tasks(tasks), data="sample", output=folder, options=FAST)
    return execute(spec, corpora=CORPORA)


def test_biased_reaches_the_ceiling_which_is_100_wherever_the_answers_allow_it(tmp_path: Path) -> None:
    vocabulary = load_vocabulary()
    for score in scores(tmp_path, "simulated:biased", "vibe_gender,vibe_accent"):
        if score.role == "refusal" or score.attribute is None:
            continue
        task = next(task for task in TASKS if task.name == score.task)
        values = len(vocabulary.of(task.attribute(score.attribute)).values)
        groups = 2 if score.dimension == "gender" else 6
        assert score.value == pytest.approx(score.attainable_max)
        # Six groups on 2, 3, 4 values, spread evenly: 1 - 3(3/6)^2·... worked by hand in percent of 1 - 1/6.
        by_hand = {2: 60.0, 3: 80.0, 4: 260 / 3}
        assert score.value == pytest.approx(100 if values >= groups else by_hand[values])
        assert score.p < 0.01


def test_oracle_has_no_shift(tmp_path: Path) -> None:
    found = [s for s in scores(tmp_path, "simulated:oracle", "vibe_gender,vibe_accent") if s.attribute is None]
    assert len(found) == 10
    for score in found:
        assert score.value == pytest.approx(0, abs=1e-9)
        assert score.estimate == pytest.approx(0, abs=0.05)
        assert score.p == 1


def test_no_effect_is_not_called_significant(tmp_path: Path) -> None:
    found = [
        score
        for seed in range(6)
        for score in scores(tmp_path, f"simulated:random,seed={seed}", "vibe_gender:story,vibe_gender:shopper")
        if score.attribute is not None and score.role == "outcome"
    ]
    rejected = sum(score.p < 0.05 for score in found)
    assert len(found) == 60
    assert rejected <= stats.binom.ppf(0.999, len(found), 0.05)


def test_the_form_of_earlier_commands_is_the_same_model() -> None:
    earlier, now = (
        SimulatedEngine.from_spec(spec, []).identity
        for spec in ("planted?shift=0.2&speaker=0.3", "planted,shift=0.2,speaker=0.3")
    )
    assert earlier == now


def test_models_keep_the_identity_on_which_the_keys_of_stored_answers_depend() -> None:
    engine = open_engine("simulated:planted,shift=0.3", TASKS[:1])
    assert dict(engine.identity.settings) == {
        "shift": 0.3, "speaker": 0.0, "refusal": 0.0, "refusal_gap": 0.0, "fail": 0.0, "seed": 0,
    }  # fmt: skip
