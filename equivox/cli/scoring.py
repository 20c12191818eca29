"""The options of the scoring, which several commands have.

Type annotations are evaluated here (no `from __future__ import annotations`): typer reads the options from them.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from equivox.core.scores import (
    DEFAULT_ENCODER,
    DEFAULT_MERGE_THRESHOLD,
    FEWEST_RESAMPLES,
    MOST_RESAMPLES,
    ScoringOptions,
    scoring_options,
)


def _typed_options(
    min_count: Annotated[
        int | None,
        typer.Option(min=1, help="Set aside values seen less often; 10 by default, less below 1,000 responses."),
    ] = None,
    min_coverage: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of usable responses that a score needs in every group.")
    ] = 0.8,
    resamples: Annotated[
        int, typer.Option(min=FEWEST_RESAMPLES, max=MOST_RESAMPLES, help="Permutations drawn for each null.")
    ] = 10_000,
    scoring_seed: Annotated[int, typer.Option(help="Seed of the permutations and intervals.")] = 0,
    merge: Annotated[
        str, typer.Option(help="Which open values count as one: none, lemma, or embedding (lemma, then by meaning).")
    ] = "lemma",
    encoder: Annotated[
        str, typer.Option(help="The sentence-transformers model for --merge embedding.")
    ] = DEFAULT_ENCODER,
    merge_threshold: Annotated[
        float, typer.Option(help="The cosine from which --merge embedding counts values as one, above 0 and up to 1.")
    ] = DEFAULT_MERGE_THRESHOLD,
) -> ScoringOptions:
    return scoring_options(
        min_count=min_count,
        n_resamples=resamples,
        min_coverage=min_coverage,
        seed=scoring_seed,
        merge=merge,
        encoder=encoder,
        merge_threshold=merge_threshold,
    )


def with_scoring_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return `command` with the options of the scoring in place of its parameter `options`."""
    theirs = inspect.signature(_typed_options).parameters

    @functools.wraps(command)
    def filled(**given: Any) -> int:
        typed = {name: given.pop(name) for name in theirs}
        return command(**given, options=_typed_options(**typed))

    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters.extend(theirs.values() if name == "options" else [parameter])
    filled.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return filled
