"""Named system prompts: read from files, made conditions, part of the key; without one nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli
from made_requests import made_request

from equivox.core.errors import UsageError
from equivox.core.requests import EngineIdentity, Labels, Request, request_key
from equivox.core.task import GREEDY
from equivox.core.task_checks import tasks_in
from equivox.core.variants import (
    LONGEST,
    conditions_of,
    parse_conditions,
    read_system_prompts,
    vary,
    with_system_prompts,
)
from equivox.engines import open_engine
from equivox.engines.messages import chat_of
from equivox.tasks.registry import builtin_tasks

STORY = builtin_tasks()["vibe_gender:story"]
FAIR = with_system_prompts(STORY, {"fair": "Be fair.", "kind": "Be kind."})
EXAMPLES = Path(__file__).parents[2] / "examples" / "system"


def test_without_a_system_prompt_keys_and_fingerprints_are_those_of_before() -> None:
    request = Request(
        key="", task="t", sample_id="i", repeat=0, condition="audio", media=(), text="Who is it?", sampling=GREEDY,
        seed=1, labels=Labels(group="f", groups=("f", "m"), cluster="s", stratum=""),
    )  # fmt: skip
    identity = EngineIdentity(engine="fake", model="m", revision="1")
    # Computed before there were system prompts.
    assert request_key(identity, request, 1) == "099052c6c72714ccc16652037dc09313"
    before = "80d4e42e5d8ec74fd3b6c053c6afd692eb6ef6ffa6afad0770fd6ba4e2544fe8"
    assert STORY.fingerprint == FAIR.fingerprint == before
    simulated = open_engine("simulated:planted,shift=0.2", [STORY]).identity
    assert simulated.digest == "55664e6d1ca8366f18f78c5e683dc8a52c184aa84f557b936871917d3d17ee38"
    # Its text changes the key, and so does its name, which is the condition.
    keys = {
        request_key(identity, replace(request, condition=condition, system=system), 1)
        for condition in ("audio", "system=fair")
        for system in ("", "Be fair.", "Be kind.")
    }
    assert len(keys) == 6


def test_each_is_a_condition_of_the_task() -> None:
    assert conditions_of(FAIR) == (*conditions_of(STORY), "system=fair", "system=kind")
    assert parse_conditions("system=fair,audio") == ("audio", "system=fair")
    plain, fair = vary([FAIR], conditions=("declared", "system=fair"))
    assert (plain.name, plain.prompt.system) == ("vibe_gender:story", "")
    assert (fair.name, fair.prompt.system) == ("vibe_gender:story@system=fair", "Be fair.")
    assert (fair.media, fair.prompt.text) == (plain.media, plain.prompt.text)
    assert len({plain.fingerprint, fair.fingerprint}) == 2
    with pytest.raises(UsageError, match=r"has no condition 'system=fare'; it offers .*system=fair"):
        vary([FAIR], conditions=("system=fare",))
    with pytest.raises(UsageError, match="'none' of vibe_gender:story is empty"):
        vary([with_system_prompts(STORY, {"none": " "})], conditions=("all",))
    with pytest.raises(UsageError, match="has a system prompt 'fair' of its own"):
        with_system_prompts(FAIR, {"fair": "Be just."})


def test_what_the_task_always_says_stays() -> None:
    always = replace(FAIR, prompt=replace(FAIR.prompt, system="You are a recruiter."))
    (fair,) = vary([always], conditions=("system=fair",))
    assert fair.prompt.system == "You are a recruiter.\n\nBe fair."


def test_other_wordings_are_conditions_that_are_asked_by_name_alone() -> None:
    wordings = [condition for condition in conditions_of(STORY) if condition.startswith("wording=")]
    assert wordings == ["wording=1", "wording=2", "wording=3", "wording=4"]
    assert conditions_of(STORY) == ("audio", "text_only", "silence", "shuffled", *wordings)
    named = parse_conditions("wording, audio, silence")
    assert [task.condition for task in vary([STORY], conditions=named)] == ["audio", "silence", *wordings]
    assert not any(task.condition in wordings for task in vary([STORY], conditions=("all",)))
    everything = [task.condition for task in vary([STORY], conditions=parse_conditions("wording,all"))]
    assert everything == ["audio", "text_only", "silence", "shuffled", *wordings]
    second, plain = vary([STORY], conditions=("wording=2", "wording=2", "declared"))
    assert (second.name, plain) == ("vibe_gender:story@wording=2", STORY)
    # Only the words of the prompt differ, and where they are from.
    assert second == replace(STORY, name=second.name, condition="wording=2", prompt=second.prompt)
    assert second.prompt.text == STORY.interventions["wording=2"] != STORY.prompt.text
    assert second.prompt.source == f"equivox, after {STORY.prompt.source}"
    with pytest.raises(UsageError, match="has no condition 'wording=5'; it offers"):
        vary([STORY], conditions=("wording=5",))
    with pytest.raises(UsageError, match="spoken_stereoset:age has no other wordings"):
        vary([builtin_tasks()["spoken_stereoset:age"]], conditions=("declared", "wording"))


@pytest.mark.parametrize(
    ("interventions", "told"),
    [
        ({"fair": "Be fair."}, r"`interventions` has 'fair'; call it system=NAME or wording=NAME"),
        ({"wording=": "Who?"}, r"wording=: a condition is called after ''"),
        ({"wording=a b": "Who?"}, r"wording=a b: a condition is called after 'a b'"),
        ({"wording=1": " "}, r"wording=1 is empty; write what is to be said"),
    ],
)
def test_interventions_of_a_python_task_are_checked(interventions: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        tasks_in(replace(STORY, interventions=interventions), "here")


def test_the_system_message_comes_first_and_is_one() -> None:
    plain = made_request(1)
    assert [message["role"] for message in chat_of(plain, [])] == ["user"]
    fair = replace(plain, system="Be fair.")
    system, user = chat_of(fair, [])
    assert system == {"role": "system", "content": "Be fair."} and user == chat_of(plain, [])[0]
    # The model's own comes before it.
    assert chat_of(fair, [], "Be brief.")[0]["content"] == "Be brief.\n\nBe fair."
    assert chat_of(plain, [], "Be brief.")[0]["content"] == "Be brief."


def test_files_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "fair.txt").write_bytes(b"\xef\xbb\xbf  Be fair.\r\nAlways.\n")
    (tmp_path / "kind.md").write_text("Be kind.")
    assert read_system_prompts("fair.txt, kind.md", tmp_path) == {"fair": "Be fair.\nAlways.", "kind": "Be kind."}
    assert read_system_prompts(",".join(map(str, sorted(EXAMPLES.glob("*.txt"))))).keys() == {
        "equally", "illegal", "unbiased"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.txt", None, "missing.txt cannot be read: No such file"),
        ("empty.txt", b" \n", "is empty; write"),
        ("binary.txt", b"\x00\x01text", "is not a text; give"),
        ("latin.txt", b"f\xfcr alle", "is not a text; give"),
        ("long.txt", b"a" * (LONGEST + 1), "has 20,001 characters, more than the 20,000"),
        ("two words.txt", b"Be fair.", "a condition is called after 'two words'; use"),
        ("a@b.txt", b"Be fair.", "called after 'a@b'"),
        (".", None, "cannot be read: Is a directory"),
        ("fair.txt,other/fair.md", None, "two files called 'fair'"),
        (" , ", None, "names no file"),
    ],
)
def test_a_wrong_file_is_one_line(name: str, content: bytes | None, words: str, tmp_path: Path) -> None:
    for other in ("fair.txt", "other/fair.md"):
        (tmp_path / other).parent.mkdir(exist_ok=True)
        (tmp_path / other).write_text("Be fair.")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match="`system`") as caught:
        read_system_prompts(name, tmp_path)
    assert words in str(caught.value)


def test_a_task_file_names_them_or_holds_them(clip_corpus: Callable[..., Path], equivox: Cli, tmp_path: Path) -> None:
    (tmp_path / "fair.txt").write_text("Be fair.\n")
    for extra in ("system: fair.txt", "system: [fair.txt]", "system: {fair: Be fair.}"):
        task_file = clip_corpus(extra=f"prompts: advisory\n{extra}\n")
        # The second and the third resume the first: they ask for the same.
        out = equivox.done(
            *("run", "simulated:random", task_file, "--conditions", "declared,system=fair", "--scoring"),
            *("n_resamples=99", "-o", tmp_path / "run"),
        )
        assert "system=fair" in out
    err = equivox.refused("run", "simulated:random", task_file, "--system", tmp_path, "-o", tmp_path / "other")
    assert "Is a directory" in err
    task_file = clip_corpus(extra="prompts: advisory\nsystem: {fair: ' '}\n")
    assert "is empty" in equivox.refused("run", "simulated:random", task_file, "-o", tmp_path / "other")
