"""What runs would ask, before anything runs: requests, annotator calls, and tokens where a run has measured them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from equivox.annotate import RULES, added_annotators, annotator_name, declared_annotator, evaluation_of, open_annotator
from equivox.core.lazy import pc
from equivox.core.plugins import freed
from equivox.core.task import Task
from equivox.core.text import how_many
from equivox.core.variants import asks_nothing
from equivox.dataset_builders.corpus import Corpus
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import EngineIdentity, engine_of, is_pinned, model_label, public_name, retirement, runs_remote_code
from equivox.report.numbers import DASH
from equivox.report.table import Table
from equivox.run.design import compared_rows, published_items
from equivox.run.generating import pending_rows
from equivox.run.pipeline import checked
from equivox.run.plan import make_plan
from equivox.run.run_files import RunFile, Setting
from equivox.run.spec import RunSpec
from equivox.run.store import Store, response_schema


def code_notes(models: Iterable[str], annotators: Iterable[str]) -> list[str]:
    """Return which models retire, which run code of their repositories, and what is not pinned to a commit.

    >>> code_notes(["simulated:oracle"], ["rules"])
    []
    """
    loaded = {name: engine_of(name) for name in models}
    remote = ", ".join(filter(runs_remote_code, loaded))
    notes = [f"{told}." for told in map(retirement, loaded) if told]
    for name in {evaluation_of(name)[0]: None for name in annotators}:
        if name != RULES and name not in added_annotators():
            _, declared = declared_annotator(name)
            loaded[name] = declared.engine, declared.model_parameters
    unpinned = ", ".join(name for name, given in loaded.items() if not is_pinned(*given))
    if remote:
        notes.append(f"Code of the model's repository runs, and only with `--trust-remote-code`: {remote}.")
    if unpinned:
        notes.append(
            f"No pinned revision: {unpinned}. The newest commit is loaded, and stored with the run; the model argument "
            "`revision` pins one."
        )
    return notes


def count_requests(file: RunFile, tasks: Sequence[Task], corpora: dict[str, Corpus]) -> tuple[int, int, list[str]]:
    """Return the requests to one model, the calls to one annotator, and the sources of the numbers of samples."""
    requests, calls, sources = 0, 0, []
    for task in tasks:
        name = task.data.corpus
        published = published_items(task) if file.data is None and task.data.table is None else None
        if published is not None:
            # The columns of a sample do not matter for how many presentations it has.
            ways = task.prompt.presentations
            n_ways = 1 if ways is None else len(ways(defaultdict(str), random.Random(0)))
            n = min(published, file.limit or published) * task.sampling.repeats * n_ways
            sources.append(f"{name}: {published:,} samples as published")
        else:
            corpora[name] = corpora.get(name) or open_corpus(task.data, file.data)
            nobody = EngineIdentity(engine="none", model="none", revision="")
            n = len(make_plan([task], corpora, nobody, limit=file.limit, seed=file.seed).distinct)
            where = file.data or task.data.table or "the published grid"
            sources.append(f"{name}: {len(corpora[name].samples):,} samples in {where}")
        n = 0 if asks_nothing(task) else n
        requests, calls = requests + n, calls + n * len(task.annotation.most_calls(task)) * file.evaluations
    return requests, calls, sources


def file_table(settings: Sequence[Setting], output: Path) -> Table:
    """Return the requests to each model of a run file, and the calls to the annotators of its answers."""
    rows, sources = [], []
    opened_in: defaultdict[str | None, dict[str, Corpus]] = defaultdict(dict)
    for setting in settings:
        file = setting.file
        requests, calls, own = count_requests(file, setting.varied, opened_in[file.data])
        sources += own
        readers = [annotator_name(name) for name in file.annotators if name != RULES]
        for model in file.models:
            rows += [[setting.name, public_name(model), *_asked(setting.spec(model, output).output, requests)]]
            rows += [[setting.name, f"annotated by {name}", f"{calls:,}", DASH, DASH] for name in readers]
    tasks = how_many(sum(len(setting.varied) for setting in settings), "task")
    models = [model for setting in settings for model in setting.file.models]
    annotators = [name for setting in settings for name in setting.file.annotators]
    return _table(rows, [f"{tasks}; {'; '.join(dict.fromkeys(sources))}.", *code_notes(models, annotators)])


def run_table(spec: RunSpec) -> Table:
    """Check `spec` as a run does and return what it would ask; UsageError for what a run would refuse."""
    with freed(open_annotator(spec.annotator, spec.workers)) as annotator, checked(spec, annotator) as run:
        pending = pending_rows(spec.output, run.plan, retry_failed=spec.retry_failed)
        asked = {task.name: run.plan.table.filter(pc.equal(run.plan.table["task"], task.name)) for task in run.tasks}
    rows = [["", model_label(spec.model), *_asked(spec.output, run.to_ask)]]
    if evaluation_of(spec.annotator)[0] != RULES:
        asking = [task for task in run.tasks if not asks_nothing(task)]
        calls = sum(len(asked[one.name]["key"].unique()) * len(one.annotation.most_calls(one)) for one in asking)
        rows += [["", f"annotated by {annotator_name(spec.annotator)}", f"{calls:,}", DASH, DASH]]
    n, unusable = len(run.plan.distinct), len(pending) - run.to_ask
    done = f", of which {n - len(pending):,} have a response" if n > len(pending) else ""
    lost = f"; {unusable:,} more have media that cannot be used and are not sent" if unusable else ""
    caption = f"Nothing was written. {how_many(len(run.tasks), 'task')}, {how_many(n, 'request')}{done}{lost}"
    remarks = [
        f"{one.name}: {how_many(left, 'request')} will not be compared: in what the task holds equal, some group has "
        "none"
        for one in run.tasks
        if (one.strata or one.blocks) and (left := len(asked[one.name]) - len(compared_rows(one, asked[one.name])))
    ]
    return _table(rows, code_notes([spec.model], [spec.annotator]), caption=caption, remarks=remarks)


def _asked(folder: Path, n: int) -> list[str]:
    """Return a number of requests, and their tokens by the means of the responses in a folder."""
    stored = Store(folder / "responses", response_schema()).table(("prompt_tokens", "completion_tokens"))
    means = [pc.mean(column).as_py() for column in stored.columns]
    return [f"{n:,}", *(DASH if mean is None else f"{n * mean:,.0f}" for mean in means)]


def _table(rows: Sequence[Sequence[str]], notes: Sequence[str], **given: Any) -> Table:
    start = 0 if any(row[0] for row in rows) else 1
    columns = ("setting", "", "calls", "prompt tokens", "answer tokens")[start:]
    told = (
        "The annotator is asked once per segment of a response at most, and again where its answer is invalid. Tokens: "
        f"by the responses in the folder of the run; {DASH}: there is none (`--limit 100` is enough)."
    )
    shown = [list(row[start:]) for row in rows]
    return Table(columns=columns, align="llrrr"[start:], rows=shown, notes=[*notes, told], **given)
