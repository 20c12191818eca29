"""Statistics at the unit that carries the group: pure functions, an explicit `rng`, frozen results.

Every number says what zero means; what cannot be computed is NaN with a reason in words, and input that cannot be
meant raises `equivox.core.errors.RequestError`. See docs/statistics.md for formulas, docs/validity.md for their check.
"""

from equivox.statistics.agreement import Agreement, krippendorff_alpha
from equivox.statistics.bounds import Bounds, ntvd_bounds, share_bounds
from equivox.statistics.comparison import ShiftComparison, compare_joint_shift, compare_shift
from equivox.statistics.contingency import Association, association_scores, association_test, cramers_v
from equivox.statistics.correlation import Correlation, PairCorrelation, cluster_correlation, correlations
from equivox.statistics.distance import ntvd, shift_ceiling
from equivox.statistics.inputs import EncodedLabels, EncodedValues
from equivox.statistics.mean_difference import MeanDifference, mean_difference
from equivox.statistics.multiplicity import Family, adjust
from equivox.statistics.power import DetectableShift, RequiredClusters, minimum_detectable_shift, required_clusters
from equivox.statistics.ranks import Rank, rank_models
from equivox.statistics.results import DistributionShift, JointShift
from equivox.statistics.share import Share, cluster_share
from equivox.statistics.shift import distribution_shift, joint_shift
from equivox.statistics.sign_flip import Parity, SignFlip, parity_deviation, sign_flip_test
from equivox.statistics.total_bias import TotalBias, total_bias_score
from equivox.statistics.totals import TotalsComparison, compare_totals

__all__ = [
    "Agreement",
    "Association",
    "Bounds",
    "Correlation",
    "DetectableShift",
    "DistributionShift",
    "EncodedLabels",
    "EncodedValues",
    "Family",
    "JointShift",
    "MeanDifference",
    "PairCorrelation",
    "Parity",
    "Rank",
    "RequiredClusters",
    "Share",
    "ShiftComparison",
    "SignFlip",
    "TotalBias",
    "TotalsComparison",
    "adjust",
    "association_scores",
    "association_test",
    "cluster_correlation",
    "cluster_share",
    "compare_joint_shift",
    "compare_shift",
    "compare_totals",
    "correlations",
    "cramers_v",
    "distribution_shift",
    "joint_shift",
    "krippendorff_alpha",
    "mean_difference",
    "minimum_detectable_shift",
    "ntvd",
    "ntvd_bounds",
    "parity_deviation",
    "rank_models",
    "required_clusters",
    "share_bounds",
    "shift_ceiling",
    "sign_flip_test",
    "total_bias_score",
]
