"""Patching: hidden states of one prompt replace those of another, by forward hooks on the model's layers.

After Ghandeharioun et al. 2024 (Patchscopes), as used by BADF (arXiv 2508.01412, appendix C.1): in the second prompt,
the model knows only the hidden states of a few words at one layer of the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.lazy import torch
from equivox.core.task import Patch

_SETTABLE = tuple(field.name for field in fields(Patch) if field.name != "source_span")


Graft = tuple[Any, Sequence[int]]
"""Hidden states for one row of a batch, shape (tokens, hidden size), and the token positions that they replace."""


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise UsageError for unknown keys of `patch`, and for values of the wrong type."""
    for name, value in settings.items():
        if name not in _SETTABLE:
            raise UsageError(f"`patch` has no setting {name!r}; it has {', '.join(_SETTABLE)}")
        wanted = int if name.endswith("_layer") else str
        if not isinstance(value, wanted) or isinstance(value, bool):
            what = "a layer's number" if wanted is int else "a text"
            raise UsageError(f"`patch.{name}` is {what}, got {value!r}")


def check_layers(patch: Patch, n_layers: int, *, model: str) -> None:
    """Raise UsageError for a layer that the model does not have, and for a target without its placeholder word."""
    for name in ("source_layer", "target_layer"):
        layer = getattr(patch, name)
        if not 0 <= layer < n_layers:
            raise UsageError(
                f"`patch.{name}` {layer} is not among the {n_layers} layers of {model}, 0 to {n_layers - 1}"
            )
    if patch.target_token not in patch.target.split():
        raise UsageError(f"`patch.target` does not contain the word {patch.target_token!r}, which receives the states")


def layers_of(model: Any) -> Any:
    """Return the decoder layers of a transformers model; UsageError if they cannot be found."""
    wanted = model.config.get_text_config().num_hidden_layers
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else model
    for module in (decoder, model):
        for part in module.modules():
            if isinstance(part, torch.nn.ModuleList) and len(part) == wanted:
                return part
    raise UsageError(f"{type(model).__name__} shows no list of {wanted} layers; hidden states cannot be replaced in it")


def target_text(patch: Patch, n_states: int) -> str:
    """Return the target prompt with its token repeated `n_states` times.

    >>> patch = Patch(source_span=("", ""), source_layer=0, target="about X X X", target_token="X", target_layer=0)
    >>> target_text(patch, 5), target_text(patch, 1)
    ('about X X X X X', 'about X')
    """
    words = patch.target.split(" ")
    first = words.index(patch.target_token)
    kept = [word for word in words if word != patch.target_token]
    return " ".join([*kept[:first], *[patch.target_token] * n_states, *kept[first:]])


def span_tokens(offsets: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Return the positions of the tokens that contain any character from `start` to `end` (not included).

    >>> span_tokens([(0, 0), (0, 5), (5, 6), (6, 10)], 4, 7)
    [1, 2, 3]
    """
    return [place for place, (first, last) in enumerate(offsets) if first < end and last > start]


def word_tokens(offsets: Sequence[tuple[int, int]], text: str, word: str, within: tuple[int, int]) -> list[int]:
    """Return the position of the last token of each `word` (between spaces) within a part of `text`."""
    found = re.finditer(rf"(?<!\S){re.escape(word)}(?!\S)", text[within[0] : within[1]])
    return [span_tokens(offsets, within[0] + m.start(), within[0] + m.end())[-1] for m in found]


def source_states(model: Any, tokens: Any, layer: int, places: Sequence[int]) -> Any:
    """Return the output of layer `layer` for `tokens` (shape (1, n)) at `places`, shape (places, hidden size)."""
    kept: list[Any] = []
    handle = layers_of(model)[layer].register_forward_hook(lambda _, __, output: kept.append(_hidden(output).detach()))
    try:
        with torch.inference_mode():
            model(input_ids=tokens, attention_mask=torch.ones_like(tokens), use_cache=False)
    finally:
        handle.remove()
    return kept[0][0, list(places)].clone()


@contextmanager
def grafted(model: Any, layer: int, grafts: Sequence[Graft], width: int) -> Iterator[None]:
    """Replace the output of layer `layer` for prompts of `width` tokens, row by row, inside the `with` block.

    The tokens that are generated afterwards, one by one, are not changed.
    """

    def replace_states(_: Any, __: Any, output: Any) -> Any:
        hidden = _hidden(output)
        if hidden.shape[1] != width:
            return output
        hidden = hidden.clone()
        for row, (states, places) in enumerate(grafts):
            hidden[row, list(places)] = states.to(hidden.dtype).to(hidden.device)
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    handle = layers_of(model)[layer].register_forward_hook(replace_states)
    try:
        yield
    finally:
        handle.remove()


def _hidden(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output
