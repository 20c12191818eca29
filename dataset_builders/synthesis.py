"""Make a corpus in the layout of Spoken StereoSet from custom texts, read by any text-to-speech command.

A table of texts has one row per context and group: `context`, `irrelevant`, `stereotypical`, `anti-stereotypical`, and
one further column, the domain, whose name becomes the compared dimension (accent, region, …). A table of voices has
the columns `speaker`, the domain (the group), `voice` (for the command), and any others that the command's template
uses; each text is read by every voice of its group. Labels of the continuations (`labels`, `annotators`), which
`equivox data make filter` adds to a table of texts, go into the corpus.

Each clip is stored at once, in a hidden folder next to the output; the corpus itself appears whole or not at all, and a
repeated call synthesizes only the missing clips.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from equivox.core.errors import RunError, UsageError
from equivox.core.media import container_of, inspect_audio, sha256
from equivox.core.progress import Event, Progress, no_progress
from equivox.core.text import how_many, listed
from equivox.dataset_builders.base import FACTS_FILE, read_rows
from equivox.dataset_builders.construction import Made, write_table
from equivox.dataset_builders.parquet import whole_folder
from equivox.dataset_builders.spoken_stereoset import CONTINUATIONS, REQUIRED

ESPEAK = "espeak-ng"
"""The name of the built-in template; `pitch` and `rate` are used if the table of voices has them."""

_FIELD = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_DOMAIN = re.compile(r"[a-z][a-z0-9_]*")
_LONGEST_S = 600
_AT_A_TIME = 2
LABELLED = ("labels", "annotators")
"""Optional columns of a table of texts, which `equivox data make filter` adds: the labels, and who gave them."""
_NOT_LABELLED = "Nobody has labelled the continuations: what is a stereotype is the opinion of who wrote them."
_LABELLED = "What is a stereotype is the opinion of the annotators who are named in the column `annotators`."


@dataclass(frozen=True)
class _Domain:
    name: str
    texts: Sequence[Mapping[str, str]]
    voices: Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class _Clip:
    """One context by one voice: its row of metadata, its command, and the command's input."""

    domain: str
    row: Mapping[str, str]
    command: tuple[str, ...]
    text: str | None

    @property
    def key(self) -> str:
        """Hash of everything that the audio depends on; `{output}` replaces the path in the command."""
        return sha256("\0".join([*self.command, self.text or ""]).encode())

    @property
    def stem(self) -> str:
        return f"{self.row['id']}_{self.row['speaker']}"


def synthesize(
    texts: Sequence[Path],
    voices: Sequence[Path],
    output: Path,
    *,
    tts: str = ESPEAK,
    progress: Progress = no_progress,
) -> Made:
    """Synthesize texts with a text-to-speech command, into a new folder in the layout of Spoken StereoSet.

    Parameters
    ----------
    texts, voices
        CSV tables, one of each per domain; the column of the domain shows which belong together.
    output
        The new folder.
    tts
        `espeak-ng`, or a command line with `{output}` for the file to be written (wav, flac, ogg or mp3), `{text}` for
        the text (without it the command reads the text from its input) and any column of the table of voices. It is
        not run by a shell.
    progress
        Function that is called with (clips done, all clips).

    Raises
    ------
    UsageError
        Invalid tables or an invalid template, or an output that is not empty; nothing was written.
    RunError
        The command failed, or wrote no usable audio, for some clips; the others are stored for the next call.
    """
    if not texts or not voices:
        raise UsageError("`texts` and `voices` need a table each; give at least one CSV for both")
    domains = _domains(texts, voices)
    clips = [clip for domain in domains for clip in _clips(domain, tts)]
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"`output` {output} holds files already; name a new folder")
    if shutil.which(program := clips[0].command[0]) is None:
        raise UsageError(f"`tts`: the program {program!r} is not installed; install it or name another command")
    kept = output.with_name(f".{output.name}.clips")
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"`output`: cannot write in {output.parent} ({error.strerror}); name another") from error
    read_now = _read_all(clips, kept, progress)
    try:
        with whole_folder(output) as partial:
            _write(partial, domains, clips, kept)
    except OSError as error:
        raise RunError(f"{output} was not made: {error}; finished clips are kept for the next call") from error
    shutil.rmtree(kept, ignore_errors=True)
    notes = (f"made now: {read_now:,} clips; build the corpus from this folder",)
    return Made(output=output, rows=len(clips), of=how_many(len(clips), "clip"), left_out={}, notes=notes)


def read_texts(path: Path) -> tuple[str, list[dict[str, str]]]:
    """Return the domain of a table of texts, and its rows; UsageError, naming the line, for anything malformed.

    The columns `labels` and `annotators`, the labels of the continuations as the corpus stores them, are optional.
    """
    rows = read_rows(path, ("context", *CONTINUATIONS))
    known = ("context", *CONTINUATIONS, *LABELLED)
    further = [name for name in (rows[0] if rows else {}) if name not in known]
    if len(further) != 1 or not _DOMAIN.fullmatch(further[0]) or further[0] in REQUIRED:
        raise UsageError(
            f"{path}: besides context and the three continuations it needs rows and one column, the domain in "
            f"lower case (accent), got {', '.join(further) or 'none'}"
        )
    for number, row in enumerate(rows, start=1):
        if empty := [name for name, cell in row.items() if not cell and name not in LABELLED]:
            raise UsageError(f"{path}, row {number}: {empty[0]} is empty; fill it in")
    return further[0], rows


def _domains(texts: Sequence[Path], voices: Sequence[Path]) -> list[_Domain]:
    written: dict[str, list[dict[str, str]]] = {}
    for path in texts:
        domain, rows = read_texts(path)
        written.setdefault(domain, []).extend(rows)
    spoken: dict[str, list[dict[str, str]]] = {}
    for path in voices:
        rows = read_rows(path, ("speaker", "voice"))
        named = [name for name in written if rows and name in rows[0]]
        if len(named) != 1:
            raise UsageError(
                f"{path}: it needs rows and the column of one domain of the texts ({', '.join(written)}), besides "
                f"speaker and voice; its columns are {', '.join(rows[0]) if rows else 'unknown, as it has no rows'}"
            )
        _check_speakers(path, rows)
        spoken.setdefault(named[0], []).extend(rows)
    for name, rows in written.items():
        missing = {row[name] for row in rows} - {row[name] for row in spoken.get(name, ())}
        if missing:
            raise UsageError(f"no voice for {name} {listed(sorted(missing))}; add one to the table of voices")
    return [_Domain(name, written[name], spoken[name]) for name in written]


def _check_speakers(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        speaker = row["speaker"]
        if not _NAME.fullmatch(speaker):
            raise UsageError(
                f"{path}, row {number}: `speaker` must be letters, digits, '.' or '-', as it is part of a file's "
                f"name, got {speaker!r}"
            )
        if speaker in seen:
            raise UsageError(f"{path}, row {number}: the speaker {speaker!r} is there twice; give each its own name")
        seen.add(speaker)


def _clips(domain: _Domain, tts: str) -> list[_Clip]:
    template = _template(tts, domain.voices)
    clips: list[_Clip] = []
    for text in domain.texts:
        for voice in domain.voices:
            if voice[domain.name] != text[domain.name]:
                continue
            row = {
                "id": f"{len(clips):05d}",
                "speaker": voice["speaker"],
                domain.name: text[domain.name],
                **{name: text[name] for name in ("context", *CONTINUATIONS)},
                **{name: text.get(name, "") for name in LABELLED},
            }
            # These fields have priority over columns of the same name, such as text or output.
            filled = {**voice, "text": text["context"], "output": "{output}"}
            command = tuple(_filled(word, filled) for word in template)
            through_input = not any("{text}" in word for word in template)
            clips.append(_Clip(domain.name, row, command, text["context"] if through_input else None))
    return clips


def _filled(word: str, cells: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda match: cells[match[1]], word)


def _template(tts: str, voices: Sequence[Mapping[str, str]]) -> list[str]:
    if tts.strip() == ESPEAK:
        further = {"pitch": ["-p", "{pitch}"], "rate": ["-s", "{rate}"]}
        chosen = [word for name, words in further.items() if name in voices[0] for word in words]
        return [ESPEAK, "-v", "{voice}", *chosen, "-w", "{output}", "--", "{text}"]
    try:
        words = shlex.split(tts)
    except ValueError as error:
        raise UsageError(f"`tts` {tts!r} cannot be read as a command ({error}); check its quotes") from None
    known = {"text", "output", *voices[0]}
    fields = [field for word in words for field in _FIELD.findall(word)]
    for field in fields:
        if field not in known:
            raise UsageError(f"`tts` asks for {{{field}}}, which no table has; known: {', '.join(sorted(known))}")
    if "output" not in fields:
        raise UsageError(
            f"`tts` must be {ESPEAK} or a command with {{output}} where it writes, such as "
            f"'piper --model {{voice}} --output_file {{output}}', got {tts!r}"
        )
    return words


def _read_all(clips: Sequence[_Clip], kept: Path, progress: Progress) -> int:
    pending = {clip.key: clip for clip in clips if not (kept / clip.key).is_file()}
    done = len({clip.key for clip in clips}) - len(pending)
    failures: list[str] = []
    with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
        for number, failure in enumerate(pool.map(lambda clip: _read(clip, kept), pending.values()), start=1):
            if failure is not None:
                failures.append(failure)
            progress(Event("clips", done + number, done + len(pending)))
    if failures:
        raise RunError(
            f"{how_many(len(failures), 'clip')} of {len(clips):,} could not be read: {failures[0]}; the others are "
            "kept, repeat the command to go on"
        )
    return len(pending)


def _read(clip: _Clip, kept: Path) -> str | None:
    """Synthesize one clip and store its audio; return the problem in words, or None."""
    # Programs choose the format by the file's suffix.
    target = kept / f"{clip.key}.wav"
    command = [word.replace("{output}", str(target)) for word in clip.command]
    try:
        run = subprocess.run(
            command,
            input=(clip.text or "").encode(),
            capture_output=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{clip.stem}: {error}"
    if run.returncode != 0:
        said = " ".join(run.stderr.decode(errors="replace").split())[-200:]
        return f"{clip.stem}: {command[0]} ended with {run.returncode}{f' ({said})' if said else ''}"
    try:
        audio = inspect_audio(target.read_bytes())
    except OSError:
        return f"{clip.stem}: {command[0]} wrote no file"
    if audio.problem is not None:
        target.unlink()
        return f"{clip.stem}: what {command[0]} wrote is {audio.problem}"
    target.rename(kept / clip.key)
    return None


def _write(folder: Path, domains: Sequence[_Domain], clips: Sequence[_Clip], kept: Path) -> None:
    published: dict[str, int] = {}
    (folder / "metadata").mkdir(parents=True)
    for domain in domains:
        own = [clip for clip in clips if clip.domain == domain.name]
        (folder / "speech" / domain.name).mkdir(parents=True)
        for clip in own:
            data = (kept / clip.key).read_bytes()
            (folder / "speech" / domain.name / f"{clip.stem}.{container_of(data)}").write_bytes(data)
        header = ["id", "speaker", domain.name, "context", *CONTINUATIONS, *LABELLED]
        write_table(folder / "metadata" / f"{domain.name}_v1.0.csv", header, [clip.row for clip in own])
        published |= {
            f"{domain.name} instances": len(own),
            f"{domain.name} speakers": len({clip.row["speaker"] for clip in own}),
        }
    facts = {
        "title": f"synthesized speech in the layout of Spoken StereoSet ({', '.join(d.name for d in domains)})",
        "licence": "not stated",
        "licence_id": "unknown",
        **dict.fromkeys(("homepage", "paper", "doi", "citation")),
        "published": published,
        "cannot_say": [
            "The speakers are text-to-speech voices; their group is what the table of voices calls them.",
            _NOT_LABELLED if not all(text.get("labels") for d in domains for text in d.texts) else _LABELLED,
        ],
    }
    (folder / FACTS_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
