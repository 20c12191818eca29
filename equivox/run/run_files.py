"""Run files: many models with one protocol, in one or several settings; a paper's run file gives all its tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from equivox.annotate import RULES, annotator_name
from equivox.configs import config_names, read_config_file
from equivox.core.errors import UsageError, nearest
from equivox.core.task import Task, digest
from equivox.core.variants import AS_DECLARED, DECLARED, System, read_system_prompts
from equivox.dataset_builders.corpus import SAMPLE
from equivox.engines import model_label, model_names, public_name, schemes
from equivox.run.spec import TYPED, RunSpec

Resolve = Callable[[str], Sequence[Task]]
"""Function that returns the tasks that a text names."""


def _joined(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Models = Annotated[list[str], Field(min_length=1)]
Joined = Annotated[str, BeforeValidator(_joined)]
Annotators = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]


class _SettingFields(BaseModel):
    """The fields of one setting of a run file; those that are given replace those of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: Models = []
    tasks: Joined = ""
    annotators: Annotators = Field(default=[RULES], validation_alias=AliasChoices("annotators", "annotator"))
    evaluations: int = Field(default=1, ge=1, le=99)
    conditions: Joined = DECLARED
    data: str | None = None
    limit: int | None = Field(default=None, ge=1)
    seed: int = 0
    compare: Joined | None = None
    system: System | None = None
    sampling: str = AS_DECLARED
    scoring: str | None = None


class RunFile(_SettingFields):
    """The fields of a run file; unknown fields are refused.

    `annotators` all read the responses, each with scores of its own; the first one's are the run's. With `evaluations`
    above 1, each reads every response that many times. `scoring` has the words of `--scoring`. `paper` names the
    published tables that the runs fill. `workers` is how many engines answer at a time. The fields of `sample` replace
    all others where the data are the embedded sample: what needs no download stands there.
    """

    models: Models
    tasks: Joined
    paper: str | None = None
    workers: int = Field(default=1, ge=1)
    settings: dict[str, _SettingFields] = {}
    sample: _SettingFields = _SettingFields()


_LONGEST_NAME = 80


@dataclass(frozen=True)
class Setting:
    """One setting of a run file: its fields, and the tasks that its models run.

    `name` is empty if the file has no settings; otherwise it is the folder that the runs of the setting go into.
    `trust_remote_code` is the user's consent to code of the models' repositories; `retry_failed` and `redo_judge` are
    wishes to repeat what failed or could not be read. No file can give them.
    """

    name: str
    file: RunFile
    tasks: Sequence[Task]
    trust_remote_code: bool = False
    retry_failed: bool = False
    redo_judge: bool = False

    @property
    def varied(self) -> list[Task]:
        """The tasks in every condition that the setting asks for."""
        return self.spec(self.file.models[0], Path()).varied

    def spec(self, model: str, output: Path) -> RunSpec:
        """Return the run of one of the models; its folder lies below `output`."""
        file = self.file
        first = file.annotators[0]
        return RunSpec.typed(
            model,
            self.tasks,
            output / self.name / folder_name(model),
            annotator=first if file.evaluations == 1 else f"{first}@1",
            trust_remote_code=self.trust_remote_code,
            retry_failed=self.retry_failed,
            redo_judge=self.redo_judge,
            options=file.scoring,
            **{name: getattr(file, name) for name in TYPED if name in RunFile.model_fields},
        )

    def names_of(self, annotator: str) -> list[str]:
        """Return the names under which the annotations of `annotator` are stored: one for each evaluation."""
        own, n = annotator_name(annotator), self.file.evaluations
        return [own] if n == 1 else [f"{own}@{number}" for number in range(1, n + 1)]


def open_run_file(
    name: str,
    *,
    data: str | None = None,
    limit: int | None = None,
    annotators: Sequence[str] | None = None,
    scoring: str | None = None,
) -> RunFile:
    """Return the run file `name`, packaged or a YAML file; what else is given replaces its fields.

    Annotators that replace those of the file read each response once.
    """
    packaged = config_names("runs")
    if not name.endswith((".yaml", ".yml")) and name not in packaged:
        raise UsageError(f"unknown run file {name!r}{nearest(name, packaged)}; known: {', '.join(packaged)}, or a file")
    declared = read_config_file(RunFile, name, "runs")
    given = _stated(declared.sample) if (data or declared.data) == SAMPLE else {}
    named = {"data": data, "limit": limit, "scoring": scoring}
    given |= {key: value for key, value in named.items() if value is not None}
    if annotators:
        given |= {"annotators": list(annotators), "evaluations": 1}
    settings = {
        own: fields.model_copy(update={**_with_system(fields, name), **given})
        for own, fields in declared.settings.items()
    }
    return declared.model_copy(update={**_with_system(declared, name), **given, "settings": settings})


def _with_system(fields: _SettingFields, file: str) -> dict[str, Any]:
    """Return the system prompts that fields of a run file name or hold, as a further value; {} without any."""
    return {"system": read_system_prompts(fields.system, Path(file).parent)} if fields.system else {}


def settings_of(
    file: RunFile, resolve: Resolve, *, models: Sequence[str] = (), tasks: str | None = None
) -> list[Setting]:
    """Return the settings of `file`, each with its models and tasks; a file without settings is one setting.

    `resolve` returns the tasks of a field.

    With `models`, these run instead of the file's: a model that the file has runs in its own settings, any other in
    all. With `tasks`, only these of the file's tasks run. UsageError if nothing is left, for tasks that the file does
    not have, and for two models of one setting with the same folder.
    """
    settings = {name: {**_stated(fields), "settings": {}} for name, fields in file.settings.items()}
    parts = [(name, file.model_copy(update=given)) for name, given in settings.items()] or [("", file)]
    known = {model for _, part in parts for model in part.models}
    asked = None if tasks is None else {task.name for task in resolve(tasks)}
    found, kept = [], set()
    for name, part in parts:
        own = [model for model in models if model in part.models or model not in known] if models else part.models
        declared = [task for task in resolve(part.tasks) if asked is None or task.name in asked]
        kept |= {task.name for task in declared}
        if own and declared:
            _refuse_one_folder(name, own)
            found.append(Setting(name, part.model_copy(update={"models": list(own)}), declared))
    if asked is not None and (other := sorted(asked - kept)):
        there = ",".join(dict.fromkeys(part.tasks for _, part in parts))
        raise UsageError(f"`tasks` names {other[0]}, which the run file does not have; it has {there}")
    if not found:
        raise UsageError("nothing is left to run: no setting has one of these models and one of these tasks")
    return found


def _stated(fields: _SettingFields) -> dict[str, Any]:
    return {name: value for name in fields.model_fields_set if (value := getattr(fields, name)) is not None}


def _refuse_one_folder(setting: str, models: Sequence[str]) -> None:
    folders: dict[str, str] = {}
    for model in models:
        other = folders.setdefault(folder_name(model), model)
        if other != model:
            raise UsageError(
                f"{other} and {model} would share the folder {Path(setting) / folder_name(model)}; rename one of the "
                "files, or run them by separate commands"
            )


def split_models(text: str) -> list[str]:
    """Return the models in `text`, which commas separate; the commas of model arguments stay.

    >>> split_models("qwen3-8b,vllm:model_name=org/a,dtype=bfloat16,mine.yaml")
    ['qwen3-8b', 'vllm:model_name=org/a,dtype=bfloat16', 'mine.yaml']
    """
    models: list[str] = []
    for part in map(str.strip, text.split(",")):
        starts = (
            part.partition(":")[0] in schemes() or part in model_names() or part.endswith((".yaml", ".yml"))
        ) and "=" not in part.partition(":")[0]
        if starts or not models or "=" not in part:
            models.append(part)
        else:
            models[-1] += f",{part}"
    return [model for model in models if model]


def folder_name(model: str) -> str:
    """Return the folder name for a model's run.

    >>> folder_name("simulated:planted,shift=0.2"), folder_name("qwen2-audio-7b-instruct"), folder_name("my/model.yaml")
    ('planted-shift=0.2', 'qwen2-audio-7b-instruct', 'model')
    >>> folder_name("endpoint:model_name=m,base_url=https://me:password@host/v1")
    'model-name=m-base-url=https-host-v1'
    """
    scheme, _, rest = public_name(model).partition(":")
    named = rest or scheme
    if named.endswith((".yaml", ".yml")):
        named = Path(named).stem
    return re.sub(r"[^A-Za-z0-9.=]+", "-", named)


def default_folder(model: str, tasks: str) -> Path:
    """Return where a run goes if nobody says so: a folder below `runs/` for this model and these tasks, as typed.

    >>> default_folder("simulated:oracle", "vibe_gender:story,my/tasks.yaml").as_posix()
    'runs/simulated-oracle-vibe-gender-story-tasks'
    >>> default_folder("vllm:model_name=org/model,dtype=bfloat16", "badf").as_posix()
    'runs/vllm-org-model-badf'
    """
    asked = [
        Path(task.strip()).stem if task.strip().endswith((".yaml", ".py")) else task.strip()
        for task in tasks.split(",")
    ]
    named = re.sub(r"[^A-Za-z0-9.=]+", "-", "-".join([model_label(model), *asked])).strip("-")
    if len(named) > _LONGEST_NAME:
        named = f"{named[:_LONGEST_NAME]}-{digest([model, tasks])[:8]}"
    return Path("runs") / named
