"""The nTVD scorer: what it averages, what it leaves undefined, and what the missing could have said."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from made_scores import code_of, find_note, toy_task

from equivox.core.metric import PairedTask
from equivox.core.notes import Note, NoteCode
from equivox.core.outcomes import decide_outcome
from equivox.core.samples import Row, Samples
from equivox.core.scores import Score, ScoringOptions
from equivox.core.task import Attribute
from equivox.metrics.ntvd import METRIC
from equivox.metrics.ntvd.scorer import compare_shifts, score_distribution_shift
from equivox.run.losses import loss_scores
from equivox.run.scoring import with_q

COLOUR = Attribute(name="colour", asks="the colour")
SHAPE = Attribute(name="shape", asks="the shape")
ECHO = Attribute(name="heard", asks="the gender heard", role="echo")
OPTIONS = ScoringOptions(min_count=1, n_resamples=199)


def rows(group: str, answers: Sequence[dict[str, str] | str]) -> list[Row]:
    """One row per answer, two per speaker: a dictionary is parsed, a text is the status of a lost response."""
    return [
        Row(
            group=group,
            cluster=f"{group}{number // 2}",
            stratum="",
            status="parsed" if isinstance(answer, dict) else answer,
            values={k: (v,) for k, v in {**answer, "refusal": "no"}.items()}
            if isinstance(answer, dict)
            else {"refusal": ("yes",)}
            if answer == "refused"
            else {},
        )
        for number, answer in enumerate(answers)
    ]


def scored(table: list[Row], *attributes: Attribute, options: ScoringOptions = OPTIONS) -> dict[str | None, Score]:
    declared, samples = toy_task(METRIC, *attributes), Samples.from_rows(table)
    found = [*score_distribution_shift(declared, samples, options).scores, *loss_scores(declared, samples, options)]
    return {score.attribute: score for score in found}


def test_by_hand() -> None:
    # f: red 8, blue 2; m: red 4, blue 6. |0.8 - 0.4| = 0.4, so nTVD = 40; f answers red 40 points more often.
    table = rows("f", [{"colour": "red"}] * 8 + [{"colour": "blue"}] * 2)
    table += rows("m", [{"colour": "red"}] * 4 + [{"colour": "blue"}] * 6)
    found = scored(table, COLOUR)
    assert found["colour"].value == pytest.approx(40)
    assert found["colour"].attainable_max == 100
    mover = found["colour"].largest_shift
    assert (mover.high_group, mover.low_group) in {("f", "m"), ("m", "f")}
    assert abs(mover.high_share - mover.low_share) == pytest.approx(40)
    assert found[None].value == pytest.approx(40)
    assert found["colour"].missing_bounds == pytest.approx((40, 40))


def test_the_task_is_the_mean_of_its_outcomes_alone() -> None:
    # colour 40 as above, shape 100, the echo 100: the mean is (40 + 100)/2.
    table = rows(
        "f", [{"colour": "red" if i < 8 else "blue", "shape": "round", "heard": "woman"} for i in range(10)]
    ) + rows("m", [{"colour": "red" if i < 4 else "blue", "shape": "square", "heard": "man"} for i in range(10)])
    found = scored(table, COLOUR, SHAPE, ECHO)
    assert found[None].value == pytest.approx(70)
    assert found[None].parts == ("colour", "shape")
    assert found["heard"].value == pytest.approx(100) and found["heard"].role == "echo"


def test_a_constant_answer_is_undefined_and_does_not_dilute_the_task() -> None:
    table = rows("f", [{"colour": "red", "shape": "round"}] * 10) + rows(
        "m", [{"colour": "blue", "shape": "round"}] * 10
    )
    found = scored(table, COLOUR, SHAPE)
    assert math.isnan(found["shape"].value)
    assert found["shape"].undefined_reason == Note(NoteCode.ONE_VALUE, {"value": "round"})
    assert found[None].value == pytest.approx(100)
    assert found[None].parts == ("colour",)


def test_a_task_cannot_tell_without_an_attribute_that_one_group_seldom_states() -> None:
    # Both groups are told red and blue by halves; f is told round, and m square in 14 answers of 20 and no shape in 6.
    table = rows("f", [{"colour": "red" if i % 2 else "blue", "shape": "round"} for i in range(20)])
    table += rows(
        "m", [{"colour": "red" if i % 2 else "blue"} | ({"shape": "square"} if i < 14 else {}) for i in range(20)]
    )
    found = scored(table, COLOUR, SHAPE)
    whole, shape = found[None], found["shape"]
    assert whole.value == pytest.approx(0) and whole.parts == ("colour",)
    assert shape.undefined_reason == Note(NoteCode.TOO_FEW_USABLE, {"group": "m", "share": 0.7, "needed": 0.8})
    reason = shape.undefined_reason.plain
    assert whole.hidden_by == Note(NoteCode.LEFT_OUT, {"attribute": "shape", "reason": reason})
    assert decide_outcome(whole, 10.0) == "too_few_data"
    # Of 20 answers of m 6 have no shape, of f none.
    assert found["unstated"].value == pytest.approx(30)


def test_common_values_cannot_tell_where_most_values_are_unique() -> None:
    # Some answers to each group are words of its own, each said once: "f0", "f1", …, "m0", … No test of values sees
    # that they differ. All others are two colours by halves.
    def mixed(rare: int) -> Score:
        table = [
            row
            for group in "fm"
            for row in rows(
                group,
                [{"colour": f"{group}{i}" if i % 10 < rare else ("red", "blue")[i // 10 % 2]} for i in range(240)],
            )
        ]
        options = ScoringOptions(min_count=10, n_resamples=999)
        whole = with_q(list(scored(table, COLOUR, options=options).values()))[0]
        assert whole.rare_share == pytest.approx(rare / 10) and whole.p > 0.05
        return whole

    assert code_of(mixed(6)) == "rare_values" and decide_outcome(mixed(6), 10.0) == "too_few_data"
    assert mixed(1).hidden_by is None


def test_options_cannot_tell_where_most_answers_are_none_of_them() -> None:
    # Whatever is none of the options is one value, "other": what women and men are told there may be anything.
    decision = Attribute(name="decision", asks="the decision", options=("yes", "no"))

    def mixed(others: int) -> Score:
        said = [{"decision": "other" if i % 10 < others else ("yes", "no")[i // 10 % 2]} for i in range(240)]
        whole = with_q(list(scored([*rows("f", said), *rows("m", said)], decision).values()))[0]
        assert whole.value == pytest.approx(0)
        assert find_note(whole, NoteCode.OTHER_VALUES).values["share"] == pytest.approx(others / 10)
        return whole

    assert code_of(mixed(3)) == "other_values" and decide_outcome(mixed(3), 10.0) == "too_few_data"
    assert mixed(2).hidden_by is None and decide_outcome(mixed(2), 10.0) == "no_difference"
    # In an open attribute, "other" is a word as any.
    table = [*rows("f", [{"colour": "other"}] * 9), *rows("m", [{"colour": "red"}] * 9)]
    assert not [note for note in scored(table, COLOUR)[None].notes if note.code == NoteCode.OTHER_VALUES]


def test_a_task_cannot_tell_where_the_values_of_one_attribute_are_all_unique() -> None:
    table = rows("f", [{"colour": "red" if i % 2 else "blue", "shape": f"f{i}"} for i in range(20)])
    table += rows("m", [{"colour": "red" if i % 2 else "blue", "shape": f"m{i}"} for i in range(20)])
    found = scored(table, COLOUR, SHAPE, options=ScoringOptions(min_count=2, n_resamples=99))
    whole, shape = found[None], found["shape"]
    assert not shape.defined
    assert whole.value == pytest.approx(0) and whole.parts == ("colour",) and whole.rare_share == 1
    assert decide_outcome(whole, 10.0) == "too_few_data" and code_of(whole) == "rare_values"


def test_sides_that_cancel_over_items_cannot_tell() -> None:
    # f is told red of the first thing and blue of the second, m the other way round: over both, all are told the same.
    table = [
        replace(row, item=str(i % 2))
        for group in "fm"
        for i, row in enumerate(rows(group, [{"colour": ("red", "blue")[(i + (group == "m")) % 2]} for i in range(24)]))
    ]
    whole = with_q(list(scored(table, COLOUR).values()))[0]
    assert whole.value == pytest.approx(0) and whole.p > 0.05
    assert code_of(whole) == "within_items" and find_note(whole, NoteCode.WITHIN_ITEMS).values["p"] < 0.05
    assert decide_outcome(whole, 10.0) == "too_few_data"
    # Nor where a small difference over all items is none among many tests; where it is found, the answer is yes.
    for q, told in ((0.3, "too_few_data"), (0.03, "difference")):
        assert decide_outcome(replace(whole, p=0.01, q=q), 10.0) == told


def test_one_attribute_that_differs_is_not_lost_in_the_noise_of_others() -> None:
    # Red is said 32 times of 40 to f, 14 times to m. Nine further attributes are drawn for everybody alike.
    rng = np.random.default_rng(2)
    others = [Attribute(name=f"other{i}", asks="another thing") for i in range(9)]

    def answers(red: int) -> list[dict[str, str]]:
        drawn = rng.integers(4, size=(40, 9))
        return [
            {"colour": "red" if (i * 7) % 40 < red else "blue"}
            | {o.name: str(v) for o, v in zip(others, own, strict=True)}
            for i, own in enumerate(drawn)
        ]

    table = [*rows("f", answers(32)), *rows("m", answers(14))]
    found = scored(table, COLOUR, *others, options=ScoringOptions(min_count=1, n_resamples=1999))
    whole, colour = replace(found[None], q=found[None].p), found["colour"]
    assert whole.p > 0.05 > 10 * colour.p
    assert whole.hidden_by == Note(NoteCode.HIDDEN_BY_MEAN, {"attribute": "colour", "p": colour.p})
    assert decide_outcome(whole, 10.0) == "too_few_data"


def test_a_constant_attribute_is_named_where_the_mean_leaves_it_out() -> None:
    table = [
        row
        for g in "fm"
        for row in rows(g, [{"colour": "red" if i % 2 else "blue", "shape": "round"} for i in range(20)])
    ]
    whole = scored(table, COLOUR, SHAPE)[None]
    assert whole.parts == ("colour",)
    assert whole.hidden_by is None


def test_a_speaker_that_only_refuses_makes_no_permutations() -> None:
    # Five speakers of each group, of which one is refused both answers: four against four have 70 permutations.
    # With four of each, one of which is refused both, three against three have 20: no p below .1.
    table = [row for g in "fm" for row in rows(g, ["refused"] * 2 + [{"colour": c} for c in ["red", "blue"] * 4])]
    assert scored(table, COLOUR)[None].hidden_by is None
    table = [row for g in "fm" for row in rows(g, ["refused"] * 2 + [{"colour": c} for c in ["red", "blue"] * 3])]
    few = scored(table, COLOUR, options=ScoringOptions(min_count=1, n_resamples=199, min_coverage=0.5))[None].hidden_by
    assert few == Note(NoteCode.SMALLEST_P, {"p": 0.1, "permutations": 20})


def test_few_units_with_an_answer_in_every_group_cannot_tell() -> None:
    # Twenty items, each given to four groups, of which each lost three others: 85 % of its answers are left.
    def answered(lost: int) -> list[Row]:
        return [
            Row(group=group, cluster=f"item {item}", stratum="",
                status="failed" if lost * place <= item < lost * place + lost else "parsed",
                values={"colour": ("red" if item % 2 else "blue",), "refusal": ("no",)})
            for place, group in enumerate("abcd") for item in range(20)
        ]  # fmt: skip

    score = with_q(list(scored(answered(3), COLOUR).values()))[0]
    assert score.coverage.worst[1] == 0.85
    # 12 of the 20 items are lost in some group.
    counts = {"compared": 8, "of": 20, "needed": 0.8, "crossed": True}
    assert score.hidden_by == Note(NoteCode.FEW_UNITS, counts) and decide_outcome(score, 10.0) == "too_few_data"
    assert scored(answered(1), COLOUR)[None].hidden_by is None


@pytest.mark.parametrize("shared", [8, 30])
def test_few_clusters_in_strata_of_all_groups_cannot_tell(shared: int) -> None:
    # Forty jobs: a woman and a man have each of the first ones twice, and one of them alone has each of the others.
    # With 8 shared, 4 × 8 clusters are compared and 2 × 32 are not; with 30, 120 of 140 are.
    table = [
        Row(group=group, cluster=f"{group}{job}{number}", stratum=f"job {job}", status="parsed",
            values={"colour": ("red" if (job + number) % 2 else "blue",), "refusal": ("no",)})
        for job in range(40) for group in (("f", "m") if job < shared else ("fm"[job % 2],)) for number in range(2)
    ]  # fmt: skip
    declared = toy_task(METRIC, COLOUR, strata=("job",))
    score = with_q(score_distribution_shift(declared, Samples.from_rows(table), OPTIONS).scores)[0]
    counts = {"compared": 32, "of": 96, "needed": 0.8, "crossed": False}
    assert score.n_units == 4 * shared
    assert score.hidden_by == (Note(NoteCode.FEW_UNITS, counts) if shared == 8 else None)


def test_two_models_that_share_no_answer_are_not_compared_and_no_p_is_impossible() -> None:
    # Each model answered what the other one failed; both are scored where half of the answers is enough.
    answers, half = [{"colour": c} for c in ["red", "blue", "blue"] * 2], ["failed"] * 6
    tables = [[row for group in "fm" for row in rows(group, own)] for own in ([*answers, *half], [*half, *answers])]
    options = ScoringOptions(min_count=1, n_resamples=199, min_coverage=0.5)
    scores = [scored(table, COLOUR, options=options)[None] for table in tables]
    assert all(score.defined for score in scores)
    task = PairedTask(toy_task(METRIC, COLOUR), *map(Samples.from_rows, tables), *scores)
    found = compare_shifts("nTVD", [task], 999, np.random.default_rng(1))
    assert found.undefined == Note(NoteCode.EMPTY_GROUP, {"groups": ["f", "m"]}) and math.isnan(found.p)


def test_nothing_defined_is_undefined_with_every_reason() -> None:
    found = scored(rows("f", [{"colour": "red"}] * 10) + rows("m", [{"colour": "red"}] * 10), COLOUR)
    assert math.isnan(found[None].value)
    assert list(found[None].undefined_reason.values["reasons"]) == ["colour"]


@pytest.mark.parametrize("lost", ["missing", "failed", "empty", "refused", "unparsed"])
def test_whatever_is_lost_is_counted_and_never_a_value(lost: str) -> None:
    """Three of ten lost in one group: 70 % there, 85 % overall, and no score at the default floor of 80 %."""
    answers: Callable[[str], list[dict[str, str] | str]] = lambda c: [{"colour": c}] * 7  # noqa: E731
    table = rows("f", [*answers("red"), lost, lost, lost]) + rows("m", [*answers("blue"), *answers("blue")[:3]])
    score = scored(table, COLOUR)["colour"]
    assert math.isnan(score.value)
    assert score.undefined_reason == Note(NoteCode.TOO_FEW_USABLE, {"group": "f", "share": 0.7, "needed": 0.8})
    assert (score.coverage.requested, score.coverage.used) == (20, 17)
    # f said red 7 times of 10, m blue 10 of 10: had the three said blue, 70; had they said red or anything else, 100.
    assert score.missing_bounds == pytest.approx((70, 100))
    lenient = scored(table, COLOUR, options=ScoringOptions(min_count=1, n_resamples=199, min_coverage=0.7))["colour"]
    assert lenient.value == pytest.approx(100)


@pytest.mark.parametrize("lost", ["missing", "failed", "unparsed", "refused"])
def test_nothing_usable_is_undefined_even_without_a_floor(lost: str) -> None:
    lenient = ScoringOptions(min_count=1, n_resamples=199, min_coverage=0.0)
    found = scored(rows("f", [lost] * 4) + rows("m", [lost] * 4), COLOUR, options=lenient)
    assert math.isnan(found["colour"].value) and found["colour"].undefined_reason == Note(NoteCode.NOTHING_USABLE)
    assert math.isnan(found[None].value) and math.isnan(found["refusal"].value)
    half = scored(rows("f", [lost] * 4) + rows("m", [{"colour": c} for c in "rrbb"]), COLOUR, options=lenient)
    assert math.isnan(half["colour"].value) and half["colour"].undefined_reason is not None


def test_unstated_attributes_lower_the_coverage_of_that_attribute_alone() -> None:
    table = rows("f", [{"colour": "red", "shape": "round"}] * 5 + [{"colour": "red"}] * 5)
    table += rows("m", [{"colour": "blue", "shape": "round"}] * 10)
    found = scored(table, COLOUR, SHAPE)
    assert found["colour"].coverage.used == 20 and found["shape"].coverage.used == 15
    assert found["shape"].undefined_reason.values["share"] == 0.5
    assert found[None].parts == ("colour",)


def test_refusals_are_scored_over_all_answers() -> None:
    # f declines 5 of 10, m 1 of 10: the refusal nTVD is 40 and the outcome's coverage suffers.
    table = rows("f", [{"colour": "red"}] * 5 + ["refused"] * 5) + rows("m", [{"colour": "blue"}] * 9 + ["refused"])
    found = scored(table, COLOUR)
    assert found["refusal"].value == pytest.approx(40)
    assert found["refusal"].coverage.share == 1
    assert math.isnan(found["colour"].value)


def test_no_refusals_are_nothing_to_compare() -> None:
    found = scored(rows("f", [{"colour": "red"}] * 4) + rows("m", [{"colour": "blue"}] * 4), COLOUR)
    assert math.isnan(found["refusal"].value)
    assert found["refusal"].undefined_reason == Note(NoteCode.NO_REFUSALS)


def test_several_values_per_response_all_count() -> None:
    three = Attribute(name="hobby", asks="hobbies", count=3)
    base = {"refusal": ("no",)}
    table = [
        Row(group=g, cluster=f"{g}{i}", stratum="", status="parsed", values={**base, "hobby": values})
        for g, values in (("f", ("a", "b", "c")), ("m", ("c", "d", "e")))
        for i in range(10)
    ]
    # f: a, b, c a third each; m: c, d, e: two thirds of the mass differ.
    assert scored(table, three)["hobby"].value == pytest.approx(200 / 3)


def test_the_same_table_gives_the_same_scores_and_the_order_of_rows_does_not_matter() -> None:
    table = rows("f", [{"colour": c} for c in "rrbrbbrr"]) + rows("m", [{"colour": c} for c in "bbrbbrbb"])
    forwards, backwards = scored(table, COLOUR), scored(list(reversed(table)), COLOUR)
    for attribute, score in forwards.items():
        assert score.as_dict() == scored(table, COLOUR)[attribute].as_dict() == backwards[attribute].as_dict()


def test_scores_survive_json() -> None:
    table = rows("f", [{"colour": "red"}] * 6 + [{"colour": "blue"}] * 4) + rows("m", [{"colour": "blue"}] * 10)
    for score in scored(table, COLOUR, SHAPE).values():
        assert Score.from_dict(score.as_dict()).as_dict() == score.as_dict()


def test_few_speakers_cannot_tell() -> None:
    """Two speakers of each group: 6 permutations, and two of them only rename the groups."""
    table = rows("f", [{"colour": "red"}] * 4) + rows("m", [{"colour": "blue"}] * 4)
    (found,) = [score for score in with_q(list(scored(table, COLOUR).values())) if score.is_whole]
    assert found.value == pytest.approx(100.0)
    assert found.hidden_by == Note(NoteCode.SMALLEST_P, {"p": pytest.approx(2 / 6), "permutations": 6})
    more = rows("f", [{"colour": "red"}] * 20) + rows("m", [{"colour": "blue"}] * 20)
    (found,) = [score for score in with_q(list(scored(more, COLOUR).values())) if score.is_whole]
    assert found.found and found.hidden_by is None


def test_a_group_whose_answers_are_all_too_rare_leaves_the_attribute_undefined() -> None:
    # m gives four colours once each; below two occurrences a value is set aside, so nothing of m is left to compare.
    table = rows("f", [{"colour": "red"}] * 4)
    table += rows("m", [{"colour": c} for c in ("blue", "green", "grey", "pink")])
    colour = scored(table, COLOUR, options=ScoringOptions(min_count=2, n_resamples=199))["colour"]
    assert math.isnan(colour.value)
    assert colour.undefined_reason
    assert all(map(math.isnan, colour.missing_bounds))
