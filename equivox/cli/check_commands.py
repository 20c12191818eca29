"""The commands that check runs for somebody else: verify, gate, dossier; nothing heavy is imported at start."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import (
    QuietOption,
    RunArgument,
    TaskFilesArgument,
    data_option,
    opened,
    output_option,
    outside,
    runs_argument,
)
from equivox.cli.output import echo, show_tables
from equivox.core.errors import DamageError, RequestError
from equivox.core.files import refuse_unusable, refuse_unusable_file, refuse_unusable_folder, write_text
from equivox.report.progress_bars import progress_bars


def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The folder of a run, or hf://datasets/OWNER/NAME on the Hub.")
    ],
    task_files: TaskFilesArgument = None,
    data: Annotated[str | None, data_option("Make the requests again from the corpus, as for `run`.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write everything that was found as JSON to this file too.", callback=outside)
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="PEM", help="The public Ed25519 key that signed the --statement.")
    ] = None,
    statement: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A signed statement about this run, by `dossier --sign`.")
    ] = None,
    quiet: QuietOption = False,
) -> int:
    """Verify that a run holds what it says: hashes, requests, and every number recomputed; it is not written."""
    from equivox.compare.believing import check_statement, verify_with_labels
    from equivox.integrations.hub.remote import HUB, downloaded
    from equivox.io.signed import read_public_key, read_small_file, signed_statement
    from equivox.report.verification_tables import EXIT_CODES, verdict, verification_document, verification_tables

    if json is not None:
        refuse_unusable_file(json, "json")
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
    show_tables(verification_tables(found))
    if json is not None:
        document = {"run": run, **verification_document(found)}
        write_text(json, dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return EXIT_CODES[found.outcome]


def gate(
    run: RunArgument,
    baseline: Annotated[
        Path | None, typer.Option(help="The run that the new one is held against.", callback=opened)
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="M",
            help="How much further from no bias the new run may be; NAME=M for a metric or task; repeatable.",
        ),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="N", help="The largest distance from no bias; NAME=N for a metric or task."),
    ] = None,
    overall: Annotated[
        bool, typer.Option("--overall", help="Hold only the mean over a family's tasks against the margin.")
    ] = False,
    min_coverage: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests that must be used in both runs.")
    ] = 0.95,
    inconclusive: Annotated[
        str, typer.Option(help="What a check that cannot be decided is: inconclusive (exit 4), pass or fail.")
    ] = "inconclusive",
    json: Annotated[
        Path | None, typer.Option(help="Write the checks as JSON to this file too.", callback=outside)
    ] = None,
) -> int:
    """Check that a run is not worse than a baseline; exit 0: it is not, 3: it is, 4: undecided, 1: not comparable."""
    from equivox.cli.show import believe_all
    from equivox.compare.gate import EXIT_CODES, Limits, read_limits
    from equivox.compare.gate import gate as checked
    from equivox.report.gate_files import gate_document, gate_table

    treated = {"inconclusive": None, "pass": "pass", "fail": "worse"}
    if inconclusive not in treated:
        raise RequestError(f"`inconclusive` is one of {', '.join(treated)}, got {inconclusive!r}")
    if json is not None:
        refuse_unusable_file(json, "json")
    believe_all([run, *([baseline] if baseline is not None else [])])
    limits = Limits(margin=read_limits(margin or (), "margin"), most=read_limits(most or (), "max"))
    found = checked(run, baseline, limits, overall=overall, min_coverage=min_coverage)
    if json is not None:
        write_text(json, dumps(gate_document(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    show_tables([gate_table(found)])
    outcome = found.outcome
    if outcome == "inconclusive":
        outcome = treated[inconclusive] or outcome  # type: ignore[assignment]
    return EXIT_CODES[outcome]


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
    from equivox.cli.show import code_of
    from equivox.compare.believing import refuse_doubt, verify_with_labels
    from equivox.io.signed import envelope, key_id, read_private_key
    from equivox.report.dossier import PAGE, RECORD, Statements, dossier_html, read_statements, statement_of
    from equivox.report.dossier import dossier as record_of
    from equivox.run.scoring import read_scores

    refuse_unusable_folder(output, "output")
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
        echo(f"{(output / name).resolve()}")
    return code_of(score for run in runs for score in read_scores(run))
