"""GENRES: narrative elicitation pairs (NEPs), an image and a story's elements about two characters.

Data:       `Savannah-y7/Genres` on the Hub (CC BY-NC 4.0), as a local snapshot: `data/NEPs/genre_mf_*_query.jsonl` and
            `Image/mf/<relationship>/<image>` beside them. Or a custom folder: `elements.yaml` and the
            images that it names.
Paper:      GENRES, arXiv 2506.23101, section 3 and appendices A and B
Departs:    The prompt is made from the elements; it equals the released one up to the spacing around the full stop
            after the relationship and after the plot requirement. "Amelia" is listed twice in the paper: 14 names are
            female.
Cannot say: anything about people: the images are generated, the scenarios invented.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from equivox.core.errors import UsageError, nearest
from equivox.core.text import listed
from equivox.dataset_builders.base import Builder, Clip, CorpusFacts, Published, Scan, found_instead
from equivox.dataset_builders.genres_protocol import (
    AGES,
    ELEMENTS,
    FEMALE_NAMES,
    GENDER_OF,
    IMAGE_PROMPTS,
    MALE_NAMES,
    RELATIONSHIPS,
    SHORT_OF,
    Element,
    full_prompt,
    plot_of,
    protocol,
)

if TYPE_CHECKING:
    from equivox.dataset_builders.genres_elements import ElementsForm, ImagePromptsForm


class Genres(Builder):
    """GENRES as released, or custom elements and images."""

    MEDIA = "image"
    FACTS = Published("genres")

    @classmethod
    def described(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of a NEP that a record implies, in the form in which responses are released or in ours.

        Of the released form: the short name of the relationship, `names` as two columns with the genders of Table 9,
        the plot by the scenario's number, the NEP and its element by the image. A custom record need not name an
        element, nor a question about status.

        >>> found = Genres.described({"relationship": "authority ranking", "names": ["Henry", "Sofia"],
        ...                           "scenario_index": 2, "image_name": "mf_ar_young_group0_scenario2_5EB1.png"})
        >>> found["relationship"], found["plot"], found["gender_2"], found["nep"]
        ('ar', 'cooperation', 'female', 'mf_ar_young_group0_scenario2_5EB1')
        """
        told = {name: value for name, value in record.items() if value not in (None, "")}
        implied: dict[str, Any] = {"high_status_question": told.get("high_status_question")}
        relationship = told.get("relationship")
        if relationship in SHORT_OF:
            relationship = implied["relationship"] = SHORT_OF[relationship]
        names = told.get("names")
        if isinstance(names, list | tuple) and len(names) == 2:
            implied |= {f"name_{n}": name for n, name in enumerate(names, start=1) if f"name_{n}" not in told}
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
        both_genders = {implied.get(f"gender_{place}") for place in (1, 2)} == {"male", "female"}
        if "element" not in told and {"relationship_group", "age"} <= set(told) and index and both_genders:
            age, group = AGES.get(told["age"], told["age"]), told["relationship_group"]
            implied["element"] = f"mf_{relationship}_{age}_group{group}_scenario{index}"
        return implied

    def _check_source(self) -> None:
        self._own = self.source / ELEMENTS
        if not self._own.is_file() and not self._queries():
            raise UsageError(
                f"{self.source} is not GENRES: expected NEPs/genre_mf_cs_query.jsonl and the like, or {ELEMENTS}, "
                f"{found_instead(self.source)}; give a snapshot of {self.FACTS.homepage}"
            )

    def _facts(self) -> CorpusFacts:
        return replace(self.FACTS, published={}) if self._own.is_file() else self.FACTS

    def _queries(self) -> list[Path]:
        folders = [self.source, self.source / "NEPs", self.source / "data" / "NEPs"]
        return next((found for folder in folders if (found := sorted(folder.glob("genre_mf_*_query.jsonl")))), [])

    def _scan(self) -> Scan:
        clips = list(self._own_clips() if self._own.is_file() else self._released_clips())
        if missing := [self.relative(clip.path) for clip in clips if not clip.path.is_file()]:
            raise UsageError(
                f"{len(missing)} of {len(clips)} images are missing in {self.source}: {listed(missing, 3)}; "
                "fetch the whole data set, or make them with --generate-images"
            )
        twice = [nep for nep, count in Counter(clip.clip_id for clip in clips).items() if count > 1]
        if twice:
            raise UsageError(f"{self.source}: the NEP {twice[0]!r} appears twice; name each image once per element")
        names = {
            gender: {c.columns[f"name_{n}"] for c in clips for n in (1, 2) if c.columns[f"gender_{n}"] == gender}
            for gender in ("male", "female")
        }
        counts = {
            "NEPs": len(clips),
            "elements": len({clip.speaker for clip in clips}),
            "male names": len(names["male"]),
            "female names": len(names["female"]),
        }
        for relationship in dict.fromkeys(str(clip.columns["relationship"]) for clip in clips):
            counts[f"relationship={relationship}"] = sum(c.columns["relationship"] == relationship for c in clips)
        return Scan(clips=tuple(clips), counts=counts, oddities={})

    def image_prompts(self) -> Iterator[tuple[Path, str | None]]:
        """Yield every image that the source names, existing or not, with its prompt; None without a prompt.

        The prompts in an element or a released record count before those of `image_prompts.yaml`.
        """
        described = self._described()
        if self._own.is_file():
            for entry in read_elements(self._own).elements:
                for place, name in enumerate(entry.images):
                    prompts = entry.image_prompts or described.get(entry.id, ())
                    chosen = prompts[place % len(prompts)] if prompts else None
                    prompt = chosen and full_prompt(entry.age, entry.genders, chosen, PurePosixPath(name).stem)
                    yield self._inside(name), prompt
            return
        seen: Counter[str] = Counter()
        for image, element, record, _ in self._records():
            prompts = described.get(element.element, ())
            prompt = record.get("image_prompt")
            if prompt is None and prompts:
                chosen = prompts[seen[element.element] % len(prompts)]
                prompt = full_prompt(element.age, ("male", "female"), chosen, image.stem)
            seen[element.element] += 1
            yield image, prompt

    def _described(self) -> Mapping[str, Sequence[str]]:
        """Return the descriptions in `image_prompts.yaml` by element, none without the file."""
        path = self.source / IMAGE_PROMPTS
        if not path.is_file():
            return {}
        prompts = read_image_prompts(path).prompts
        known = [element.element for element, _, _ in self.elements()]
        if unknown := [name for name in prompts if name not in known]:
            raise UsageError(
                f"{path} describes {listed(unknown, 3)}, which no element is called{nearest(unknown[0], known)}; "
                "correct the name or remove the entry"
            )
        return prompts

    def elements(self) -> Iterator[tuple[Element, Sequence[str], frozenset[str]]]:
        """Yield each narrative element, with the genders of its two characters and the names that they may have."""
        if self._own.is_file():
            for element, _, names, genders in declared_neps(read_elements(self._own)):
                pairs = names.values() if isinstance(names, Mapping) else names
                yield element, genders, frozenset(name for pair in pairs for name in pair)
            return
        seen: set[str] = set()
        for _, element, _, _ in self._records():
            if element.element not in seen:
                seen.add(element.element)
                yield element, ("male", "female"), frozenset((*MALE_NAMES, *FEMALE_NAMES))

    def _records(self) -> Iterator[tuple[Path, Element, dict[str, Any], str]]:
        """Yield the image and the element of each released record, the record itself and where it stands."""
        for path in self._queries():
            relationship = path.name.split("_")[2]
            if relationship not in RELATIONSHIPS:
                raise UsageError(f"{path}: expected genre_mf_<{'|'.join(RELATIONSHIPS)}>_query.jsonl")
            for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
                if line.strip():
                    where = f"{path}, line {number}"
                    record = _record(line, where)
                    image = path.parent / "Image" / "mf" / relationship / record["image_name"]
                    yield image, _released_element(relationship, record), record, where

    def _inside(self, image: str) -> Path:
        path = self.source / image
        if not path.resolve().is_relative_to(self._resolved):
            raise UsageError(f"{self._own}: image {image!r} is not inside {self.source}; move it there")
        return path

    def _released_clips(self) -> Iterator[Clip]:
        for image, element, record, where in self._records():
            names = tuple(record["names"])
            genders = [GENDER_OF.get(name, "") for name in names]
            if sorted(genders) != ["female", "male"]:
                raise UsageError(f"{where}: `names` are {list(names)}; expected a man and a woman of table 9")
            yield _clip(element, names, genders, image, PurePosixPath(image.name).stem)

    def _own_clips(self) -> Iterator[Clip]:
        for element, images, names, genders in declared_neps(read_elements(self._own)):
            for image in images:
                path = self._inside(image)
                nep = f"{element.element}_{PurePosixPath(image).stem}"
                pair, of_pair = _drawn(names, genders, nep, images.index(image))
                yield _clip(element, pair, of_pair, path, nep)


def _released_element(relationship: str, record: Mapping[str, Any]) -> Element:
    age = AGES.get(record["age"], record["age"])
    index = int(record["scenario_index"])
    return Element(
        element=f"mf_{relationship}_{age}_group{record['relationship_group']}_scenario{index}",
        relationship=relationship,
        relationship_name=record["relationship"],
        age=record["age"],
        description=record["relationship_description"],
        scenario=record["scenario"],
        plot=plot_of(relationship, index),
    )


def _clip(element: Element, names: Sequence[str], genders: Sequence[str], image: Path, nep: str) -> Clip:
    return Clip(
        clip_id=nep,
        path=image,
        text=element.scenario,
        speaker=element.element,
        columns={
            "nep": nep,
            "element": element.element,
            "relationship": element.relationship,
            "relationship_name": element.relationship_name,
            "age": element.age,
            # The prompt adds the full stop.
            "relationship_description": element.description.strip().rstrip(". "),
            "scenario": element.scenario,
            "plot": element.plot,
            "plot_request": protocol()["plots"][element.plot],
            "high_status_question": element.high_status_question or None,
            "name_1": names[0],
            "gender_1": genders[0],
            "name_2": names[1],
            "gender_2": genders[1],
            "pair": " + ".join(sorted(genders)),
        },
    )


def _record(line: str, where: str) -> dict[str, Any]:
    needed = ("relationship", "age", "relationship_group", "relationship_description", "scenario_index", "scenario")
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON ({error}); fetch the file again") from None
    missing = [name for name in (*needed, "names", "image_name") if name not in record]
    if missing:
        raise UsageError(f"{where}: the field {missing[0]!r} is missing; it has {', '.join(record)}")
    return dict(record)


def _drawn(names: Names, genders: Sequence[str], nep: str, place: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the two names of a NEP and their genders, in the order in which the prompt names them.

    The random choice depends only on the NEP's name, so that the same elements always give the same prompts.
    """
    if not isinstance(names, Mapping):
        first, second = names[place % len(names)]
        return (first, second), (genders[0], genders[1])
    rng = random.Random(f"genres {nep}")
    order = [0, 1]
    rng.shuffle(order)
    drawn: list[str] = []
    for gender in genders:
        drawn.append(rng.choice([name for name in names[gender] if name not in drawn]))
    return (drawn[order[0]], drawn[order[1]]), (genders[order[0]], genders[order[1]])


def read_elements(path: Path) -> ElementsForm:
    """Return the narrative elements in a file; UsageError, naming the field, for anything malformed."""
    from equivox.configs import read_config_file
    from equivox.dataset_builders.genres_elements import ElementsForm

    return read_config_file(ElementsForm, str(path), "genres")


def read_image_prompts(path: Path) -> ImagePromptsForm:
    """Return the descriptions of images in a file; UsageError, naming the field, for anything malformed."""
    from equivox.configs import read_config_file
    from equivox.dataset_builders.genres_elements import ImagePromptsForm

    return read_config_file(ImagePromptsForm, str(path), "genres")


Names = Mapping[str, Sequence[str]] | Sequence[Sequence[str]]


def declared_neps(declared: ElementsForm) -> Iterator[tuple[Element, Sequence[str], Names, Sequence[str]]]:
    """Yield each element of an `elements.yaml` with its images, its names and the genders of its two characters.

    Given names are in the order of `genders`; otherwise they are drawn from the lists, and shuffled.
    """
    known = {**RELATIONSHIPS, **{short: own.name for short, own in declared.relationships.items()}}
    lists: dict[str, Sequence[str]] = {"male": MALE_NAMES, "female": FEMALE_NAMES}
    for gender, of_gender in declared.names.items():
        lists[gender] = of_gender
    seen: set[str] = set()
    for entry in declared.elements:
        if entry.relationship not in known:
            raise UsageError(
                f"{ELEMENTS}: element {entry.id!r} names the relationship {entry.relationship!r}"
                f"{nearest(entry.relationship, known)}; known: {', '.join(known)}, or declare it under `relationships`"
            )
        if entry.id in seen:
            raise UsageError(f"{ELEMENTS}: two elements are called {entry.id!r}; give each its own `id`")
        for pair in entry.names:
            if pair[0] == pair[1]:
                raise UsageError(f"{ELEMENTS}: element {entry.id!r} names both characters {pair[0]!r}; use two names")
        seen.add(entry.id)
        own = declared.relationships.get(entry.relationship)
        element = Element(
            element=entry.id,
            relationship=entry.relationship,
            relationship_name=known[entry.relationship],
            age=entry.age,
            description=entry.description,
            scenario=entry.scenario,
            plot=entry.plot,
            high_status_question=own.high_status_question if own else "",
        )
        yield element, entry.images, entry.names or lists, entry.genders
