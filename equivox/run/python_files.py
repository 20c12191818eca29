"""Python task files, which are executed only because the user names them."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from equivox.core.errors import UsageError
from equivox.core.files import unreadable

FILE_MODULE = "equivox_task_files"
"""The package name for the modules of Python task files."""


def load_file(path: Path) -> ModuleType:
    """Execute a Python task file that the user named and return its module; UsageError, with the line, if it fails.

    The module's name holds a hash of the file's text, so that the name of code in a run means one text only.
    """
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise unreadable(f"the task file {path}", path, error) from error
    name = f"{FILE_MODULE}.{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"cannot read the task file {path}; check the path")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # `exit()` in it would end the command as if all were done
        del sys.modules[name]
        frames = reversed(traceback.extract_tb(error.__traceback__))
        line = next((frame.lineno for frame in frames if frame.filename == spec.origin), None)
        where = f"{path}, line {line}" if line else str(path)
        raise UsageError(f"task file {where}: {type(error).__name__}: {error}; correct it") from error
    return module
