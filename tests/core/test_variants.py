"""Conditions and other groups: what is sent, what is shared, what the shuffled labels show."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli

from equivox.core import media
from equivox.core.errors import UsageError
from equivox.core.variants import vary, with_sampling
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import EngineIdentity
from equivox.run.plan import Plan, make_plan
from equivox.run.scoring import read_scores
from equivox.tasks.registry import builtin_tasks

STORY = builtin_tasks()["vibe_gender:story"]
CONTROLLED = ("audio", "text_only", "silence", "shuffled")
IDENTITY = EngineIdentity(engine="fake", model="m", revision="1")


@pytest.fixture(scope="module")
def plan() -> Plan:
    tasks = vary([STORY], conditions=("all",))
    return make_plan(tasks, {"crema_d": open_corpus(STORY.data, "sample")}, IDENTITY, limit=96)


def of_condition(plan: Plan, condition: str) -> list[dict[str, object]]:
    return [row for row in plan.table.to_pylist() if row["condition"] == condition]


def test_every_arm_asks_about_the_same_items(plan: Plan) -> None:
    items = {condition: [row["sample_id"] for row in of_condition(plan, condition)] for condition in CONTROLLED}
    assert all(len(ids) == 96 for ids in items.values())
    assert items["audio"] == items["text_only"] == items["silence"] == items["shuffled"]
    # The shuffled arm shares the answers of the first; the others have answers of their own.
    keys = {condition: {row["key"] for row in of_condition(plan, condition)} for condition in CONTROLLED}
    assert keys["audio"].isdisjoint(keys["text_only"]) and keys["audio"].isdisjoint(keys["silence"])


def test_text_only_sends_the_transcript_and_no_media(plan: Plan) -> None:
    for row, request in plan.described():
        if row["condition"] == "text_only":
            assert request.media == ()
            assert request.text.startswith('Transcript of the recording: "')
            assert request.text.endswith(STORY.prompt.text)
            assert "{text}" not in request.text


def test_silence_has_the_length_of_the_clip_and_no_sound(plan: Plan) -> None:
    pairs = {request.sample_id: request for row, request in plan.described() if row["condition"] == "silence"}
    for row, request in itertools.islice(plan.described(), 40):
        if row["condition"] != "audio":
            continue
        (clip,), (silence,) = request.media, pairs[request.sample_id].media
        sound = media.decode_audio(clip.load(), name="clip")
        quiet = media.decode_audio(silence.load(), name="silence")
        assert abs(len(sound) - len(quiet)) <= 1
        assert not quiet.any() and sound.any()
        assert clip.sha256 != silence.sha256
    assert pairs[request.sample_id].text == STORY.prompt.text


def test_shuffled_shares_the_answers_and_deals_whole_speakers(plan: Plan) -> None:
    audio, shuffled = of_condition(plan, "audio"), of_condition(plan, "shuffled")
    assert [row["key"] for row in audio] == [row["key"] for row in shuffled]
    group_of = {row["cluster"]: row["group"] for row in shuffled}
    assert all(group_of[row["cluster"]] == row["group"] for row in shuffled)
    true = {row["cluster"]: row["group"] for row in audio}
    assert Counter(group_of.values()) == Counter(true.values())
    assert group_of != true


def test_all_arms_side_by_side(equivox: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    out = equivox.done(
        *("run", "simulated:biased", "vibe_gender:advisory", "--conditions", "all", "--data", "sample"),
        *("--output", folder, "--scoring", "n_resamples=999"),
    )
    details = equivox.done("score", folder, "--scoring", "n_resamples=999", "--details").partition("parts of tasks")[0]
    lines = [line for line in details.splitlines() if " vibe_gender:advisory" in f" {line}" and "nTVD  " in line]
    assert [next(w for w in line.split() if w.startswith("vibe")) for line in lines] == [
        "vibe_gender:advisory", *(f"vibe_gender:advisory@{condition}" for condition in CONTROLLED[1:])
    ]  # fmt: skip
    scores = {
        s["condition"]: s for s in json.loads((folder / "scores.json").read_text())["scores"] if not s["attribute"]
    }
    # A simulated model is told who speaks in every condition; only dealing the labels anew removes its bias.
    assert all(scores[condition]["value"] == pytest.approx(100) for condition in ("audio", "text_only", "silence"))
    assert scores["shuffled"]["value"] < 70 and scores["shuffled"]["p"] > 0.01
    # Shuffling needed no answers of its own, and no readings.
    assert "@shuffled" in equivox.done("status", folder)
    assert equivox.done("score", folder, "--scoring", "n_resamples=999") == out


def test_an_item_without_a_transcript_is_counted_in_the_arm_that_needs_it(
    equivox: Cli, clip_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    task_file = clip_corpus(extra="prompts: advisory\n")
    table = tmp_path / "clips.csv"
    table.write_text(table.read_text().replace("female0_2.wav,Sentence number 2.,", "female0_2.wav,,"))
    folder = tmp_path / "run"
    out = equivox.done(
        "run",
        "simulated:biased",
        task_file,
        "--conditions",
        "audio,text_only",
        "--output",
        folder,
        "--scoring",
        "n_resamples=199",
    )
    counts = {score.task: score.coverage for score in read_scores(folder) if score.is_whole}
    assert counts["voices_gender:advisory@text_only"].generated == 47
    assert "female0_2.wav: the column text is empty" in out
    assert counts["voices_gender:advisory"].generated == 48


@pytest.mark.parametrize(
    ("group", "dimension", "groups"),
    [("race", "race", 3), ("gender×race", "gender × race", 6), ("age_group", "age_group", 5)],
)
def test_any_column_and_crossed_columns_of_a_corpus(
    group: str, dimension: str, groups: int, equivox: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    out = equivox.done(
        *("run", "simulated:biased", "vibe_gender:advisory", "--compare", group, "--data", "sample"),
        *("--output", folder, "--scoring", "n_resamples=199"),
    )
    (whole,) = (s for s in json.loads((folder / "scores.json").read_text())["scores"] if not s["attribute"])
    assert whole["dimension"] == dimension
    assert len(whole["coverage"]["used_by_group"]) == groups
    assert whole["value"] == pytest.approx(100)
    assert equivox("score", folder, "--scoring", "n_resamples=199")[1] == out


def test_the_same_answers_serve_every_dimension_of_a_real_model() -> None:
    corpus = {"crema_d": open_corpus(STORY.data, "sample")}
    by_gender = make_plan([STORY], corpus, IDENTITY)
    by_race = make_plan(vary([STORY], compare=[("race",)], conditions=("audio",)), corpus, IDENTITY)
    assert {row["key"] for row in by_gender.table.to_pylist()} == {row["key"] for row in by_race.table.to_pylist()}


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [("--conditions", "sound", "audio"), ("--conditions", ",", "known"), ("--compare", "mood", "'mood'"),
     ("--conditions", "pitch=2", "unknown condition"), ("--conditions", "audio,voice", "unknown condition 'voice'"),
     ("--compare", "×", "each once"), ("--compare", " ", "each once"), ("--compare", "gender×gender", "each once"),
     ("--compare", "race,race", "twice")],
)  # fmt: skip
def test_wrong_variants_are_one_line(option: str, value: str, hint: str, equivox: Cli, tmp_path: Path) -> None:
    err = equivox.refused(
        *("run", "simulated:oracle", "vibe_gender:story", "--data", "sample", option, value, "-o", tmp_path / "run")
    )
    assert hint in err


def test_a_task_is_decoded_greedily() -> None:
    declared = builtin_tasks()["spoken_stereoset:gender"]
    greedy = with_sampling(declared, "greedy")
    assert (greedy.name, greedy.sampling.temperature) == ("spoken_stereoset_greedy:gender", 0.0)
    assert greedy.sampling.max_new_tokens == declared.sampling.max_new_tokens


def test_a_task_is_asked_several_times() -> None:
    declared = builtin_tasks()["vibe_gender:story"]
    sampled = with_sampling(declared, "temperature=0.7, repeats=3")
    assert sampled.name == "vibe_gender_sampled:story"
    assert sampled.sampling == replace(declared.sampling, temperature=0.7, repeats=3)
    assert with_sampling(declared, "temperature=0") is declared
    for text, told in (
        ("repeats=3", "3 repeats with temperature 0, which all say the same"),
        ("temperature=hot", "temperature"),
        ("temperature=-1", "greater than or equal to 0"),
        ("repeat=3", "did you mean repeats"),
        ("temperature=[", "unbalanced bracket"),
        ("temperature=0.7,temperature=1", "temperature is given twice"),
        ("greedily", "did you mean greedy"),
        ("", "known settings"),
    ):
        with pytest.raises(UsageError, match=told):
            with_sampling(declared, text)
