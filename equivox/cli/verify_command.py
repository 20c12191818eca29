"""`equivox verify`: does a run hold what it says?"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import QuietOption, data_option
from equivox.core.errors import EquivoxError, RequestError

if TYPE_CHECKING:
    from equivox.run.verifying import Verification


def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The folder of a run, or hf://datasets/OWNER/NAME on the Hub.")
    ],
    data: Annotated[str | None, data_option("Make the requests again from the corpus, as for `run`.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write everything that was found as JSON to this file too.")] = None,
    quiet: QuietOption = False,
) -> int:
    """Verify that a run holds what it says: hashes, requests, and every number recomputed; it is not written."""
    from json import dumps

    from equivox.cli.output import console, echo
    from equivox.cli.show import progress_bars
    from equivox.core.files import refuse_unusable, refuse_unusable_file, write_text
    from equivox.integrations.hub.remote import HUB, downloaded
    from equivox.report.table import print_tables
    from equivox.report.verification_tables import EXIT_CODES, verdict, verification_document, verification_tables
    from equivox.run.verifying import verify as verified

    if json is not None:
        refuse_unusable_file(json, "json")
        if not run.startswith(HUB) and json.resolve().is_relative_to(Path(run).resolve()):
            raise RequestError(f"`json` {json} is inside of the run, which is not written; name another place")
    with downloaded(run) if run.startswith(HUB) else nullcontext(Path(run)) as folder:
        refuse_unusable(folder, "run")
        with progress_bars(quiet=quiet) as progress:
            found = verified(folder, data=data, progress=progress)
        _check_audits(found)
    echo(verdict(found))
    if found.manifest:
        echo(f"SHA-256 of manifest.json: {found.manifest}")
    print_tables(console(), verification_tables(found))
    if json is not None:
        document = {"run": run, **verification_document(found)}
        write_text(json, dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return EXIT_CODES[found.outcome]


def _check_audits(found: Verification) -> None:
    """Compare the corrected scores with those that the labels kept with the run give."""
    from equivox.compare.audits import compare_audits

    if found.wrong_files or found.problems:
        return
    try:
        compare_audits(found.run, found.compared)
    except (EquivoxError, KeyError, TypeError, AttributeError) as error:
        found.not_verified.append(f"the scores corrected by people's labels: {error}")
