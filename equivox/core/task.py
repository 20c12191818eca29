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

from equivox.core.errors import RequestError

if TYPE_CHECKING:
    import random

    from equivox.core.scores import Score, Scored, ScoringTable
    from equivox.core.segments import Part, Reading
    from equivox.engines.simulated import Script

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
    at_least
        Fewer values than `count` will do, down to this many; None asks for exactly `count`.
    words
        Each value with the words that say it, for the annotator `rules` and for reference models; where empty, the
        packaged vocabulary counts, or the options themselves.
    role
        `outcome` enters the task's score; `echo` (what the model took the person for) and `refusal` are scored
        apart and never averaged into it.
    """

    name: str
    asks: str
    options: tuple[str, ...] = ()
    count: int = 1
    role: Role = "outcome"
    at_least: int | None = None
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_list(self) -> bool:
        """Whether the annotator answers with a list."""
        return self.count > 1 or self.at_least is not None


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


@dataclass(frozen=True, kw_only=True)
class WorkedExample:
    """A made-up text and how it is to be read, shown to a model that annotates.

    `values` holds one value per attribute, several for a list; an attribute that is not named is `unstated`, a
    refusal that is not named is "no".
    """

    text: str
    values: Mapping[str, str | tuple[str, ...]]

    @classmethod
    def of(cls, text: str, values: Mapping[str, str | Sequence[str]]) -> WorkedExample:
        """Build one from plain values, as a YAML file gives them."""
        return cls(text=text, values={k: v if isinstance(v, str) else tuple(v) for k, v in values.items()})


@dataclass(frozen=True, kw_only=True)
class Patch:
    """Hidden states carried from one prompt into another, before the model answers the second.

    The hidden states after layer `source_layer` (counted from 0), at the tokens of the prompt from the first to the
    last of `source_span` (`{column}` placeholders, both included), take the place of those after `target_layer` at the
    words `target_token` of the prompt `target`, whose answer begins with `answer`. That word is written as often as
    there are source tokens, so that each has one.
    """

    source_span: tuple[str, str]
    source_layer: int
    target: str
    target_token: str
    target_layer: int
    answer: str = ""


Column = str | int | float | None

Presentations = Callable[[Mapping[str, Column], "random.Random"], Sequence[Mapping[str, str]]]
"""An item's columns → the ways in which it is asked (the orders of its options): each gives further placeholders of
the prompt, kept as facts. The generator is seeded by the run's seed and the item."""

Scorer = Callable[["Task", "ScoringTable"], "Sequence[Score] | Scored"]
"""Pure: the task and the table of its annotated responses → scores, and tables worth keeping."""

FollowUp = Callable[[Sequence[tuple["Task", "ScoringTable"]]], "Sequence[Part]"]
"""All tasks of one family in one arm, read → what the annotator is asked about them together."""

OverallScorer = Callable[[Sequence[tuple["Task", "ScoringTable"]]], "Sequence[Score] | Scored"]
"""Pure: all tasks of one family in one arm → what only all of them together can say."""

TRANSCRIPT = 'Transcript of the recording: "{text}"\n\n'
"""What stands before the prompt where the recording is not sent."""


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
    compares
        What is compared within each response, where no column of the corpus is (`group` is empty then).
    keeps
        Columns of the corpus that readings, scorers and reference models are told (`facts`).
    presentations
        The ways in which each item is asked; None: once, as it is.
    reading
        How a response is read, part by part; None: as a whole, by the attributes.
    instructions, examples
        What an annotator is told beside the attributes: further rules, and worked examples.
    script
        What reference models say; None: one sentence per attribute, from the vocabularies.
    patch
        Hidden states that replace those of another prompt; None: the model answers the prompt itself. Engines that have
        no hidden states refuse it.
    follow_up
        What the annotator is asked once all responses are read: about findings, rather than responses.
    overall
        Scores all tasks of the family together, once they are scored one by one.
    without_media
        What stands before the prompt in the arm `text_only`.
    arms
        The arms that the task offers, the declared one first; None: all that its media allow.
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
    compares: str = ""
    keeps: tuple[str, ...] = ()
    presentations: Presentations | None = field(default=None, repr=False)
    reading: Reading | None = field(default=None, repr=False)
    instructions: str = ""
    examples: tuple[WorkedExample, ...] = field(default=(), repr=False)
    script: Script | None = field(default=None, repr=False)
    patch: Patch | None = None
    follow_up: FollowUp | None = field(default=None, repr=False)
    overall: OverallScorer | None = field(default=None, repr=False)
    without_media: str = TRANSCRIPT
    arms: tuple[str, ...] | None = None

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
        return " × ".join(self.group) or self.compares

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
                "keeps": self.keeps,
                "reading": None if self.reading is None else dict(self.reading.identity),
                "instructions": self.instructions,
                "examples": [[example.text, dict(example.values)] for example in self.examples],
                "without_media": self.without_media,
            }
            | ({} if self.patch is None else {"patch": dataclasses.asdict(self.patch)})
        )


def digest(content: Any) -> str:
    """Return the SHA-256 hex digest of `content` in canonical JSON.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
