"""Annotators extract attributes from responses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from equivox.configs import config_names, read_config_file
from equivox.core.annotation import (
    Annotation,
    Annotator,
    AnnotatorIdentity,
    Job,
    Status,
    Value,
    annotation_key,
)
from equivox.core.errors import RequestError, nearest
from equivox.core.fields import checked_fields
from equivox.core.outage import STOP_AFTER
from equivox.core.plugins import ANNOTATORS, added

__all__ = [
    "Annotation",
    "Annotator",
    "AnnotatorIdentity",
    "Job",
    "Status",
    "Value",
    "annotation_key",
    "open_annotator",
]

RULES = "rules"
"""The name of the annotator without a model."""


_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class AnnotatorFile(BaseModel):
    """The fields of an annotator's YAML file; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str
    model_parameters: dict[str, Any]
    sampling: dict[str, Any] = {}
    attempts: int = Field(default=3, ge=1, le=10)
    stop_after: int = Field(default=STOP_AFTER, ge=0)
    note: str = ""


def annotator_names() -> list[str]:
    """Return the names of the annotators of equivox, then those of installed packages."""
    packaged = (name for name in config_names("annotators") if name not in {RULES, "prompt"})
    return [RULES, *packaged, *added(ANNOTATORS)]


def open_annotator(name: str) -> Annotator:
    """Return the annotator called `name`: `rules`, a packaged one, or a YAML file.

    Raises RequestError for any other name and for a file with an unknown or malformed field. No model is loaded yet.
    """
    if name == RULES:
        from equivox.annotate.rules import RulesAnnotator

        return RulesAnnotator()
    if name in added(ANNOTATORS):
        return added(ANNOTATORS)[name][1]()  # type: ignore[no-any-return]
    is_file, known = name.endswith((".yaml", ".yml")), annotator_names()
    if not is_file and name not in known:
        raise RequestError(
            f"unknown `annotator` {name!r}{nearest(name, known)}; known: {', '.join(known)}, or a .yaml file"
        )
    return _from_file(Path(name).stem if is_file else name, read_config_file(AnnotatorFile, name, "annotators"))


def _from_file(name: str, declared: AnnotatorFile) -> Annotator:
    from equivox.annotate.model import ModelAnnotator
    from equivox.core.task import Sampling
    from equivox.engines import engine_from_args

    if name == RULES or not _FILE_NAME.fullmatch(name):
        raise RequestError(
            f"an annotator file cannot be called {name:.100}.yaml: its name names a folder of the run, so it is "
            f"letters, digits, '.', '_' or '-', begins with a letter or digit, and is not {RULES}; rename it"
        )
    sampling = Sampling(**checked_fields(Sampling, declared.sampling, what=f"annotator {name}: sampling"))
    return ModelAnnotator(
        name,
        engine_from_args(declared.engine, declared.model_parameters),
        sampling=sampling,
        attempts=declared.attempts,
        stop_after=declared.stop_after,
    )
