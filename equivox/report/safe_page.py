"""Self-contained HTML pages on which no content of a run can be executed.

A template escapes everything that it receives, and writes out signs that would turn the direction of writing. The
page's Content-Security-Policy allows only one style and one script, by their hashes; both are files of this package.
"""

from __future__ import annotations

import base64
import hashlib
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


def render_page(template: Traversable, *, style: Traversable, script: Traversable | None = None, **context: Any) -> str:
    """Return the page; the template gets `style`, `script`, `style_hash` and `script_hash` in addition to `context`.

    `style` is what stands behind the shared style. A page without a script gets neither of its names, and its policy
    should name no `script-src`.
    """
    texts = {"style": STYLE.read_text("utf-8") + style.read_text("utf-8")}
    if script is not None:
        texts["script"] = script.read_text("utf-8")
    return _compiled(template.read_text("utf-8")).render(
        **context,
        **{name: Markup(text) for name, text in texts.items()},
        **{f"{name}_hash": _csp_hash(text) for name, text in texts.items()},
    )


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
