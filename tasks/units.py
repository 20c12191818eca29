"""The unit of a table: the column that carries the group, or whose values are in every group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from equivox.core.errors import UsageError
from equivox.core.task import DataSource
from equivox.dataset_builders.own_tables import ITEM, columns_of
from equivox.dataset_builders.tables import read_column_names

SPEAKER = "speaker"
"""The unit of a task file that names none."""

USUAL_UNITS = (SPEAKER, "speaker_id", "person", "client_id", "name", "item", "id", "cv", "case", "photo")
PEOPLE = (
    "gender", "sex", "race", "ethnicity", "accent", "dialect", "age_group", "age", "origin", "religion", "group",
    "nationality", "country",
)  # fmt: skip
ANSWERS = ("response", "answer", "output", "completion", "reply")
"""What columns of units, of traits by which people are compared, and of answers to a row, are often called."""

_ELSEWHERE = {
    "gender": "geschlecht sexe sexo género genero sesso genere geslacht płeć пол cinsiyet 性别 性別 성별",
    "age": "alter âge edad idade età leeftijd wiek возраст yaş 年龄 年齢 나이",
    "age_group": "altersgruppe grupo_de_edad fascia_d'età faixa_etária leeftijdsgroep",
    "origin": "herkunft origine origen origem afkomst pochodzenie",
    "name": "vorname prénom nombre nome naam imię имя isim 姓名 名前 이름",
    "answer": "antwort réponse respuesta resposta risposta antwoord odpowiedź ответ cevap 回答 回复 답변",
    "text": "texte texto testo tekst текст metin frage pregunta pergunta domanda vraag 文本 问题 質問 질문",
}
"""Names of columns in other languages, by what they are called here."""
_USUAL = {theirs: ours for ours, names in _ELSEWHERE.items() for theirs in names.split()}

FEWEST_UNITS = 4
"""A column of fewer values is a trait of people, or of texts."""


def usual(name: str) -> str:
    """Return the name of a column as the usual names are written; of a part of an object the last step is the name.

    A name that ends in a word for an answer is one, whichever model gave it.

    >>> usual("Age group"), usual("meta.gender"), usual("Geschlecht"), usual("GPT-4 answer")
    ('age_group', 'gender', 'gender', 'answer')
    """
    plain = name.rpartition(".")[2].strip().lower().replace(" ", "_")
    plain = _USUAL.get(plain, plain)
    last = plain.rpartition("_")[2]
    last = _USUAL.get(last, last)
    return last if last in ANSWERS else plain


def unit_among(
    columns: Mapping[str, Sequence[str]], groups: Sequence[str], but: Sequence[str] = ()
) -> tuple[str, bool, tuple[str, ...]]:
    """Return the column of the unit, whether each unit is in every group, and the columns that are in some groups only.

    `groups` has the group of each row, empty where there is none, and the columns in `but` are no units, nor are
    answers. A unit has several rows; a row without a group or a unit says nothing of either. Columns of usual names
    come first, then those whose units are in every group. The first name is empty if no column has several rows a unit.
    """
    every = {*groups} - {""}
    found, mixed = [], []
    for name, cells in columns.items():
        if name in but or usual(name) in (*PEOPLE, *ANSWERS):
            continue
        of, rows = defaultdict(set), 0
        for cell, group in zip(cells, groups, strict=True):
            if cell and group:
                of[cell].add(group)
                rows += 1
        if len(of) < FEWEST_UNITS or len(of) == rows:
            continue
        if all(len(own) == 1 for own in of.values()):
            # As many values as groups are another word for them; a number is seldom whom a row is about.
            if len(of) > len(every) and (
                usual(name) in USUAL_UNITS or usual(name).endswith("_id") or not all(map(_is_number, of))
            ):
                found.append((name, False))
        elif all(own >= every for own in of.values()):
            found.append((name, True))
        else:
            mixed.append(name)
    places = {name: place for place, name in enumerate(USUAL_UNITS)}
    found.sort(key=lambda one: (places.get(usual(one[0]), len(places)), not one[1]))
    return (*(found[0] if found else ("", False)), tuple(mixed))


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def unit_of(data: DataSource, named: str | None, group: Sequence[str], where: str) -> str:
    """Return the column that is the unit of a table of one's own: the one that is `named`, else the row of texts.

    `group` names the columns that are compared. UsageError, beginning with `where`, for recordings whose speakers are
    not known; and for rows that share a unit which nobody named, because the answers about one unit are no independent
    ones.
    """
    table = data.table
    if named not in (None, SPEAKER) or table is None or not table.is_file():
        return named or SPEAKER
    names = read_column_names(table)
    if data.columns.get(SPEAKER, SPEAKER) in names:
        return SPEAKER
    if data.kind == "audio":
        raise UsageError(
            f"{table}: column 'speaker' is missing; its columns are {', '.join(names)}; name the speaker's "
            "column (`columns: {speaker: …}`), or name as `cluster` the unit that is in every group"
        )
    if data.kind != "text":
        return SPEAKER
    # A column of the table that is called `item` may stand for something else.
    row = SPEAKER if ITEM in (*names, *data.columns) else ITEM
    if named is None and (unit := _shared(data, group)):
        raise UsageError(
            f"{where}: rows of {table.name} share a {unit!r}, and each has one group; say `cluster: {unit}` if it is "
            f"who they are about, whose answers belong together, or `cluster: {row}` if each row counts by itself"
        )
    return row


def _shared(data: DataSource, group: Sequence[str]) -> str:
    """Return a column that several rows share, and each of whose values has one group; empty if there is none."""
    read = columns_of(data)
    if {*group, *data.where} - {*read}:
        return ""  # which is told where the table is opened
    cells = {name: ["" if cell is None else str(cell) for cell in own] for name, own in read.items()}
    labels = ["\n".join(own) if all(own) else "" for own in zip(*(cells[name] for name in group), strict=True)]
    wanted = data.wanted
    kept = [
        row
        for row, label in enumerate(labels)
        if label and all(cells[name][row] in own for name, own in wanted.items())
    ]
    asked = {name: [own[row] for row in kept] for name, own in cells.items()}
    compared = [*group, *(data.columns[name] for name in group if name in data.columns)]
    while True:
        unit, crossed, _ = unit_among(asked, [labels[row] for row in kept], compared)
        if not crossed:
            return unit
        compared.append(unit)
