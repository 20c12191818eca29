"""Self-contained HTML pages on which nothing from a run can act.

A template escapes all it is given, and the page's Content-Security-Policy names the one style and the one script that
may be on it by their hashes; both are files of this package and nothing else is trusted.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources.abc import Traversable
from typing import Any


def render_page(template: Traversable, *, style: Traversable, script: Traversable, **context: Any) -> str:
    """Return the page; the template finds `style`, `script`, `style_hash` and `script_hash` beside `context`."""
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
