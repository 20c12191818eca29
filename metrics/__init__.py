"""Metrics: one folder each, and each metric of plain columns as a function: `from equivox.metrics import ntvd`.

The functions have the names of folders. The folders are imported first, so that the names mean the functions; code
inside them is imported as ever, `from equivox.metrics.ntvd.scorer import …`.
"""

from importlib import import_module as _import_module

for _folder in ("badf", "concept_associations", "genres", "ntvd", "spoken_stereoset"):
    _import_module(f"{__name__}.{_folder}")

from equivox.metrics.columns import (  # noqa: E402
    association_list,
    concept_associations,
    concept_counts,
    genres,
    ntvd,
    spoken_stereoset,
)

__all__ = ["association_list", "concept_associations", "concept_counts", "genres", "ntvd", "spoken_stereoset"]
