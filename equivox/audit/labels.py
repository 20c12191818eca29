"""People's labels of answers, and what the annotator found in the same answers."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from equivox.annotate.merging import lemmas
from equivox.annotate.numeric import number_in, number_text
from equivox.annotate.schema import canonical
from equivox.audit.drawing import questions_at
from equivox.core.attributes import REFUSAL, Number
from equivox.core.errors import UsageError, nearest
from equivox.core.files import CHECKSUM
from equivox.core.samples import Row
from equivox.core.segments import SegmentAnnotation
from equivox.core.task import OTHER, UNSTATED, Attribute
from equivox.core.text import folded
from equivox.dataset_builders.tables import read_columns
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.scoring import sample_rows

KEY_FILE = "key.json"
"""The file that maps the rows of a blind sheet to responses."""
Key = Mapping[str, Mapping[str, Any]]
"""The contents of this file, by item."""

ADJUDICATED = "adjudicated"
"""The name of the file, without its ending, with the decisions on what people say differently."""

Label = tuple[str, ...]
Given = TypeVar("Given")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One attribute of one response: the annotator's value, and each person's value by name.

    `response` is the response's key. `weight` is the number of responses for which it was drawn. `decided` is the value
    that somebody settled on after people differed.
    """

    item: str
    run: Path
    attribute: Attribute
    group: str
    response: str
    given: Label | None
    people: Mapping[str, Label]
    weight: float = 1.0
    decided: Label | None = None

    @property
    def is_labelled(self) -> bool:
        """Whether anybody gave a label; a row of the sheet that people passed over has none."""
        return bool(self.people) or self.decided is not None

    @property
    def agreed(self) -> Label | None:
        """The value that was decided, or else the one that most people give; None if they are split."""
        if self.decided is not None:
            return self.decided
        ranked = Counter(self.people.values()).most_common(2)
        if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
            return None
        return ranked[0][0] if ranked else None


def read_key(folder: Path) -> Key:
    """Return the key of the sheet in `folder`, with the runs' absolute paths; UsageError if it cannot be read."""
    try:
        found = json.loads((folder / KEY_FILE).read_text("utf-8"))
        found.pop(CHECKSUM, None)  # of a key that is kept with a run
        return {item: {**entry, "run": str((folder / entry["run"]).resolve())} for item, entry in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{folder} has no readable {KEY_FILE}; name the folder that `label draw` wrote") from None


def label_files(folder: Path) -> list[Path]:
    """Return the files of labels in `folder`: those of every person, and the adjudicated ones last."""
    sheets = [path for path in sorted(folder.glob("*")) if path.suffix.lower() in (".csv", ".xlsx")]
    people = [path for path in sheets if path.stem.startswith("labels-")]
    return [*people, *(path for path in sheets if path.stem == ADJUDICATED)]


def units_of(folder: Path, key: Key, files: Sequence[Path], annotator: str | None) -> list[Unit]:
    """Return every attribute of every item that people labelled or passed over, beside what the annotator found.

    Passed over is a row of the sheet, whose order says nothing, before the last one with a label of the same attribute:
    whoever chooses which rows to label chooses the agreement. UsageError, with the line, for an item or attribute
    that is not on the sheet, for a value that a closed choice does not offer, for a second label of one person, and for
    a decision on what nobody labelled.
    """
    asked, people = people_labels(folder, key, files, label_of)
    answers = _answers(key, annotator)
    last = {name: number for number, (item, name) in enumerate(asked) if (item, name) in people}
    units = []
    for number, ((item, name), attribute) in enumerate(asked.items()):
        if number > last.get(name, -1):
            continue
        entry, given = key[item], people.get((item, name), {})
        if attribute.role != "refusal" and "stage" not in entry:
            # Whoever says that an answer declines leaves what else it may state empty: it states nothing.
            says = people.get((item, REFUSAL.name), {})
            declines = {person for person, label in says.items() if label == ("yes",)} - {ADJUDICATED}
            given = dict.fromkeys(declines, (UNSTATED,)) | given
        if given.keys() == {ADJUDICATED}:
            raise UsageError(
                f"{name} of {item} is decided, and nobody has labelled it; {ADJUDICATED}.csv settles what people say: "
                "give a file of labels its own name"
            )
        units.append(
            Unit(
                item=item,
                run=Path(entry["run"]),
                attribute=attribute,
                group=entry["group"],
                response=entry["response"],
                weight=float(entry.get("weight", 1.0)),
                given=_annotated(answers[item], attribute, entry),
                decided=given.pop(ADJUDICATED, None),
                people=given,
            )
        )
    return units


def people_labels(
    folder: Path, key: Key, files: Sequence[Path], read: Callable[[str, Attribute, str], Given]
) -> tuple[Mapping[tuple[str, str], Attribute], dict[tuple[str, str], dict[str, Given]]]:
    """Return what is asked of each item, and each person's label of it, as `read` takes it, where there is one."""
    asked = asked_of(key)
    people: dict[tuple[str, str], dict[str, Given]] = {}
    for person, labels in by_person(files).items():
        for where, item, name, text in labels:
            if item not in key:
                raise UsageError(f"{where}: nothing is called {item!r} on the sheet of {folder}")
            if (item, name) not in asked:
                known = [other for of_item, other in asked if of_item == item]
                raise UsageError(f"{where}: {item} has no attribute {name!r}{nearest(name, known)}")
            given = people.setdefault((item, name), {})
            if person in given:
                raise UsageError(f"{where}: {person} has labelled {name} of {item} already; remove one label")
            given[person] = read(text, asked[item, name], where)
    if not people:
        raise UsageError(f"no label is filled in in {', '.join(map(str, files))}; fill in the column `label`")
    return asked, people


def asked_of(key: Key) -> dict[tuple[str, str], Attribute]:
    """Return what people are asked about each item: the attributes of its stage, else those of its task."""
    tasks = {run: {task.name: task for task in read_tasks(run)} for run in {Path(e["run"]) for e in key.values()}}
    asked: dict[tuple[str, str], Attribute] = {}
    for item, entry in key.items():
        declared = entry.get("attributes")
        own = tasks[Path(entry["run"])][entry["task"]].attributes if declared is None else map(attribute_of, declared)
        asked |= {(item, attribute.name): attribute for attribute in own}
    return asked


def attribute_of(fields: Mapping[str, Any]) -> Attribute:
    """Return the attribute that a key holds as plain values."""
    number = Number(**fields["number"]) if fields.get("number") else None
    return Attribute(**{**fields, "number": number, "options": tuple(fields["options"]), "words": ()})


def by_person(files: Sequence[Path]) -> dict[str, list[tuple[str, str, str, str]]]:
    """Return each person's labels by name: where it stands, the item, the attribute and the label.

    A table holds the labels of one person, who is called after it; equal file names also get their folder.
    UsageError for two tables of one person in one folder.
    """
    stems = Counter(file.stem for file in files)
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    for file in files:
        name = file.stem.removeprefix("labels-") if stems[file.stem] == 1 else f"{file.parent.name}/{file.stem}"
        if name in found:
            raise UsageError(f"{file} is the second file of {name}; keep the one that is meant, or name the files")
        found[name] = list(_filled_in(file))
    return found


def csv_of(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV, the first with the names of the columns."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def _filled_in(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield where it stands, item, attribute and label of each row of a sheet that has a label."""
    sheet = read_columns(file)
    for name in (names := ("item", "attribute", "label")):
        if name not in sheet:
            raise UsageError(f"labels {file} lack the column {name!r}; keep the columns of the sheet")
    for number, cells in enumerate(zip(*(sheet[name] for name in names), strict=True), start=1):
        item, attribute, label = ("" if cell is None else str(cell).strip() for cell in cells)
        if label:
            yield f"{file}, row {number}", item, attribute, label


def label_of(text: str, attribute: Attribute, where: str) -> Label:
    """Return a person's label as a sorted set of values, for comparison; a number as annotations have it."""
    given = [part.strip() for part in text.split(";")] if attribute.is_list else [text]
    if attribute.number is not None:
        if text.casefold() == UNSTATED:
            return (UNSTATED,)
        stated = number_in(text, attribute.number)
        if stated is None:
            raise UsageError(f"{where}: {attribute.name} is {attribute.number.described} or {UNSTATED}, got {text!r}")
        return (number_text(stated[0]),)
    if not attribute.options:
        return comparable(given)
    offered = {folded(option): option for option in (*attribute.options, OTHER, UNSTATED)}
    for value in given:
        if folded(value) not in offered:
            raise UsageError(
                f"{where}: {attribute.name} is one of {', '.join(offered.values())}, got {value!r}"
                f"{nearest(value, offered.values())}"
            )
    return tuple(sorted({offered[folded(value)] for value in given}))


def comparable(values: Iterable[str]) -> Label:
    """Return open values as a sorted set of lemmas, so that wordings can be compared; `unstated` if there is none."""
    said = {plain for value in values if (plain := canonical(value)) and plain != UNSTATED}
    return tuple(sorted(set(map(lemmas, said)))) or (UNSTATED,)


def _answers(key: Key, annotator: str | None) -> dict[str, Row | SegmentAnnotation | None]:
    """Return what the annotator found for each item: the whole response, or a segment of it; None if there is none."""
    found: dict[str, Row | SegmentAnnotation | None] = {}
    for run in sorted({Path(entry["run"]) for entry in key.values()}):
        own = {item: entry for item, entry in key.items() if Path(entry["run"]) == run}
        name = annotator or str(read_manifest(run)["command"]["annotator"])
        named = {entry["task"] for entry in own.values() if entry["response"]}
        tasks = read_tasks(run)
        read = sample_rows(run, [task for task in tasks if task.name in named], name) if named else {}
        rows = {(task, row.key): row for task, of_task in read.items() for row in of_task}
        questions: dict[str, SegmentAnnotation] = {}
        if any(not entry["response"] for entry in own.values()):
            (stage,) = {entry["stage"] for entry in own.values()}
            questions = {segment.digest: answer for _, segment, answer in questions_at(run, tasks, name, stage)}
        for item, entry in own.items():
            row = rows.get((entry["task"], entry["response"]))
            if not entry["response"]:
                found[item] = questions.get(entry["question"])
            elif row is None:
                raise UsageError(f"{run} no longer holds response {entry['response'][:12]}; restore the run")
            else:
                found[item] = row.segments.get(entry["segment"]) if "stage" in entry else row
    return found


def _annotated(answer: Row | SegmentAnnotation | None, attribute: Attribute, entry: Mapping[str, Any]) -> Label | None:
    """Return the annotator's values of an attribute as a label; None if it could not read the answer."""
    readable = {"parsed"} if "stage" in entry else {"parsed", "refused"}
    if answer is None or answer.status not in readable:
        return None
    values = answer.values.get(attribute.name, ())
    if not values:
        return (UNSTATED,)
    return tuple(sorted(values)) if attribute.options or attribute.number else comparable(values)
