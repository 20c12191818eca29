"""What the tests inside lighteval share. They need lighteval, hence an environment of their own: `make test-lighteval`.

lighteval is imported once, and its command line is called in this process.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "engines" / "real"))
sys.path.insert(0, str(Path(__file__).parent))
import tiny_models
from evaluating import Evaluated

collect_ignore = ["evaluating.py", "replay.py"]

# lighteval and datasets cache below the home folder, and look for it when they are imported.
_HOME = tempfile.mkdtemp(prefix="equivox-lighteval-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ |= {"HOME": _HOME, "HF_HOME": f"{_HOME}/huggingface", "XDG_CACHE_HOME": f"{_HOME}/cache"}
os.environ |= tiny_models.ALONE


@pytest.fixture
def lighteval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Evaluated]:
    """Call lighteval's command line in this process, with the settings of equivox given as keywords."""

    def call(*arguments: object, output: str = "out", **settings: object) -> Evaluated:
        import typer
        from lighteval.__main__ import app

        # Its command line silences every logger that was there before it; in a process of its own, none was.
        for name in ("equivox.integrations.lighteval.runs", "equivox.integrations.lighteval.table"):
            logging.getLogger(name).disabled = False
        monkeypatch.chdir(tmp_path)
        for name in [name for name in os.environ if name.startswith("EQUIVOX_")]:
            monkeypatch.delenv(name)
        for name, value in {"data": "sample", **settings}.items():
            if value is not None:
                monkeypatch.setenv(f"EQUIVOX_{name.upper()}", str(value))
        options = ["--custom-tasks", "equivox.tasks", "--output-dir", output, "--save-details"]
        typer.main.get_command(app).main([str(a) for a in arguments] + options, standalone_mode=False)
        return Evaluated(tmp_path / output, tmp_path / "runs" / "lighteval")

    return call


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return the folder of a tiny model, made on first use."""
    folder = tmp_path_factory.mktemp("models")
    return lambda name: str(tiny_models.make(folder, name))
