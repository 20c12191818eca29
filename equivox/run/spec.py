"""The settings of a run: the one list that the command line, Python, run files and other programs fill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import AfterValidator, BeforeValidator

from equivox.core.errors import UsageError, nearest
from equivox.core.fields import checked, read_fields
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


def check_options(options: ScoringOptions) -> ScoringOptions:
    """Return options made in Python; UsageError for one of another type or out of its range."""
    read_fields(ScoringOptions, asdict(options), what="scoring")
    return options


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


def _text_or(parse: Callable[[str], Any]) -> BeforeValidator:
    """Return what makes a setting of the text that a user types; other values are those of Python."""
    return BeforeValidator(lambda given: parse(given) if isinstance(given, str) else given)


_Names = Annotated[Sequence[str], AfterValidator(tuple)]


@checked
@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """The settings of a run: the model's name, the tasks as declared, the folder, and the rest, see `TYPED`.

    Settings may be texts as a user types them ("gender,accent", "text_only,silence", "n_resamples=999"), and `system`
    the names of text files ("fair.txt"), whose texts become further conditions of every task. UsageError for a setting
    of another type or out of its range.
    """

    model: str
    tasks: Sequence[Task]
    output: Annotated[Path, _text_or(Path)]
    data: Annotated[str | None, BeforeValidator(lambda given: str(given) if isinstance(given, Path) else given)] = None
    limit: Annotated[int, Ge(1)] | None = None
    seed: int = 0
    compare: Annotated[Sequence[_Names], _text_or(parse_comparisons), AfterValidator(tuple)] = ()
    conditions: Annotated[_Names, _text_or(parse_conditions)] = (DECLARED,)
    sampling: str = AS_DECLARED
    system: Annotated[Mapping[str, str], _text_or(read_system_prompts)] = field(default_factory=dict)
    annotator: str = "rules"
    options: Annotated[ScoringOptions, _text_or(scoring_of), AfterValidator(check_options)] = DEFAULT_OPTIONS
    retry_failed: bool = False
    redo_judge: bool = False
    stop_after: Annotated[int, Ge(0)] = STOP_AFTER
    workers: Workers = field(default_factory=Workers, compare=False)
    trust_remote_code: bool = field(default=False, compare=False)

    @classmethod
    def typed(cls, model: str, tasks: Sequence[Task], output: str | Path, **settings: Any) -> RunSpec:
        """Return the run with `settings`, of which None stands for the default; UsageError for one that is none.

        `workers` may be a number, and `ray_address` the cluster that they run on.
        """
        known = [*(own.name for own in fields(cls)), "ray_address"]
        if unknown := [name for name in settings if name not in known]:
            raise UsageError(f"a run has no setting {unknown[0]!r}{nearest(unknown[0], known)}")
        given = {name: value for name, value in settings.items() if value is not None}
        workers, address = given.pop("workers", 1), given.pop("ray_address", None)
        if not isinstance(workers, Workers):
            workers = Workers(workers, address)
        try:
            return cls(model=model, tasks=tasks, output=output, workers=workers, **given)  # type: ignore[arg-type]
        except UsageError as error:
            raise UsageError(str(error).removeprefix(f"{cls.__name__}: ")) from None

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
        return vary(
            tasks, compare=[tuple(columns) for columns in self.compare], conditions=conditions, sampling=self.sampling
        )
