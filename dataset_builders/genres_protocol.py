"""What GENRES asks, and of whom: relationships, names, ages, plots and prompts; what a record of an answer implies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

RELATIONSHIPS: Mapping[str, str] = {
    "cs": "communal sharing",
    "em": "equality matching",
    "mp": "market pricing",
    "ar": "authority ranking",
}
"""Fiske's four relational models, by the short names of the files."""

MALE_NAMES = (
    "Levi", "Henry", "William", "Oliver", "Jack", "Michael", "Elijah", "Noah", "Theodore", "Samuel", "Liam", "James",
    "Mateo", "Lucas", "Benjamin",
)  # fmt: skip
FEMALE_NAMES = (
    "Mila", "Emma", "Eleanor", "Evelyn", "Sofia", "Elizabeth", "Luna", "Olivia", "Scarlett", "Amelia", "Charlotte",
    "Isabella", "Ava", "Mia",
)  # fmt: skip
"""The names in table 9, from the United States' Social Security data."""

ELEMENTS = "elements.yaml"
IMAGE_PROMPTS = "image_prompts.yaml"
"""A file in the source, optional: descriptions of images by element, written by `equivox data make describe`."""
PERSONS = {"mf": ("male", "female"), "mm": ("male", "male"), "ff": ("female", "female")}
"""The released kinds of pairs, by the names of their files."""

AGES = {"at a young age": "young", "in middle age": "middle", "in old age": "old"}
_CONFLICTS = {"cs": 4}
_CONFLICTS_ELSEWHERE = 2


@dataclass(frozen=True, kw_only=True)
class Element:
    """One narrative element: everything about a NEP except its names and its image.

    `relationship` is the short name of the relational model, `relationship_name` its name in the prompt.
    """

    element: str
    relationship: str
    relationship_name: str
    age: str
    description: str
    scenario: str
    plot: str
    high_status_question: str = ""


def nep_columns(element: Element) -> dict[str, str]:
    """Return the placeholders of the text prompt, without the names.

    >>> from dataclasses import replace
    >>> e = Element(element="e", relationship="cs", relationship_name="communal sharing", age="in old age",
    ...             description="they are neighbours. ", scenario="They share a garden.", plot="cooperation")
    >>> nep_columns(e)["relationship_description"]
    'they are neighbours'
    """
    return {
        "relationship": element.relationship,
        "relationship_name": element.relationship_name,
        "age": element.age,
        # The prompt adds the full stop.
        "relationship_description": element.description.strip().rstrip(". "),
        "scenario": element.scenario,
        "plot": element.plot,
        "plot_request": protocol()["plots"][element.plot],
    }


def protocol() -> dict[str, Any]:
    """Return the plot requirements and the evaluators' questions of the protocol."""
    from equivox.core.fields import packaged_yaml

    return dict(packaged_yaml("tasks/prompts/genres.yaml"))


def plot_of(relationship: str, scenario_index: int) -> str:
    """Return the plot of a released scenario: the first half of each relationship's scenarios are conflicts.

    >>> plot_of("cs", 3), plot_of("cs", 4), plot_of("ar", 1), plot_of("ar", 2)
    ('conflict', 'cooperation', 'conflict', 'cooperation')
    """
    return "conflict" if scenario_index < _CONFLICTS.get(relationship, _CONFLICTS_ELSEWHERE) else "cooperation"


GENDER_OF = dict.fromkeys(MALE_NAMES, "male") | dict.fromkeys(FEMALE_NAMES, "female")
_SHORT = {long: short for short, long in RELATIONSHIPS.items()}


def described(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the columns of a NEP that a record implies, in the form in which responses are released or in ours.

    Of the released form: the short name of the relationship, `names` as two columns with the genders of Table 9, the
    plot by the scenario's number, the NEP and its element by the image. A custom record need not name an element, nor
    a question about status.

    >>> found = described({"relationship": "authority ranking", "names": ["Henry", "Sofia"], "scenario_index": 2,
    ...                    "image_name": "mf_ar_young_group0_scenario2_5EB1.png"})
    >>> found["relationship"], found["plot"], found["gender_2"], found["nep"]
    ('ar', 'cooperation', 'female', 'mf_ar_young_group0_scenario2_5EB1')
    """
    told = {name: value for name, value in record.items() if value not in (None, "")}
    implied: dict[str, Any] = {"high_status_question": told.get("high_status_question")}
    relationship = told.get("relationship")
    if relationship in _SHORT:
        relationship = implied["relationship"] = _SHORT[relationship]
    names = told.get("names")
    if isinstance(names, list | tuple) and len(names) == 2:
        implied |= {f"name_{place}": name for place, name in enumerate(names, start=1) if f"name_{place}" not in told}
    both = {**told, **implied}
    for place in (1, 2):
        gender = GENDER_OF.get(str(both.get(f"name_{place}")))
        if f"gender_{place}" not in told and gender is not None:
            implied[f"gender_{place}"] = gender
    index = str(told.get("scenario_index", ""))
    if "plot" not in told and index.isdecimal() and relationship in RELATIONSHIPS:
        implied["plot"] = plot_of(str(relationship), int(index))
    nep = told.get("nep") or told.get("sample_id") or PurePosixPath(str(told.get("image_name", ""))).stem
    if nep:
        implied |= {"nep": nep, "sample_id": told.get("sample_id") or nep, "element": told.get("element") or nep}
    if "element" not in told and {"relationship_group", "age"} <= set(told) and index:
        genders = tuple(sorted((str(implied.get(f"gender_{place}")) for place in (1, 2)), reverse=True))
        person = next((short for short, pair in PERSONS.items() if tuple(sorted(pair, reverse=True)) == genders), None)
        if person is not None:
            age, group = AGES.get(told["age"], told["age"]), told["relationship_group"]
            implied["element"] = f"{person}_{relationship}_{age}_group{group}_scenario{index}"
    return implied
