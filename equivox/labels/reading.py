"""People's labels of a filled-in sheet, beside the annotator's values of the same answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.annotate.merging import lemmas
from equivox.annotate.numeric import number_in, number_text
from equivox.annotate.schema import canonical
from equivox.core.attributes import REFUSAL
from equivox.core.errors import UsageError, nearest
from equivox.core.samples import Row
from equivox.core.task import OTHER, UNSTATED, Attribute
from equivox.core.text import folded
from equivox.dataset_builders.tables import read_columns
from equivox.labels.drawing import Answer, draw, list_cells
from equivox.labels.sheet import COLUMNS

Label = tuple[str, ...]
Rows = list[tuple[str, str, str]]
"""Item, attribute and label of each row of a sheet; the label is empty where nobody filled it in."""


@dataclass(frozen=True, kw_only=True)
class Rating:
    """One attribute of one answer: the annotator's value, and each person's value by name.

    `annotated` is None where the annotator could not read the answer. `response` is the key of the answer, and `weight`
    the number of answers for which it was drawn. Without `people` the row was passed over.
    """

    attribute: Attribute
    group: str
    response: str
    annotated: Label | None
    people: Mapping[str, Label]
    weight: float = 1.0

    @property
    def agreed(self) -> Label | None:
        """The value that most people give; None if they are split."""
        ranked = Counter(self.people.values()).most_common(2)
        if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
            return None
        return ranked[0][0]


def read_sheets(files: Sequence[Path]) -> dict[str, Rows]:
    """Return the rows of each sheet by the name of the person, which is that of the file.

    UsageError for a file that is named twice, one without a column of the sheet, and for a doubled row.
    """
    if doubled := [file for file, n in Counter(file.resolve() for file in files).items() if n > 1]:
        raise UsageError(f"{doubled[0]} is named twice; name one file per person")
    stems = Counter(file.stem for file in files)
    sheets: dict[str, Rows] = {}
    for file in files:
        table = read_columns(file)
        for name in COLUMNS:
            if name not in table:
                raise UsageError(f"labels {file} lack the column {name!r}; keep the columns of the sheet")
        columns = [["" if cell is None else str(cell).strip() for cell in table[name]] for name in COLUMNS]
        rows = [row for row in zip(*columns, strict=True) if any(row)]
        if repeated := [row for row, n in Counter(row[:2] for row in rows).items() if n > 1]:
            raise UsageError(f"{file} has two rows for {repeated[0][1]} of {repeated[0][0]}; remove one")
        sheets[file.stem if stems[file.stem] == 1 else str(file)] = rows
    if not any(label for rows in sheets.values() for *_, label in rows):
        raise UsageError(f"no label is filled in in {', '.join(map(str, files))}; fill in the column `label`")
    return sheets


def compare_labels(run: Path, sheets: Mapping[str, Rows], annotator: str | None = None) -> list[Rating]:
    """Return every attribute of every answer that people labelled or passed over, beside the annotator's value.

    An answer was passed over if it was drawn before the last one with a label of the same attribute: whoever chooses
    which rows to label chooses the agreement, also by deleting the others. UsageError for an item or attribute that
    does not belong to the run, and for a value that a closed choice does not offer.
    """
    cells = list_cells(run, annotator)
    rank = {candidate.item: number for cell in cells for number, candidate in enumerate(cell)}
    items = {item for rows in sheets.values() for item, *_ in rows}
    if unknown := sorted(items - rank.keys()):
        raise UsageError(f"{unknown[0]!r} is no answer of {run}: the sheet was drawn from another run or other answers")
    answers = {answer.item: answer for answer in draw(cells, 1 + max(rank[item] for item in items))}
    labels = _read_labels(sheets, answers)
    last = {name: item for item, name in sorted(labels)}
    ratings = []
    for answer in answers.values():
        for attribute in answer.task.attributes:
            if answer.item > last.get(attribute.name, ""):
                continue
            people = labels.get((answer.item, attribute.name), {})
            if attribute.role != "refusal":
                # Whoever says that an answer declines leaves what else it may state empty: it states nothing.
                refusals = labels.get((answer.item, REFUSAL.name), {})
                people = {person: (UNSTATED,) for person, label in refusals.items() if label == ("yes",)} | people
            ratings.append(
                Rating(
                    attribute=attribute,
                    group=answer.row.group,
                    response=answer.row.key,
                    annotated=_annotated(answer.row, attribute),
                    people=people,
                    weight=answer.weight,
                )
            )
    return ratings


def _read_labels(sheets: Mapping[str, Rows], answers: Mapping[str, Answer]) -> dict[tuple[str, str], dict[str, Label]]:
    labels: dict[tuple[str, str], dict[str, Label]] = {}
    for person, rows in sheets.items():
        for item, name, text in rows:
            attributes = {attribute.name: attribute for attribute in answers[item].task.attributes}
            where = f"{person}, {item}"
            if name not in attributes:
                raise UsageError(f"{where}: there is no attribute {name!r}{nearest(name, attributes)}")
            if text:
                labels.setdefault((item, name), {})[person] = label_of(text, attributes[name], where)
    return labels


def _annotated(row: Row, attribute: Attribute) -> Label | None:
    if row.status not in {"parsed", "refused"}:
        return None
    values = row.values.get(attribute.name, ())
    if not values:
        return (UNSTATED,)
    return tuple(sorted(values)) if attribute.options or attribute.number else comparable(values)


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
    stated = {plain for value in values if (plain := canonical(value)) and plain != UNSTATED}
    return tuple(sorted(set(map(lemmas, stated)))) or (UNSTATED,)
