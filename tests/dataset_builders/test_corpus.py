"""The same corpus by every way in gives the same items, requests and scores."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli

from equivox.core import media
from equivox.core.errors import EquivoxError, UsageError
from equivox.core.task import DataSource
from equivox.dataset_builders import opening, sample_source, schema
from equivox.dataset_builders.corpus import Corpus, builder_of, table_in, text_sample
from equivox.dataset_builders.opening import open_corpus
from equivox.tasks.registry import resolve_tasks


@pytest.mark.parametrize(
    ("source", "rows", "samples"),
    [
        (DataSource(corpus="crema_d"), 288, 288),
        (DataSource(corpus="l2_arctic"), 288, 288),
        (DataSource(corpus="genres", where={"relationship": "em"}), 120, 30),
    ],
    ids=lambda value: getattr(value, "corpus", None),
)
def test_the_sample_and_its_parquet_build_are_the_same_corpus(
    source: DataSource, rows: int, samples: int, equivox: Cli, tmp_path: Path
) -> None:
    sample = sample_source(source.corpus)
    assert f"{rows} rows" in equivox.done("data", "build", source.corpus, "--source", sample, "--output", tmp_path)
    direct, built = open_corpus(source, "sample"), open_corpus(source, tmp_path)
    assert built.fingerprint == direct.fingerprint
    assert len(built.samples) == len(direct.samples) == samples
    for left, right in zip(direct.samples, built.samples, strict=True):
        assert (left.sample_id, dict(left.columns), left.sha256, left.problem) == (
            right.sample_id,
            dict(right.columns),
            right.sha256,
            right.problem,
        )
    for place in (0, samples - 1, samples // 3, 1):
        assert built.samples[place].load() == direct.samples[place].load()


def test_a_run_on_the_build_gives_the_scores_of_the_sample(equivox: Cli, tmp_path: Path) -> None:
    sample = sample_source("crema_d")
    equivox("data", "build", "crema_d", "--source", sample, "--output", tmp_path / "data")
    scores = []
    for data, folder in (("sample", "a"), (tmp_path / "data", "b")):
        command = ["run", "simulated:planted,shift=0.3", "vibe_gender:shopper", "--scoring", "n_resamples=199"]
        equivox.done(*command, "--data", data, "--output", tmp_path / folder)
        scores.append(json.loads((tmp_path / folder / "scores.json").read_text()))
    assert scores[0] == scores[1]


def test_the_next_process_need_not_decode_the_clips(
    clip_corpus: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = resolve_tasks(str(clip_corpus(broken=("male3_1.wav",))))[0].data

    def opened(cache: str) -> Corpus:
        monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / cache))
        return open_corpus(source, None)

    decoded: list[bytes] = []
    inspected = media._missing_share
    monkeypatch.setattr(media, "_missing_share", lambda data, *facts: decoded.append(data) or inspected(data, *facts))
    first = opened("cache")
    assert len(first.samples) == 48 and len(decoded) == 47  # one is no audio
    assert not (tmp_path / "cache").exists() and opened("cache") == first and len(decoded) == 2 * 47
    monkeypatch.setattr(schema, "FEWEST_KEPT", 48)
    assert opened("cache") == first and len(decoded) == 3 * 47
    assert opened("cache") == first and len(decoded) == 3 * 47
    # Nor need a build, which has the same rows.
    builder = builder_of(source, None)
    assert builder is not None
    again = [(row["clip_id"], row["duration_s"], row["audio_problem"]) for row, _ in schema.rows(builder)]
    assert len(decoded) == 3 * 47
    assert [(clip, seconds) for clip, seconds, _ in again] == [(own.sample_id, own.duration_s) for own in first.samples]
    assert [clip for clip, _, problem in again if problem] == [own.sample_id for own in first.samples if own.problem]
    # What was kept and is damaged, and a cache that cannot be written, cost time and nothing else.
    (kept,) = (tmp_path / "cache" / "clips").iterdir()
    kept.write_text(kept.read_text().replace('"problem": null', '"problem": "silent"', 1))
    assert opened("cache") == opened("cache") == first and len(decoded) == 4 * 47
    kept.write_text("{}")
    assert opened("cache") == first and len(decoded) == 5 * 47
    (tmp_path / "file").write_text("")
    assert opened("file") == first and len(decoded) == 6 * 47


def test_a_missing_column_is_named() -> None:
    corpus = open_corpus(DataSource(corpus="crema_d"), "sample")
    with pytest.raises(UsageError, match=r"needs the column 'mood'.*it has: .*gender"):
        corpus.require(["mood"], task="t")


def test_a_table_is_read_where_data_says_if_it_lies_there(tmp_path: Path) -> None:
    for folder in ("old", "new", "other"):
        (tmp_path / folder).mkdir()
    old, new = tmp_path / "old" / "t.csv", tmp_path / "new" / "t.csv"
    source = DataSource(corpus="mine", kind="text", table=old, folder=tmp_path / "old" / "clips")
    old.write_text("text\na\n")
    # It still lies where it was, and not elsewhere.
    assert table_in(source, None) == table_in(source, tmp_path / "new") == source
    new.write_text("text\nb\n")
    moved = table_in(source, tmp_path / "new")
    assert (moved.table, moved.folder) == (new, tmp_path / "new" / "clips")
    old.unlink()  # a table that lies nowhere is told to be missing where `data` says
    assert table_in(source, tmp_path / "other").table == tmp_path / "other" / "t.csv"


def test_the_sample_has_only_its_corpora() -> None:
    with pytest.raises(UsageError, match="crema_d"):
        open_corpus(DataSource(corpus="crema"), "sample")


def of_letters(places: int = 4, **changes: object) -> Corpus:
    """A corpus of letters; `changes` are other fields of the second one, or of the corpus."""
    samples = [text_sample(str(place), {"gender": "fm"[place % 2], "name": f"n{place}"}) for place in range(places)]
    whole = {name: changes.pop(name) for name in ("name", "fingerprint", "samples", "notes") if name in changes}
    samples[1] = replace(samples[1], **changes)  # type: ignore[arg-type]
    return Corpus(**({"name": "letters", "fingerprint": "1", "samples": tuple(samples)} | whole))  # type: ignore[arg-type]


def leaving() -> Corpus:
    raise SystemExit(0)


@pytest.mark.parametrize(
    ("opened", "told"),
    [
        (lambda: None, "the data-set builder letters returned NoneType; return a `Corpus`"),
        (lambda: of_letters(samples=[]), "odd field: Corpus: `samples`: input should be a valid tuple"),
        (lambda: of_letters(fingerprint=None), "odd field: Corpus: `fingerprint`: input should be a valid string"),
        (lambda: of_letters(sample_id=3), "odd field: Sample: `sample_id`: input should be a valid string, got 3"),
        (lambda: of_letters(sample_id="0"), "gave a sample the name '0', which is empty or taken"),
        (lambda: of_letters(sample_id=""), "gave a sample the name '', which is empty or taken"),
        (lambda: of_letters(columns={"name": "n1"}), "gave '1' other columns than the first sample: gender"),
        (lambda: of_letters(columns={"name": "n1", "gender": ["f"]}), "odd field: Sample: `columns.gender"),
        (lambda: of_letters(columns={"name": "n1", "gender": math.nan}), "gave '1' NaN as gender, which would be a"),
        (lambda: of_letters(columns={"name": "\ud800", "gender": "f"}), "surrogates not allowed"),
        (lambda: {}["gone"], r"builder letters failed \(KeyError: 'gone'\); stored responses are kept"),
        (leaving, r"builder letters failed \(SystemExit: 0\)"),
    ],
)  # fmt: skip
def test_an_odd_corpus_of_a_plug_in_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[[], Corpus], told: str
) -> None:
    monkeypatch.setattr(opening, "openers", lambda: {"letters": lambda source, data: opened()})
    with pytest.raises(EquivoxError, match=told):
        open_corpus(DataSource(corpus="letters"), None)


def test_a_sound_corpus_of_a_plug_in_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "openers", lambda: {"letters": lambda source, data: of_letters()})
    assert open_corpus(DataSource(corpus="letters"), None) == of_letters()
