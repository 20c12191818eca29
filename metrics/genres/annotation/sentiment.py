"""Sentiment of sentences (M6): a transformers classifier, or a labelled stand-in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from equivox.core.errors import RequestError
from equivox.metrics.genres.annotation.parsers import STAND_IN, words

SENTIMENT_MODEL = "distilbert/distilbert-base-uncased-finetuned-sst-2-english"
SENTIMENT_REVISION = "714eb0f"
"""The revision of the paper's classifier that transformers pins."""

POSITIVE, NEGATIVE = "positive", "negative"


class TransformersClassifier:
    """A text-classification model of transformers, on a GPU if there is one; it labels sentences in batches.

    Batches contain sentences of similar length. Raises RequestError if the model is missing or has no label for
    "positive".
    """

    def __init__(
        self, model: str = SENTIMENT_MODEL, *, revision: str | None = SENTIMENT_REVISION, batch_size: int = 64
    ) -> None:
        self._model = model
        self._revision = revision if model == SENTIMENT_MODEL else None
        self._batch_size = batch_size
        self._loaded: Any = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model and its revision."""
        return {"sentiment": self._model, "revision": self._revision}

    def check(self) -> None:
        """Raise RequestError, saying how to install them, if transformers or torch is missing."""
        import importlib.util

        if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
            raise _missing()

    def labels(self, sentences: Sequence[str]) -> list[str]:
        """Return one label per sentence; sentences that are too long for the model are cut."""
        import torch

        tokenizer, model, positive = self._pipeline()
        found = [NEGATIVE] * len(sentences)
        order = sorted(range(len(sentences)), key=lambda n: len(sentences[n]))
        for start in range(0, len(order), self._batch_size):
            members = order[start : start + self._batch_size]
            batch = tokenizer([sentences[n] for n in members], padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                best = model(**batch.to(model.device)).logits.argmax(dim=-1).tolist()
            for n, label in zip(members, best, strict=True):
                found[n] = POSITIVE if label == positive else NEGATIVE
        return found

    def _pipeline(self) -> tuple[Any, Any, int]:
        if self._loaded is None:
            try:
                import torch
                from transformers import AutoModelForSequenceClassification, AutoTokenizer
            except ModuleNotFoundError:
                raise _missing() from None
            try:
                tokenizer = AutoTokenizer.from_pretrained(self._model, revision=self._revision)
                model = AutoModelForSequenceClassification.from_pretrained(self._model, revision=self._revision)
            except (OSError, ValueError) as error:
                reason = str(error).strip().splitlines()[0]
                raise RequestError(
                    f"the sentiment model {self._model!r} cannot be opened ({reason}); get it with "
                    f"`hf download {self._model}`, or name a folder that holds one"
                ) from None
            labels = {int(n): str(label).lower() for n, label in model.config.id2label.items()}
            positive = [n for n, label in labels.items() if label in {"positive", "pos", "label_1"}]
            if len(positive) != 1:
                raise RequestError(
                    f"the sentiment model {self._model!r} has no label that says positive, got {list(labels.values())}"
                )
            device = "cuda" if torch.cuda.is_available() else "cpu"
            self._loaded = tokenizer, model.to(device).eval(), positive[0]
        return self._loaded  # type: ignore[no-any-return]


def _missing() -> RequestError:
    return RequestError(
        'the sentiment of sentences needs transformers; install it with `pip install "equivox[genres]"`, '
        "or choose the word list with `sentiment: stand-in`"
    )


class StandInClassifier:
    """Classifier by short word lists: a sentence is positive if it has more positive words than negative ones.

    It shows that the pipeline runs; its labels say nothing about real sentences.
    """

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name that is shown with every figure that depends on it."""
        return {"sentiment": STAND_IN, "version": words()["stand_in"]["version"]}

    def check(self) -> None:
        """Do nothing: no installation is needed."""

    def labels(self, sentences: Sequence[str]) -> list[str]:
        """Return one label per sentence."""
        good, bad = (frozenset(words()["stand_in"][name].split()) for name in (POSITIVE, NEGATIVE))
        found = []
        for sentence in sentences:
            named = re.findall(r"\w+", sentence.casefold())
            found.append(POSITIVE if sum((w in good) - (w in bad) for w in named) > 0 else NEGATIVE)
        return found


Classifier = TransformersClassifier | StandInClassifier
