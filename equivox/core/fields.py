"""Settings that a user wrote: YAML read without surprises, values of the declared types and within their ranges.

Numbers that a metric gave are looked at here, too.

A value is what it looks like: the text "8" is no number, `true` is no number, and a date is not a value of JSON. Ranges
stand at the fields (`Annotated[float, Ge(0)]`).

Model arguments as `lighteval vllm` takes them: `key=value,key=value`, or a YAML file.

Values are parsed as YAML (`true`, `4`, `0.9`, `bfloat16`); a value in braces or brackets may contain commas
(`generation_parameters={temperature: 0.7, top_p: 0.9}`). In a YAML file the arguments are at the top level or below
`model_parameters:` (the form of lighteval).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

import yaml
from yaml.composer import Composer

from equivox.core.errors import UsageError, nearest
from equivox.core.files import unreadable

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter, ValidationError

Form = TypeVar("Form", bound="BaseModel")
Kind = TypeVar("Kind")


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


def checked_fields(settings: type[Any], arguments: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """Return `arguments` converted to the types of the dataclass `settings`.

    Raises UsageError for an argument that is unknown (with the nearest names), missing, of the wrong type or out of
    its range.
    """
    from pydantic import ValidationError

    known = [f.name for f in dataclasses.fields(settings)]
    for name in arguments:
        if name not in known:
            raise UsageError(f"{what} has no argument {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    for f in dataclasses.fields(settings):
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if required and arguments.get(f.name) in (None, ""):
            raise UsageError(f"{what} needs the argument {f.name}, for example {f.name}=…")
    for name, value in arguments.items():
        if (odd := _odd(value)) is not None:
            raise UsageError(f"{what} argument {name}: {odd}")
    try:
        checked = _adapter(settings).validate_json(json.dumps(dict(arguments)), strict=True)  # type: ignore[arg-type]
    except ValidationError as error:
        raise UsageError(f"{what} argument {complaint(error)}") from error
    return {name: getattr(checked, name) for name in known}


@cache
def _adapter(settings: type[Any]) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(settings))


def checked_form(form: type[Form], document: Any, *, where: str) -> Form:
    """Return `document`, as it was read from the file `where`, as the pydantic model `form`.

    Raises UsageError, naming the file and the field, for missing, unknown and malformed fields.
    """
    from pydantic import ValidationError

    if (odd := _odd(document)) is not None:
        raise UsageError(f"{where}: {odd}")
    try:
        return form.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        known = ", ".join(_fields_beside(form, error.errors()[0]["loc"]))
        raise UsageError(f"{where}: {complaint(error)}{known and f'; known fields: {known}'}") from error


def _fields_beside(form: type[BaseModel], place: Sequence[int | str]) -> Collection[str]:
    """Return the names of the fields of the form in which `place` is; none if it is in something else."""
    for step in place[:-1]:
        if isinstance(step, str):
            declared = form.model_fields.get(step)
            inner = [one for one in _types_in(declared and declared.annotation) if hasattr(one, "model_fields")]
            if len(inner) != 1:
                return ()
            (form,) = inner
    return form.model_fields


def _types_in(annotation: Any) -> Iterator[Any]:
    """Yield a type and those that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _types_in(part)


def refuse_unless(right: bool, name: str, value: Any, words: str) -> None:
    """Raise UsageError for an argument that is not what `words` say, unless `right`."""
    if not right:
        raise UsageError(f"`{name}` is {words}, got {_short(value)}")


def typed(kind: type[Kind], values: Mapping[str, Any], **names: type) -> Kind:
    """Return the object of the dataclass `kind` whose fields are `values`, of the types declared there.

    Nothing is converted, and objects are taken as they are. `names` are the classes that the module of `kind` names
    without importing them. UsageError, naming the field, for an unknown, missing or mistyped one.
    """
    from pydantic import ValidationError

    try:
        _typed_form(kind, tuple(names.items())).model_validate(values)  # type: ignore[arg-type]
    except ValidationError as error:
        raise UsageError(f"{kind.__name__}: {complaint(error)}") from None
    return kind(**values)


@cache
def _typed_form(kind: type[Any], names: tuple[tuple[str, type], ...]) -> type[BaseModel]:
    from pydantic import ConfigDict, InstanceOf, create_model

    # An InstanceOf that a caller made would be another one each time, and no form would ever be found here again.
    classes = {name: InstanceOf[named] for name, named in names}  # type: ignore[misc, valid-type]
    hints = get_type_hints(kind, localns=classes, include_extras=True)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        fields[field.name] = (hints[field.name], ... if required else None)
    config = ConfigDict(strict=True, arbitrary_types_allowed=True, extra="forbid")
    return create_model(kind.__name__, __config__=config, **fields)


def complaint(error: ValidationError) -> str:
    """Return the first error of a validation: the field, what is wrong, what was received, and the fix."""
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"])) or "the document"
    said = f"`{name}`: {first['msg'].lower()}"
    if first["type"] == "unexpected_keyword_argument":  # of a dataclass
        return f"`{name}`: extra inputs are not permitted"
    if first["type"] in ("missing", "extra_forbidden"):  # the value says nothing about the fault
        return said
    quote = first["type"] == "string_type" and isinstance(first["input"], bool | int | float | None)
    return f"{said}, got {_short(first['input'])}{'; put it into quotes' if quote else ''}"


def _odd(value: Any) -> str | None:
    """Return what is no plain JSON in `value`, such as a date or NaN, or None if all of it is."""
    try:
        return next(_oddities(value), None)
    except RecursionError:
        return "it holds itself, or is nested too deeply; write it out"


def _oddities(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(name, str):
                yield f"the name {name!r} is no text; put it into quotes"
            yield from (f"`{name}`: {odd}" for odd in _oddities(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _oddities(inner)
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"it must be a finite number, got {value}"
    elif value is not None and not isinstance(value, str | bool | int | float):
        yield f"{type(value).__name__} is not a value of JSON, got {_short(value)}; put it into quotes"


def _short(value: Any, longest: int = 100) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"


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


def odd_numbers(given: Any, probabilities: Iterable[str], intervals: Iterable[str]) -> str | None:
    """Return which number of a score or a paired test cannot be true, in words; None if all can."""
    for name in probabilities:
        if not (math.isnan(p := getattr(given, name)) or 0 <= p <= 1):
            return f"has `{name}` {p}: use a probability, or NaN when undefined"
    for name in intervals:
        low, high = getattr(given, f"{name}_low"), getattr(given, f"{name}_high")
        # Equal ends may differ by rounding.
        if low > high and not math.isclose(low, high):
            return f"has an interval from `{name}_low` {low} to `{name}_high` {high}: the lower end comes first"
    return f"has {given.n_clusters} clusters" if given.n_clusters < 0 else None
