"""A label folder: what was drawn as a table for people, its media, and the key that says what each item is.

Nothing but the key tells group, model or annotation: words that tell the group are masked. Media show the person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from equivox.audit.drawing import Drawn, choices_of
from equivox.audit.labels import KEY_FILE, csv_of
from equivox.core.errors import UsageError
from equivox.core.files import write_text, write_whole
from equivox.core.lazy import pa, pc
from equivox.core.media import MediaError, checked_image, compact_audio
from equivox.core.plain import split_by
from equivox.core.task import CROSSED, placeholders_of
from equivox.core.text import inert
from equivox.core.variants import SILENCE, TEXT_ONLY
from equivox.dataset_builders.corpus import Sample, table_in
from equivox.dataset_builders.opening import open_corpus
from equivox.run.opening import data_of
from equivox.run.plan import read_plan

CSV_FILE = "sheet.csv"
"""The items as a table; each person fills in a copy."""

_Corpora = dict[tuple[str, str], Mapping[str, Sample]]
_WITHOUT = "leave it out: `label draw --no-media`, `report` without `--examples`"

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
        place = folder / "media" / f"{item}{ENDINGS.get(mime, '')}"
        write_whole(place, partial(Path.write_bytes, data=content))
    write_text(folder / KEY_FILE, json.dumps(key_of(drawn), indent=1, ensure_ascii=False) + "\n")


def refuse_used(output: Path) -> None:
    """Raise UsageError if `output` is not a new or empty folder."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"`output` {output} is not an empty folder; name a new one, so that no labels are lost")


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
    return {
        "stage": one.stage,
        "segment": one.segment.name,
        "question": one.segment.digest,
        "attributes": [{**asdict(attribute), "words": ()} for attribute in one.attributes],
        "judged": one.judged,
        **({"counted_as": one.counted_as} if one.counted_as else {}),
    }


def sheet_csv(drawn: Sequence[Drawn]) -> str:
    """Return the items as CSV: a row per item and attribute; the third column is empty, for the label."""
    rows = [["item", "attribute", "label", "what to say", "choices", "response", "prompt"]]
    plans = {run: read_plan(run) for run in {one.run for one in drawn}}
    for one in drawn:
        masks = masks_of(one, plans[one.run])
        said = [inert(masked(text, masks)) for text in (one.text, one.prompt)]
        for attribute in one.attributes:
            most = str(attribute.count) if attribute.at_least is None else f"up to {attribute.count}"
            many = f" ({most} values, separated by ;)" if attribute.is_list else ""
            stated = "a few words" if attribute.number is None else attribute.number.described
            anything = "a number from 0 to 1" if one.judged else f"{stated}, or unstated"
            choices = " / ".join(choices_of(attribute)) or anything
            rows.append([one.item, attribute.name, "", attribute.asks + many, choices, *said])
    return csv_of(rows)


def masks_of(one: Drawn, plan: pa.Table) -> dict[str, str]:
    """Return the words that tell the group of an item, each with its mask: `[group]`, or `[name]` of a swapped name.

    They are the groups, the words of swaps, and what the versions of a swapped text do not share. Choices stay.
    """
    groups = plan["group"].unique().drop_null().to_pylist()
    masks: dict[str, str] = {}
    for swaps in one.task.data.swap.values():
        unit = split_by(plan.filter(pc.equal(plan["cluster"], one.row.cluster)).to_pylist(), lambda row: row["group"])
        for name, by_group in swaps.items():
            groups += by_group
            literal = [[word for word in words if not placeholders_of(word)] for words in by_group.values()]
            versions = [[row.get(f"metadata.{name}") or "" for row in rows] for rows in unit.values()]
            words = {*chain(*literal), *_unshared(literal), *_unshared(versions)}
            masks |= dict.fromkeys(words, f"[{name}]")
    masks |= {word: "[group]" for group in groups for word in (group, *group.split(CROSSED))}
    offered = " ".join(choice for attribute in one.attributes for choice in choices_of(attribute))
    return {word: mask for word, mask in masks.items() if word and masked(offered, {word: ""}) == offered}


def _unshared(versions: Sequence[Iterable[str]]) -> set[str]:
    """Return the words that some of several versions have, and not all of them."""
    words = [set(re.findall(r"\w+", " ".join(texts).casefold())) for texts in versions]
    return set.union(*words) - set.intersection(*words) if words else set()


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
            raise UsageError(f"{error}; {_WITHOUT}") from error
    return found


def with_texts(drawn: Sequence[Drawn], data: str | None) -> list[Drawn]:
    """Return the items with the texts of the corpus that their prompts name and the run does not keep."""
    corpora: _Corpora = {}
    return [
        replace(one, columns=_sample(one, data, corpora).columns) if placeholders_of(one.prompt) else one
        for one in drawn
    ]


def _sample(one: Drawn, data: str | None, corpora: _Corpora) -> Sample:
    """Return the sample that an item is about; UsageError, naming what to do, if it is not there."""
    where = data or data_of(one.run, one.task.data)
    place = (one.task.data.corpus, str(where))
    if place not in corpora:
        try:
            corpus = open_corpus(table_in(one.task.data, data), where)
        except UsageError as error:
            if one.task.data.table is None:
                raise
            moved = "if the corpus was moved, name the folder of its table with `--data`"
            raise UsageError(f"{error}; {moved}, or {_WITHOUT}") from error
        corpora[place] = {sample.sample_id: sample for sample in corpus.samples}
    sample = corpora[place].get(one.row.sample_id)
    if sample is None:
        raise UsageError(
            f"{place[1]} has no sample {one.row.sample_id} of {one.task.data.corpus}, which the run asked about; "
            f"name the data of the run with `--data`, or {_WITHOUT}"
        )
    return sample


def masked(text: str, masks: Mapping[str, str]) -> str:
    """Return a text with masks in place of words, in whatever case, and never inside of other words.

    >>> masked("Anna, Annabel and _ANNA_", {"Anna": "[name]"})
    '[name], Annabel and _[name]_'
    """
    if not masks:
        return text
    mask_of = {word.casefold(): mask for word, mask in masks.items()}
    words, letter = "|".join(map(re.escape, sorted(masks, key=len, reverse=True))), r"[^\W_]"
    pattern = re.compile(rf"(?<!{letter})(?:{words})(?!{letter})", re.IGNORECASE)
    return pattern.sub(lambda found: mask_of.get(found[0].casefold(), "[group]"), text)
