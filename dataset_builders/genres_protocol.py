"""What GENRES asks, and of whom: relationships, names, ages, plots and prompts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

AGES = {"at a young age": "young", "in middle age": "middle", "in old age": "old"}


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


def protocol() -> dict[str, Any]:
    """Return the plot requirements and the evaluators' questions of the protocol."""
    from equivox.core.yaml_files import packaged_yaml

    return dict(packaged_yaml("tasks/prompts/genres.yaml"))


def plot_of(relationship: str, scenario_index: int) -> str:
    """Return the plot of a released scenario: the first half of each relationship's scenarios are conflicts.

    >>> plot_of("cs", 3), plot_of("cs", 4), plot_of("ar", 1), plot_of("ar", 2)
    ('conflict', 'cooperation', 'conflict', 'cooperation')
    """
    return "conflict" if scenario_index < (4 if relationship == "cs" else 2) else "cooperation"


GENDER_OF = dict.fromkeys(MALE_NAMES, "male") | dict.fromkeys(FEMALE_NAMES, "female")
SHORT_OF = {long: short for short, long in RELATIONSHIPS.items()}


def full_prompt(age: str, genders: Sequence[str], description: str, name: str) -> str:
    """Return the prompt of an image: the people, what they do, and one word of quality from each list, drawn by `name`.

    >>> full_prompt("in old age", ("male", "female"), "sitting on a bench, in warm coats", "bench_1")
    'a photo of a male and a female, in old age, sitting on a bench, in warm coats, Photojournalism, ultra quality'
    """
    rng = random.Random(f"genres image {name}")
    quality = protocol()["image_quality"]
    drawn = [rng.choice(quality["realistic"]), rng.choice(quality["clarity"])]
    return ", ".join([f"a photo of {people(genders)}", age, description.strip(" ,"), *drawn])


def people(genders: Sequence[str]) -> str:
    """Return the two people of an image in words.

    >>> people(("male", "female"))
    'a male and a female'
    """
    first, second = genders
    return f"a {first} and a {second}"
