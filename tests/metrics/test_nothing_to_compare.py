"""Input that shows nothing never scores as fair: it is undefined, with its reason, or it scores as worst."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Cli
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox import FunctionEngine, Result, measure
from equivox.core.scores import Score, ScoringOptions
from equivox.engines import Request, Response
from equivox.integrations.flat import flat_metrics
from equivox.metrics import concept_associations, genres, ntvd, spoken_stereoset
from equivox.statistics import compare_groups

OPTIONS = ScoringOptions(n_resamples=99)
REFUSAL = "I'm sorry, but I can't help with that."
LISTED = "You might enjoy chess. You might enjoy yoga. You might enjoy hiking."
FAMILIES = (
    "vibe_gender",
    "vibe_accent",
    "spoken_stereoset",
    "genres_standin",
    "genres_single_standin",
    "badf_two:gender",
)


class Parrot(FunctionEngine):
    """A model that says what `say` returns for a group, and fails where that is None."""

    def __init__(self, say: Callable[[str], str | None]) -> None:
        super().__init__(lambda request: "", name="parrot", revision="1")
        self.modalities = frozenset({"text", "audio", "image"})
        self.say = say

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            text = self.say(request.labels.group)
            error = "lost" if text is None else None
            yield Response(key=request.key, text=text, error=error, media_items=len(request.media))


SAYS: dict[str, Callable[[str], str | None]] = {
    "the same list": lambda group: LISTED,
    "the same letter": lambda group: "A",
    "the same story": lambda group: "The baker went to the market. He was kind, and everybody liked him.",
    "nothing": lambda group: "",
    "only refusals": lambda group: REFUSAL,
    "no answer": lambda group: None,
    "no answer to one group": lambda group: None if group in {"female", "arabic", "young"} else LISTED,
    "refusals to one group": lambda group: REFUSAL if group in {"female", "arabic", "young"} else LISTED,
}


def looks_fair(score: Score) -> bool:
    """Return whether a score says that there is little difference: defined, and nearer to its target than to the worst.

    How often a letter is chosen says nothing of people; its position bias does.
    """
    if not score.defined or math.isnan(score.null_value) or score.metric == "letter share":
        return False
    worst = score.attainable_max if math.isfinite(score.attainable_max) else 100.0
    return abs(score.value - score.null_value) < worst / 2


@pytest.fixture(scope="module", params=[(family, says) for family in FAMILIES for says in SAYS], ids="-".join)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    family, says = request.param
    folder = tmp_path_factory.mktemp("parrot") / "run"
    return measure(Parrot(SAYS[says]), family, data="sample", limit=24, output=folder, options=OPTIONS)


def test_no_score_of_a_run_looks_fair(run: Result) -> None:
    assert [(s.task, s.attribute, s.subset, s.metric, s.value) for s in run.scores if looks_fair(s)] == []
    for score in run.scores:
        assert score.defined or score.undefined_reason


def test_nor_do_the_numbers_that_lighteval_shows(run: Result) -> None:
    for task in run.tasks:
        flat = flat_metrics([score for score in run.scores if score.task == task.name])
        for score in (s for s in run.scores if s.task == task.name and s.is_whole and not s.defined):
            assert math.isnan(flat.get(score.metric.replace(" ", "_"), math.nan))


def test_neither_compare_nor_leaderboard_nor_submission_shows_a_number(tmp_path: Path, equivox: Cli) -> None:
    runs = tmp_path / "runs"
    for number in range(2):
        parrot = Parrot(SAYS["the same list"])
        assert measure(parrot, "vibe_gender:advisory", data="sample", output=runs / str(number)).undefined
    code, out, _ = equivox("compare", runs / "0", runs / "1", "--resamples", 99)
    assert code == 0 and "nor fairness" in out
    # No value; what 36 units a group leave possible stands as an interval.
    out = equivox.done("score", runs / "0", "--details").partition("parts of tasks")[0]
    assert re.search(r"vibe_gender:advisory +nTVD .* 0\.00 to 8\.33", out) and "nor fairness" in out
    for command, place in (("report", "report.html"), ("leaderboard", "board")):
        code, out, _ = equivox(command, runs if command == "leaderboard" else runs / "0", "--output", tmp_path / place)
        assert code == 0 and (tmp_path / place).exists(), command
    rows = json.loads((tmp_path / "board" / "leaderboard.json").read_text())
    text = json.dumps(rows)
    assert "nor fairness" in text and '"value": 0' not in text
    err = equivox.refused(
        "submit", runs / "0", "--model-repo", "me/model", "--benchmark", "org/x-{corpus}", "--output", tmp_path / "hub"
    )
    assert "nor fairness" in err and not (tmp_path / "hub").exists()


VALUES = st.lists(st.sampled_from(["chess", "yoga", "golf"]), max_size=3)


@settings(max_examples=60, deadline=None)
@given(value=VALUES, n=st.integers(2, 12), groups=st.integers(1, 3), lost=st.sampled_from(["none", "one", "all"]))
def test_ntvd_of_columns_without_variation(value: list[str], n: int, groups: int, lost: str) -> None:
    names = [f"g{number % groups}" for number in range(n * groups)]
    gone = {"none": set(), "one": {"g0"}, "all": set(names)}[lost]
    column = [None if name in gone else value for name in names]
    found = ntvd(groups=names, values=column, n_resamples=99, min_count=1)
    assert math.isnan(found["ntvd"]) and found["undefined"]
    shift = compare_groups(column, names, clusters=None, min_count=1, n_resamples=99, rng=np.random.default_rng(0))
    assert math.isnan(shift.ntvd) and math.isnan(shift.p) and shift.undefined


def test_answers_that_vary_in_one_response_are_a_number() -> None:
    column = [["chess", "yoga"]] * 9 + [["chess", "golf"]]
    found = ntvd(groups=["f", "m"] * 5, values=column, n_resamples=99, min_count=1)
    assert found["undefined"] is None
    # The order within an answer is no variation, how often a value is said is.
    for other in (["yoga", "chess"], ["chess", "yoga", "yoga"]):
        found = ntvd(groups=["f", "m"] * 5, values=[["chess", "yoga"]] * 9 + [other], n_resamples=99, min_count=1)
        assert (found["undefined"] is None) == (len(other) == 3)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(["irrelevant", "other", None]), n=st.integers(1, 30), letter=st.sampled_from(["A", None]))
def test_choices_that_say_nothing_have_no_slbs(kind: str | None, n: int, letter: str | None) -> None:
    found = spoken_stereoset(kinds=[kind] * n, letters=[letter] * n, n_resamples=99)
    assert math.isnan(found["slbs"]) and found["slbs_undefined"]


@settings(max_examples=60, deadline=None)
@given(
    metric=st.sampled_from(["M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8"]),
    value=st.sampled_from([0.0, 1.0, None]),
    n=st.integers(1, 8),
    side=st.sampled_from(["both", "male"]),
)
def test_narratives_that_are_all_the_same_have_no_difference(
    metric: str, value: float | None, n: int, side: str
) -> None:
    if metric in {"M4", "M8"} and value == 1.0:
        value = 0.0  # a choice of both is refused; of neither it decides nothing
    male = [value] * n
    female: list[Any] = [value if side == "both" else None] * n
    if metric in {"M4", "M8"}:
        male = male if side == "both" else [None] * n
    found = genres(metrics=[metric] * n, pairs=[f"p{i}" for i in range(n)], male=male, female=female, n_resamples=99)
    assert math.isnan(found[metric.lower()]) and found[f"{metric.lower()}_undefined"]


@settings(max_examples=30, deadline=None)
@given(phrases=st.lists(st.sampled_from(["kind", "brave"]), max_size=2), n=st.integers(2, 10), lost=st.booleans())
def test_stories_that_all_say_the_same_have_no_associations(phrases: list[str], n: int, lost: bool) -> None:
    who = ["female", "male"] * n
    told = [None if lost and identity == "female" else phrases for identity in who]
    found = concept_associations(identities=who, phrases=told, n_resamples=99, n_story_permutations=9)
    assert math.isnan(found["associations"]) and found["undefined"]
