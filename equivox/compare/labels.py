"""Labels from people: their agreement with the annotator, its errors, and the scores that people would have given."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from equivox.annotate.merging import lemmas
from equivox.annotate.schema import canonical
from equivox.compare.runs import ComparedRun, run_metrics
from equivox.compare.stored_audits import AdjustedScore
from equivox.core.encoded import EncodedValues
from equivox.core.errors import RequestError, nearest
from equivox.core.files import CHECKSUM
from equivox.core.samples import UNANSWERED, Row, Samples
from equivox.core.scores import NAN, Score
from equivox.core.task import OTHER, UNSTATED, Attribute, Task, digest
from equivox.engines import model_label
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import run_tasks
from equivox.run.scoring import open_samples, read_records, read_scores, sample_rows

KEY_FILE = "key.json"
"""The file that maps the rows of a blind sheet to responses."""
Key = Mapping[str, Mapping[str, Any]]
"""The contents of this file, by item."""

ADJUDICATED = "adjudicated"
"""The name of the file, without its ending, with the decisions on what people say differently."""

MIN_LABELS = 5
"""The number of labelled responses that every group of a task needs before its score is corrected."""

Label = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One attribute of one response: the annotator's value, and each person's value by name.

    `response` is the response's key. `weight` is the number of responses for which it was drawn. `decided` is the value
    that somebody settled on after people differed.
    """

    item: str
    run: Path
    model: str
    task: str
    attribute: Attribute
    group: str
    response: str
    given: Label | None
    people: Mapping[str, Label]
    weight: float = 1.0
    decided: Label | None = None

    @property
    def agreed(self) -> Label | None:
        """The value that was decided, or else the one that most people give; None if they are split."""
        if self.decided is not None:
            return self.decided
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

    Of the labels of a stage, `unlabelled` counts what is on the sheet and nobody labelled. For lists there, `precision`
    is the mean share, in percent, of the annotator's values that a person gives too, and `recall` that of a person's
    values that the annotator gives; NaN where there are no such values.
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
    unlabelled: int = 0
    precision: float = NAN
    recall: float = NAN


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The result of checking an annotator against labels; `stage` is empty for those of whole responses."""

    raters: Sequence[str]
    n_responses: int
    attributes: Sequence[AttributeAudit]
    scores: Sequence[AdjustedScore]
    stage: str = ""

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
        attributes=[attribute_audit(name, members) for name, members in by_attribute.items()],
        scores=_adjusted(by_attribute, annotator),
    )


def read_key(folder: Path) -> Key:
    """Return the key of the sheet in `folder`, with the runs' absolute paths; RequestError if it cannot be read."""
    try:
        found = json.loads((folder / KEY_FILE).read_text("utf-8"))
        found.pop(CHECKSUM, None)  # of a key that is kept with a run
        return {item: {**entry, "run": str((folder / entry["run"]).resolve())} for item, entry in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise RequestError(f"{folder} has no readable {KEY_FILE}; name the folder that `audit export` wrote") from None


def _units(folder: Path, files: Sequence[Path], annotator: str | None) -> list[Unit]:
    key = read_key(folder)
    runs = {Path(entry["run"]) for entry in key.values()}
    tasks = {run: {task.name: task for task in run_tasks(run)} for run in runs}
    rows = {run: _rows(run, list(tasks[run].values()), annotator) for run in runs}
    people: dict[tuple[str, str], dict[str, Label]] = {}
    for rater, given_labels in by_person(files).items():
        for where, item, name, text in given_labels:
            if item not in key:
                raise RequestError(f"{where}: no response {item!r} is on the sheet of {folder}")
            declared = _attribute_of(tasks[Path(key[item]["run"])][key[item]["task"]], name, where)
            people.setdefault((item, name), {})[rater] = label_of(text, declared, where)
    units = []
    for (item, name), given in people.items():
        entry = key[item]
        run = Path(entry["run"])
        row = rows[run].get((entry["task"], entry["response"]))
        if row is None:
            raise RequestError(f"{run} no longer holds response {entry['response'][:12]}; restore the run")
        attribute = _attribute_of(tasks[run][entry["task"]], name, str(folder))
        units.append(unit_of(item, entry, attribute, _annotated(row, attribute), given))
    return units


def unit_of(
    item: str, entry: Mapping[str, Any], attribute: Attribute, given: Label | None, people: Mapping[str, Label]
) -> Unit:
    """Return one attribute of an entry of a key, with the annotator's value and the labels by person."""
    return Unit(
        item=item,
        run=Path(entry["run"]),
        model=entry["model"],
        task=entry["task"],
        attribute=attribute,
        group=entry["group"],
        response=entry["response"],
        weight=float(entry.get("weight", 1.0)),
        given=given,
        decided=people.get(ADJUDICATED),
        people={person: label for person, label in people.items() if person != ADJUDICATED},
    )


def _rows(run: Path, tasks: Sequence[Task], annotator: str | None) -> dict[tuple[str, str], Row]:
    name = annotator or str(read_manifest(run)["command"]["annotator"])
    return {(task, row.key): row for task, rows in sample_rows(run, tasks, name).items() for row in rows}


def by_person(files: Sequence[Path]) -> dict[str, list[tuple[str, str, str, str]]]:
    """Return each person's labels by name: where it stands, the item, the attribute and the label.

    A CSV holds the labels of one person, who is called after it; equal file names also get their folder. A JSON file is
    an export of Label Studio with any number of people.
    """
    from equivox.compare.label_studio import exported_labels

    tables = [file for file in files if file.suffix.casefold() != ".json"]
    stems = Counter(file.stem for file in tables)
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    for file in tables:
        name = file.stem.removeprefix("labels-") if stems[file.stem] == 1 else f"{file.parent.name}/{file.stem}"
        found[name] = [
            (f"{file}, line {line}", item, attribute, label) for line, item, attribute, label in filled_in(file)
        ]
    for file in files:
        if file not in tables:
            for where, person, item, name, text in exported_labels(file):
                found.setdefault(person, []).append((where, item, name, text))
    return found


def filled_in(file: Path) -> Iterable[tuple[int, str, str, str]]:
    """Yield the line, item, attribute and label of each row of a sheet that has a label."""
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"labels {file} cannot be read ({error}); give CSV in UTF-8") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
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


def label_of(text: str, attribute: Attribute, where: str) -> Label:
    """Return a person's label as a sorted set of values, for comparison."""
    given = [part.strip() for part in text.split(";")] if attribute.is_list else [text]
    if not attribute.options:
        return comparable(given)
    offered = {option.casefold(): option for option in (*attribute.options, OTHER, UNSTATED)}
    for value in given:
        if value.casefold() not in offered:
            raise RequestError(
                f"{where}: {attribute.name} is one of {', '.join(offered.values())}, got {value!r}"
                f"{nearest(value, offered.values())}"
            )
    return tuple(sorted({offered[value.casefold()] for value in given}))


def comparable(values: Iterable[str]) -> Label:
    """Return open values as a sorted set of lemmas, so that wordings can be compared; `unstated` if there is none."""
    said = {plain for value in values if (plain := canonical(value)) and plain != UNSTATED}
    return tuple(sorted(set(map(lemmas, said)))) or (UNSTATED,)


def _annotated(row: Row, attribute: Attribute) -> Label | None:
    if row.status not in {"parsed", "refused"}:
        return None
    return label_of_values(row.values.get(attribute.name, ()), attribute)


def label_of_values(values: Sequence[str], attribute: Attribute) -> Label:
    """Return the annotator's values as a label; `unstated` if there is none."""
    if not values:
        return (UNSTATED,)
    return tuple(sorted(values)) if attribute.options else comparable(values)


def attribute_audit(name: str, units: Sequence[Unit]) -> AttributeAudit:
    """Return the comparison of the annotator with people on one attribute."""
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
    """Return every attribute score of the audited runs as people would have annotated it.

    A score takes the labels of its own run, task and attribute, never those of another model or task.
    """
    found = []
    for run in sorted({unit.run for units in by_attribute.values() for unit in units}):
        manifest = read_manifest(run)
        model = model_label(str(manifest["command"]["model"]))
        scores = read_scores(run, annotator)
        compared = ComparedRun(model, run, annotator or "", scores, run_metrics(run))
        tasks = run_tasks(run)
        samples = open_samples(run, tasks, annotator or str(manifest["command"]["annotator"]))
        declared = {(task.name, attribute.name): attribute for task in tasks for attribute in task.attributes}
        wording = _wordings(run, annotator)
        own_found: list[AdjustedScore] = []
        for score in scores:
            attribute, measure = declared.get((score.task, score.attribute or "")), compared.measure(score)
            if attribute is None or not score.defined or score.subset or measure is None or measure.corrected is None:
                continue
            # A response that several tasks share is on the sheet once, so that its label speaks for all of them.
            units = [u for u in by_attribute.get(attribute.name, ()) if (u.run, u.attribute) == (run, attribute)]
            plain = _as_stored(model, run, score)
            own = samples[score.task]
            if adjusted := _corrected(plain, own, attribute, units, wording, score.min_count, measure.corrected):
                own_found.append(adjusted)
        for score in scores:
            measure = compared.measure(score)
            if score.is_whole and score.defined and measure is not None and measure.corrected is not None:
                parts = {one.attribute: one for one in own_found if one.task == score.task}
                if score.parts and all(name in parts for name in score.parts):
                    found.append(_whole(model, run, score, parts))
        found += own_found
    return found


def _as_stored(model: str, run: Path, score: Score) -> AdjustedScore:
    """Return a score that takes the annotator at its word, without a correction."""
    return AdjustedScore(
        model=model,
        task=score.task,
        attribute=score.attribute or "",
        value=score.value,
        estimate=score.estimate,
        own_low=score.ci_low,
        own_high=score.ci_high,
        run=str(run),
    )


def _whole(model: str, run: Path, score: Score, parts: Mapping[str, AdjustedScore]) -> AdjustedScore:
    """Return a task's score corrected by labels: the mean of its attributes, as its score is.

    The attributes share their responses. The mean of the ends of their intervals holds whatever their errors have in
    common; it is wider than needed where they have little.
    """
    plain = _as_stored(model, run, score)
    own = [parts[name] for name in score.parts]
    if reason := next((f"{one.attribute}: {one.undefined}" for one in own if one.undefined), None):
        return replace(plain, undefined=reason)
    to_halve = [one.labels_to_halve for one in own]
    return replace(
        plain,
        # As in the task's own estimate, noise that lies below zero counts against noise above it.
        corrected=max(0.0, fmean(one.unclipped for one in own)),
        unclipped=fmean(one.unclipped for one in own),
        ci_low=fmean(one.ci_low for one in own),
        ci_high=fmean(one.ci_high for one in own),
        labels={group: min(one.labels[group] for one in own) for group in own[0].labels},
        labels_to_halve=None if None in to_halve else max(n for n in to_halve if n is not None),
    )


def _wordings(run: Path, annotator: str | None) -> dict[tuple[str, Label], str]:
    """Return, for each open attribute and comparable label, the wording that the run's scores count it as."""
    rows = read_records(run, "", "open_values", annotator) or []
    return {(row["attribute"], comparable([row["value"]])): row["counts_as"] for row in rows}


def _corrected(
    score: AdjustedScore,
    samples: Samples,
    attribute: Attribute,
    units: Sequence[Unit],
    wording: Mapping[tuple[str, Label], str],
    min_count: int,
    correct: Callable[..., Any],
) -> AdjustedScore | None:
    """Return the score corrected by the labels of its responses; None if none of them is labelled.

    All answered responses count, those that the annotator could not parse as well: people may find a value there.
    """
    import numpy as np

    def one(value: str) -> str:
        if attribute.options:
            return value
        (plain,) = comparable([value])
        return wording.get((attribute.name, (plain,)), plain)

    answered = ~samples.has_status(*UNANSWERED, "empty")
    keys = [key for key, has in zip(samples.keys, answered.tolist(), strict=True) if has]
    place = {key: number for number, key in enumerate(keys)}
    known = [unit for unit in units if unit.response in place]
    settled = [(place[u.response], u.agreed, u.weight) for u in known if u.agreed is not None]
    if not settled:
        return None
    values = samples.values(attribute.name)
    values = values.renamed([one(name) for name in values.names])
    if attribute.role != "refusal":  # As the score does: a response that declines has no other value.
        parsed = samples.has_status("parsed")[values.rows]
        values = EncodedValues(values.rows[parsed], values.codes[parsed], values.names, values.n_rows)
    found = correct(
        values.take(answered),
        samples.groups.take(answered),
        clusters=samples.clusters.take(answered),
        blocks=samples.blocks.take(answered) if samples.blocks else None,
        labelled_rows=[row for row, _, _ in settled],
        labels=[sorted({one(value) for value in label if value != UNSTATED}) for _, label, _ in settled],
        weights=[weight for _, _, weight in settled],
        min_count=min_count,
        min_labels=MIN_LABELS,
        rng=np.random.default_rng(int(digest([score.task, score.attribute])[:16], 16)),
    )
    split = len(known) - len(settled)
    return replace(
        score,
        corrected=found.estimate,
        unclipped=found.estimate_unclipped,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        labels=dict(zip(found.groups, found.labels, strict=True)),
        labels_to_halve=found.labels_to_halve,
        undefined=found.undefined,
        notes=[*found.notes, *([f"{split} responses on which people are split are left out"] if split else [])],
    )
