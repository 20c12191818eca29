"""Tables of what runs are estimated to take, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from equivox.annotate import RULES, added_annotators, annotator_name, declared_annotator, evaluation_of
from equivox.core.text import how_many
from equivox.engines import engine_of, is_pinned, model_label, retirement, runs_remote_code
from equivox.report.numbers import DASH
from equivox.report.table import Table
from equivox.run.cost import CHARACTERS_PER_TOKEN, MEDIA_TOKENS, ONE_AT_A_TIME, DryRun, Effort, Estimate


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
    """Return the estimated cost of each model and of the annotators of its answers, the sums, and the assumptions."""
    targets = [target for _, target, _ in estimate.models]
    readers = [one for _, _, annotators in estimate.models for one in annotators]
    named: list[Named] = []
    for setting, target, annotators in estimate.models:
        named.append((setting, target.name, [target]))
        named += [(setting, f"annotated by {annotator_name(one.name)}", [one]) for one in annotators]
    sums = (("sum of the models", targets), ("sum of the annotators", readers))
    named += [("", what, own) for what, own in sums if len(own) > 1]
    notes = [f"{estimate.tasks} tasks; {'; '.join(estimate.sources)}."]
    notes += [
        f"?: a guess, by {a.prompt_tokens:g} tokens a prompt and {a.completion_tokens:g} an answer, at "
        f"{a.tokens_per_second:g} a second on one GPU; for the annotator {a.annotation_prompt_tokens:g}, "
        f"{a.annotation_tokens:g} and {a.annotation_tokens_per_second:g}."
        for a in estimate.assumptions
    ]
    if any(one.engine == "transformers" for one in targets):
        notes.append(
            f"Models on transformers answer one request at a time: {ONE_AT_A_TIME:g} tokens a second, a guess."
        )
    notes += code_notes([one.name for one in targets], [one.name for one in readers])
    return _effort_table(named, estimate.workers, "the folder that `--output` names (`--limit 100` is enough)", notes)


def dry_run_table(found: DryRun) -> Table:
    """Return what one run would take: a line for its model, one for its annotator."""
    readers = [] if found.annotator is None else [found.annotator]
    named: list[Named] = [("", model_label(found.target.name), [found.target])]
    named += [("", f"annotated by {annotator_name(one.name)}", [one]) for one in readers]
    done = f", of which {found.answered:,} have a response" if found.answered else ""
    lost = f"; {found.unusable:,} more have media that cannot be used and are not sent" if found.unusable else ""
    asked = f"{how_many(found.tasks, 'task')}, {how_many(found.requests, 'request')}"
    guessed = (
        f"?: a guess, by {CHARACTERS_PER_TOKEN} characters a token, {MEDIA_TOKENS} tokens a recording or image and "
        "answers of usual length."
    )
    sound = (
        f"Answers by voice take about {found.sound_bytes / 1e6:,.0f} MB on disk, by 0.3 s a token and WAV of 16 bits "
        "at 24,000 Hz."
    )
    code = code_notes([found.target.name], [one.name for one in readers])
    notes = [guessed, *([sound] if found.sound_bytes else []), *code]
    table = _effort_table(named, found.workers, "an earlier start of this run", notes)
    remarks = [
        f"{name}: {how_many(n, 'request')} will not be compared: in what the task holds equal, some group has none"
        for name, n in found.uncompared.items()
        if n
    ]
    return replace(table, caption=f"Nothing was written. {asked}{done}{lost}", remarks=remarks)


Named = tuple[str, str, Sequence[Effort]]
"""A setting and a name, and the effort that they stand for, or several together."""


def _effort_table(named: Sequence[Named], workers: int, where: str, notes: Sequence[str]) -> Table:
    """Return what models and annotators take, a line each; `where` says which run speeds are measured in."""
    settings = ["setting"] if any(setting for setting, _, _ in named) else []
    hours = [
        f"hours on {workers} workers: the GPU-hours, divided among them as if all were always busy; loading the "
        "models, the requests to servers and the scores are not counted."
    ]
    return Table(
        columns=(
            *settings, "", "engine", "calls", "prompt tokens", "answer tokens", "tokens/s", "GPU-hours",
            "hours" if workers == 1 else f"hours on {workers} workers", "cost",
        ),
        align="l" * len(settings) + "llrrrrrrr",
        rows=[[*([setting] if settings else []), name, *_cells(own)] for setting, name, own in named],
        notes=[
            *notes,
            f"tokens/s: of one worker; ? a guess, otherwise measured in {where}; {DASH}: on a server, or without a "
            "GPU. The annotator's speed is a guess.",
            *(hours if workers > 1 else []),
            "The annotator is asked once per segment of a response at most, and again where its answer is invalid.",
            f"cost: by `prompt_price` and `completion_price` of the arguments, in their currency; {DASH}: none given.",
        ],
    )  # fmt: skip


def _cells(efforts: Sequence[Effort]) -> list[str]:
    """Return engine and numbers of one effort, or the sums of several, as texts; a guess has a question mark."""
    first, several = efforts[0], len(efforts) > 1
    guess = "" if all(one.measured for one in efforts) else "?"
    tokens = [sum(one.prompt_tokens for one in efforts), sum(one.completion_tokens for one in efforts)]
    hours = [sum(one.gpu_hours for one in efforts), sum(one.hours for one in efforts)]
    costs = [one.cost for one in efforts if not math.isnan(one.cost)]
    return [
        "" if several else first.engine or DASH,
        f"{sum(one.calls for one in efforts):,}",
        *(f"{n:,.0f}{guess}" if n else DASH for n in (*tokens, 0 if several else first.tokens_per_second)),
        *(f"{n:,.2f}" if n else DASH for n in hours),
        f"{sum(costs):,.2f}" if costs else DASH,
    ]
