"""Tables of one's own as corpora: a row each is asked about, or, with a swap, once for every group.

A swap fills a placeholder of the texts, such as `{name}`, with another word for each group, so that one text is asked
about people who differ in nothing else. Row 1 gets the first word of each list, row 2 the second, and so on, from the
start again. A row of clips or images has a file for each group in a column of its own.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.files import file_hash
from equivox.core.hashing import digest
from equivox.core.task import Column, DataSource, in_single_braces, placeholders_of
from equivox.dataset_builders.clip_folder import refuse_undeclared
from equivox.dataset_builders.corpus import Corpus, Sample, text_sample
from equivox.dataset_builders.tables import Columns, flatten_columns, read_columns, rename_columns

ITEM = "item"
"""The unit of a swap, in every group: a row of the table. Without a swap a table keeps its own column of this name."""

PATH = "path"
"""The column with the file of a row of clips or images, and the only one that these can swap."""


def open_texts(source: DataSource) -> Corpus:
    """Return the rows of the table of `source` as samples; with a swap, each row once for every group.

    A row is called by its column `id`, or by its number. A cell that is empty, or one of `missing`, is None. A column
    of objects or lists has a column for each part, such as `messages.0.content`. UsageError for a table that cannot be
    read, an id that is there twice, values that are not declared, and a row in which a swap would change nothing.
    """
    assert source.table is not None
    path = source.table
    table = columns_of(source)
    _refuse_missing(table, source)
    samples: list[Sample] = []
    names: Counter[str] = Counter()
    wanted = source.wanted
    left_out = 0
    for number, cells in enumerate(zip(*table.values(), strict=True), start=1):
        row: dict[str, Column] = {name: _cell(cell, source) for name, cell in zip(table, cells, strict=True)}
        if any(str(row[name]) not in allowed for name, allowed in wanted.items()):
            left_out += 1
            continue
        item = str(row.get("id") or f"{number:06d}")
        names[item] += 1
        if names[item] > 1:
            raise UsageError(
                f"{path.name}, row {number}: the id {item!r} is there twice; make it unique or, where rows share "
                "it, give it another name, such as `columns: {shared_id: id}`"
            )
        row = {"speaker": item, ITEM: item, **row}
        samples += _swapped(row, source, number, len(names) - 1) if source.swap else [text_sample(item, row)]
    if not samples:
        kept = f", of {left_out:,}, that `where` keeps" if left_out else ""
        raise UsageError(f"{path.name} has no row{kept}; a row holds one text")
    _refuse_undeclared(samples, source)
    given = (source.columns, source.where, source.values, source.swap, *([source.missing] if source.missing else []))
    notes = [f"rows left out by `where`: {left_out:,} of {left_out + len(names):,}"] * bool(left_out)
    return Corpus(
        name=source.corpus,
        fingerprint=digest([file_hash(path), *map(_plain, given)]),
        samples=tuple(samples),
        notes=tuple(notes),
    )


def columns_of(source: DataSource) -> Columns:
    """Return the columns of a table as its task names them; UsageError for a table that cannot be read."""
    assert source.table is not None
    read = read_columns(source.table)
    return flatten_columns(rename_columns(read, source.columns, where=source.table.name, option="columns.{}"))


def of_every_group(corpus: Corpus, source: DataSource) -> Corpus:
    """Return a corpus of clips or images with each row once for every group, if they swap; each has its own file."""
    if not source.swap or source.table is None:
        return corpus
    ((group, swaps),) = source.swap.items()
    samples = []
    for place, row in enumerate(corpus.samples):
        _refuse_made({group, ITEM}, row.columns, source.table)
        for label, words in swaps[PATH].items():
            (column,) = placeholders_of(words[place % len(words)])
            own = row.clips[column]
            columns = {**own.columns, group: label, ITEM: row.sample_id}
            samples.append(replace(own, sample_id=f"{row.sample_id}/{label}", columns=columns, clips=row.clips))
    _refuse_undeclared(samples, source)
    fingerprint = digest([corpus.fingerprint, _plain(source.swap)])
    return replace(corpus, samples=tuple(samples), fingerprint=fingerprint)


def _refuse_undeclared(samples: Sequence[Sample], source: DataSource) -> None:
    """Raise UsageError for values, of columns of the table or of groups of a swap, that `values` does not declare."""
    for name, allowed in source.values.items():
        found = Counter(str(sample.columns[name]) for sample in samples if sample.columns[name] not in (None, *allowed))
        refuse_undeclared(str(source.table), name, found, allowed)


def _refuse_missing(table: Mapping[str, Sequence[Any]], source: DataSource) -> None:
    """Raise UsageError for columns that `where` or `values` names and the table lacks, and for swapped ones."""
    assert source.table is not None
    made = {*source.swap, *(name for swaps in source.swap.values() for name in swaps)}
    for option, names in (("where", source.where), ("values", source.values)):
        for name in names:
            if name not in table and not (option == "values" and name in made):
                raise UsageError(
                    f"`{option}` names {name!r}, which {source.table.name} lacks; it has {', '.join(table)}"
                )
    if source.swap:
        _refuse_made(made | {ITEM}, table, source.table)


def _refuse_made(made: Set[str], columns: Iterable[str], table: Path) -> None:
    """Raise UsageError for a column of a table that its swap makes."""
    for name in sorted(made & {*columns}):
        raise UsageError(
            f"`swap` makes the column {name!r}, and {table.name} has one; rename it with `columns`, or do not swap"
        )


def _cell(cell: Any, source: DataSource) -> Column:
    """Return a cell as text; None for an empty one and for a text of `missing`."""
    text = "" if cell is None else str(cell)
    return None if not text.strip() or text.strip() in source.missing else text


def _swapped(row: Mapping[str, Column], source: DataSource, number: int, place: int) -> Iterator[Sample]:
    """Yield a row once for every group, or for every combination of the groups of several swaps."""
    assert source.table is not None
    placeholders = [name for swaps in source.swap.values() for name in swaps]
    swapped = "|".join(map(re.escape, placeholders))
    row = {name: in_single_braces(cell, swapped) if isinstance(cell, str) else cell for name, cell in row.items()}
    texts = [text for text in row.values() if isinstance(text, str)]
    for name in placeholders:
        if name not in source.in_prompts and not any(f"{{{name}}}" in text for text in texts):
            raise UsageError(
                f"{source.table.name}, row {number}: no text has {{{name}}}, so that the swap would change nothing; "
                f"put {{{name}}} where the word belongs, or leave the row out"
            )
    # All swaps of one column have the same groups.
    labels = [next(iter(swaps.values())) for swaps in source.swap.values()]
    for chosen in itertools.product(*labels):
        given = {
            name: (words[label][place % len(words[label])], label)
            for label, swaps in zip(chosen, source.swap.values(), strict=True)
            for name, words in swaps.items()
        }
        # A column that a word names may have other words of the swap in it.
        plain = {name: word for name, (word, _) in given.items() if not placeholders_of(word)}
        own = {name: _filled(cell, plain) for name, cell in row.items()}
        where = f"{source.table.name}, row {number}"
        words = {name: _of_row(word, own, where, label) for name, (word, label) in given.items()}
        columns = {name: _filled(cell, words) for name, cell in own.items()}
        groups = dict(zip(source.swap, chosen, strict=True))
        yield text_sample(f"{row[ITEM]}/{'/'.join(chosen)}", {**columns, **words, **groups})


def _of_row(word: str, row: Mapping[str, Column], where: str, group: str) -> str:
    """Return a group's word; a placeholder in it is the row's column of that name. UsageError if that is empty."""
    for name in placeholders_of(word):
        if row.get(name) is None:
            lacking = "is empty" if name in row else f"is not there; the table has {', '.join(row)}"
            raise UsageError(f"{where}: the column {name!r}, which `swap` gives to {group}, {lacking}")
    return str(_filled(word, {name: str(row[name]) for name in placeholders_of(word)}))


def _filled(cell: Column, words: Mapping[str, str]) -> Column:
    if isinstance(cell, str):
        for name, word in words.items():
            cell = cell.replace(f"{{{name}}}", word)
    return cell


def _plain(value: Any) -> Any:
    """Return mappings and sequences as lists, in their order, which determines the samples."""
    if isinstance(value, Mapping):
        return [[key, _plain(entry)] for key, entry in value.items()]
    return value if isinstance(value, str) else list(value)
