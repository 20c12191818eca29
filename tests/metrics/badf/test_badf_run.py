"""BADF from stories to associations: planted ones are found, others are not, and no failure reads as fairness."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import Cli
from scipy import stats

from equivox.annotate.model import ModelAnnotator
from equivox.core.scores import Score, ScoringOptions
from equivox.core.segments import WHOLE, SegmentAnnotation
from equivox.core.task import GREEDY
from equivox.dataset_builders.badf import read_grid
from equivox.engines import Engine, EngineIdentity, Request, Response
from equivox.metrics.badf import simulated
from equivox.metrics.badf.annotation.scheme import STAGES, phrases_of
from equivox.metrics.badf.simulated import phrases, signatures, told_of
from equivox.metrics.rules import Rules
from equivox.run.annotating import TOOLS
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import stored_annotations
from equivox.run.verifying import verify
from equivox.tasks.registry import resolve_tasks

FEW = ScoringOptions(n_resamples=99)


@pytest.fixture(scope="session")
def three_places(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The published grid with three places of each category, gender and religion alone."""
    grid = read_grid().model_dump()
    grid["locations"] = {name: places[:3] for name, places in grid["locations"].items()}
    del grid["identities"]["race"]
    file = tmp_path_factory.mktemp("grid") / "three.yaml"
    file.write_text(json.dumps(grid))
    return str(file)


def run(model: str, tasks: str, folder: Path, data: str, **options: Any) -> list[Score]:
    return execute(RunSpec(model=model, tasks=resolve_tasks(tasks), output=folder, data=data, options=FEW, **options))


def table(folder: Path, setting: str, name: str) -> list[dict[str, Any]]:
    return list(pq.read_table(folder / "tables" / setting / f"{name}.parquet").to_pylist())


def one(scores: Sequence[Score], name: str, task: str, subset: str = "") -> Score:
    (found,) = [s for s in scores if (s.metric, s.task, s.subset) == (name, task, subset)]
    return found


def test_planted_associations_are_found_and_others_survive_at_most_at_the_level(
    three_places: str, tmp_path: Path
) -> None:
    """Recall ≥ .95 of what is planted; of the unplanted phrases at most 5 % survive q, and of all finds 5 %."""
    tasks = "badf_two:gender,badf_two:religion"
    scores = run("simulated:planted,shift=0.35", tasks, tmp_path, three_places)
    grid = read_grid()
    rows = table(tmp_path, "badf_two", "associations")
    found = {(row["task"], row["category"], row["identity"], row["phrase"]) for row in rows if row["survives_q"]}
    planted, own = set(), set()
    for dimension in ("gender", "religion"):
        for index, identity in enumerate(grid.identities[dimension].descriptors):
            for phrase in signatures(index):
                own.add((f"badf_two:{dimension}", phrase))
                planted |= {(f"badf_two:{dimension}", c, identity, phrase) for c in grid.locations}
    assert len(planted) == 10 * 2 * (2 + 4)
    assert len(found & planted) / len(planted) >= 0.95
    tested = table(tmp_path, "badf_two", "phrases")
    assert len(tested) == 2 * 10 * len(phrases())
    unplanted = [row for row in tested if (row["task"], row["phrase"]) not in own]
    wrong = [row for row in unplanted if row["q"] <= 0.05]
    assert len(wrong) / len(unplanted) <= 0.05
    # q bounds the expected share of wrong finds by .05; this is one draw of it.
    finds = sum(row["q"] <= 0.05 for row in tested)
    assert len(wrong) <= stats.binom.ppf(0.99, finds, 0.05)
    # Where a planted phrase is kept for another identity too, which the published rule does, it does not stand out.
    stray = [
        r for r in rows if r["survives_q"] and (r["task"], r["category"], r["identity"], r["phrase"]) not in planted
    ]
    assert all(row["residual"] < 2 for row in stray if (row["task"], row["phrase"]) in own)
    counted = one(scores, "associations tested", "badf_two:gender")
    assert counted.value > 3 * counted.null_mean
    # Five pairs of names have 32 permutations, so that none gives a p below 1/16; the planted bias is in all names.
    (chance,) = (row for row in table(tmp_path, "badf_two", "chance") if row["task"] == "badf_two:gender")
    assert chance["p_stories"] == pytest.approx(1 / 100) and counted.p < 0.001
    assert counted.found and counted.hidden_by is None
    assert any("names differ normally" in str(note) for note in counted.notes)
    assert all(row["descriptors_above_others"] >= 4 for row in rows if row["q"] < 1e-9 and row["identity"] == "female")


def test_where_nothing_is_planted_nothing_survives(three_places: str, tmp_path: Path) -> None:
    scores = run("simulated:random", "badf_two:gender", tmp_path, three_places)
    counted = one(scores, "associations tested", "badf_two:gender")
    # The published rule keeps associations all the same: about as many as chance gives.
    assert counted.value > 0
    assert abs(counted.unbiased) < 3 * counted.null_mean**0.5 + 1
    (chance,) = (row for row in table(tmp_path, "badf_two", "chance") if row["task"] == "badf_two:gender")
    assert chance["p_stories"] > 0.01 and not counted.found
    # How large a difference the count may miss is not computed, so that it never says that none was shown.
    assert counted.outcome == "too_few_data"
    rows = table(tmp_path, "badf_two", "phrases")
    assert sum(row["q"] <= 0.05 for row in rows) / len(rows) <= 0.05


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("biased", True),
        ("planted,shift=0.5", True),
        ("planted,shift=0", False),
        ("oracle", False),
        ("random,speaker=0.5", False),
    ],
)
def test_an_identity_is_found_and_a_name_is_not_taken_for_one(model: str, found: bool, tmp_path: Path) -> None:
    scores = run(f"simulated:{model}", "badf_two:gender", tmp_path, "sample", limit=40)
    counted = one(scores, "associations tested", "badf_two:gender")
    assert counted.found is found and (counted.outcome == "too_few_data") is not found
    assert (counted.p < 0.01) is found
    if "speaker" in model:
        # Each name has a favourite phrase, so that stories differ, but no more between women and men than within.
        (chance,) = (row for row in table(tmp_path, "badf_two", "chance") if row["task"] == "badf_two:gender")
        assert chance["p_stories"] < 0.05 < counted.p


@pytest.mark.parametrize("setting", ["badf_single", "badf_balanced", "badf_negative", "badf_openbox"])
def test_every_setting_from_stories_to_tables(setting: str, tmp_path: Path) -> None:
    scores = run("simulated:biased", f"{setting}:gender", tmp_path, "sample", limit=100)
    assert one(scores, "associations", f"{setting}:gender").value > 20
    rows = table(tmp_path, setting, "associations")
    # No two identities share a phrase: each is told of its own alone.
    assert all(row["stories_of_others"] == 0 for row in rows)
    assert {row["exclusive"] for row in rows} == {"not asked"}
    assert {row["exclusivity_by"] for row in rows} == {"none: rules keeps everything"}
    heat = {(row["category"], row["identity"]): row["count"] for row in table(tmp_path, setting, "heat_map")}
    assert len(heat) == 8 and sum(heat.values()) == len(rows)
    summary = table(tmp_path, setting, "summary")
    assert [row["count"] for row in summary] == [
        sum(v for (_, i), v in heat.items() if i == s["identity"]) for s in summary
    ]
    assert all(row["mean_p"] < 0.05 and row["mean_score"] > 0 for row in summary)
    top = table(tmp_path, setting, "top")
    assert len(top) == 20 and [row["rank"] for row in top[:10]] == list(range(1, 11))
    assert top[0]["score"] >= top[9]["score"]
    # Tables 15 to 17 rank all identities together: the ten highest of the associations, whoever they are about.
    of_all = table(tmp_path, setting, "top_of_all")
    highest = sorted((row["score"] for row in rows), reverse=True)[:10]
    assert [row["score"] for row in of_all] == highest
    assert [row["rank"] for row in of_all] == list(range(1, 11)) and len({row["identity"] for row in of_all}) == 2
    exemplars = table(tmp_path, setting, "exemplars")
    for row in exemplars:
        assert row["wording"] in row["story"].replace("very ", "")
        assert row["descriptor"] in row["story"]
    assert (tmp_path / "tables" / setting / "associations.csv").read_text().startswith('"task","category"')


def test_stages_are_stored_one_by_one_and_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("simulated:random", "badf_two:gender", tmp_path, "sample", limit=4)
    stages = [record["segment"] for record in stored_annotations(tmp_path, "rules").values()]
    assert set(stages) == set(STAGES)
    assert stages.count("extract") == 80
    assert {record["segment"] for record in stored_annotations(tmp_path, TOOLS).values()} == {WHOLE}
    kept = (tmp_path / "scores.json").read_bytes()

    def not_again(parts: Sequence[Any]) -> Iterator[None]:
        raise AssertionError(f"{len(parts)} parts are read again")

    monkeypatch.setattr(simulated, "TOOL", Rules(simulated.TOOL.described, not_again))
    run("simulated:random", "badf_two:gender", tmp_path, "sample", limit=4)
    assert (tmp_path / "scores.json").read_bytes() == kept


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("simulated:random,refusal=1", "no story could be annotated"),
        ("simulated:random,fail=1", "no story could be annotated"),
        ("simulated:random,refusal=0.5", "too_few_usable"),
    ],
)
def test_no_failure_reads_as_no_association(model: str, reason: str, tmp_path: Path) -> None:
    scores = run(model, "badf_two:gender", tmp_path, "sample", limit=10)
    assert scores
    for score in scores:
        assert reason in str(score.undefined_reason)
        assert score.value != score.value
    assert {row["count"] for row in table(tmp_path, "badf_two", "heat_map")} == {None}
    assert {row["count"] for row in table(tmp_path, "badf_two", "summary")} == {None}


@pytest.mark.parametrize("silent", [("Emily", "John"), ("Emily",)])
def test_a_story_that_says_nothing_of_a_character_is_no_evidence_of_him_or_her(
    silent: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its stories were used, and no association was found, where a model described nobody, or no woman."""
    told = simulated.SimulatedStories.answer

    def answer(*given: Any) -> str:
        story = told(*given)
        names = re.search(r"^(.*) and (.*) spent", story)
        assert names is not None
        # Of the first of two characters as of Emily, of the second as of John, but for one story in ten.
        gone = [name for name, who in zip(names.groups(), ("Emily", "John"), strict=True) if who in silent]
        if len(re.findall("a", story)) % 10 == 0:
            return story
        first, *others = re.findall(r"[^.]+\.", story)
        return first + "".join(one for one in others if not one.strip().startswith(tuple(gone)))

    monkeypatch.setattr(simulated.SimulatedStories, "answer", answer)
    scores = run("simulated:biased", "badf_two:gender", tmp_path, "sample", limit=20)
    found = one(scores, "associations tested", "badf_two:gender")
    assert found.coverage.parsed == found.coverage.requested == 400
    assert found.coverage.share < 0.2 if len(silent) == 2 else found.coverage.share > 0.9
    assert found.undefined_reason.code == "too_few_usable"


def test_stories_of_another_form_are_left_to_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "equivox.metrics.badf.simulated.SimulatedStories.answer", lambda *_: "Emily met John. They talked until dusk."
    )
    scores = run("simulated:random", "badf_two:gender", tmp_path, "sample", limit=10)
    coverage = one(scores, "associations", "badf_two:gender").coverage
    assert (coverage.answered, coverage.parsed) == (200, 0)
    assert all(score.undefined_reason for score in scores)


class Reader(Engine):
    """A model that reads the reference form, answers exclusivity by the phrase, and fails where it is told to."""

    identity = EngineIdentity(engine="scripted", model="reader", revision="1")

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.broken = broken
        self.asked: list[str] = []

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            self.asked.append(request.text)
            yield Response(key=request.key, text=json.dumps(self._answer(request)))

    def _answer(self, request: Request) -> dict[str, Any]:
        match = re.search(r"^Phrase: (.*)$", request.text, re.MULTILINE)
        assert match, "rules read every story here; only findings are asked about"
        if match.group(1) in self.broken:
            return {"exclusive": "perhaps"}
        return {"exclusive": "YES" if match.group(1) == signatures(0)[0] else "NO"}


def test_exclusivity_is_asked_once_per_finding_and_drops_what_is_a_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Reader(broken=[signatures(1)[0]])
    monkeypatch.setattr(
        "equivox.run.pipeline.open_annotator",
        lambda name, workers: ModelAnnotator("reader", engine, sampling=GREEDY, attempts=2),
    )
    model, tasks = "simulated:planted,shift=0.8", "badf_two:gender"
    scores = run(model, tasks, tmp_path, "sample", limit=100, annotator="reader")
    rows = table(tmp_path, "badf_two", "associations")
    fact, unread = signatures(0)[0], signatures(1)[0]
    by_phrase = {row["phrase"]: row for row in rows}
    assert (by_phrase[fact]["exclusive"], by_phrase[fact]["kept"]) == ("yes", False)
    assert (by_phrase[unread]["exclusive"], by_phrase[unread]["kept"]) == ("unparsed", True)
    assert {row["exclusivity_by"] for row in rows} == {"reader"}
    dropped = sum(row["phrase"] == fact for row in rows)
    assert dropped == 4
    assert one(scores, "associations", tasks).value == len(rows) - dropped
    assert one(scores, "associations tested", tasks).value == len(rows)
    assert table(tmp_path, "badf_two", "summary")[0]["dropped_as_exclusive"] == dropped
    # One question per phrase and identity, however many categories have it; the unread one was asked twice.
    questions = {(row["identity"], row["phrase"]) for row in rows}
    assert len(engine.asked) == len(questions) + 1
    stored = [r for r in stored_annotations(tmp_path, "reader").values() if r["segment"] == "exclusivity"]
    assert len(stored) == len(questions) and {r["response_key"] for r in stored} == {""}
    assert "Identity: female\n\nCategory: gender" in "".join(engine.asked)
    run(model, tasks, tmp_path, "sample", limit=100, annotator="reader")
    assert len(engine.asked) == len(questions) + 1
    # Verifying repeats the stored answers to these questions and asks nothing.
    verified = verify(tmp_path)
    assert verified.outcome == "verified", (verified.problems, verified.differences[:3], verified.not_verified)
    assert len(engine.asked) == len(questions) + 1


def test_a_story_without_phrases_counts_and_an_unread_stage_does_not() -> None:
    metadata = {"d1": "Emily", "d2": "John"}
    full = SegmentAnnotation("parsed", {"character_1": ("calm",), "character_2": ()})
    empty = SegmentAnnotation("parsed", {})
    whole = {WHOLE: SegmentAnnotation("parsed", {})}
    assert phrases_of("parsed", metadata, whole | {"extract": empty}).values == {"character_1": (), "character_2": ()}
    read = dict.fromkeys(STAGES, full)
    assert phrases_of("parsed", metadata, whole | read).values == {"character_1": ("calm",), "character_2": ()}
    for stage in STAGES:
        lost = whole | read | {stage: SegmentAnnotation("unparsed", {})}
        assert phrases_of("parsed", metadata, lost).status == "unparsed"
    assert phrases_of("parsed", metadata, whole | {"extract": full}).status == "unparsed"
    assert phrases_of("parsed", metadata, whole | {"extract": SegmentAnnotation("refused", {})}).status == "refused"
    assert phrases_of("missing", metadata, {}).status == "missing"


def test_the_form_of_the_reference_stories_and_nothing_else_is_read_by_rules() -> None:
    story = "Zhang and Amy spent the day at the AI lab. Zhang was very calm and witty. Amy was an early riser."
    assert told_of(story, ("Zhang", "Amy")) == [["very calm and witty"], ["an early riser"]]
    assert told_of(story + " They went home.", ("Zhang", "Amy")) is None
    assert told_of("Zhang was calm.", ("Zhang",)) is None
    assert told_of("Zhang spent the day at the gym.", ("Zhang",)) == [[]]
    assert told_of(story, ("Zhang", "Jim")) is None


def test_every_prompt_of_the_stages_can_be_filled_in() -> None:
    from equivox.annotate.model import prompt_text

    (task,) = resolve_tasks("badf_two:race")
    assert task.annotation is not None
    for part in task.annotation.asks(task):
        text = prompt_text(part)
        assert "Emily and John" in text and "character_1 is Emily, character_2 is John" in text
        assert "{" not in text.replace("{}", "")


def test_tables_and_terminal_name_the_stand_in_that_keeps_everything(equivox: Cli, tmp_path: Path) -> None:
    equivox.done(
        *("run", "simulated:biased", "badf_two:gender", "--data", "sample", "--limit", 10),
        *("--output", tmp_path / "run", "--scoring", "n_resamples=99"),
    )
    assert "exclusivity was not asked: rules keeps every association" in equivox.done(
        "score", tmp_path / "run", "--details"
    )
