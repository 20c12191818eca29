"""From an answer to a choice: the rules first, then the annotator, which sees the options and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from equivox.annotate import open_annotator
from equivox.annotate.model import ModelAnnotator
from equivox.core.annotation import Annotation, Job
from equivox.core.segments import WHOLE, Segment
from equivox.core.task import GREEDY
from equivox.engines import Engine, EngineIdentity, Request, Response
from equivox.metrics.spoken_stereoset.annotation.scheme import READER, ChoiceScheme, options_of
from equivox.tasks.spoken_stereoset import TASKS, all_orders, random_order

FACTS = {"option_a": "I bake bread.", "option_b": "I paint doors.", "option_c": "Chalk is white.", "order": "…"}
READING = ChoiceScheme()


def part(text: str) -> Segment:
    (found,) = READING.segments(TASKS[0], FACTS, text, {})
    return found


class Scripted(Engine):
    """An engine that fills in the annotator's form as told, and remembers what it was asked."""

    identity = EngineIdentity(engine="scripted", model="reader", revision="1")

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            self.asked.append(request)
            yield Response(key=request.key, text=self.answer)


def annotated(text: str, answer: str) -> tuple[Annotation, Request]:
    engine = Scripted(answer)
    job = Job(key="k", response_key="r", task=TASKS[0].name, segment=part(text))
    (annotation,) = ModelAnnotator("scripted", engine, sampling=GREEDY).annotate([job])
    return annotation, engine.asked[0]


def test_the_rules_give_the_letter_and_say_which_rule_decided() -> None:
    (read,) = READER.read([part("Option B, of course.")])
    assert read is not None
    assert {(v.attribute, v.value) for v in read} == {("choice", "B"), ("decided_by", "letter"), ("refusal", "no")}
    (read,) = READER.read([part("A or B")])
    assert read is not None
    assert {v.attribute: v.value for v in read} == {"choice": "other", "decided_by": "contradiction", "refusal": "no"}
    assert list(READER.read([part("Who knows?"), part("The second one.")])) == [None, None]


def test_the_response_is_read_once_as_a_whole() -> None:
    assert part("B").name == WHOLE
    assert READING.segments(TASKS[0], FACTS, "B", {WHOLE: None}) == []  # type: ignore[dict-item]


def test_the_annotator_is_shown_the_options_and_the_answer_and_not_the_stereotype() -> None:
    annotation, request = annotated("The second one, I'd say.", json.dumps({"refusal": "no", "choice": "B"}))
    assert annotation.status == "parsed"
    assert [(v.attribute, v.value) for v in annotation.values] == [("choice", "B"), ("refusal", "no")]
    for words in ("A. I bake bread.", "B. I paint doors.", "C. Chalk is white.", "The second one, I'd say."):
        assert words in request.text
    assert not any(word in request.text.lower() for word in ("stereotyp", "irrelevant", "gender", "female", "voice"))
    assert request.schema["properties"]["choice"]["enum"] == ["A", "B", "C", "other", "unstated"]


@pytest.mark.parametrize(
    "answer", ['{"refusal": "no", "choice": "D"}', '{"choice": "A"}', "A", "", '{"refusal": "no"}']
)
def test_a_form_that_is_not_valid_is_no_reading(answer: str) -> None:
    assert annotated("Hm.", answer)[0].status == "unparsed"


def test_a_refusal_is_no_choice() -> None:
    annotation, _ = annotated("I would rather not, but A.", '{"refusal": "yes", "choice": "A"}')
    assert annotation.status == "refused"
    assert [(v.attribute, v.value) for v in annotation.values] == [("refusal", "yes")]


@pytest.mark.parametrize(
    ("text", "status"),
    [("I'm sorry, but I can't help with that request.", "refused"), ("The second one.", "unparsed"), (" ", "empty")],
)
def test_without_a_model_only_refusals_are_read_beside_the_rules(text: str, status: str) -> None:
    rules = open_annotator("rules")
    rules.check(TASKS)
    (annotation,) = rules.annotate([Job(key="k", response_key="r", task=TASKS[0].name, segment=part(text))])
    assert annotation.status == status
    assert not [value for value in annotation.values if value.attribute == "choice"]


@pytest.mark.parametrize("orders", [random_order, all_orders])
def test_orders_show_every_option_once_and_say_how_to_read_letters_back(
    orders: Callable[..., Sequence[dict[str, str]]],
) -> None:
    import random

    columns = {"stereotypical": "s", "anti_stereotypical": "t", "irrelevant": "i"}
    for shown in orders(columns, random.Random(1)):
        kinds = shown["order"].split(",")
        assert [columns[kind] for kind in kinds] == list(options_of(shown).values())
    assert len({shown["order"] for shown in orders(columns, random.Random(1))}) in {1, 6}


def test_random_orders_are_seeded_and_even() -> None:
    import random
    from collections import Counter

    columns = {"stereotypical": "s", "anti_stereotypical": "t", "irrelevant": "i"}
    drawn = Counter(random_order(columns, random.Random(seed))[0]["order"] for seed in range(1200))
    # 200 each; four standard deviations of a count with p = 1/6 are 52.
    assert len(drawn) == 6 and all(abs(n - 200) < 52 for n in drawn.values())
    assert random_order(columns, random.Random(7)) == random_order(columns, random.Random(7))


def test_what_a_reading_depends_on_is_in_the_tasks_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = TASKS[0].fingerprint
    monkeypatch.setattr(sys.modules[ChoiceScheme.__module__], "VERSION", "next")
    from equivox.tasks.spoken_stereoset import stereoset_task

    assert stereoset_task("spoken_stereoset", "gender").fingerprint != before
