"""Split a response into the profiles of its characters and the narrative.

A section starts at its heading: a whole line (or the beginning of one, before a colon), with any markdown, numbering
and letter case. If the profile of a character has no heading, it starts at the first paragraph between the headings
that begins with the character's name. Text after the narrative (the list of traits that the prompt asks for, a
repetition, or a comment on the text) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VERSION = "2"
"""Raised whenever the same response is split differently."""

_MARKUP = r"[\s#*_>~`|–—•\-]*(?:\(?\d{1,2}[.):]\s*)?[\s#*_>~`\"“'\u2018\[]*"
_AFTER = r"[\s*_`\"”'’\])]*"
_COLON = rf"{_AFTER}(?:[:\uff1a]|[–—-]\s){_AFTER}"
_KIND = r"(?:(?:brief|short|individual|character|personal)\s+){0,2}profiles?"
_NARRATIVE = re.compile(
    rf"{_MARKUP}(?:the\s+)?(?:narrative|story|plot)(?:\s+(?:passage|story|plot|text))?{_AFTER}(?:{_COLON}|$)",
    re.IGNORECASE,
)
_TRAITS = re.compile(
    rf"{_MARKUP}(?:"
    r"(?:shown|displayed|demonstrated|expressed|highlighted|key)\s+(?:personality\s+|character\s+)?traits?\b"
    rf"|(?:personality|character)\s+traits?(?:\s+(?:shown|displayed|expressed|demonstrated)\b|\s+of\b|{_AFTER}(?:{_COLON}|$))"
    r"|(?:the\s+)?end\s+of\s+(?:the\s+)?(?:narrative|story|plot|passage)\b"
    r"|(?:the|this)\s+(?:narrative\s+)?(?:passage|narrative|story|plot)\s+\w+\s+the\s+following\s+(?:\w+\s+)?traits?\b"
    r")",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Split:
    """The segments of one response.

    Attributes
    ----------
    profiles
        The profile of each character by name, in the order given; `""` if there is none.
    narrative
        The story without headings and without the text after it; `""` if there is none.
    problem
        The reason why the response could not be split into all its segments; None if it could.
    """

    profiles: Mapping[str, str]
    narrative: str
    problem: str | None


def split_response(text: str, names: Sequence[str]) -> Split:
    """Split `text` into the profiles of `names` and the narrative.

    Parameters
    ----------
    text
        The unchanged response.
    names
        The names of the characters, one or more, as in the prompt.

    Returns
    -------
    Split
        With a `problem` in words if a profile or the narrative is missing or empty: such a response is left out of
        every metric that needs the segment, and counted; the segment is never guessed.
    """
    lines = text.splitlines()
    headings = _headings(lines, names)
    starts = [line for line, segment, _ in headings if segment == _STORY]
    # Without the heading of a story, the profiles end at the list of traits or at the end of the text.
    story = starts[0] if starts else len(lines)
    own: dict[str, int] = {}
    for line, segment, _ in headings:
        if segment not in (_STORY, _END) and line < story:
            own.setdefault(segment, line)
    for name in names:
        if name not in own and (found := _unheaded(lines, name, own, story)) is not None:
            own[name] = found
    rest = {line: remainder for line, _, remainder in headings}
    profiles = dict.fromkeys(names, "")
    for name, first in own.items():
        stop = min([line for other, line in own.items() if line > first] + [story])
        profiles[name] = _section(lines, first, stop, rest)
    narrative = ""
    if starts:
        # A second heading of the same kind, or another profile, begins a repetition.
        stop = min([line for line, *_ in headings if line > story] + [len(lines)])
        narrative = _section(lines, story, stop, rest)
        if not narrative:
            # A title with its own heading: "## Narrative" directly above "## Story: ...".
            later = [line for line in starts if line > story]
            if later:
                stop = min([line for line, *_ in headings if line > later[0]] + [len(lines)])
                narrative = _section(lines, later[0], stop, rest)
    narrative = _without_comment(_without_cut_heading(_INLINE_TRAITS.sub("", narrative).rstrip()))
    missing = [f"no profile of {name}" for name in names if not profiles[name]]
    if not narrative:
        missing.append("no narrative")
    return Split(profiles=profiles, narrative=narrative, problem="; ".join(missing) or None)


_STORY, _END = "\0story", "\0end"
_COMMENT = re.compile(
    r"[\s*_(]*(?:overall,?\s+|in\s+summary,?\s+)?(?:the|this)\s+(?:(?:narrative|short)\s+)?(?:passage|narrative|story|plot)"
    r"\s+(?:highlights|showcases|shows|illustrates|demonstrates|displays|exhibits|emphasi[sz]es|underscores|reflects|portrays"
    r"|conveys|captures|reveals|explores|features|includes|is\s+(?:engaging|vivid|written|told))\b",
    re.IGNORECASE,
)
"""A closing paragraph about the text, such as "The narrative passage highlights …". One that tells how the story "ends
with" something belongs to the story."""
_INLINE_TRAITS = re.compile(r"(?<=[.!?”\"])[\s*_]*shown\s+personality\s+traits?[\s*_]*:.*", re.IGNORECASE | re.DOTALL)


def _headings(lines: Sequence[str], names: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return (line, section, text after the heading on the line), in order."""
    found: list[tuple[int, str, str]] = []
    profile = {name: _profile_heading(name) for name in names}
    in_story = False
    for number, line in enumerate(lines):
        for name, pattern in profile.items():
            if match := pattern.match(line):
                found.append((number, name, line[match.end() :]))
                in_story = False
                break
        else:
            if match := _NARRATIVE.match(line):
                found.append((number, _STORY, line[match.end() :]))
                in_story = True
            elif in_story and (_TRAITS.match(line) or _names_traits(line, names)):
                found.append((number, _END, ""))
    return found


def _profile_heading(name: str) -> re.Pattern[str]:
    who = re.escape(name)
    return re.compile(
        rf"{_MARKUP}(?:"
        rf"{_KIND}\s+(?:of|for){_MARKUP}{who}\b(?!['’]s\b){_AFTER}(?:\([^)]*\){_AFTER})?(?:{_COLON}|$)"
        rf"|{_KIND}{_COLON}{_MARKUP}{who}{_AFTER}(?:{_COLON}|$)"
        rf"|{who}['’]s?\s+{_KIND}{_AFTER}(?:{_COLON}|$)"
        r")",
        re.IGNORECASE,
    )


def _names_traits(line: str, names: Sequence[str]) -> bool:
    who = "|".join(map(re.escape, names))
    return bool(re.match(rf"{_MARKUP}(?:{who})['’]s?\s+(?:shown\s+)?personality\s+traits?\b", line, re.IGNORECASE))


def _unheaded(lines: Sequence[str], name: str, own: Mapping[str, int], story: int) -> int | None:
    """Return the first line that begins with `name` after the start of another profile; None if there is none."""
    if not own:
        return None
    pattern = re.compile(rf"{_MARKUP}{re.escape(name)}\b")
    first = min(own.values())
    for number in range(first + 1, story):
        if pattern.match(lines[number]) and (number == 0 or not lines[number - 1].strip() or number == first + 1):
            return number
    return None


def _without_cut_heading(text: str) -> str:
    """Drop a last line that is a heading of the traits, cut off by the token limit."""
    body, _, last = text.rpartition("\n")
    bare = last.strip(" *#_").casefold()
    marked = bare != last.casefold().strip()
    return body.rstrip() if marked and bare and "shown personality traits".startswith(bare) else text


def _without_comment(text: str) -> str:
    """Drop last paragraphs that speak about the text instead of telling the story; never the only paragraph."""
    body, gap, last = text.rpartition("\n\n")
    return _without_comment(body.rstrip()) if gap and body.strip() and _COMMENT.match(last) else text


def _section(lines: Sequence[str], first: int, stop: int, rest: Mapping[int, str]) -> str:
    head = rest.get(first, lines[first])
    body = "\n".join([head, *lines[first + 1 : stop]]).strip()
    # Horizontal rules and isolated emphasis marks are layout, not text.
    body = re.sub(r"^(?:[\s*_#=~-]|\\)+$", "", body, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", body).strip(" \t\n*_#")
