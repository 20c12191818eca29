"""Parsing of model arguments for the engines on this machine; no argument is ever ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

from equivox.core.errors import UsageError, nearest
from equivox.core.fields import Public, checked, public_names, read_fields
from equivox.core.task import Penalty, Temperature, TokenLimit, TopK, TopP

_REFUSED_GENERATION = {
    "seed": "every response has its own seed; the run's `--seed` changes them all",
    "truncate_prompt": "a prompt is never cut; raise `max_model_length`",
    "response_format": "the annotator's schema decides the format",
}


@checked
@dataclass(frozen=True, kw_only=True)
class ChatArguments:
    """The arguments about prompts and clips that the engines on this machine share; what is not given is not set.

    `generation_parameters` are lighteval's. Clips longer than `max_audio_seconds` fail; None: as the model limits them.
    """

    chat_template: Public[str | None] = None
    chat_template_kwargs: Public[Mapping[str, Any]] = field(default_factory=dict)
    generation_parameters: Public[Mapping[str, Any]] = field(default_factory=dict)
    max_audio_seconds: Public[Annotated[float, Gt(0)] | None] = None
    system_prompt: Public[str | None] = None


@checked
@dataclass(frozen=True, kw_only=True)
class _GenerationParameters:
    """lighteval's `generation_parameters` that engines know, and vLLM's `stop_token_ids`; None: not given."""

    temperature: Public[Temperature | None] = None
    top_p: Public[TopP | None] = None
    top_k: Public[TopK | None] = None
    min_p: Public[Annotated[float, Ge(0), Le(1)] | None] = None
    frequency_penalty: Public[Penalty | None] = None
    presence_penalty: Public[Penalty | None] = None
    repetition_penalty: Public[Annotated[float, Gt(0)] | None] = None
    max_new_tokens: Public[TokenLimit | None] = None
    min_new_tokens: Public[Annotated[int, Ge(0)] | None] = None
    stop_tokens: Public[str | tuple[str, ...] | None] = None
    stop_token_ids: Public[tuple[Annotated[int, Ge(0)], ...] | None] = None


_FIELDS = """
    do_sample enable_thinking ignore_eos include_reasoning length_penalty max_completion_tokens max_tokens min_tokens n
    reasoning reasoning_effort safety_settings category threshold seed skip_special_tokens stop thinking
    thinking_budget thinking_level top_a type budget_tokens verbosity
"""
PUBLIC = public_names(ChatArguments, _GenerationParameters) | frozenset(_FIELDS.split())
"""Names of settings that may be written down with any engine: the arguments above, and the fields of a request to
servers and models, none of which is a secret. Comparisons read from them how a model was run."""


def sort_arguments(
    arguments: Mapping[str, Any],
    *,
    known: Collection[str] | None,
    aliases: Mapping[str, str],
    refused: Mapping[str, tuple[Any, str]],
) -> dict[str, Any]:
    """Return `arguments` under the engine's names.

    `known` holds the engine's names (None: the engine looks at them itself) and `aliases` maps other names to them.
    `refused` maps arguments without a meaning to the one accepted value (None: there is none) and the reason. Raises
    UsageError for these, for unknown names and for arguments given twice.

    >>> sort_arguments({"model_name": "m"}, known=["model"], aliases={"model_name": "model"}, refused={})
    {'model': 'm'}
    """
    found: dict[str, Any] = {}
    for given, value in arguments.items():
        name = aliases.get(given, given)
        if name in refused:
            harmless, reason = refused[name]
            if value is None or value != harmless:
                raise UsageError(f"model argument {given}={value!r} cannot be used: {reason}")
        elif known is not None and name not in known:
            raise unknown_argument(given, {*known, *aliases})
        elif name in found:
            raise UsageError(f"model argument {name} is given twice, as {given} and by another name; give one")
        else:
            found[name] = value
    return found


def unknown_argument(given: str, known: Collection[str]) -> UsageError:
    """Return the error for a model argument that the engine does not have; `known` are those that it has."""
    return UsageError(f"unknown model argument {given!r}{nearest(given, known)}")


def generation_parameters(
    given: Mapping[str, Any], renamed: Mapping[str, str], *, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return lighteval's `generation_parameters` under the engine's names (`renamed`: lighteval's → the engine's).

    `without` are those that the engine does not have.

    >>> generation_parameters({"max_new_tokens": 64, "top_p": 0.9}, {"max_new_tokens": "max_tokens"})
    {'max_tokens': 64, 'top_p': 0.9}
    """
    known = sorted({own.name for own in fields(_GenerationParameters)} - set(without))
    for name in given:
        if name in _REFUSED_GENERATION:
            raise UsageError(f"generation parameter {name} cannot be used: {_REFUSED_GENERATION[name]}")
        if name not in known:
            raise UsageError(f"unknown generation parameter {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    read_fields(_GenerationParameters, given, what="generation parameters:")
    return {renamed.get(name, name): value for name, value in given.items() if value is not None}


def chat_template(template: str | None) -> str | None:
    """Return the text of a chat template, given as text or as a file; None if none is given."""
    if template is None or "{" in template:
        return template
    try:
        return Path(template).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`chat_template` {template!r} is no template and no file ({error}); give either") from error
