"""The recordings, pictures and texts that drawn answers are about, as people hear, see and read them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace

from equivox.audit.drawing import Drawn
from equivox.core.errors import RequestError
from equivox.core.media import MediaError, checked_image, compact_audio
from equivox.core.task import DataSource, placeholders_of
from equivox.core.variants import SILENCE, TEXT_ONLY
from equivox.dataset_builders.corpus import Corpus, Sample, table_in
from equivox.dataset_builders.opening import open_corpus
from equivox.run.opening import data_of

_Corpora = dict[tuple[str, str], Mapping[str, Sample]]
_WITHOUT = "leave it out: `audit label --no-media`, `report` without `--examples`"

ENDINGS = {"audio/ogg": ".ogg", "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
"""The types of media that people get, and the endings of their files."""


def data_uri(mime: str, content: bytes) -> str:
    """Return a file as an address that holds its bytes."""
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def media_of(drawn: Sequence[Drawn], data: str | None) -> dict[str, tuple[str, bytes]]:
    """Return the media of each item: its type, and the recording as compact ogg, or the image.

    Of a dialogue it is the last that was sent before the answer.
    """
    corpora: _Corpora = {}
    found: dict[str, tuple[str, bytes]] = {}
    for one in drawn:
        if one.segment is not None or not one.task.media or one.task.condition in {TEXT_ONLY, SILENCE}:
            continue
        medium = one.task.media[-1]
        item = _sample(one, data, corpora).sent(medium.column)
        try:
            if medium.kind == "audio":
                found[one.item] = ("audio/ogg", compact_audio(item.load(), name=item.file_name))
            else:
                checked, mime = checked_image(item.load(), name=item.file_name)
                found[one.item] = (mime, checked)
        except (MediaError, OSError) as error:
            raise RequestError(f"{error}; {_WITHOUT}") from error
    return found


def with_texts(drawn: Sequence[Drawn], data: str | None) -> list[Drawn]:
    """Return the items with the texts of the corpus that their prompts name and the run does not keep."""
    corpora: _Corpora = {}
    return [
        replace(one, columns=_sample(one, data, corpora).columns) if placeholders_of(one.prompt) else one
        for one in drawn
    ]


def _sample(one: Drawn, data: str | None, corpora: _Corpora) -> Sample:
    """Return the sample that an item is about; RequestError, naming what to do, if it is not there."""
    where = data or data_of(one.run, one.task.data)
    place = (one.task.data.corpus, str(where))
    if place not in corpora:
        corpora[place] = {sample.sample_id: sample for sample in _corpus(one.task.data, data, where).samples}
    sample = corpora[place].get(one.row.sample_id)
    if sample is None:
        raise RequestError(
            f"{place[1]} has no sample {one.row.sample_id} of {one.task.data.corpus}, which the run asked about; "
            f"name the data of the run with `--data`, or {_WITHOUT}"
        )
    return sample


def _corpus(source: DataSource, data: str | None, where: str | None) -> Corpus:
    """Return the corpus of a run; a custom table is looked for in the folder `data`, if that is given."""
    try:
        return open_corpus(table_in(source, data), where)
    except RequestError as error:
        if source.table is None:
            raise
        raise RequestError(
            f"{error}; if the corpus was moved, name the folder of its table with `--data`, or {_WITHOUT}"
        ) from error
