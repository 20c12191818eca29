"""`equivox tasks`: list, show, write and plan tasks."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from equivox.cli.output import echo
from equivox.cli.plan import print_plan
from equivox.core.errors import UsageError
from equivox.core.plain import split_by
from equivox.core.segments import WHOLE
from equivox.core.task import CROSSED, Task


def tasks(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[TASKS]", help="Show this task, family or task file; default: list all tasks."),
    ] = None,
    of: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="With `new`: a table. With `plan`: a task.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data: Annotated[
        str | None, typer.Option(help="With `plan`: count units in this corpus; default: published numbers.")
    ] = None,
    gap: Annotated[
        float | None, typer.Option(help="With `plan`: count the units that this gap needs, in percent.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(metavar="KEY=VALUE,…", help="With `plan`: units, answers each, groups, values, correlation=.02."),
    ] = None,
) -> None:
    """List tasks, show one, write a task file (`new TABLE`), or plan a design (`plan [TASK]`)."""
    if name == "plan":
        print_plan(of, data, gap, design)
        return
    if name == "new":
        _write(None if of is None else Path(of))
        return
    if of is not None:
        raise UsageError(f"`tasks` takes one argument, `new TABLE` or `plan TASK`, got {name} and {of}")
    if used := [option for option, value in (("data", data), ("gap", gap), ("design", design)) if value is not None]:
        raise UsageError(f"`--{used[0]}` belongs to `tasks plan`; leave it out, or plan: equivox tasks plan TASK")
    from equivox.tasks.registry import builtin_tasks, resolve_tasks

    found = list(builtin_tasks().values()) if name is None else resolve_tasks(name)
    if as_json:
        echo(json.dumps([describe(task) for task in found], indent=2, ensure_ascii=False))
    elif name is not None:
        echo("\n\n".join(_card(task) for task in found))
    else:
        _list(found)


def _write(table: Path | None) -> None:
    """Write a task file for a table and print it with the command that runs it."""
    from equivox.tasks.new_file import write_task_file

    if table is None:
        raise UsageError("`tasks new` needs a table: equivox tasks new my_table.csv")
    path = write_task_file(table)
    echo(path.read_text("utf-8"))
    echo(f"Written to {path}. Check it, then run: equivox run MODEL {quote(str(path))} --annotator ANNOTATOR")


def _list(tasks: Sequence[Task]) -> None:
    """Print the tasks of each family with its dimension and its corpus."""
    width = shutil.get_terminal_size().columns
    for family, own in split_by(tasks, lambda task: task.family).items():
        dimensions, corpora = (
            {getattr(one, name) for one in of}
            for name, of in (("dimension", own), ("corpus", [task.data for task in own]))
        )
        echo(f"{family}  ({', '.join(sorted(dimensions))}; {', '.join(sorted(corpora))})")
        names = ", ".join(task.name.partition(":")[2] for task in own)
        echo(textwrap.fill(names, width, initial_indent="    ", subsequent_indent="    ", break_long_words=False))
    echo(
        f"\n{len(tasks)} tasks. Name a family (vibe_gender) or one task (vibe_gender:story).\n"
        "`equivox tasks FAMILY:TASK` shows a task."
    )


def describe(task: Task) -> dict[str, Any]:
    """Return a task as plain JSON values."""
    return {
        "name": task.name,
        "version": task.version,
        "fingerprint": task.fingerprint,
        "corpus": task.data.corpus,
        "dimension": list(task.group),
        "cluster": task.cluster,
        "strata": list(task.strata),
        "blocks": list(task.blocks),
        "items": list(task.items),
        "media": [vars(medium) for medium in task.media],
        "prompt": task.prompt.identity,
        "sampling": vars(task.sampling),
        "attributes": [
            {"name": a.name, "role": a.role, "asks": a.asks, "options": list(a.options), "count": a.count}
            | ({} if a.number is None else {"number": vars(a.number)})
            for a in task.attributes
        ],
        "card": task.card.strip(),
    }


def _card(task: Task) -> str:
    strata = f", {CROSSED.join(task.strata)} held equal" if task.strata else ""
    strata += f", permuted within {CROSSED.join(task.blocks)}" if task.blocks else ""
    s = task.sampling
    decoding = "greedy" if s.temperature == 0 else f"temperature {s.temperature}, top-p {s.top_p}, top-k {s.top_k}"
    media = ", ".join(f"one {medium.kind}" for medium in task.media)
    answers = "1 response" if s.repeats == 1 else f"{s.repeats} responses"
    unit = f"unit: {task.cluster}{', which is in every group' if task.data.swap else ''}"
    lines = [
        f"{task.name}  (version {task.version})",
        "",
        task.card.strip(),
        "",
        f"Corpus      {task.data.corpus}",
        f"Compares    {task.dimension}; {unit}{strata}",
        f"Media       {f'{media}, before the prompt' if media else 'none'}",
        f"Decoding    {decoding}, at most {s.max_new_tokens} new tokens, {answers} per sample",
        f"Prompt      {task.prompt.source} (version {task.prompt.version})",
        "",
        *(f"  | {line}" for line in task.prompt.text.splitlines()),
        *_further_lines(task),
        "",
        "Attributes",
        *_attribute_lines(task),
        *_segment_lines(task),
    ]
    return "\n".join(lines)


def _further_lines(task: Task) -> list[str]:
    """Return lines about what else a task asks: further turns, an answer by voice; empty without any."""
    lines = [f"Then        {text}" for text in task.turns]
    if task.prompt.spoken:
        lines.append("Answer      by voice")
    return ["", *lines] if lines else []


def _attribute_lines(task: Task) -> list[str]:
    width = max(len(a.name) for a in task.attributes) + 2
    lines = []
    for a in task.attributes:
        what = a.asks if a.count == 1 else f"{a.asks} ({a.count} values)"
        options = f": {' / '.join(a.options)}" if a.options else ""
        if a.number is not None:
            options = f": {a.number.described}"
        apart = "" if a.role == "outcome" else f" [{a.role}, scored apart]"
        lines.append(f"  {a.name:<{width}}{what}{options}{apart}")
    return lines


def _segment_lines(task: Task) -> list[str]:
    """Return lines about the segments that an annotator is asked about; empty without segments."""
    lines = []
    for segment in task.annotation.asks(task):
        if segment.name != WHOLE:
            prompt = (
                "" if segment.prompt is None else f" [prompt {segment.prompt.name}, version {segment.prompt.version}]"
            )
            lines.append(f"  {segment.name}: {', '.join(a.name for a in segment.attributes)}{prompt}")
    return ["", "An annotator is asked about the segments", *lines] if lines else []
