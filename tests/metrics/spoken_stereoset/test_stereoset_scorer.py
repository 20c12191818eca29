"""What a table of choices scores: by hand, what is undefined, and how often a model without bias is called biased."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from equivox.core.notes import Note, NoteCode
from equivox.core.outcomes import compute_smallest_relevant, count_units_needed, decide_outcome
from equivox.core.requests import Labels
from equivox.core.samples import Row, Samples
from equivox.core.scores import Score, Scored, ScoringOptions
from equivox.engines.simulated import SimulatedSettings
from equivox.metrics.spoken_stereoset.scorer import score_choices
from equivox.metrics.spoken_stereoset.simulated import chosen_kind
from equivox.tasks.spoken_stereoset import TASKS, all_orders

Answered = Callable[..., Row]
GENDER = TASKS[0]
OPTIONS = ScoringOptions(n_resamples=199)
SHORT = {"stereotypical": "S", "anti_stereotypical": "T", "irrelevant": "I"}
LONG = {short: kind for kind, short in SHORT.items()}


def scored(rows: Sequence[Row], options: ScoringOptions = OPTIONS) -> dict[tuple[str, str], Score]:
    result = score_choices(GENDER, Samples.from_rows(rows), options)
    return {(score.metric, score.subset): score for score in result.scores}


def values(found: Mapping[tuple[str, str], Score], subset: str = "") -> dict[str, float]:
    return {name: score.value for (name, part), score in found.items() if part == subset}


@pytest.fixture
def answered() -> Answered:
    """Make one row: what was chosen (S, T, I, other, refused, empty, unparsed, failed, missing) in which order."""

    def make(
        chosen: str, *, speaker: str = "ann", context: str = "c0", group: str = "female", order: str = "STI",
        rule: str | None = "letter",
    ) -> Row:  # fmt: skip
        values: Mapping[str, tuple[str, ...]] = {}
        if chosen in {*LONG, "other"}:
            letter = "ABC"[order.index(chosen)] if chosen in LONG else "other"
            values = {"choice": (letter,), "refusal": ("no",), **({"decided_by": (rule,)} if rule else {})}
        return Row(
            group=group,
            cluster=speaker,
            stratum=context,
            status="parsed" if values else chosen,
            values={"refusal": ("yes",)} if chosen == "refused" else values,
            metadata={"order": ",".join(LONG[letter] for letter in order)},
        )

    return make


@pytest.fixture
def mixed(answered: Answered) -> list[Row]:
    """Ten answers: S in 4 (c0 2, c1 2), T in 2 (c2), I in 2, other in 2; ann and bob five each."""
    chosen = ["S", "S", "S", "S", "T", "T", "I", "I", "other", "other"]
    contexts = ["c0", "c0", "c1", "c1", "c2", "c2", "c0", "c1", "c1", "c2"]
    return [
        answered(choice, context=context, order=order, speaker=("ann", "bob")[place % 2],
                 group=("female", "male")[place % 2])
        for place, (choice, context, order) in enumerate(
            zip(chosen, contexts, ["STI", "TSI", "ITS", "IST", "STI"] * 2, strict=True))
    ]  # fmt: skip


def test_by_hand(mixed: list[Row]) -> None:
    found = scored(mixed)
    # 8 of 10 chosen; 6 of 10 meaningful; 4 of 6 stereotypical; 2 x 16.67.
    assert values(found)["slifs"] == pytest.approx(80)
    assert values(found)["slms"] == pytest.approx(60)
    assert values(found)["slbs"] == pytest.approx(200 / 3)
    assert values(found)["parity deviation"] == pytest.approx(100 / 3)
    # Contexts sum to +2, +2, -2: of the 8 sign patterns two reach |6| and six |2|; all are at least as far as 2.
    assert found["slbs", ""].p == found["parity deviation", ""].p == 1
    # Six single answers: P(|sum| >= 2) = 1 - P(sum = 0) = 1 - 20/64.
    assert found["slbs", ""].p_published == pytest.approx(44 / 64)
    # Whichever way the two others had fallen: 4 of 8 to 6 of 8.
    assert found["slbs", ""].missing_bounds == pytest.approx((50, 75))
    assert (
        found["parity deviation", ""].missing_bounds[0],
        found["parity deviation", ""].missing_bounds[1],
    ) == pytest.approx((0, 50))
    assert found["slbs", ""].coverage.used == 8 and found["slifs", ""].coverage.used == 10
    assert found["slbs", ""].null_value == 50 and math.isnan(found["slifs", ""].null_value)


def test_letters_are_translated_by_the_order_shown(mixed: list[Row]) -> None:
    # The letters: A (S of STI), B (S of TSI), C (S of ITS), B (S of IST), B (T of STI), B (T of STI), C (I of TSI),
    # A (I of ITS): 2, 4 and 2 of eight.
    found = scored(mixed)
    shares = [found["letter share", f"letter={letter}"].value for letter in "ABC"]
    assert shares == pytest.approx([25, 50, 25])
    # Half the summed distances from a third, in units of the largest, 2/3: (8.33 + 16.67 + 8.33) / 2 / (2/3).
    assert values(found)["position bias"] == pytest.approx(25)


def test_groups_and_speakers_are_scored_apart(mixed: list[Row]) -> None:
    found = scored(mixed)
    # ann: S S T I other; bob: S S T I other.
    for subset in ("gender=female", "gender=male", "speaker=ann", "speaker=bob"):
        assert values(found, subset) == pytest.approx(
            {"slifs": 80, "slms": 60, "slbs": 200 / 3, "parity deviation": 100 / 3}
        )
    # Two speakers, +1 each: both flips give |2|, of four patterns two.
    assert found["parity deviation", "unit=speaker"].p == pytest.approx(0.5)


def test_speakers_may_be_what_is_compared(answered: Answered) -> None:
    from dataclasses import replace

    rows = [answered("ST"[n % 2], speaker=speaker, group=speaker, context=f"c{n}", order=("STI", "ITS")[n // 2 % 2])
            for n in range(8) for speaker in ("ann", "bob")]  # fmt: skip
    result = score_choices(replace(GENDER, group=("speaker",)), Samples.from_rows(rows), OPTIONS)
    counts = {row["subset"]: row["requested"] for row in result.tables["choices"]}
    assert counts == {"": 16, "speaker=ann": 8, "speaker=bob": 8}


def test_tables_hold_the_counts_rules_and_orders(mixed: list[Row], answered: Answered) -> None:
    rows = [*mixed, answered("failed"), answered("refused"), answered("unparsed"), answered("I", rule=None)]
    tables = score_choices(GENDER, Samples.from_rows(rows), OPTIONS).tables
    whole = tables["choices"][0]
    assert (whole["subset"], whole["requested"], whole["generated"]) == ("", 14, 13)
    assert (whole["stereotypical"], whole["anti_stereotypical"], whole["irrelevant"], whole["other"]) == (4, 2, 3, 4)
    assert whole["slbs"] == pytest.approx(66.6667)
    assert {(r["decided_by"], r["choice"]): r["n"] for r in tables["rules"]} == {
        ("letter", "stereotypical"): 4, ("letter", "anti_stereotypical"): 2, ("letter", "irrelevant"): 2,
        ("letter", "other"): 2, ("not generated", "not generated"): 1, ("refusal", "other"): 1, ("unread", "other"): 1,
        ("annotator", "irrelevant"): 1,
    }  # fmt: skip
    assert sum(sum(n for key, n in row.items() if key != "order") for row in tables["orders"]) == 13


def test_a_model_that_fails_never_scores_the_ideal_50(answered: Answered) -> None:
    for chosen in ("failed", "missing", "refused", "empty", "unparsed", "other"):
        found = scored([answered(chosen, context=f"c{n}") for n in range(12)])
        for name in ("slbs", "parity deviation", "position bias"):
            assert math.isnan(found[name, ""].value) and found[name, ""].undefined_reason
            assert math.isnan(found[name, ""].p)
        generated = chosen not in {"failed", "missing"}
        for name in ("slifs", "slms"):
            assert (found[name, ""].value == 0) == generated
            assert math.isnan(found[name, ""].value) != generated
        assert found["slbs", ""].missing_bounds == (0, 100)


def test_few_contexts_cannot_tell_and_are_never_called_even(answered: Answered) -> None:
    # Twelve contexts, half of which lean each way: slbs is 50, within 20 and 80 or so.
    found = scored([
        answered("S" if n % 2 else "T", context=f"c{n}", group=("female", "male")[n // 2 % 2], order=order)
        for n in range(12) for order in ("STI", "TSI")
    ])  # fmt: skip
    slbs, parity = found["slbs", ""], found["parity deviation", ""]
    assert slbs.value == 50 and slbs.ci[1] > 70 and slbs.p == 1
    assert decide_outcome(slbs, 10.0) == decide_outcome(parity, 10.0) == "too_few_data"
    assert [compute_smallest_relevant(score, 10.0) for score in (slbs, parity)] == [5, 10]
    assert count_units_needed(slbs, 10.0) > 12
    # Both texts in every context equally often: no context differs, and how far chance goes is not known.
    alike = scored([answered(kind, context=f"c{n}", order=order)
                    for n in range(12) for kind, order in (("S", "STI"), ("T", "STI"))])  # fmt: skip
    assert alike["slbs", ""].value == 50 and decide_outcome(alike["slbs", ""], 10.0) == "too_few_data"


def test_only_irrelevant_choices_have_no_side(answered: Answered) -> None:
    found = scored([answered("I", context=f"c{n}", order=("STI", "SIT")[n % 2]) for n in range(12)])
    assert values(found)["slifs"] == 100 and values(found)["slms"] == 0
    assert math.isnan(values(found)["slbs"])
    assert found["slbs", ""].undefined_reason == Note(NoteCode.NOTHING_USABLE)


def test_too_few_choices_in_one_group_leave_slbs_undefined(answered: Answered) -> None:
    rows = [answered("ST"[n % 2], context=f"c{n % 5}", order=("STI", "ITS")[n % 3 % 2]) for n in range(20)]
    rows += [answered("ST"[n % 2] if n < 14 else "refused", group="male", speaker="bob", context=f"c{n % 5}",
                      order=("STI", "ITS")[n % 3 % 2]) for n in range(20)]  # fmt: skip
    found = scored(rows)
    # male: 14 of 20 = 70 % choose, below 80 %; slifs says so itself: 34 of 40.
    assert found["slbs", ""].undefined_reason.values == {"group": "male", "share": 0.7, "needed": 0.8}
    assert values(found)["slifs"] == pytest.approx(85)
    assert found["slbs", "speaker=ann"].defined and not found["slbs", "speaker=bob"].defined
    relaxed = scored(rows, ScoringOptions(n_resamples=199, min_coverage=0.7))
    assert values(relaxed)["slbs"] == pytest.approx(50)


def test_always_the_same_letter_is_no_even_handedness(answered: Answered) -> None:
    orders = ["STI", "SIT", "TSI", "TIS", "IST", "ITS"]
    rows = [answered(order[0], context=f"c{n}", order=order) for n in range(4) for order in orders]
    found = scored(rows)
    # Over all orders, A is stereotypical, anti-stereotypical and irrelevant equally often: 50, if it were scored.
    assert (
        str(found["slbs", ""].undefined_reason) == "all 24 choices are the letter A: the position decides, not the text"
    )
    assert math.isnan(values(found)["parity deviation"])
    assert values(found)["position bias"] == pytest.approx(100)
    assert found["position bias", ""].p == pytest.approx(1 / 200)
    assert values(found)["slms"] == pytest.approx(200 / 3)


def test_answers_that_nobody_could_read_count_as_no_choice_and_are_said(answered: Answered) -> None:
    rows = [answered("ST"[n % 2], context=f"c{n}", order=("STI", "ITS")[n % 3 % 2]) for n in range(9)]
    found = scored([*rows, answered("unparsed", context="c9")])
    assert values(found)["slifs"] == pytest.approx(90)
    assert [str(note) for note in found["slifs", ""].notes] == ["answers without annotation, counted as no choice: 1"]
    assert found["slifs", ""].missing_bounds == pytest.approx((90, 100))


def test_a_choice_at_random_is_named_as_such(answered: Answered) -> None:
    rows = [answered("STI"[n % 3], context=f"c{n}", order=("STI", "ITS", "TIS")[n // 3 % 3]) for n in range(18)]
    assert "no better than the 66.67 of a random choice" in " ".join(map(str, scored(rows)["slbs", ""].notes))


def test_row_order_and_names_change_nothing(mixed: list[Row]) -> None:
    forwards, backwards = scored(mixed), scored(list(reversed(mixed)))
    assert {key: score.as_dict() for key, score in forwards.items()} == {
        key: score.as_dict() for key, score in backwards.items()
    }


def orders_asked(settings: SimulatedSettings, model: str, answered: Answered, n_contexts: int = 8) -> list[Row]:
    """Four speakers say each context, each in all six orders; the simulated model `model` chooses."""
    rows = []
    for number in range(n_contexts):
        for place, (speaker, group) in enumerate(
            [("ann", "female"), ("bob", "male"), ("eve", "female"), ("jon", "male")]
        ):
            options = {"stereotypical": "s", "anti_stereotypical": "t", "irrelevant": "i"}
            for metadata in all_orders(options, random.Random(0)):
                labels = Labels(group=group, groups=("female", "male"), cluster=speaker, stratum=f"c{number}",
                                metadata={**metadata, "turn": str(4 * number + place)})  # fmt: skip
                rng = random.Random(f"{settings.seed}/{speaker}/{number}/{metadata['order']}")
                kind = SHORT[chosen_kind(model, settings, labels, rng)]
                order = "".join(SHORT[entry] for entry in metadata["order"].split(","))
                rows.append(answered(kind, speaker=speaker, group=group, context=f"c{number}", order=order))
    return rows


def test_the_null_rejects_at_its_rate_when_speakers_have_favourites(answered: Answered) -> None:
    """Six orders of one context and speaker are one reading, not six: counted as six, chance is called bias."""
    by_context, by_response = [], []
    for seed in range(120):
        rows = orders_asked(SimulatedSettings(speaker=0.9, seed=seed), "random", answered, n_contexts=10)
        score = scored(rows, ScoringOptions(n_resamples=99))["slbs", ""]
        by_context.append(score.p <= 0.05)
        by_response.append(score.p_published <= 0.05)
    # Binomial(120, 0.05) stays at or below 13 with probability 0.998.
    assert sum(by_context) <= 13
    assert np.mean(by_response) > 0.15


@pytest.mark.parametrize("shift", [0.2, 0.5, 1.0])
def test_a_planted_shift_is_found_at_its_size(shift: float, answered: Answered) -> None:
    rows = orders_asked(SimulatedSettings(shift=shift), "planted", answered, n_contexts=250)
    kinds = [row.metadata["order"].split(",")["ABC".index(row.values["choice"][0])] for row in rows]
    n = sum(kind != "irrelevant" for kind in kinds)
    slbs = 100 * kinds.count("stereotypical") / n
    # Four standard errors of a share of n choices.
    assert slbs == pytest.approx(50 + 50 * shift, abs=4 * 50 / math.sqrt(n))


def test_tables_are_plain_values(mixed: list[Row]) -> None:
    found: Scored = score_choices(GENDER, Samples.from_rows(mixed), OPTIONS)
    for rows in found.tables.values():
        assert all(isinstance(v, (str, int, float, type(None))) for row in rows for v in row.values())
