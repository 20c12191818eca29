"""Labels from people: their agreement with the annotator, its errors, and the effect on a score's interval."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.annotate.merging import lemmas
from equivox.annotate.schema import canonical
from equivox.compare.runs import ComparedRun, run_metrics, value_shares
from equivox.core.errors import RequestError, nearest
from equivox.core.samples import Row
from equivox.core.scores import NAN
from equivox.core.task import OTHER, UNSTATED, Attribute, Task, digest
from equivox.engines import model_label
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import run_tasks
from equivox.run.scoring import read_records, read_scores, sample_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEY_FILE = "key.json"
"""The file that maps the rows of a blind sheet to responses."""

MIN_LABELS = 5
"""The number of labelled values that every group needs before an annotator's error is propagated to a score."""

DRAWS = 2000
_PRIOR_LABELS = 2.0

Label = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One attribute of one response: the annotator's value, and each person's value by name."""

    item: str
    run: Path
    model: str
    task: str
    attribute: Attribute
    group: str
    given: Label | None
    people: Mapping[str, Label]

    @property
    def agreed(self) -> Label | None:
        """The value that most people give; None if they are split."""
        ranked = Counter(self.people.values()).most_common(2)
        if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
            return None
        return ranked[0][0] if ranked else None


@dataclass(frozen=True, kw_only=True)
class AttributeAudit:
    """Comparison of the annotator with people on one attribute, over all labelled responses.

    `agreement` is the share of responses, in percent, for which the annotator and most people give the same value, with
    its Wilson interval. `kappa` is Cohen's κ of the two and `alpha` Krippendorff's α of all (1 all agree, 0 by chance;
    NaN if nothing varies, with `undefined`). `by_group` holds agreement per group; `p_groups` tests whether it differs
    (Fisher or χ²), because an annotator that errs more on one group distorts the comparison. `errors` counts pairs
    (people's value, annotator's value), the most frequent first. `split` counts responses on which people disagree
    evenly; they enter only α. `unread` counts responses that the annotator could not parse.
    """

    attribute: str
    n: int
    agreement: float
    ci_low: float
    ci_high: float
    kappa: float
    alpha: float
    by_group: Mapping[str, float]
    p_groups: float
    errors: Sequence[tuple[str, str, int]] = field(default_factory=tuple)
    split: int = 0
    unread: int = 0
    undefined: str | None = None


@dataclass(frozen=True, kw_only=True)
class AdjustedScore:
    """A score with the annotator's measured error propagated.

    `corrected` is the score that annotations by people would have given (median over the uncertainty of the labels);
    `ci_low` and `ci_high` are the score's interval, shifted by that correction and widened by its uncertainty. NaN,
    with `undefined`, if there are too few labels.
    """

    model: str
    task: str
    attribute: str
    value: float
    own_low: float
    own_high: float
    corrected: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    undefined: str | None = None


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The result of checking an annotator against labels."""

    raters: Sequence[str]
    n_responses: int
    attributes: Sequence[AttributeAudit]
    scores: Sequence[AdjustedScore]

    def as_dict(self) -> dict[str, Any]:
        """Return the audit as plain JSON values; NaN becomes None."""
        return dict(json.loads(json.dumps(asdict(self)), parse_constant=lambda _: None))


def score_labels(folder: Path, files: Sequence[Path], *, annotator: str | None = None) -> Audit:
    """Compare the annotator of the runs in `folder`'s key with the labels in `files` (one per person).

    RequestError, with the line, for an item or attribute that is not on the sheet and for a value that a closed choice
    does not offer.
    """
    units = _units(folder, files, annotator)
    if not units:
        raise RequestError(f"no label is filled in in {', '.join(map(str, files))}; fill in the column `label`")
    by_attribute: dict[str, list[Unit]] = {}
    for unit in units:
        by_attribute.setdefault(unit.attribute.name, []).append(unit)
    return Audit(
        raters=sorted({name for unit in units for name in unit.people}),
        n_responses=len({unit.item for unit in units}),
        attributes=[_attribute(name, members) for name, members in by_attribute.items()],
        scores=_adjusted(by_attribute, annotator),
    )


def _units(folder: Path, files: Sequence[Path], annotator: str | None) -> list[Unit]:
    try:
        key = json.loads((folder / KEY_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        raise RequestError(f"{folder} has no readable {KEY_FILE}; name the folder that `audit export` wrote") from None
    runs = {Path(entry["run"]) for entry in key.values()}
    tasks = {run: {task.name: task for task in run_tasks(run)} for run in runs}
    rows = {run: _rows(run, list(tasks[run].values()), annotator) for run in runs}
    people: dict[tuple[str, str], dict[str, Label]] = {}
    for rater, file in _named(files).items():
        for line, item, name, text in _labels(file):
            where = f"{file}, line {line}"
            if item not in key:
                raise RequestError(f"{where}: no response {item!r} is on the sheet of {folder}")
            declared = _attribute_of(tasks[Path(key[item]["run"])][key[item]["task"]], name, where)
            people.setdefault((item, name), {})[rater] = _label(text, declared, where)
    units = []
    for (item, name), given in people.items():
        entry = key[item]
        run = Path(entry["run"])
        row = rows[run].get((entry["task"], entry["response"]))
        if row is None:
            raise RequestError(f"{run} no longer holds response {entry['response'][:12]}; restore the run")
        attribute = _attribute_of(tasks[run][entry["task"]], name, str(folder))
        units.append(
            Unit(
                item=item,
                run=run,
                model=entry["model"],
                task=entry["task"],
                attribute=attribute,
                group=entry["group"],
                given=_annotated(row, attribute),
                people=given,
            )
        )
    return units


def _rows(run: Path, tasks: Sequence[Task], annotator: str | None) -> dict[tuple[str, str], Row]:
    name = annotator or str(read_manifest(run)["command"]["annotator"])
    return {(task, row.key): row for task, rows in sample_rows(run, tasks, name).items() for row in rows}


def _named(files: Sequence[Path]) -> dict[str, Path]:
    """Return a name for each person, from the file name; equal file names also get their folder."""
    stems = Counter(file.stem for file in files)
    return {file.stem if stems[file.stem] == 1 else f"{file.parent.name}/{file.stem}": file for file in files}


def _labels(file: Path) -> Iterable[tuple[int, str, str, str]]:
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"labels {file} cannot be read ({error}); give CSV in UTF-8") from None
    reader = csv.DictReader(text.splitlines(keepends=True))
    for name in ("item", "attribute", "label"):
        if name not in (reader.fieldnames or ()):
            raise RequestError(f"labels {file} lack the column {name!r}; keep the columns of the sheet")
    for row in reader:
        if (row["label"] or "").strip():
            yield reader.line_num, row["item"].strip(), row["attribute"].strip(), row["label"].strip()


def _attribute_of(task: Task, name: str, where: str) -> Attribute:
    known = {attribute.name: attribute for attribute in task.attributes}
    if name not in known:
        raise RequestError(f"{where}: {task.name} has no attribute {name!r}{nearest(name, known)}")
    return known[name]


def _label(text: str, attribute: Attribute, where: str) -> Label:
    """Return a person's label as a sorted set of values, for comparison."""
    given = [part.strip() for part in text.split(";")] if attribute.is_list else [text]
    if not attribute.options:
        return _comparable(given)
    offered = {option.casefold(): option for option in (*attribute.options, OTHER, UNSTATED)}
    for value in given:
        if value.casefold() not in offered:
            raise RequestError(
                f"{where}: {attribute.name} is one of {', '.join(offered.values())}, got {value!r}"
                f"{nearest(value, offered.values())}"
            )
    return tuple(sorted({offered[value.casefold()] for value in given}))


def _comparable(values: Iterable[str]) -> Label:
    return tuple(sorted({lemmas(plain) for value in values if (plain := canonical(value))})) or (UNSTATED,)


def _annotated(row: Row, attribute: Attribute) -> Label | None:
    if row.status not in {"parsed", "refused"}:
        return None
    values = row.values.get(attribute.name, ())
    if not values:
        return (UNSTATED,)
    return tuple(sorted(values)) if attribute.options else _comparable(values)


def _attribute(name: str, units: Sequence[Unit]) -> AttributeAudit:
    from statsmodels.stats.proportion import proportion_confint

    from equivox.statistics import krippendorff_alpha

    settled = [unit for unit in units if unit.agreed is not None]
    read = [unit for unit in settled if unit.given is not None]
    right = sum(unit.given == unit.agreed for unit in read)
    low, high = proportion_confint(right, len(read), method="wilson") if read else (NAN, NAN)
    raters = sorted({rater for unit in units for rater in unit.people})
    alpha = krippendorff_alpha([[unit.given, *(unit.people.get(rater) for rater in raters)] for unit in units])
    kappa, reason = _kappa(read)
    errors = Counter(
        (" + ".join(unit.agreed or ()), " + ".join(unit.given or ())) for unit in read if unit.given != unit.agreed
    )
    by_group = {group: [u.given == u.agreed for u in read if u.group == group] for group in _groups(read)}
    return AttributeAudit(
        attribute=name,
        n=len(read),
        agreement=100 * right / len(read) if read else NAN,
        ci_low=100 * float(low),
        ci_high=100 * float(high),
        kappa=kappa,
        alpha=alpha.alpha,
        by_group={group: 100 * sum(hits) / len(hits) for group, hits in by_group.items()},
        p_groups=_p_groups(list(by_group.values())),
        errors=[(people, annotator, n) for (people, annotator), n in errors.most_common()],
        split=len(units) - len(settled),
        unread=len(settled) - len(read),
        undefined=reason,
    )


def _groups(units: Sequence[Unit]) -> list[str]:
    return sorted({unit.group for unit in units})


def _kappa(units: Sequence[Unit]) -> tuple[float, str | None]:
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    labels = sorted({label for unit in units for label in (unit.given, unit.agreed) if label is not None})
    if len(labels) < 2:
        return NAN, "no response labelled" if not labels else "everyone always says the same: κ has nothing to correct"
    place = {label: index for index, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for unit in units:
        if unit.given is not None and unit.agreed is not None:
            table[place[unit.agreed], place[unit.given]] += 1
    return float(cohens_kappa(table, return_results=False)), None


def _p_groups(hits: Sequence[Sequence[bool]]) -> float:
    """Return the p-value of equal agreement in all groups; NaN with one group, no errors or only errors."""
    import numpy as np
    from scipy import stats

    table = [[sum(group), len(group) - sum(group)] for group in hits]
    if len(table) < 2 or not sum(row[0] for row in table) or not sum(row[1] for row in table):
        return NAN
    if len(table) == 2:
        return float(stats.fisher_exact(np.array(table)).pvalue)
    return float(stats.chi2_contingency(table).pvalue)


def _adjusted(by_attribute: Mapping[str, Sequence[Unit]], annotator: str | None) -> list[AdjustedScore]:
    """Return every attribute score of the audited runs with the annotator's error propagated."""
    found = []
    for run in sorted({unit.run for units in by_attribute.values() for unit in units}):
        manifest = read_manifest(run)
        model = model_label(str(manifest["command"]["model"]))
        scores = read_scores(run, annotator)
        compared = ComparedRun(model, run, annotator or "", scores, run_metrics(run))
        shares = value_shares(compared, annotator=annotator)
        counts_as = _counts_as(run, annotator)
        for score in scores:
            units, measure = by_attribute.get(score.attribute or ""), compared.measure(score)
            if units is None or not score.defined or score.subset or measure is None or measure.of_shares is None:
                continue
            plain = AdjustedScore(
                model=model,
                task=score.task,
                attribute=str(score.attribute),
                value=score.value,
                own_low=score.ci_low,
                own_high=score.ci_high,
            )
            own = [s for s in shares if (s.task, s.attribute) == (score.task, score.attribute)]
            by_group = {
                group: {share.value: share.by_group.get(group, 0.0) / 100 for share in own}
                for group in score.coverage.used_by_group
            }
            found.append(_carried_over(plain, by_group, units, counts_as, score.attainable_max, measure.of_shares))
    return found


def _counts_as(run: Path, annotator: str | None) -> dict[tuple[str, Label], str]:
    """Return, for each open attribute and comparable label, the wording that the run's scores count it as."""
    rows = read_records(run, "", "open_values", annotator) or []
    return {(row["attribute"], _comparable([row["value"]])): row["counts_as"] for row in rows}


def _carried_over(
    score: AdjustedScore,
    by_group: Mapping[str, Mapping[str, float]],
    units: Sequence[Unit],
    counts_as: Mapping[tuple[str, Label], str],
    attainable_max: float,
    of_shares: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> AdjustedScore:
    """Propagate the measured error of each group to its distribution of values.

    The probability that a value from the annotator is right has a Beta posterior from the labels of that value; its
    prior (worth two labels) is the accuracy in that group (Beta, Jeffreys' prior). A wrong value is replaced by one of
    the values that people gave when the annotator erred in that group (Dirichlet; one pseudo-label, distributed like
    the group's values).
    """
    import numpy as np

    groups = sorted(by_group)
    evidence = {group: _evidence([u for u in units if u.group == group], counts_as) for group in groups}
    few = [group for group in groups if evidence[group].given.total() < MIN_LABELS]
    if few:
        return replace(score, undefined=f"fewer than {MIN_LABELS} labelled values of {', '.join(few)}")
    values = sorted(
        {value for shares in by_group.values() for value in shares}
        | {value for found in evidence.values() for value in found.instead if value != UNSTATED}
    )
    own = np.array([[by_group[group].get(value, 0.0) for value in values] for group in groups])
    rng = np.random.default_rng(int(digest([score.model, score.task, score.attribute])[:16], 16))
    drawn = np.empty((DRAWS, len(groups), len(values)))
    for g, group in enumerate(groups):
        found = evidence[group]
        right, wrong = found.right.total(), found.given.total() - found.right.total()
        accuracy = rng.beta(right + 0.5, wrong + 0.5, size=(DRAWS, 1))
        hits = np.array([found.right[value] for value in values])
        misses = np.array([found.given[value] - found.right[value] for value in values])
        of_value = rng.beta(hits + _PRIOR_LABELS * accuracy, misses + _PRIOR_LABELS * (1 - accuracy))
        said = np.array([found.instead[value] for value in (*values, UNSTATED)], dtype=float)
        instead = rng.dirichlet(said + np.append(own[g], 0.0) + 1e-9, size=DRAWS)[:, :-1]
        # The share of wrong values is distributed to the other values in proportion to people's corrections.
        wrong_mass = (1 - of_value) * own[g] / np.maximum(1 - instead, 1e-9)
        mixed = of_value * own[g] + instead * (wrong_mass.sum(axis=1, keepdims=True) - wrong_mass)
        drawn[:, g] = mixed / mixed.sum(axis=1, keepdims=True)
    moved = of_shares(drawn) - of_shares(own[None])[0]
    low, middle, high = np.quantile(moved, [0.025, 0.5, 0.975])
    return replace(
        score,
        corrected=float(np.clip(score.value + middle, 0, attainable_max)),
        ci_low=float(np.clip(score.own_low + low, 0, attainable_max)),
        ci_high=float(np.clip(score.own_high + high, 0, attainable_max)),
    )


@dataclass(frozen=True)
class _Evidence:
    """Counts of the annotator's values, of the correct ones among them, and of people's corrections."""

    given: Counter[str]
    right: Counter[str]
    instead: Counter[str]


def _evidence(units: Sequence[Unit], counts_as: Mapping[tuple[str, Label], str]) -> _Evidence:
    found = _Evidence(Counter(), Counter(), Counter())
    for unit in units:
        if unit.given is None or unit.agreed is None or unit.given == (UNSTATED,):
            continue
        read, said = (
            {counts_as.get((unit.attribute.name, (value,)), value) for value in label}
            for label in (unit.given, unit.agreed)
        )
        found.given.update(read)
        found.right.update(read & said)
        if read - said:
            found.instead.update(said - read or {UNSTATED})
    return found
