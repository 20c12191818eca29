"""Impact ratios of a run as tables, headed by what they are not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equivox.compare.impact import Impact, ImpactTable
from equivox.core.plain import split_by
from equivox.core.task import CROSSED
from equivox.report.numbers import DASH, percent, score_interval
from equivox.report.table import Cell, Content, Table
from equivox.report.verdicts import listed
from equivox.statistics import GroupImpact

NOT_AN_AUDIT = (
    "This is not a bias audit, and no legal advice. It does not say that a tool complies with New York City's Local "
    "Law 144, or with any other law, and it does not say the contrary.",
    "The unit is the answer to a voice or a prompt, not an applicant: nobody applied, and no answer decided about "
    "anybody.",
)
"""The sentences above every table."""

HOW = (
    "share: favourable answers, of those that are known; impact ratio: the share of a group over that of the most "
    "favoured group;\ninterval: 95 % for all pairs of groups of a table together, over clusters; with unknowns: the "
    "ratios that the unknown answers allow;\nfour fifths: whether the ratio is below 0.8; not certain: the interval "
    "includes 0.8, so that another sample may say otherwise, or what the unknown answers allow does."
)


def impact_heading(found: Impact) -> list[str]:
    """Return the lines above the tables: what they are not, the model, the date and the data."""
    run = found.run
    source = f" ({run.origin.data})" if run.origin.data else ""
    data = "; ".join(f"{corpus}, fingerprint {fingerprint[:16]}" for corpus, fingerprint in found.data.items())
    lines = [
        *NOT_AN_AUDIT,
        f"Model: {run.model}. Annotated by {run.annotator}. Run of {run.origin.date}. Data{source}: {data}.",
    ]
    lines += [
        f"{n} samples of {corpus} have no group and were not asked about."
        for corpus, n in run.origin.without_group.items()
    ]
    return [*lines, *(f"{mark[0].upper()}{mark[1:]}." for mark in run.marks)]


def impact_tables(found: Impact) -> list[Table]:
    """Return a table per attribute and grouping, a line per group."""
    return [_table(table) for table in found.tables]


def _table(table: ImpactTable) -> Table:
    remarks = [f"{DASH} {table.ratios.undefined}"] if table.ratios.undefined else []
    remarks += [
        f"{DASH} {one.group}: {one.undefined}"
        for one in table.ratios.groups
        if one.undefined and not table.ratios.undefined
    ]
    remarks += [_favoured(table)] if table.ratios.favoured else []
    remarks += [f"{table.without_group} responses have no value of {CROSSED.join(table.by)}"] * bool(
        table.without_group
    )
    return Table(
        caption=f"{table.task}: {table.attribute}, favourable: {' or '.join(table.favourable)}",
        columns=(
            CROSSED.join(table.by),
            "responses",
            "unknown",
            "favourable",
            "share",
            "impact ratio",
            "interval",
            "with unknowns",
            "four fifths",
        ),
        align="lrrrrrrrl",
        rows=[_row(table, one) for one in table.ratios.groups],
        remarks=[*remarks, *table.ratios.notes],
        notes=[HOW],
    )


def side_by_side_tables(found: Sequence[Impact], missing: Sequence[str]) -> list[Table]:
    """Return a table per attribute and grouping with the impact ratios of all models, a line per group and model.

    `missing` says why runs have none.
    """
    every = [(one.run.model, table) for one in found for table in one.tables]
    tables = []
    for key, own in split_by(every, lambda entry: (entry[1].task, entry[1].attribute, entry[1].by)).items():
        groups = dict.fromkeys(one.group for _, table in own for one in table.ratios.groups)
        single = [(model, _table(table)) for model, table in own]
        rows = {(model, str(row[0])): row for model, table in single for row in table.rows}
        first = single[0][1]
        favourable = dict.fromkeys(" or ".join(table.favourable) for _, table in own)
        tables.append(
            Table(
                caption=f"{key[0]}: {key[1]}, favourable: {'; '.join(favourable)}",
                columns=(first.columns[0], "model", *first.columns[1:]),
                align=f"ll{first.align[1:]}",
                rows=[
                    [group, model, *rows[model, group][1:]]
                    for group in groups
                    for model, _ in own
                    if (model, group) in rows
                ],
                grouped=1,
                remarks=_said_once(single),
                notes=[HOW, *NOT_AN_AUDIT],
            )
        )
    if missing:
        tables.append(Table(remarks=[f"{DASH} {reason}" for reason in missing]))
    return tables


def _said_once(tables: Sequence[tuple[str, Table]]) -> list[str]:
    """Return the remarks of several models' tables; one that several models have names them all."""
    models: dict[str, list[str]] = {}
    for model, table in tables:
        for remark in table.remarks:
            models.setdefault(remark, []).append(model)
    if len(tables) == 1:
        return list(models)
    return [f"{', '.join(own)}: {remark}" for remark, own in models.items()]


def _favoured(table: ImpactTable) -> str:
    names = listed(table.ratios.favoured, most=len(table.ratios.groups))
    if len(table.ratios.favoured) == len(table.ratios.groups):
        return "most favoured: none, all shares are equal"
    shown = [one.group for one in table.ratios.groups if one.high < 1 and one.most < 1]
    if not shown:
        return f"largest share: {names}; no other group is shown to be less favoured"
    return f"most favoured: {names}; shown to be less favoured: {', '.join(shown)}"


def _row(table: ImpactTable, one: GroupImpact) -> list[Content]:
    reasons = ", ".join(f"{n} {reason}" for reason, n in table.unknown[one.group].items() if n)
    return [
        one.group,
        str(one.requested),
        Cell(str(one.unknown), reasons) if reasons else str(one.unknown),
        str(one.favourable),
        f"{percent(one.share)} %" if math.isfinite(one.share) else DASH,
        percent(one.ratio),
        score_interval(one.low, one.high, "percent"),
        score_interval(one.least, one.most, "percent") if any(group.unknown for group in table.ratios.groups) else DASH,
        one.mark or DASH,
    ]
