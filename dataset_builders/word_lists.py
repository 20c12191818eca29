"""Word lists that metrics use: downloaded from their authors and checked, never shipped.

`nrc`
    NRC Word-Emotion Association Lexicon 0.92: ten categories, eight emotions and two sentiments.
`sadcat`
    The full stereotype content dictionaries: sociability and morality (warmth), ability and agency (competence), the
    direction of each, and the valence of every word.

Their licences allow research and forbid passing them on: `equivox data build nrc` downloads a list from its authors.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from equivox.core.errors import RunError, UsageError, nearest
from equivox.core.files import cache_folder, write_whole
from equivox.core.media import sha256
from equivox.core.yaml_files import packaged_yaml

LEXICA_FOLDER = "EQUIVOX_LEXICA"
"""The environment variable that names the folder of the word lists."""


@dataclass(frozen=True, kw_only=True)
class LexiconSource:
    """Source of a word list: its web page, its licence and the checksum of the file.

    `member` is the file inside the downloaded archive; empty if the download is the file itself.
    """

    name: str
    title: str
    home: str
    url: str
    licence: str
    cite: str
    file_name: str
    sha256: str
    megabytes: float
    member: str = ""


SOURCES: Mapping[str, LexiconSource] = {
    name: LexiconSource(name=name, **fields)
    for name, fields in packaged_yaml("dataset_builders/word_lists.yaml").items()
}


def lexicon_source(name: str) -> LexiconSource:
    """Return the source of the word list `name`; UsageError for another name."""
    if name not in SOURCES:
        raise UsageError(f"unknown word list {name!r}{nearest(name, SOURCES)}; known: {', '.join(SOURCES)}")
    return SOURCES[name]


def lexicon_folder() -> Path:
    """Return the folder of fetched word lists: `$EQUIVOX_LEXICA`, else `equivox/lexica` in the user's cache."""
    if folder := os.environ.get(LEXICA_FOLDER):
        return Path(folder).expanduser()
    return cache_folder("lexica")


def fetch_lexicon(name: str, folder: Path | None = None, *, get: Callable[[str], bytes] | None = None) -> Path:
    """Download a word list and return its path; a file with the right checksum is not fetched again.

    Raises
    ------
    UsageError
        Unknown name, or HF_HUB_OFFLINE is set.
    StorageError
        The folder cannot be written.
    RunError
        The server does not answer, or the file has another checksum; nothing is kept then.
    """
    source = lexicon_source(name)
    path = (folder or lexicon_folder()) / source.file_name
    if path.is_file() and sha256(path.read_bytes()) == source.sha256:
        return path
    if get is None:
        if os.environ.get("HF_HUB_OFFLINE", "0").lower() in {"1", "true", "yes", "on"}:
            raise UsageError(
                f"HF_HUB_OFFLINE is set, so nothing is fetched; get {source.title} from {source.home} "
                f"and put {source.file_name} into {path.parent}"
            )
        get = _get
    try:
        data = get(source.url)
    except OSError as error:
        raise RunError(f"{source.url} cannot be fetched ({error}); get it by hand from {source.home}") from error
    content = _member(data, source)
    _check(content, source.sha256, source.url, source)
    write_whole(path, lambda temporary: temporary.write_bytes(content))
    return path


def _get(url: str) -> bytes:
    from urllib.request import Request, urlopen

    with urlopen(Request(url, headers={"User-Agent": "equivox"}), timeout=120) as response:
        return bytes(response.read())


def _member(data: bytes, source: LexiconSource) -> bytes:
    if not source.member:
        return data
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in archive.namelist() if name.rpartition("/")[2] == source.member]
            if not names:
                raise RunError(f"{source.url} holds no {source.member}; get it by hand from {source.home}")
            return archive.read(min(names, key=len))
    except zipfile.BadZipFile as error:
        raise RunError(f"{source.url} is no zip archive ({error}); get it by hand from {source.home}") from error


def _check(content: bytes, expected: str, where: str, source: LexiconSource) -> None:
    found = sha256(content)
    if found != expected:
        raise RunError(
            f"{where} is not the {source.title} that is expected: SHA-256 {found[:12]}…, expected {expected[:12]}…; "
            f"compare it with {source.home}"
        )


def read_lexicon(name: str, path: Path | None = None, sha256: str = "") -> str:
    """Return the text of a word list, checked against its checksum.

    Parameters
    ----------
    path
        The file; None: the file that `equivox data build` wrote.
    sha256
        Checksum of a custom file in the same layout; empty: that of the published file.

    Raises
    ------
    UsageError
        The file does not exist, or its checksum differs.
    """
    source = lexicon_source(name)
    path = (lexicon_folder() / source.file_name) if path is None else path
    try:
        content = path.read_bytes()
    except OSError:
        raise UsageError(
            f"the word list {name!r} ({source.title}) is not at {path}; get it with `equivox data build {name}`"
            f"{', install NRCLex, which carries it,' if name == 'nrc' else ''} or set {LEXICA_FOLDER} to its folder"
        ) from None
    try:
        _check(content, sha256 or source.sha256, str(path), source)
    except RunError as error:
        raise UsageError(str(error)) from None
    return content.decode("utf-8-sig")
