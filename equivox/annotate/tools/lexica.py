"""The two word lists that GENRES uses: read from a path, never shipped.

`nrc`
    NRC Word-Emotion Association Lexicon 0.92: ten categories, eight emotions and two sentiments.
`sadcat`
    The full stereotype content dictionaries: sociability and morality (warmth), ability and agency (competence), the
    direction of each, and the valence of every word.

Their licences allow research and forbid passing them on: `equivox data fetch nrc` downloads a list from its authors. If
the package NRCLex is installed, its identical copy of the NRC lexicon is used.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from equivox.core.errors import RequestError, RunError, nearest
from equivox.core.files import cache_folder

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
    "nrc": LexiconSource(
        name="nrc",
        title="NRC Word-Emotion Association Lexicon 0.92",
        home="https://saifmohammad.com/WebPages/NRC-Emotion-Lexicon.htm",
        url="https://saifmohammad.com/WebDocs/Lexicons/NRC-Emotion-Lexicon.zip",
        licence="free for research and education, not for commerce, not to be passed on; (c) 2011 NRC Canada",
        cite="Mohammad and Turney 2013, doi 10.1111/j.1467-8640.2012.00460.x",
        file_name="NRC-Emotion-Lexicon-Wordlevel-v0.92.txt",
        sha256="c3379cc3aba93500dfaea475aa76c1ef229ea175c035a5f428a682c1bb6c5be6",
        megabytes=25,
        member="NRC-Emotion-Lexicon-Wordlevel-v0.92.txt",
    ),
    "sadcat": LexiconSource(
        name="sadcat",
        title="Stereotype content dictionaries (SADCAT), full",
        home="https://osf.io/yx45f/",
        url="https://osf.io/download/m9nb5/",
        licence="the authors state none for the file: ask them before passing it on",
        cite="Nicolas, Bai and Fiske 2021, doi 10.1002/ejsp.2724",
        file_name="Full Dictionaries.csv",
        sha256="d05d7fdf07ccc20ad1673999c1693f401a5f48b9b18a4282944bb6eb0c94fc8b",
        megabytes=2.2,
    ),
}

CATEGORIES = (
    "anger",
    "anticipation",
    "disgust",
    "fear",
    "joy",
    "negative",
    "positive",
    "sadness",
    "surprise",
    "trust",
)
"""The ten categories of the NRC lexicon."""


def lexicon_source(name: str) -> LexiconSource:
    """Return the source of the word list `name`; RequestError for another name."""
    if name not in SOURCES:
        raise RequestError(f"unknown word list {name!r}{nearest(name, SOURCES)}; known: {', '.join(SOURCES)}")
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
    RequestError
        Unknown name, a folder that cannot be written, or HF_HUB_OFFLINE is set.
    RunError
        The server does not answer, or the file has another checksum; nothing is kept then.
    """
    source = lexicon_source(name)
    path = (folder or lexicon_folder()) / source.file_name
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == source.sha256:
        return path
    if get is None:
        if os.environ.get("HF_HUB_OFFLINE", "0").lower() in {"1", "true", "yes", "on"}:
            raise RequestError(
                f"HF_HUB_OFFLINE is set, so nothing is fetched; get {source.title} from {source.home} "
                f"and put {source.file_name} into {path.parent}"
            )
        get = _get
    try:
        data = get(source.url)
    except OSError as error:
        raise RunError(f"{source.url} cannot be fetched ({error}); get it by hand from {source.home}") from error
    content = _member(data, source)
    _check(content, source.sha256, f"{source.url}", source)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
        partial.write_bytes(content)
        partial.rename(path)
    except OSError as error:
        raise RequestError(f"cannot write {path} ({error.strerror or error}); name another folder") from error
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
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise RunError(
            f"{where} is not the {source.title} that is expected: SHA-256 {found[:12]}…, expected {expected[:12]}…; "
            f"compare it with {source.home}"
        )


def read_lexicon(name: str, path: Path | None = None, *, sha256: str | None = None) -> str:
    """Return the text of a word list, checked against its checksum.

    Parameters
    ----------
    path
        The file; None: the file that `equivox data fetch` wrote.
    sha256
        Checksum of a custom file in the same layout; None: that of the published file.

    Raises
    ------
    RequestError
        The file does not exist, or its checksum differs.
    """
    source = lexicon_source(name)
    path = (lexicon_folder() / source.file_name) if path is None else path
    try:
        content = path.read_bytes()
    except OSError:
        raise RequestError(
            f"the word list {name!r} ({source.title}) is not at {path}; get it with `equivox data fetch {name}`"
            f"{', install NRCLex, which carries it,' if name == 'nrc' else ''} or name its place in {LEXICA_FOLDER}"
        ) from None
    try:
        _check(content, sha256 or source.sha256, str(path), source)
    except RunError as error:
        raise RequestError(str(error)) from None
    return content.decode("utf-8-sig")


EmotionLexicon = Mapping[str, frozenset[str]]
"""Word → the categories that it belongs to."""


def read_emotions(path: Path | None = None, *, sha256: str | None = None) -> EmotionLexicon:
    """Return the emotion lexicon from a file, from `equivox data fetch`, or from the package NRCLex.

    RequestError if none of these exists, or if the list found is another one.
    """
    source = lexicon_source("nrc")
    if path is None and not (lexicon_folder() / source.file_name).is_file():
        packaged = _nrclex()
        if packaged is not None:
            return packaged
    return parse_emotions(read_lexicon("nrc", path, sha256=sha256))


NRC_CONTENT = "b0d778c3dea4f5a941ea9adf0c2034fed30ec3b0ba6f2e10fd4a5a744c890a6d"
"""SHA-256 of the words and their categories in canonical JSON, independent of the file format."""


def _nrclex() -> EmotionLexicon | None:
    """Return the list in NRCLex; None if the package is not installed or has another list."""
    import importlib.util

    from equivox.core.task import digest

    package = importlib.util.find_spec("nrclex")
    for place in (package.submodule_search_locations or ()) if package is not None else ():
        file = Path(place) / "data" / "nrc_en.json"
        if file.is_file():
            content = json.loads(file.read_text("utf-8"))
            if digest({word: sorted(categories) for word, categories in content.items()}) == NRC_CONTENT:
                return {word: frozenset(categories) for word, categories in content.items()}
    return None


def parse_emotions(text: str) -> dict[str, frozenset[str]]:
    r"""Parse the NRC layout, a line `word<TAB>category<TAB>0|1` per word and category; words in none are left out.

    >>> found = parse_emotions("calm\tjoy\t0\ncalm\tpositive\t1\ncalm\ttrust\t1\nchair\tjoy\t0")
    >>> found == {"calm": frozenset({"positive", "trust"})}
    True
    """
    found: dict[str, set[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != 3 or fields[1] not in CATEGORIES or fields[2] not in {"0", "1"}:
            raise RequestError(f"line {number} of the emotion lexicon is {line!r}; expected word, category and 0 or 1")
        if fields[2] == "1":
            found.setdefault(fields[0], set()).add(fields[1])
    return {word: frozenset(categories) for word, categories in found.items()}


@dataclass(frozen=True, kw_only=True)
class TraitEntry:
    """The entry of one word in the dictionaries.

    `warmth` and `competence` are memberships; their directions are +1 (warm), -1 (cold), 0 (neither, or members of
    opposite direction), NaN if the word is not a member. Valences are in [0, 1] and add up to 1; NaN if unknown.
    """

    warmth: bool
    competence: bool
    warmth_direction: float
    competence_direction: float
    positive: float
    negative: float
    neutral: float


@dataclass(frozen=True)
class TraitLexicon:
    """The stereotype content dictionaries.

    The keys of `published` are those of the released scorer: the original word in lower case. The keys of `words` are
    spellings (see `spelling`), so that "easy-going" and "easygoing" are one word, without empty answers ("na").
    """

    published: Mapping[str, TraitEntry]
    words: Mapping[str, TraitEntry]


_SILENT = frozenset({"na", "idk", "no"})
_COLUMNS = (
    "original word",
    *(f"{name} valence" for name in ("Positive", "Negative", "Neutral")),
    *(
        f"{name} {what}"
        for name in ("Sociability", "Morality", "Ability", "Agency")
        for what in ("dictionary", "direction")
    ),
)


def spelling(trait: str) -> str:
    """Return a word in the spelling for matching traits: lower case, only letters.

    >>> spelling("Easy-going"), spelling(" well  organised. ")
    ('easygoing', 'wellorganised')
    """
    return re.sub(r"[\W_]+", "", trait.casefold())


def parse_traits(text: str) -> TraitLexicon:
    """Parse the layout of the full dictionaries: a CSV with a row per word, `NA` for no direction."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise RequestError(
            f"the trait dictionaries lack the column {missing[0]!r}; use the full dictionaries as they are"
        )
    published: dict[str, TraitEntry] = {}
    words: dict[str, TraitEntry] = {}
    for row in reader:
        entry = TraitEntry(
            warmth=row["Sociability dictionary"] == "1" or row["Morality dictionary"] == "1",
            competence=row["Ability dictionary"] == "1" or row["Agency dictionary"] == "1",
            warmth_direction=_direction(row["Sociability direction"], row["Morality direction"]),
            competence_direction=_direction(row["Ability direction"], row["Agency direction"]),
            positive=_number(row["Positive valence"]),
            negative=_number(row["Negative valence"]),
            neutral=_number(row["Neutral valence"]),
        )
        word = row["original word"].lower()
        published[word] = entry
        if word not in _SILENT:
            words.setdefault(spelling(word), entry)
    return TraitLexicon(published, words)


def _number(cell: str) -> float:
    return math.nan if cell in {"", "NA"} else float(cell)


def _direction(*cells: str) -> float:
    known = [float(cell) for cell in cells if cell not in {"", "NA"}]
    total = sum(known)
    return math.nan if not known else float((total > 0) - (total < 0))
