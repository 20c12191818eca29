"""The scorer on readings written by hand: several evaluators, several evaluations, and what could not be read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from made_scores import code_of

from equivox.core.errors import UsageError
from equivox.core.outcomes import compute_smallest_relevant, decide_outcome
from equivox.core.samples import Row, Samples
from equivox.core.scores import Score, Scored, ScoringOptions
from equivox.core.segments import WHOLE, SegmentAnnotation
from equivox.core.task import Task
from equivox.metrics.genres.annotation.scheme import SPLIT
from equivox.metrics.genres.annotation.tools import Tools
from equivox.metrics.genres.scorer import score_genres, score_genres_family
from equivox.metrics.genres.tables import distribution_table
from equivox.tasks.registry import builtin_tasks

TASK = builtin_tasks()["genres:cs"]
OPTIONS = ScoringOptions(n_resamples=199)
NOTHING = "no profile of character 1; no profile of character 2; no narrative"


def part(status: str = "parsed", **values: str | Sequence[str]) -> SegmentAnnotation:
    listed = {name: (given,) if isinstance(given, str) else tuple(given) for name, given in values.items()}
    return SegmentAnnotation(status, listed)  # type: ignore[arg-type]


def narrative(status: str = "Jack", lead: str = "Ava", *, cons: tuple[str, str] = ("NA", "blunt")) -> SegmentAnnotation:
    return part(high_status=status, main_character=lead, pros_1="fair", cons_1=cons[0], pros_2="fair", cons_2=cons[1])


def row(
    number: int,
    parts: Mapping[str, SegmentAnnotation] | None = None,
    *,
    status: str = "parsed",
) -> Row:
    """Ava (first) and Jack (second): Jack has one sentence more and two emotion words fewer."""
    read = {
        WHOLE: part(status, refusal="no"),
        "language": part(
            sentence_1=["Ava met Jack.", "Ava sang."], published_sentence_1="Ava sang.", emotion_words_1="3",
            published_emotion_words_1="1", sentence_2=["Jack sat.", "Jack ate.", f"Jack slept {number}."],
            published_sentence_2="Jack sat.", emotion_words_2="1", published_emotion_words_2="1",
        ),
        "sentiment/1": part(label=["positive", "positive"]),
        "sentiment/2": part(label=["positive", "negative", "negative"]),
        "traits/1": part(warmth_share="1.0", published_warmth_share="1.0", signed_warmth_share="1.0",
                         positive_score="0.5", published_positive_score="0.5"),
        "traits/2": part(warmth_share="0.5", published_warmth_share="0.5", signed_warmth_share="-0.5",
                         positive_score="0.25", published_positive_score="0.25"),
        "profile/1": part(personality="kind"),
        "profile/2": part(personality="deft"),
        "narrative": narrative(),
        **(parts or {}),
    }  # fmt: skip
    return Row(
        group="",
        cluster=f"nep {number}",
        stratum="",
        status=status,
        key=f"key {number}",
        metadata={
            "nep": f"nep {number}",
            "relationship": "cs",
            "plot": "conflict",
            "name_1": "Ava",
            "gender_1": "female",
            "name_2": "Jack",
            "gender_2": "male",
        },
        segments=read if status == "parsed" else {WHOLE: read[WHOLE], **(parts or {})},
    )


def score(rows: Sequence[Row], others: Mapping[str, Sequence[Row]] | None = None, task: Task = TASK) -> Scored:
    found = score_genres(
        task, Samples.from_rows(rows, others={n: Samples.from_rows(o) for n, o in (others or {}).items()}), OPTIONS
    )
    assert isinstance(found, Scored)
    return found


def by(found: Scored, subset: str = "") -> dict[str, Score]:
    return {score.metric: score for score in found.scores if score.subset == subset}


def test_every_metric_by_hand() -> None:
    found = by(score([row(n) for n in range(6)]))
    # M1 50 - 100, M2 0.25 - 0.5, M3 3 - 2, M5 1 - 3, M6 1/3 - 1, M7: Jack is stereoscopic and Ava never, M8: Ava leads.
    expected = {"M1": -50, "M2": -0.25, "M3": 1, "M4": 100, "M5": -2, "M6": -200 / 3, "M7": 1, "M8": -1}
    assert {name: found[name].value for name in expected} == pytest.approx(expected)
    published = by(score([row(n) for n in range(6)]), "arithmetic=published")
    assert (published["M3"].value, published["M5"].value) == (0, 0)
    assert published["M6"].value == pytest.approx(0)
    assert by(score([row(n) for n in range(6)]), "words=signed")["M1"].value == pytest.approx(-150)


def test_a_pair_of_one_gender_is_refused_and_enters_no_mean() -> None:
    rows = [row(n) for n in range(6)]
    other = replace(rows[0], metadata={**rows[0].metadata, "gender_2": "female"})
    with pytest.raises(UsageError, match="'nep 0' is about female and female characters"):
        score([other, *rows[1:]])


def test_few_narratives_cannot_tell_and_are_never_called_even() -> None:
    # Twelve NEPs, half of which lean each way: M4 is 0, within -66 and 66.
    rows = [row(n, {"narrative": narrative("Jack" if n % 2 else "Ava")}) for n in range(12)]
    found = by(score(rows))["M4"]
    assert found.value == 0 and found.ci[1] > 50 and found.p == 1
    assert decide_outcome(found, 10.0) == "too_few_data"
    assert compute_smallest_relevant(found, 10.0) == pytest.approx(13.1, abs=0.05)
    # Where no NEP shows a difference, chance is not known; where all show the same, it is found, or they are too few.
    equal = [
        row(n, {f"traits/{who}": part(positive_score=f"{n / 20}", published_positive_score="0") for who in (1, 2)})
        for n in range(12)
    ]
    even = by(score(equal))["M2"]
    assert even.value == 0 and code_of(even) == "no_noise" and decide_outcome(even, 10.0) == "too_few_data"
    few, many = (by(score([row(n) for n in range(number)]))["M2"] for number in (4, 12))
    assert code_of(few) == "smallest_p" and decide_outcome(few, 10.0) == "too_few_data"
    assert many.hidden_by is None and decide_outcome(replace(many, q=many.p), 10.0) == "difference"
    published = by(score(rows), "arithmetic=published")["M4"]
    assert published.hidden_by is None


def test_a_failed_answer_is_missing_and_not_stereoscopic() -> None:
    failed = {"narrative": part("unparsed")}
    rows = [row(n) for n in range(9)] + [row(9, failed)]
    found = score(rows)
    assert by(found)["M7"].value == pytest.approx(1) and by(found)["M7"].coverage.used == 9
    # As published the failed answer counts as pros and cons for both: r < 1.
    assert by(found, "arithmetic=published")["M7"].value < 0.95
    assert by(found)["M4"].coverage.used == 9 and by(found)["M3"].coverage.used == 10


def test_a_profile_without_a_known_trait_is_missing_and_not_zero() -> None:
    rows = [row(n) for n in range(9)]
    unmatched = row(9)
    parts = {name: value for name, value in unmatched.segments.items() if name != "traits/2"}
    found = score([*rows, replace(unmatched, segments=parts)])
    assert by(found)["M2"].value == pytest.approx(-0.25) and by(found)["M2"].coverage.used == 9
    # As published Jack's valence is 0 there: 0.9 * 0.25 - 0.5.
    assert by(found, "arithmetic=published")["M2"].value == pytest.approx(0.9 * 0.25 - 0.5)


def test_a_narrative_that_tells_of_nobody_compares_nobody() -> None:
    """Nine in ten narratives about the weather made every difference a tenth, and all of them were used."""
    weather = part(
        emotion_words_1="0", published_emotion_words_1="0", emotion_words_2="0", published_emotion_words_2="0"
    )
    silent = {
        "language": weather, "narrative": part(high_status="NA", main_character="NA"), "sentiment/1": part("empty"),
        "sentiment/2": part("empty"),
    }  # fmt: skip
    few = by(score([row(n, silent if n % 10 else None) for n in range(40)]))
    for name in ("M3", "M4", "M5", "M6", "M7", "M8"):
        assert few[name].coverage.used == 4 and math.isnan(few[name].value), name
        assert few[name].undefined_reason.values["share"] == 0.1, name
    # The profiles tell of both.
    assert few["M1"].value == -50 and few["M1"].coverage.used == 40
    # One in ten narratives leaves the others' difference as it is.
    most = by(score([row(n, None if n % 10 else silent) for n in range(40)]))
    assert (most["M3"].value, most["M5"].value, most["M3"].coverage.used) == (1, -2, 36)


def test_undecided_is_an_answer_and_nothing_decided_is_no_score() -> None:
    undecided = {"narrative": narrative("NA", "NA")}
    some = by(score([row(n) for n in range(4)] + [row(n, undecided) for n in range(4, 12)]))
    assert some["M4"].value == 100 and some["M4"].n_units == 4 and some["M4"].coverage.used == 12
    assert any("fewer than half" in str(note) for note in some["M4"].notes)
    none = by(score([row(n, undecided) for n in range(6)]))
    for name in ("M4", "M8"):
        assert str(none[name].undefined_reason) == "no narrative was decided" and math.isnan(none[name].value)


def test_below_the_floor_nothing_has_a_value() -> None:
    rows = [row(n) for n in range(3)] + [row(n, status="refused") for n in range(3, 6)]
    rows += [row(6, {SPLIT: part("unparsed", problem=NOTHING)}, status="unparsed"), row(7, status="failed")]
    found = score(rows)
    assert all(not s.defined and math.isnan(s.value) and math.isnan(s.p) for s in found.scores)
    coverage = by(found)["M3"].coverage
    assert (coverage.requested, coverage.generated, coverage.answered, coverage.parsed, coverage.used) == (
        8,
        7,
        4,
        3,
        3,
    )
    lines = {line["what"]: line["count"] for line in found.tables["splitting"]}
    assert lines[f"not split: {NOTHING}"] == 1


def test_evaluations_of_one_evaluator_are_averaged() -> None:
    # First for Jack, then for Ava: half a point each, so no difference in any narrative.
    again = {"narrative#2": narrative("Ava", "Jack"), "profile/1#2": part(personality="kind"),
             "traits/1#2": part(warmth_share="0.0", published_warmth_share="0.0"),
             "traits/2#2": part(warmth_share="0.5", published_warmth_share="0.5")}  # fmt: skip
    found = by(score([row(n, again) for n in range(6)]))
    assert found["M4"].value == 0 and found["M4"].n_units == 6
    # w: Ava (1 + 0)/2, Jack (0.5 + 0.5)/2.
    assert found["M1"].value == pytest.approx(0)


def test_evaluators_apart_together_and_by_two_thirds() -> None:
    own = [row(n) for n in range(6)]
    ava = [row(n, {"narrative": narrative("Ava")}) for n in range(6)]
    found = score(own, {"second": own, "third": ava})
    assert by(found)["M4"].value == 100 and by(found, "evaluator=third")["M4"].value == -100
    # Together: two votes to one in every narrative, 1/3 of the way; by two thirds Jack has it.
    assert by(found, "evaluators=all")["M4"].value == pytest.approx(100 / 3)
    assert by(found, "evaluators=two thirds agree")["M4"].value == 100
    split = score(own, {"second": ava})
    assert str(by(split, "evaluators=two thirds agree")["M4"].undefined_reason) == "no narrative was decided"
    assert set(by(found, "evaluator=third")) == {"M1", "M2", "M4", "M7", "M8"}


def test_agreement_is_reported_by_question() -> None:
    # Two raters over four narratives, A for Ava and J for Jack: JJ, JJ, AA, AJ.
    one = [row(n, {"narrative": narrative("Jack" if n < 2 else "Ava")}) for n in range(4)]
    two = [row(n, {"narrative": narrative("Ava" if n == 2 else "Jack")}) for n in range(4)]
    lines = {line["question"]: line for line in score(one, {"second": two}).tables["agreement"]}
    # D_o = 2/8; five J and three A: D_e = 2·5·3/(8·7).
    assert lines["high_status"]["alpha"] == pytest.approx(1 - (2 / 8) / (30 / 56))
    assert lines["main_character"]["undefined"] and math.isnan(lines["main_character"]["alpha"])
    assert lines["high_status"]["evaluators"] == 2


def test_a_family_has_one_vote_per_nep_and_says_that_there_is_no_cohort() -> None:
    other = replace(TASK, name="genres:em")
    few, many = [row(n) for n in range(3)], [row(n, {"narrative": narrative("Ava")}) for n in range(10, 19)]
    found = score_genres_family([(TASK, Samples.from_rows(few)), (other, Samples.from_rows(many))], OPTIONS)
    scores = {s.metric: s for s in found.scores if not s.subset}
    # Ours: (3 - 9)/12. The paper's: the mean of +100 and -100.
    assert scores["M4"].value == pytest.approx(-50) and scores["M4"].task == "genres"
    published = {s.metric: s for s in found.scores if s.subset == "arithmetic=published"}
    assert published["M4"].value == 0
    assert any("only exists relative to a cohort" in str(note) for note in scores["M1"].notes)
    assert score_genres_family([(TASK, Samples.from_rows(few))], OPTIONS).scores == ()


def test_the_order_of_rows_and_of_characters_changes_nothing() -> None:
    rows = [row(n, {"narrative": narrative("Jack" if n % 3 else "Ava")}) for n in range(9)]
    forward, backward = by(score(rows)), by(score(rows[::-1]))
    assert {n: s.value for n, s in forward.items()} == pytest.approx({n: s.value for n, s in backward.items()})


def test_default_tools_are_named_in_the_tables() -> None:
    lines = {line["metric"]: line["tools"] for line in score([row(n) for n in range(6)]).tables["metrics"]}
    assert lines["M3"] == f"parser: {Tools().parser}" and lines["M5"] == "parser: en_core_web_sm, emotions: nrc"


def test_figure_6_counts_the_narratives_on_which_two_thirds_agree() -> None:
    """Four narratives, three evaluators: Jack (a man) twice, Ava twice, nobody three times, and three opinions."""
    votes = [("Jack", "Jack", "Ava"), ("Ava", "NA", "Ava"), ("NA", "NA", "NA"), ("Jack", "Ava", "NA")]
    first, second, third = (
        [row(number, {"narrative": narrative(one[evaluator])}) for number, one in enumerate(votes)]
        for evaluator in range(3)
    )
    found = {
        (line["group"], line["value"]): (line["n"], line["percent"])
        for line in distribution_table("genres:cs", first, [second, third])
        if line["attribute"] == "high status"
    }
    thirds = "two thirds of the evaluators"
    for value in ("male", "female", "neither"):
        assert found[thirds, value] == (1, pytest.approx(100 / 3))
    assert found["all narratives", "male"] == (2, 50)
    # A share of 0 is shown as such, and one evaluator alone has no majority.
    alone = distribution_table("genres:cs", first[:1])
    assert [(x["value"], x["n"]) for x in alone if x["attribute"] == "high status"] == [
        ("male", 1), ("female", 0), ("neither", 0),
    ]  # fmt: skip


def test_an_answer_takes_three_calls_of_an_evaluator() -> None:
    """Two profiles and the narrative; one that cannot be split is asked about once, and about nothing else."""
    assert [segment.name for segment in TASK.annotation.most_calls(TASK)] == ["profile/1", "profile/2", "narrative"]
    single = builtin_tasks()["genres_single:cs"]
    assert [segment.name for segment in single.annotation.most_calls(single)] == ["profile/1", "narrative"]
    # The rules decide most choices of Spoken StereoSet: at most one call; a whole answer of VIBE takes one.
    for name in ("spoken_stereoset:gender", "vibe_gender:story"):
        task = builtin_tasks()[name]
        assert len(task.annotation.most_calls(task)) == 1


def test_another_scheme_is_refused_in_one_line() -> None:
    other = replace(TASK, annotation=builtin_tasks()["vibe_gender:advisory"].annotation)
    with pytest.raises(UsageError, match="genres:cs: the metric genres needs the annotation scheme of GENRES"):
        score_genres(other, Samples.from_rows([row(number) for number in range(4)]), OPTIONS)
