"""`equivox verify`: does a run hold what it says?"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.core.errors import EquivoxError, RequestError

if TYPE_CHECKING:
    from equivox.run.verifying import Verification


def verify(run: str, data: str | None, json_file: Path | None, *, quiet: bool) -> int:
    """Print the verdict and what differs, write the JSON that was asked for, and return the exit code."""
    import json

    from equivox.cli.output import console, echo
    from equivox.cli.show import progress_bars
    from equivox.core.files import refuse_unusable, refuse_unusable_file, write_text
    from equivox.integrations.hub.remote import HUB, downloaded
    from equivox.report.table import print_tables
    from equivox.report.verification_tables import EXIT_CODES, verdict, verification_document, verification_tables
    from equivox.run.verifying import verify as verified

    if json_file is not None:
        refuse_unusable_file(json_file, "json")
        if not run.startswith(HUB) and json_file.resolve().is_relative_to(Path(run).resolve()):
            raise RequestError(f"`json` {json_file} is inside of the run, which is not written; name another place")
    with downloaded(run) if run.startswith(HUB) else nullcontext(Path(run)) as folder:
        refuse_unusable(folder, "run")
        with progress_bars(quiet=quiet) as progress:
            found = verified(folder, data=data, progress=progress)
        _check_audits(found)
    echo(verdict(found))
    if found.manifest:
        echo(f"SHA-256 of manifest.json: {found.manifest}")
    print_tables(console(), verification_tables(found))
    if json_file is not None:
        document = {"run": run, **verification_document(found)}
        write_text(json_file, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
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
