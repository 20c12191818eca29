"""`equivox dossier`: what an auditor hands in about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import output_option, runs_argument
from equivox.core.errors import RequestError


def dossier(
    runs: Annotated[list[Path], runs_argument("Folders of runs.", every=True)],
    output: Annotated[Path, output_option("Where index.html and dossier.json go.")] = Path("dossier"),
    statements: Annotated[
        Path | None,
        typer.Option(metavar="YAML", help="What no run knows: hazard, threshold, mitigation, why these data."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="PEM", help="A private Ed25519 key: write a signed statement, RUN.dsse.json, of each run."
        ),
    ] = None,
) -> int:
    """Write what an auditor hands in: one page and one JSON, each number with the file it is recomputed from."""
    import hashlib
    from datetime import UTC, datetime
    from json import dumps

    from equivox.cli.output import EXIT_DONE
    from equivox.cli.show import console, progress_bars
    from equivox.compare.believing import refuse_doubt, verify_with_labels
    from equivox.core.files import refuse_unusable, write_text
    from equivox.io.signed import envelope, key_id, read_private_key
    from equivox.report.dossier import PAGE, RECORD, Statements, dossier_html, read_statements, statement_of
    from equivox.report.dossier import dossier as record_of

    refuse_unusable(output, "output")
    if output.exists() and not output.is_dir():
        raise RequestError(f"`output` {output} is a file; name the folder that the pack goes into")
    if inside := [run for run in runs if output.resolve().is_relative_to(run.resolve())]:
        raise RequestError(f"`output` {output} is inside of {inside[0]}, which is not written; name another place")
    statement = {run: output / f"{run.resolve().name}.dsse.json" for run in runs}
    if sign is None and (signed := [path for path in statement.values() if path.exists()]):
        raise RequestError(
            f"{signed[0]} signs the pack that is there now, and would not be true of a new one; sign again with "
            "`--sign`, or name another `--output`"
        )
    stated = Statements() if statements is None else read_statements(statements)
    key = None if sign is None else read_private_key(sign)
    with progress_bars(quiet=False) as progress:
        found = [verify_with_labels(run, progress=progress) for run in runs]
    for one in found:
        refuse_doubt(one.run, one.doubt)
    record = record_of(found, stated)
    texts = {PAGE: dossier_html(record), RECORD: dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"}
    if key is not None:
        beside = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
        when = datetime.now(UTC).isoformat(timespec="seconds")
        for one in found:
            said = statement_of(one, beside, key_id(key.public_key()), when)
            texts[statement[one.run].name] = dumps(envelope(said, key), indent=1) + "\n"
    for name, text in texts.items():
        write_text(output / name, text)
        console().print(f"{(output / name).resolve()}", markup=False)
    return EXIT_DONE
