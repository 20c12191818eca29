"""equivox tasks inside inspect_ai, and its logs: `inspect eval equivox/TASK`, `equivox export`, `equivox import`.

`asking`
    What one evaluation asks: the task, its corpus and its requests, under the names and ids that logs have.
`recorded`
    Answers and annotations of one or several logs, stored and scored as a run.
`tasks`
    Tasks, solver, scorer and metric in the format of inspect_ai; the entry point of its registry.
`grader`
    The model in the role `grader` as annotator.
`exporting`, `importing`
    A run as logs, and logs as a run.

Only `tasks`, `grader`, `exporting` and `importing` import inspect_ai.
"""

from __future__ import annotations
