"""Tasks on a custom corpus: a table of clips, images or texts, and a short YAML file (`equivox tasks new TABLE`).

name: my_voices              # the tasks are called my_voices_gender:story, …
table: clips.csv             # CSV, TSV, JSON lines, parquet or Excel: path, text, speaker and any demographic column
media: audio                 # optional: audio, image or text; without it, text if the table has no path
group: gender                # the compared column; several are crossed
swap:                        # optional: each row for every group, with another word for {name}; of files, the columns
                             # with them: path: {female: ["{her_clip}"], male: ["{his_clip}"]}
  name: {female: [Anna, Olga], male: [Jonas, Emil]}     # or the name of a table with a column for each group
folder: clips                # optional: where the paths start; the table's folder by default
columns: {text: transcript}  # optional: our name → the table's, if they differ
where: {split: test}         # optional: only rows with these values
values: {gender: [female, male]}    # optional: all values of a column; any other is refused
missing: [NA, "n/a"]         # optional: texts that mean a missing value, as an empty cell does
cluster: speaker             # optional: the unit that carries the group, or is in every group; a row, for texts
strata: text                 # optional: the columns held equal between groups
blocks: gender               # optional: what describes a cluster and is held where clusters are permuted
items: text                  # optional: what is asked about: a second interval for new items, and a test within them
prompts: [story, advisory]   # optional: prompts of VIBE; all five by default, none if there are questions
questions:                   # optional: custom prompts
  - name: referral
    text: Which doctor should this person see first?
    attributes:              # annotated in the answers: a closed choice has options, an open attribute has none
      - {name: urgency, asks: how soon the person is to be seen, options: [today, this week, at leisure]}
      - {name: specialty, asks: the kind of doctor, words: {cardiologist: [heart specialist], dentist: []}}
                             # or one number: {name: salary, asks: the yearly salary, number: {unit: EUR, low: 0}}
    instructions: Count a general practitioner as "family doctor".    # optional: more for an annotator
    examples:                # optional: correct annotations
      - {text: A dentist, and today., values: {urgency: today, specialty: dentist}}
    sampling: {temperature: 0.7, repeats: 3}                          # optional: greedy, once, by default
    wordings: {plain: Who should see this person first?}              # optional: other words: conditions wording=…
    turns: [Are you sure?, Why?]                                      # optional: said after each answer: turn=2, turn=3
                                               # (a turn with a clip of its own: {text: Are you sure?, path: COLUMN})
    spoken: true                                                      # optional: the model answers with its voice
system: [fair.txt]           # optional: files with a system prompt each, or {fair: its text}: conditions
card: Who recorded this, under which licence, and what it cannot say.

An open attribute needs `words` only for the annotator `rules` and for simulated models. A question about a number asks
for nothing else, and its metric is `numbers`; `number` takes `unit`, `low`, `high` and `pattern` or `measure`
(`equivox.core.attributes.Number`): words, sentences or characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from equivox.configs import read_config_file
from equivox.core.attributes import Length, Number
from equivox.core.errors import UsageError, nearest
from equivox.core.fields import read_fields
from equivox.core.metric import Metric
from equivox.core.task import (
    AUDIO,
    IMAGE,
    OTHER,
    REFUSAL,
    UNSTATED,
    AnnotationScheme,
    Attribute,
    DataSource,
    Prompt,
    Sampling,
    Task,
    WorkedExample,
    in_single_braces,
    placeholders_of,
)
from equivox.core.task_checks import check_task
from equivox.core.variants import System, read_system_prompts, text_problem, with_system_prompts, wordings_of
from equivox.dataset_builders import builders
from equivox.dataset_builders.opening import openers
from equivox.dataset_builders.own_tables import ITEM, PATH
from equivox.dataset_builders.tables import read_column_names, read_columns
from equivox.metrics.ntvd import METRIC as WORDS
from equivox.metrics.numbers import METRIC as NUMBERS
from equivox.tasks.units import unit_of
from equivox.tasks.vibe import PROMPTS, vibe_task


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]

_Asked = Annotated[str, Field(min_length=1), AfterValidator(in_single_braces)]

_Swaps = Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]

_IDENTIFIER = r"^[a-z][a-z0-9_]{0,59}$"


class _Form(BaseModel):
    """A part of a task file; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _NumberField(_Form):
    """The form of a number that a custom question asks for."""

    unit: str = ""
    low: float | None = None
    high: float | None = None
    pattern: str = ""
    measure: Length | None = None


class _AttributeField(_Form):
    """One attribute of a custom question."""

    name: str = Field(pattern=_IDENTIFIER)
    asks: str = Field(min_length=1)
    options: list[str] = []
    count: int = Field(default=1, ge=1)
    role: Literal["outcome", "echo"] = "outcome"
    words: dict[str, list[str]] = {}
    number: _NumberField | None = None


class _ExampleField(_Form):
    """One worked example of a custom question."""

    text: str = Field(min_length=1)
    values: dict[str, str | int | float | list[str]]


class _TurnField(_Form):
    """What is said in a further turn, with a clip or an image of its own."""

    text: _Asked
    path: str = Field(pattern=_IDENTIFIER)


class _QuestionField(_Form):
    """One custom prompt, and the annotation of its answers."""

    name: str = Field(pattern=_IDENTIFIER)
    text: _Asked
    attributes: list[_AttributeField] = Field(min_length=1)
    version: int = 1
    source: str = ""
    instructions: str = ""
    examples: list[_ExampleField] = []
    sampling: dict[str, Any] = {}
    wordings: dict[str, str] | list[str] = {}
    turns: list[_Asked | _TurnField] = []
    spoken: bool = False
    title: str = ""
    main_attribute: str = ""
    says: dict[str, str] = {}


class _TaskFile(_Form):
    """The fields of a task file; unknown fields are refused."""

    name: str = Field(pattern=_IDENTIFIER)
    table: Path
    group: Names = Field(min_length=1)
    folder: Path | None = None
    columns: dict[str, str] = {}
    where: dict[str, str | list[str]] = {}
    values: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    missing: Names = ()
    media: Literal["audio", "image", "text"] | None = None
    swap: dict[str, dict[str, Annotated[list[str], Field(min_length=1)]] | str] = {}
    cluster: str | None = None
    strata: Names = ()
    blocks: Names = ()
    items: Names = ()
    prompts: Names = ()
    questions: tuple[_QuestionField, ...] = ()
    system: System = ()
    card: str = ""
    unit_name: str = ""
    group_labels: dict[str, str] = {}


def load_task_file(path: Path) -> list[Task]:
    """Return the tasks that the YAML file at `path` declares.

    Raises UsageError, naming the file and the field, for anything missing, unknown or malformed.
    """
    if _names_genres(path):
        from equivox.tasks.genres_file import load_genres_file

        return load_genres_file(path)
    declared = read_config_file(_TaskFile, str(path), "tasks")
    return [
        with_system_prompts(task, read_system_prompts(declared.system, path.parent)) for task in _tasks(declared, path)
    ]


def _wordings(question: _QuestionField, where: str) -> dict[str, str]:
    """Return the other wordings of a question as interventions; UsageError for one that fills in something else."""
    found = {name: in_single_braces(text) for name, text in wordings_of(question.wordings).items()}
    for condition, text in found.items():
        if problem := text_problem(condition.partition("=")[2], text):
            raise UsageError(f"{where}: `wordings` {condition}{problem}")
        needed = set(placeholders_of(question.text))
        if set(placeholders_of(text)) != needed:
            wanted = ", ".join(f"{{{name}}}" for name in sorted(needed)) or "none"
            raise UsageError(f"{where}: {condition} fills in other columns than `text`; it needs: {wanted}")
    return found


def _names_genres(path: Path) -> bool:
    """Return whether a file declares tasks of GENRES; False for an unreadable file, which is refused later."""
    try:
        lines = path.read_text("utf-8").splitlines()
        return any(line.split("#")[0].split() == ["benchmark:", "genres"] for line in lines)
    except (OSError, ValueError):
        return False


def _tasks(declared: _TaskFile, path: Path) -> list[Task]:
    if declared.name in {*builders(), *openers()}:
        raise UsageError(f"task file {path}: `name` {declared.name!r} is that of a corpus of equivox; choose another")
    for prompt in declared.prompts:
        if prompt not in PROMPTS:
            raise UsageError(f"task file {path}: unknown prompt {prompt!r}; known: {', '.join(PROMPTS)}")
    kind = declared.media or _kind(path.parent / declared.table, declared)
    if kind != "audio" and (declared.prompts or not declared.questions):
        raise UsageError(
            f"task file {path}: the prompts of VIBE ask about a recording, and {declared.table} has {kind}; give "
            "`questions` of your own"
        )
    swap = _swaps(declared, path)
    if swap:
        # Each row is in every group; what else the file names as the unit would be swapped with it.
        declared = declared.model_copy(update={"cluster": ITEM, "card": _with_swaps(declared, path, swap)})
    placeholders = [name for swaps in swap.values() for name in swaps]
    files = _swapped_files(swap, f"task file {path}: {declared.table}") if kind != "text" else ()
    data = DataSource(
        corpus=declared.name,
        table=path.parent / declared.table,
        kind=kind,
        swap=swap,
        in_prompts=tuple(
            name for name in placeholders if all(f"{{{name}}}" in question.text for question in declared.questions)
        ),
        folder=None if declared.folder is None else path.parent / declared.folder,
        columns={**declared.columns, **({PATH: declared.columns.get(files[0], files[0])} if files else {})},
        where=declared.where,
        values=declared.values,
        missing=declared.missing,
        clips=tuple(dict.fromkeys([*files, *(name for one in declared.questions for name in _clips(one) if name)])),
    )
    unit = unit_of(data, declared.cluster, declared.group, f"task file {path}")
    # A column may be called as no task can be.
    family = re.sub(r"[\s:/\\,@|]+", "_", f"{declared.name}_{'_'.join(declared.group)}")
    card = declared.card or f"Corpus declared in {path.name}, with the prompts of VIBE (arXiv 2604.17248)."
    shared = ("group", "strata", "blocks", "items", "unit_name", "group_labels")
    design = {name: getattr(declared, name) for name in shared} | {"cluster": unit}
    tasks = [
        vibe_task(family, prompt, data=data, card=card, **design)
        for prompt in declared.prompts or (() if declared.questions else PROMPTS)
    ]
    for question in declared.questions:
        task = check_task(_question_task(declared, question, family, data, design, path), f"task file {path}")
        if task.name in {known.name for known in tasks}:
            raise UsageError(f"task file {path}: {question.name!r} appears twice; rename one")
        tasks.append(task)
    return tasks


def _kind(table: Path, declared: _TaskFile) -> Literal["audio", "text"]:
    """Return what a table lists: recordings if it has a path, texts if not; a table that is not there lists nothing."""
    if "path" in declared.columns or not (table.is_file() or table.is_dir()):
        return "audio"
    return "audio" if "path" in read_column_names(table) else "text"


def _swaps(declared: _TaskFile, path: Path) -> _Swaps:
    """Return the swaps by the column that they compare: those with the same groups belong together.

    UsageError unless there are as many kinds of groups as `group` names, and at least two groups of each.
    """
    by_labels: dict[tuple[str, ...], dict[str, dict[str, tuple[str, ...]]]] = {}
    for name, given in declared.swap.items():
        listed = given if isinstance(given, dict) else read_columns(path.parent / given)
        words = {
            group: tuple(in_single_braces(str(word)) for word in own if word is not None)
            for group, own in listed.items()
        }
        if len(words) < 2:
            raise UsageError(f"task file {path}: `swap` of {name} has one group, {', '.join(words)}; give two or more")
        by_labels.setdefault(tuple(words), {})[name] = words
    if by_labels and len(by_labels) != len(declared.group):
        found = "; ".join(", ".join(labels) for labels in by_labels)
        raise UsageError(
            f"task file {path}: `swap` has {len(by_labels)} kinds of groups ({found}), and `group` names "
            f"{', '.join(declared.group)}; name one column for each, in this order"
        )
    return dict(zip(declared.group, by_labels.values(), strict=True)) if by_labels else {}


def _swapped_files(swap: _Swaps, where: str) -> tuple[str, ...]:
    """Return the columns with the files of the groups; UsageError if something else than files is swapped."""
    words = [(name, word) for swaps in swap.values() for name in swaps for own in swaps[name].values() for word in own]
    files = [word[1:-1] for name, word in words if name == PATH and placeholders_of(word) == (word[1:-1],)]
    if len(files) < len(words):
        how = "give each file a row of its own, with its group, and name what is alike in all of them as `cluster`"
        raise UsageError(f"{where} has files; swap `path` by columns of them ('{{COLUMN}}'), or {how}")
    return tuple(files)


def _with_swaps(declared: _TaskFile, path: Path, swap: _Swaps) -> str:
    """Return the card with the swapped words, which determine what is asked."""
    lines = [declared.card.strip() or f"Texts and questions declared in {path.name}.", ""]
    for group, swaps in swap.items():
        for name, words in swaps.items():
            lines += [f"Swapped:    {{{name}}} by {group}: {label}: {', '.join(own)}" for label, own in words.items()]
    return "\n".join(lines)


def _question_task(
    declared: _TaskFile, question: _QuestionField, family: str, data: DataSource, design: Mapping[str, Any], path: Path
) -> Task:
    where = f"task file {path}: question {question.name}"
    attributes = tuple(_attribute(field, where) for field in question.attributes)
    if REFUSAL.name in {attribute.name for attribute in attributes}:
        raise UsageError(f"{where}: `refusal` is annotated in every response; leave it out of `attributes`")
    examples = tuple(_example(field, attributes, where) for field in question.examples)
    return Task(
        name=f"{family}:{question.name}",
        version=question.version,
        card=declared.card or f"Corpus and question declared in {path.name}.",
        data=data,
        prompt=Prompt(
            name=f"{declared.name}/{question.name}",
            version=question.version,
            text=question.text,
            source=question.source or path.name,
            spoken=question.spoken,
        ),
        turns=tuple(turn if isinstance(turn, str) else turn.text for turn in question.turns),
        turn_media=_clips(question),
        media=() if data.kind == "text" else (IMAGE,) if data.kind == "image" else (AUDIO,),
        condition=data.kind,
        metadata=tuple(name for swaps in data.swap.values() for name in swaps if data.kind == "text"),
        annotation=AnnotationScheme(attributes=attributes, instructions=question.instructions, examples=examples),
        sampling=read_fields(Sampling, question.sampling, what=f"{where}: sampling"),
        metric=_metric(attributes, where),
        interventions=_wordings(question, where),
        title=question.title,
        main_attribute=question.main_attribute,
        says=question.says,
        **design,
    )


def _clips(question: _QuestionField) -> tuple[str, ...]:
    """Return the column of the clip or image of each further turn, empty for none; () if no turn has one."""
    columns = tuple("" if isinstance(turn, str) else turn.path for turn in question.turns)
    return columns if any(columns) else ()


def _metric(attributes: tuple[Attribute, ...], where: str) -> Metric:
    """Return the metric of a question: `numbers` if it asks for a number, which it then asks for alone."""
    numbers = [attribute.name for attribute in attributes if attribute.number is not None]
    others = [attribute.name for attribute in attributes if attribute.name not in numbers[:1]]
    if numbers and others:
        raise UsageError(
            f"{where}: {numbers[0]} is a number and stands beside {others[0]}; a number is scored in its own unit, so "
            "give it a question of its own"
        )
    return NUMBERS if numbers else WORDS


def _attribute(field: _AttributeField, where: str) -> Attribute:
    if field.options and field.words and set(field.words) != set(field.options):
        raise UsageError(f"{where}: `words` of {field.name} must be given for its options and no others")
    try:
        return Attribute(
            name=field.name,
            asks=field.asks,
            options=tuple(field.options),
            count=field.count,
            role=field.role,
            words=tuple((value, (value, *words)) for value, words in field.words.items()),
            number=None if field.number is None else Number(**field.number.model_dump()),
        )
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _example(field: _ExampleField, attributes: tuple[Attribute, ...], where: str) -> WorkedExample:
    """Return a worked example with values that an annotator can give; UsageError for others."""
    known = {attribute.name: attribute for attribute in (*attributes, REFUSAL)}
    for name, given in field.values.items():
        if name not in known:
            raise UsageError(
                f"{where}: an example has a value for {name!r}{nearest(name, known)}, which is not an attribute"
            )
        options, is_number = known[name].options, known[name].number is not None
        if is_number != isinstance(given, int | float) and given != UNSTATED:
            wanted = "a number" if is_number else "words"
            raise UsageError(f"{where}: an example says {given!r} for {name}, which is {wanted}")
        for value in given if isinstance(given, list) else [given]:
            if options and value not in {*options, OTHER, UNSTATED}:
                raise UsageError(f"{where}: an example says {value!r} for {name}; it offers {', '.join(options)}")
    values = {name: str(given) if isinstance(given, int | float) else given for name, given in field.values.items()}
    return WorkedExample.of(field.text, values)
