"""The stack of `lighteval vllm`: what equivox asks for fits it, by the constraints and by the resolver."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from equivox.core.errors import UsageError
from equivox.integrations.hub import submission

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "constraints-lighteval-vllm.txt"
TRIED = {"lighteval": "0.13.0", "vllm": "0.10.1.1", "transformers": "4.57.6", "huggingface-hub": "0.36.2"}
"""Versions with which `lighteval vllm` ran a task of equivox from its prompts to its scores."""


def required(*extras: str) -> list[Requirement]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"].split("\n")
    lines += [line for extra in extras for line in setup["options.extras_require"][extra].split("\n")]
    return [Requirement(line) for line in lines if line.strip()]


def pinned(text: str) -> dict[str, Version]:
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): Version(version) for name, version in found}


def test_the_constraints_meet_what_equivox_and_the_extra_ask_for() -> None:
    found = pinned(CONSTRAINTS.read_text())
    for requirement in required("lighteval-vllm", "endpoint"):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert requirement.specifier.contains(found[name]), f"{requirement}: {found[name]}"
    assert {name: str(found[name]) for name in TRIED} == TRIED


def test_submit_says_which_version_of_the_hub_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(__version__="0.36.2"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"`submit` needs huggingface_hub 1\.4 or newer, this is 0\.36\.2"):
        submission._refuse_old_hub()


@pytest.mark.long
def test_the_resolver_finds_the_stack_anew(tmp_path: Path) -> None:
    """It asks the package index; nothing is installed."""
    out = tmp_path / "found.txt"
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"),
        *("--python-version", "3.11", "--python-platform", "x86_64-unknown-linux-gnu"),
        *("--extra", "lighteval-vllm", "--extra", "endpoint", str(ROOT / "setup.cfg"), "-o", str(out)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = pinned(out.read_text())
    assert found["huggingface-hub"] < Version("1") and found["transformers"] < Version("5")
    assert str(found["vllm"]) == TRIED["vllm"]
