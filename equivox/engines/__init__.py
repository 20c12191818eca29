"""Engines answer requests. A model is named `scheme:rest`; each scheme is one engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from equivox.configs import config_names, read_config_file
from equivox.core.errors import UsageError, nearest
from equivox.core.plugins import ENGINES, added, refuse_odd_identity, told_in_one_line
from equivox.core.redact import LEFT_OUT, redacted, remember_secrets, without_credentials
from equivox.core.requests import (
    Engine,
    EngineIdentity,
    Labels,
    MediaPart,
    Request,
    Response,
    Workers,
    request_key,
)
from equivox.core.task import Task
from equivox.core.yaml_files import parse_model_args
from equivox.engines.checkpoint import COMMIT, folder_label

__all__ = [
    "Engine",
    "EngineIdentity",
    "Labels",
    "MediaPart",
    "Request",
    "Response",
    "Workers",
    "engine_from_args",
    "model_label",
    "model_names",
    "named_model",
    "open_engine",
    "request_key",
]

SCHEMES = ("simulated", "vllm", "endpoint", "transformers")
"""The schemes of equivox: the text before the colon of a model's name."""


def schemes() -> list[str]:
    """Return every scheme: those of equivox, then those of installed packages."""
    return [*SCHEMES, *added(ENGINES, SCHEMES)]


class _Retirement(BaseModel):
    """What a provider does to a model on a day (`date`, as 2026-12-01), and where it says so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    date: Annotated[str, Field(pattern=r"\d{4}-\d{2}-\d{2}")]
    then: str
    source: str


class ModelFile(BaseModel):
    """The fields of a model's YAML file; unknown fields are refused.

    `gpu_memory_gb` is the memory of one GPU, in GB, on which the engine starts. `serve` is the command that serves the
    model at its `base_url`, for a model that the user must serve. `remote_code` says that the model runs code of its
    repository, which needs the user's consent. `retires` says when a provider ends the model or lets another answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str
    model_parameters: dict[str, Any]
    papers: list[str] = []
    note: str = ""
    serve: str = ""
    gpu_memory_gb: float | None = None
    remote_code: bool = False
    retires: _Retirement | None = None


def model_names() -> list[str]:
    """Return the names of the packaged models (files in `configs/models/`)."""
    return config_names("models")


def open_engine(
    model: str, tasks: Sequence[Task], workers: Workers | None = None, *, trust_remote_code: bool = False
) -> Engine:
    """Return the engine for `model`; no model is loaded yet.

    `model` is `scheme:rest` (`simulated:planted,shift=0.2`), the name of a packaged model, or a YAML file that names
    its engine. With several `workers` the engine is a pool of such engines. `trust_remote_code` is the user's consent
    to code of the model's repository. Raises UsageError for any other text, for arguments that the engine does not
    know, and for a model that needs the consent and has none.
    """
    refuse_remote_code([model], trusted=trust_remote_code)
    scheme, arguments = engine_of(model)
    if isinstance(arguments, str):
        from equivox.engines.simulated import SimulatedEngine

        return _pooled(partial(SimulatedEngine.from_spec, arguments, tasks), workers)
    if trust_remote_code and (runs_remote_code(model) or model.startswith(_LOADING)):
        arguments = {"trust_remote_code": True, **arguments}
    return engine_from_args(scheme, arguments, workers)


def _pooled(make: Callable[[], Engine], workers: Workers | None) -> Engine:
    """Return the engine that `make` opens, or a pool of several."""
    if workers is None or not workers.pooled:
        return make()
    from equivox.engines.pool import PoolEngine

    return PoolEngine(make, workers)


def engine_of(model: str) -> tuple[str, Mapping[str, Any] | str]:
    """Return the scheme and the arguments of `model` without opening its engine; UsageError for an unknown model."""
    scheme, _, rest = model.partition(":")
    if scheme == "simulated" and rest:
        return scheme, rest
    if scheme in schemes() and rest:
        return scheme, _read_arguments(scheme, rest)
    if declared := model_file(model):
        return declared.engine, declared.model_parameters
    written = [f"{known}:…" for known in schemes()]
    raise UsageError(
        f"unknown model {model!r}{nearest(model, [*written, *model_names()])}; a model is written "
        f"{', '.join(written)}, or it is the name of a file in configs/models, or a "
        ".yaml file"
    )


def _read_arguments(scheme: str, text: str) -> dict[str, Any]:
    """Return the arguments in a model's name; `transformers:NAME` has none but the model."""
    named = scheme == "transformers" and "=" not in text and not text.endswith((".yaml", ".yml"))
    return {"model_name": text} if named else parse_model_args(text)


def model_file(model: str) -> ModelFile | None:
    """Return the file that `model` names, a packaged one or a user's; None for a model that is named otherwise."""
    scheme, _, rest = model.partition(":")
    if (scheme in schemes() and rest) or not (model.endswith((".yaml", ".yml")) or model in model_names()):
        return None
    return read_config_file(ModelFile, model, "models")


def retirement(model: str) -> str:
    """Return when the provider of `model` ends it or lets another answer, as its file says; empty if it says nothing.

    >>> retirement("gpt-4o")[:40], retirement("qwen3-8b")
    ('gpt-4o: from 2027-01-14 on the provider ', '')
    """
    declared = model_file(model)
    if declared is None or (told := declared.retires) is None:
        return ""
    return f"{model}: from {told.date} on the provider {told.then} ({told.source})"


_LOADING = ("vllm:", "transformers:")
"""What the name of a model begins with that is loaded on this machine, by arguments of the user's own."""


def runs_remote_code(model: str) -> bool:
    """Return whether the file of `model` says that code of its repository runs, and does not give the user's word."""
    declared = model_file(model)
    return declared is not None and declared.remote_code and not declared.model_parameters.get("trust_remote_code")


def refuse_remote_code(models: Iterable[str], *, trusted: bool = False) -> None:
    """Raise UsageError, naming them, if `models` run code of their repositories and the user did not say so."""
    if needing := [model for model in models if not trusted and runs_remote_code(model)]:
        raise UsageError(
            f"code from the model's repository on the Hub would run with {', '.join(needing)}; read that code, then "
            "give `--trust-remote-code`, or set the model argument trust_remote_code: true in a copy of the file"
        )


def named_model(arguments: Mapping[str, Any]) -> str:
    """Return which model some arguments name, under any of the three names that the engines take; empty for none.

    >>> named_model({"dtype": "bfloat16", "model": "org/model"}), named_model({"dtype": "bfloat16"})
    ('org/model', '')
    """
    return next((str(arguments[name]) for name in ("model_name", "model", "pretrained") if arguments.get(name)), "")


def is_pinned(scheme: str, arguments: Mapping[str, Any] | str) -> bool:
    """Return whether a model is always the same files: a folder, or a commit of a repository on the Hub.

    True for a model that is not loaded on this machine: there is no revision that could be pinned.

    >>> is_pinned("vllm", {"model_name": "org/model"}), is_pinned("vllm", {"model_name": "m", "revision": "0a" * 20})
    (False, True)
    """
    if f"{scheme}:" not in _LOADING or isinstance(arguments, str):
        return True
    return Path(named_model(arguments)).is_dir() or COMMIT.fullmatch(str(arguments.get("revision", ""))) is not None


def public_settings(scheme: str) -> frozenset[str]:
    """Return the names of the arguments of an engine, and of their parts, whose values may be written down."""
    if scheme == "endpoint":
        from equivox.engines.endpoint import PUBLIC
    elif scheme == "vllm":
        from equivox.engines.vllm_arguments import PUBLIC
    elif scheme == "transformers":
        from equivox.engines.transformers import PUBLIC
    else:
        from equivox.engines.arguments import PUBLIC
    return PUBLIC | {"base_url", "model", "model_name", "revision"}


def public_name(model: str, also: Collection[str] = ()) -> str:
    """Return the name of a model as it is written down: arguments of unknown names, but for `also`, lose their values.

    >>> public_name("endpoint:model_name=m,base_url=https://me:pw@host/v1,extra_body={auth: {value: 12345}}")
    "endpoint:model_name=m,base_url=https://host/v1,extra_body={'auth': {'value': '(left out)'}}"
    >>> public_name("transformers:org/name")
    'transformers:model_name=org/name'
    """
    scheme, _, rest = model.partition(":")
    if scheme not in schemes() or scheme == "simulated" or not rest or rest.endswith((".yaml", ".yml")):
        return without_credentials(model)
    try:
        arguments = redacted(_read_arguments(scheme, rest), public_settings(scheme) | set(also))
    except UsageError:  # an engine of another package may write its arguments otherwise
        return f"{scheme}:{LEFT_OUT}"
    return f"{scheme}:{','.join(f'{name}={value}' for name, value in arguments.items())}"


def model_label(model: str) -> str:
    """Return the name of a model in tables: its engine and name, without its other arguments.

    >>> model_label("vllm:model_name=Qwen/Qwen2-Audio-7B-Instruct,dtype=bfloat16"), model_label("simulated:biased")
    ('vllm:Qwen/Qwen2-Audio-7B-Instruct', 'simulated:biased')
    >>> model_label("vllm:/models/omni.yaml"), model_label("transformers:device=cpu, pretrained=/models/tiny")
    ('vllm:omni', 'transformers:tiny')
    >>> model_label("models/omni.yaml"), model_label("transformers:./omni/hf")
    ('omni', 'transformers:omni')
    """
    scheme, _, rest = model.partition(":")
    if model.endswith((".yaml", ".yml")) and scheme not in schemes():
        return PurePath(model).stem
    if scheme not in schemes() or scheme == "simulated" or not rest:
        return model
    named = named_model(dict(part.partition("=")[::2] for part in map(str.strip, rest.split(",")))) or rest
    path = PurePath(named)
    if path.suffix in {".yaml", ".yml"}:
        return f"{scheme}:{path.stem}"
    loaded = f"{scheme}:" in _LOADING and named.count("/") > 1
    is_path = loaded or path.is_absolute() or named.startswith((".", "~"))
    return f"{scheme}:{folder_label(path) if is_path else named}"


_BELIEVED = ("simulated", "imported")
"""Names of engines whose bias counts as known, and whose answers are taken without proof that media arrived."""


def an_engine(given: Any, what: str) -> Engine:
    """Return an engine that somebody else made; UsageError for what is none, or has an odd attribute."""
    if isinstance(given, Engine) and isinstance(identity := getattr(given, "identity", None), EngineIdentity):
        refuse_odd_identity(identity, what)
        ours = any(kind.__module__.startswith(__name__) for kind in type(given).__mro__)
        if identity.engine in _BELIEVED and not ours:
            raise UsageError(f"{what} has the name {identity.engine!r} of an engine of equivox; rename it")
        for name in ("modalities", "able"):
            if isinstance(odd := getattr(given, name), str) or not isinstance(odd, Collection):
                raise UsageError(f"{what} has {odd!r:.60} as `{name}`; give a frozenset of texts")
        if not isinstance(given.audio_sent, str):
            raise UsageError(f"{what} has {given.audio_sent!r:.60} as `audio_sent`; give a text")
        return given
    raise UsageError(
        f"{what} gives {given!r:.60}, not an engine; derive its class from equivox.engines.Engine and set `identity` "
        "(docs/add_an_engine.md)"
    )


REPLICAS = "data_parallel_size"
"""vLLM's word for the number of engines of a model."""


def engine_from_args(scheme: str, arguments: Mapping[str, Any], workers: Workers | None = None) -> Engine:
    """Return the engine of `scheme` (vllm, endpoint, transformers) with these model arguments.

    With several `workers` it is a pool of such engines; the model argument `data_parallel_size` means the same. Models
    behind servers have one engine, whose limits hold for all requests: its own arguments say how many at a time.
    """
    remember_secrets(arguments, public_settings(scheme))
    if scheme == "endpoint":
        return _one_engine(scheme, arguments)
    if scheme == "vllm" and arguments.get(REPLICAS) not in (None, 1):
        workers = _replicas(arguments[REPLICAS], workers)
        arguments = {name: value for name, value in arguments.items() if name != REPLICAS}
    return _pooled(partial(_one_engine, scheme, arguments), workers)


def _replicas(given: Any, workers: Workers | None) -> Workers:
    """Return the workers that `data_parallel_size` asks for; UsageError if other ones were asked for, too."""
    asked = Workers(given, None if workers is None else workers.address)
    if workers is None or workers.count == 1:
        return asked
    if workers.count != asked.count:
        raise UsageError(
            f"the model argument {REPLICAS}={asked.count} and `workers` {workers.count} mean the same; give one of them"
        )
    return workers


def _one_engine(scheme: str, arguments: Mapping[str, Any]) -> Engine:
    # A worker of a pool opens its engine here, in a process that has not met the arguments.
    remember_secrets(arguments, public_settings(scheme))
    if scheme == "endpoint":
        from equivox.engines.endpoint import EndpointEngine

        return EndpointEngine.from_args(arguments)
    if scheme == "vllm":
        from equivox.engines.vllm import VLLMEngine

        return VLLMEngine.from_args(arguments)
    if scheme == "transformers":
        from equivox.engines.transformers import TransformersEngine

        return TransformersEngine.from_args(arguments)
    if plugin := added(ENGINES, SCHEMES).get(scheme):
        what = f"the engine {scheme} of {plugin.package}"
        with told_in_one_line(what):
            return an_engine(plugin.use()(arguments), what)
    raise UsageError(f"unknown engine {scheme!r}; known: {', '.join(s for s in schemes() if s != 'simulated')}")
