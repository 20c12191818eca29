"""Frozen data classes with checked types, and settings that a user wrote, of these types and within their ranges.

A value is what it looks like: the text "8" is no number, `true` is no number, and a date is not a value of JSON. Ranges
stand at the fields (`Annotated[float, Ge(0)]`). Whatever is wrong is one line: the field, the problem, what was
received, and the fix.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

from equivox.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter, ValidationError

Form = TypeVar("Form", bound="BaseModel")
Kind = TypeVar("Kind")


def checked(kind: type[Kind]) -> type[Kind]:
    """Return a frozen dataclass whose constructor checks types and ranges; UsageError in one line."""
    from pydantic import ConfigDict, ValidationError
    from pydantic.dataclasses import dataclass

    config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
    # A class of its own, as `kind` may inherit from a checked one, which pydantic would take it for.
    own = type(kind.__name__, (kind,), {name: getattr(kind, name) for name in ("__module__", "__qualname__")})
    made: Any = dataclass(config=config, frozen=True, kw_only=True)(own)
    construct = made.__init__

    @wraps(construct)
    def checking(self: Any, *values: Any, **named: Any) -> None:
        try:
            construct(self, *values, **named)
        except ValidationError as error:
            which = f" {name!r}" if isinstance(name := named.get("name"), str) else ""
            raise UsageError(f"{kind.__name__}{which}: {complaint(error)}") from None

    made.__init__, made.__doc__ = checking, kind.__doc__
    return made  # type: ignore[no-any-return]


Public = Annotated[Kind, "public"]
"""The type of a setting whose values may be written down with a run: `limit: Public[int]`."""


def public_names(*kinds: type[Any]) -> frozenset[str]:
    """Return the names of the settings in dataclasses whose values may be written down."""
    hints = [hint for kind in kinds for hint in get_type_hints(kind, include_extras=True).items()]
    return frozenset(name for name, hint in hints if "public" in getattr(hint, "__metadata__", ()))


class Code:
    """Marks a field whose code is stored by its name (`Annotated[Metric, Code()]`): a function, a class, an object.

    The context of a validation is the function that returns the object of what is stored, that of a serialization the
    function that returns what is stored of an object.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Return the schema of an object that is taken as it is."""
        from pydantic_core import core_schema

        return core_schema.with_info_before_validator_function(
            lambda value, info: info.context(value) if info.context else value,
            core_schema.is_instance_schema(source) if isinstance(source, type) else core_schema.callable_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value, info: info.context(value), info_arg=True
            ),
        )


def read_fields(kind: type[Kind], arguments: Mapping[str, Any], *, what: str) -> Kind:
    """Return the object of the dataclass `kind` with these `arguments`, as JSON or YAML holds them.

    Raises UsageError for an argument that is unknown (with the nearest names), missing, of the wrong type or out of
    its range.
    """
    from pydantic import ValidationError

    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    known = [field.name for field in fields]
    for name in arguments:
        if name not in known:
            raise UsageError(f"{what} has no argument {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    for field in fields:
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and arguments.get(field.name) in (None, ""):
            raise UsageError(f"{what} needs the argument {field.name}, for example {field.name}=…")
    for name, value in arguments.items():
        if (odd := _odd(value)) is not None:
            raise UsageError(f"{what} argument {name}: {odd}")
    try:
        checked: Kind = adapter(kind).validate_json(json.dumps(dict(arguments)), strict=True)  # type: ignore[arg-type]
    except ValidationError as error:
        raise UsageError(f"{what} argument {complaint(error)}") from error
    return checked


@cache
def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return what reads and writes objects of `kind`, a dataclass."""
    from pydantic import ConfigDict, TypeAdapter, with_config

    if hasattr(kind, "__pydantic_validator__"):
        return TypeAdapter(kind)
    return TypeAdapter(with_config(ConfigDict(extra="forbid", arbitrary_types_allowed=True))(kind))


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
        path = error.errors()[0]["loc"]
        known = list(_fields_beside(form, path))
        near = nearest(str(path[-1]), known) if path and path[-1] not in known else ""
        fields = f"; known fields: {', '.join(known)}" if known else ""
        raise UsageError(f"{where}: {complaint(error)}{near}{fields}") from error


def _fields_beside(form: type[BaseModel], place: tuple[int | str, ...]) -> Iterable[str]:
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


def typed(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Return the object of the dataclass `kind` whose fields are `values`, of the types declared there.

    Nothing is converted, and objects are taken as they are. UsageError, naming the field, for an unknown, missing or
    mistyped one.
    """
    from pydantic import ValidationError
    from pydantic_core import ArgsKwargs

    try:
        adapter(kind).validator.validate_python(  # type: ignore[arg-type]
            ArgsKwargs((), dict(values)), strict=True, self_instance=object.__new__(kind)
        )
    except ValidationError as error:
        raise UsageError(f"{kind.__name__}: {complaint(error)}") from None
    return kind(**values)


def complaint(error: ValidationError) -> str:
    """Return the first error of a validation: the field, what is wrong, what was received, and the fix."""
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "value_error":  # of equivox, which says what to do
        return f"`{name}`: {first['ctx']['error']}" if name else str(first["ctx"]["error"])
    if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"`{name}`: extra inputs are not permitted"
    said = f"`{name or 'the document'}`: {first['msg'].lower()}"
    if first["type"] == "missing":  # the value says nothing about the fault
        return said
    hint = ""
    if isinstance(first["input"], str) and first["type"] == "tuple_type":
        hint = "; a tuple of one text has a comma: (…,)"
    elif first["type"] == "string_type" and isinstance(first["input"], bool | int | float | None):
        hint = "; put it into quotes"
    return f"{said}, got {_short(first['input'])}{hint}"


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
