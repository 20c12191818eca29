"""Corpora, one file each: builders make rows with audio, text, speaker and demographics from raw distributions.

A **builder** reads one corpus as distributed.  `clips()` lists its clips, `differences()` lists its differences
from published facts, `build()` writes parquet that `datasets` reads without equivox.
"""

from __future__ import annotations

from pathlib import Path

from equivox.core.errors import UsageError, nearest
from equivox.core.plugins import DATASET_BUILDERS, Plugin, a_function, added
from equivox.dataset_builders.base import Builder, Clip, CorpusFacts
from equivox.dataset_builders.clip_folder import ClipFolder
from equivox.dataset_builders.crema_d import CremaD
from equivox.dataset_builders.embedded import sample_source
from equivox.dataset_builders.genres import Genres
from equivox.dataset_builders.l2_arctic import L2Arctic
from equivox.dataset_builders.parquet import BuildReport, build
from equivox.dataset_builders.spoken_stereoset import SpokenStereoSet

__all__ = [
    "BUILDERS",
    "BuildReport",
    "Builder",
    "Clip",
    "ClipFolder",
    "CremaD",
    "Genres",
    "L2Arctic",
    "SpokenStereoSet",
    "build",
    "builders",
    "open_builder",
    "sample_source",
]

BUILDERS: dict[str, type[Builder]] = {
    "crema_d": CremaD,
    "l2_arctic": L2Arctic,
    "spoken_stereoset": SpokenStereoSet,
    "genres": Genres,
    "clip_folder": ClipFolder,
}
"""The builders of equivox by name."""


def builders() -> dict[str, type[Builder]]:
    """Return every builder by name: those of equivox, then those of installed packages."""
    classes = {name: plugin.given for name, plugin in added_builders().items() if isinstance(plugin.given, type)}
    return {**BUILDERS, **classes}


def added_builders() -> dict[str, Plugin]:
    """Return the builders, and the functions that open a corpus, of installed packages by name."""
    return added(DATASET_BUILDERS, frozenset({*BUILDERS, "badf", "made_applications"}), _class_or_function)


def _class_or_function(given: object, where: str) -> object:
    if isinstance(given, type) and not issubclass(given, Builder):
        raise UsageError(f"{where} gives {given!r:.60}, which is no Builder")
    if isinstance(given, type) and not isinstance(getattr(given, "FACTS", None), CorpusFacts):
        raise UsageError(f"{where} gives {given!r:.60} without `FACTS`, which describe its corpus")
    return a_function(given, where)


def open_builder(name: str, source: Path | str) -> Builder:
    """Open a corpus; UsageError for an unknown name or the source of another corpus."""
    known = builders()
    if name in (plugins := added_builders()):
        plugins[name].use()  # raises for a name that is refused
        if name in known and (called := known[name].FACTS.name) != name:
            raise UsageError(
                f"the builder {name} of {plugins[name].package} calls its corpus {called!r}; name it {name}"
            )
    if name not in known:
        raise UsageError(f"unknown corpus {name!r}{nearest(name, known)}; known are {', '.join(known)}")
    return known[name](source)
