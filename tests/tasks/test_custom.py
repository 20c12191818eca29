"""A corpus of one's own: a folder of clips, a CSV and a short YAML file, from files to scores."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import Cli

from equivox.core.errors import UsageError
from equivox.core.media import encode_audio
from equivox.core.task import Task
from equivox.tasks.registry import resolve_tasks

Corpus = Callable[..., Path]
FEW = ("--scoring", "n_resamples=199")


def test_a_task_file_becomes_tasks_and_scores(clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    task_file = clip_corpus()
    assert len(task_file.read_text().splitlines()) < 15
    out = equivox.done("run", "simulated:biased", task_file, "--output", tmp_path / "run", *FEW)
    assert "5 tasks, 240 answers" in out
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    assert {s["value"] for s in scores if s["attribute"] is None} == {100.0}
    # Scoring needs neither the task file nor the clips any more.
    task_file.unlink()
    (tmp_path / "clips.csv").unlink()
    assert equivox("score", tmp_path / "run", *FEW)[:2] == (0, out)


def test_an_unreadable_clip_is_named_and_counted_and_the_run_goes_on(
    clip_corpus: Corpus, equivox: Cli, tmp_path: Path
) -> None:
    task_file = clip_corpus(broken=["female0_3.wav"], extra="prompts: advisory\n")
    (tmp_path / "clips" / "male1_2.wav").unlink()
    out = equivox.done("run", "simulated:biased", task_file, "--output", tmp_path / "run", *FEW)
    assert "2 of 48 answers do not count: 2 failed" in out
    assert "female0_3.wav" in out and "male1_2.wav" in out
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    whole = next(s for s in scores if s["attribute"] is None)
    assert whole["coverage"]["used_by_group"] == {"female": 23, "male": 23}


def test_media_that_fail_in_one_group_alone_leave_the_score_undefined(
    clip_corpus: Corpus, equivox: Cli, tmp_path: Path
) -> None:
    # 6 of 24 clips of one group are broken: 87.5 % usable over all, 75 % in that group.
    task_file = clip_corpus(broken=[f"female{s}_{t}.wav" for s in range(3) for t in (0, 1)])
    code, out, _ = equivox("run", "simulated:biased", task_file, "--output", tmp_path / "run", *FEW)
    assert code == 1
    assert "NO RESULT" in out


def test_crossed_groups(clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    task_file = clip_corpus()
    table = tmp_path / "clips.csv"
    lines = table.read_text().splitlines()
    # Even-numbered speakers are young, odd ones old.
    aged = [f"{line},{'age' if i == 0 else 'old' if line.split(',')[2][-1] in '13' else 'young'}"
            for i, line in enumerate(lines)]  # fmt: skip
    table.write_text("\n".join(aged) + "\n")
    task_file.write_text(task_file.read_text().replace("group: gender", "group: [gender, age]"))
    equivox.done("run", "simulated:biased", task_file, "--output", tmp_path / "run", *FEW)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    assert scores[0]["dimension"] == "gender × age"
    assert set(scores[0]["coverage"]["used_by_group"]) == {
        "female × old", "female × young", "male × old", "male × young"
    }  # fmt: skip


WRONG = {
    "unknown field": ("gruop: gender", "gruop"),
    "unknown prompt": ("prompts: [tale]", "tale"),
    "unknown column": ("strata: mood", "mood"),
    "not YAML": ("x: [", "not YAML"),
    "bad name": ("name: My Voices", "name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_task_file_is_one_line(case: str, clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    line, hint = WRONG[case]
    task_file = clip_corpus()
    kept = [row for row in task_file.read_text().splitlines() if row.split(":")[0] != line.split(":")[0]]
    task_file.write_text("\n".join([*kept, line]) + "\n")
    assert hint in equivox.refused("run", "simulated:oracle", task_file, "--output", tmp_path / "run")


QUESTION = """\
questions:
  - name: referral
    text: Which doctor should this person see first?
    attributes:
      - {name: urgency, asks: how soon the person is to be seen, options: [today, this week, at leisure]}
      - {name: specialty, asks: the kind of doctor, words: {cardiologist: [heart specialist], dentist: [], surgeon: []}}
    instructions: Count a general practitioner as "family doctor".
    examples:
      - {text: "A dentist, and today.", values: {urgency: today, specialty: dentist}}
    sampling: {temperature: 0.7, repeats: 2}
"""


def test_a_question_of_ones_own_by_yaml_alone(clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    task_file = clip_corpus(extra=QUESTION)
    (task,) = resolve_tasks(str(task_file))
    assert task.name == "voices_gender:referral"
    assert [a.name for a in task.attributes] == ["urgency", "specialty", "refusal"]
    assert (task.sampling.temperature, task.sampling.repeats) == (0.7, 2)
    folder = tmp_path / "run"
    equivox.done("run", "simulated:planted,shift=0.6", task_file, "--output", folder, *FEW)
    scores = {s["attribute"]: s for s in json.loads((folder / "scores.json").read_text())["scores"]}
    assert scores[None]["coverage"]["used"] == 2 * 48
    assert scores["urgency"]["ci"][0] <= 60 <= scores["urgency"]["ci"][1]
    assert scores[None]["p"] < 0.05
    # The same numbers from what is stored, the question read from the run's own copy of the file.
    task_file.unlink()
    equivox.done("score", folder, *FEW)


def test_a_question_can_stand_beside_vibes_prompts(clip_corpus: Corpus) -> None:
    tasks = resolve_tasks(str(clip_corpus(extra=QUESTION + "prompts: story\n")))
    assert [task.name for task in tasks] == ["voices_gender:story", "voices_gender:referral"]


def test_an_annotator_is_told_the_questions_instructions_and_examples(clip_corpus: Corpus) -> None:
    (task,) = resolve_tasks(str(clip_corpus(extra=QUESTION)))
    prompt = annotator_prompt(task, "A cardiologist, next week.")
    assert '- Count a general practitioner as "family doctor".' in prompt
    assert '{"refusal": "no", "urgency": "today", "specialty": "dentist"}' in prompt
    assert '- urgency (how soon the person is to be seen): "today" or "this week"' in prompt


def annotator_prompt(task: Task, text: str) -> str:
    from equivox.annotate.model import prompt_text

    return prompt_text(task.annotation.whole(text))


WRONG_QUESTION = {
    "an option that is always there": ("at leisure", "other", "always there"),
    "an example of no attribute": ("specialty: dentist", "speciality: dentist", "did you mean"),
    "an example outside the options": ("urgency: today", "urgency: tomorrow", "tomorrow"),
    "sampling that there is not": ("temperature: 0.7", "temprature: 0.7", "temprature"),
    "refusal is always read": ("name: urgency", "name: refusal", "refusal"),
    "words for no vocabulary": ("surgeon: []", "surgeon: 3", "surgeon"),
    "a temperature out of its range": (
        "temperature: 0.7",
        "temperature: -0.7",
        "greater than or equal to 0, got -0.7",
    ),
    "a temperature that is no number": ("temperature: 0.7", "temperature: .nan", "finite number"),
    "a temperature as text": ("temperature: 0.7", 'temperature: "0.7"', "valid number, got '0.7'"),
    "repeats out of their range": ("repeats: 2", "repeats: 0", "greater than or equal to 1, got 0"),
    "truth for a number": ("repeats: 2", "repeats: true", "valid integer, got True"),
    "a wording that asks of another column": (
        "sampling:",
        'wordings: {plain: "Which doctor for {speaker}?"}\n    sampling:',
        "wording=plain fills in other columns than `text`; it needs: none",
    ),
    "a wording with a name that no file can have": (
        "sampling:",
        'wordings: {"a/b": "Which doctor?"}\n    sampling:',
        "a condition is called after 'a/b'",
    ),
    "an empty wording": ("sampling:", 'wordings: [" "]\n    sampling:', "wording=1 is empty"),
    "a doubled key": ("repeats: 2", "repeats: 2, repeats: 3", "the key 'repeats' is given twice"),
    "deep nesting": ("repeats: 2", f"repeats: {'[' * 100_000}", "maximum"),
    "a date": ("options: [today, ", "options: [2024-01-01, ", "put it into quotes"),
    "truth as an option": ("options: [today, ", "options: [yes, ", "put it into quotes"),
}


@pytest.mark.parametrize("case", WRONG_QUESTION)
def test_a_wrong_question_is_one_line(case: str, clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    old, new, hint = WRONG_QUESTION[case]
    assert old in QUESTION
    task_file = clip_corpus(extra=QUESTION.replace(old, new))
    assert hint in equivox.refused("run", "simulated:oracle", task_file, "--output", tmp_path / "run")


def test_two_files_may_not_declare_the_same_task_differently(clip_corpus: Corpus, tmp_path: Path) -> None:
    first = clip_corpus()
    second = tmp_path / "second.yaml"
    second.write_text(first.read_text() + "cluster: gender\n")
    with pytest.raises(UsageError, match="two different tasks"):
        resolve_tasks(f"{first},{second}")
    assert len(resolve_tasks(f"{first},{first}")) == 5


def test_a_group_called_nan_is_a_group_unless_it_means_a_missing_one(
    clip_corpus: Corpus, equivox: Cli, tmp_path: Path
) -> None:
    task_file = clip_corpus(groups=("female", "male", "nan"), extra="prompts: advisory\n")
    equivox.done("run", "simulated:biased", task_file, "--output", tmp_path / "run", *FEW)
    (score, *_) = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    assert set(score["coverage"]["used_by_group"]) == {"female", "male", "nan"}
    with task_file.open("a") as file:
        file.write("missing: nan\n")
    out = equivox.done("run", "simulated:biased", task_file, "--output", tmp_path / "without", *FEW)
    assert "24 samples of voices have no group and are left out" in " ".join(out.split())
    manifest = json.loads((tmp_path / "without" / "manifest.json").read_text())
    assert manifest["samples_without_group"] == {"voices": 24}


def test_recordings_of_one_group_at_a_lower_rate_are_told(clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    """A telephone's sound of one group is no difference between people; 44,100 Hz are heard as 16,000 are."""
    task_file = clip_corpus(extra="prompts: advisory\n")
    for place, clip in enumerate(sorted((tmp_path / "clips").iterdir())):
        rate = 8000 if place < 18 else 44_100  # the 24 clips of women come first
        tone = 0.3 * np.sin(2 * np.pi * (100 + place) * np.arange(rate // 5) / rate)
        clip.write_bytes(encode_audio(tone, sampling_rate=rate, container="WAV", subtype="PCM_16"))
    told = "groups were recorded differently, at 8,000 Hz: female 75 %, male 0 %"
    code, out, err = equivox("run", "simulated:biased", task_file, "--output", tmp_path / "run", *FEW)
    assert code == 0 and told in " ".join(out.split()), err
    # The rate is a column that a task can hold equal.
    task_file.write_text(task_file.read_text().replace("strata: text", "strata: [text, sampling_rate]"))
    code, out, err = equivox("run", "simulated:biased", task_file, "--output", tmp_path / "held", *FEW)
    assert "recorded differently" not in out and "TOO FEW DATA" in out, err


def test_a_corpus_that_was_moved_is_found_by_data(clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    home = tmp_path / "home"
    task_file = clip_corpus(extra="prompts: advisory\n")
    run = tmp_path / "run"
    equivox.done("run", "simulated:biased", task_file, "--output", run, *FEW)
    home.mkdir()
    for name in ("clips", "clips.csv"):
        (tmp_path / name).rename(home / name)
    report = ("report", run, "--examples", 1, "--output", tmp_path / "report.html")
    assert "`--data`" in equivox.refused(*report)
    equivox.done(*report, "--data", home)


@pytest.mark.parametrize("name", ["badf", "genres", "crema_d", "v" * 100])
def test_a_reserved_name_is_refused(name: str, clip_corpus: Corpus, equivox: Cli, tmp_path: Path) -> None:
    task_file = clip_corpus()
    task_file.write_text(task_file.read_text().replace("name: voices", f"name: {name}"))
    assert "name" in equivox.refused("run", "simulated:oracle", task_file, "--output", tmp_path / "run")


VOICE_GENDER = {
    "female": "old_women Barbara Hillary_Clinton girl Ana Megan-HQ",
    "male": "old_man John_Madden boy Matthew Mason-HQ",
}


@pytest.mark.paper
def test_the_real_spoken_stereoset_clips_run_with_the_vibe_prompts(
    reference_data: Path, equivox: Cli, tmp_path: Path
) -> None:
    """24 clips as distributed, MP3 data in .wav files among them, with gender as the dimension."""
    folder = reference_data / "spoken_stereoset" / "sample"
    gender_of = {voice: gender for gender, voices in VOICE_GENDER.items() for voice in voices.split()}
    with (folder / "manifest.csv").open(newline="") as manifest, (tmp_path / "clips.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["path", "text", "speaker", "gender"])
        for row in csv.DictReader(manifest):
            gender = row["group"] if row["domain"] == "gender" else gender_of[row["speaker"]]
            writer.writerow([f"speech/{row['domain']}/{row['file']}", row["context"].strip(), row["speaker"], gender])
    task_file = tmp_path / "stereoset.yaml"
    task_file.write_text(f"name: stereoset\ntable: clips.csv\nfolder: {folder}\ngroup: gender\n")
    out = equivox.done("run", "simulated:biased", task_file, "--output", tmp_path / "run", *FEW)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    tasks = [score for score in scores if score["attribute"] is None]
    assert [score["task"].partition(":")[2] for score in tasks] == [
        "story", "advisory", "candidate", "casting", "shopper"
    ]  # fmt: skip
    for score in tasks:
        assert score["value"] == pytest.approx(100)
        assert score["coverage"]["requested"] == score["coverage"]["used"] == 24
        assert score["n_units"] == 17


def test_what_a_task_file_takes_and_what_it_can_find(clip_corpus: Corpus, equivox: Cli) -> None:
    file = clip_corpus()
    assert "simulated:biased" in equivox.done("run", "simulated:biased", file, "--dry-run")
    assert f"for example {file}:story" in equivox.refused("tasks", "plan", file)
    assert "has no task 'candidat'" in equivox.refused("tasks", "plan", f"{file}:candidat")
    out = equivox.done("tasks", "plan", f"{file}:candidate")
    # The corpus of the file has its own number of speakers.
    assert "8 units, 6 answers each, 2 groups" in out
