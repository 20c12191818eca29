"""A label sheet: answers as a CSV file that shows neither group nor annotation."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.core.files import write_text
from equivox.core.lazy import pa, pc
from equivox.core.plain import split_by
from equivox.core.task import CROSSED, OTHER, UNSTATED, Attribute, placeholders_of
from equivox.core.text import inert
from equivox.labels.drawing import Answer
from equivox.run.plan import read_plan

COLUMNS = ("item", "attribute", "label")
"""The columns that are read again."""


def write_sheet(run: Path, answers: Sequence[Answer], path: Path) -> None:
    """Write the sheet of a run's answers; UsageError if `path` exists, so that no labels are lost."""
    if path.exists():
        raise UsageError(f"`output` {path} exists; name a new file, so that no labels are lost")
    # Spreadsheets recognize UTF-8 by this mark.
    write_text(path, f"\ufeff{format_sheet(answers, read_plan(run))}")


def format_sheet(answers: Sequence[Answer], plan: pa.Table) -> str:
    """Return the answers as CSV: a row per item and attribute, with an empty column for the label."""
    rows = [[*COLUMNS, "what to say", "choices", "response", "prompt"]]
    for answer in answers:
        masks = list_masks(answer, plan)
        shown = [inert(mask(text, masks)) for text in (answer.text, answer.prompt)]
        for attribute in answer.task.attributes:
            most = str(attribute.count) if attribute.at_least is None else f"up to {attribute.count}"
            many = f" ({most} values, separated by ;)" if attribute.is_list else ""
            stated = "a few words" if attribute.number is None else attribute.number.described
            choices = " / ".join(list_choices(attribute)) or f"{stated}, or unstated"
            rows.append([answer.item, attribute.name, "", attribute.asks + many, choices, *shown])
    return format_csv(rows)


def format_csv(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV, the first with the names of the columns."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def list_choices(attribute: Attribute) -> tuple[str, ...]:
    """Return the values that people choose from; none where they write."""
    if attribute.role == "refusal" or not attribute.options:
        return attribute.options
    return (*attribute.options, OTHER, UNSTATED)


def list_masks(answer: Answer, plan: pa.Table) -> dict[str, str]:
    """Return the words that show the group of an answer, each with its mask: `[group]`, or `[name]` of a swapped name.

    They are the groups, the words of swaps, and what the versions of a swapped text do not share. Choices stay.
    """
    groups = plan["group"].unique().drop_null().to_pylist()
    masks: dict[str, str] = {}
    for swaps in answer.task.data.swap.values():
        rows = plan.filter(pc.equal(plan["cluster"], answer.row.cluster)).to_pylist()
        unit = split_by(rows, lambda row: row["group"])
        for name, by_group in swaps.items():
            groups += by_group
            literal = [[word for word in words if not placeholders_of(word)] for words in by_group.values()]
            versions = [[row.get(f"metadata.{name}") or "" for row in of_group] for of_group in unit.values()]
            words = {*chain(*literal), *_list_unshared(literal), *_list_unshared(versions)}
            masks |= dict.fromkeys(words, f"[{name}]")
    masks |= {word: "[group]" for group in groups for word in (group, *group.split(CROSSED))}
    offered = " ".join(choice for attribute in answer.task.attributes for choice in list_choices(attribute))
    return {word: shown for word, shown in masks.items() if word and mask(offered, {word: ""}) == offered}


def _list_unshared(versions: Sequence[Iterable[str]]) -> set[str]:
    """Return the words that some of several versions have, and not all of them."""
    words = [set(re.findall(r"\w+", " ".join(texts).casefold())) for texts in versions]
    return set.union(*words) - set.intersection(*words) if words else set()


def mask(text: str, masks: Mapping[str, str]) -> str:
    """Return a text with masks instead of words, in whatever case, and never inside of other words.

    >>> mask("Anna, Annabel and _ANNA_", {"Anna": "[name]"})
    '[name], Annabel and _[name]_'
    """
    if not masks:
        return text
    mask_of = {word.casefold(): shown for word, shown in masks.items()}
    words, letter = "|".join(map(re.escape, sorted(masks, key=len, reverse=True))), r"[^\W_]"
    pattern = re.compile(rf"(?<!{letter})(?:{words})(?!{letter})", re.IGNORECASE)
    return pattern.sub(lambda match: mask_of.get(match[0].casefold(), "[group]"), text)
