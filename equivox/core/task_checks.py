"""What is wrong with a task, in one line, before anything is asked: as it was written, or for who is to answer it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from equivox.core.attributes import LOSSES, OTHER, REFUSAL, UNSTATED, Attribute
from equivox.core.errors import UsageError, nearest
from equivox.core.task import Need, Task
from equivox.core.text import folded
from equivox.core.variants import MOST_TURNS, SENDS, SYSTEM, WORDING, text_problem

_NAME = re.compile(r"[^\s:@,|]+:[^@,|]*[^\s@,|]")
"""A name without what has a meaning beside it: `@` begins a condition, a comma another task, `|` few-shot examples."""
_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*")
LONGEST_WORDS = 40
"""Characters of a title, a label or a phrase on the screen."""


def tasks_in(given: object, where: str) -> list[Task]:
    """Return the tasks in a task or a sequence of tasks; UsageError for other objects and for impossible tasks."""
    tasks = [given] if isinstance(given, Task) else given
    if isinstance(tasks, Sequence) and tasks and all(isinstance(entry, Task) for entry in tasks):
        return [check_task(task, where) for task in tasks]
    raise UsageError(f"{where} gives {given!r:.60}, not tasks; give a Task or a non-empty list of tasks")


def check_task(task: Task, where: str) -> Task:
    """Return `task` if it can be meant; UsageError, which begins with `where`, if not.

    Its types were checked when it was made. Checked here is what no type can say: names, versions, the card, options,
    and what is compared.
    """
    for problem in (*_problems(task), *(found for one in task.attributes for found in _attribute_problems(one))):
        raise UsageError(f"{where}: the task {task.name!r}: {problem}")
    return task


def _problems(task: Task) -> Iterator[str]:
    """Yield what is wrong with the task itself, the first problem first."""
    if not _NAME.fullmatch(task.name):
        yield "`name` is family:task, such as greeting:address, without `@`, `,` and `|`"
    if task.version < 1:
        yield f"`version` counts from 1, got {task.version}"
    if not task.card.strip():
        yield "`card` is empty; say which data it asks about, and what its numbers cannot say"
    if bool(task.group) == bool(task.compares):
        yield "`group` names the compared columns, or `compares` what is compared within a response; give one of them"
    for name in ("group", "strata", "blocks", "items", "metadata"):
        if len(set(getattr(task, name))) < len(getattr(task, name)):
            yield f"`{name}` names a column twice: {', '.join(getattr(task, name))}"
    for name in ("strata", "blocks"):
        if both := sorted(set(task.group) & set(getattr(task, name))):
            yield f"`group` and `{name}` name {both[0]}, which is compared or held equal; leave it in one of them"
    sent = next((one.kind for one in task.media), "text")
    if task.condition not in SENDS:
        known = ", ".join(SENDS)
        yield f"`condition` is {task.condition!r}{nearest(task.condition, SENDS)}; it is what is sent: {known}"
    elif task.condition != sent and task.condition not in {one.kind for one in task.media}:
        yield f"`condition` is {task.condition!r}, and what is sent is {sent}; set one by the other"
    for condition, text in task.interventions.items():
        _, _, name = condition.partition("=")
        if not condition.startswith((SYSTEM, WORDING)):
            yield f"`interventions` has {condition!r}; call it system=NAME or wording=NAME"
        elif problem := text_problem(name, text):
            yield f"`interventions` {condition}{problem}"
        elif condition.startswith(WORDING) and task.prompt.patch is not None:
            yield f"`interventions` {condition}: a prompt whose hidden states are replaced has no other wording"

    yield from _turn_problems(task)
    yield from _word_problems(task)


def _word_problems(task: Task) -> Iterator[str]:
    """Yield what is wrong with the words for the screen."""
    texts = {"title": [task.title], "unit_name": [task.unit_name]}
    texts |= {"group_labels": [*task.group_labels.values()], "says": [*task.says.values()]}
    for name, entries in texts.items():
        for text in entries:
            if len(text) > LONGEST_WORDS or not text.isprintable():
                yield f"`{name}` has {text!r:.60}; the screen shows at most {LONGEST_WORDS} characters of one line"
    if len(set(task.group_labels.values())) < len(task.group_labels):
        yield f"`group_labels` names two groups alike: {', '.join(task.group_labels.values())}; give each its own label"
    outcomes = {attribute.name: attribute for attribute in task.outcomes}
    if task.main_attribute and task.main_attribute not in outcomes:
        near = nearest(task.main_attribute, outcomes)
        yield f"`main_attribute` is {task.main_attribute!r}{near}; the attributes are {', '.join(outcomes)}"
    options = {option for attribute in task.outcomes for option in attribute.options}
    closed = all(attribute.options for attribute in task.outcomes)
    if closed and (unknown := sorted({*task.says} - options - {OTHER})):
        yield f"`says` has {unknown[0]!r}{nearest(unknown[0], options)}; the options are {', '.join(sorted(options))}"


def _turn_problems(task: Task) -> Iterator[str]:
    """Yield what is wrong with what is said after the first answer, and with spoken answers."""
    prompt = task.prompt
    if len(task.turns) >= MOST_TURNS:
        yield f"`turns` has {len(task.turns)}; a dialogue has at most {MOST_TURNS} with the first"
    for number, text in enumerate(task.turns, start=2):
        if problem := text_problem(str(number), text):
            yield f"`turns`, turn {number}{problem}"
    if task.turn_media and len(task.turn_media) != len(task.turns):
        yield f"`turn_media` names {len(task.turn_media)} columns for {len(task.turns)} `turns`; give one for each turn"
    if any(task.turn_media) and not task.media:
        yield "`turn_media` sends clips or images after a first turn without any; send one with the first, too"
    if prompt.patch is not None and (task.turns or prompt.spoken):
        yield "a prompt whose hidden states are replaced has no `turns` and no spoken answer"
    if task.turns and prompt.spoken:
        yield "`turns` go on from a text; leave out `spoken`, or the turns"


def _attribute_problems(attribute: Attribute) -> Iterator[str]:
    """Yield what is wrong with one attribute."""
    if not _ATTRIBUTE.fullmatch(attribute.name):
        yield f"the attribute {attribute.name!r} is called by small letters, digits and _"
    if attribute.name in LOSSES:
        yield f"the attribute {attribute.name!r} is called as what happens to an answer that is lost; name it otherwise"
    if attribute.count < 1:
        yield f"`count` of {attribute.name} is 1 or more, got {attribute.count}"
    options = attribute.options
    if len({folded(option.strip()) for option in options}) < len(options):
        yield f"`options` of {attribute.name} repeat one: {', '.join(options)}"
    if len(options) == 1:
        yield f"`options` of {attribute.name} has one, {options[0]!r}; a choice has two or more, an open attribute none"
    if clash := sorted({OTHER, UNSTATED} & set(options)) if attribute != REFUSAL else []:
        yield f"the option {clash[0]!r} of {attribute.name} is always there; leave it out"
    of: dict[str, str] = {}
    for value, words in attribute.words:
        for word in words:
            if (first := of.setdefault(folded(word), value)) != value:
                yield f"`words` of {attribute.name} give {word!r} to {first!r} and {value!r}; give it to one"


NEEDS: Mapping[Need, tuple[str, str]] = {
    "turns": ("goes on after an answer", "use vllm, transformers, endpoint or a simulated model"),
    "speech": ("is answered by voice", "use endpoint with voice=…, or a simulated model"),
    "hidden states": ("replaces hidden states", "use `equivox run transformers:…`, or leave the task out"),
}
"""What a task needs, in words, and which engines do it."""


def refuse_unable(tasks: Sequence[Task], able: Collection[Need], who: str) -> None:
    """Raise UsageError for a task that needs more than `who` is able to do; one that ignored it would mislead."""
    for task in tasks:
        for need in sorted(task.prompt.needs - set(able)):
            what, instead = NEEDS[need]
            raise UsageError(f"{task.name} {what}, which {who} does not do here; {instead}")
