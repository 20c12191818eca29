"""Tasks: frozen declarations that contain no logic except their checks.

A task names its corpus, its prompt, its media, the dimension that is compared, how responses are annotated, and the
metric. Everything that determines a response or its annotation enters `Task.fingerprint`.
"""

from __future__ import annotations

import dataclasses
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, PlainSerializer

from equivox.core.attributes import OTHER, REFUSAL, UNSTATED, Attribute, Role, WorkedExample
from equivox.core.errors import UsageError
from equivox.core.fields import Code, checked
from equivox.core.hashing import digest
from equivox.core.metric import Metric
from equivox.core.segments import AnnotationScheme, Segment, SegmentTool

if TYPE_CHECKING:
    from equivox.core.requests import Request

__all__ = [
    "AUDIO",
    "CROSSED",
    "GREEDY",
    "IMAGE",
    "OTHER",
    "REFUSAL",
    "TRANSCRIPT",
    "UNSTATED",
    "AnnotationScheme",
    "Attribute",
    "Column",
    "DataSource",
    "Media",
    "Patch",
    "Presentations",
    "Prompt",
    "Role",
    "Sampling",
    "SimulatedAnswers",
    "Task",
    "WorkedExample",
    "digest",
]

Column = str | int | float | None

CROSSED = " × "
"""What stands between the columns of a crossed dimension, and between the values of a crossed group."""

Presentations = Callable[[Mapping[str, Column], random.Random], Sequence[Mapping[str, str]]]
"""Function of a sample's columns that returns its presentations (such as orders of its options): each is a mapping of
further placeholders, kept as metadata. The generator is seeded by the run's seed and the sample."""

PLACEHOLDER = re.compile(r"\{([^\W\d]\w*)\}")
"""What a column of the sample fills in a prompt: its name in braces, of letters of any language, digits and `_`."""

TRANSCRIPT = 'Transcript of the recording: "{text}"\n\n'
"""The text before the prompt when the recording is not sent."""


@checked
@dataclass(frozen=True, kw_only=True)
class Patch:
    """Hidden states that are copied from one prompt into another before the model answers the second.

    The hidden states after layer `source_layer` (counted from 0), at the tokens of the prompt from the first to the
    last of `source_span` (`{column}` placeholders, both included), replace those after `target_layer` at the word
    `target_token` of the prompt `target`, whose answer begins with `answer`. The word is written once for every source
    token.
    """

    source_span: tuple[str, str]
    source_layer: int
    target: str
    target_token: str
    target_layer: int
    answer: str = ""


Need = Literal["turns", "speech", "hidden states"]
"""What a prompt can need of an engine beside a text as the answer: that it takes the answers of turns before it, that
it answers by voice, or that it shows its hidden states."""


@checked
@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Verbatim text sent with every sample; `{column}` placeholders are filled from the sample's columns.

    Parameters
    ----------
    name, version, text, source
        The prompt's name, its version, its text and the publication that the text comes from.
    without_media
        The text before the prompt in the condition `text_only`.
    system
        The system prompt that is sent before the message; empty: none.
    presentations
        Returns the presentations of a sample; None: each sample is presented once, as it is.
    patch
        Hidden states that replace those of another prompt; None: the model answers this prompt. Engines without
        access to hidden states refuse it.
    before
        What was said to the model before, in the order of the turns: each of these texts was answered, and the answers
        are sent with it.
    spoken
        Whether the model answers with its voice.
    """

    name: str
    version: int
    text: str
    source: str
    without_media: str = TRANSCRIPT
    system: str = ""
    presentations: Annotated[Presentations, Code()] | None = field(default=None, repr=False)
    patch: Patch | None = None
    before: tuple[str, ...] = ()
    spoken: bool = False

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines what is sent, as plain values."""
        ways = self.presentations
        # Prompts without these keep the identity that they had before there were any.
        further = {
            "system": self.system,
            "before": self.before,
            "spoken": self.spoken,
        }
        return {name: value for name, value in further.items() if value} | {
            "name": self.name,
            "version": self.version,
            "text": self.text,
            "source": self.source,
            "without_media": self.without_media,
            "presentations": None if ways is None else f"{ways.__module__}:{ways.__qualname__}",
            "patch": None if self.patch is None else dataclasses.asdict(self.patch),
        }

    @property
    def needs(self) -> set[Need]:
        """What an engine must be able to do for it, beside answering one text."""
        asked: dict[Need, bool] = {
            "turns": bool(self.before),
            "speech": self.spoken,
            "hidden states": self.patch is not None,
        }
        return {need for need, wanted in asked.items() if wanted}


@cache
def placeholders_of(text: str) -> tuple[str, ...]:
    """Return the columns that fill the placeholders of a prompt, in their order.

    >>> placeholders_of("{d1} meets {d2}.")
    ('d1', 'd2')
    >>> placeholders_of("{Überschrift}: {متن} {2} {a b}")
    ('Überschrift', 'متن')
    """
    return tuple(PLACEHOLDER.findall(text))


def in_single_braces(text: str, names: str = r"[^\W\d]\w*") -> str:
    """Return a text whose placeholders, those that match `names`, stand in single braces; other libraries double them.

    >>> in_single_braces("{{ name }} and {{title}}, {pronoun}"), in_single_braces("{{name}} {{title}}", "name")
    ('{name} and {title}, {pronoun}', '{name} {{title}}')
    """
    return re.sub(rf"\{{\{{\s*({names})\s*\}}\}}", r"{\1}", text)


@checked
@dataclass(frozen=True, kw_only=True)
class Media:
    """One media item sent with the prompt: its kind and the corpus column that holds it."""

    kind: Literal["audio", "image"]
    column: str


AUDIO = Media(kind="audio", column="audio")
IMAGE = Media(kind="image", column="image")


Temperature = Annotated[float, Ge(0)]
TopP = Annotated[float, Gt(0), Le(1)]
TopK = Annotated[int, Ge(0)]
Penalty = Annotated[float, Ge(-2), Le(2)]
TokenLimit = Annotated[int, Ge(1)]


@checked
@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings of the decoding.

    `temperature` 0 is greedy, `top_k` 0 keeps every token. Each of the `repeats` responses to a sample has its own
    seed. A response ends before any text in `stop`; `logprobs` is the number requested per token (0: none). `reasoning`
    is a regular expression that matches reasoning in a mark that is not known (`equivox.core.reasoning`).
    """

    temperature: Temperature = 0.0
    top_p: TopP = 1.0
    top_k: TopK = 0
    frequency_penalty: Penalty = 0.0
    max_new_tokens: TokenLimit = 512
    repeats: Annotated[int, Ge(1), Le(1_000_000)] = 1
    stop: tuple[str, ...] = ()
    logprobs: Annotated[int, Ge(0)] = 0
    reasoning: str = ""

    def __post_init__(self) -> None:
        try:
            re.compile(self.reasoning)
        except re.error as error:
            raise UsageError(f"`reasoning` must be a regular expression, but {self.reasoning!r}: {error}") from None

    def as_dict(self) -> dict[str, Any]:
        """Return the settings by name, without an empty `reasoning`: older requests keep their keys."""
        return {name: value for name, value in vars(self).items() if name != "reasoning" or value}


GREEDY = Sampling()

FilePath = Annotated[Path, PlainSerializer(lambda path: str(path.absolute()))]
Texts = Annotated[Sequence[str], AfterValidator(tuple)]


@checked
@dataclass(frozen=True, kw_only=True)
class DataSource:
    """The corpus of a task.

    `builder` names the dataset builder that opens it, if its name differs from that of the corpus.

    `corpus` is a builder's name (`equivox data build`). A custom corpus also has `table`, which lists its clips, images
    or texts (`kind`); optional are `folder` (where the clips are), `columns` (our name → the name in the table),
    `where` (the rows to use), `values` (our name → the values that a column can have) and `missing` (the texts that
    mean a missing value). It needs no build. `clips` are columns with the clips or images of further turns.

    `swap` gives each text to every group: by the column of the groups that it makes, the words that fill a placeholder
    in each group. `in_prompts` names the placeholders that every prompt holds; all others must stand in the texts.
    """

    corpus: str
    builder: str = ""
    table: FilePath | None = None
    folder: FilePath | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str | Texts] = field(default_factory=dict)
    values: Mapping[str, Texts] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    kind: Literal["audio", "image", "text"] = "audio"
    swap: Mapping[str, Mapping[str, Mapping[str, Texts]]] = field(default_factory=dict)
    in_prompts: tuple[str, ...] = ()
    clips: tuple[str, ...] = ()

    @property
    def wanted(self) -> dict[str, Sequence[str]]:
        """The values of `where`, one or several for each column."""
        return {column: [own] if isinstance(own, str) else own for column, own in self.where.items()}


class SimulatedAnswers(ABC):
    """Answers of simulated models for tasks that need more than one sentence per attribute."""

    @abstractmethod
    def answer(self, model: str, settings: Any, request: Request, rng: random.Random) -> str:
        """Return the answer of the simulated model called `model`; `rng` is seeded by the request."""

    def tool(self, segment: Segment) -> SegmentTool | None:
        """Return rules that annotate a segment of a simulated response; None when the scheme's tools annotate it.

        They annotate only responses of simulated models.
        """
        return None


@checked
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
        Data, paper, departures and limits of the numbers: the docstring of the file that declares the task.
    data, prompt, media, sampling
        The corpus, the text and the media sent, and how the model decodes.
    group
        The demographic column that is compared; several columns are crossed.
    cluster
        The column of the unit that carries the group (a speaker), or that is in every group (a CV with the names
        swapped); which of the two is read off the data.
    strata
        The columns that are held equal between groups.
    blocks
        The columns that describe a cluster and are held where clusters are permuted, such as the gender of a speaker
        when accents are compared. The test and the interval then ignore differences between blocks.
    items
        The columns of what was asked about (the sentence, the job); with them, scores have a second interval, for new
        items, and a test within items, which sees sides that cancel.
    compares
        The dimension that is compared within each response; `group` is empty then.
    metadata
        Columns of the corpus that travel with a sample: to the annotation, the metric and simulated models.
    annotation
        How a response is annotated: attributes, rules and segments.
    metric
        The metric that scores the annotated samples.
    simulate
        The answers of simulated models; None: one sentence per attribute, from the vocabularies.
    asked_as
        The name of the task whose requests and answers are compared here by other columns; empty: its own.
    condition
        The declared condition: `audio`, `image` or `text`, by what is sent.
    conditions
        The conditions of the task, the declared one first; None: all that its media allow.
    interventions
        Texts that may change the answers, by the conditions that they make: system prompts (`system=NAME`), and other
        wordings of the prompt (`wording=NAME`).
    turns
        What is said to the model after its first answer, turn by turn; each is a condition, `turn=2` the first.
    turn_media
        What is sent with each of these turns besides its text: the column of the corpus that holds a clip or an image
        of the kind that the first turn sends; empty: nothing. Without it no turn but the first sends media.
    title, unit_name, group_labels, main_attribute, says
        Words of the screen; they change no request and no number. `title` names the task, `unit_name` its units in the
        plural (`speakers`), `group_labels` its groups (`female: women`). The values of `main_attribute` are shown
        first. `says` has a phrase for a value (`invite: are invited`); other values are quoted.
    """

    name: str
    version: int
    card: str
    data: DataSource
    prompt: Prompt
    group: tuple[str, ...]
    cluster: str
    annotation: Annotated[AnnotationScheme, Code()]
    metric: Annotated[Metric, Code()] = field(repr=False)
    media: tuple[Media, ...] = (AUDIO,)
    strata: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    sampling: Sampling = GREEDY
    compares: str = ""
    metadata: tuple[str, ...] = ()
    simulate: Annotated[SimulatedAnswers, Code()] | None = field(default=None, repr=False)
    asked_as: str = ""
    condition: str = "audio"
    conditions: tuple[str, ...] | None = None
    interventions: Mapping[str, str] = field(default_factory=dict)
    turns: tuple[str, ...] = ()
    turn_media: tuple[str, ...] = ()
    title: str = ""
    unit_name: str = ""
    group_labels: Mapping[str, str] = field(default_factory=dict)
    main_attribute: str = ""
    says: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The part of the name before the colon: tasks of one family are compared and averaged together."""
        return self.name.partition(":")[0]

    @property
    def dimension(self) -> str:
        """The name of the dimension that is compared, e.g. `gender` or `gender × accent`."""
        return CROSSED.join(self.group) or self.compares

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that are annotated, including the refusal."""
        return self.annotation.attributes

    @property
    def outcomes(self) -> list[Attribute]:
        """The attributes that are scored as outcomes; the others are echoes, and the refusal."""
        return [attribute for attribute in self.attributes if attribute.role == "outcome"]

    def attribute(self, name: str) -> Attribute:
        """Return the attribute called `name`; KeyError if the task has none."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(name)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything that determines what is asked and how the answers are annotated."""
        return digest(
            {
                "name": self.name,
                "version": self.version,
                "corpus": self.data.corpus,
                "prompt": self.prompt.identity,
                "group": self.group,
                "cluster": self.cluster,
                "strata": self.strata,
                "media": [dataclasses.asdict(m) for m in self.media],
                "sampling": self.sampling.as_dict(),
                "condition": self.condition,
                "metadata": self.metadata,
                "annotation": [dict(self.annotation.identity), self.annotation.digest],
            }
        )
