"""Statistics with the cluster as the unit: pure functions that return frozen results.

A *cluster* is the unit that carries the group, such as a speaker or a name. Responses of one cluster resemble each
other, so tests permute, flip or resample whole clusters.

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

**Output.** Each result says what zero means. Numbers that cannot be computed are NaN, and `undefined` gives the reason.
Input without a meaning raises `equivox.errors.UsageError`, in one line that names the argument, the value and the
fix.

The docstrings have the formulas; validity/tables.md has the measured levels and coverage.
"""

from equivox.statistics.agreement import Agreement, clustering, krippendorff_alpha
from equivox.statistics.compare_means import compare_group_means
from equivox.statistics.comparison import ShiftComparison, compare_joint_shift
from equivox.statistics.contingency import Association, association_scores, association_test, cramers_v, few_clusters_p
from equivox.statistics.correlation import cluster_correlation, correlations
from equivox.statistics.distance import attainable_shift, ntvd
from equivox.statistics.families import adjust, adjust_hierarchy
from equivox.statistics.group_means import GroupMeans, group_means
from equivox.statistics.inputs import EncodedLabels, EncodedValues
from equivox.statistics.intervals import ntvd_bounds, share_bounds
from equivox.statistics.labelled import CorrectedShift, corrected_shift
from equivox.statistics.permutation import LeastP, least_p, least_p_over_clusters
from equivox.statistics.ranks import TotalBias, differences_of_intervals, rank_models, total_bias_score
from equivox.statistics.results import DistributionShift, JointShift
from equivox.statistics.shift import distribution_shift, joint_shift
from equivox.statistics.sign_flip import Parity, Share, cluster_share, parity_deviation, sign_flip_test
from equivox.statistics.totals import compare_totals
from equivox.statistics.within_strata import association_within_strata

__all__ = [
    "Agreement",
    "Association",
    "CorrectedShift",
    "DistributionShift",
    "EncodedLabels",
    "EncodedValues",
    "GroupMeans",
    "JointShift",
    "LeastP",
    "Parity",
    "Share",
    "ShiftComparison",
    "TotalBias",
    "adjust",
    "adjust_hierarchy",
    "association_scores",
    "association_test",
    "association_within_strata",
    "attainable_shift",
    "cluster_correlation",
    "cluster_share",
    "clustering",
    "compare_group_means",
    "compare_joint_shift",
    "compare_totals",
    "corrected_shift",
    "correlations",
    "cramers_v",
    "differences_of_intervals",
    "distribution_shift",
    "few_clusters_p",
    "group_means",
    "joint_shift",
    "krippendorff_alpha",
    "least_p",
    "least_p_over_clusters",
    "ntvd",
    "ntvd_bounds",
    "parity_deviation",
    "rank_models",
    "share_bounds",
    "sign_flip_test",
    "total_bias_score",
]
