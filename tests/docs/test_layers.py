"""The picture of the layers is drawn from the contract that holds them."""

from __future__ import annotations

from types import ModuleType

import pytest
from docs_pages import ROOT, script


@pytest.fixture(scope="module")
def make_layers() -> ModuleType:
    return script("make_layers")


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
