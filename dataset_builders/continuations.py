"""Statistics of a corpus of continuations: size, length, agreement of annotators, diversity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import isnan
from statistics import fmean

from equivox.core.errors import RequestError
from equivox.core.progress import Event, Progress, no_progress
from equivox.core.task import Column
from equivox.dataset_builders.spoken_stereoset import KINDS

_NAN = float("nan")


def rouge_l_diversity(
    continuations: Iterable[str], *, stage: str = "ROUGE-L", progress: Progress = no_progress
) -> dict[str, float]:
    """Return the average ROUGE-L (F-measure, no stemming) of each distinct continuation with every other one.

    0 means no common words, 1 the same text; the paper's are all below 0.13. Of fewer than two continuations there is
    no average. Source: arXiv 2408.07665, section 3.4, by the package rouge-score; a text that several instances share
    counts once. `progress` is told of each continuation under the name `stage`. RequestError if rouge-score is not
    installed.

    Examples
    --------
    "a b c d" and "a b": the longest common subsequence is 2, so 2 · 2 / (4 + 2); "x" has nothing in common.

    >>> {text: round(value, 4) for text, value in rouge_l_diversity(["a b c d", "a b", "x"]).items()}
    {'a b': 0.3333, 'a b c d': 0.3333, 'x': 0.0}
    """
    distinct = sorted(set(continuations))
    if len(distinct) < 2:
        return {}
    score = _rouge_l()
    sums = [0.0] * len(distinct)
    for first, text in enumerate(distinct):
        for second in range(first):
            value = score(distinct[second], text)
            sums[first] += value
            sums[second] += value
        progress(Event(stage, first + 1, len(distinct)))
    return {text: total / (len(distinct) - 1) for text, total in zip(distinct, sums, strict=True)}


def _rouge_l() -> Callable[[str, str], float]:
    try:
        from rouge_score import tokenizers
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise RequestError('ROUGE-L needs rouge-score: install it with `pip install "equivox[diversity]"`') from error

    words = tokenizers.DefaultTokenizer(use_stemmer=False)
    words.tokenize = cache(words.tokenize)  # each text is split only once
    scorer = RougeScorer(["rougeL"], tokenizer=words)
    return lambda first, second: float(scorer.score(first, second)["rougeL"].fmeasure)


def corpus_facts(
    rows: Sequence[Mapping[str, Column]],
    seconds: Sequence[float | None],
    diverse: bool,
    progress: Progress,
) -> tuple[list[dict[str, str]], dict[str, Sequence[float]]]:
    """Return a row of texts per domain: size, length and agreement; with `diverse` also ROUGE-L of continuations.

    `rows` and `seconds` are the columns and the length of each sample (None: unknown). `mean seconds` is the mean
    length of the spoken contexts that can be decoded, `mean words` that of the continuations (split at spaces),
    `agreement` the mean percentage of annotators whose label is the continuation's kind; — where nothing is known. The
    second is, by domain, the average ROUGE-L of each continuation with all others of its domain; empty without
    `diverse`, because it is slow. Source: arXiv 2408.07665, Table 2.
    """
    lines = []
    averages: dict[str, Sequence[float]] = {}
    for domain in sorted({str(row["domain"]) for row in rows}):
        own = [(row, length) for row, length in zip(rows, seconds, strict=True) if row["domain"] == domain]
        texts = [str(row[kind]) for row, _ in own for kind in KINDS if row[kind]]
        votes = [row[f"{kind}_agreement"] for row, _ in own for kind in KINDS]
        counts = {
            "speakers": len({row["speaker"] for row, _ in own}),
            "instances": len(own),
            "contexts": len({row["context"] for row, _ in own}),
        }
        means = {
            "mean seconds": _mean([length for _, length in own if length is not None]),
            "mean words": _mean([len(text.split()) for text in texts]),
            "agreement": 100 * _mean([float(vote) for vote in votes if vote is not None]),
        }
        groups = Counter(str(row[domain]) for row, _ in own if row[domain])
        line = {"domain": domain, **{name: f"{number:,}" for name, number in counts.items()}}
        line |= {name: _text(value, 2) for name, value in means.items()}
        line["groups"] = ", ".join(f"{group} {n:,}" for group, n in sorted(groups.items()))
        if diverse:
            found = rouge_l_diversity(texts, stage=f"ROUGE-L of {domain}", progress=progress)
            averages[domain] = list(found.values())
            largest = max(found.values(), default=_NAN)
            line |= {"mean ROUGE-L": _text(_mean(averages[domain]), 3), "largest": _text(largest, 3)}
        lines.append(line)
    return lines, averages


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else _NAN


def _text(value: float, digits: int) -> str:
    return "—" if isnan(value) else f"{value:.{digits}f}"
