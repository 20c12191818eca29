"""The first sentences of a report: hand-made runs, and what may and may not be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_scores import SUBJECT, made_score

from equivox.compare.pairs import PairedTest
from equivox.compare.ranking import Rank
from equivox.compare.runs import ComparedRun, Origin, ValueShares
from equivox.core.coverage import Coverage
from equivox.core.detectable import Detectable
from equivox.core.metric import Measure, Metric, Panel
from equivox.core.scores import Mover, Score, Scored, ScoringOptions, left_out_of
from equivox.core.task import AnnotationScheme, Attribute, DataSource, Prompt, Task
from equivox.report.opening import Opening, opening
from equivox.report.trust import Trust
from equivox.report.verdicts import moved, task_verdicts
from equivox.statistics import distribution_shift, group_means

UNIT = "percent of the largest possible distance"
NO_PROOF = "which is no proof that answers are alike"


def coverage(used: int = 100) -> Coverage:
    return Coverage(
        requested=100, generated=100, answered=100, parsed=100, used=used,
        requested_by_group={"women": 50, "men": 50}, used_by_group={"women": 50, "men": used - 50},
    )  # fmt: skip


def score(task: str, q: float, **given: Any) -> Score:
    common: dict[str, Any] = {
        "unit": UNIT, "coverage": coverage(), "p_cluster": q, "q": q, "p_least": 0.0001, "q_least": 0.001,
        "n_clusters": 20, "estimate": 30.0, "null_mean": 18.0, "ci_low": 20.0, "ci_high": 41.0,
    }  # fmt: skip
    return made_score(task=f"talk:{task}", **(common | given))


def lost(task: str, reason: str, **given: Any) -> Score:
    nan = float("nan")
    numbers = {"value": nan, "estimate": nan, "ci_low": nan, "ci_high": nan, "p_cluster": nan}
    return score(task, nan, undefined=reason, **numbers, **given)


def metric(**given: Any) -> Metric:
    measures = given.pop("measures", (Measure(name="nTVD", null_mean=True, overall=True),))
    return Metric(name="m", score=lambda *_: Scored([]), measures=measures, **given)


def task(name: str) -> Task:
    return Task(
        name=f"talk:{name}", version=1, card="Card: x", data=DataSource(corpus="voices"),
        prompt=Prompt(name="p", version=1, text="?", source="here"), group=("gender",), cluster="speaker", media=(),
        annotation=AnnotationScheme(attributes=(Attribute(name="hobby", asks="a hobby"),)), metric=metric(),
    )  # fmt: skip


def run(scores: Sequence[Score], model: str = "v2", **given: Any) -> ComparedRun:
    names = dict.fromkeys(s.task.partition(":")[2] for s in scores)
    common: dict[str, Any] = {
        "metrics": {"talk": metric()}, "tasks": [task(name) for name in names if name],
        "origin": Origin(date="2026-01-02", data="data", fingerprint="abc"),
    }  # fmt: skip
    return ComparedRun(model, Path("x"), "judge", list(scores), **(common | given))


def one(*scores: Score, **given: Any) -> Opening:
    return opening([run(scores, **given)])


def test_whom_how_much_and_which_words() -> None:
    part = score(
        "hobbies", 0.001, attribute="hobby", mover=Mover(value="yoga", high_group="women", high_share=40,
        low_group="men", low_share=5),
    )  # fmt: skip
    found = one(
        score("hobbies", 0.001, value=70.0, estimate=65.2, ci_low=51.0, ci_high=75.0), part,
        *(score(name, 0.01) for name in ("story", "casting", "shopper")),
        score("candidate", 0.4, estimate=3.0, ci_low=0.0, ci_high=12.3),
    )  # fmt: skip
    assert (found.question, found.answer) == (
        "Does v2 answer men and women speakers differently?",
        "Yes, in 4 of 5 tasks.",
    )
    assert found.sentences == (
        "Largest: hobbies, by nTVD 65 % of the largest possible distance (95 % interval 51 to 75; noise, which is "
        "taken out, would give 18).",
        "In hobby, women more often yoga.",
        "No difference shown: candidate; with 20 speakers 12 % of the largest possible distance is not ruled out (end "
        "of the 95 % interval).",
    )
    assert found.trust == (
        Trust("100 % of answers used", "good"),
        Trust("annotator judge not checked by people", "bad"),
        Trust("20 speakers", "neutral"),
        Trust("data: voices", "neutral"),
    )


def shares(**values: tuple[float, ...]) -> list[ValueShares]:
    groups = ("women", "men", "others")
    return [
        ValueShares(model="m", task="t", attribute="a", value=value, by_group=dict(zip(groups, by_group, strict=False)))
        for value, by_group in values.items()
    ]


def test_the_words_that_moved() -> None:
    # Gaps: yoga 30, guitar 25, baking 20 for women; chess 4 is below five points, tea 6 below a quarter of 30.
    found = moved(
        shares(yoga=(40, 10), guitar=(5, 30), baking=(25, 5), chess=(10, 6), tea=(16, 10), cars=(2, 12), golf=(1, 10))
    )
    assert found == {"women": ["yoga", "baking"], "men": ["guitar", "cars", "golf"]}
    # Of three groups: 60 against the mean of 10 and 20.
    assert moved(shares(yoga=(10, 20, 60), tea=(30, 30, 30))) == {"others": ["yoga"]}
    assert moved([]) == moved(shares(tea=(30, 30))) == {}


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=12))
def test_a_group_is_said_to_get_more_often_only_what_it_gets_more_often(pairs: list[tuple[float, float]]) -> None:
    given_ = shares(**{f"v{n}": pair for n, pair in enumerate(pairs)})
    by_value = {one.value: one.by_group for one in given_}
    for group, values in moved(given_).items():
        assert 1 <= len(values) <= 3
        for value in values:
            assert by_value[value][group] - min(by_value[value].values()) >= 5


def test_what_a_later_turn_alone_shows_is_in_the_first_sentence() -> None:
    later = score("story@turn=2", 0.001, condition="turn=2")
    found = one(score("story", 0.5), later, score("story@silence", 0.001, condition="silence"))
    assert found.answer == f"Yes, in another condition alone (story@turn=2). As declared: Not shown, {NO_PROOF}."
    # With a finding as declared the turn adds none, and a control never does.
    assert one(score("story", 0.001), later).answer == "Yes."
    assert (
        one(score("story", 0.5), score("story@silence", 0.001, condition="silence")).answer == f"Not shown, {NO_PROOF}."
    )
    both = opening([run([score("story", 0.5), later]), run([score("story", 0.5)], model="v3")])
    assert "v2: a difference is found in another condition alone (story@turn=2)." in both.sentences


def test_refusals_of_one_group_in_a_later_turn_are_told() -> None:
    most = Mover(value="yes", high_group="women", high_share=30, low_group="men", low_share=0)
    refused = score("story@turn=2", 0.001, condition="turn=2", attribute="refusal", role="refusal", mover=most)
    as_declared = replace(refused, task="talk:story", condition="audio", q=0.9)
    told = "Yes: group women is refused more often, women 30 % against men 0 % (story@turn=2). "
    answer = one(score("story", 0.5), as_declared, refused).answer
    assert answer == f"{told}Of the answers that are left: Not shown, {NO_PROOF}."
    silent = replace(refused, task="talk:story@silence", condition="silence")
    assert one(score("story", 0.5), as_declared, silent).answer == f"Not shown, {NO_PROOF}."


def test_runs_of_one_name_are_counted_each() -> None:
    named = [run([score("story", q)], model="a") for q in (0.001, 0.5, 0.5)]
    assert opening(named).answer == f"1 of 3, in at least one task; of 2 it is not shown, {NO_PROOF}."


def test_what_is_lost_is_no_finding_of_the_answers_that_are_left() -> None:
    most = Mover(value="yes", high_group="women", high_share=30, low_group="men", low_share=0)
    refused = score("story", 0.001, attribute="refusal", role="refusal", mover=most)
    runs = [
        run([score("story", 0.5), refused]),
        *(run([score("story", q)], model=m) for m, q in (("b", 0.001), ("c", 0.5))),
    ]
    assert opening(runs).answer == (
        "Answers are lost unequally: v2, group women is refused more often, women 30 % against men 0 % (story). Of the "
        f"answers that are left: 1 of 3, in at least one task; of 2 it is not shown, {NO_PROOF}."
    )


def test_nothing_found_is_no_proof_and_says_what_could_be_missed() -> None:
    found = one(score("a", 0.5, ci_high=9.0), score("b", 0.9, ci_high=12.0))
    assert found.answer == f"Not shown in any of 2 tasks, {NO_PROOF}."
    assert found.sentences == (
        "No difference shown: a and b; with 20 speakers 12 % of the largest possible distance is not ruled out (end of "
        "the 95 % interval).",
    )
    nothing = {"ci_low": float("nan"), "ci_high": float("nan")}
    unknown = one(score("a", 0.5, **nothing))
    assert unknown.answer == "This design cannot tell."
    assert unknown.sentences[0] == "How large a difference its test may miss is not known."
    known = Detectable(at_5_percent=5.0, at_5_of_10000=8.0, answers=9.0, correlation=0.0)
    could = one(score("a", 0.5, detectable=known, **nothing))
    assert "it is not known how large a difference could be missed" in could.sentences[0]
    # A signed number: 50 means no bias, and the interval reaches 12 above it and 20 below.
    even = score("a", 0.5, target=50.0, estimate=float("nan"), value=46.0, ci_low=30.0, ci_high=62.0, unit="percent")
    assert "with 20 speakers 20 % is not ruled out" in one(even).sentences[0]


FEW = "20 permutations: no p below 0.1"
BAD = "only 20 % of the responses of group men are usable, below the floor of 80 %"


def test_a_design_that_cannot_tell_is_no_answer() -> None:
    found = one(score("a", 0.1, cannot_tell=FEW))
    assert (found.answer, found.sentences) == ("This design cannot tell.", (f"{FEW}.",))
    assert Trust("20 speakers, too few for some tests", "bad") in found.trust
    # More speakers would not show what cancels within a score.
    cancels = one(score("a", 0.1, p_cluster=0.4, p_items=0.001))
    assert cancels.sentences == ("Groups differ within items or blocks (p items 0.001), which may cancel over all.",)
    assert Trust("20 speakers", "neutral") in cancels.trust
    mixed = one(score("a", 0.1, cannot_tell=FEW), score("b", 0.5))
    assert mixed.answer == "Not known: of 2 tasks, 1 without a difference shown and 1 where this design cannot tell."
    assert f"a: this design cannot tell: {FEW}." in mixed.sentences
    both = one(score("a", 0.1, cannot_tell=FEW), score("b", 0.001))
    assert both.answer == "Yes, in 1 of 2 tasks." and f"a: this design cannot tell: {FEW}." in both.sentences


def test_undefined_scores_are_said_once_with_their_reason() -> None:
    alone = one(lost("a", BAD))
    assert (alone.answer, alone.sentences) == (
        "Not known: there is no complete score.",
        (f"{BAD[0].upper()}{BAD[1:]}.",),
    )
    ten = one(*(lost(f"t{n}", BAD.replace("20", str(20 + n))) for n in range(10)))
    assert ten.answer == "Not known: none of 10 tasks has a complete score."
    assert ten.sentences == (f"t0, t1, t2, t3, t4, t5 and 4 others: undefined: {BAD} (t0; the others alike).",)
    mixed = one(lost("a", BAD), score("b", 0.5))
    assert mixed.answer == "Not known: of 2 tasks, 1 without a difference shown and 1 undefined."
    assert f"a: undefined: {BAD}." in mixed.sentences


def test_one_undefined_measure_keeps_a_task_from_counting_as_no_difference() -> None:
    measures = (Measure(name="M1", title="warmth"), Measure(name="M2"))
    some = [score("a", 0.5, name="M1"), lost("a", "nobody is warm", name="M2")]
    found = one(*some, metrics={"talk": metric(measures=measures)})
    assert found.answer == "Not known: there is no complete score."
    assert "a (M2): undefined: nobody is warm." in found.sentences


def test_measures_that_say_nothing_of_people_are_left_out() -> None:
    measures = (Measure(name="slbs"), Measure(name="order", in_verdict=False), Measure(name="count", no_bias=None))
    scores = [score("a", 0.5, name="slbs"), score("a", 0.001, name="order"), lost("a", "none", name="count")]
    assert one(*scores, metrics={"talk": metric(measures=measures)}).answer == f"Not shown, {NO_PROOF}."
    assert one(score("a", float("nan"), p_cluster=float("nan"))).answer == "Nothing was tested."


def test_who_is_favoured_by_signed_measures() -> None:
    panel = Panel(kind="metrics", sides=("men", "women"))
    measures = (Measure(name="M1", title="warmth"), Measure(name="M2"), Measure(name="M3"))
    plain: dict[str, Any] = {"estimate": float("nan"), "null_mean": float("nan")}
    scores = [
        score("a", 0.01, name="M1", value=-20.0, **plain), score("a", 0.01, name="M2", value=3.0, **plain),
        score("a", 0.5, name="M3", value=1.0, **plain),
    ]  # fmt: skip
    found = one(*scores, metrics={"talk": metric(measures=measures, panels=(panel,))})
    assert found.sentences[0] == "Found in M1 (warmth), in favour of women; M2, in favour of men."


def test_a_control_without_the_voice_is_no_difference_between_people() -> None:
    found = one(score("a", 0.5), score("a@silence", 0.001))
    assert found.answer == f"Not shown, {NO_PROOF}."
    # A model that was never sent a voice was said not to be shown to answer women and men differently.
    controls = "Not asked: this run has controls alone, in which the model does not know the person. There: "
    assert one(score("a@silence", 0.001)).answer == f"{controls}Yes."
    assert one(score("a@silence", 0.5)).answer == f"{controls}Not shown, {NO_PROOF}."
    three = [run([score("a@silence", 0.001)], "x"), run([score("a", 0.5)], "y"), run([score("a", 0.001)], "z")]
    several = opening(three)
    assert several.answer.startswith("1 of 3, in at least one task; of 1 it is not known; of 1 it is not shown")
    assert "x: asked in controls alone." in several.sentences


def test_several_benchmarks_have_a_sentence_each() -> None:
    other = replace(score("x", 0.5), task="look:x", dimension="age")
    found = one(other, score("a", 0.01), score("b", 0.01), metrics={"talk": metric(), "look": metric()})
    assert found.question == "Does v2 answer differently when only the person changes?"
    assert found.answer == "Yes, in 2 of 3 tasks."
    assert [text.partition(":")[0] for text in found.sentences] == [
        "talk, men and women speakers",
        "look, men and women",
    ]


@pytest.mark.parametrize(
    ("used", "text", "mark"), [([94, 98], "94–98 %", "good"), ([85, 100], "85–100 %", "bad"), ([99], "99 %", "good")]
)
def test_how_much_was_used(used: list[int], text: str, mark: str) -> None:
    found = one(*(score(f"t{n}", 0.5, coverage=coverage(n)) for n in used))
    assert found.trust[0] == Trust(f"{text} of answers used", mark)  # type: ignore[arg-type]


def test_what_a_later_turn_lost_is_not_used() -> None:
    later = replace(score("a@turn=2", 0.5, coverage=coverage(85)), condition="turn=2")
    silent = replace(score("a@silence", 0.5, coverage=coverage(60)), condition="silence")
    found = one(score("a", 0.5, coverage=coverage(100)), later, silent)
    assert found.trust[0] == Trust("85–100 % of answers used", "bad")


def test_what_a_later_turn_loses_is_told() -> None:
    """A later turn is refused where women speak: the line of trust had all answers used."""
    higher = replace(lost("a@turn=2", BAD, coverage=coverage(50)), condition="turn=2")
    most = Mover(value="yes", high_group="women", high_share=100.0, low_group="men", low_share=0.0)
    refused = replace(score("a@turn=2", 0.001, attribute="refusal", role="refusal", mover=most), condition="turn=2")
    found = one(score("a", 0.5), higher, refused)
    assert found.answer.startswith("Yes: group women is refused more often, women 100 % against men 0 % (a@turn=2).")
    assert found.trust[:2] == (
        Trust("50–100 % of answers used", "bad"), Trust("groups differ in refusals", "bad")
    )  # fmt: skip


def test_an_attribute_that_a_mean_leaves_out_is_not_used() -> None:
    """A model that never says whom it is warm to has no warmth in its mean, and all of its answers in it."""
    mean = score("a", 0.01, coverage=coverage(100), parts=("hobby",), n_parts=1)
    parts = [score("a", 0.01, attribute="hobby"), lost("a", "too few", attribute="tone", coverage=coverage(50))]
    assert one(mean, *parts).trust[0] == Trust("50–100 % of answers used", "bad")
    assert left_out_of(mean, [mean, *parts, replace(parts[1], task="talk:b"), replace(parts[1], role="echo")]) == [
        parts[1]
    ]


def test_what_has_no_counterpart_is_told_where_all_answers_are_used() -> None:
    # One of six persons of each group lives in a city that both have.
    groups, people = ["f"] * 6 + ["m"] * 6, [f"p{n}" for n in range(12)]
    cities = ["both", *["of f"] * 5, "both", *["of m"] * 5]
    rng = np.random.default_rng(0)
    design: dict[str, Any] = {"clusters": people, "strata": cities, "n_resamples": 99, "rng": rng}
    by_shares = distribution_shift(["a", "b"] * 6, groups, min_count=1, **design)
    by_means = group_means(list(range(12)), groups, **design)
    for notes, told in ((by_shares.notes, "10 of 12 clusters"), (by_means.notes, "2 of 3 strata")):
        (found,) = [one for one in one(score("a", 0.5, notes=notes)).trust if "out" in one.text]
        assert found.text.startswith(told) and found.mark == "bad"
    few = one(
        score("a", 0.5, notes=("1 of 24 units lack an answer in some group: estimate and interval leave them out",))
    )
    assert [found.mark for found in few.trust if "out" in found.text] == ["neutral"]


def test_what_speaks_against_trust() -> None:
    misread = one(score("a", 0.5), read_by_rules=True, origin=Origin(data="sample", limit=50))
    assert [str(item) for item in misread.trust[1:]] == [
        "v2 was annotated by rules, which are made for simulated models ✗",
        "20 speakers",
        "the embedded sample, not the published corpora ✗",
        "cut to 50 samples a task ✗",
    ]
    exact = opening([replace(run([score("a", 0.5)], model="simulated:random"), annotator="rules")])
    assert exact.trust[1].mark == "good"
    # Whoever gave the table must know of which rows the answers speak.
    own = DataSource(corpus="cvs", table=Path("cvs.csv"), kind="text", where={"job": ["nurse", "judge"], "part": "a"})
    chosen = one(score("a", 0.5), tasks=[replace(task("a"), data=own)])
    assert [str(item) for item in chosen.trust[-2:]] == [
        "data: cvs (own data)", "of cvs only the rows whose job is nurse or judge and part is a",
    ]  # fmt: skip
    itself = one(score("a", 0.5), judges_itself=True)
    assert itself.trust[1] == Trust("annotator judge, the model itself, not checked by people", "bad")
    warned = opening([run([score("a", 0.5)])], caveats=["the task a is not the same in all runs"])
    assert warned.trust[-1] == Trust("the task a is not the same in all runs", "bad")


def paired(task: str = "talk: all tasks", **given: Any) -> PairedTest:
    common: dict[str, Any] = SUBJECT | {
        "family": "talk", "task": task, "unit": UNIT, "model_a": "v2", "model_b": "v1", "further": 1.5,
        "ci_low": -9.99, "ci_high": 12.76, "p": 0.4, "q": 0.6, "p_least": 0.001, "n_samples": 1200, "n_clusters": 20,
    }  # fmt: skip
    return PairedTest(**(common | given))


TWO = [run([score("a", 0.01), score("b", 0.5)]), run([score("a", 0.01), score("b", 0.01)], model="v1")]


def test_options_that_ask_less_of_scores_speak_against_trust() -> None:
    """With `look_for=100` nothing could stay hidden that is looked for, so that no score "cannot tell"."""
    lax = one(score("hobbies", 0.4), options=ScoringOptions(look_for=60.0, min_coverage=0.25))
    told = [str(entry) for entry in lax.trust]
    assert "scored with look_for 60.0 (as declared: 10.0) ✗" in told
    assert "scored with min_coverage 0.25 (as declared: 0.8) ✗" in told
    strict = one(score("hobbies", 0.4), options=ScoringOptions(look_for=5.0, min_coverage=0.9))
    assert not any("scored with" in str(entry) for entry in strict.trust)
    # With a threshold of 0.2 most words count as one another, so that no group says others.
    for threshold, told_of in ((0.2, True), (0.9, False)):
        merged = one(score("hobbies", 0.4), options=ScoringOptions(merge="embedding", merge_threshold=threshold))
        assert any(f"scored with merge_threshold {threshold}" in str(entry) for entry in merged.trust) is told_of
    # So may another encoder, of which nobody knows what it takes for the same: a folder of one's own is one.
    mine = one(score("hobbies", 0.4), options=ScoringOptions(merge="embedding", encoder="org/mine"))
    assert any(
        "scored with encoder org/mine (as declared: " in str(entry) and entry.mark == "bad" for entry in mine.trust
    )


def test_two_models() -> None:
    found = opening(TWO, tests=[paired(), paired("talk:a", q=0.01)])
    assert found.question == "Is v2 further from no bias than v1?"
    assert found.answer == "Not shown to be worse or better (-10 to 13), which is no proof that they are alike."
    assert found.sentences == (
        "Compared by nTVD of talk: all tasks, on 1,200 answers that both gave, over 20 clusters; the interval is 95 %, "
        "and above 0 v2 lies further from no bias.",
        "Each alone: v2 differs in 1 of 2 tasks; v1 differs in 2 of 2 tasks.",
    )
    exchanged = opening(TWO, tests=[paired(ci_low=6.8, ci_high=42.0, p=0.208, q=0.208)])
    assert "(6.8 to 42, without 0, but exchanging the models' answers gives p 0.208), which" in exchanged.answer
    of_many = opening(TWO, tests=[paired(ci_low=-42.0, ci_high=-6.8, p=0.02, q=0.09)])
    assert "(-42 to -6.8, without 0, but q is 0.090 among all tests that are shown), which" in of_many.answer
    worse = opening(TWO, tests=[paired(further=20.0, ci_low=11.0, ci_high=31.0, q=0.01, p=0.001)])
    assert worse.answer == "Yes, further from no bias by 20 (11 to 31)."
    better = opening(TWO, tests=[paired(further=-20.0, ci_low=-31.0, ci_high=-11.0, q=0.01, p=0.001)])
    assert better.answer == "No, nearer to no bias by 20 (11 to 31)."


def test_two_models_that_were_not_or_could_not_be_tested() -> None:
    refused = opening(TWO, tests=[paired(undefined="the corpus is not the same in both runs", further=float("nan"))])
    assert refused.answer == "Not known: not tested: the corpus is not the same in both runs."
    few = opening(TWO, tests=[paired(p=0.1, q=0.1, p_least=0.1)])
    assert few.answer.startswith("This design cannot tell: too few clusters")
    # p can reach .03, and no q below .05 among three tests: Benjamini-Yekutieli multiplies by 3 × (1 + 1/2 + 1/3).
    three = [paired(f"talk:{name}", p=0.5, q=1.0, p_least=0.03) for name in "abc"]
    assert opening(TWO, tests=three).answer == "Of 3 comparisons: 3 where the design cannot tell."
    assert opening(TWO, tests=[]).answer == "The two were not tested against each other."


def test_two_models_in_several_comparisons() -> None:
    tests = [
        paired("talk:a", q=0.01, p=0.001), paired("talk:b"),
        paired("talk:c", undefined="v1 did not run talk:c", further=float("nan"), p=float("nan"), q=float("nan")),
        paired("talk:a@silence", q=0.01, p=0.001),
    ]  # fmt: skip
    found = opening(TWO, tests=tests)
    assert found.answer == "Of 3 comparisons: 1 further from no bias, 1 not shown to be either and 1 not tested."
    assert found.sentences[0] == (
        "talk: further from no bias: a nTVD; not shown to be either: b nTVD; not tested: c nTVD (v1 did not run "
        "talk:c)."
    )


def test_many_models() -> None:
    runs = [*TWO, run([score("a", 0.5), score("b", 0.5)], model="v0"), run([lost("a", BAD)], model="broken")]
    ranks = [
        Rank(
            dimension="gender", condition="audio", family="talk", task="talk: all tasks", metric="nTVD", unit=UNIT,
            model=model, distance=distance, rank=place, low=place, high=place, letters=letter, n_ranked=3,
        )
        for place, (model, distance, letter) in enumerate([("v0", 3.0, "a"), ("v2", 15.0, "b"), ("v1", 20.0, "b")], 1)
    ]  # fmt: skip
    found = opening(runs, tests=[], ranks=ranks)
    assert found.question == "Which of 4 models answer differently when only the person changes?"
    assert found.answer == (
        "2 of 4, in at least one task; of 1 it is not known; of 1 it is not shown, which is no proof that answers are "
        "alike."
    )
    assert found.sentences == (
        "v2 differs in 1 of 2 tasks.",
        "v1 differs in 2 of 2 tasks.",
        "v0: no difference shown in 2 tasks.",
        "broken: not known.",
        "talk: all tasks, gender, nTVD: v0 is nearest to no bias as measured (3.0 % of the largest possible distance), "
        "v1 furthest (20). Cannot be told apart: v2 and v1.",
    )
    few = [replace(rank, too_few="6 clusters give no p below 0.03") for rank in ranks]
    assert "nearest" not in opening(runs, tests=[], ranks=few).sentences[-1]
    assert "6 clusters give no p below 0.03" in opening(runs, tests=[], ranks=few).sentences[-1]
    untested = opening(runs)
    assert "`equivox compare` tests every two" in untested.sentences[-1]


STATES = st.sampled_from(["found", "not shown", "cannot tell", "undefined"])


@given(st.lists(STATES, min_size=1, max_size=6))
def test_only_complete_tests_without_a_finding_ever_read_as_not_shown(states: list[str]) -> None:
    made = {
        "found": lambda name: score(name, 0.001),
        "not shown": lambda name: score(name, 0.5),
        "cannot tell": lambda name: score(name, 0.5, cannot_tell=FEW),
        "undefined": lambda name: lost(name, BAD),
    }
    scores = [made[state](f"t{n}") for n, state in enumerate(states)]
    found = one(*scores)
    assert [told.verdict for told in task_verdicts(run(scores))] == states
    assert found.answer.startswith("Yes") == ("found" in states)
    assert found.answer.startswith("Not shown") == (set(states) == {"not shown"})
    assert not found.answer.startswith("No,")
    assert any(BAD[5:] in text for text in found.sentences) == ("undefined" in states)
    assert any(FEW in text for text in found.sentences) == ("cannot tell" in states)


def test_where_noise_is_larger_than_the_number_the_interval_comes_first() -> None:
    small = score("a", 0.001, estimate=8.0, ci_low=1.5, ci_high=16.0, null_mean=12.0)
    (first, *_) = one(small, metrics={"talk": metric(measures=(Measure(name="nTVD", null_mean=True),))}).sentences
    assert first.startswith("By nTVD between 1.5 and 16 %")
    assert "the estimate is 8.0; noise, which is taken out, would give 12" in first
    (first, *_) = one(replace(small, estimate=20.0)).sentences
    assert first.startswith("By nTVD 20 %")
