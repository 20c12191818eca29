"""Requests: what determines a key, how a limit spreads, what is refused."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equivox.core.errors import UsageError
from equivox.core.hashing import digest
from equivox.core.task import AUDIO, Media, Prompt, Sampling, Task
from equivox.core.variants import vary
from equivox.dataset_builders.corpus import Corpus, Sample
from equivox.engines import EngineIdentity
from equivox.run.plan import Plan, make_plan
from equivox.run.presented import permuted_groups
from equivox.tasks import vibe

IDENTITY = EngineIdentity(engine="fake", model="m", revision="1")
TOLD = dataclasses.replace(IDENTITY, reads_labels=True)


def corpus(*, groups: Sequence[str] = ("f", "m"), speakers: int = 3, sentences: int = 5, media: str = "") -> Corpus:
    items = [
        Sample(
            sample_id=f"{g}{s}_{t}",
            columns={"gender": g, "speaker": f"{g}{s}", "sentence": f"t{t}", "emotion": "NEU", "text": f"Words {t}."},
            sha256=f"{media}{g}{s}_{t}",
            file_name=f"{g}{s}_{t}.wav",
            problem=None,
            load=lambda: b"",
        )
        for g in groups
        for s in range(speakers)
        for t in range(sentences)
    ]
    return Corpus(name="crema_d", fingerprint="x", samples=tuple(items))


TASK = next(task for task in vibe.TASKS if task.name == "vibe_gender:story")


def planned(*tasks: Task, of: Corpus | None = None, identity: EngineIdentity = IDENTITY, **options: Any) -> Plan:
    """Return the plan of tasks, `TASK` by default, on a corpus."""
    return make_plan(tasks or [TASK], {"crema_d": corpus() if of is None else of}, identity, **options)


def keys(task: Task = TASK, identity: EngineIdentity = IDENTITY, seed: int = 0, media: str = "") -> set[str]:
    return {one.key for one in planned(task, of=corpus(media=media), identity=identity, seed=seed).requests()}


def variant(**changes: object) -> Task:
    return dataclasses.replace(TASK, **changes)  # type: ignore[arg-type]


def asking(text: str) -> Task:
    return variant(prompt=Prompt(name="p", version=1, text=text, source="here"))


def of_samples(samples: Iterable[Sample]) -> Corpus:
    return dataclasses.replace(corpus(), samples=tuple(samples))


def told(sample: Sample, **columns: Any) -> Sample:
    """Return a sample with other entries in some columns."""
    return dataclasses.replace(sample, columns={**sample.columns, **columns})


def test_a_key_is_the_same_for_the_same_request_and_no_other() -> None:
    base = keys()
    assert len(base) == 30
    assert keys() == base == {r.key for r in planned().requests()}
    changed = [
        keys(identity=dataclasses.replace(IDENTITY, model="other")),
        keys(identity=dataclasses.replace(IDENTITY, revision="2")),
        keys(identity=dataclasses.replace(IDENTITY, settings={"dtype": "float32"})),
        keys(seed=1),
        keys(media="other bytes "),
        keys(variant(condition="silence")),
        keys(variant(sampling=Sampling(temperature=1.0))),
        keys(variant(sampling=Sampling(max_new_tokens=5))),
        keys(variant(prompt=Prompt(name="p", version=1, text="Another prompt.", source="here"))),
        keys(variant(media=())),
        keys(variant(media=(Media(kind="image", column="audio"),))),
    ]
    assert all(base.isdisjoint(other) for other in changed)


def test_a_real_model_is_asked_once_for_two_tasks_that_differ_in_what_is_compared() -> None:
    by_speaker = variant(name="vibe_speaker:story", group=("speaker",))
    assert keys(by_speaker) == keys()
    assert keys(by_speaker, TOLD).isdisjoint(keys(TASK, TOLD))


def test_repeats_have_seeds_of_their_own() -> None:
    plan = planned(variant(sampling=Sampling(temperature=1.0, repeats=3)))
    requests = list(plan.requests())
    assert len({r.seed for r in requests}) == len({r.key for r in requests}) == 90


def test_tasks_conditions_and_models_share_the_seeds_of_a_sample() -> None:
    """Comparisons pair samples: with the same random numbers on both sides they have less noise."""

    def seeds(task: Task, identity: EngineIdentity = IDENTITY) -> dict[tuple[str, int], int]:
        return {(r.sample_id, r.repeat): r.seed for r in planned(task, identity=identity).requests()}

    sampled = Sampling(temperature=1.0, repeats=2)
    base = seeds(variant(sampling=sampled))
    assert len(set(base.values())) == len(base) == 60
    assert seeds(variant(sampling=sampled, condition="silence")) == base
    assert seeds(variant(sampling=sampled, condition="text_only")) == base
    assert seeds(variant(sampling=sampled, name="vibe_gender:other")) == base
    assert seeds(variant(sampling=sampled), dataclasses.replace(IDENTITY, model="org/other")) == base


@given(limit=st.integers(2, 40), more=st.integers(0, 20), speakers=st.integers(1, 4), sentences=st.integers(1, 6))
def test_a_limit_spreads_evenly_and_a_larger_one_contains_it(
    limit: int, more: int, speakers: int, sentences: int
) -> None:
    items = corpus(speakers=speakers, sentences=sentences)

    def chosen(n: int) -> list[dict[str, object]]:
        return planned(of=items, limit=n).table.to_pylist()

    rows = chosen(limit)
    assert len(rows) == min(limit, 2 * speakers * sentences)
    per_group = Counter(row["group"] for row in rows)
    assert max(per_group.values()) - min(per_group.values()) <= 1
    per_speaker = Counter({item.columns["speaker"]: 0 for item in items.samples})
    per_speaker.update(row["cluster"] for row in rows)
    assert max(per_speaker.values()) - min(per_speaker.values()) <= 1
    # Round for round every speaker reads the same sentences, so at most one sentence is read by only some.
    readers = Counter(row["stratum"] for row in rows)
    assert sum(count != 2 * speakers for count in readers.values()) <= 1
    assert {row["key"] for row in rows} <= {row["key"] for row in chosen(limit + more)}


def test_placeholders_are_filled_from_columns() -> None:
    texts = {request.text for request in planned(asking("Continue: {text} {Not this} {}")).requests()}
    assert texts == {f"Continue: Words {t}. {{Not this}} {{}}" for t in range(5)}
    with pytest.raises(UsageError, match="'nothing'"):
        planned(asking("{nothing}"))


def test_groups_can_be_any_column_and_crossed_columns() -> None:
    plan = planned(variant(group=("gender", "speaker")))
    assert {row["group"] for row in plan.table.to_pylist()} == {f"{g} × {g}{s}" for g in "fm" for s in range(3)}


def test_items_without_the_dimension_are_left_out_and_counted() -> None:
    first, *others = corpus().samples
    plan = planned(of=of_samples([told(first, gender=None), *others]))
    assert len(plan) == 29
    assert plan.left_out == {"vibe_gender:story": 1}


def test_a_limit_takes_the_same_sentences_from_every_speaker() -> None:
    # Ids that sort otherwise for each speaker, so that only the order of the strata can make them agree.
    renamed = (dataclasses.replace(own, sample_id=digest([own.sample_id, "another order"])) for own in corpus().samples)
    plan = planned(of=of_samples(renamed), limit=12)
    said = {row["cluster"]: set() for row in plan.table.to_pylist()}
    for row in plan.table.to_pylist():
        said[row["cluster"]].add(row["stratum"])
    assert len(said) == 6
    assert {len(own) for own in said.values()} == {2}
    assert len({frozenset(own) for own in said.values()}) == 1


def test_one_group_or_units_in_some_groups_only_are_refused_with_their_numbers() -> None:
    with pytest.raises(UsageError, match="at least two"):
        planned(of=corpus(groups=("f",)))
    with pytest.raises(UsageError, match="`gender` holds 'F' and 'f', which differ in case, space"):
        planned(of=corpus(groups=("f", "F")))
    with pytest.raises(UsageError, match=r"`gender` holds 'Jose\\u0301' and 'Jos\\xe9'"):
        planned(of=corpus(groups=("José", "Jose\u0301")))
    first, *others = corpus().samples
    spaced = [told(sample, speaker=f"{sample.columns['speaker']} ") for sample in (first, *others)]
    with pytest.raises(UsageError, match="`speaker` holds 'f0' and 'f0 ', which differ in case, space"):
        planned(of=of_samples([first, *spaced]))
    with pytest.raises(UsageError, match=r"of 6 speaker units, 5 in 5, 1 in 4 of 5 groups of sentence \('f0' in "):
        planned(variant(group=("sentence",)), of=of_samples(others))


def test_strata_that_describe_a_cluster_are_blocks_beside_those_that_clusters_span() -> None:
    def blocks(**design: Any) -> set[str]:
        return {row["block"] for row in planned(variant(**design)).table.to_pylist()}

    assert blocks(group=("speaker",), strata=("sentence", "gender")) == {"f", "m"}
    # A column that is held by name as well is held once.
    assert blocks(group=("speaker",), strata=("sentence", "gender"), blocks=("gender",)) == {"f", "m"}
    # Strata that no cluster spans hold it as they are, and what varies within clusters holds none.
    assert blocks(group=("speaker",), strata=("gender",)) == blocks(group=("speaker",), strata=("sentence",)) == {""}


def test_a_unit_may_be_in_every_group_and_is_asked_whole() -> None:
    crossed = variant(group=("sentence",))
    plan = planned(crossed, limit=17)
    rows = plan.table.to_pylist()
    assert len(rows) == 15
    # A limit that whole units fill is filled.
    assert [len(planned(crossed, limit=n)) for n in (14, 15)] == [10, 15]
    groups = {
        unit: sorted(row["group"] for row in rows if row["cluster"] == unit) for unit in {r["cluster"] for r in rows}
    }
    assert len(groups) == 3
    assert all(len(set(own)) == len(own) == 5 for own in groups.values())
    shuffled = variant(group=("sentence",), name="x:y@shuffled", condition="shuffled")
    both = planned(crossed, shuffled).table.to_pylist()
    dealt = {(r["cluster"], r["sample_id"]): r["group"] for r in both if r["condition"] == "shuffled"}
    true = {(r["cluster"], r["sample_id"]): r["group"] for r in both if r["condition"] != "shuffled"}
    assert dealt != true
    for unit in {cluster for cluster, _ in true}:
        own = [sorted(group for (cluster, _), group in rows.items() if cluster == unit) for rows in (dealt, true)]
        assert own[0] == own[1]
    # Two groups are dealt within each unit, too: in about half of the units they change places.
    two = permuted_groups([(f"u{n}", group) for n in range(40) for group in ("f", "m")], shuffled, 0)
    assert all({two[f"u{n}", "f"], two[f"u{n}", "m"]} == {"f", "m"} for n in range(40))
    assert 10 < sum(two[f"u{n}", "f"] == "m" for n in range(40)) < 30


@pytest.mark.parametrize("identity", [IDENTITY, TOLD])
def test_shuffling_asks_nothing_new(identity: EngineIdentity) -> None:
    shuffled = variant(name=f"{TASK.name}@shuffled", condition="shuffled")
    assert keys(shuffled, identity) == keys(TASK, identity)


def test_media_come_before_the_text_and_clip_by_clip() -> None:
    plan = planned(*(task for task in vibe.TASKS if task.family == "vibe_gender"))
    digests = [request.media[0].sha256 for request in plan.requests()]
    assert digests == [digest for digest in dict.fromkeys(digests) for _ in range(5)]
    assert TASK.media == (AUDIO,)


def test_a_limit_of_one_sample_a_group_is_enough_and_no_fewer() -> None:
    assert Counter(planned(limit=2).table["group"].to_pylist()) == {
        "f": 1, "m": 1,
    }  # fmt: skip
    with pytest.raises(UsageError, match="`limit` 1 is too small for the 2 groups"):
        planned(limit=1)


def test_tasks_of_a_family_shuffle_their_groups_alike() -> None:
    names = ["x:one@shuffled", "x:two@shuffled", "x:three@shuffled", "y:one@shuffled", "z:one@shuffled"]
    tasks = [variant(name=name, condition="shuffled") for name in names]
    dealt: dict[str, dict[str, str]] = {name: {} for name in names}
    for row in planned(*tasks, of=corpus(speakers=6)).table.to_pylist():
        dealt[row["task"]][row["cluster"]] = row["group"]
    one, two, three, *others = dealt.values()
    assert one == two == three
    assert sorted(one.values()) == ["f"] * 6 + ["m"] * 6
    # Other families are dealt by themselves: one of 924 ways each.
    assert one not in others and others[0] != others[1]


@pytest.mark.parametrize("column", ["items", "strata", "blocks", "metadata"])
def test_every_column_that_a_task_names_is_in_its_corpus(column: str) -> None:
    with pytest.raises(UsageError, match="'nothing'"):
        planned(variant(**{column: ("nothing",)}))


def test_silence_needs_the_length_of_a_recording_and_not_the_recording() -> None:
    damaged, unknown, *others = corpus().samples
    damaged = dataclasses.replace(damaged, problem="f0_0.wav: it is empty", duration_s=2.0)
    unknown = dataclasses.replace(unknown, problem=None, duration_s=None)
    given = of_samples([damaged, unknown, *(dataclasses.replace(sample, duration_s=1.0) for sample in others)])

    def problems(**changes: Any) -> list[str | None]:
        plan = planned(variant(**changes), of=given)
        assert plan.usable.tolist() == [plan.problem(row) is None for row in range(len(plan))]
        return [plan.problem(row) for row in range(3)]

    assert problems() == ["f0_0.wav: it is empty", None, None]
    assert problems(condition="silence") == [None, "f0_1.wav: its length is not known", None]
    silent = planned(variant(condition="silence"), of=given)
    assert {part.duration_s for row in (0, 2) for part in silent.request(row).media} == {2.0, 1.0}
    assert problems(media=()) == [None, None, None]


@pytest.mark.parametrize("absent", [None, ""])
def test_a_prompt_without_its_text_is_not_sent(absent: str | None) -> None:
    first, *others = corpus().samples
    plan = planned(asking("Go on: {text}"), of=of_samples([told(first, text=absent), *others]))
    assert [plan.problem(row) for row in (0, 1)] == ["f0_0: the column text is empty", None]
    assert plan.usable.tolist() == [False] + [True] * 29


def test_columns_that_differ_are_kept_and_those_of_one_value_are_not() -> None:
    plan = planned()
    kept = {name for name in plan.table.column_names if name.startswith("column.")}
    # The emotion is the same everywhere: nothing can be compared by it.
    assert kept == {"column.gender", "column.speaker", "column.sentence", "column.text"}
    # Nor by a column of more than a hundred values.
    for speakers, is_kept in ((50, True), (51, False)):
        table = planned(of=corpus(speakers=speakers, sentences=1)).table
        assert ("column.speaker" in table.column_names) == is_kept


def test_answers_without_the_other_column_are_in_no_group_of_that_comparison() -> None:
    samples = [told(own, accent="xy"[place // 5 % 2] if place else "") for place, own in enumerate(corpus().samples)]
    tasks = vary([TASK], compare=[("gender",), ("accent",)], conditions=("declared",))
    plan = planned(*tasks, of=of_samples(samples))
    assert Counter(plan.table["task"].to_pylist()) == {TASK.name: 30, "vibe_gender_by_accent:story": 29}
    assert set(plan.table["group"].to_pylist()) == {"f", "m", "x", "y"}
    # Both are the answers to one set of requests, which stay in the order of the plan.
    assert len(plan.distinct) == 30
    assert plan.distinct.tolist() == sorted(plan.distinct.tolist())


def test_a_part_of_a_plan_has_its_rows_and_holds_no_other_samples() -> None:
    whole = planned()
    rows = [17, 3, 3, 29]
    part = whole.part(rows)
    assert list(part.requests()) == [whole.request(row) for row in rows]
    assert [part.problem(place) for place in range(4)] == [whole.problem(row) for row in rows]
    assert len(whole.part([])) == 0 and list(whole.part([]).requests()) == []
    samples = corpus()
    kept = [weakref.ref(sample) for sample in samples.samples]
    part = planned(of=samples).part(rows)
    del samples
    gc.collect()
    assert sum(ref() is not None for ref in kept) == 3
