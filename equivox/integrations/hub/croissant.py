"""A published corpus in the format Croissant 1.0, with the responsible-AI extension, in plain JSON-LD.

Everything in it is said by the corpus's facts, its tasks or its rows; a field that none of them states is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equivox.dataset_builders.base import Column, CorpusFacts
from equivox.integrations.hub.dataset_folder import RowSet, config_name

if TYPE_CHECKING:
    import datasets

CROISSANT = "croissant.json"

CONFORMS_TO = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")

CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that the specification of Croissant 1.0 gives, with the prefix of the extension."""

_TYPES = {"string": "sc:Text", "int64": "sc:Integer", "float64": "sc:Float"}
_MEDIA = {"audio": "sc:AudioObject", "image": "sc:ImageObject"}
_PARQUET = "application/x-parquet"
_COMMON = {
    "sample_id": "The sample's name, unique within the corpus.",
    "duration_s": "Length of the recording in seconds.",
    "text": "The text that is spoken or shown.",
    "speaker": "The speaker's name in the corpus.",
}


def croissant(
    repo: str,
    facts: CorpusFacts,
    sets: Sequence[RowSet],
    features: Mapping[str, datasets.Features],
    record: Mapping[str, Any],
) -> str:
    """Return `croissant.json` of a corpus: its files with their hashes, its columns, and the responsible-AI fields."""
    cited = facts.citation or facts.paper
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
        **({"inLanguage": facts.language} if facts.language else {}),
        **({"citeAs": cited} if cited else {}),
        **({"sameAs": facts.homepage} if facts.homepage else {}),
        **_responsible(facts, sets, record),
        "distribution": [part for rows in sets for part in _files(rows, record)],
        "recordSet": [_records(rows, facts, features[rows.name]) for rows in sets],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _responsible(facts: CorpusFacts, sets: Sequence[RowSet], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the responsible-AI extension; those that nothing states are left out."""
    sources = [text for text in (facts.citation, facts.paper, facts.homepage) if text]
    told = {
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
    return {name: value for name, value in told.items() if value}


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


def _files(rows: RowSet, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each file with its hash, and the set of all files, which the rows are read from."""
    folder = f"data/{rows.name}/"
    return [
        *(
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{stored['bytes']} B",
                "encodingFormat": _PARQUET,
                "sha256": stored["sha256"],
            }
            for name, stored in record["files"].items()
            if name.startswith(folder)
        ),
        {
            "@type": "cr:FileSet",
            "@id": f"{rows.name}-files",
            "name": f"{rows.name}-files",
            "encodingFormat": _PARQUET,
            "includes": f"{folder}*.parquet",
        },
    ]


def _records(rows: RowSet, facts: CorpusFacts, features: datasets.Features) -> dict[str, Any]:
    meanings = _COMMON | {column.name: column.meaning for column in facts.columns}
    tasks = ", ".join(f"{task.name} ({config_name(task.name)})" for task in rows.tasks)
    return {
        "@type": "cr:RecordSet",
        "@id": rows.name,
        "name": rows.name,
        "description": f"{len(rows.samples):,} samples, which these tasks (and configurations) use: {tasks}.",
        "key": {"@id": f"{rows.name}/sample_id"},
        "field": [_field(rows.name, name, kind, meanings.get(name)) for name, kind in features.items()],
    }


def _field(records: str, name: str, kind: Any, meaning: str | None) -> dict[str, Any]:
    media = _MEDIA.get(name)
    return {
        "@type": "cr:Field",
        "@id": f"{records}/{name}",
        "name": name,
        **({"description": meaning} if meaning else {}),
        "dataType": media or _TYPES[kind.dtype],
        "source": {
            "fileSet": {"@id": f"{records}-files"},
            "extract": {"column": name},
            **({"transform": {"jsonPath": "bytes"}} if media else {}),
        },
    }
