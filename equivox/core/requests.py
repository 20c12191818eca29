"""Requests, responses, and the base class of an engine, which turns one into the other."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from numbers import Real
from typing import Any, Literal, Self

from equivox.core.errors import UsageError
from equivox.core.hashing import KEY_LENGTH, digest
from equivox.core.notes import ErrorKind
from equivox.core.plain import as_plain
from equivox.core.plugins import told_in_one_line
from equivox.core.progress import Event
from equivox.core.redact import redacted
from equivox.core.task import Need, Patch, Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaPart:
    """One media item of a message; `load` reads its bytes only when an engine needs them.

    `duration_s` is the length of audio in seconds, None if it is not known or the item is an image.
    """

    kind: Literal["audio", "image"]
    sha256: str
    name: str
    duration_s: float | None = None
    load: Callable[[], bytes] = field(compare=False, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """The speaker's group and the plan's metadata; only simulated models see them, no message contains them."""

    group: str = ""
    groups: tuple[str, ...] = ()
    cluster: str = ""
    stratum: str = ""
    block: str = ""
    item: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One turn of a dialogue that is over: what was said to the model, with its first `n_media` media, and its answer.

    The answer is empty in a plan, which is made before the model is asked.
    """

    text: str
    n_media: int = 0
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One generation to be made: media first, then the text, as one user message, after a system prompt if it has one.

    `key` is the content hash under which the response is stored (see `request_key`). `schema` is the JSON schema that
    the answer must follow; only annotators set it. With `patch` the model does not answer the text: hidden states are
    taken from `patched_span` of it (character offsets). `before` has the turns of a dialogue that come before the text;
    `media` holds those of all turns, in order. If it is `spoken`, the model answers with its
    voice.
    """

    key: str
    task: str
    sample_id: str
    repeat: int = 0
    condition: str
    media: tuple[MediaPart, ...] = ()
    text: str
    sampling: Sampling
    seed: int
    labels: Labels = Labels()
    schema: Mapping[str, Any] | None = None
    patch: Patch | None = None
    patched_span: tuple[int, int] = (0, 0)
    system: str = ""
    before: tuple[Exchange, ...] = ()
    spoken: bool = False


@dataclass(frozen=True, kw_only=True)
class Response:
    """The answer to one request. A failure is a response too: `text` is None and `error` is set.

    `error_kind` says what failed, where that decides what to do. `text` is the answer alone; the reasoning of a
    model that reasons first is `thinking`. `logprobs` is JSON text, one entry per token, None unless asked for.
    `finish_reason` is `stop`, `length` (cut off by the token limit) or `content_filter` (the provider withheld the
    answer). `fatal` names a failure that every other request would meet too, such as a refused key; it is not
    stored.
    `sound` is a spoken answer, an audio file, and `text` its transcript. It is stored as a file of its own, and the
    record has its SHA-256.
    `media_items` and `media_tokens` count what the engine used, not what it received; an engine that does not count
    media tokens reports None.
    """

    key: str
    text: str | None
    error: str | None = None
    error_kind: ErrorKind | None = None
    thinking: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    media_items: int = 0
    media_tokens: int | None = None
    logprobs: str | None = None
    fatal: str | None = None
    sound: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class EngineIdentity:
    """Identity of the answering model: part of every response's key and of the manifest.

    `reads_labels` is true for simulated models, whose answers depend on the labels of the request. `public` names the
    settings that may be written down, beside those of the sampling.
    """

    engine: str
    model: str
    revision: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    reads_labels: bool = False
    public: frozenset[str] = frozenset()

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the identity."""
        return digest(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the identity as plain JSON values."""
        named = {name: getattr(self, name) for name in ("engine", "model", "revision", "reads_labels")}
        return named | {"settings": dict(self.settings)}

    def as_public_dict(self) -> dict[str, Any]:
        """Return the identity as it is written down: without credentials, and without settings of unknown names.

        `digest` is that of all settings: it tells models apart whose settings were left out, and makes keys again.
        """
        declared = {field.name for kind in (EngineIdentity, Sampling) for field in dataclasses.fields(kind)}
        return {**redacted(self.as_dict(), self.public | declared), "digest": self.digest}

    @classmethod
    def from_public_dict(cls, record: Mapping[str, Any]) -> EngineIdentity:
        """Return the identity that `as_public_dict` wrote, with the digest of the whole."""
        identity = cls(**{name: value for name, value in record.items() if name != "digest"})
        identity.__dict__["digest"] = record["digest"]
        return identity


class Engine:
    """Base class of an engine: everything that is asked of one stands here.

    A subclass sets `identity` and writes `generate`. All else has a default, which is right for a model that answers
    texts in this process: it accepts every request, and there is nothing to free.
    """

    identity: EngineIdentity
    modalities: frozenset[str] = frozenset({"text"})
    """What the model takes: `text`, `audio`, `image`."""
    able: frozenset[Need] = frozenset()
    """What it can do beside answering one text. Tasks that need more are refused."""
    audio_sent: str = ""
    """How clips are sent to the model, in words, for the manifest; empty if the engine does not say."""
    gpus: int = 0
    """The number of GPUs that the model is spread over; several workers reserve as many for each."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield one response per request, in any order, each as soon as it is finished.

        A request that fails yields a response with its error, and disturbs no other.
        """
        raise NotImplementedError

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for a request that this engine cannot answer, before anything is written."""

    def close(self) -> None:
        """Free the engine's memory and connections; the next request may load the model again."""

    def __enter__(self) -> Self:
        """Return the engine, which is closed at the end of the `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def usage(self) -> Mapping[str, float]:
        """What was used of a server since the engine was opened: requests, retries, tokens; empty without one."""
        return {}

    @property
    def named(self) -> str:
        """The engine and its model in words, for messages."""
        return f"the engine {self.identity.engine} of {self.identity.model}"

    @property
    def used(self) -> dict[str, float]:
        """The `usage`, without what is no number; RunError, in one line, if the engine cannot say it."""
        with told_in_one_line(self.named):
            counted = ((name, used) for name, used in self.usage.items() if isinstance(used, Real))
            return {name: as_plain(used) for name, used in counted if math.isfinite(used)}

    def event(self, stage: str, done: int, total: int, *, failed: int = 0) -> Event:
        """Return how far a stage is, with what this engine says of its workers and of what it used."""
        return Event(stage, done, total, failed, self.waiting, self.used)

    @property
    def served_as(self) -> Collection[str]:
        """The names under which servers answered."""
        return ()

    @property
    def waiting(self) -> str:
        """What a pool waits for, in words: the workers that are loaded, asked for and lost; empty without a pool."""
        return ""


@dataclass(frozen=True)
class Workers:
    """A number of engines of one model; `address` is that of a Ray cluster, None for this machine.

    UsageError for a number that is not 1 or more.
    """

    count: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise UsageError(f"`workers` must be a whole number of 1 or more, got {self.count!r}")

    @property
    def pooled(self) -> bool:
        """Whether engines run in a pool: there are several workers, or a cluster."""
        return self.count > 1 or self.address is not None


def request_key(identity: EngineIdentity, request: Request, seed: int) -> str:
    """Return the hash of everything that determines the response to `request` with this seed; its own does not count.

    That is: model and revision, the system prompt and the rendered message, the media's bytes (by digest), sampling,
    seed and condition, and whether the answer is spoken; for a simulated model also the task and the labels. Of
    the turns before, it holds what was said to the model: the answers are those that the run stores under the keys of
    these turns (`follows` in the plan). Two tasks that ask a real model the same
    question about the same sample share its response.
    """
    labels, patch, (start, end) = request.labels, request.patch, request.patched_span
    seen = [request.task, labels.group, labels.groups, labels.cluster, labels.stratum, dict(labels.metadata)]
    return digest(
        [
            identity.digest,
            request.text,
            [[part.kind, part.sha256] for part in request.media],
            _sampling_digest(request.sampling),
            seed,
            request.condition,
            seen if identity.reads_labels else None,
            None if patch is None else {"patch": dataclasses.asdict(patch), "start": start, "end": end},
            # Requests without these keep the keys that they had before there were any.
            *([request.system] if request.system else []),
            *([{"before": [[turn.text, turn.n_media] for turn in request.before]}] if request.before else []),
            *([{"spoken": True}] if request.spoken else []),
        ]
    )[:KEY_LENGTH]


@cache
def _sampling_digest(sampling: Sampling) -> str:
    return digest(sampling.as_dict())
