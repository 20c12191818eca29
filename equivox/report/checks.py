"""What to check before relying on a verdict, as codes with values; `report/verdict.py` has the words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from equivox.annotate.rules import is_exact
from equivox.compare.asking import named_annotator
from equivox.compare.runs import ComparedRun, recorded_apart
from equivox.core.coverage import Coverage
from equivox.core.redact import redacted_text
from equivox.core.scores import DEFAULT_OPTIONS, unusual_options
from equivox.dataset_builders.corpus import SAMPLE
from equivox.run.plan import without_group

UNEQUAL = 5.0
"""Shares of two groups that differ by so many percentage points are checked."""
AGREEMENT = 80.0
"""An annotator that people checked surely agrees with at least this percent of their labels, for an `ok`."""


@dataclass(frozen=True)
class Check:
    """One thing to know before relying on a verdict: its mark, its code, and the values of its sentence."""

    mark: Literal["ok", "check", "note", "why", "do"]
    code: str
    values: Mapping[str, Any] = field(default_factory=dict)


def check_coverage(counts: Coverage) -> Check:
    """Return whether all requested answers count, and where the others were lost."""
    if counts.used == counts.requested:
        return Check("ok", "complete", {"n": counts.requested})
    lost = {
        "failed": counts.requested - counts.generated, "refused or empty": counts.generated - counts.answered,
        "unreadable": counts.answered - counts.parsed, "without a value": counts.parsed - counts.used,
    }  # fmt: skip
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in lost.items() if n > 0)
    return Check("check", "lost", {"n": counts.requested - counts.used, "of": counts.requested, "reasons": reasons})


def list_run_checks(run: ComparedRun) -> Iterator[Check]:
    """Yield what to know of every number of a run, the most important first."""
    if run.answered_by:
        yield Check("check", "another_model", {"model": run.answered_by})
    heaviest = {check.code: check for check in sorted(run.response_checks, key=lambda check: check.n)}
    for check in heaviest.values():
        yield Check("check", check.code, vars(check))
    yield from _check_annotator(run)
    if run.origin.data == SAMPLE and any(task.data.table is None for task in run.tasks):
        yield Check("check", "sample")
    for rate, shares in dict.fromkeys((rate, tuple(shares.items())) for rate, shares in recorded_apart(run)):
        if _is_unequal(dict(shares)):
            yield Check("check", "recorded_apart", {"rate": rate, "shares": _list_shares(dict(shares))})
    for option in _list_lax_options(run):
        yield Check("check", "option", {"option": option})
    if again := run.origin.again:
        yield Check("check" if _is_unequal(again) else "note", "asked_again", {"shares": _list_shares(again)})
    repeated: dict[str, int] = {}
    for task in run.tasks:
        repeated[without_group(task)] = max(repeated.get(without_group(task), 0), run.origin.alike.get(task.name, 0))
    for corpus, n in repeated.items():
        if n:
            yield Check("check", "same_request", {"n": n, "corpus": corpus})
    for corpus, n in run.origin.without_group.items():
        yield Check("note", "without_group", {"n": n, "corpus": corpus})
    if run.origin.limit is not None:
        yield Check("note", "limit", {"n": run.origin.limit})
    for corpus, wanted in {t.data.corpus: t.data.wanted for t in run.tasks if t.data.table is not None}.items():
        if wanted:
            rows = " and ".join(f"{column} is {' or '.join(values)}" for column, values in wanted.items())
            yield Check("note", "selected", {"corpus": corpus, "rows": rows})


def _check_annotator(run: ComparedRun) -> Iterator[Check]:
    """Yield whether people checked the annotator; nothing for rules that read simulated answers."""
    if run.read_by_rules:
        yield Check("check", "rules_on_free_text", {"model": run.model})
    elif not run.audits and not is_exact(run.model, run.annotator):
        code = "judges_itself" if run.judges_itself else "unchecked_judge"
        yield Check("check", code, {"judge": named_annotator(run)})
    for audit in run.audits:
        well = audit.least_agreement >= AGREEMENT and not audit.unequal and not run.judges_itself
        unlabelled = _list_unlabelled(run)
        yield Check("ok" if well and not unlabelled else "check", "audited", {"audit": audit.summary})
        if unlabelled:
            yield Check("check", "unlabelled", {"what": ", ".join(unlabelled)})


def _list_unlabelled(run: ComparedRun) -> list[str]:
    """Return the attributes without any label, and the groups without a label of an attribute that has some."""
    compared: dict[str, set[str]] = {}
    for score in run.scores:
        if score.attribute and score.role == "outcome" and not score.subset and score.defined:
            compared.setdefault(score.attribute, set()).update(score.coverage.requested_by_group)
    labelled: dict[str, set[str]] = {}
    for audit in run.audits:
        for attribute, groups in audit.groups.items():
            labelled.setdefault(attribute, set()).update(groups)
    missing = sorted(compared.keys() - labelled.keys())
    for attribute, with_label in labelled.items():
        if with_label - {""}:  # a task without groups has one without a name
            missing += [f"{attribute} of {group}" for group in sorted(compared.get(attribute, set()) - with_label)]
    return missing


def _list_lax_options(run: ComparedRun) -> list[str]:
    """Return which scoring options ask less of a run's scores than is declared."""
    unusual, options = unusual_options(run.options), run.options
    if options.min_coverage > DEFAULT_OPTIONS.min_coverage:
        del unusual["min_coverage"]
    # Words of a lower similarity count as one, so that fewer of them differ.
    if options.merge_threshold > DEFAULT_OPTIONS.merge_threshold:
        unusual.pop("merge_threshold", None)
    named = ("min_coverage", "look_for", "encoder", "merge_threshold")
    return [redacted_text(unusual[name]) for name in named if name in unusual]


def _is_unequal(shares: Mapping[str, float]) -> bool:
    return max(shares.values()) - min(shares.values()) >= UNEQUAL


def _list_shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{group or 'all'} {share:.0f} %" for group, share in shares.items())
