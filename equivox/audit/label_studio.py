"""Labels in Label Studio's format: its tasks and its labelling page out, its JSON export in.

Formats: https://labelstud.io/guide/tasks (tasks and annotations) and https://labelstud.io/tags (the page).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from equivox.audit.drawing import Drawn, choices_of
from equivox.core.errors import RequestError
from equivox.core.task import Attribute


def tasks_of(drawn: Sequence[Drawn], media: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what was drawn as Label Studio's tasks; `media` holds the data URI of each item with a recording."""
    return [
        {"data": {"item": one.item, "prompt": one.prompt, "response": one.text, "media": media.get(one.item, "")}}
        for one in drawn
    ]


def labelling_page(attributes: Sequence[Attribute], kind: str) -> str:
    """Return the page, in Label Studio's XML, that shows an item and asks about it; `kind` is audio, image or text."""
    view = ElementTree.Element("View")
    if kind in {"audio", "image"}:
        ElementTree.SubElement(view, kind.capitalize(), name="media", value="$media")
    ElementTree.SubElement(view, "Collapse").append(panel := ElementTree.Element("Panel", value="What was asked"))
    ElementTree.SubElement(panel, "Text", name="prompt", value="$prompt")
    ElementTree.SubElement(view, "Text", name="response", value="$response")
    for one in attributes:
        ElementTree.SubElement(view, "Header", value=one.asks)
        if options := choices_of(one):
            several = "multiple" if one.is_list else "single"
            choices = ElementTree.SubElement(view, "Choices", name=one.name, toName="response", choice=several)
            for option in options:
                ElementTree.SubElement(choices, "Choice", value=option)
        else:
            ElementTree.SubElement(view, "TextArea", name=one.name, toName="response", editable="true")
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def exported_labels(file: Path) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield where, person, item, attribute and label of each answer in a JSON export of Label Studio.

    A person is called after the number of the account, so that no address is passed on. Annotations that were cancelled
    are left out. RequestError if the file is no such export.
    """
    try:
        found = json.loads(file.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise RequestError(f"labels {file} cannot be read ({error}); give Label Studio's export as JSON") from None
    try:
        people: dict[str, str] = {}
        for number, task in enumerate(found, 1):
            item = task["data"]["item"]
            for annotation in task["annotations"]:
                if annotation.get("was_cancelled"):
                    continue
                person = _person(annotation.get("completed_by"), people)
                for result in annotation["result"]:
                    value = result["value"]
                    given = value.get("choices", value.get("text"))
                    values = [given] if isinstance(given, str) else list(given or ())
                    label = "; ".join(part.strip() for text in values for part in str(text).split(";") if part.strip())
                    if label:
                        yield f"{file}, task {number}", person, item, result["from_name"], label
    except (KeyError, TypeError, AttributeError) as error:
        raise RequestError(
            f"labels {file} are not Label Studio's tasks with annotations ({type(error).__name__}: {error}); choose "
            "JSON, not JSON-MIN, when exporting"
        ) from None


def _person(account: Any, people: dict[str, str]) -> str:
    if isinstance(account, dict):
        account = account.get("id", account.get("email", ""))
    known = str(account)
    if known not in people:
        people[known] = known if known.isdecimal() else str(len(people) + 1)
    return f"label-studio-{people[known]}"
