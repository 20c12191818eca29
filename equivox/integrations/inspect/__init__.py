"""equivox tasks inside inspect_ai: `inspect eval equivox/TASK`.

`asking`
    What one evaluation asks: the task and its corpus.
`recorded`
    Answers and annotations of an evaluation, stored and scored as a run.
`tasks`
    Tasks, solver, scorer and metric in the format of inspect_ai, with the model in the role `grader` as annotator; the
    entry point of its registry.
`layout`
    Messages, metadata and scores of samples as inspect_ai has them.

Only `tasks` and `layout` import inspect_ai.
"""
