"""The form of an `elements.yaml`: custom narrative elements for GENRES.

names:                     # optional: names to draw from, by gender; those of the paper by default
  female: [Ana, Ida]
  male: [Ben, Oto]
relationships:             # optional: relationships beside cs, em, mp and ar
  mentoring: {name: mentoring, high_status_question: "Who teaches the other?"}
elements:
  - id: garden
    relationship: cs
    age: in old age
    description: they are neighbours
    scenario: They share a garden and plan what to plant.
    plot: cooperation      # or conflict
    genders: [female, male]             # optional, in the order of `names`
    names: [[Ana, Ben], [Ben, Ana]]     # optional: one pair per image; drawn and shuffled by default
    images: [images/garden_1.png, images/garden_2.png]
    image_prompts: [kneeling between beans, in straw hats]     # optional, for --generate-images: used in turn

`equivox data make describe` lets a model write such prompts into a file of their own, `image_prompts.yaml`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]
Gender = Literal["male", "female"]
Pair = tuple[Literal["male"], Literal["female"]] | tuple[Literal["female"], Literal["male"]]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _RelationshipForm(_Form):
    """A custom relationship: its name in the prompt, and the evaluators' question about status."""

    name: Text
    high_status_question: str = ""


class _ElementForm(_Form):
    """One narrative element and its images, one NEP each."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    relationship: Text
    age: Text
    description: Text
    scenario: Text
    plot: Literal["conflict", "cooperation"]
    images: Annotated[tuple[Text, ...], Field(min_length=1)]
    genders: Pair = ("male", "female")
    names: tuple[tuple[Text, Text], ...] = ()
    image_prompts: tuple[Text, ...] = ()


class ElementsForm(_Form):
    """The content of the file."""

    names: dict[Gender, Annotated[tuple[Text, ...], Field(min_length=2)]] = {}
    relationships: dict[str, _RelationshipForm] = {}
    elements: Annotated[tuple[_ElementForm, ...], Field(min_length=1)]


class ImagePromptsForm(_Form):
    """The content of an `image_prompts.yaml`: the descriptions of each element's images by the element's id.

    `made_by` says which model wrote them. `without` says why an element has none, `refused` which descriptions were
    left out.
    """

    prompts: dict[Text, Annotated[tuple[Text, ...], Field(min_length=1)]]
    made_by: dict[str, str | int | float] = {}
    without: dict[str, str] = {}
    refused: dict[str, list[dict[Literal["text", "names"], str]]] = {}
