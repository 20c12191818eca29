"""The recordings and pictures of drawn answers, as people hear and see them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from equivox.audit.drawing import Drawn
from equivox.core.errors import RequestError
from equivox.core.media import MediaError, checked_image, compact_audio
from equivox.core.task import DataSource
from equivox.core.variants import SILENCE, TEXT_ONLY
from equivox.dataset_builders.corpus import Corpus, table_in
from equivox.dataset_builders.opening import open_corpus
from equivox.run.opening import data_of

ENDINGS = {"audio/ogg": ".ogg", "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
"""The types of media that people get, and the endings of their files."""


def data_uri(mime: str, content: bytes) -> str:
    """Return a file as an address that holds its bytes."""
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def media_of(drawn: Sequence[Drawn], data: str | None) -> dict[str, tuple[str, bytes]]:
    """Return the media of each item: its type, and the recording as compact ogg, or the image."""
    corpora: dict[tuple[str, str], Mapping[str, Any]] = {}
    found: dict[str, tuple[str, bytes]] = {}
    for one in drawn:
        if one.segment is not None or not one.task.media or one.task.condition in {TEXT_ONLY, SILENCE}:
            continue
        where = data or data_of(one.run, one.task.data)
        place = (one.task.data.corpus, str(where))
        if place not in corpora:
            corpora[place] = {item.sample_id: item for item in _corpus(one.task.data, data, where).samples}
        item = corpora[place].get(one.row.sample_id)
        if item is None:
            raise RequestError(
                f"{place[1]} has no sample {one.row.sample_id} of {one.task.data.corpus}, which the run asked about; "
                "name the data of the run with `--data`, or leave recordings out with `--no-media`"
            )
        try:
            if one.task.media[0].kind == "audio":
                found[one.item] = ("audio/ogg", compact_audio(item.load(), name=item.file_name))
            else:
                checked, mime = checked_image(item.load(), name=item.file_name)
                found[one.item] = (mime, checked)
        except (MediaError, OSError) as error:
            raise RequestError(f"{error}; leave recordings out with `--no-media`") from error
    return found


def _corpus(source: DataSource, data: str | None, where: str | None) -> Corpus:
    """Return the corpus of a run; a custom table is looked for in the folder `data`, if that is given."""
    try:
        return open_corpus(table_in(source, data), where)
    except RequestError as error:
        if source.table is None:
            raise
        raise RequestError(f"{error}; if the corpus was moved, name the folder of its table with `--data`") from error
