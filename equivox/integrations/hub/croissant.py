"""The responsible-AI fields of a published corpus, in the format Croissant; files and columns the Hub describes itself.

Everything in it is said by the corpus's facts, its tasks or its rows; a field that none of them states is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equivox.dataset_builders.base import Column, CorpusFacts

if TYPE_CHECKING:
    from equivox.integrations.hub.dataset_folder import RowSet

CROISSANT = "croissant.json"
CONFORMS_TO = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}


def croissant(repo: str, facts: CorpusFacts, sets: Sequence[RowSet], record: Mapping[str, Any]) -> str:
    """Return `croissant.json` of a corpus: what it is, and the fields of the responsible-AI extension."""
    sources = [text for text in (facts.citation, facts.paper, facts.homepage) if text]
    told = {
        "citeAs": facts.citation or facts.paper,
        "sameAs": facts.homepage,
        "rai:dataCollection": f"Collected by the authors of the corpus, not by equivox. See {'; '.join(sources)}."
        if sources
        else "Not stated.",
        "rai:dataCollectionRawData": facts.homepage,
        "rai:dataAnnotationProtocol": [_told(column) for column in facts.columns],
        "rai:dataPreprocessingProtocol": list(record["notes"][:50]),
        "rai:dataUseCases": [f"{task.name}: compares {task.dimension}" for rows in sets for task in rows.tasks],
        "rai:dataBiases": _balance(facts, sets),
        "rai:personalSensitiveInformation": [_told(column) for column in facts.columns if column.role == "demographic"],
        "rai:dataLimitations": list(facts.cannot_say),
    }
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": repo.rpartition("/")[2],
        "description": f"{facts.title}: the samples of {sum(len(rows.tasks) for rows in sets)} tasks of equivox, which "
        "measure what a model does differently when only the person changes.",
        "url": f"https://huggingface.co/datasets/{repo}",
        "license": facts.licence_id if facts.licence_id != "unknown" else facts.licence,
        "version": f"{facts.version}.0.0",
        **{name: value for name, value in told.items() if value},
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _told(column: Column) -> str:
    return f"{column.name}: {column.meaning}"


def _balance(facts: CorpusFacts, sets: Sequence[RowSet]) -> list[str]:
    """Return the number of rows with each value of each demographic column with at most 20 values."""
    samples = {sample.sample_id: sample for rows in sets for sample in rows.samples}.values()
    lines = []
    for name in facts.demographics:
        counts = Counter(
            "not known" if (value := sample.columns.get(name)) in (None, "") else str(value) for sample in samples
        )
        if 0 < len(counts) <= 20:
            told = ", ".join(f"{value} {n:,}" for value, n in sorted(counts.items()))
            lines.append(f"Rows by {name}: {told}.")
    return lines
