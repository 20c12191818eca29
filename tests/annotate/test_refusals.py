"""Refusals that `rules` know by their phrases, in the languages of `configs/annotators/rules.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from equivox.configs import load_config
from equivox.configs.vocabulary import Refusals, Vocabulary, load_vocabulary

LANGUAGES = dict(load_config("annotators/rules.yaml")["refusal"])
TEXTS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text("utf-8"))
"""Texts that decline and texts that answer, by language."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_declines_is_known_in_many_languages(language: str) -> None:
    texts = TEXTS[language]["declined"]
    assert len(texts) >= 2 and [text for text in texts if not load_vocabulary().declines(text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_answers_is_no_refusal(language: str) -> None:
    texts = TEXTS[language]["answered"]
    assert len(texts) >= 2 and [text for text in texts if load_vocabulary().declines(text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_phrase_declines_something_and_has_one_of_its_languages_words(language: str) -> None:
    contains, phrases = (tuple(LANGUAGES[language][key]) for key in ("contains", "phrases"))
    alone = {phrase: Vocabulary({}, (Refusals(contains, (phrase,)),), digest="") for phrase in phrases}
    texts = TEXTS[language]["declined"]
    assert [phrase for phrase, only in alone.items() if not any(map(only.declines, texts))] == []
