"""`equivox impact`: shares of favourable answers by group, and impact ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import RunArgument
from equivox.core.errors import RequestError


def impact(
    run: RunArgument,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="A×B", help="Columns that the run keeps, each alone and crossed; what each task compares."
        ),
    ] = None,
    favourable: Annotated[
        list[str] | None,
        typer.Option(metavar="ATTRIBUTE=VALUE", help="A favourable value in place of the declared ones; repeatable."),
    ] = None,
    annotator: Annotated[str | None, typer.Option(help="Another annotator of the run.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every number to this CSV file too.")] = None,
) -> int:
    """Show the share of favourable answers by group and the impact ratios; this is not a legal audit."""
    from equivox.cli.output import EXIT_DONE, EXIT_INCOMPLETE, console, echo
    from equivox.compare.impact import impact as impact_of
    from equivox.compare.impact import impact_records
    from equivox.core.files import refuse_unusable_file, write_text
    from equivox.core.variants import parse_group
    from equivox.report.impact_files import impact_heading, impact_tables
    from equivox.report.table import as_csv, print_tables

    if csv is not None:
        refuse_unusable_file(csv, "csv")
    columns = () if by is None else parse_group(by)
    found = impact_of(run, by=columns, favourable=_favourable(favourable or []), annotator=annotator)
    if csv is not None:
        write_text(csv, as_csv(impact_records(found)))
    for line in impact_heading(found):
        echo(line)
    print_tables(console(), impact_tables(found))
    return EXIT_INCOMPLETE if found.undefined else EXIT_DONE


def _favourable(given: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise RequestError(f"`favourable` is ATTRIBUTE=VALUE, such as compensation=high, got {text!r}")
        found.setdefault(name, []).append(value)
    return found
