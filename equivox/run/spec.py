"""The settings of a run: the one list that the command line, Python, run files and other programs fill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from equivox.core.errors import UsageError, nearest
from equivox.core.fields import read_fields, refuse_unless
from equivox.core.progress import STOP_AFTER
from equivox.core.requests import Workers
from equivox.core.scores import DEFAULT_OPTIONS, ScoringOptions, scoring_options
from equivox.core.segments import Status, select_redone
from equivox.core.task import Task
from equivox.core.variants import (
    AS_DECLARED,
    DECLARED,
    EVERY_CONDITION,
    SYSTEM,
    parse_comparisons,
    parse_conditions,
    read_system_prompts,
    vary,
    with_system_prompts,
)
from equivox.core.yaml_files import parse_model_args

SCORING_HELP = (
    "Change the scoring: look_for=10, n_resamples=10000, min_coverage=0.8, min_count, seed, merge=none, lemma or "
    "embedding, encoder, merge_threshold."
)


def scoring_of(text: str | None) -> ScoringOptions:
    """Return the options of the scoring in a text such as "n_resamples=999,merge=embedding", or in a YAML file.

    UsageError for an option that does not exist or a value out of its range.
    """
    given = {} if text is None else parse_model_args(text, what="scoring")
    return scoring_options(**{"merge": DEFAULT_OPTIONS.merge, **given})


TYPED: Mapping[str, tuple[type, str]] = {
    "data": (str, "Read samples from this folder of built corpora, or from `sample`."),
    "limit": (int, "Use this many samples per task, spread over groups and speakers."),
    "seed": (int, "Set the seed of all requests."),
    "compare": (str, "Compare by these columns: gender,accent,gender×accent. Every request is sent once."),
    "conditions": (
        str,
        "Add control conditions: declared, text_only, silence, shuffled, wording, spoken, system=NAME or all.",
    ),
    "system": (str, "Repeat every task with each of these system prompts (text files, separated by commas)."),
    "sampling": (str, "Change the sampling: as-declared, greedy, or settings such as temperature=0.7,repeats=3."),
    "annotator": (str, "Name the judge: a model, a YAML file, or `rules` for simulated models."),
    "options": (str, SCORING_HELP),
    "retry_failed": (bool, "Repeat failed requests to the model and to the judge."),
    "redo_judge": (bool, "Repeat annotations that could not be read; keep stored responses."),
    "stop_after": (
        int,
        "Stop after this many fatal failures in a row; default: 20; 0: never.",
    ),
    "trust_remote_code": (bool, "Allow models to run code from their own repositories."),
}
"""The settings that a user types, by the names of the fields of `RunSpec`: the type of what is typed, and its help."""

_PARSED: Mapping[str, Callable[[str], Any]] = {
    "compare": parse_comparisons,
    "conditions": parse_conditions,
    "system": read_system_prompts,
    "options": scoring_of,
}
"""What makes a setting of the text that a user types."""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(map(_text, value))


def _int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "model": (_text, "the name of a model, a text"),
    "output": (lambda value: isinstance(value, str | Path), "the folder of the run, a text or a path"),
    **dict.fromkeys(("limit", "seed", "stop_after"), (_int, "an int")),
    **dict.fromkeys(
        ("retry_failed", "redo_judge", "trust_remote_code"), (lambda value: isinstance(value, bool), "True or False")
    ),
    "data": (_text, "a text or a path: `sample`, or a folder"),
    "annotator": (_text, "a text, such as a name or a YAML file"),
    "compare": (
        lambda value: isinstance(value, Sequence) and all(map(_texts, value)),
        'a text such as "gender,gender×accent", or a tuple of columns for each comparison',
    ),
    "conditions": (_texts, 'a text such as "text_only,silence", or a list of such names'),
    "sampling": (_text, 'a text such as "greedy", or "temperature=0.7,repeats=3"'),
    "system": (
        lambda value: isinstance(value, Mapping) and all(map(_text, (*value, *value.values()))),
        "a text that names files, or a text for each name",
    ),
    "options": (
        lambda value: isinstance(value, ScoringOptions),
        'ScoringOptions, or a text such as "n_resamples=999"',
    ),
}
"""What settings are in Python, once texts are parsed: a test for it, and its words."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """The settings of a run: the model's name, the tasks as declared, the folder, and the rest, see `TYPED`.

    `system` holds system prompts by their names; each is a further condition of every task. UsageError for a
    limit below 1 and a negative `stop_after`.
    """

    model: str
    tasks: Sequence[Task]
    output: Path
    data: str | None = None
    limit: int | None = None
    seed: int = 0
    compare: tuple[tuple[str, ...], ...] = ()
    conditions: tuple[str, ...] = (DECLARED,)
    sampling: str = AS_DECLARED
    system: Mapping[str, str] = field(default_factory=dict)
    annotator: str = "rules"
    options: ScoringOptions = DEFAULT_OPTIONS
    retry_failed: bool = False
    redo_judge: bool = False
    stop_after: int = STOP_AFTER
    workers: Workers = field(default_factory=Workers, compare=False)
    trust_remote_code: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"`limit` must be at least 1, got {self.limit}; leave it out to use every sample")
        if self.stop_after < 0:
            raise UsageError(f"`stop-after` must be 0 (never) or more, got {self.stop_after}")

    @classmethod
    def typed(cls, model: str, tasks: Sequence[Task], output: str | Path, **settings: Any) -> RunSpec:
        """Return the run with `settings` as a user writes them; UsageError for a name that is no setting.

        `compare`, `conditions` and `options` may be texts ("gender,accent", "text_only,silence", "n_resamples=999"),
        and `system` names text files ("fair.txt"). `workers` is a number and `ray_address` the cluster that they run
        on. None stands for the default. UsageError, too, for a setting of another type.
        """
        known = [*(own.name for own in fields(cls)), "ray_address"]
        if unknown := [name for name in settings if name not in known]:
            raise UsageError(f"a run has no setting {unknown[0]!r}{nearest(unknown[0], known)}")
        given = {name: value for name, value in settings.items() if value is not None}
        workers, address = given.pop("workers", 1), given.pop("ray_address", None)
        if isinstance(given.get("data"), Path):
            given["data"] = str(given["data"])
        for name, parse in _PARSED.items():
            if isinstance(given.get(name), str):
                given[name] = parse(given[name])
        every = {"model": model, "output": output, **given}
        for name, (right, words) in _KINDS.items():
            if name in every:
                refuse_unless(right(every[name]), name, every[name], words)
        if "options" in given:
            read_fields(ScoringOptions, asdict(given["options"]), what="scoring")
        return cls(
            model=model,
            tasks=tasks,
            output=Path(output),
            workers=workers if isinstance(workers, Workers) else Workers(workers, address),
            **given,
        )

    @property
    def redone_statuses(self) -> Collection[Status]:
        """The statuses of the stored annotations that are made again."""
        return select_redone(retry_failed=self.retry_failed, redo_judge=self.redo_judge)

    @property
    def varied(self) -> list[Task]:
        """The tasks in every condition that is asked for, on the corpus that `data` is the build of, if it is one."""
        from equivox.run.design import asked_of

        tasks = [with_system_prompts(task, self.system) for task in asked_of(self.data, self.tasks)]
        further = [name for name in map(SYSTEM.__add__, self.system) if name not in self.conditions]
        conditions = self.conditions if EVERY_CONDITION in self.conditions else (*self.conditions, *further)
        return vary(tasks, compare=self.compare, conditions=conditions, sampling=self.sampling)
