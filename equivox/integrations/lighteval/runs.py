"""Run directories of evaluations inside lighteval: they store the answers and the scores.

Settings without an option on lighteval's command line are read from the environment, and errors are shown in one line.
Answers of equivox's engines and of lighteval's backends are treated as in `equivox run`: stored first, then annotated,
then scored.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from equivox.annotate import RULES, annotator_name, open_annotator
from equivox.core.errors import EquivoxError, UsageError
from equivox.core.files import cache_folder, write_table
from equivox.core.lazy import pa
from equivox.core.plain import split_by
from equivox.core.plugins import check, freed
from equivox.core.progress import Progress, no_progress
from equivox.core.reasoning import split_reasoning
from equivox.core.scores import DEFAULT_OPTIONS, Score
from equivox.core.segments import check_tools
from equivox.core.task import Task, digest
from equivox.core.task_checks import refuse_unable
from equivox.core.variants import AS_DECLARED, GREEDILY
from equivox.dataset_builders.corpus import Corpus
from equivox.engines import Engine, EngineIdentity, Request, Response, open_engine
from equivox.engines.function import RecordedEngine
from equivox.run.generating import pending_rows
from equivox.run.manifest import run_identity
from equivox.run.pipeline import PreparedRun, annotate_and_score, open_corpora, writing
from equivox.run.plan import Plan, make_plan
from equivox.run.run_files import folder_name
from equivox.run.spec import RunSpec
from equivox.run.store import stored_responses

_LOG = logging.getLogger(__name__)

Positions = Mapping[str, Collection[int]]
"""Task name → the positions of the wanted requests in the task's plan."""

_NOBODY = EngineIdentity(engine="lighteval", model="any", revision="")

DATA, ANNOTATOR, LIMIT, SEED, RUNS, MODEL = (
    "EQUIVOX_DATA",
    "EQUIVOX_ANNOTATOR",
    "EQUIVOX_LIMIT",
    "EQUIVOX_SEED",
    "EQUIVOX_RUNS",
    "EQUIVOX_MODEL_CONFIG",
)


class Stop(EquivoxError, SystemExit):
    """An error that ends another program's command with one line on stderr and exit code 1.

    In Python it is an `EquivoxError` like any other. Without it, the other program would print a traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = f"equivox: {' '.join(message.split())}"


@contextmanager
def one_line() -> Iterator[None]:
    """Turn any equivox error into one that another program's command line shows as one line."""
    try:
        yield
    except Stop:
        raise
    except EquivoxError as error:
        raise Stop(str(error)) from error


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of equivox inside lighteval; each field has an environment variable.

    Parameters
    ----------
    data
        `EQUIVOX_DATA`: `sample`, or the folder that `equivox data build` wrote into. With None only corpora that need
        no build are available (BADF's published grid).
    annotator
        `EQUIVOX_ANNOTATOR`: the annotator, as in `equivox run --annotator`.
    limit, seed
        `EQUIVOX_LIMIT`, `EQUIVOX_SEED`: as in `equivox run --limit` and `--seed`.
    runs
        `EQUIVOX_RUNS`: the folder in which each evaluation is stored as a run.
    model
        `EQUIVOX_MODEL_CONFIG`: the model behind the custom model, as in `equivox run`; None: the name in lighteval's
        command.
    """

    data: str | None = None
    annotator: str = RULES
    limit: int | None = None
    seed: int = 0
    runs: Path = Path("runs/lighteval")
    model: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings in the environment; UsageError for an invalid number.

        >>> Settings.from_environment({"EQUIVOX_DATA": "sample", "EQUIVOX_LIMIT": "24"}).limit
        24
        """
        given = {k: v for k, v in (os.environ if environment is None else environment).items() if v}
        return cls(
            data=given.get(DATA),
            annotator=given.get(ANNOTATOR, RULES),
            limit=_whole(given, LIMIT, least=1),
            seed=_whole(given, SEED, least=0) or 0,
            runs=Path(given.get(RUNS, cls.runs)),
            model=given.get(MODEL),
        )


def _whole(given: Mapping[str, str], name: str, *, least: int) -> int | None:
    if name not in given:
        return None
    try:
        number = int(given[name])
    except ValueError:
        number = least - 1
    if number < least:
        raise UsageError(f"{name} must be a whole number from {least} up, got {given[name]!r}; or leave it out")
    return number


def _response(texts: Mapping[str, str], request: Request) -> Response:
    """Return the answer of another program, one of `texts` by key, as the response to a request."""
    raw = texts[request.key]
    if not raw.strip():
        # lighteval's backends do not mark failed requests in any other way.
        return Response(key=request.key, text=None, error="the backend returned no text")
    text, thinking = split_reasoning(raw, request.sampling.reasoning)
    return Response(key=request.key, text=text, thinking=thinking)


def _document_row(position: int, row: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Return one request as plain values: the prompt, the group and the media that it needs.

    `needs` is empty for text only, else words such as `audio`; media are named by digest, not included.
    """
    needs = sorted(
        {part.kind for part in request.media}
        | ({"hidden states"} if request.patch else set())
        | ({"a system prompt"} if request.system else set())
    )
    return {
        "position": position,
        "prompt": request.text,
        **{name: row[name] for name in ("sample_id", "repeat", "group", "cluster", "stratum")},
        "needs": " and ".join(needs),
        "media_sha256": " ".join(row["media_sha256"]),
    }


class Runs:
    """The runs of one evaluation: corpora are opened once, and each sampling has its own run."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._corpora: dict[str, Corpus] = {}

    def documents(self, task: Task) -> Path:
        """Return the folder with the requests of `task` as parquet, in the order of its plan, written on first use.

        Its name contains a digest of its content, so that caches by folder name are never outdated. Media are named,
        not included. Raises UsageError if the data, the annotator or a tool of the task is missing.
        """
        refuse_unable([task], ["hidden states"], "lighteval")
        with freed(open_annotator(self.settings.annotator)) as annotator:
            check(annotator, [task])
        check_tools([task])
        plan = self._plan([task], _NOBODY)
        rows = [_document_row(n, row, request) for n, (row, request) in enumerate(plan.described())]
        name = f"{task.name.replace(':', '-')}-{digest([task.fingerprint, rows])[:16]}"
        folder = cache_folder("lighteval") / name
        file = folder / "test-00000-of-00001.parquet"
        if not file.is_file():
            write_table(file, pa.Table.from_pylist(rows))
        return folder

    def ask(
        self, model: str, tasks: Sequence[Task], wanted: Positions, *, progress: Progress = no_progress
    ) -> dict[tuple[str, int], tuple[Path, Response]]:
        """Have `model` answer the `wanted` requests that are not stored yet.

        Returns the run that stores each response, and the response, by task and position.
        """
        found: dict[tuple[str, int], tuple[Path, Response]] = {}
        for sampling, members in _by_sampling(tasks).items():
            with freed(open_engine(model, members)) as engine:
                refuse_unable(members, engine.able, engine.identity.engine)
                plan, places = self._part(members, engine.identity, wanted)
                folder = self._stored(model, engine, members, plan, sampling, progress)
            stored = stored_responses(folder)
            for place, key in places.items():
                # lighteval has no place for the sound of a spoken answer.
                record = {name: value for name, value in stored[key].items() if name != "sound"}
                found[place] = folder, Response(**record)
        return found

    def keep(self, answers: Mapping[str, Mapping[int, str]], tasks: Sequence[Task]) -> dict[str, Path]:
        """Store the answers of another program (by task and position) as runs; return each task's run.

        An answer of only white space is a failed request. If all repeats of every sample have the same answer, the
        backend decoded greedily, and each sample counts once.
        """
        found: dict[str, Path] = {}
        for sampling, members in _by_sampling(tasks).items():
            own = {task.name: dict(sorted(answers[task.name].items())) for task in members}
            identity = replace(
                _NOBODY, model=f"answers-{digest(list(own.items()))[:8]}", revision=metadata.version("lighteval")
            )
            wanted = {
                task.name: _once_if_greedy(task, self._plan([task], identity), own[task.name]) for task in members
            }
            plan, places = self._part(members, identity, wanted)
            texts = {key: own[name][place] for (name, place), key in places.items()}
            engine = RecordedEngine(identity, partial(_response, texts))
            folder = self._stored(f"lighteval:{identity.model}", engine, members, plan, sampling, no_progress)
            found |= {task.name: folder for task in members}
        return found

    def scores(self, folder: Path, tasks: Sequence[Task]) -> list[Score]:
        """Annotate and score the run in `folder` exactly as `equivox run` does, and return its scores."""
        with freed(open_annotator(self.settings.annotator)) as annotator, writing(folder):
            return annotate_and_score(folder, tasks, annotator, DEFAULT_OPTIONS)

    def _plan(self, tasks: Sequence[Task], identity: EngineIdentity) -> Plan:
        try:
            opened = open_corpora(tasks, self.settings.data, self._corpora)
        except UsageError as error:
            if self.settings.data is not None:
                raise
            corpus = tasks[0].data.corpus
            raise UsageError(
                f"{tasks[0].name} reads the corpus {corpus}: set {DATA}=sample for the embedded sample, or {DATA}=DIR "
                f"with DIR from `equivox data build`"
            ) from error
        return make_plan(tasks, opened, identity, limit=self.settings.limit, seed=self.settings.seed)

    def _part(
        self, tasks: Sequence[Task], identity: EngineIdentity, wanted: Positions
    ) -> tuple[Plan, dict[tuple[str, int], str]]:
        """Return the wanted part of the plan of `tasks`, and the key of the request at each task's position."""
        plan = self._plan(tasks, identity)
        counts: dict[str, int] = defaultdict(int)
        chosen: list[int] = []
        places: dict[tuple[str, int], str] = {}
        table = plan.table.select(["task", "key"])
        for row, (task, key) in enumerate(zip(table["task"].to_pylist(), table["key"].to_pylist(), strict=True)):
            place = counts[task]
            counts[task] += 1
            if place in wanted[task]:
                chosen.append(row)
                places[task, place] = key
        return plan.part(chosen), places

    def _stored(
        self, model: str, engine: Engine, tasks: Sequence[Task], plan: Plan, sampling: str, progress: Progress
    ) -> Path:
        """Begin or resume the run of exactly these requests; return its folder when each has a response."""
        settings = self.settings
        opened = {task.data.corpus: self._corpora[task.data.corpus] for task in tasks}
        identity = run_identity(
            engine=engine.identity, tasks=tasks, corpora=opened, limit=settings.limit, seed=settings.seed
        )
        requests = digest([identity, plan.table["key"].to_pylist()])
        spec = RunSpec(
            model=model,
            tasks=list(tasks),
            output=settings.runs / f"{folder_name(model)}-{requests[:8]}",
            data=settings.data,
            limit=settings.limit,
            seed=settings.seed,
            sampling=sampling,
        )
        if len(pending := pending_rows(spec.output, plan, retry_failed=False)):
            check(engine, plan.requests(pending[plan.usable[pending]]))
        with writing(spec.output):
            PreparedRun(
                spec=spec, tasks=tasks, plan=plan, identity=identity, engine=engine,
                annotator=annotator_name(settings.annotator), keep_open=True, to_ask=len(pending),
            ).answer(progress)  # fmt: skip
        return spec.output


def _by_sampling(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Return the tasks by sampling, because all tasks of a run are decoded in one way."""
    return split_by(tasks, lambda task: GREEDILY if task.family.endswith("_greedy") else AS_DECLARED)


def _once_if_greedy(task: Task, plan: Plan, answers: Mapping[int, str]) -> list[int]:
    """Return the positions that count: one per sample if all repeats of every sample have the same answer."""
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place in answers:
        request = plan.request(place)
        same[request.sample_id, request.text].append(place)
    # Failed requests are equal too, but say nothing about the decoding of the others.
    answered = {item: [place for place in places if answers[place].strip()] for item, places in same.items()}
    repeated = any(len(places) > 1 for places in answered.values())
    if not repeated or any(len({answers[place] for place in places}) > 1 for places in answered.values()):
        return list(answers)
    wanted = ", ".join(
        f"{name}: {value:g}"
        for name, value in (
            ("temperature", task.sampling.temperature),
            ("top_p", task.sampling.top_p),
            ("frequency_penalty", task.sampling.frequency_penalty),
        )
    )
    _LOG.warning(
        "%s asks each sample %d times, but all repeats have the same answer: the backend decoded greedily, each sample "
        "counts once. Give it generation_parameters={%s}, or take a task that ends its family in _greedy",
        task.name,
        task.sampling.repeats,
        wanted,
    )
    return [(answered[item] or places)[0] for item, places in same.items()]
