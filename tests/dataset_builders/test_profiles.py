"""The applicants: every group has the same facts and all of its names, none bound to a position."""

from __future__ import annotations

from collections import Counter

import pytest

from equivox.core.task import DataSource
from equivox.dataset_builders.profiles import CORPUS, NAMES, open_profiles


@pytest.mark.parametrize(("data", "each"), [(None, 48), ("sample", 12)])
def test_names_are_spread_over_applicants_with_equal_facts(data: str | None, each: int) -> None:
    samples = open_profiles(DataSource(corpus=CORPUS), data).samples
    facts: dict[tuple[str, str, str], list[str]] = {}
    names: dict[tuple[str, str, str], Counter[str]] = {}
    for sample in samples:
        row = {name: str(value) for name, value in sample.columns.items()}
        key = row["kind"], row["gender"], row["race"]
        facts.setdefault(key, []).append(row["facts"].replace(row["name"], "?"))
        names.setdefault(key, Counter())[row["name"]] += 1
    assert len(facts) == 2 * len(NAMES)
    for (kind, gender, race), own in facts.items():
        assert len(set(own)) == each and own == facts[kind, "male", "White"]
        # Nine names: of 48 applicants each has five or six, of 12 one or two.
        assert set(names[kind, gender, race]) == set(NAMES[gender, race])
        assert max(names[kind, gender, race].values()) - min(names[kind, gender, race].values()) <= 1
