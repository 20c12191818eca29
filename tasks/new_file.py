"""A first task file for a table: what was found in it, what could not be told, and questions to replace."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from shlex import quote

import yaml

from equivox.core.errors import UsageError
from equivox.core.files import write_text
from equivox.core.task import in_single_braces, placeholders_of
from equivox.core.text import visible
from equivox.dataset_builders.embedded import media_in
from equivox.dataset_builders.own_tables import PATH
from equivox.dataset_builders.tables import flatten_columns, read_columns
from equivox.tasks.units import ANSWERS, PEOPLE, USUAL_UNITS, unit_among, usual

MOST_GROUPS = 12
"""A column with more values is no group of people that a first comparison would have."""

_COMPARED, _BEGINNING = 20, 300
"""The rows, and the signs of each, by which columns are found that say the same in other words."""

_TEXTS = ("text", "prompt")
_TARGET = "target"
"""What should be answered, or whom a text is about."""
_KEYS = frozenset({"best", "correct", "expected", "gold", "golden", "ideal", "reference", "right", "true", _TARGET})
"""Words in the names of columns that say what is right to answer."""

_MEDIA = {
    "audio": (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a"),
    "image": (".png", ".jpg", ".jpeg", ".webp"),
}
_NAMES = "{female: [Anna, Maria, Olga], male: [Jonas, Peter, Emil]}"
_EXAMPLES = {"pronoun": "{female: [she], male: [he]}", "title": "{female: [Ms], male: [Mr]}"}


@dataclass(frozen=True)
class Found:
    """What a table looks like: what it lists, and which of its columns says what; an empty text is not known.

    `unit` is the column that carries the group (nested), or whose values are in every group (crossed). `candidates` are
    all columns that could be compared, `too_many` those of people with more values, `mixed` those whose values are in
    some groups only. `item` is a column of what was asked about, such as a job, each value of it in every group.
    `versions` are columns with one text or file for each group, such as `prompt_male` and `prompt_female`, `others`
    hold further texts, or all files, and `answers` what a model may have answered. `shared_id` says that rows share an
    `id`.
    """

    rows: int
    columns: tuple[str, ...]
    kind: str
    path: str
    text: str
    group: str
    unit: str
    crossed: bool
    candidates: tuple[str, ...]
    mixed: tuple[str, ...]
    item: str
    placeholders: tuple[str, ...]
    versions: tuple[str, ...]
    too_many: tuple[str, ...]
    others: tuple[str, ...]
    answers: str
    shared_id: bool


def look_at(path: Path) -> Found:
    """Return what the table at `path` looks like; UsageError for one that cannot be read."""
    given = flatten_columns(read_columns(path))
    columns = {name: ["" if cell is None else str(cell) for cell in own] for name, own in given.items()}
    paths = [(name, kind) for kind, endings in _MEDIA.items() for name in columns if _ends(columns[name], endings)]
    files = [*media_in(path).items(), *paths]
    media, kind = next(iter(files), ("", "text"))
    others = {name: own for name, own in columns.items() if name != media}
    # In bytes, since a sign of Chinese says as much as several letters.
    filled = {name: [cell.encode() for cell in own if cell] or [b""] for name, own in others.items()}
    lengths = {name: sum(map(len, own)) / len(own) for name, own in filled.items()}
    varied = {name for name, own in filled.items() if len({*own}) > 1}  # a system prompt is the same in every row
    last = {name: usual(name) for name in others}
    asked = [
        name for name in lengths if last[name] not in (*ANSWERS, _TARGET) and not filled[name][0].startswith(b"data:")
    ]
    text = max(asked, key=lambda name: (last[name] in _TEXTS, name in varied, lengths[name]), default="")
    long = [name for name in lengths if lengths[name] > 20]
    text = text if text in long or (text and last[text] in _TEXTS) else ""
    no_groups = (*USUAL_UNITS, *ANSWERS)
    few = {name: len({*own} - {""}) for name, own in others.items() if name != text and last[name] not in no_groups}
    candidates = [name for name, n in few.items() if 2 <= n <= min(MOST_GROUPS, len(others[name]) // 2)]
    known = {name: PEOPLE.index(last[name]) for name in candidates if last[name] in PEOPLE}
    candidates.sort(key=lambda name: (known.get(name, len(PEOPLE)), few[name]))
    group = candidates[0] if candidates and (candidates[0] in known or len(candidates) == 1) else ""
    unit, crossed, mixed = unit_among(others, others[group], (group, text)) if group else ("", False, ())
    if group and text and kind == "text" and not unit:  # the same text twice about one group is one unit, too
        unit, every, _ = unit_among({text: others[text]}, others[group])
        unit = "" if every else unit
    placeholders = dict.fromkeys(
        name for cell in others.get(text, ()) for name in placeholders_of(in_single_braces(cell))
    )
    named = (name for name in others if name in varied and placeholders_of(f"{{{name}}}") == (name,))
    alike = [name for name in named if _alike(others[name], others.get(text, ()))]
    if media:
        alike = [name for name, own in files if own == kind]
    return Found(
        rows=len(next(iter(columns.values()))),
        columns=tuple(columns),
        kind=kind,
        path=media,
        text=text,
        group=group,
        unit=unit,
        crossed=crossed,
        candidates=tuple(candidates),
        mixed=mixed,
        item=next((n for n in candidates if n not in (*known, unit) and _in_all(others[n], others[group])), "")
        if group
        else "",
        placeholders=tuple(name for name in placeholders if name not in columns),
        versions=() if group or placeholders or not 2 <= len(alike) <= MOST_GROUPS else tuple(alike),
        too_many=tuple(name for name, n in few.items() if n > MOST_GROUPS and last[name] in PEOPLE),
        others=tuple(dict(files)) or tuple(n for n in long if b" " in filled[n][0] or n not in asked),
        answers=next((n for n in others if last[n] in ANSWERS and n != text and not _is_key(n)), ""),
        shared_id=len({*others.get("id", ())}) < len(others.get("id", ())),
    )


def _is_key(name: str) -> bool:
    """Return whether a column of answers has what is right to say, rather than what somebody said."""
    return not _KEYS.isdisjoint(re.findall(r"[a-z]+", name.lower()))


def _ends(cells: Sequence[str], endings: tuple[str, ...]) -> bool:
    """Return whether most cells of a column are names of files with such an ending."""
    return 2 * sum(cell.lower().endswith(endings) for cell in cells) > len(cells)


def _in_all(cells: Sequence[str], groups: Sequence[str]) -> bool:
    """Return whether each value of a column is in every group; a row that lacks its group is in none."""
    pairs = {(cell, group) for cell, group in zip(cells, groups, strict=True) if cell and group}
    return len(pairs) == len({cell for cell, _ in pairs}) * len({group for _, group in pairs})


def _alike(cells: Sequence[str], texts: Sequence[str]) -> bool:
    """Return whether a column says the same as `texts` in a few other words, by the beginnings of its first rows."""
    both = [(cell, text) for cell, text in zip(cells[:_COMPARED], texts, strict=False) if cell and text]
    pairs = [(cell[:_BEGINNING], text[:_BEGINNING]) for cell, text in both]
    return bool(pairs) and all(SequenceMatcher(None, *pair, autojunk=False).ratio() > 0.6 for pair in pairs)


def task_file_for(table: Path) -> str:
    """Return a commented task file for the table at `table`, which is ready to run where the groups could be told."""
    found = look_at(table)
    swapped = found.placeholders if found.kind == "text" else ()
    versions = found.versions
    name = re.sub(r"[^a-z0-9_]+", "_", table.stem.lower()).strip("_")
    name = name if re.match("[a-z]", name) else f"table_{name}".strip("_")
    lines = [
        _comment(f"{table.name}: {found.rows:,} rows of {found.kind}. {_told(found)}{_not_asked(found)}"),
        *_answered(found, table),
        f"name: {_word(name[:60])}",
    ]
    lines += [f"table: {_word(table.name)}", f"media: {found.kind}"]
    renamed: dict[str, str] = {"path": found.path} if found.path not in ("", "path") and not versions else {}
    if found.text not in ("", "text") and (found.kind != "text" or not placeholders_of(f"{{{found.text}}}")):
        renamed["text"] = found.text
    if (swapped or versions) and "item" in found.columns and found.text != "item":
        renamed["table_item"] = "item"  # a swap calls its rows so
    ours = {name: re.sub(r"\W+|^(?=\d)", "_", name) for name in versions}  # as a placeholder can name it
    renamed |= {name: theirs for theirs, name in ours.items() if name != theirs}
    if found.kind == "audio" and not (found.unit or versions or "speaker" in found.columns):
        renamed["speaker"] = found.path  # each file counts by itself
    if found.kind == "text" and found.shared_id and found.text != "id":
        renamed["shared_id"] = "id"  # a row of texts is called by its `id`
    if renamed:
        lines.append(f"columns: {{{', '.join(f'{ours}: {_word(theirs)}' for ours, theirs in renamed.items())}}}")
    if versions:
        shared = set.intersection(*({*name.split("_")} for name in versions))
        labels = ["_".join(part for part in name.split("_") if part not in shared) for name in versions]
        lines += [
            "# Each row is asked about every group, with what the group's own column has.",
            f"group: {_free('version', found)}",
            "swap:",
            f"  {_free('asked', found) if found.kind == 'text' else PATH}:",
            *(
                f'    {_word(label or name)}: ["{{{ours[name]}}}"]'
                for label, name in zip(labels, versions, strict=True)
            ),
        ]
    elif swapped:
        lines += [
            "# Each row is asked about every group, with another word in each. The lists are examples: replace them.",
            f"group: {_free('gender', found)}",
            "swap:",
            *(f"  {one}: {_EXAMPLES.get(one, _NAMES)}" for one in swapped),
        ]
    else:
        others = [one for one in found.candidates if one != found.group]
        too = ", too" if found.group else ""
        more = "   " + _comment(f"could be compared{too}: {', '.join(others)}") if others else ""
        lines.append(f"group: {_word(found.group) if found.group else 'FILL_IN'}{more}")
        if found.unit:
            how = "is in every group" if found.crossed else "has one group"
            unit = next((name for name, theirs in renamed.items() if theirs == found.unit), found.unit)
            lines.append(f"cluster: {_word(unit)}   # each {how}")
        if found.item:
            lines.append(f"items: {_word(found.item)}   # groups are compared within each, too")
    text = "text" if "text" in renamed else found.text
    lines += _asked(found.kind, _free("asked", found) if versions else text)
    lines += ["card: Who made this table, under which licence, and what it cannot say.", ""]
    return "\n".join(lines)


def _free(name: str, found: Found) -> str:
    """Return the name of a column that a swap makes, another one where the table has a column of that name."""
    return f"swapped_{name}" if name in found.columns else name


def _told(found: Found) -> str:
    """Return in words what could be told of the groups and units, and what could not."""
    if found.kind == "text" and found.placeholders:
        return f"Its texts have placeholders ({', '.join(found.placeholders)}), so that words can be swapped."
    if found.versions:
        what = "text" if found.kind == "text" else "file"
        return f"Each row has a {what} for every group ({', '.join(found.versions)})."
    if not found.candidates:
        many = f" ({', '.join(found.too_many)}: too many, so write a column of fewer, such as bands)"
        many *= bool(found.too_many)
        swap = " A word to be swapped would stand in braces, as {name}." * (found.kind == "text")
        return f"No column has 2 to {MOST_GROUPS} values that come back, so that none could be compared{many}.{swap}"
    if not found.group:
        return f"Which column is compared could not be told; it could be {', '.join(found.candidates)}."
    if not found.unit:
        mixed = f" ({', '.join(found.mixed)}: in some groups only)" if found.mixed else ""
        return f"Compared: {found.group}. No column has several rows a unit, so each row counts by itself{mixed}."
    return f"Compared: {found.group}. Unit: {found.unit}, {'in every group' if found.crossed else 'each in one group'}."


def _not_asked(found: Found) -> str:
    """Return in words which texts or files of the table, or parts of its conversations, are not asked; else nothing."""
    asked, what = (found.path, "files") if found.path else (found.text, "texts")
    first, last = asked.partition(".")[0], asked.rpartition(".")[2]
    parts = [name for name in found.columns if name.startswith(f"{first}.") and name.endswith(f".{last}")]
    others = [name for name in dict.fromkeys([*parts, *found.others]) if name not in (asked, *found.versions)]
    return f" Of its {what} {asked} alone is asked, not {', '.join(others)}." if asked and others else ""


def _answered(found: Found, table: Path) -> list[str]:
    """Return the line that says how answers that are in the table are scored, if it has some and a line can say so."""
    if not found.answers:
        return []
    given = quote(table.name), quote(table.with_suffix(".yaml").name), quote(f"response={found.answers}")
    scored = "equivox import {} {} --column {}".format(*given)
    if _comment(scored) != f"# {scored}" or re.search("^-|,", table.name):  # it would name other files
        return []
    return [_comment(f"If {found.answers} has a model's answers, {scored} --output RUN scores them.")]


def _asked(kind: str, text: str) -> list[str]:
    """Return the questions: two of VIBE for recordings, one to replace for texts and images."""
    if kind == "audio":
        return ["prompts: [advisory, candidate]   # of VIBE; or `questions` of your own"]
    question = f"{{{text or 'FILL_IN'}}}" if kind == "text" else "What would you advise the person in this picture?"
    return [
        "questions:   # an example: replace the question, and what is annotated in the answers",
        "  - name: answer",
        f"    text: {json.dumps(question, ensure_ascii=False)}",
        "    attributes:",
        "      # A choice has options; without them it is a short phrase: {name: advice, asks: the main advice}",
        "      - {name: tone, asks: the tone of the answer, options: [encouraging, neutral, discouraging]}",
    ]


def _comment(text: str) -> str:
    return f"# {' '.join(visible(text).split())}"


def _word(text: str) -> str:
    """Return a name of the table's as YAML reads it back.

    >>> _word("sex: f/m"), _word("no"), _word("clips.csv")
    ('"sex: f/m"', '"no"', 'clips.csv')
    """
    plain = re.fullmatch(r"[^\W\d][\w ./-]*", text) and yaml.safe_load(text) == text
    if plain:
        return text
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


def write_task_file(table: Path) -> Path:
    """Write a task file beside the table at `table` and return its path; UsageError if one is there already."""
    path = table.with_suffix(".yaml")
    if path.exists():
        raise UsageError(f"{path} exists already; move it or edit it")
    write_text(path, task_file_for(table))
    return path
