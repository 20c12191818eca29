"""Configuration as data: models, annotators, and runs that reproduce a published result."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml


def load_config(path: str) -> Any:
    """Return the YAML document at `path` below this package, e.g. `annotators/rules.yaml`."""
    return yaml.safe_load(resources.files(__name__).joinpath(path).read_text("utf-8"))
