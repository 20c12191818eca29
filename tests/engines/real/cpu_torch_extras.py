"""Makes the registry's torchvision and torchaudio, built for CUDA, importable beside a CPU build of torch.

Run with the environment's own Python after installing them without their dependencies; running it twice changes
nothing. What is written in Python then works (transforms, resampling); their compiled operators do not.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

IMPORT = "import torchvision.extension  # noqa: F401"
SHIM = (
    IMPORT + "\n\n_register = torch.library.register_fake if torchvision.extension._has_ops() "
    "else (lambda name: (lambda function: function))"
)


def folder(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def main() -> None:
    import torch

    if torch.version.cuda is not None:
        return
    if vision := folder("torchvision"):
        registrations = vision / "_meta_registrations.py"
        source = registrations.read_text("utf-8")
        if "_register = " not in source:
            source = source.replace("@torch.library.register_fake(", "@_register(").replace(IMPORT, SHIM, 1)
            # A new file in its place: the old one may be a link into uv's cache.
            shimmed = registrations.with_suffix(".new")
            shimmed.write_text(source, "utf-8")
            shimmed.replace(registrations)
    if audio := folder("torchaudio"):
        for library in (audio / "lib").glob("*.so"):
            library.unlink()
    if folder("torchcodec"):
        sys.exit("torchcodec cannot be imported beside a CPU build of torch; uninstall it")


if __name__ == "__main__":
    main()
