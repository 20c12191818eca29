"""The `rules` annotator: closed vocabularies, no model.

It matches words, not meaning ("anything but wealthy" matches wealthy), so it is for simulated models and for models
that answer in the offered words. The first value mentioned counts, or the first `count` values of an attribute with
several. A response that mentions none of the task's values is `unparsed`, not a set of unstated values; so is a
segment with an attribute without vocabulary that the segment's tool could not annotate. A number without a pattern is
the first one written in the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from equivox.annotate.numeric import number_of, reads_itself
from equivox.configs.vocabulary import load_vocabulary
from equivox.core.annotation import RULES, Annotation, Annotator, AnnotatorIdentity, Job
from equivox.core.segments import Segment, Status, Value
from equivox.core.task import Attribute, Task

VERSION = "2"
"""Raised whenever the rules annotate a response differently."""


FOR_SIMULATED = (
    "read by `rules`, which find the words of simulated models and take them out of context elsewhere: annotate a real "
    "model's answers with a model, such as `--annotator qwen3-8b`"
)
"""The warning about free answers of a real model that rules annotate."""


def rules_read(tasks: Iterable[Task]) -> bool:
    """Return whether the annotator reads free text in any of `tasks`, instead of a parser of its own.

    An answer whose numbers are all measured, or found by a pattern, is not read; phrases that decline it still are.
    """
    return any(
        segment.tool is None and not reads_itself(segment.attributes)
        for task in tasks
        for segment in task.annotation.asks(task)
    )


def is_exact(model: str, annotator: str) -> bool:
    """Return whether an annotator cannot err: rules on the sentences of a simulated model, which they are made for.

    >>> is_exact("simulated:biased", "rules"), is_exact("simulated:biased", "qwen3-8b"), is_exact("vllm:x/y", "rules")
    (True, False, False)
    """
    return annotator == RULES and model.startswith("simulated:")


def misread_by_rules(model: str, annotator: str, tasks: Iterable[Task]) -> bool:
    """Return whether `rules` reads free answers of a model that is not simulated, in any of `tasks`."""
    return annotator == RULES and not is_exact(model, annotator) and rules_read(tasks)


class RulesAnnotator(Annotator):
    """Annotator that matches the vocabularies of `configs/annotators/rules.yaml`."""

    instant = True

    def __init__(self) -> None:
        self._vocabulary = load_vocabulary()
        self.identity = AnnotatorIdentity(name=RULES, version=VERSION, settings={"vocabulary": self._vocabulary.digest})

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task with an attribute that has no vocabulary."""
        for task in tasks:
            for segment in task.annotation.asks(task):
                for attribute in segment.attributes:
                    free = attribute.role != "refusal" and attribute.number is None
                    if free and segment.tool is None and segment.prompt is None:
                        self._vocabulary.of(attribute)

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield the annotation of each job."""
        for job in jobs:
            status: Status = "parsed"
            asked = [attribute for attribute in job.segment.attributes if attribute.role != "refusal"]
            values = [value for attribute in asked for value in self._of_attribute(attribute, job.segment)]
            if not job.segment.text.strip():
                status, values = "empty", []
            elif self._vocabulary.declines(job.segment.text):
                status, values = "refused", [Value("refusal", "yes", "")]
            elif not values:
                status = "unparsed"
            else:
                values.append(Value("refusal", "no", ""))
            yield job.annotated(status, values)

    def _of_attribute(self, attribute: Attribute, segment: Segment) -> list[Value]:
        if attribute.number is not None:
            found = number_of(attribute, segment.text)
            return [] if found is None else [found]
        # Segments with their own tool or prompt may have attributes without a vocabulary.
        has_its_own = segment.tool is not None or segment.prompt is not None
        if has_its_own and not self._vocabulary.knows(attribute):
            return []
        mentioned = self._vocabulary.of(attribute).mentions(segment.text)[: attribute.count]
        return [Value(attribute.name, value, words) for value, words in mentioned]
