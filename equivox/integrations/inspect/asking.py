"""What one evaluation asks: a task with its settings, its corpus, and the ids that logs have for its requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.core.requests import EngineIdentity, Request, request_key
from equivox.core.segments import check_tools
from equivox.core.task import Task
from equivox.core.task_checks import refuse_unable
from equivox.core.variants import AS_DECLARED, DECLARED, SYSTEM, read_system_prompts
from equivox.dataset_builders.corpus import Corpus
from equivox.run.generating import IMPORTED
from equivox.run.pipeline import open_corpora
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

PACKAGE = "equivox"
"""The prefix of the tasks' names in inspect_ai's registry, and the key of what logs hold for equivox alone."""

ANY_MODEL = EngineIdentity(engine="inspect", model="any", revision="")
"""The identity behind the ids of samples: the same request has one id, whatever model answered it."""


def sample_id(request: Request) -> str:
    """Return the id of a request in logs: its key, but for any model."""
    return request_key(ANY_MODEL, request, request.seed)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an evaluation: arguments of its task in inspect_ai (`-T limit=24`), as options of `equivox run`.

    `task` is the task's name as declared; `condition` is a single one. `system` is the text of the system
    prompt that the condition `system=NAME` names: a log holds it, so that no log names a file to be read.
    """

    task: str
    data: str | None = None
    limit: int | None = None
    seed: int = 0
    condition: str = DECLARED
    sampling: str = AS_DECLARED
    compare: str | None = None
    system: str | None = None

    @property
    def prompts(self) -> dict[str, str]:
        """The system prompt by its name; empty without one."""
        return {} if self.system is None else {self.condition.removeprefix(SYSTEM): self.system}

    def spec(self, output: Path, model: str) -> RunSpec:
        """Return the settings of the run that stores answers to the task, which `model` gave elsewhere."""
        settings = {name: value for name, value in asdict(self).items() if name not in ("task", "condition")}
        settings["system"] = self.prompts
        return RunSpec.typed(
            f"{IMPORTED}:{model}", resolve_tasks(self.task), output, conditions=(self.condition,), **settings
        )


def with_system(condition: str, file: str | None) -> dict[str, str]:
    """Return the settings `condition` and `system` for the system prompt in `file`; {} without one.

    RequestError as `read_system_prompts`, for several files, and for a condition beside it.
    """
    if file is None:
        return {}
    prompts = read_system_prompts(file)
    if len(prompts) > 1 or condition not in (DECLARED, *(f"{SYSTEM}{name}" for name in prompts)):
        raise RequestError(f"`system` {file!r} with `condition` {condition!r}: one condition is asked; give one file")
    ((name, text),) = prompts.items()
    return {"condition": f"{SYSTEM}{name}", "system": text}


@lru_cache(maxsize=4)
def asked(settings: Settings) -> tuple[Task, Mapping[str, Corpus]]:
    """Return the variant of the task that an evaluation with `settings` asks, and its corpus by name.

    RequestError for data that are missing, for a setting that is none, and for a task that an evaluation cannot ask.
    """
    spec = settings.spec(Path(), ANY_MODEL.model)
    if len(spec.compare) > 1:
        raise RequestError(f"`compare` is a single comparison, got {settings.compare!r}; evaluate each by itself")
    varied = spec.varied
    if len(varied) != 1:
        raise RequestError(f"`condition` is a single one, got {settings.condition!r}; evaluate each by itself")
    (task,) = varied
    refuse_unable([task], [], "inspect_ai")
    check_tools([task])
    try:
        corpora = open_corpora([task], settings.data, {})
    except RequestError as error:
        if settings.data is not None:
            raise
        raise RequestError(
            f"{task.name} reads the corpus {task.data.corpus}: give `-T data=sample` for the embedded sample, or "
            "`-T data=DIR` with DIR from `equivox data build`"
        ) from error
    return task, corpora
