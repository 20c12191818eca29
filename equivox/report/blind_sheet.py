"""Blind sheets: responses drawn evenly from runs, shown without the group, the speaker, or the annotation."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.compare import label_studio
from equivox.compare.label_folder import Asked, Item, write_label_folder
from equivox.compare.labels import KEY_FILE
from equivox.core.errors import RequestError, nearest
from equivox.core.files import write_text
from equivox.core.media import MediaError, checked_image, compact_audio
from equivox.core.samples import UNANSWERED, Row, Samples
from equivox.core.segments import Segment
from equivox.core.task import OTHER, UNSTATED, Attribute, DataSource, Task, digest
from equivox.core.text import inert
from equivox.core.variants import SHUFFLED, SILENCE, TEXT_ONLY
from equivox.dataset_builders.corpus import Corpus, open_corpus, table_in
from equivox.report.table import split_by
from equivox.run.annotating import stored_texts
from equivox.run.manifest import read_manifest
from equivox.run.opening import data_of
from equivox.run.pipeline import run_tasks
from equivox.run.scoring import open_samples

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PER = ("model", "task", "condition", "group")
"""The properties over which a sheet can be spread evenly."""

CSV_FILE, HTML_FILE = "sheet.csv", "sheet.html"

ENDINGS = {"audio/ogg": ".ogg", "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
"""The types of media on a sheet, and the endings of their files."""


@dataclass(frozen=True)
class Drawn:
    """One response on a sheet, under a name without meaning; `weight` is the number of responses it was drawn for.

    With `segment` it is what the annotator saw at one stage of the annotation: `text` is that, and `stage` its name.
    With `judged` the annotator's lists stand below it, and people say how good they are.
    """

    item: str
    run: Path
    model: str
    task: Task
    row: Row
    text: str = ""
    weight: float = 1.0
    segment: Segment | None = None
    stage: str = ""
    judged: bool = False

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes to be labelled."""
        if self.segment is None:
            return self.task.attributes
        return shares_of(self.segment.attributes) if self.judged else self.segment.attributes

    @property
    def prompt(self) -> str:
        """The prompt, with the plan's metadata filled in: the options of a choice, in their order; none at a stage."""
        if self.segment is not None:
            return ""
        metadata = self.row.metadata
        return re.sub(r"\{([a-z_][a-z0-9_]*)\}", lambda match: metadata.get(match[1], match[0]), self.task.prompt.text)


def shares_of(attributes: Sequence[Attribute]) -> tuple[Attribute, ...]:
    """Return what people are asked about the annotator's lists: the precision and the recall of each, 0 to 1."""
    return tuple(
        Attribute(name=f"{attribute.name} {name}", asks=asks.format(attribute.asks))
        for attribute in attributes
        if attribute.is_list
        for name, asks in (
            ("precision", "of the listed {}: the share that the text bears out, 0 to 1"),
            ("recall", "of all {} in the text: the share that is listed, 0 to 1"),
        )
    )


def draw(
    folders: Sequence[Path],
    *,
    n: int,
    per: Sequence[str],
    seed: int = 0,
    annotator: str | None = None,
    among: Callable[[Task, Samples], NDArray[np.bool_]] | None = None,
) -> list[Drawn]:
    """Return `n` answered responses of every combination of `per`, in random order.

    `among` returns which samples of a task can be drawn; by default all that were answered. A response that several
    tasks share is drawn once. The same runs, numbers and seed draw the same responses. RequestError for an unknown
    `per`, and if there are no answers; with `among` there may be none.
    """
    for name in per:
        if name not in PER:
            raise RequestError(f"`per` names {', '.join(PER)}; got {name!r}{nearest(name, PER)}")
    cells: dict[tuple[str, ...], list[_Ticket]] = {}
    sizes: Counter[tuple[str, ...]] = Counter()
    for folder in folders:
        manifest = read_manifest(folder)
        tasks = [task for task in run_tasks(folder) if task.condition != SHUFFLED]
        opened = open_samples(folder, tasks, annotator or str(manifest["command"]["annotator"]))
        model = str(manifest["command"]["model"])
        seen: set[str] = set()
        for task in tasks:
            samples = opened[task.name]
            answered = ~samples.has_status(*UNANSWERED, "empty")
            if among is not None:
                answered &= among(task, samples)
            keys, groups = samples.keys, samples.groups.texts()
            for number in answered.nonzero()[0].tolist():
                key = keys[number]
                if key in seen:
                    continue
                seen.add(key)
                place = {
                    "model": f"{model} {folder}",
                    "task": task.name,
                    "condition": task.condition,
                    "group": groups[number],
                }
                item = digest([seed, "item", model, key])[:12]
                named = tuple(place[name] for name in per)
                sizes[named] += 1
                cell = cells.setdefault(named, [])
                cell.append(_Ticket(digest([seed, "draw", item]), item, folder, model, task, samples, number, key))
                # A response that is not among the first n of its cell now can never enter them.
                if len(cell) > 4 * n:
                    cell[:] = sorted(cell)[:n]
    weights = {named: sizes[named] / min(n, len(cell)) for named, cell in cells.items()}
    chosen = [(weights[named], ticket) for named, cell in cells.items() for ticket in sorted(cell)[:n]]
    tickets = [ticket for _, ticket in chosen]
    if not tickets:
        if among is not None:
            return []
        raise RequestError(f"no response of {', '.join(map(str, folders))} can be shown: none was answered")
    texts = {folder: stored_texts(folder, [t.key for t in tickets if t.folder == folder]) for folder in folders}
    drawn = []
    for weight, ticket in chosen:
        (row,) = ticket.samples.take([ticket.number]).rows()
        text = texts[ticket.folder].get(ticket.key) or ""
        drawn.append(Drawn(ticket.item, ticket.folder, ticket.model, ticket.task, row, text, weight))
    return sorted(drawn, key=lambda one: one.item)


@dataclass(frozen=True, order=True)
class _Ticket:
    """One candidate response; those with the smallest `order` of a cell are drawn."""

    order: str
    item: str = field(compare=False)
    folder: Path = field(compare=False)
    model: str = field(compare=False)
    task: Task = field(compare=False)
    samples: Samples = field(compare=False)
    number: int = field(compare=False)
    key: str = field(compare=False)


def export(drawn: Sequence[Drawn], output: Path, *, data: str | None = None, media: bool = True) -> list[Path]:
    """Write the sheet as CSV and as one HTML page, and the key that maps its rows to responses.

    The page contains the recordings; `media` False leaves them out, `data` is where they are now if that has changed.
    Returns the written files, the key last: it must stay with the person who evaluates.
    """
    refuse_used(output)
    sent = media_of(drawn, data) if media else {}
    return _written(output, drawn, {CSV_FILE: sheet_csv(drawn), HTML_FILE: sheet_html(drawn, sent)})


def _written(output: Path, drawn: Sequence[Drawn], files: Mapping[str, str]) -> list[Path]:
    """Write the files of a sheet, and then its key; return their paths."""
    key = json.dumps(key_of(drawn), indent=1, ensure_ascii=False) + "\n"
    written = []
    for name, text in (*files.items(), (KEY_FILE, key)):
        write_text(output / name, text)
        written.append(output / name)
    return written


def export_label_folder(drawn: Sequence[Drawn], output: Path, *, data: str | None = None, media: bool = True) -> None:
    """Write a label folder, for people who label in the browser: items, key and recordings, in files of their own."""
    sent = media_of(drawn, data) if media else {}
    names = {item: f"{item}{ENDINGS.get(mime, '')}" for item, (mime, _) in sent.items()}
    content = {names[item]: data for item, (_, data) in sent.items()}
    write_label_folder(output, items_of(drawn, names), key_of(drawn), content)


def export_label_studio(
    drawn: Sequence[Drawn], output: Path, *, data: str | None = None, media: bool = True
) -> list[Path]:
    """Write Label Studio's tasks and its labelling page, a pair for each set of attributes, and the key, the last.

    Recordings are data URIs in the tasks. RequestError as in `export`.
    """
    refuse_used(output)
    sent = media_of(drawn, data) if media else {}
    items = {one.item: one for one in items_of(drawn, {})}
    files: dict[str, str] = {}
    for number, own in enumerate(split_by(drawn, lambda one: items[one.item].asked).values(), 1):
        kinds = {sent[one.item][0].partition("/")[0] for one in own if one.item in sent}
        addresses = {one.item: data_uri(*sent[one.item]) for one in own if one.item in sent}
        tasks = label_studio.tasks_of([items[one.item] for one in own], addresses)
        files[f"tasks-{number}.json"] = json.dumps(tasks, ensure_ascii=False)
        files[f"page-{number}.xml"] = label_studio.labelling_page(items[own[0].item].asked, min(kinds, default="text"))
    return _written(output, drawn, files)


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


def items_of(drawn: Sequence[Drawn], media: Mapping[str, str]) -> list[Item]:
    """Return the items as people see them; `media` holds the file names of recordings."""
    return [
        Item(
            item=one.item,
            prompt=one.prompt,
            response=one.text,
            media=media.get(one.item, ""),
            asked=tuple(
                Asked(
                    name=attribute.name,
                    asks=attribute.asks,
                    options=_choices(attribute),
                    count=attribute.count if attribute.at_least is None else 1,
                    many=attribute.at_least is not None,
                    share=one.judged,
                )
                for attribute in one.attributes
            ),
        )
        for one in drawn
    ]


def _stage_of(one: Drawn) -> dict[str, Any]:
    if one.segment is None:
        return {}
    asked = [{**asdict(attribute), "words": (), "favourable": ()} for attribute in one.attributes]
    return {
        "stage": one.stage,
        "segment": one.segment.name,
        "question": one.segment.digest,
        "attributes": asked,
        "judged": one.judged,
    }


def sheet_csv(drawn: Sequence[Drawn]) -> str:
    """Return the sheet as CSV: a row per response and attribute; the last column is empty, for the label."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["item", "attribute", "label", "what to say", "choices", "response", "prompt"])
    for one in drawn:
        for attribute in one.attributes:
            many = f" ({_how_many(attribute)} values, separated by ;)" if attribute.is_list else ""
            anything = "a number from 0 to 1" if one.judged else "a few words, or unstated"
            choices = " / ".join(_choices(attribute)) or anything
            writer.writerow(
                [one.item, attribute.name, "", attribute.asks + many, choices]
                + [inert(text) for text in (str(one.text), one.prompt)]
            )
    return buffer.getvalue()


def _how_many(attribute: Attribute) -> str:
    return str(attribute.count) if attribute.at_least is None else f"up to {attribute.count}"


def _field(attribute: Attribute) -> dict[str, Any]:
    asks, count = attribute.asks, attribute.count
    if attribute.at_least is not None:
        # A list of any length is one field, as the sheet in CSV has it.
        asks, count = f"{asks} ({_how_many(attribute)} values, separated by ;)", 1
    return {"name": attribute.name, "asks": asks, "count": count, "options": _choices(attribute)}


def _choices(attribute: Attribute) -> tuple[str, ...]:
    if attribute.role == "refusal" or not attribute.options:
        return attribute.options
    return (*attribute.options, OTHER, UNSTATED)


def sheet_html(drawn: Sequence[Drawn], sent: Mapping[str, tuple[str, bytes]]) -> str:
    """Return the sheet as one self-contained page; `sent` holds the type and the bytes of each item's media."""
    from equivox.report.safe_page import render_page

    source = resources.files(__package__)
    items = [
        {
            "item": one.item,
            "prompt": one.prompt,
            "response": one.text,
            "media": data_uri(*sent[one.item]) if one.item in sent else "",
            "fields": [_field(a) for a in one.attributes],
        }
        for one in drawn
    ]
    return render_page(
        source.joinpath("sheet.html.j2"),
        style=source.joinpath("sheet.css"),
        script=source.joinpath("sheet.js"),
        items=items,
    )


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


def drawn_counts(drawn: Sequence[Drawn]) -> Counter[tuple[str, str]]:
    """Count the responses on a sheet by model and group."""
    return Counter((one.model, one.row.group) for one in drawn)
