"""Tables of what runs are estimated to take, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from equivox.annotate import RULES, added_annotators, declared_annotator, evaluation_of
from equivox.core.text import how_many
from equivox.engines import engine_of, is_pinned, model_label, retirement, runs_remote_code
from equivox.report.numbers import DASH
from equivox.report.table import Table
from equivox.run.cost import CHARACTERS_PER_TOKEN, MEDIA_TOKENS, ONE_AT_A_TIME, DryRun, Effort, Estimate, ModelEstimate

_SPEED_NOTE = (
    f"tokens/s: of one worker; ? a guess, otherwise measured in {{where}}; {DASH}: on a server, or without a GPU. "
    "The annotator's speed is a guess."
)


def code_notes(models: Iterable[str], annotators: Iterable[str]) -> list[str]:
    """Return which models retire, which run code of their repositories, and what is not pinned to a commit.

    >>> code_notes(["simulated:oracle"], ["rules"])
    []
    """
    models = list(dict.fromkeys(models))
    loaded = {name: engine_of(name) for name in models}
    for name in {evaluation_of(name)[0]: None for name in annotators}:
        if name != RULES and name not in added_annotators():
            _, declared = declared_annotator(name)
            loaded[name] = declared.engine, declared.model_parameters
    remote = ", ".join(filter(runs_remote_code, models))
    unpinned = ", ".join(name for name, given in loaded.items() if not is_pinned(*given))
    notes = [f"{told}." for told in map(retirement, models) if told]
    if remote:
        notes.append(f"Code of the model's repository runs, and only with `--trust-remote-code`: {remote}.")
    if unpinned:
        notes.append(
            f"No pinned revision: {unpinned}. The newest commit is loaded, and stored with the run; the model argument "
            "`revision` pins one."
        )
    return notes


def estimate_table(estimate: Estimate) -> Table:
    """Return the estimated cost of each model, the sum, and the assumptions."""
    counts: tuple[Callable[[ModelEstimate], int], ...] = (lambda m: m.target.calls, lambda m: m.annotator_calls)
    hours: list[Callable[[ModelEstimate], float]] = [
        lambda m: m.target.gpu_hours,
        lambda m: sum(one.gpu_hours for one in m.annotators),
    ]
    columns = ["model", "engine", "responses", "annotator calls", "tokens/s", "GPU-hours", "of the annotator"]
    if estimate.workers > 1:
        hours.append(lambda m: m.hours)
        columns.append(f"hours on {estimate.workers} workers")
    lines = [(model.setting, model.target.name, model.target.engine, [model]) for model in estimate.models]
    settings = any(model.setting for model in estimate.models)
    priced = any(not math.isnan(model.cost) for model in estimate.models)
    rows = []
    for setting, name, engine, models in [*lines, ("", "sum", "", list(estimate.models))]:
        named = [setting, name, engine] if settings else [name, engine]
        numbers = (f"{sum(map(count, models)):,}" for count in counts)
        speed = _speed(models[0].target) if len(models) == 1 and engine else ""
        row = [*named, *numbers, speed, *(_hours(sum(map(time, models))) for time in hours)]
        rows.append([*row, _cost([model.cost for model in models])] if priced else row)
    shown = [*(("setting",) if settings else ()), *columns, *(("cost",) if priced else ())]
    return Table(
        columns=tuple(shown),
        align="l" * (2 + settings) + "r" * (len(shown) - 2 - settings),
        rows=rows,
        notes=_notes(estimate, priced=priced),
    )


def _notes(estimate: Estimate, *, priced: bool) -> list[str]:
    """Return by which assumptions costs were reckoned, and what to know of the models."""
    found, assumed = estimate.models, estimate.assumptions
    notes = [f"{estimate.tasks} tasks; {'; '.join(estimate.sources)}."]
    notes += [
        f"Reckoned with {a.completion_tokens:g} tokens an answer at {a.tokens_per_second:g} a second on one GPU, and "
        f"{a.annotation_tokens:g} at {a.annotation_tokens_per_second:g} for the annotator."
        for a in assumed
    ]
    if any(model.target.engine == "transformers" for model in found):
        notes.append(
            f"Models on transformers answer one request at a time: {ONE_AT_A_TIME:g} tokens a second, a guess."
        )
    notes.append(_SPEED_NOTE.format(where="the folder that `--output` names (a run with `--limit 100` is enough)"))
    notes += _hours_note(estimate.workers)
    if priced:
        prompts = [
            f"{a.prompt_tokens:g} tokens a prompt and {a.annotation_prompt_tokens:g} for the annotator" for a in assumed
        ]
        notes.append(
            "cost: by the prices in the arguments of models and annotators on a server, in their currency; "
            f"{'; '.join(prompts)}, guesses where no run was measured."
        )
    annotators = (annotator.name for model in found for annotator in model.annotators)
    return [*notes, *code_notes((model.target.name for model in found), annotators)]


def dry_run_table(found: DryRun) -> Table:
    """Return what one run would take: a line for its model, one for its annotator."""
    efforts = [found.target] + ([] if found.annotator is None else [found.annotator])
    done = f", of which {found.answered:,} have a response" if found.answered else ""
    lost = f"; {found.unusable:,} more have media that cannot be used and are not sent" if found.unusable else ""
    asked = f"{how_many(found.tasks, 'task')}, {how_many(found.requests, 'request')}"
    return Table(
        caption=f"Nothing was written. {asked}{done}{lost}",
        columns=(
            "", "engine", "calls", "prompt tokens", "answer tokens", "tokens/s", "GPU-hours",
            "hours" if found.workers == 1 else f"hours on {found.workers} workers", "cost",
        ),
        align="llrrrrrrr",
        rows=[
            [
                *(model_label(one.name), one.engine or DASH, f"{one.calls:,}"),
                *(_tokens(tokens, one) for tokens in (one.prompt_tokens, one.completion_tokens)),
                *(_speed(one), _hours(one.gpu_hours), _hours(one.hours), _cost([one.cost])),
            ]
            for one in efforts
        ],
        remarks=[
            f"{name}: {how_many(n, 'request')} will not be compared: in what the task holds equal, some group has none"
            for name, n in found.uncompared.items()
            if n
        ],
        notes=[
            f"?: a guess, by {CHARACTERS_PER_TOKEN} characters a token, {MEDIA_TOKENS} tokens a recording or image and "
            "answers of usual length.",
            _SPEED_NOTE.format(where="an earlier start of this run"),
            *_hours_note(found.workers),
            *([_SOUND_NOTE.format(found.sound_bytes / 1e6)] if found.sound_bytes else []),
            "The annotator is asked once per segment of a response at most, and again where its answer is invalid.",
            f"cost: by `prompt_price` and `completion_price` of the arguments, in their currency; {DASH}: none given.",
            *code_notes([found.target.name], [one.name for one in efforts[1:]]),
        ],
    )  # fmt: skip


_SOUND_NOTE = "Answers by voice take about {:,.0f} MB on disk, by 0.3 s a token and WAV of 16 bits at 24,000 Hz."


def _hours_note(workers: int) -> list[str]:
    if workers == 1:
        return []
    return [
        f"hours on {workers} workers: the GPU-hours, divided among them as if all were always busy; loading the "
        "models, the requests to servers and the scores are not counted."
    ]


def _tokens(tokens: float, effort: Effort) -> str:
    return f"{tokens:,.0f}{'' if effort.measured else '?'}" if tokens else DASH


def _speed(effort: Effort) -> str:
    if not effort.tokens_per_second:
        return DASH
    return f"{effort.tokens_per_second:,.0f}{'' if effort.measured else '?'}"


def _hours(hours: float) -> str:
    return DASH if hours == 0 else f"{hours:,.2f}"


def _cost(costs: Sequence[float]) -> str:
    known = [cost for cost in costs if not math.isnan(cost)]
    return f"{sum(known):,.2f}" if known else DASH
