"""`equivox export`: a stored run in the format of another project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli import EXIT_DONE
from equivox.cli.options import RunArgument, data_option
from equivox.cli.output import echo
from equivox.core.errors import RequestError

FORMATS = {"every-eval-ever": "the scores as Every Eval Ever has them (schema 0.3), and a row with hashes per response"}
"""Every format that runs are exported to, by the name that `--to` takes."""


def export(
    run: RunArgument,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="The format: every-eval-ever.")] = "every-eval-ever",
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where the files go; export/RUN-FORMAT by default.")
    ] = None,
    data: Annotated[str | None, data_option("Where the corpora are now, for the hashes of prompts.")] = None,
    texts: Annotated[bool, typer.Option("--texts", help="Include prompts and responses, beside their hashes.")] = False,
) -> int:
    """Write a run in the format of another project, without credentials and local paths."""
    from equivox.cli.show import believe_all
    from equivox.integrations.every_eval_ever.exporting import write_evaluation

    if to not in FORMATS:
        raise RequestError(f"`--to` {to!r} is not known; {'; '.join(f'{n}: {what}' for n, what in FORMATS.items())}")
    believe_all([run])
    for path in write_evaluation(run, out or Path("export") / f"{run.resolve().name}-{to}", data=data, texts=texts):
        echo(f"  {path}  {path.stat().st_size:,} bytes")
    return EXIT_DONE
