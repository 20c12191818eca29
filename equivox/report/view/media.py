"""The recordings and pictures that requests sent, and the spoken answers that they got."""

from __future__ import annotations

import re
from collections.abc import Mapping

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.media import MediaError, checked_image, compact_audio
from equivox.core.redact import redacted_text
from equivox.core.task import DataSource
from equivox.dataset_builders.corpus import Sample, table_in
from equivox.dataset_builders.opening import open_corpus, open_unread
from equivox.report.view.answers import Answers
from equivox.run.opening import data_of
from equivox.run.store import read_sound

PLAYED = {b"RIFF": "audio/wav", b"fLaC": "audio/flac", b"OggS": "audio/ogg", b"ID3": "audio/mpeg"}
"""The first bytes of recordings that browsers play as they are, and their types."""

Corpora = dict[tuple[str, str, str], Mapping[str, Sample]]
"""The samples by name of each corpus that was opened."""


def read_medium(answers: Answers, row: int, number: int, data: str | None, corpora: Corpora) -> tuple[bytes, str]:
    """Return a recording or picture as browsers show it, and its type; UsageError if it is not there.

    `number` is its position in `Answers.list_media(row)`. `data` is where the corpus is now, if that has changed.
    """
    kinds = answers.list_media(row) if 0 <= row < len(answers.plan) else []
    if not 0 <= number < len(kinds):
        raise UsageError("this request has no such recording or picture")
    try:
        if kinds[number] == "sound":
            sha256 = str(answers.responses["sound"][row])
            if not re.fullmatch("[0-9a-f]{64}", sha256):
                raise UsageError("the run names no spoken answer")
            return _make_playable(read_sound(answers.run.folder, sha256), "the spoken answer")
        source = answers.task.data
        where = data or data_of(answers.run.folder, source)
        key = source.corpus, str(source.table), str(where)
        if key not in corpora:
            corpora[key] = _read_samples(table_in(source, data), where)
        sample = corpora[key].get(str(answers.plan["sample_id"][row]))
        if sample is None:
            raise UsageError("the corpus lacks this sample now; name the run's data with `--data`")
        file = sample.sent(answers.task.media[number].column)
        if kinds[number] == "image":
            return checked_image(file.load(), name=file.file_name)
        return _make_playable(file.load(), file.file_name)
    except (MediaError, OSError) as error:
        raise UsageError(redacted_text(str(error))) from error


def _read_samples(source: DataSource, where: str | None) -> Mapping[str, Sample]:
    """Return the samples of a corpus by name; UsageError if it cannot be opened."""
    try:
        corpus = open_unread(source, where) or open_corpus(source, where)
    except (EquivoxError, OSError) as error:
        raise UsageError(redacted_text(f"{error}; name the data of the run with `--data`")) from error
    return {sample.sample_id: sample for sample in corpus.samples}


def _make_playable(data: bytes, name: str) -> tuple[bytes, str]:
    """Return a recording as browsers play it, and its type; MediaError for one that cannot be decoded."""
    kind = next((kind for start, kind in PLAYED.items() if data.startswith(start)), None)
    return (data, kind) if kind else (compact_audio(data, name=name), "audio/ogg")
