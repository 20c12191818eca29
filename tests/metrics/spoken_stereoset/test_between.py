"""The difference of slbs between groups: by hand, over speakers, within contexts, and without any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from equivox.core.notes import Note, NoteCode
from equivox.core.samples import Row, Samples
from equivox.core.scores import Score, ScoringOptions
from equivox.core.variants import with_group
from equivox.metrics.spoken_stereoset.scorer import difference, score_choices
from equivox.tasks.spoken_stereoset import TASKS

ACCENT = with_group(TASKS[0], ("accent",))
ORDER = "stereotypical,anti_stereotypical,irrelevant"


def row(group: str, speaker: str, context: str, *, stereotypical: bool) -> Row:
    return Row(
        group=group,
        cluster=speaker,
        stratum=context,
        status="parsed",
        values={"choice": ("A" if stereotypical else "B",), "refusal": ("no",), "decided_by": ("letter",)},
        metadata={"order": ORDER},
    )


def differences(rows: Sequence[Row], task=ACCENT, n_resamples: int = 199) -> dict[str, Score]:
    scores = score_choices(task, Samples.from_rows(rows), ScoringOptions(n_resamples=n_resamples)).scores
    return {score.subset: score for score in scores if score.metric == "slbs difference"}


def spoken(shares: dict[str, Sequence[float]], contexts: int, rng: np.random.Generator) -> list[Row]:
    """Every speaker says every context; `shares` has each speaker's probability of the stereotype, by group."""
    return [
        row(group, f"{group}{number}", f"c{context}", stereotypical=rng.random() < share)
        for group, own in shares.items()
        for number, share in enumerate(own)
        for context in range(contexts)
    ]


def test_it_is_the_difference_of_the_groups_shares_in_points() -> None:
    """Of four choices a group, three and one are stereotypical: 75 - 25 points."""
    rows = [
        row(group, f"{group}{n % 2}", f"c{n}", stereotypical=n < stereotypical)
        for group, stereotypical in (("scots", 3), ("welsh", 1))
        for n in range(4)
    ]
    found = differences(rows)[""]
    assert found.value == pytest.approx(50)
    assert (found.largest_shift.high_group, found.largest_shift.high_share) == ("scots", pytest.approx(75))
    assert (found.largest_shift.low_group, found.largest_shift.low_share) == ("welsh", pytest.approx(25))


def test_where_the_stereotypes_are_the_groups_own_it_is_a_breakdown_that_says_what_else_it_holds() -> None:
    rows = spoken({"female": [0.8] * 4, "male": [0.4] * 4}, 6, np.random.default_rng(1))
    of_domain, of_others = differences(rows, TASKS[0]), differences(rows)
    assert set(of_domain) == {"unit=speaker", "unit=context"}
    assert all("which of the two texts reads better" in str(score.notes[0]) for score in of_domain.values())
    assert set(of_others) == {"", "unit=context"}
    # A comparison of other groups has no verdict about the groups of the corpus.
    scores = score_choices(ACCENT, Samples.from_rows(rows), ScoringOptions(n_resamples=9)).scores
    names = {score.metric for score in scores if score.is_whole}
    assert "slbs" not in names and "slbs difference" in names


def test_three_speakers_a_group_cannot_tell_over_speakers_but_can_within_contexts() -> None:
    """20 permutations of six speakers: no p below 2/20. Within 40 contexts the same voices are compared 40 times."""
    rows = spoken({"scots": [0.9] * 3, "welsh": [0.3] * 3}, 40, np.random.default_rng(2))
    found = differences(rows, n_resamples=999)
    assert found[""].hidden_by == Note(NoteCode.SMALLEST_P, {"p": 0.1, "permutations": 20})
    assert found["unit=context"].p <= 0.01
    assert found["unit=context"].ci[0] > 30


def test_speakers_who_differ_are_no_difference_between_their_groups() -> None:
    """Speakers of both groups come from one distribution; over 150 samples a test at 5 % rejects in 7 % at most."""
    draw = np.random.default_rng(3)
    rejected = 0
    for _ in range(150):
        shares = {group: draw.beta(2, 2, size=8).tolist() for group in ("scots", "welsh")}
        rows = spoken(shares, 6, draw)
        found = difference(
            ["stereotypical" if row.values["choice"] == ("A",) else "anti_stereotypical" for row in rows],
            [row.group for row in rows], [row.cluster for row in rows], [row.stratum for row in rows],
            ScoringOptions(n_resamples=99), draw,
        )  # fmt: skip
        rejected += found["p"] <= 0.05
    assert rejected / 150 <= 0.07


def test_a_context_of_one_group_only_is_left_out_and_counted() -> None:
    rows = spoken({"scots": [0.8] * 4, "welsh": [0.4] * 4}, 8, np.random.default_rng(4))
    rows.append(row("scots", "scots0", "alone", stereotypical=True))
    found = differences(rows)["unit=context"]
    assert found.undefined_reason is None
    assert Note(NoteCode.UNITS_LEFT_OUT, {"n": 1, "of": 9, "crossed": True}) in found.notes


def test_all_choices_alike_say_nothing_of_a_difference() -> None:
    rows = spoken({"scots": [1.0] * 4, "welsh": [1.0] * 4}, 4, np.random.default_rng(5))
    found = differences(rows)[""]
    assert np.isnan(found.value)
    assert found.undefined_reason is not None
