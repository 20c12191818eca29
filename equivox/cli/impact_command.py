"""`equivox impact`: shares of favourable answers by group, and impact ratios."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from equivox.core.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Options of the command line; `favourable` has ATTRIBUTE=VALUE, once per value."""

    run: Path
    by: str | None = None
    favourable: list[str] = field(default_factory=list)
    annotator: str | None = None
    csv: Path | None = None
    html: Path | None = None


def run_impact(wish: Wish) -> int:
    """Print the tables and write the files that were asked for; return 1 if a table has no ratios."""
    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.cli.output import console, echo
    from equivox.compare.impact import impact, impact_records
    from equivox.core.files import refuse_unusable_file, write_text
    from equivox.core.variants import parse_group
    from equivox.report.impact_files import impact_heading, impact_page, impact_tables
    from equivox.report.table import as_csv, print_tables

    for option, path in (("csv", wish.csv), ("html", wish.html)):
        if path is not None:
            refuse_unusable_file(path, option)
    by = () if wish.by is None else parse_group(wish.by)
    found = impact(wish.run, by=by, favourable=_favourable(wish.favourable), annotator=wish.annotator)
    if wish.csv is not None:
        write_text(wish.csv, as_csv(impact_records(found)))
    if wish.html is not None:
        write_text(wish.html, impact_page(found))
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
