"""What a task is: a frozen declaration, no logic beyond its own checks.

A task names its corpus, prompt, media, the dimension compared, the attributes read out of each response and the
scorer. Everything that determines a response or its reading enters `Task.fingerprint`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from equivox.errors import RequestError

if TYPE_CHECKING:
    from equivox.scores import Score, ScoringTable

Role = Literal["outcome", "echo", "refusal"]

UNSTATED = "unstated"
"""The value of an attribute that a response does not mention; it counts as missing, never as a value."""

OTHER = "other"
"""The value of a closed choice that a response answers outside the offered options."""


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One named field that the annotator reads out of a response.

    Parameters
    ----------
    name
        Its column, unique within a task.
    asks
        What the annotator is to find, as a noun phrase.
    options
        The closed choice that the prompt offers; the annotator may also say `other` or `unstated`. Empty for an
        open attribute, whose value is a short noun phrase.
    count
        How many values one response gives (three hobbies); every one of them counts in the scores.
    role
        `outcome` enters the task's score; `echo` (what the model took the person for) and `refusal` are scored
        apart and never averaged into it.
    """

    name: str
    asks: str
    options: tuple[str, ...] = ()
    count: int = 1
    role: Role = "outcome"


REFUSAL = Attribute(
    name="refusal", asks="whether the response declines the request", options=("yes", "no"), role="refusal"
)
"""Read out of every response of every task; its own outcome, never mixed into the others."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Verbatim text sent with every item; `{column}` placeholders are filled from the item's columns."""

    name: str
    version: int
    text: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Media:
    """One media item sent with the prompt: its kind and the corpus column that holds it."""

    kind: Literal["audio", "image"]
    column: str


AUDIO = Media(kind="audio", column="audio")


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the model decodes.

    `temperature` 0 is greedy, `top_k` 0 keeps every token. Each of the `repeats` responses of an item has its own
    seed. `stop` ends a response before any of these texts; `logprobs` asks for that many per token (0: none).
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    frequency_penalty: float = 0.0
    max_new_tokens: int = 512
    repeats: int = 1
    stop: tuple[str, ...] = ()
    logprobs: int = 0


GREEDY = Sampling()


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Which corpus a task reads.

    `corpus` is a builder's name (`equivox data list`). A corpus of one's own also has `table`, the CSV that lists
    its clips, and may say in which `folder` they lie, what its `columns` are called there, and `where` to look;
    then nothing needs to be built.
    """

    corpus: str
    table: Path | None = None
    folder: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


Scorer = Callable[["Task", "ScoringTable"], Sequence["Score"]]
"""Pure: the task and the table of its annotated responses → scores."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One benchmark task.

    Parameters
    ----------
    name
        `family:task`, as typed on the command line.
    version
        Raised whenever prompt, data or attributes change.
    card
        Data, paper, departures and what the numbers cannot say: the docstring of the file that declares it.
    group
        The demographic column compared; several are crossed.
    cluster
        The column of the unit that carries the group.
    strata
        The columns held equal between groups.
    """

    name: str
    version: int
    card: str
    data: DataSource
    prompt: Prompt
    group: tuple[str, ...]
    cluster: str
    scorer: Scorer = field(repr=False)
    attributes: tuple[Attribute, ...]
    media: tuple[Media, ...] = (AUDIO,)
    strata: tuple[str, ...] = ()
    sampling: Sampling = GREEDY
    arm: str = "audio"

    def __post_init__(self) -> None:
        names = [a.name for a in self.attributes]
        if len(set(names)) != len(names):
            raise RequestError(f"task {self.name}: `attributes` repeat a name, got {names}; rename one")
        if REFUSAL not in self.attributes:
            raise RequestError(f"task {self.name}: `attributes` lack REFUSAL; add it, so that refusals are counted")

    @property
    def family(self) -> str:
        """The part of the name before the colon: tasks of one family are compared and averaged together."""
        return self.name.partition(":")[0]

    @property
    def dimension(self) -> str:
        """The name of what is compared, e.g. `gender` or `gender × accent`."""
        return " × ".join(self.group)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute called `name`; KeyError if the task has none."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(name)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything that determines what is asked and how the answers are read."""
        return digest(
            {
                "name": self.name,
                "version": self.version,
                "corpus": self.data.corpus,
                "prompt": dataclasses.asdict(self.prompt),
                "group": self.group,
                "cluster": self.cluster,
                "strata": self.strata,
                "media": [dataclasses.asdict(m) for m in self.media],
                "sampling": dataclasses.asdict(self.sampling),
                "attributes": [dataclasses.asdict(a) for a in self.attributes],
                "arm": self.arm,
            }
        )

    @cached_property
    def attributes_digest(self) -> str:
        """SHA-256 over what is read out of a response: tasks that read the same share their annotations."""
        return digest([dataclasses.asdict(a) for a in self.attributes])


def digest(content: Any) -> str:
    """Return the SHA-256 hex digest of `content` in canonical JSON.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
