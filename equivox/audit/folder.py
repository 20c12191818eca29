"""A label folder: what people are asked about responses, and what each of them said, saved answer by answer.

`sheet.json` holds the items as they are shown, without group, model or annotation; `key.json` says which response each
item is; `labels-NAME.csv` holds one person's labels and `adjudicated.csv` the decisions where people differ.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from equivox.audit.labels import ADJUDICATED, KEY_FILE, comparable, filled_in
from equivox.core.errors import RequestError
from equivox.core.files import TEMPORARY, refused, write_text, write_whole

SHEET_FILE = "sheet.json"
"""The items of a label folder as people see them."""
MEDIA_FOLDER = "media"
_PREFIX = "labels-"
_LONGEST_NAME, _LONGEST_FILE = 40, 200
"""The longest name of a person, in characters, and as it stands in the name of a file, in bytes."""
_PATIENCE_S = 30.0
"""Seconds that a label waits for another server on the same folder; one that was killed holds nothing up."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question about an item: an attribute, what it asks, and the values to choose from (none: any text).

    `count` is the number of values that are asked for one by one; more than one are separated by `;`. `many` says that
    one field takes a list, and `share` that a number from 0 to 1 is asked for.
    """

    name: str
    asks: str
    options: tuple[str, ...] = ()
    count: int = 1
    many: bool = False
    share: bool = False


@dataclass(frozen=True, kw_only=True)
class Item:
    """One response as it is shown to people; `media` is the name of its file in the folder `media`, empty: none."""

    item: str
    prompt: str
    response: str
    media: str
    asked: tuple[Asked, ...]


def person_name(given: str) -> str:
    """Return a person's name as it stands in a file name, another one for every name; RequestError if it is none.

    >>> person_name(" Ana  Lucía "), person_name("A/B")
    ('Ana Lucía', 'A%2FB')
    """
    name = unicodedata.normalize("NFC", " ".join(given.split()))
    if not any(map(str.isalnum, name)) or not name.isprintable() or name.casefold() == ADJUDICATED:
        raise RequestError(f"a person's name needs a letter or a digit and is not {ADJUDICATED!r}, got {given!r}")
    in_file = re.sub(r"[^\w .-]", lambda sign: quote(sign[0], safe=""), name)
    if len(name) > _LONGEST_NAME or len(in_file.encode()) > _LONGEST_FILE:
        raise RequestError(f"a person's name has at most {_LONGEST_NAME} letters, got {given[:_LONGEST_NAME]!r}…")
    return in_file


def label_files(folder: Path) -> list[Path]:
    """Return the files of labels in `folder`: those of every person, and the adjudicated ones last."""
    found = sorted(folder.glob(f"{_PREFIX}*.csv"))
    decided = folder / f"{ADJUDICATED}.csv"
    return [*found, decided] if decided.is_file() else found


class LabelFolder:
    """The items of a label folder and what people said of them; each label is on disk before `save` returns.

    Several threads and processes may use one folder at once. RequestError if `folder` is no label folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.items = _items(folder)
        self._asked = {(one.item, asked.name): asked for one in self.items for asked in one.asked}
        if left := list(folder.glob(f"{TEMPORARY}*")):  # by a process that was killed
            with self._alone(folder):
                for path in left:
                    path.unlink(missing_ok=True)

    def people(self) -> list[str]:
        """Return the names of those who have labelled something."""
        return [unquote(path.stem.removeprefix(_PREFIX)) for path in sorted(self.folder.glob(f"{_PREFIX}*.csv"))]

    def labels(self, person: str) -> dict[str, dict[str, str]]:
        """Return what one person said so far: item → attribute → label."""
        return _read(self._file(person))

    def decisions(self) -> dict[str, dict[str, str]]:
        """Return what was decided where people differ: item → attribute → label."""
        return _read(self.folder / f"{ADJUDICATED}.csv")

    def save(self, person: str, item: str, labels: Mapping[str, str]) -> None:
        """Store one person's labels of one item in place of earlier ones; an empty label takes one back.

        RequestError for an item or attribute that is not on the sheet, and for a value that a choice does not offer.
        """
        self._store(self._file(person), item, labels)

    def decide(self, item: str, labels: Mapping[str, str]) -> None:
        """Store the decision on an item on which people differ; an empty label takes one back."""
        self._store(self.folder / f"{ADJUDICATED}.csv", item, labels)

    def differing(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return the labels on which people differ, without their names: item → attribute → labels in order.

        Open answers are compared as the scores compare them: as sets of lemmas.
        """
        given: dict[tuple[str, str], dict[tuple[str, ...], str]] = {}
        for person in self.people():
            for item, labels in self.labels(person).items():
                for name, label in labels.items():
                    if asked := self._asked.get((item, name)):
                        given.setdefault((item, name), {}).setdefault(_compared(label, asked), label)
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for one in self.items:
            for asked in one.asked:
                said = given.get((one.item, asked.name), {})
                if len(said) > 1:
                    found.setdefault(one.item, {})[asked.name] = tuple(sorted(said.values()))
        return found

    def done(self, person: str) -> int:
        """Return how many items a person has labelled in full."""
        said = self.labels(person)
        return sum(all(said.get(one.item, {}).get(asked.name) for asked in one.asked) for one in self.items)

    def media(self, item: str) -> Path | None:
        """Return the file of an item's recording or picture; None without one, and for a link to another place."""
        place = self.folder.resolve() / MEDIA_FOLDER
        name = next((one.media for one in self.items if one.item == item), "")
        path = (place / name).resolve()
        return path if name and path.parent == place and path.is_file() else None

    def _file(self, person: str) -> Path:
        return self.folder / f"{_PREFIX}{person_name(person)}.csv"

    def _store(self, file: Path, item: str, labels: Mapping[str, str]) -> None:
        if not any(item == known for known, _ in self._asked):
            raise RequestError(f"no item {item!r} is on the sheet of {self.folder}")
        checked = {name: self._checked(item, name, label) for name, label in labels.items()}
        with self._alone(file):
            stored = _read(file)
            stored[item] = stored.get(item, {}) | checked
            rows = ((of, name, label) for of, given in stored.items() for name, label in given.items() if label)
            write_text(file, labels_csv(rows))

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """Hold the folder's lock, which one thread of one process has at a time; StorageError if it cannot be had."""
        from filelock import FileLock

        try:
            with FileLock(self.folder / ".lock", timeout=_PATIENCE_S):
                yield
        except OSError as error:
            raise refused(path, error) from error

    def _checked(self, item: str, name: str, label: str) -> str:
        asked = self._asked.get((item, name))
        if asked is None:
            raise RequestError(f"{item} has no attribute {name!r}")
        values = [value.strip() for value in label.split(";")]
        values = [value for value in values if value]
        offered = {option.casefold(): option for option in asked.options}
        if offered and (wrong := [value for value in values if value.casefold() not in offered]):
            raise RequestError(f"{name} is one of {', '.join(asked.options)}, got {wrong[0]!r}")
        if asked.share and values and not _is_share(values[0]):
            raise RequestError(f"{name} is a number from 0 to 1, got {label!r}")
        if len(values) > 1 and asked.count == 1 and not asked.many:
            raise RequestError(f"{name} takes one value, got {len(values)}")
        return "; ".join(offered.get(value.casefold(), value) for value in values)


def write_label_folder(
    folder: Path, items: Sequence[Item], key: Mapping[str, Mapping[str, Any]], media: Mapping[str, bytes]
) -> None:
    """Write the sheet, the key and the media of a new label folder; the sheet last, so that half a folder is none."""
    for name, content in media.items():
        write_whole(folder / MEDIA_FOLDER / name, partial(Path.write_bytes, data=content))
    write_text(folder / KEY_FILE, json.dumps(key, indent=1, ensure_ascii=False) + "\n")
    sheet = [asdict(one) for one in items]
    write_text(folder / SHEET_FILE, json.dumps(sheet, indent=1, ensure_ascii=False) + "\n")


def _items(folder: Path) -> tuple[Item, ...]:
    try:
        found = json.loads((folder / SHEET_FILE).read_text("utf-8"))
        return tuple(
            Item(
                item=one["item"],
                prompt=one["prompt"],
                response=one["response"],
                media=Path(one["media"]).name,
                asked=tuple(Asked(**{**asked, "options": tuple(asked["options"])}) for asked in one["asked"]),
            )
            for one in found
        )
    except FileNotFoundError:
        raise RequestError(f"{folder} is neither a run nor a label folder: it has no {SHEET_FILE}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RequestError(f"{folder / SHEET_FILE} cannot be read ({error}); restore it from a copy") from error


def _compared(label: str, asked: Asked) -> tuple[str, ...]:
    values = [value.strip() for value in label.split(";")]
    return tuple(sorted(values)) if asked.options else comparable(values)


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _read(file: Path) -> dict[str, dict[str, str]]:
    if not file.is_file():
        return {}
    found: dict[str, dict[str, str]] = {}
    for _, item, name, label in filled_in(file):
        found.setdefault(item, {})[name] = label
    return found


def labels_csv(rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a file of labels: item, attribute and label of each row."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["item", "attribute", "label"])
    writer.writerows(rows)
    return buffer.getvalue()
