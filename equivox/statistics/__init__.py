"""Statistics with the unit (a speaker, a name, an application) as what is permuted, drawn and counted.

**Input.** Columns may be lists, tuples, numpy arrays, pandas Series or pyarrow arrays.

- Groups, clusters and strata: one text, integer or other hashable label per response. None may be missing.
- Values: one value per response, or a list of values. A text is one value, never its letters. None, NaN and an empty
  list mean that the response has no value.
- Numbers: one per response. None and NaN are missing; each function says how it treats them.

`EncodedLabels` and `EncodedValues` pass columns as integer codes, without a Python object per response;
`EncodedLabels.of_arrow` makes them of a pyarrow column. Labels and values are text in the results, so that 1 and "1"
are one group.

**Options** that most functions have, and that mean the same in all of them:

- `n_resamples`: the permutations, swaps or sign patterns that are drawn. All of them are counted when there are no more
  than this.
- `confidence`: the coverage of the interval, between 0 and 1.
- `rng`: the only source of randomness.

**Output.** Each result says what zero means. Numbers that cannot be computed are NaN, and `undefined` gives the reason
as a `Note`. Input without a meaning raises `equivox.errors.UsageError`, in one line that names the argument, the value
and the fix.

The docstrings have the formulas; validity/worlds.py measures the levels and the coverage.
"""

from equivox.statistics.agreement import Agreement, correlations, krippendorff_alpha
from equivox.statistics.design import Design, build_design
from equivox.statistics.distance import attainable_shift, ntvd, ntvd_bounds, share_bounds
from equivox.statistics.groups import MeanDifference, Shift, compare_attributes, compare_groups, compare_means
from equivox.statistics.inputs import EncodedLabels, EncodedValues
from equivox.statistics.labels import CorrectedShift, correct_groups
from equivox.statistics.multiplicity import adjust, adjust_hierarchy, rank_models
from equivox.statistics.permutation import LeastP, compute_least_p
from equivox.statistics.runs import compare_run_means, compare_runs, compare_totals
from equivox.statistics.shares import (
    Parity,
    Share,
    cluster_share,
    compute_least_flip_p,
    parity_deviation,
    sign_flip_test,
)

__all__ = [
    "Agreement",
    "CorrectedShift",
    "Design",
    "EncodedLabels",
    "EncodedValues",
    "LeastP",
    "MeanDifference",
    "Parity",
    "Share",
    "Shift",
    "adjust",
    "adjust_hierarchy",
    "attainable_shift",
    "build_design",
    "cluster_share",
    "compare_attributes",
    "compare_groups",
    "compare_means",
    "compare_run_means",
    "compare_runs",
    "compare_totals",
    "compute_least_flip_p",
    "compute_least_p",
    "correct_groups",
    "correlations",
    "krippendorff_alpha",
    "ntvd",
    "ntvd_bounds",
    "parity_deviation",
    "rank_models",
    "share_bounds",
    "sign_flip_test",
]
