"""equivox measures what a model does differently when only the person changes.

These words have one meaning everywhere:

task
    A frozen declaration: corpus, prompt, media, compared dimension, annotation of the answers, and metric.
dimension, group
    The demographic column that is compared (gender, accent), and one value of it.
cluster
    The unit that carries the group (a speaker): groups are permuted between clusters, not between responses. Or the
    unit that is in every group (a CV with the names swapped): groups are then compared within it.
stratum
    The property that is held equal between groups (the sentence).
condition
    A control variant of a task (audio, text_only, silence, shuffled).
request, response
    One generation that is asked for, and its result; a failure is a response too.
annotation, attribute
    The values extracted from one response, and one named field of them.
score
    A number with its evidence: null mean, interval, p-values, coverage.
coverage
    requested → generated → answered → parsed → used.
run, manifest
    A folder with everything from plan to scores, and the record that is needed to repeat it.

In Python: `equivox.measure(model, tasks, output=…)`, `equivox.import_responses(table, tasks, model=…, output=…)`,
`equivox.open_run(folder)`, `equivox.load_task(name)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equivox.core.version import __version__ as __version__

if TYPE_CHECKING:
    from equivox.api import Result, import_responses, list_tasks, load_task, measure, open_run
    from equivox.core.errors import EquivoxError, RunError, UsageError
    from equivox.core.scores import Score, ScoringOptions
    from equivox.core.task import Task
    from equivox.engines.function import FunctionEngine


_HOMES = {
    "EquivoxError": "equivox.core.errors",
    "FunctionEngine": "equivox.engines.function",
    "RequestError": "equivox.core.errors",
    "Result": "equivox.api",
    "RunError": "equivox.core.errors",
    "Score": "equivox.core.scores",
    "ScoringOptions": "equivox.core.scores",
    "Task": "equivox.core.task",
    "UsageError": "equivox.core.errors",
    "import_responses": "equivox.api",
    "list_tasks": "equivox.api",
    "load_task": "equivox.api",
    "measure": "equivox.api",
    "open_run": "equivox.api",
}

__all__ = [
    "EquivoxError",
    "FunctionEngine",
    "Result",
    "RunError",
    "Score",
    "ScoringOptions",
    "Task",
    "UsageError",
    "import_responses",
    "list_tasks",
    "load_task",
    "measure",
    "open_run",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import equivox` is fast."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, those that are imported when they are first used among them."""
    return sorted({*globals(), *__all__})
