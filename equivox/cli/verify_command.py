"""`equivox verify`: does a run hold what it says?"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import QuietOption, TaskFilesArgument, data_option
from equivox.core.errors import DamageError, RequestError


def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The folder of a run, or hf://datasets/OWNER/NAME on the Hub.")
    ],
    task_files: TaskFilesArgument = None,
    data: Annotated[str | None, data_option("Make the requests again from the corpus, as for `run`.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write everything that was found as JSON to this file too.")] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="PEM", help="The public Ed25519 key that signed the --statement.")
    ] = None,
    statement: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A signed statement about this run, by `dossier --sign`.")
    ] = None,
    quiet: QuietOption = False,
) -> int:
    """Verify that a run holds what it says: hashes, requests, and every number recomputed; it is not written."""
    from json import dumps

    from equivox.cli.output import console, echo
    from equivox.cli.show import progress_bars
    from equivox.compare.believing import check_statement, verify_with_labels
    from equivox.core.files import refuse_unusable, refuse_unusable_file, write_text
    from equivox.integrations.hub.remote import HUB, downloaded
    from equivox.io.signed import read_public_key, read_small_file, signed_statement
    from equivox.report.table import print_tables
    from equivox.report.verification_tables import EXIT_CODES, verdict, verification_document, verification_tables

    if json is not None:
        refuse_unusable_file(json, "json")
        if not run.startswith(HUB) and json.resolve().is_relative_to(Path(run).resolve()):
            raise RequestError(f"`json` {json} is inside of the run, which is not written; name another place")
    signed = (
        None if key is None or statement is None else (read_public_key(key), read_small_file(statement, "statement"))
    )
    if signed is None and (key or statement):
        raise RequestError("`key` and `statement` belong together: name the public key and what it signed")
    with downloaded(run) if run.startswith(HUB) else nullcontext(Path(run)) as folder:
        refuse_unusable(folder, "run")
        with progress_bars(quiet=quiet) as progress:
            found = verify_with_labels(folder, data=data, progress=progress)
    if signed is not None and statement is not None:
        try:
            check_statement(found, signed_statement(statement, signed[1], signed[0]), statement)
        except DamageError as error:
            found.problems.append(str(error))
    echo(verdict(found))
    if found.manifest:
        echo(f"SHA-256 of manifest.json: {found.manifest}")
    print_tables(console(), verification_tables(found))
    if json is not None:
        document = {"run": run, **verification_document(found)}
        write_text(json, dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return EXIT_CODES[found.outcome]
