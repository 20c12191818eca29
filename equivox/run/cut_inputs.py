"""Prompts and recordings that a server cut before the model read them, known by its own counts of tokens.

Some servers drop the beginning of a long prompt, or the end of a long recording, and answer with status 200. The name
or the voice may be in the part that is gone, and the answers then look fair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from equivox.core.lazy import NDArray, np, pa, pc
from equivox.run.plan import PLAN_FILE, SECONDS, WORDS, read_plan
from equivox.run.store import Store, response_schema

MOST_CUT = 0.05
"""Where this share of a task's prompts was cut, a score without a difference has no result."""
_LEAST_TOKENS = 256
"""No server has a smaller limit; short prompts of unlike length often have equally many tokens by chance."""
_CLEARLY = 1.1
"""How much longer a prompt or a recording is than the limit, at least, to count as cut."""
_FIXED = 1.5
"""Recordings that differ in length by this factor and have equally many tokens are heard in a fixed window."""


@dataclass(frozen=True)
class CutInput:
    """What a server cut in one task: `n` of its `of` requests, for which it counted at most `tokens`.

    `least` and `most` are the lengths of these requests as sent, in words or seconds. `limit_s` is the seconds of a
    recording that were heard; NaN for prompts, and for recordings that all took equally many tokens (`fixed`).
    """

    kind: Literal["prompt", "audio", "fixed"]
    n: int
    of: int
    tokens: int
    least: float
    most: float
    limit_s: float = float("nan")

    @property
    def share(self) -> float:
        """The share of the requests that were cut."""
        return self.n / self.of


def find_cut_inputs(folder: Path) -> dict[str, list[CutInput]]:
    """Return what a server cut in each task of a run; {} if nothing was, or if nobody counted tokens.

    Runs of older versions, and runs without responses, know no lengths: {}.
    """
    if not (folder / PLAN_FILE).exists():
        return {}
    plan = read_plan(folder)
    if WORDS not in plan.column_names:
        return {}
    columns = ("key", "prompt_tokens", "media_tokens")
    counts = Store(folder / "responses", response_schema()).table(columns)
    counts = counts.filter(pc.greater(pc.fill_null(counts["prompt_tokens"], 0), 0))
    if not len(counts):
        return {}
    places = pc.index_in(plan["key"].combine_chunks(), value_set=counts["key"].combine_chunks())
    sent = plan.select(["task", WORDS, SECONDS])
    for name in columns[1:]:
        sent = sent.append_column(name, counts[name].combine_chunks().take(places))
    sent = sent.filter(pc.is_valid(sent["prompt_tokens"]))
    found = {}
    for task in pc.unique(sent["task"]).to_pylist():
        if cut := _find_in_task(sent.filter(pc.equal(sent["task"], pa.scalar(task)))):
            found[task] = cut
    return found


def _find_in_task(sent: pa.Table) -> list[CutInput]:
    words, seconds, tokens, media = (
        pc.cast(sent[name], pa.float64()).to_numpy() for name in (WORDS, SECONDS, "prompt_tokens", "media_tokens")
    )
    text_tokens = tokens - np.nan_to_num(media)
    heard = np.isfinite(seconds) & (media > 0)
    found = [find_cut_prompts(text_tokens, words), find_cut_audio(media[heard], seconds[heard])]
    return [cut for cut in found if cut is not None]


def find_cut_prompts(tokens: NDArray[np.float64], words: NDArray[np.float64]) -> CutInput | None:
    """Return the prompts with fewer tokens than words, or whose count stays the same however long they are."""
    cut = tokens < words
    top = tokens.max()
    shortest = words[tokens == top].min()
    longer = words > shortest
    grows = top < _LEAST_TOKENS or len(np.unique(words[longer])) < 2 or words.max() < _CLEARLY * shortest
    if not grows and (tokens[longer] == top).mean() > 0.9:
        cut |= tokens == top
    return _describe("prompt", cut, tokens, words)


def find_cut_audio(tokens: NDArray[np.float64], seconds: NDArray[np.float64]) -> CutInput | None:
    """Return the recordings whose tokens stop growing with their length, or never grow."""
    if not len(tokens):
        return None
    top = tokens.max()
    below = tokens < top
    if not below.any():
        fixed = seconds.max() >= _FIXED * seconds.min()
        return _describe("fixed", np.full(len(tokens), fixed), tokens, seconds)
    limit_s = float(top / np.median(tokens[below] / seconds[below]))
    cut = seconds > _CLEARLY * limit_s
    return _describe("audio", cut & (tokens == top).all(where=cut), tokens, seconds, limit_s)


def _describe(
    kind: Literal["prompt", "audio", "fixed"],
    cut: NDArray[np.bool_],
    tokens: NDArray[np.float64],
    sizes: NDArray[np.float64],
    limit_s: float = np.nan,
) -> CutInput | None:
    if not cut.any():
        return None
    least, most = float(sizes[cut].min()), float(sizes[cut].max())
    return CutInput(kind, int(cut.sum()), len(cut), int(tokens[cut].max()), least, most, limit_s)


def describe_cut_prompts(cuts: Sequence[CutInput]) -> str | None:
    """Return why a task without a difference has no result; None if too few of its prompts were cut."""
    for cut in cuts:
        if cut.kind == "prompt" and cut.share >= MOST_CUT:
            return (
                f"the server cut {cut.n:,} of {cut.of:,} prompts: it counted {cut.tokens:,} tokens for "
                f"{cut.least:,.0f} words or more"
            )
    return None
