"""What the explorer's page takes from others: complete, unchanged, with licence; and nothing from elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from equivox.report.view.server import PAGE

VENDOR = Path(str(PAGE / "vendor"))


def test_every_file_is_the_one_that_was_published() -> None:
    stated = json.loads((VENDOR / "vendor.json").read_text())
    files = {name: digest for package in stated["packages"] for name, digest in package["files"].items()}
    there = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()}
    assert there - {"vendor.json", "README.md"} == set(files)
    for name, digest in files.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_every_package_has_its_version_and_its_licence() -> None:
    for package in json.loads((VENDOR / "vendor.json").read_text())["packages"]:
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
        assert package["integrity"].startswith("sha512-")
        licence = (VENDOR / package["folder"] / "LICENSE").read_text()
        assert package["licence"] == "MIT" and "Permission is hereby granted, free of charge" in licence


def test_every_module_imports_only_what_is_there() -> None:
    root = Path(str(PAGE))
    for script in root.rglob("*.js"):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", script.read_text(), flags=re.DOTALL)
        for name in re.findall(r"""(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+)["']""", text):
            assert name.startswith("."), (script, name)
            assert (script.parent / name).resolve().is_file(), (script, name)
