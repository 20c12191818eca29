"""A label folder: what was drawn as a table for people, its media, and the key that says what each item is.

Nothing but the key tells group, model or annotation.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from equivox.audit.drawing import Drawn, choices_of
from equivox.audit.labels import KEY_FILE, csv_of
from equivox.core.errors import RequestError
from equivox.core.files import write_text, write_whole
from equivox.core.media import MediaError, checked_image, compact_audio
from equivox.core.task import DataSource, placeholders_of
from equivox.core.text import inert
from equivox.core.variants import SILENCE, TEXT_ONLY
from equivox.dataset_builders.corpus import Corpus, Sample, table_in
from equivox.dataset_builders.opening import open_corpus
from equivox.run.opening import data_of

CSV_FILE = "sheet.csv"
"""The items as a table; each person fills in a copy."""
MEDIA_FOLDER = "media"

_Corpora = dict[tuple[str, str], Mapping[str, Sample]]
_WITHOUT = "leave it out: `audit label --no-media`, `report` without `--examples`"

ENDINGS = {"audio/ogg": ".ogg", "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
"""The types of media that people get, and the endings of their files."""


def write_sheet(drawn: Sequence[Drawn], folder: Path, *, data: str | None = None, media: bool = True) -> None:
    """Write the label folder of what was drawn: the items as a table, recordings, and the key last.

    `media` False leaves out the recordings, and what prompts name of the corpus; `data` is where they are now if that
    has changed.
    """
    drawn = [replace(one, item=f"i{one.item}") for one in drawn]  # some would be numbers to a spreadsheet, as 12e34
    sent = media_of(drawn, data) if media else {}
    drawn = with_texts(drawn, data) if media else drawn
    write_text(folder / CSV_FILE, f"\ufeff{sheet_csv(drawn)}")  # by this mark a spreadsheet knows UTF-8
    for item, (mime, content) in sent.items():
        place = folder / MEDIA_FOLDER / f"{item}{ENDINGS.get(mime, '')}"
        write_whole(place, partial(Path.write_bytes, data=content))
    write_text(folder / KEY_FILE, json.dumps(key_of(drawn), indent=1, ensure_ascii=False) + "\n")


def refuse_used(output: Path) -> None:
    """Raise RequestError if `output` is not a new or empty folder."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise RequestError(f"`output` {output} is not an empty folder; name a new one, so that no labels are lost")


def key_of(drawn: Sequence[Drawn]) -> dict[str, dict[str, Any]]:
    """Return which response each item is; this must stay with the person who evaluates."""
    return {
        one.item: {
            "run": str(one.run.resolve()),
            "model": one.model,
            "task": one.task.name,
            "response": one.row.key,
            "group": one.row.group,
            "cluster": one.row.cluster,
            "weight": one.weight,
            **_stage_of(one),
        }
        for one in drawn
    }


def _stage_of(one: Drawn) -> dict[str, Any]:
    if one.segment is None:
        return {}
    asked = [{**asdict(attribute), "words": ()} for attribute in one.attributes]
    for entry in asked:
        if entry["number"] is None:
            del entry["number"]
    return {
        "stage": one.stage,
        "segment": one.segment.name,
        "question": one.segment.digest,
        "attributes": asked,
        "judged": one.judged,
        **({"counted_as": one.counted_as} if one.counted_as else {}),
    }


def sheet_csv(drawn: Sequence[Drawn]) -> str:
    """Return the items as CSV: a row per item and attribute; the third column is empty, for the label."""
    rows = [["item", "attribute", "label", "what to say", "choices", "response", "prompt"]]
    for one in drawn:
        for attribute in one.attributes:
            most = str(attribute.count) if attribute.at_least is None else f"up to {attribute.count}"
            many = f" ({most} values, separated by ;)" if attribute.is_list else ""
            stated = "a few words" if attribute.number is None else attribute.number.described
            anything = "a number from 0 to 1" if one.judged else f"{stated}, or unstated"
            choices = " / ".join(choices_of(attribute)) or anything
            said = [inert(text) for text in (str(one.text), one.prompt)]
            rows.append([one.item, attribute.name, "", attribute.asks + many, choices, *said])
    return csv_of(rows)


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
