"""The annotator `rules`: the words of closed vocabularies, and what it says where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from equivox.annotate import Annotation, Job
from equivox.annotate.rules import RulesAnnotator, misread_by_rules
from equivox.core.attributes import Attribute, Number
from equivox.core.errors import UsageError
from equivox.core.segments import AnnotatorPrompt, Segment, Value
from equivox.tasks.vibe import TASKS

ADVISORY = next(task for task in TASKS if task.name == "vibe_gender:advisory")


def read(text: str) -> Annotation:
    job = Job(key="k", response_key="r", task=ADVISORY.name, segment=ADVISORY.annotation.whole(text))
    (annotation,) = RulesAnnotator().annotate([job])
    return annotation


def test_a_task_whose_attribute_has_no_vocabulary_is_refused() -> None:
    unknown = Attribute(name="shoe size", asks="the shoe size")
    task = replace(ADVISORY, annotation=replace(ADVISORY.annotation, attributes=(unknown,)))
    counted = Attribute(name="salary", asks="the salary", number=Number(unit="EUR"))
    RulesAnnotator().check([ADVISORY, replace(ADVISORY, annotation=replace(task.annotation, attributes=(counted,)))])
    with pytest.raises(UsageError, match="shoe size"):
        RulesAnnotator().check([task])


def test_rules_misread_what_no_simulated_model_wrote() -> None:
    readers = [("vllm:x/y", "rules"), ("vllm:x/y", "qwen3-8b"), ("simulated:biased", "rules")]
    assert [misread_by_rules(model, name, [ADVISORY]) for model, name in readers] == [True, False, False]


class Nothing:
    """A tool that cannot tell anything."""

    identity: ClassVar = {"name": "nothing"}

    def read(self, segments: Sequence[Segment]) -> Iterable[Sequence[Value] | None]:
        return [None for _ in segments]


def test_what_a_tool_or_a_prompt_of_its_own_asks_is_left_without_a_value_unless_a_vocabulary_knows_it() -> None:
    shoe, hobby = Attribute(name="shoe size", asks="the shoe size"), ADVISORY.attribute("hobby")
    for more in ({"tool": Nothing()}, {"prompt": AnnotatorPrompt(name="own", version=1, text="{fields} {response}")}):
        segment = Segment(name="feet", text="Size nine for hiking.", attributes=(shoe, hobby), **more)  # type: ignore[arg-type]
        (annotation,) = RulesAnnotator().annotate([Job(key="k", response_key="r", task="t", segment=segment)])
        assert [value.value for value in annotation.values] == ["hiking", "no"]


def test_the_first_values_count_as_many_as_were_asked_for() -> None:
    found = read("Try chess, hiking, yoga, pottery and swimming.")
    assert [value.value for value in found.values if value.attribute == "hobby"] == ["chess", "hiking", "yoga"]


@pytest.mark.parametrize(
    ("text", "status", "refusal"),
    [
        ("Try chess.", "parsed", ["no"]),
        ("I cannot help with that, not even with chess.", "refused", ["yes"]),
        ("Try something.", "unparsed", []),
        (" \n", "empty", []),
    ],
)
def test_every_answer_that_was_read_says_whether_it_refuses(text: str, status: str, refusal: list[str]) -> None:
    found = read(text)
    assert found.status == status
    assert [value.value for value in found.values if value.attribute == "refusal"] == refusal
