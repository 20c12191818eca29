"""Self-contained HTML pages on which no content of a run can be executed.

A template escapes everything that it receives, and writes out signs that would turn the direction of writing. Words
that are written from right to left stand apart from the numbers beside them. The page's Content-Security-Policy allows
only one style and one script, by their hashes; both are files of this package.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from equivox.core.text import visible

if TYPE_CHECKING:
    from jinja2 import Template

STYLE = resources.files(__package__) / "style.css"
"""The style that every page shares; what a page needs besides stands in a file of its own."""

_LEFTWARDS = "[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff]"
"""A letter, sign or digit of Hebrew, Arabic, Syriac, Thaana, N'Ko and others; `dom.js` of the explorer has the same."""

_BETWEEN = "(?:[ \u00a0\u200c\u200d'’_-]|&#39;)+|[./\"]|&#34;"
"""What stands within a name, escaped or not; a sign of an abbreviation does without a space beside it."""

_RUN = re.compile(f"{_LEFTWARDS}+(?:(?:{_BETWEEN}){_LEFTWARDS}+)*")
_TAG = re.compile(r"(<[^>]*>)")


def render_page(template: Traversable, *, styles: Sequence[Traversable], script: Traversable, **context: Any) -> str:
    """Return the page; the template gets `style`, `script`, `style_hash` and `script_hash` in addition to `context`.

    `styles` stand behind the shared style.
    """
    style = "".join(each.read_text("utf-8") for each in (STYLE, *styles))
    texts = {"style": style, "script": script.read_text("utf-8")}
    return kept_apart(
        _compiled(template.read_text("utf-8")).render(
            **context,
            **{name: Markup(text) for name, text in texts.items()},
            **{f"{name}_hash": _csp_hash(text) for name, text in texts.items()},
        )
    )


def kept_apart(page: str) -> str:
    """Return HTML with `<bdi>` around words that are written from right to left, so that they turn nothing beside them.

    Without it a browser sets "women 75 %, men 9 %" in Arabic so that 9 stands beside the women. Attributes, the title,
    and whole texts (answers, prompts, cards), to which the style gives a direction of their own, stay as they are.

    >>> kept_apart("<li>\u05d0 75 %, \u05d1 9 %</li>") == "<li><bdi>\u05d0</bdi> 75 %, <bdi>\u05d1</bdi> 9 %</li>"
    True
    """
    if not _RUN.search(page):
        return page
    parts = _TAG.split(page)  # texts in even places, tags in odd ones
    for place in range(2, len(parts), 2):
        if not re.search('^<(title|pre)\\b|class="words"', parts[place - 1]):
            parts[place] = _RUN.sub(r"<bdi>\g<0></bdi>", parts[place])
    return "".join(parts)


@lru_cache
def _compiled(text: str) -> Template:
    """Return a template that many pages share; it takes longer to compile than to fill."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_written_out)
    return environment.from_string(text)


def _written_out(value: Any) -> str:
    """Return the text of a value as `visible` has it; HTML stays HTML."""
    return Markup(visible(value.__html__())) if hasattr(value, "__html__") else visible(str(value))


def _csp_hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
