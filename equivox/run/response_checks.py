"""What the stored responses show of a server that drops input, or of reasoning that was taken for the answer.

Some servers drop the beginning of a long prompt, or the end of a long recording, and answer with status 200. The name
or the voice may be in the part that is gone, and the answers then look fair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from equivox.core.coverage import UNUSUAL
from equivox.core.lazy import NDArray, np, pa, pc
from equivox.core.reasoning import REASONING_LEFT
from equivox.run.plan import SECONDS, WORDS, read_plan
from equivox.run.store import Store, response_schema

Code = Literal["cut_prompt", "cut_audio", "cut_fixed", "reasoning_left"]
_MOST_TEXTS = 5_000
_LEAST_TOKENS = 256
"""No server has a smaller limit; short prompts of unlike length often have equally many tokens by chance."""
_CLEARLY = 1.1
"""How much longer a prompt or a recording is than the limit, at least, to count as cut."""
_FIXED = 1.5
"""Recordings that differ in length by this factor and have equally many tokens are heard in a fixed window."""


@dataclass(frozen=True, kw_only=True)
class ResponseCheck:
    """What is wrong with `n` of the `of` responses of a task.

    The server counted at most `tokens` for these requests; `least` and `most` are their lengths as sent, in words or
    seconds. `limit_s` is the seconds of a recording that were heard. NaN and 0 where the code says nothing of it.
    """

    code: Code
    task: str = ""
    n: int
    of: int
    tokens: int = 0
    least: float = float("nan")
    most: float = float("nan")
    limit_s: float = float("nan")

    @property
    def lacks_result(self) -> bool:
        """Whether so many prompts were cut that a score without a difference has no result."""
        return self.code == "cut_prompt" and self.n >= UNUSUAL * self.of


def find_response_checks(folder: Path) -> list[ResponseCheck]:
    """Return what is wrong with the responses of a run; [] for a sound run, and without counts of tokens."""
    plan = read_plan(folder)
    store = Store(folder / "responses", response_schema())
    responses = store.table(("key", "prompt_tokens", "media_tokens"))
    # Some texts show what all do; those of a million answers would fill the memory.
    keys = responses["key"].to_pylist()
    texts = store.where("key", keys[:: -(-len(keys) // _MOST_TEXTS) or 1], ("key", "text"))["text"].drop_null()
    found = list(_find_reasoning(texts))
    counted = responses.filter(pc.greater(pc.fill_null(responses["prompt_tokens"], 0), 0))
    if not len(counted):
        return found
    places = pc.index_in(plan["key"].combine_chunks(), value_set=counted["key"].combine_chunks())
    sent = plan.select(["task", WORDS, SECONDS])
    for name in ("prompt_tokens", "media_tokens"):
        sent = sent.append_column(name, counted[name].combine_chunks().take(places))
    sent = sent.filter(pc.is_valid(sent["prompt_tokens"]))
    for task in pc.unique(sent["task"]).to_pylist():
        found += _find_in_task(task, sent.filter(pc.equal(sent["task"], pa.scalar(task))))
    return found


def _find_reasoning(texts: pa.ChunkedArray) -> Iterator[ResponseCheck]:
    n = pc.sum(pc.match_substring_regex(texts, REASONING_LEFT)).as_py() or 0
    if n >= max(3, UNUSUAL * len(texts)):
        yield ResponseCheck(code="reasoning_left", n=n, of=len(texts))


def _find_in_task(task: str, sent: pa.Table) -> Iterator[ResponseCheck]:
    words, seconds, tokens, media = (
        pc.cast(sent[name], pa.float64()).to_numpy() for name in (WORDS, SECONDS, "prompt_tokens", "media_tokens")
    )
    # Not every server counts the tokens of media among those of the prompt: of such prompts only the sum is compared.
    text_alone = ~(media > 0)
    cut = tokens < words
    if text_alone.any():
        cut[text_alone] = find_cut_prompts(tokens[text_alone], words[text_alone])
    yield from _describe("cut_prompt", task, cut, tokens, words)
    heard = np.isfinite(seconds) & (media > 0)
    if heard.any():
        seconds, media = seconds[heard], media[heard]
        cut, limit_s = find_cut_audio(media, seconds)
        yield from _describe("cut_audio" if np.isfinite(limit_s) else "cut_fixed", task, cut, media, seconds, limit_s)


def find_cut_prompts(tokens: NDArray[np.float64], words: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which prompts have fewer tokens than words, or a count that no longer grows with their length."""
    top = tokens.max()
    shortest = words[tokens == top].min()
    longer = words > shortest
    grows = top < _LEAST_TOKENS or len(np.unique(words[longer])) < 2 or words.max() < _CLEARLY * shortest
    stopped = not grows and (tokens[longer] == top).mean() > 0.9
    cut: NDArray[np.bool_] = (tokens < words) | ((tokens == top) & stopped)
    return cut


def find_cut_audio(tokens: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[NDArray[np.bool_], float]:
    """Return which recordings have no more tokens than shorter ones, and the seconds that were heard.

    NaN seconds: every recording has the same number of tokens, so that nothing shows a limit.
    """
    top = tokens.max()
    below = tokens < top
    if not below.any():
        return np.full(len(tokens), seconds.max() >= _FIXED * seconds.min()), float("nan")
    limit_s = float(top / np.median(tokens[below] / seconds[below]))
    cut = seconds > _CLEARLY * limit_s
    return cut & bool((tokens[cut] == top).all()), limit_s


def _describe(
    code: Code, task: str, cut: NDArray[np.bool_], tokens: NDArray[np.float64], sizes: NDArray[np.float64],
    limit_s: float = float("nan"),
) -> Iterator[ResponseCheck]:  # fmt: skip
    if cut.any():
        counts = {"n": int(cut.sum()), "of": len(cut), "tokens": int(tokens[cut].max())}
        least, most = float(sizes[cut].min()), float(sizes[cut].max())
        yield ResponseCheck(code=code, task=task, least=least, most=most, limit_s=limit_s, **counts)


def list_cut_tasks(checks: Iterable[ResponseCheck]) -> dict[str, str]:
    """Return why a task without a difference has no result, by task."""
    return {
        check.task: f"the server cut {check.n:,} of {check.of:,} prompts: it counted {check.tokens:,} tokens for "
        f"{check.least:,.0f} words or more"
        for check in checks
        if check.lacks_result
    }
