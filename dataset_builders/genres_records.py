"""GENRES narratives that were made elsewhere: what a record of them implies of its narrative elicitation pair (NEP)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from equivox.dataset_builders.genres import (
    AGES,
    FEMALE_NAMES,
    MALE_NAMES,
    PERSONS,
    RELATIONSHIPS,
    plot_of,
)

_GENDER = dict.fromkeys(MALE_NAMES, "male") | dict.fromkeys(FEMALE_NAMES, "female")
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
        gender = _GENDER.get(str(both.get(f"name_{place}")))
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
