"""YAML read without surprises, and model arguments as `lighteval vllm` takes them: `key=value,key=value`, or a file.

Values of arguments are YAML (`true`, `4`, `0.9`, `bfloat16`); a value in braces or brackets may contain commas
(`generation_parameters={temperature: 0.7, top_p: 0.9}`). In a file they are at the top level or below
`model_parameters:` (the form of lighteval).
"""

from __future__ import annotations

import itertools
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from equivox.core.errors import UsageError
from equivox.core.files import unreadable

_MOST_ENTRIES = 1_000_000


class _Loader(Composer, yaml.CSafeLoader):
    """YAML's safe loader, which refuses a key that is given twice.

    libyaml reads the text, nine times as fast as Python. Python composes the document: it stops at deep nesting with an
    error, where libyaml would crash.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice; give it once", key.start_mark
                )
            seen.add((key.tag, key.value))
        return node

    def compose_document(self) -> Any:
        node = super().compose_document()
        if (n := _count_entries(node, {})) > _MOST_ENTRIES:
            raise yaml.constructor.ConstructorError(
                None, None, f"anchors stand for {n:,} entries; write at most {_MOST_ENTRIES:,}"
            )
        return node


def _count_entries(node: Any, counted: dict[int, int]) -> int:
    """Return how many entries a YAML node stands for; an anchor counts wherever it is used."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in counted:
        counted[id(node)] = 1  # a node inside itself ends here
        entries = itertools.chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
        counted[id(node)] += sum(_count_entries(entry, counted) for entry in entries)
    return counted[id(node)]


def load_yaml(text: str) -> Any:
    """Return the document in `text`; yaml.YAMLError for one that is malformed or gives a key twice.

    >>> load_yaml("a: 1")
    {'a': 1}
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except (ValueError, RecursionError) as error:  # an impossible date, a number of too many digits, deep nesting
        raise yaml.YAMLError(str(error)) from error


@cache
def packaged_yaml(path: str) -> Any:
    """Return the YAML document at `path` in the package, such as `tasks/prompts/vibe.yaml`; it is read once."""
    return load_yaml(resources.files("equivox").joinpath(path).read_text("utf-8"))


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
            raise UsageError(f"{what} arguments are key=value,key=value, got {entry!r}{_example(what)}")
        if name in arguments:
            raise UsageError(f"{what} argument {name} is given twice in {text!r}; give it once")
        arguments[name] = _value(value, f"{what} argument {name}")
    if not arguments:
        raise UsageError(f"{what} arguments are empty{_example(what)}")
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
        raise UsageError(f"{what} arguments have an unbalanced bracket in {text!r}; close what was opened")
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
        raise UsageError(f"{name}={text!r} cannot be read: {' '.join(str(error).split())}") from error


def _from_file(path: Path, what: str) -> dict[str, Any]:
    try:
        document = load_yaml(path.read_text("utf-8"))
    except OSError as error:
        raise unreadable(f"the {what} file {path}", path, error) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"the {what} file {path} is not YAML: {' '.join(str(error).split())}") from error
    if isinstance(document, dict) and isinstance(document.get("model_parameters"), dict):
        document = document["model_parameters"]
    if not isinstance(document, dict) or not document:
        raise UsageError(f"the {what} file {path} holds no arguments{_example(what)}")
    return {str(name): value for name, value in document.items()}
