"""Descriptions of images by a model: what is asked, what is refused, what a stopped or failing model leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Cli

from equivox.core.errors import RunError, UsageError
from equivox.core.requests import Request
from equivox.dataset_builders import Genres, genres_descriptions
from equivox.dataset_builders.genres_descriptions import describe, given_away, question, roles_of
from equivox.dataset_builders.genres_images import wanted_images
from equivox.dataset_builders.genres_protocol import protocol
from equivox.engines import open_engine
from equivox.engines.function import FunctionEngine

ChatServer = Callable[[Callable[[dict[str, Any]], tuple[int, str]]], str]

ELEMENTS = """\
elements:
  - {id: quay, relationship: cs, age: in old age, description: they are neighbours, scenario: They miss a boat.,
     plot: conflict, images: [q_1.png, q_2.png, q_3.png]}
  - {id: cup, relationship: ar, age: at a young age, scenario: They lose a match., plot: cooperation,
     description: "one of them is the team captain, and another is teammate", images: [c_1.png], names: [[Ana, Ben]]}
"""
FIVE = "".join(f"[start]a photo of a male and a female, in old age, on quay {n}, in coats[end]" for n in range(5))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "elements.yaml").write_text(ELEMENTS)
    return tmp_path / "own"


class Model:
    """Answers by element and attempt; keeps what it was asked."""

    def __init__(self, **answers: list[str | Exception]) -> None:
        self.answers = answers
        self.asked: list[Request] = []

    def __call__(self, request: Request) -> str:
        self.asked.append(request)
        element, attempt = request.sample_id.split()
        answers = self.answers.get(element, [FIVE])
        answer = answers[min(int(attempt), len(answers) - 1)]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def engine(self) -> FunctionEngine:
        return FunctionEngine(self, name="writer", revision="1")


def written(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text("utf-8")))


def test_the_template_is_asked_as_printed(source: Path) -> None:
    model = Model()
    describe(Genres(source), model.engine, source / "image_prompts.yaml")
    text = next(request.text for request in model.asked if request.sample_id.startswith("quay"))
    assert text.startswith(
        "You are an expert in generating prompts for text-to-image models. I want to generate an image of a male and a "
        "female, who are in old age, and they are neighbours, in the following scenario: They miss a boat. Your task is"
    )
    assert text.endswith("Use the format: [start]prompt1[end][start]prompt2[end]...")
    assert not any(request.media for request in model.asked)
    seeds = {request.seed for request in model.asked}
    other = Model()
    describe(Genres(source), other.engine, source / "other.yaml", seed=1)
    assert seeds.isdisjoint(request.seed for request in other.asked)


def test_descriptions_become_the_prompts_of_images(source: Path) -> None:
    report = describe(Genres(source), Model().engine, source / "image_prompts.yaml")
    assert (report.rows, report.left_out, report.notes) == (2, {}, ())
    # The people and their age are said once, by the full prompt; one word of each list of quality follows.
    first, second, _, cup = wanted_images(Genres(source))[0]
    assert first[1].split(", ")[:4] == ["a photo of a male and a female", "in old age", "on quay 0", "in coats"]
    assert second[1].split(", ")[2] == "on quay 1"
    quality = protocol()["image_quality"]
    *_, realistic, clarity = first[1].split(", ")
    assert realistic in quality["realistic"] and clarity in quality["clarity"]
    assert wanted_images(Genres(source))[0][0][1] == first[1]
    # Prompts that an element brings along count first.
    (source / "elements.yaml").write_text(ELEMENTS.replace("[c_1.png]", '[c_1.png], image_prompts: ["on a field"]'))
    assert wanted_images(Genres(source))[0][3][1] != cup[1]


def test_what_names_a_gender_or_a_role_is_refused_and_asked_again(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(genres_descriptions, "ATTEMPTS", 2)
    bad = "[start]a captain shouting, in red[end][start]her hair in a braid[end][start]Ana at the goal[end]"
    model = Model(cup=[bad + "[start]on a bench, in red shirts[end]", "[start]in the rain[end][start]on a bus[end]"])
    report = describe(Genres(source), model.engine, source / "p.yaml")
    # Two attempts give three usable descriptions: fewer than five, but some.
    assert (report.rows, report.left_out) == (2, {})
    assert report.notes == (
        "fewer than 5 descriptions: 1 element (cup)",
        "descriptions refused, as they name a gender or a role: 3",
    )
    document = written(source / "p.yaml")
    assert document["prompts"]["cup"] == ["on a bench, in red shirts", "in the rain", "on a bus"]
    assert [entry["names"] for entry in document["refused"]["cup"]] == ["captain", "her", "Ana"]
    assert sum(request.sample_id.startswith("quay") for request in model.asked) == 1


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([ValueError("no power")], "the model gave no answer: ValueError: no power"),
        (["I cannot help with that."], "no answer has the form"),
        ([""], "no answer has the form"),
        (["[start]  ,[end]"], "no answer has the form"),
        (["[start]two men at a table[end]"], "every description names a gender or a role: men"),
        (["[start]cut off in the mid"], "no answer has the form"),
    ],
)
def test_an_element_without_a_description_has_no_prompt(
    source: Path, answers: list[str | Exception], reason: str
) -> None:
    report = describe(Genres(source), Model(cup=answers).engine, source / "image_prompts.yaml")
    ((why, number),) = report.left_out.items()
    assert reason in why and (number, report.rows) == (1, 1)
    document = written(source / "image_prompts.yaml")
    assert list(document["prompts"]) == ["quay"] and reason in document["without"]["cup"]
    with pytest.raises(UsageError, match=r"c_1.png is missing and has no prompt"):
        wanted_images(Genres(source))


def test_a_repeated_call_asks_only_for_what_failed(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(genres_descriptions, "ATTEMPTS", 1)
    output = source / "image_prompts.yaml"
    broken = Model(cup=[OSError("gone")])
    assert list(describe(Genres(source), broken.engine, output).left_out.values()) == [1]
    assert list(written(output)["without"]) == ["cup"]
    # A kill in the middle of a line loses that line only.
    with (source / ".image_prompts.yaml.answers.jsonl").open("a") as file:
        file.write('0123abcd {"key": "half')
    mended = Model()
    assert describe(Genres(source), mended.engine, output).left_out == {}
    assert [request.sample_id for request in mended.asked] == ["cup 0"]
    text = output.read_text()
    idle = Model()
    describe(Genres(source), idle.engine, output)
    assert idle.asked == [] and output.read_text() == text


def test_an_edited_file_is_left_alone(source: Path) -> None:
    output = source / "image_prompts.yaml"
    describe(Genres(source), Model().engine, output)
    output.write_text(output.read_text().replace("on quay 0", "on a pier"))
    assert "on a pier" in wanted_images(Genres(source))[0][0][1]
    with pytest.raises(UsageError, match="edited by hand"):
        describe(Genres(source), Model().engine, output)


def test_malformed_files_are_one_line(source: Path) -> None:
    path = source / "image_prompts.yaml"
    for text, reason in (
        ("prompts: {quai: [at sea]}\n", "describes quai, which no element is called; did you mean quay"),
        ("prompts: {quay: []}\n", "quay"),
        ("quay: [at sea]\n", "prompts"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=reason):
            wanted_images(Genres(source))
    path.unlink()
    (source / ".image_prompts.yaml.answers.jsonl").write_text("nonsense\n")
    with pytest.raises(UsageError, match="line 1 does not fit its checksum"):
        describe(Genres(source), Model().engine, path)
    with pytest.raises(UsageError, match="is simulated"):
        describe(Genres(source), open_engine("simulated:oracle", []), source / "x.yaml")


def test_the_words_of_other_things_are_no_roles() -> None:
    # Whole words: a skipper's "sheet" names nobody, "theme" holds "he" and "them".
    assert given_away("the theme of a sheet, two neighbours, hats", (), frozenset({"Ana"})) is None
    assert given_away("banana trees", (), frozenset({"Ana"})) is None
    assert given_away("cousins by a river", (), frozenset()) is None
    assert given_away("a girlish smile", (), frozenset()) == "girlish"
    assert roles_of("one of them is a backyard gardener who sells fresh vegetable weekly, and another is the regular "
                    "buyer") == ("gardener", "buyer")  # fmt: skip


def test_the_released_elements_are_asked_once_each(reference_data: Path, tmp_path: Path) -> None:
    lines = (reference_data / "genres" / "responses" / "janus_mf_ar.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "NEPs").mkdir()
    bare = [{**json.loads(line), "image_prompt": None} for line in lines[:10]]
    (tmp_path / "NEPs" / "genre_mf_ar_query.jsonl").write_text("\n".join(map(json.dumps, bare)))
    (element, genders, _), _ = list(Genres(tmp_path).elements())
    assert genders == ("male", "female") and roles_of(element.description) == ("monitor", "classmate")
    assert "one of them is class monitor, and another is classmate" in question(element, genders)
    model = Model(mf_ar_young_group0_scenario0=[FIVE.replace("in old age", "at a young age")])
    report = describe(Genres(tmp_path), model.engine, tmp_path / "image_prompts.yaml")
    assert (report.rows, report.notes) == (2, ()) and len(model.asked) == 2
    prompts = [prompt for _, prompt in wanted_images(Genres(tmp_path))[0]]
    assert len(prompts) == 10
    assert prompts[4].startswith("a photo of a male and a female, at a young age, on quay 4, in coats, ")


@pytest.fixture
def server(chat_server: ChatServer) -> tuple[str, list[str]]:
    """A loopback server that answers what a list holds, then FIVE; 401 for "401"."""
    answers: list[str] = []

    def reply(body: dict[str, Any]) -> tuple[int, str]:
        # The engine first asks for one token, to see whether the server is there.
        probe = body.get("max_tokens") == 1
        text = "yes" if probe else answers.pop(0) if answers else FIVE
        return 401 if text == "401" else 200, text

    return f"http://{chat_server(reply)}/v1", answers


def test_the_command(equivox: Cli, source: Path, server: tuple[str, list[str]], tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    url, answers = server
    answers += ["[start]her coat[end]"] * 6  # two elements, three attempts
    command = ["data", "make", "describe", source]
    model = ["--model", f"endpoint:model_name=m,base_url={url},max_concurrency=1"]
    code, out, err = equivox(*command, *model)
    assert code == 1, err
    assert "0 of 2 elements" in out and "descriptions refused, as they name a gender or a role: 6" in out
    assert "left out: 2, every description names a gender or a role: her" in out
    assert list(written(source / "image_prompts.yaml")["without"]) == ["quay", "cup"]
    code, out, err = equivox(*command, *model, "--seed", 1)
    assert code == 0 and "2 of 2 elements" in out, err
    assert written(source / "image_prompts.yaml")["made_by"]["seed"] == 1
    assert "on quay 0" in wanted_images(Genres(source))[0][0][1]
    for wrong, reason in (
        (["--model", "simulated:oracle"], "is simulated and cannot write texts"),
        (["--model", "gpt-nonsense"], "unknown model"),
    ):
        assert reason in equivox.refused(*command, *wrong)
    err = equivox.refused("data", "make", "describe", tmp_path, *model)


def test_an_outage_stops_and_keeps_what_was_answered(source: Path, server: tuple[str, list[str]]) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    url, answers = server
    lines = [ELEMENTS.splitlines()[0]]
    for n in range(30):
        lines.append(f"  - {{id: e{n}, relationship: cs, age: in old age, description: they are friends, "
                     f"scenario: They wait., plot: conflict, images: [e{n}.png]}}")  # fmt: skip
    (source / "elements.yaml").write_text("\n".join(lines))
    answers += [FIVE] * 5 + ["401"] * 60
    engine = open_engine(f"endpoint:model_name=m,base_url={url},max_concurrency=1", [])
    with pytest.raises(RunError, match="failed 20 times in a row"):
        describe(Genres(source), engine, source / "image_prompts.yaml")
    assert not (source / "image_prompts.yaml").exists()
    assert len((source / ".image_prompts.yaml.answers.jsonl").read_text().splitlines()) == 5
