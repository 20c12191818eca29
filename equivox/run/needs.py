"""What tasks need of whoever answers them, beside one text for another: turns, tools, speech, hidden states."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from equivox.core.errors import RequestError
from equivox.core.task import Need, Task

NEEDS: Mapping[Need, tuple[str, str]] = {
    "turns": ("goes on after an answer", "use vllm, transformers, endpoint or a simulated model"),
    "tools": ("lets the model call tools", "use endpoint, vllm with tool_call_parser=…, or a simulated model"),
    "speech": ("is answered by voice", "use endpoint with voice=…, or a simulated model"),
    "hidden states": ("replaces hidden states", "use `equivox run transformers:…`, or leave the task out"),
}
"""What a task needs, in words, and which engines do it."""


def refuse_unable(tasks: Sequence[Task], able: Collection[Need], who: str) -> None:
    """Raise RequestError for a task that needs more than `who` is able to do; one that ignored it would mislead."""
    for task in tasks:
        for need in sorted(task.prompt.needs - set(able)):
            what, instead = NEEDS[need]
            raise RequestError(f"{task.name} {what}, which {who} does not do here; {instead}")
