"""Configuration as data: models, annotators, and runs that reproduce a published result."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from equivox.core.errors import UsageError
from equivox.core.fields import checked_form
from equivox.core.files import unreadable
from equivox.core.yaml_files import load_yaml, packaged_yaml

if TYPE_CHECKING:
    from pydantic import BaseModel

File = TypeVar("File", bound="BaseModel")


def load_config(path: str) -> Any:
    """Return the YAML document at `path` below this package, e.g. `annotators/rules.yaml`; it is read once."""
    return packaged_yaml(f"configs/{path}")


def config_names(folder: str) -> list[str]:
    """Return the sorted names of the YAML files in `folder` below this package, without suffix."""
    files = resources.files(__name__).joinpath(folder).iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in files if entry.name.endswith(".yaml"))


def read_config_file(form: type[File], name: str, folder: str) -> File:
    """Read `name`, a YAML file or the name of one in `folder` below this package, into the pydantic model `form`.

    Raises UsageError, naming the file and the field, for a file that cannot be read and for missing, unknown or
    malformed fields.
    """
    packaged = not name.endswith((".yaml", ".yml"))
    where = f"configs/{folder}/{name}.yaml" if packaged else name
    try:
        document = load_config(f"{folder}/{name}.yaml") if packaged else load_yaml(Path(name).read_text("utf-8"))
    except OSError as error:
        raise unreadable(where, Path(where), error) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{where} is not YAML: {' '.join(str(error).split())}; correct it") from error
    return checked_form(form, document, where=where)
