"""Model arguments as `lighteval vllm` takes them: `key=value,key=value`, or a YAML file.

Values are parsed as YAML (`true`, `4`, `0.9`, `bfloat16`); a value in braces or brackets may contain commas
(`generation_parameters={temperature: 0.7, top_p: 0.9}`). In a YAML file the arguments are at the top level or below
`model_parameters:` (the form of lighteval).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from equivox.core.errors import RequestError
from equivox.core.fields import load_yaml
from equivox.core.files import unreadable

_OPENING, _CLOSING = "{[(", "}])"


def parse_model_args(text: str, *, what: str = "model") -> dict[str, Any]:
    """Return the arguments in `text`, or in the YAML file that it names; `what` they are about stands in messages.

    >>> parse_model_args("model_name=org/model,dtype=bfloat16,max_model_length=4096,enforce_eager=true")
    {'model_name': 'org/model', 'dtype': 'bfloat16', 'max_model_length': 4096, 'enforce_eager': True}
    >>> parse_model_args("model_name=m,generation_parameters={temperature: 0.7, stop: [a, b]}")
    {'model_name': 'm', 'generation_parameters': {'temperature': 0.7, 'stop': ['a', 'b']}}
    >>> parse_model_args("base_url=[http://a:1/v1,http://b:2/v1],extra_body={top_k:5}")
    {'base_url': ['http://a:1/v1', 'http://b:2/v1'], 'extra_body': {'top_k': 5}}
    """
    if text.endswith((".yaml", ".yml")):
        return _from_file(Path(text), what)
    arguments: dict[str, Any] = {}
    for entry in _split(text, what):
        name, equals, value = entry.partition("=")
        name = name.strip()
        if not equals or not name:
            raise RequestError(f"{what} arguments are key=value,key=value, got {entry!r}{_example(what)}")
        if name in arguments:
            raise RequestError(f"{what} argument {name} is given twice in {text!r}; give it once")
        arguments[name] = _value(value, f"{what} argument {name}")
    if not arguments:
        raise RequestError(f"{what} arguments are empty{_example(what)}")
    return arguments


def _example(what: str) -> str:
    return "; give at least model_name=org/model" if what == "model" else ""


def _split(text: str, what: str) -> list[str]:
    """Split at commas outside brackets."""
    entries, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            entries.append(text[start:place])
            start = place + 1
    if depth != 0:
        raise RequestError(f"{what} arguments have an unbalanced bracket in {text!r}; close what was opened")
    entries.append(text[start:])
    return [entry for entry in entries if entry.strip()]


def _value(text: str, name: str) -> Any:
    spaced = text
    if "{" in text[:2]:
        # lighteval writes {temperature:0.7}; YAML wants a space after the colon.
        spaced = text.replace(":", ": ")
    try:
        return load_yaml(spaced)
    except yaml.YAMLError as error:
        raise RequestError(f"{name}={text!r} cannot be read: {' '.join(str(error).split())}") from error


def _from_file(path: Path, what: str) -> dict[str, Any]:
    try:
        document = load_yaml(path.read_text("utf-8"))
    except OSError as error:
        raise unreadable(f"the {what} file {path}", path, error) from error
    except (yaml.YAMLError, ValueError) as error:
        raise RequestError(f"the {what} file {path} is not YAML: {' '.join(str(error).split())}") from error
    if isinstance(document, dict) and isinstance(document.get("model_parameters"), dict):
        document = document["model_parameters"]
    if not isinstance(document, dict) or not document:
        raise RequestError(f"the {what} file {path} holds no arguments{_example(what)}")
    return {str(name): value for name, value in document.items()}
