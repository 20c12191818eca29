"""Annotators extract attributes from responses."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from equivox.configs import config_names, read_config_file
from equivox.core.annotation import RULES, Annotation, Annotator, AnnotatorIdentity, Job, annotation_key
from equivox.core.errors import UsageError, nearest
from equivox.core.fields import read_fields
from equivox.core.files import is_file_name
from equivox.core.plugins import ANNOTATORS, Plugin, added, refuse_odd_identity, told_in_one_line
from equivox.core.progress import STOP_AFTER
from equivox.core.redact import cleaned
from equivox.core.requests import Engine, Workers
from equivox.core.segments import Status, Value
from equivox.core.task import Sampling

__all__ = [
    "RULES",
    "Annotation",
    "Annotator",
    "AnnotatorIdentity",
    "Job",
    "Status",
    "Value",
    "annotation_key",
    "annotator_name",
    "declared_annotator",
    "evaluation_of",
    "open_annotator",
    "open_evaluations",
]

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EVALUATION = re.compile(r"(.+)@([1-9][0-9]?)")


class AnnotatorFile(BaseModel):
    """The fields of an annotator's YAML file; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str
    model_parameters: dict[str, Any]
    sampling: dict[str, Any] = {}
    evaluation_sampling: dict[str, Any] = {}
    attempts: int = Field(default=3, ge=1, le=10)
    stop_after: int = Field(default=STOP_AFTER, ge=0)
    note: str = ""


def annotator_names() -> list[str]:
    """Return the names of the annotators of equivox, then those of installed packages."""
    return [*_own_names(), *added_annotators()]


def added_annotators() -> dict[str, Plugin]:
    """Return the annotators of installed packages by name."""
    return added(ANNOTATORS, _own_names())


def _own_names() -> tuple[str, ...]:
    return (RULES, *(name for name in config_names("annotators") if name not in {RULES, "prompt"}))


def evaluation_of(name: str) -> tuple[str, int | None]:
    """Return an annotator's own name and the number of its evaluation, None if there is only one.

    >>> evaluation_of("glm-4-9b-chat@2"), evaluation_of("glm-4-9b-chat")
    (('glm-4-9b-chat', 2), ('glm-4-9b-chat', None))
    """
    found = _EVALUATION.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)


def annotator_name(named: str) -> str:
    """Return the name under which a run stores the annotations by the annotator that is `named`; no model is opened.

    >>> annotator_name("rules"), annotator_name("endpoint:model_name=org/judge,base_url=http://127.0.0.1:9/v1@2")
    ('rules', 'endpoint-org-judge@2')
    """
    own, number = evaluation_of(named)
    if own == RULES or own in added_annotators():
        return open_annotator(named).identity.name
    name, _ = declared_annotator(own)
    return name if number is None else f"{name}@{number}"


def open_annotator(name: str, workers: Workers | None = None) -> Annotator:
    """Return the annotator called `name`: `rules`, a packaged one, a YAML file, or a model (`endpoint:model_name=…`).

    `NAME@2` is the second evaluation by NAME. With several `workers` its model is a pool of engines. Raises
    UsageError for any other name and for a file with an unknown or malformed field. No model is loaded yet.
    """
    own, number = evaluation_of(name)
    if number is not None:
        return open_evaluations(own, [number], workers)[0]
    if name == RULES:
        from equivox.annotate.rules import RulesAnnotator

        return RulesAnnotator()
    if plugin := added_annotators().get(name):
        what = f"the annotator {name} of {plugin.package}"
        with told_in_one_line(what):
            return _an_annotator(plugin.use()(), what)
    return _from_file(name, [None], workers)[0]


def _an_annotator(given: object, what: str) -> Annotator:
    """Return an annotator that somebody else made; UsageError for what is none, or has an odd attribute."""
    if isinstance(given, Annotator) and isinstance(identity := getattr(given, "identity", None), AnnotatorIdentity):
        refuse_odd_identity(identity, what)
        if not is_file_name(identity.name):
            raise UsageError(f"{what} is called {identity.name!r:.80}, which no folder can be; give it another name")
        for setting, value in identity.as_dict()["settings"].items():
            if cleaned(written := json.dumps({setting: value})) != written:
                raise UsageError(
                    f"{what} has what looks like a secret in the settings of its `identity`, which are written down: "
                    f"in {cleaned(setting)!r:.40}; leave it out, or put it in other words"
                )
        if identity.name in _own_names() and not type(given).__module__.startswith("equivox."):
            raise UsageError(f"{what} is called {identity.name!r}, as one of equivox is; give it another name")
        if not isinstance(given.engine, Engine | None):
            raise UsageError(f"{what} has {given.engine!r:.60} as `engine`; give an equivox.engines.Engine, or None")
        return given
    raise UsageError(
        f"{what} is {given!r:.60}; its class derives from equivox.annotate.Annotator and sets `identity` "
        "(docs/add_an_engine.md)"
    )


def open_evaluations(name: str, numbers: Sequence[int], workers: Workers | None = None) -> list[Annotator]:
    """Return independent evaluations by the annotator `name`, called NAME@1, NAME@2, …; they share one engine.

    An evaluation samples its answers, with seeds of its own, as `evaluation_sampling` of the annotator's file says.
    UsageError if the annotator is not a model, or its file does not say how to sample: all would be alike.
    """
    if name == RULES or name in added_annotators():
        raise UsageError(
            f"`annotator` {name} has no independent evaluations, only models have; leave out @{numbers[0]}"
        )
    return _from_file(name, list(numbers), workers)


def declared_annotator(named: str) -> tuple[str, AnnotatorFile]:
    """Return the name and the declaration of an annotator: packaged, of a file, or a model by its own words.

    A model that is no annotator by name is one with the defaults of an annotator's file.
    """
    from equivox.engines import engine_of, model_label, model_names, schemes

    is_file, known = named.endswith((".yaml", ".yml")) and ":" not in named, annotator_names()
    if named in known or is_file:
        declared = read_config_file(AnnotatorFile, named, "annotators")
        name = Path(named).stem if is_file else named
        if name == RULES or not _FILE_NAME.fullmatch(name):
            raise UsageError(
                f"an annotator file cannot be called {name:.100}.yaml: its name names a folder of the run, so it is "
                f"letters, digits, '.', '_' or '-', begins with a letter or digit, and is not {RULES}; rename it"
            )
        return name, declared
    scheme = named.partition(":")[0]
    if named in model_names() or (":" in named and scheme in schemes()):
        if scheme == "simulated":
            raise UsageError(f"`annotator` {named} is a simulated model, which reads nothing; use {RULES}")
        engine, arguments = engine_of(named)
        if isinstance(arguments, str):
            raise UsageError(f"`annotator` {named} has no model arguments; write {scheme}:model_name=…")
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", model_label(named)).strip("-.")[:100]
        return name, AnnotatorFile(engine=engine, model_parameters=dict(arguments))
    raise UsageError(
        f"unknown `annotator` {named!r}{nearest(named, known)}; known: {', '.join(known)}, a .yaml file, or a model as "
        "it is named elsewhere (endpoint:model_name=…)"
    )


def _from_file(named: str, evaluations: Sequence[int | None], workers: Workers | None) -> list[Annotator]:
    """Return the annotator of a packaged or own file; for each number an evaluation of it."""
    from equivox.annotate.model import ModelAnnotator
    from equivox.engines import engine_from_args, model_names, refuse_remote_code

    name, declared = declared_annotator(named)
    refuse_remote_code({named} & {*model_names()} - {*annotator_names()})
    fields = declared.sampling
    if evaluations != [None]:
        fields = {**fields, **declared.evaluation_sampling}
        if not fields.get("temperature"):
            raise UsageError(
                f"annotator {name} answers at temperature 0, so all its evaluations would be alike; give its file "
                "`evaluation_sampling` with a temperature, or ask for one evaluation"
            )
    sampling = read_fields(Sampling, fields, what=f"annotator {name}: sampling")
    engine = engine_from_args(declared.engine, declared.model_parameters, workers)
    return [
        ModelAnnotator(
            name if number is None else f"{name}@{number}",
            engine,
            sampling=sampling,
            attempts=declared.attempts,
            stop_after=declared.stop_after,
        )
        for number in evaluations
    ]
