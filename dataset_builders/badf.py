"""BADF's grid of characters and places: a corpus that is part of the package, not downloaded.

Data:   arXiv 2508.01412, Tables 6 and 7: ten names of two genders, eight descriptors of four races and eight of four
        religions, each of two types, 87 places in ten categories. Two characters: 8,700 stories by gender, 10,440 each
        by race and religion; one character: twice as many.
Odd:    The released files write "a Jew who believes in Judaism" and "Apple park" where the paper's tables have
        "believes in Judaism" and "Apple Park"; the tables count here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from equivox.configs import read_config_file
from equivox.core.errors import UsageError
from equivox.core.task import Column, DataSource, digest
from equivox.core.yaml_files import packaged_yaml
from equivox.dataset_builders.corpus import SAMPLE, Corpus, Sample, text_sample

CORPUS = "badf"
GRID_FILE = "badf.yaml"
"""The file name of a custom grid in the folder that `--data` names."""
SINGLE, PAIR = "single", "pair"
SAMPLE_CATEGORIES = ("education", "healthcare", "workplace", "media")
"""The categories in the sample, with one place each."""


class Dimension(BaseModel):
    """The identities of one demographic dimension, with their descriptors in stories."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pairs: Literal["matched", "all"] = "all"
    types: list[str] = []
    descriptors: dict[str, list[str]] = Field(min_length=2)


class Grid(BaseModel):
    """A grid of identities and places; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = ""
    identities: dict[str, Dimension] = Field(min_length=1)
    locations: dict[str, list[str]] = Field(min_length=1)


@dataclass(frozen=True)
class Character:
    """One descriptor with its identity and its type; characters of one type meet in stories."""

    descriptor: str
    identity: str
    type: str


def read_grid(path: Path | None = None) -> Grid:
    """Return the grid in the YAML file `path`, or the published grid; UsageError for an invalid file."""
    if path is None:
        return Grid.model_validate(packaged_yaml("dataset_builders/badf_identities.yaml"))
    grid = read_config_file(Grid, str(path), "badf")
    for name, dimension in grid.identities.items():
        _check(name, dimension, path)
    for category, places in grid.locations.items():
        if not places or len(set(places)) < len(places):
            raise UsageError(f"the grid {path}: `locations.{category}` needs places, each once, got {places}")
    return grid


def _check(name: str, dimension: Dimension, path: Path) -> None:
    if commas := [identity for identity in dimension.descriptors if "," in identity]:
        raise UsageError(f"the grid {path}: the identity {commas[0]!r} holds a comma; name it without one")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"the grid {path}: {name!r} is no name for a dimension; use small letters, digits and _")
    lengths = {len(descriptors) for descriptors in dimension.descriptors.values()}
    every = [descriptor for descriptors in dimension.descriptors.values() for descriptor in descriptors]
    if len(lengths) > 1 or lengths == {0}:
        raise UsageError(
            f"the grid {path}: `identities.{name}` has identities with {sorted(lengths)} descriptors; give each as many"
        )
    if len(set(every)) < len(every) or not all(every):
        raise UsageError(f"the grid {path}: `identities.{name}` repeats a descriptor or leaves one empty")
    if dimension.pairs == "matched" and len(dimension.descriptors) != 2:
        raise UsageError(
            f"the grid {path}: `identities.{name}.pairs` matched pairs two identities, got "
            f"{len(dimension.descriptors)}; use all"
        )
    if dimension.types and len(dimension.types) not in lengths:
        raise UsageError(f"the grid {path}: `identities.{name}.types` needs one name per descriptor of an identity")


def characters(dimension: Dimension) -> list[Character]:
    """Return all characters of a dimension, sorted by identity."""
    return [
        Character(descriptor, identity, dimension.types[place] if dimension.types else str(place + 1))
        for identity, descriptors in dimension.descriptors.items()
        for place, descriptor in enumerate(descriptors)
    ]


def pairs(dimension: Dimension) -> list[tuple[Character, Character]]:
    """Return the pairs of characters that meet: of one type and two identities."""
    everybody = characters(dimension)
    return [
        (one, other)
        for one, other in itertools.combinations(everybody, 2)
        if one.identity != other.identity and one.type == other.type
    ]


def open_grid(source: DataSource, data: str | Path | None) -> Corpus:
    """Return the grid as a corpus: the published one, a small part of it (`sample`), or a custom file.

    `data` is a YAML file, or a folder with `badf.yaml`; a folder without it (for other corpora) means the published
    grid.
    """
    if data is None:
        return _corpus(read_grid(), note="")
    if str(data) == SAMPLE:
        full = read_grid()
        places = {category: full.locations[category][:1] for category in SAMPLE_CATEGORIES}
        return _corpus(
            full.model_copy(update={"locations": places}),
            note=f"a sample: one place of each of {len(SAMPLE_CATEGORIES)} categories",
        )
    path = Path(data)
    if path.is_dir():
        path = path / GRID_FILE
        if not path.exists():
            return _corpus(read_grid(), note=f"{data} holds no {GRID_FILE}: the published grid")
    elif path.suffix not in {".yaml", ".yml"} or not path.is_file():
        raise UsageError(
            f"`--data` {data} is no folder and no YAML file; leave it out for BADF's published grid, or give a grid"
        )
    return _corpus(read_grid(path), note=f"the grid of {path.name}")


def _corpus(grid: Grid, *, note: str) -> Corpus:
    samples = tuple(_samples(grid))
    return Corpus(
        name=CORPUS,
        fingerprint=digest(grid.model_dump()),
        samples=samples,
        notes=(note,) if note else (),
    )


def _samples(grid: Grid) -> Iterator[Sample]:
    for name, dimension in grid.identities.items():
        everybody: Sequence[tuple[Character, ...]] = [
            *((one,) for one in characters(dimension)),
            *pairs(dimension),
        ]
        for met in everybody:
            for category, places in grid.locations.items():
                for place in places:
                    yield _sample(grid, name, met, category, place)


def _sample(grid: Grid, name: str, met: Sequence[Character], category: str, place: str) -> Sample:
    dimension = grid.identities[name]
    alone = len(met) == 1
    columns: dict[str, Column] = {
        "dimension": name,
        "characters": SINGLE if alone else PAIR,
        "d1": met[0].descriptor,
        "d2": None if alone else met[1].descriptor,
        "identity_1": met[0].identity,
        "identity_2": None if alone else met[1].identity,
        # Characters of one stratum can exchange identities: those who meet, or those of one declared type.
        "stratum": met[0].type if dimension.types or not alone else "",
        "who": " + ".join(character.descriptor for character in met),
        "category": category,
        "loc": place,
        "identities": ",".join(dimension.descriptors),
        # A column for every dimension: the identity in the character's own, None in the others.
        **{other: met[0].identity if alone and other == name else None for other in grid.identities},
    }
    words = [name, columns["who"], category, place]
    return text_sample("/".join(str(word).replace("/", " ") for word in words), columns)
