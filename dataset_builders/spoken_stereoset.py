"""Spoken StereoSet: short spoken contexts, each with three written continuations.

Data:       the authors' repository (no licence stated): `metadata/<domain>_v1.0.csv` and
            `speech/<domain>/<id>_<speaker>.wav`, domains gender and age; or any folder of the same shape, for other
            domains too. A domain is the column after which its table and its folder of speech are named.
Paper:      Lin et al. 2024, doi 10.1109/SLT61566.2024.10832259, arXiv 2408.07665
Departs:    Texts are trimmed, so that one context is one stratum. `anti-stereotypical` is called anti_stereotypical.
            `labels` is kept as distributed and counted beside it. `turn` is added. Audio without a row in the metadata
            is listed and not used: nothing says what it belongs to.
Cannot say: anything about people: all speakers are text-to-speech voices, labelled by those who chose them, and the
            stereotypes are those that annotators in one country saw.
"""

from __future__ import annotations

import ast
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.media import container_of, sha256
from equivox.core.plain import split_by
from equivox.core.progress import Event, Progress, no_progress
from equivox.dataset_builders.base import (
    Builder,
    Clip,
    Column,
    CorpusFacts,
    Published,
    Scan,
    audio_files,
    found_instead,
    read_rows,
    refuse_lfs_pointers,
)

KINDS = ("stereotypical", "anti_stereotypical", "irrelevant")
"""The three continuations of every context, and their columns."""
_THEIRS = {"stereotypical": "stereotypical", "anti_stereotypical": "anti-stereotypical", "irrelevant": "irrelevant"}
CONTINUATIONS = tuple(_THEIRS.values())
"""The columns of the three continuations in the metadata."""
LABELS = {"stereotypical": "stereotype", "anti_stereotypical": "anti-stereotype", "irrelevant": "irrelevant"}
"""The annotators' names of the three continuations."""
REQUIRED = ("id", "speaker", "context", *CONTINUATIONS)
"""The columns of every table of metadata, in addition to that of its domain."""
_OPTIONAL = ("labels", "annotators")
_NAN = float("nan")


@dataclass(frozen=True)
class _Table:
    """The metadata of one domain, with unchanged cells."""

    domain: str
    path: Path
    rows: Sequence[Mapping[str, str]]


class SpokenStereoSet(Builder):
    """Spoken StereoSet as distributed, or any folder of the same shape."""

    FACTS = Published("spoken_stereoset")

    def _check_source(self) -> None:
        if self.source.name in {"metadata", "speech"} and (self.source.parent / "metadata").is_dir():
            raise UsageError(f"`source` is {self.source}; give the folder above it, {self.source.parent}")
        missing = [name for name in ("metadata/", "speech/") if not (self.source / name).is_dir()]
        if missing:
            raise UsageError(
                f"{self.source} is not laid out like Spoken StereoSet: expected metadata/ and speech/, "
                f"{found_instead(self.source)}; give the folder of the git clone"
            )
        files = sorted(path for path in (self.source / "metadata").iterdir() if path.suffix.lower() == ".csv")
        if not files:
            raise UsageError(
                f"{self.source / 'metadata'} holds no table: expected <domain>_<version>.csv, such as gender_v1.0.csv, "
                f"{found_instead(self.source / 'metadata')}"
            )
        refuse_lfs_pointers(files)
        tables = [self._table(path) for path in files]
        # Of several versions of one domain, the last one is used and the others are listed.
        self._tables = {table.domain: table for table in tables}
        self._unused = [table.path.name for table in tables if self._tables[table.domain] is not table]

    def _table(self, path: Path) -> _Table:
        rows = read_rows(path, REQUIRED, strip=False)
        header = list(rows[0]) if rows else []
        further = [name for name in header if name not in (*REQUIRED, *_OPTIONAL)]
        named = [name for name in further if path.stem == name or path.stem.startswith(f"{name}_")]
        if not rows or len(named) != 1:
            raise UsageError(
                f"{path}: expected rows, and the column that the file is named after (gender_v1.0.csv has a column "
                f"gender); its columns beside the common ones are {', '.join(further) or 'none'}"
            )
        if named[0] in {column.name for column in self._of_every_domain()} | {"text", "audio"}:
            raise UsageError(f"{path}: a domain cannot be called {named[0]!r}; rename its column and its table")
        return _Table(named[0], path, rows)

    def _of_every_domain(self) -> list[Column]:
        """Return the columns that do not say who speaks."""
        return [column for column in self.FACTS.columns if column.role != "demographic"]

    def _facts(self) -> CorpusFacts:
        known = {column.name: column for column in self.FACTS.columns}
        own = [
            known.get(domain, Column(name=domain, meaning=f"as in {table.path.name}"))
            for domain, table in self._tables.items()
        ]
        return replace(self.FACTS, columns=(*self._of_every_domain(), *own))

    def _scan(self) -> Scan:
        clips: dict[str, Clip] = {}
        self._odd: dict[str, list[str]] = defaultdict(list)
        self._odd["tables of which a later version is used"] = self._unused
        counts: dict[str, int] = {}
        for domain, table in self._tables.items():
            files = self._files(domain)
            found = self._instances(table, files)
            clips |= found
            used = {clip.path for clip in found.values()}
            self._note_odd_files(domain, files, used, {row["id"].strip() for row in table.rows})
            counts |= {
                f"{domain} instances": len(found),
                f"{domain} speakers": len({clip.speaker for clip in found.values()}),
                f"{domain} contexts": len({clip.columns["context"] for clip in found.values()}),
            }
        folders = [self.source / "speech" / domain for domain in self._tables]
        elsewhere = [
            self.relative(path) for path in sorted(audio_files(self.source.rglob("*"))) if path.parent not in folders
        ]
        self._odd["audio that belongs to no table, not used"] = elsewhere
        return Scan(clips=tuple(clips.values()), counts=counts, oddities=self._odd)

    def _files(self, domain: str) -> dict[str, list[Path]]:
        """Return the audio files of a domain by their name without the suffix."""
        folder = self.source / "speech" / domain
        return split_by(audio_files(folder.iterdir()) if folder.is_dir() else (), lambda path: path.stem)

    def _instances(self, table: _Table, files: Mapping[str, Sequence[Path]]) -> dict[str, Clip]:
        domain, oddities = table.domain, self._odd
        turns = _turns(row["context"].strip() + "\0" + row["id"].strip() for row in table.rows)
        groups: dict[str, set[str]] = defaultdict(set)
        clips: dict[str, Clip] = {}
        for row in table.rows:
            cells = {name: (row.get(name) or "").strip() for name in (*REQUIRED, *_OPTIONAL, domain)}
            name = f"{cells['id']}_{cells['speaker']}"
            clip_id = f"{domain}/{name}"
            if clip_id in clips:
                oddities["rows that repeat an id and speaker, first used"].append(clip_id)
                continue
            for column in ("context", *CONTINUATIONS):
                if row[column] != cells[column]:
                    oddities[f"{column} with stray spaces (trimmed)"].append(clip_id)
                if not cells[column]:
                    oddities[f"rows without {column} (kept, null)"].append(clip_id)
            if not cells[domain]:
                oddities[f"rows without {domain} (kept, null)"].append(clip_id)
            if len({" ".join(cells[column].casefold().split()) for column in CONTINUATIONS}) < 3:
                oddities["rows with two continuations alike (kept)"].append(clip_id)
            if name not in files:
                oddities["rows without a file (kept)"].append(clip_id)
            path = files[name][0] if name in files else self.source / "speech" / domain / f"{name}.wav"
            groups[cells["speaker"]].add(cells[domain])
            clips[clip_id] = Clip(
                clip_id=clip_id,
                path=path,
                text=cells["context"] or None,
                speaker=cells["speaker"],
                columns=self._columns(domain, cells, turns, clip_id),
            )
        torn = sorted(speaker for speaker, seen in groups.items() if len(seen - {""}) > 1)
        oddities[f"speakers with several values of {domain}"].extend(torn)
        return clips

    def _columns(
        self, domain: str, cells: Mapping[str, str], turns: Mapping[str, int], clip_id: str
    ) -> dict[str, str | int | float | None]:
        counts = parse_labels(cells["labels"])
        if cells["labels"] and counts is None:
            self._odd["rows with labels that cannot be read (counts null)"].append(clip_id)
        columns: dict[str, str | int | float | None] = {
            "domain": domain,
            "id": cells["id"],
            "context": cells["context"] or None,
            **{ours: cells[theirs] or None for ours, theirs in _THEIRS.items()},
        }
        for kind in KINDS:
            votes = counts[kind] if counts else None
            total = sum(votes.values()) if votes else 0
            columns[f"{kind}_agreement"] = votes[kind] / total if votes and total else None
            columns |= {f"{kind}_called_{label}": votes[label] if votes else None for label in KINDS}
            if votes and total and 2 * votes[kind] <= total:
                self._odd["continuations that no majority of annotators calls what they are (kept)"].append(
                    f"{clip_id} {kind.replace('_', '-')}"
                )
        ids = _read(cells["annotators"])
        if isinstance(ids, list) and len(set(ids)) < len(ids):
            self._odd["rows that name an annotator twice (kept)"].append(clip_id)
        return {
            **columns,
            "labels": cells["labels"] or None,
            "annotators": cells["annotators"] or None,
            "turn": turns[cells["context"] + "\0" + cells["id"]],
            **{name: (cells[name] or None) if name == domain else None for name in self._tables},
        }

    def _note_odd_files(self, domain: str, files: Mapping[str, Sequence[Path]], used: set[Path], ids: set[str]) -> None:
        by_id: dict[str, list[str]] = defaultdict(list)
        for stem, paths in files.items():
            by_id[stem.partition("_")[0]].append(stem)
            self._odd["second files of an instance, not used"].extend(f"{domain}/{path.name}" for path in paths[1:])
            if paths[0] not in used:
                what = "files whose id has a row for another speaker, not used"
                alone = "files without a row in the metadata, not used"
                self._odd[what if stem.partition("_")[0] in ids else alone].append(f"{domain}/{paths[0].name}")
        self._odd["ids with files of several speakers"].extend(
            f"{domain}/{name}" for name, stems in sorted(by_id.items()) if len(stems) > 1
        )

    def oddities(self) -> dict[str, list[str]]:
        """Return oddities, including files whose format differs from their suffix; reads the beginning of all audio."""
        found = super().oddities()
        for clip in self.clips():
            suffix = clip.path.suffix.lower()
            with suppress(OSError), clip.path.open("rb") as file:
                # The build reports a file that is no audio as a clip that cannot be used.
                if (container := container_of(file.read(16))) not in (None, suffix[1:]):
                    found.setdefault(f"files named {suffix} that hold {container} (used)", []).append(clip.clip_id)
        return found


def parse_labels(text: str) -> dict[str, dict[str, int]] | None:
    """Return the counts of the annotators' labels of each continuation, by our names; None for other texts.

    `text` is a Python or JSON mapping from the authors' labels (stereotype, anti-stereotype, irrelevant) to lists of
    such labels, one entry per annotator.

    >>> parse_labels("{'stereotype': ['stereotype', 'irrelevant'], 'anti-stereotype': [], 'irrelevant': []}")[
    ...     "stereotypical"]
    {'stereotypical': 1, 'anti_stereotypical': 0, 'irrelevant': 1}
    """
    read = _read(text)
    if not isinstance(read, dict) or set(read) != set(LABELS.values()):
        return None
    known = set(LABELS.values())
    if not all(isinstance(votes, list) and known.issuperset(map(str, votes)) for votes in read.values()):
        return None
    return {ours: {label: read[theirs].count(LABELS[label]) for label in KINDS} for ours, theirs in LABELS.items()}


def _read(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _turns(instances: Iterable[str]) -> dict[str, int]:
    """Return the running number of each instance ("context NUL id"): by context, then in a hashed order."""
    hashed = {entry: sha256(entry.encode()) for entry in instances}
    order = sorted(hashed, key=lambda entry: (entry.partition("\0")[0], hashed[entry]))
    return {entry: number for number, entry in enumerate(order)}


def rouge_l_diversity(
    continuations: Iterable[str], *, stage: str = "ROUGE-L", progress: Progress = no_progress
) -> dict[str, float]:
    """Return the average ROUGE-L (F-measure, no stemming) of each distinct continuation with every other one.

    0 means no common words, 1 the same text; the paper's are all below 0.13. Of fewer than two continuations there is
    no average. Source: arXiv 2408.07665, section 3.4, by the package rouge-score; a text that several instances share
    counts once. `progress` is told of each continuation under the name `stage`. UsageError if rouge-score is not
    installed.

    Examples
    --------
    "a b c d" and "a b": the longest common subsequence is 2, so 2 · 2 / (4 + 2); "x" has nothing in common.

    >>> {text: round(value, 4) for text, value in rouge_l_diversity(["a b c d", "a b", "x"]).items()}
    {'a b': 0.3333, 'a b c d': 0.3333, 'x': 0.0}
    """
    distinct = sorted(set(continuations))
    if len(distinct) < 2:
        return {}
    score = _rouge_l()
    sums = [0.0] * len(distinct)
    for first, text in enumerate(distinct):
        for second in range(first):
            value = score(distinct[second], text)
            sums[first] += value
            sums[second] += value
        progress(Event(stage, first + 1, len(distinct)))
    return {text: total / (len(distinct) - 1) for text, total in zip(distinct, sums, strict=True)}


def _rouge_l() -> Callable[[str, str], float]:
    try:
        from rouge_score import tokenizers
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise UsageError(
            "ROUGE-L needs rouge-score; install it in a checkout of equivox: "
            '`pip install -c constraints.txt ".[diversity]"`'
        ) from error

    words = tokenizers.DefaultTokenizer(use_stemmer=False)
    words.tokenize = cache(words.tokenize)  # each text is split only once
    scorer = RougeScorer(["rougeL"], tokenizer=words)
    return lambda first, second: float(scorer.score(first, second)["rougeL"].fmeasure)


def corpus_facts(
    rows: Sequence[Mapping[str, str | int | float | None]],
    seconds: Sequence[float | None],
    diverse: bool,
    progress: Progress,
) -> tuple[list[dict[str, str]], dict[str, Sequence[float]]]:
    """Return a row of texts per domain: size, length and agreement; with `diverse` also ROUGE-L of continuations.

    `rows` and `seconds` are the columns and the length of each sample (None: unknown). `mean seconds` is the mean
    length of the spoken contexts that can be decoded, `mean words` that of the continuations (split at spaces),
    `agreement` the mean percentage of annotators whose label is the continuation's kind; — where nothing is known. The
    second is, by domain, the average ROUGE-L of each continuation with all others of its domain; empty without
    `diverse`, because it is slow. Source: arXiv 2408.07665, Table 2.
    """
    lines = []
    averages: dict[str, Sequence[float]] = {}
    for domain in sorted({str(row["domain"]) for row in rows}):
        own = [(row, length) for row, length in zip(rows, seconds, strict=True) if row["domain"] == domain]
        texts = [str(row[kind]) for row, _ in own for kind in KINDS if row[kind]]
        votes = [row[f"{kind}_agreement"] for row, _ in own for kind in KINDS]
        counts = {
            "speakers": len({row["speaker"] for row, _ in own}),
            "instances": len(own),
            "contexts": len({row["context"] for row, _ in own}),
        }
        means = {
            "mean seconds": _mean([length for _, length in own if length is not None]),
            "mean words": _mean([len(text.split()) for text in texts]),
            "agreement": 100 * _mean([float(vote) for vote in votes if vote is not None]),
        }
        groups = Counter(str(row[domain]) for row, _ in own if row[domain])
        line = {"domain": domain, **{name: f"{number:,}" for name, number in counts.items()}}
        line |= {name: _text(value, 2) for name, value in means.items()}
        line["groups"] = ", ".join(f"{group} {n:,}" for group, n in sorted(groups.items()))
        if diverse:
            found = rouge_l_diversity(texts, stage=f"ROUGE-L of {domain}", progress=progress)
            averages[domain] = list(found.values())
            largest = max(found.values(), default=_NAN)
            line |= {"mean ROUGE-L": _text(_mean(averages[domain]), 3), "largest": _text(largest, 3)}
        lines.append(line)
    return lines, averages


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else _NAN


def _text(value: float, digits: int) -> str:
    return "—" if isnan(value) else f"{value:.{digits}f}"
