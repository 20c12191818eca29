"""`equivox data push` and `equivox submit`: all files are written first and uploaded only on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import RunArgument, data_option, opened, output_option, refuse_in_run
from equivox.cli.output import EXIT_DONE, echo
from equivox.core.errors import UsageError
from equivox.core.plain import split_by
from equivox.report.progress_bars import progress_bars

if TYPE_CHECKING:
    from equivox.integrations.hub.submission import Wish


def push(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name a corpus, a task file, or the folder of a run.")],
    repo: Annotated[str, typer.Option(help="Name the data set's repository on the Hub, owner/name.")],
    data: Annotated[
        str | None, data_option("Read the corpus from this folder of built corpora, or from `sample`.")
    ] = None,
    output: Annotated[
        Path | None, output_option("Write the files here; default: hub/OWNER--NAME.", resumed=True)
    ] = None,
    send: Annotated[bool, typer.Option("--push", help="Upload the files; without this option, only write them.")] = (
        False
    ),
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public; default: private.")] = False,
) -> int:
    """Write a corpus or a run as a data set for the Hub; --push uploads it."""
    from equivox.cli.show import refuse_unverified
    from equivox.integrations.hub.dataset_card import is_restricted
    from equivox.integrations.hub.dataset_folder import write_dataset
    from equivox.integrations.hub.remote import check_repo, upload
    from equivox.integrations.hub.run_folder import is_run, write_run

    check_repo(repo)
    folder = output or Path("hub") / repo.replace("/", "--")
    gated = False
    if is_run(name):
        opened(Path(name))
        refuse_unverified(Path(name))
        configs = write_run(Path(name), folder, repo=repo)
    else:
        with progress_bars(quiet=False) as progress:
            configs, facts = write_dataset(name, data, folder, repo=repo, progress=progress)
        gated = is_restricted(facts)
        if public and facts.licence_id == "unknown":
            raise UsageError(
                f"the licence of {name} is not known ({facts.licence}), so it is not made public; "
                "leave out `--public`, or state `licence` and `licence_id` in facts.json beside its source"
            )
    for config, rows in configs.items():
        echo(f"  {config}: {rows:,} rows")
    show_files(folder)
    if gated:
        echo("Users must agree to the licence first (the card's gate).")
    if not send:
        echo(f"Nothing was uploaded; add --push to send this to {repo}.")
        return EXIT_DONE
    url = upload(
        folder,
        repo,
        repo_type="dataset",
        message=f"{name if not is_run(name) else 'Run'}, written by equivox",
        private=not public,
        gated=gated,
        create_repo=True,
    )
    echo(f"Uploaded: {url}")
    return EXIT_DONE


def submit(
    run: RunArgument,
    model_repo: Annotated[
        str | None, typer.Option("--model-repo", help="Name the model's repository on the Hub, owner/name.")
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(help="Name the data set's repository, such as org/equivox-{corpus}."),
    ] = None,
    output: Annotated[
        Path | None, output_option("Write the files here; default: a folder in hub.", resumed=True)
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Name the commit of the data set's repository.")] = None,
    source_url: Annotated[
        str | None, typer.Option(help="Link to the published responses, as `equivox data push RUN` writes them.")
    ] = None,
    mark: Annotated[
        list[str] | None,
        typer.Option(help="Submit despite a problem, with a mark: undefined, low-coverage, modified-data."),
    ] = None,
    min_coverage: Annotated[
        float, typer.Option(help="Require this share of usable responses in every group, 0.8 or more.")
    ] = 0.95,
    board: Annotated[
        str | None,
        typer.Option(help="Send the whole run to this board on the Hub, owner/name."),
    ] = None,
    repo: Annotated[str | None, typer.Option(help="With --board: publish the run as this data set.")] = None,
    send: Annotated[
        bool, typer.Option("--push", help="Open a pull request; without this option, only write the files.")
    ] = False,
) -> int:
    """Write a run's scores for the Hub, or the run for a board; --push sends them."""
    from equivox.integrations.hub.submission import Wish

    of_the_hub = {"model-repo": model_repo, "benchmark": benchmark, "revision": revision, "source-url": source_url}
    if board is not None:
        if strange := next((name for name, value in of_the_hub.items() if value is not None), None):
            raise UsageError(f"`{strange}` is for the Hub's leaderboards; leave it out with `--board`")
        return _to_board(run, board, repo, output, send=send)
    if output is not None:  # Only a run that is sent becomes a run again.
        refuse_in_run(output, "output")
    if repo is not None:
        raise UsageError("`repo` is for `--board`; the Hub's leaderboards take `--model-repo`")
    if model_repo is None or benchmark is None:
        missing = "model-repo" if model_repo is None else "benchmark"
        raise UsageError(f"`{missing}` is missing; the Hub takes `--model-repo` and `--benchmark`")
    wish = Wish(
        run=run,
        model_repo=model_repo,
        benchmark=benchmark,
        output=output or Path("hub") / f"results-{model_repo.replace('/', '--')}",
        revision=revision,
        source_url=source_url,
        marks=frozenset(mark or ()),
        min_coverage=min_coverage,
    )
    return _to_the_hub(wish, send=send)


def _to_the_hub(wish: Wish, *, send: bool) -> int:
    """Write a run's scores for the Hub's leaderboards; with `send` open a pull request on the model's repository."""
    from equivox.cli.show import refuse_unverified
    from equivox.integrations.hub.remote import upload
    from equivox.integrations.hub.submission import RESULTS, write_submission

    refuse_unverified(wish.run)
    values, left_out, marked = write_submission(wish)
    for task_id, value in values.items():
        echo(f"  {task_id}: {value:.4g}")
    for task_id, reason in left_out.items():
        echo(f"  {task_id}: left out, {reason}")
    for name, reason in marked.items():
        echo(f"Marked {name}: {reason}.")
    show_files(wish.output)
    if not send:
        echo(f"Nothing was uploaded; add --push to open a pull request on {wish.model_repo}.")
        return EXIT_DONE
    url = upload(
        wish.output / RESULTS,
        wish.model_repo,
        repo_type="model",
        path_in_repo=RESULTS,
        message="Add equivox evaluation results",
        pull_request=True,
    )
    echo(f"Pull request: {url}")
    return EXIT_DONE


def _to_board(run: Path, board: str, repo: str | None, output: Path | None, *, send: bool) -> int:
    """Write a run as a data set, and with `send` upload it and ask a board to list it."""
    from equivox.cli.show import refuse_unverified
    from equivox.integrations.hub.remote import check_repo, submit_to_board
    from equivox.integrations.hub.run_folder import write_run

    if repo is None:
        raise UsageError("`repo` is missing: name the public data set that the run becomes, owner/name")
    check_repo(repo)
    check_repo(board)
    refuse_unverified(run)
    folder = output or Path("hub") / repo.replace("/", "--")
    write_run(run, folder, repo=repo)
    show_files(folder)
    if not send:
        echo(f"Nothing was uploaded; add --push to make {repo} public and to ask {board} to list it.")
        return EXIT_DONE
    address, request = submit_to_board(folder, repo, board)
    echo(f"Uploaded: {address}")
    echo(f"Pull request: {request}" if request else f"{board} lists it already.")
    return EXIT_DONE


def show_files(folder: Path) -> None:
    """Print the written files with sizes; a folder with many files takes one line."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    # What lies in a folder goes by the folder's name.
    for place, members in split_by(files, lambda path: path.relative_to(folder).parts[0]).items():
        size = sum(path.stat().st_size for path in members)
        shown = members[0].relative_to(folder).as_posix() if len(members) == 1 else f"{place}/ ({len(members)} files)"
        echo(f"  {shown}  {size:,} bytes")
    echo(f"Written: {folder.resolve()}")
