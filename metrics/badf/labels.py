"""Check of BADF's annotator against people (arXiv 2508.01412, appendix H): the accuracy of each stage from labels.

The columns of a file show what it labels; those of the released samples are accepted too:

stories       `recall`, `precision`, `decomposition_accuracy`: per story, the share of correct phrases, 0 to 1
exclusivity   `gold` and `answer`: YES or NO per phrase
clusters      `gold_cluster` and `cluster`: per phrase, the cluster chosen by people and by the encoder
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.core.metric import CheckedStage, CheckedStages
from equivox.core.scores import NAN

Row = Mapping[str, str]

_STORY = {
    "recall": ("recall", "recall_1"),
    "precision": ("precision", "precision_1"),
    "decomposition accuracy": ("decomposition_accuracy", "accuracy_2"),
}
_TEXT = ("story", "responses", "story_id")
_GOLD, _ANSWER = ("gold", "gt"), ("answer", "filter_res")
_GOLD_CLUSTER, _CLUSTER = ("gold_cluster",), ("cluster",)


def score_badf_labels(files: Sequence[Path]) -> CheckedStages:
    """Score label files; RequestError for a file that cannot be read, has no labels, or has other columns."""
    measures: list[CheckedStage] = []
    left_out: dict[str, int] = {}
    for path in files:
        rows = _read(path)
        found, without = _measures(path, rows)
        measures += found
        if without:
            left_out[path.name] = without
    return CheckedStages(measures=measures, left_out=left_out)


def _read(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [{k: (v or "").strip() for k, v in row.items() if k} for row in csv.DictReader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RequestError(f"the labels {path} cannot be read ({reason}); give a CSV in UTF-8") from None


def _measures(path: Path, rows: Sequence[Row]) -> tuple[list[CheckedStage], int]:
    columns = set(rows[0]) if rows else set()
    kinds: list[tuple[Sequence[Sequence[str]], Callable[[Path, Sequence[Row], Sequence[str]], list[CheckedStage]]]] = [
        ([*_STORY.values(), _TEXT], _stories),
        ([_GOLD_CLUSTER, _CLUSTER], _clusters),
        ([_GOLD, _ANSWER], _exclusivity),
    ]
    for wanted, measure in kinds:
        names = [next((name for name in aliases if name in columns), None) for aliases in wanted]
        present = [name for name in names if name is not None]
        if len(present) == len(wanted):
            labelled = [row for row in rows if all(row[name] for name in present)]
            if not labelled:
                raise RequestError(f"the labels {path} hold no row with all of {', '.join(present)}; fill them in")
            return measure(path, labelled, present), len(rows) - len(labelled)
    raise RequestError(
        f"the labels {path} have the columns {', '.join(sorted(columns)) or 'none'}; needed are story, recall, "
        "precision, decomposition_accuracy, or gold and answer, or gold_cluster and cluster"
    )


def _stories(path: Path, rows: Sequence[Row], names: Sequence[str]) -> list[CheckedStage]:
    import numpy as np

    from equivox.statistics.bootstrap import mean_interval

    measures = []
    for name, column in zip(_STORY, names, strict=False):
        values = []
        for row in rows:
            try:
                value = float(row[column])
            except ValueError:
                value = NAN
            if not 0 <= value <= 1:
                raise RequestError(f"the labels {path}: `{column}` is a share from 0 to 1, got {row[column]!r}")
            values.append(value)
        low, high = mean_interval(values, rng=np.random.default_rng(0))
        measures.append(
            CheckedStage(name=name, value=math.fsum(values) / len(values), n=len(values), low=low, high=high)
        )
    return measures


def _exclusivity(path: Path, rows: Sequence[Row], names: Sequence[str]) -> list[CheckedStage]:
    import numpy as np

    from equivox.statistics import krippendorff_alpha
    from equivox.statistics.bootstrap import mean_interval

    pairs = [(row[names[0]].upper(), row[names[1]].upper()) for row in rows]
    for pair in pairs:
        for said in pair:
            if said not in {"YES", "NO"}:
                raise RequestError(f"the labels {path}: `{names[0]}` and `{names[1]}` are YES or NO, got {said!r}")
    right = [float(gold == answer) for gold, answer in pairs]
    metadata = [float(answer == "YES") for gold, answer in pairs if gold == "YES"]
    low, high = mean_interval(right, rng=np.random.default_rng(0))
    note = f"{sum(right):.0f} of {len(right)}"
    note += f"; of the exclusive ones {sum(metadata):.0f} of {len(metadata)}" if metadata else "; none is exclusive"
    alpha = krippendorff_alpha(pairs)
    return [
        CheckedStage(
            name="exclusivity agreement",
            value=sum(right) / len(right),
            n=len(right),
            low=low,
            high=high,
            note=note,
        ),
        CheckedStage(
            name="exclusivity α", value=alpha.alpha, n=len(right), note="0 is what chance gives, 1 perfect agreement"
        ),
    ]


def _clusters(path: Path, rows: Sequence[Row], names: Sequence[str]) -> list[CheckedStage]:
    found = clustering([row[names[0]] for row in rows], [row[names[1]] for row in rows])
    return [CheckedStage(name=name, value=value, n=len(rows)) for name, value in found.items()]


def clustering(gold: Sequence[Hashable], found: Sequence[Hashable]) -> dict[str, float]:
    """Return homogeneity, completeness and V-measure of clusters against labels, 0 to 1.

    Homogeneity is 1 if no cluster mixes labels, completeness is 1 if no label is spread over clusters; V is their
    harmonic mean. With a single label homogeneity is 1, with a single cluster completeness is 1. Rosenberg and
    Hirschberg 2007, ACL D07-1043. Raises RequestError for no phrases, or unequal lengths.

    >>> clustering("aabb", "1122")
    {'homogeneity': 1.0, 'completeness': 1.0, 'V-measure': 1.0}
    >>> clustering("aabb", "1111")
    {'homogeneity': 0.0, 'completeness': 1.0, 'V-measure': 0.0}
    """
    if not gold or len(gold) != len(found):
        raise RequestError(f"`gold` has {len(gold)} entries and `found` {len(found)}; give one of each per phrase")
    of_gold, of_found = _entropy(gold), _entropy(found)
    together = _entropy(list(zip(gold, found, strict=True)))
    homogeneity = 1.0 if of_gold == 0 else 1 - (together - of_found) / of_gold
    completeness = 1.0 if of_found == 0 else 1 - (together - of_gold) / of_found
    total = homogeneity + completeness
    v = 2 * homogeneity * completeness / total if total > 0 else 0.0
    return {"homogeneity": homogeneity, "completeness": completeness, "V-measure": v}


def _entropy(labels: Sequence[Hashable]) -> float:
    n = len(labels)
    return -math.fsum(k / n * math.log(k / n) for k in Counter(labels).values()) + 0.0
