"""Any folder of clips or images with a table: a custom corpus, without code.

Data:       a table (CSV, TSV, JSON, JSON lines, parquet) with the columns path, text, speaker and any others; paths are
            relative to the source folder, or lie in it.
Departs:    nothing is published about it; a `facts.json` in the folder can say what is known.
Cannot say: more than its table does. A column counts as demographic unless it is named as stratum.
"""

from __future__ import annotations

import dataclasses
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Literal

from equivox.core.errors import UsageError, nearest
from equivox.core.files import shortened
from equivox.core.foreign_files import refuse_unusable
from equivox.core.text import listed
from equivox.dataset_builders.base import (
    Builder,
    Clip,
    Column,
    CorpusFacts,
    Published,
    Scan,
    found_instead,
    speakers_with,
)
from equivox.dataset_builders.embedded import media_in, unpacked_media
from equivox.dataset_builders.tables import flatten_columns, read_columns

TAKEN = ("audio", "audio_sha256", "sampling_rate", "duration_s", "audio_problem", "sample_id")
"""Names of columns that a build, or its publication, adds; a table's column with such a name becomes
`source_<name>`."""
_OWN = ("path", "text", "speaker", "clip_id")
_FIELD = re.compile(r"\{([^{}]+)\}")


class ClipFolder(Builder):
    """Builder of a folder of clips with a table that lists them.

    Parameters
    ----------
    source
        The folder that the paths in the table start from.
    table
        The table, relative to `source` or anywhere else. A parquet file may hold the clips themselves, as data sets of
        the Hub do: their column is then `path`, and they are unpacked into the user's cache.
    name
        The name of the corpus in builds and cards.
    columns
        Our name → the table's name, for columns with other names there; for `path` it can also be a pattern, such as
        `speech/{domain}/{file}`.
    strata
        Columns to hold equal; all further columns are demographic.
    values
        The values that a column can have, by our name of the column; any other value is refused. Without it, every
        value counts.
    missing
        The texts that mean a missing value, such as `NA`; without it only an empty cell does.
    where
        Keep only rows with this value, or one of these values, in a column of the table.
    needs
        The columns that the table must have, by our names. Without `text` a clip has no transcript; without `speaker`
        each is by a speaker of its own, which is right where another column is the unit.
    clips
        Columns that hold paths of further files, by our names: those of later turns, or of each group.
    media
        Whether the files are recordings or images.
    """

    FACTS = Published("clip_folder")

    def __init__(
        self,
        source: Path | str,
        *,
        table: Path | str = "clips.csv",
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
        strata: Sequence[str] = (),
        values: Mapping[str, Sequence[str]] | None = None,
        missing: Sequence[str] = (),
        where: Mapping[str, str | Sequence[str]] | None = None,
        needs: Sequence[str] = ("path", "text", "speaker"),
        clips: Sequence[str] = (),
        media: Literal["audio", "image"] = "audio",
    ) -> None:
        self.MEDIA = media
        self.table = Path(source).expanduser() / Path(table).expanduser()
        self._name = name or Path(source).resolve().name
        self._title = name or self.FACTS.title
        self._renamed = dict(columns or {})
        self._strata = tuple(strata)
        self._needs = (*needs, *clips)
        self._clips = tuple(clips)
        self._missing = frozenset(missing)
        self._values = {name: tuple(allowed) for name, allowed in (values or {}).items()}
        refuse_unusable(self.table, "table")
        self._where = {
            column: tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)
            for column, value in (where or {}).items()
        }
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self._name):
            raise UsageError(f"`name` must be letters, digits, '.', '_' or '-', got {self._name!r}; give a `name`")
        super().__init__(source)

    def _check_source(self) -> None:
        if not self.table.is_file():
            raise UsageError(
                f"the table {self.table} is missing: expected a CSV with path, text and speaker, "
                f"{found_instead(self.source)}; name it as `table`"
            )
        rows = self._read()
        self._further = self._further_columns(list(rows[0][1]) if rows else [])
        for option, names in {"strata": self._strata, "values": tuple(self._values)}.items():
            if rows and (unknown := [name for name in names if name not in self._further]):
                raise UsageError(
                    f"`{option}` names {unknown[0]!r}, which {self.table} does not have"
                    f"{nearest(unknown[0], self._further)}; it has {', '.join(self._further) or 'none'}"
                )
        self._rows = rows

    def _read(self) -> list[tuple[int, dict[str, str]]]:
        """Return the rows with their numbers; an empty text is missing."""
        table = flatten_columns(read_columns(self.table))
        if files := [name for name in media_in(self.table) if name in self._needed()]:
            self.source, paths = unpacked_media(self.table, files)
            table |= paths
        if missing := [name for name in self._needed() if name not in table]:
            raise UsageError(f"{self.table}: column {missing[0]!r} is missing; its columns are {', '.join(table)}")
        texts = {name: ["" if cell is None else str(cell).strip() for cell in column] for name, column in table.items()}
        rows = []
        for number, cells in enumerate(zip(*texts.values(), strict=True), start=1):
            row = {name: "" if cell in self._missing else cell for name, cell in zip(texts, cells, strict=True)}
            if self.table.suffix.lower() == ".csv":
                self._refuse_swallowed(row, number)
            rows.append((number, row))
        return rows

    def _refuse_swallowed(self, row: Mapping[str, str], number: int) -> None:
        """Raise UsageError for a cell that probably holds several rows.

        Rows between two stray quotes bring a line break and the separators of a row each.
        """
        for cell in (cell for cell in row.values() if "\n" in cell and len(row) > 1):
            if cell.count("\n") * (len(row) - 1) == max(map(cell.count, ",;\t")):
                raise UsageError(
                    f"{self.table}, row {number}: a quote seems to swallow rows ({cell!r:.40}); close it, or write the "
                    "cell in one line"
                )

    def _further_columns(self, header: Iterable[str]) -> dict[str, str]:
        """Return our name → the table's name for every column except path, text, speaker and clip_id."""
        ours_of = {theirs: ours for ours, theirs in self._renamed.items() if ours not in _OWN}
        common = {self._from(name) for name in _OWN} - set(ours_of)
        names = {}
        for theirs in header:
            if theirs not in common:
                ours = ours_of.get(theirs, theirs)
                names[f"source_{ours}" if ours in (*TAKEN, *_OWN) else ours] = theirs
        return names

    def _from(self, ours: str) -> str:
        """Return the table's name, or the pattern, for one of our columns."""
        return self._renamed.get(ours, ours)

    def _needed(self) -> list[str]:
        path = self._from("path")
        parts = _FIELD.findall(path)
        ours = [self._from(name) for name in self._needs if name != "path"]
        others = [old for new, old in self._renamed.items() if new != "path"]
        return [*(parts or [path]), *ours, *others, *self._where]

    def _facts(self) -> CorpusFacts:
        columns = tuple(
            Column(
                name=name,
                meaning=f"as in {self.table.name}",
                role="stratum" if name in self._strata else "demographic",
            )
            for name in self._further
        )
        return dataclasses.replace(self.FACTS, name=self._name, title=self._title, columns=columns)

    def _scan(self) -> Scan:
        clips: dict[str, Clip] = {}
        doubles: list[str] = []
        alone: list[str] = []
        left_out = 0
        unknown: dict[str, Counter[str]] = {}
        for number, row in self._rows:
            if any(row[name] not in allowed for name, allowed in self._where.items()):
                left_out += 1
                continue
            for ours, theirs in self._further.items():
                if row[theirs] and row[theirs] not in self._values.get(ours, (row[theirs],)):
                    unknown.setdefault(ours, Counter())[row[theirs]] += 1
            clip = self._clip(row, number)
            first = clips.setdefault(clip.clip_id, clip)
            if first is not clip and first.path != clip.path:
                raise UsageError(
                    f"{self.table}, row {number}: clip_id {clip.clip_id!r} already stands for {first.path.name}; "
                    "make it unique, or leave it out and the path names the clip"
                )
            if first != clip:
                told, before = ({"text": c.text, "speaker": c.speaker, **c.columns, **c.further} for c in (clip, first))
                name = next(name for name in told if told[name] != before[name])
                raise UsageError(
                    f"{self.table}, row {number}: the clip {clip.clip_id!r} has {name} {told[name]!r} here and "
                    f"{before[name]!r} in a row before; correct the path, take a row out, or give each row a `clip_id`"
                )
            if first is not clip:
                doubles.append(f"row {number} ({clip.clip_id})")
            elif row.get(self._from("speaker")) == "":
                alone.append(clip.clip_id)
        for ours, strange in unknown.items():
            refuse_undeclared(str(self.table), ours, strange, self._values[ours])
        found = tuple(clips.values())
        oddities = {
            "rows that repeat a clip, not used": doubles,
            "clips whose file is missing (kept as rows)": [c.clip_id for c in found if not c.path.is_file()],
            "clips without a speaker (each is its own)": alone,
            **{
                f"clips without {name} (null)": [clip.clip_id for clip in found if clip.columns[name] is None]
                for name in self._further
            },
            "speakers with several values of a demographic column": _inconstant(found, self.facts.demographics),
        }
        notes = []
        if left_out:
            asked = " and ".join(f"{name} is {' or '.join(values)}" for name, values in self._where.items())
            notes.append(f"rows left out because `where` asks that {asked}: {left_out:,} of {len(self._rows):,}")
        counts = {"clips": len(found), "speakers": len({clip.speaker for clip in found})}
        for name in self.facts.demographics:
            counts |= {f"{name}={value}": n for value, n in speakers_with(found, name).items() if len(counts) < 100}
        return Scan(clips=found, counts=counts, oddities=oddities, notes=tuple(notes))

    def _clip(self, row: Mapping[str, str], number: int) -> Clip:
        pattern = self._from("path")
        relative = self._relative(_FIELD.sub(lambda m: row[m[1]], pattern) if _FIELD.search(pattern) else row[pattern])
        path = self._inside(relative, number)
        clip_id = row.get(self._from("clip_id")) or PurePosixPath(relative).as_posix()
        speaker = row.get(self._from("speaker"), "")
        return Clip(
            clip_id=clip_id,
            path=path,
            text=row.get(self._from("text")) or None,
            speaker=speaker or clip_id,
            columns={ours: row[theirs] or None for ours, theirs in self._further.items()},
            further={name: self._inside(self._relative(row[self._from(name)]), number) for name in self._clips},
        )

    def _relative(self, given: str) -> str:
        """Return a path from the source folder on, and one of Windows with slashes unless a file is called so."""
        if "\\" in given and not os.path.exists(self.source / given):
            given = PureWindowsPath(given).as_posix()
        path = PurePosixPath(given)
        # The folder may have been listed by the name of a link to it.
        above = next((own for own in (self._resolved, self.source.absolute()) if path.is_relative_to(own)), None)
        return given if above is None else str(path.relative_to(above))

    def _inside(self, relative: str, number: int) -> Path:
        """Return the clip's path; UsageError for a path that leads out of the folder, by name or through a link."""
        if "://" in relative or relative.startswith("data:"):
            raise UsageError(
                f"{self.table}, row {number}: {shortened(relative, 60)!r} is an address; save the file, and name its "
                "path"
            )
        if not relative:
            raise UsageError(f"{self.table}, row {number}: the path of a file is empty; leave the row out")
        pure = PurePosixPath(relative)
        named_out = pure.is_absolute() or ".." in pure.parts or PureWindowsPath(relative).drive
        path = self.source / pure
        if not os.path.exists(path):  # macOS writes a letter with its accent as two signs
            forms = (self.source / unicodedata.normalize(form, relative) for form in ("NFC", "NFD"))
            path = next(filter(os.path.exists, forms), path)
        try:
            refuse_unusable(path, "path")
        except UsageError as error:
            raise UsageError(f"{self.table}, row {number}: {error}") from None
        if named_out or not path.resolve().is_relative_to(self._resolved):
            raise UsageError(
                f"{self.table}, row {number}: path {relative!r} is not inside {self._resolved}; name the folder in "
                "which all files are (`folder` in a task file)"
            )
        return path


def refuse_undeclared(table: str, column: str, found: Counter[str], declared: Sequence[str]) -> None:
    """Raise UsageError if a column has values, counted in `found`, that its `values` do not declare."""
    if found:
        named = [f"{value!r} ({n:,} rows)" for value, n in found.most_common()]
        raise UsageError(
            f"{table}: `values` does not declare {listed(named)} of {column}; declared are {', '.join(declared)}; "
            "correct the table or `values`"
        )


def _inconstant(clips: Iterable[Clip], demographics: Iterable[str]) -> list[str]:
    """Return the speakers whose demographic values differ between clips."""
    values: dict[tuple[str, str], set[object]] = {}
    for clip in clips:
        for name in demographics:
            values.setdefault((clip.speaker, name), set()).add(clip.columns[name])
    return sorted(f"{speaker} ({name})" for (speaker, name), seen in values.items() if len(seen) > 1)
