"""Self-contained HTML pages on which no content of a run can be executed.

A template escapes everything that it receives, and the page's Content-Security-Policy allows only one style and one
script, by their hashes; both are files of this package.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources.abc import Traversable
from typing import Any


def render_page(template: Traversable, *, style: Traversable, script: Traversable, **context: Any) -> str:
    """Return the page; the template gets `style`, `script`, `style_hash` and `script_hash` in addition to `context`."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    texts = {name: source.read_text("utf-8") for name, source in (("style", style), ("script", script))}
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return page.from_string(template.read_text("utf-8")).render(
        **context,
        **{name: Markup(text) for name, text in texts.items()},
        **{f"{name}_hash": _csp_hash(text) for name, text in texts.items()},
    )


def _csp_hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
