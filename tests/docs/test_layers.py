"""The picture of the layers is drawn from the contract that holds them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def make_layers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_layers", ROOT / "docs" / "make_layers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("make_layers", None)
    return module


def test_the_committed_picture_is_the_one_that_is_drawn(make_layers: ModuleType) -> None:
    drawn = make_layers.draw()
    assert (ROOT / "docs" / "layers.svg").read_text("utf-8") == drawn, "run python docs/make_layers.py"
    assert all(f">{room}</text>" in drawn for layer in make_layers.layers() for room in layer)


def test_every_room_is_a_layer_and_is_described(make_layers: ModuleType) -> None:
    package = ROOT / "equivox"
    folders = {entry.name for entry in package.iterdir() if (entry / "__init__.py").is_file()}
    modules = {entry.stem for entry in package.glob("[a-z]*.py")}
    named = {room for layer in make_layers.layers() for room in layer}
    assert named == folders | modules == set(make_layers.SAYS)


def test_the_pages_name_files_that_exist() -> None:
    folders = "equivox|tests|tasks|configs|dataset_builders|metrics|docs|examples"
    for name in ("architecture.md", "glossary.md", "quickstart.md"):
        text = (ROOT / "docs" / name).read_text("utf-8")
        for file in re.findall(rf"`((?:{folders})/[\w/.-]+)`", text):
            assert (ROOT / file).exists(), f"{name}: {file}"
