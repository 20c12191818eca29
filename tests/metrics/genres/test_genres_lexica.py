"""Word lists: read, checked, fetched from a home that we stand in for; traits against the released scorer."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli
from hypothesis import given
from hypothesis import strategies as st

from equivox.core.errors import RunError, UsageError
from equivox.core.task import digest
from equivox.dataset_builders import word_lists
from equivox.dataset_builders.word_lists import SOURCES, fetch_lexicon, read_lexicon
from equivox.metrics.genres.annotation import lexica
from equivox.metrics.genres.annotation.lexica import parse_emotions, parse_traits, score_traits
from equivox.metrics.genres.annotation.tools import stand_in_traits

DIMENSIONS = ("Sociability", "Morality", "Ability", "Agency")
HEADER = ",".join(
    ["original word", "Positive valence", "Negative valence", "Neutral valence"]
    + [f"{name} {what}" for name in DIMENSIONS for what in ("dictionary", "direction")]
)
# word, valences, then dictionary and direction of each dimension
ROWS = (
    "mild,0.5,0.1,0.4,1,1,0,NA,0,NA,0,NA",
    "harsh,0,0.6,0.4,1,-1,1,-1,0,NA,0,NA",
    "deft,0.2,0.2,0.6,0,NA,0,NA,1,1,0,NA",
    "well-read,0.3,0,0.7,0,NA,0,NA,1,1,0,NA",
    "tall,NA,NA,NA,0,NA,0,NA,0,NA,0,NA",
    "na,NA,NA,NA,0,NA,0,NA,0,NA,0,NA",
)
TRAITS = parse_traits("\n".join([HEADER, *ROWS]))


def test_membership_direction_and_valence_by_hand() -> None:
    # mild and harsh are warmth words, deft a competence word: w = 2/3, signed (1 - 1)/3.
    found = score_traits(["mild", "harsh", "deft"], TRAITS)
    assert (found["warmth"], found["competence"], found["signed_warmth"]) == (2, 1, 0)
    assert found["warmth_share"] == pytest.approx(2 / 3) and found["signed_warmth_share"] == 0
    assert found["positive_score"] == pytest.approx((0.5 + 0 + 0.2) / 3 - (0.1 + 0.6 + 0.2) / 3)


def test_cold_words_are_warmth_by_membership_and_not_by_direction() -> None:
    found = score_traits(["harsh"], TRAITS)
    assert (found["warmth_share"], found["signed_warmth_share"]) == (1.0, -1.0)


def test_spelling_phrases_and_repetition() -> None:
    assert score_traits(["Well-Read", "well read"], TRAITS)["n_matched"] == 1
    assert score_traits(["quietly deft", "deft"], TRAITS)["n_matched"] == 1
    published = score_traits(["quietly deft", "deft"], TRAITS, paper_compat=True)
    assert published["n_matched"] == 2
    assert score_traits(["well read"], TRAITS, paper_compat=True)["n_matched"] == 0


def test_what_says_nothing_is_missing_and_not_zero() -> None:
    for traits in ([], ["NA"], ["n/a"], ["unheard-of"]):
        found = score_traits(traits, TRAITS)
        assert found["n_matched"] == 0
        assert all(math.isnan(found[name]) for name in ("warmth_share", "signed_warmth_share", "positive_score"))
    assert math.isnan(score_traits(["tall"], TRAITS)["positive"])
    # The released scorer takes "NA" for a trait, with a valence of zero.
    assert score_traits(["NA"], TRAITS, paper_compat=True)["positive"] == 0


@given(st.lists(st.sampled_from(sorted(stand_in_traits().words)), max_size=12), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(traits: list[str], rng: object) -> None:
    shuffled = list(traits)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (score_traits(named, stand_in_traits()) for named in (traits, [*shuffled, *traits]))
    assert one["n_matched"] == other["n_matched"] == len(set(traits))
    for name in ("warmth", "competence", "signed_warmth"):
        assert one[name] == other[name]


@pytest.mark.paper
def test_the_released_scorer_is_reproduced(reference_data: Path) -> None:
    folder = reference_data / "genres"
    lexicon = parse_traits(read_lexicon("sadcat", folder / "sadcat_full_dictionaries.csv"))
    golden = json.loads((folder / "trait_scorer_golden.json").read_text("utf-8"))
    assert len(golden) == 10
    for case in golden:
        found = score_traits(case["personality"].split(","), lexicon, paper_compat=True)
        assert (found["warmth"], found["competence"]) == (case["Warmth"], case["Competence"])
        for value, expected in zip(
            (found["positive"], found["negative"], found["neutral"]),
            (case["Positive"], case["Negative"], case["Neutral"]),
            strict=True,
        ):
            assert math.isnan(value) if expected == "NA" else value == pytest.approx(expected, abs=1e-12)


@pytest.mark.paper
def test_the_published_lexica_are_those_that_are_pinned(reference_data: Path) -> None:
    folder = reference_data / "genres"
    emotions = parse_emotions(read_lexicon("nrc", folder / "nrc_emotion_lexicon_wordlevel_v0.92.txt"))
    assert len(emotions) == 6468 and emotions["abacus"] == {"trust"}
    traits = parse_traits(read_lexicon("sadcat", folder / "sadcat_full_dictionaries.csv"))
    assert len(traits.published) == 14_449 and "na" in traits.published and "na" not in traits.words


@pytest.mark.parametrize("line", ["calm\tjoy", "calm\tbliss\t1", "calm\tjoy\t2"])
def test_a_malformed_line_is_named(line: str) -> None:
    with pytest.raises(UsageError, match="line 2 of the emotion lexicon"):
        parse_emotions(f"calm\tjoy\t1\n{line}")


def test_a_missing_column_is_named() -> None:
    with pytest.raises(UsageError, match="'Agency direction'"):
        parse_traits(HEADER.replace(",Agency direction", "") + "\n")


def test_a_missing_list_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIVOX_LEXICA", str(tmp_path))
    with pytest.raises(UsageError, match=r"equivox data build nrc.*EQUIVOX_LEXICA"):
        read_lexicon("nrc")
    with pytest.raises(UsageError, match="did you mean nrc"):
        read_lexicon("nrcc")


def test_a_package_with_the_same_words_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIVOX_LEXICA", str(tmp_path))
    folder = tmp_path / "packages" / "nrclex" / "data"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise ImportError('it is not imported')")
    (folder / "nrc_en.json").write_text('{"calm": ["trust", "positive"]}')
    monkeypatch.syspath_prepend(tmp_path / "packages")
    # Another list than the published one is not taken for it.
    with pytest.raises(UsageError, match="equivox data build nrc"):
        lexica.read_emotions()
    monkeypatch.setattr(lexica, "NRC_CONTENT", digest({"calm": ["positive", "trust"]}))
    assert lexica.read_emotions() == {"calm": {"positive", "trust"}}


@pytest.mark.paper
def test_the_content_of_the_published_list_is_pinned(reference_data: Path) -> None:
    path = reference_data / "genres" / "nrc_emotion_lexicon_wordlevel_v0.92.txt"
    found = lexica.read_emotions(path)
    assert digest({word: sorted(categories) for word, categories in found.items()}) == lexica.NRC_CONTENT


def test_another_file_is_refused_unless_its_checksum_is_given(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(b"calm\tjoy\t1\n")
    with pytest.raises(UsageError, match="is not the NRC"):
        read_lexicon("nrc", path)
    assert read_lexicon("nrc", path, sha256=hashlib.sha256(b"calm\tjoy\t1\n").hexdigest()) == "calm\tjoy\t1\n"


@pytest.fixture
def small_nrc(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Pin a small list in place of the published one; returns the archive that its home gives out."""
    content = b"calm\tjoy\t1\n"
    pinned = replace(SOURCES["nrc"], sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(word_lists, "SOURCES", {"nrc": pinned})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"NRC-Emotion-Lexicon/{pinned.member}", content)
        archive.writestr(f"NRC-Emotion-Lexicon/OneFilePerLanguage/deep/{pinned.member}", b"another")
    return buffer.getvalue()


def test_a_list_is_fetched_once(tmp_path: Path, small_nrc: bytes) -> None:
    asked: list[str] = []

    def get(url: str) -> bytes:
        asked.append(url)
        return small_nrc

    path = fetch_lexicon("nrc", tmp_path / "lexica", get=get)
    assert path.read_bytes() == b"calm\tjoy\t1\n"
    assert fetch_lexicon("nrc", tmp_path / "lexica", get=get) == path
    assert asked == [SOURCES["nrc"].url] and [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_nothing_is_kept_of_what_is_not_expected(tmp_path: Path, small_nrc: bytes) -> None:
    for data in (b"not a zip", small_nrc.replace(b"calm\tjoy", b"calm\tjoi")):
        with pytest.raises((RunError, zipfile.BadZipFile)):
            fetch_lexicon("nrc", tmp_path / "lexica", get=lambda _, data=data: data)

    def unreachable(url: str) -> bytes:
        raise OSError("no route")

    with pytest.raises(RunError, match=r"no route.*by hand"):
        fetch_lexicon("nrc", tmp_path / "lexica", get=unreachable)
    assert not (tmp_path / "lexica").exists()


def test_offline_says_so(equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, out, err = equivox("data", "build", "sadcat", "--output", tmp_path)
    assert code == 2 and err.count("\n") == 1 and "HF_HUB_OFFLINE" in err and "osf.io" in err
    assert "Licence:" in out
    assert equivox("data", "build", "sadcut")[0] == 2
