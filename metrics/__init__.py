"""Metrics: one folder each, and each metric of plain columns as a function: `from equivox.metrics import ntvd`.

Columns are lists, numpy arrays, pandas or pyarrow columns; None and NaN are missing. The functions have the names of
folders. The folders are imported first, so that the names mean the functions; code inside them is imported as ever,
`from equivox.metrics.ntvd.scorer import …`.
"""

from importlib import import_module as _import_module

for _folder in ("badf", "concept_associations", "genres", "ntvd", "numbers", "spoken_stereoset"):
    _import_module(f"{__name__}.{_folder}")

from equivox.metrics.badf.columns import METRIC as concept_associations  # noqa: E402
from equivox.metrics.badf.counts import METRIC as concept_counts  # noqa: E402
from equivox.metrics.badf.released import CLUSTERS as cluster_labels  # noqa: E402
from equivox.metrics.badf.released import EXCLUSIVITY as exclusivity_labels  # noqa: E402
from equivox.metrics.badf.released import LISTED as association_list  # noqa: E402
from equivox.metrics.badf.released import STORIES as annotated_stories  # noqa: E402
from equivox.metrics.genres.columns import METRIC as genres  # noqa: E402
from equivox.metrics.ntvd.columns import METRIC as ntvd  # noqa: E402
from equivox.metrics.numbers.columns import METRIC as numbers  # noqa: E402
from equivox.metrics.spoken_stereoset.columns import METRIC as spoken_stereoset  # noqa: E402

__all__ = [
    "annotated_stories",
    "association_list",
    "cluster_labels",
    "concept_associations",
    "concept_counts",
    "exclusivity_labels",
    "genres",
    "ntvd",
    "numbers",
    "spoken_stereoset",
]
