"""`equivox data push` and `equivox submit`: all files are written first and uploaded only on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equivox.cli import EXIT_DONE
from equivox.cli.output import echo

if TYPE_CHECKING:
    from equivox.integrations.hub.submission import Wish


def push(name: str, repo: str, data: str | None, output: Path | None, *, send: bool, public: bool) -> int:
    """Write the corpus or run `name` as a data set; with `send`, upload it."""
    from equivox.cli.show import progress_bars
    from equivox.core.errors import RequestError
    from equivox.integrations.hub.dataset_folder import write_dataset
    from equivox.integrations.hub.remote import check_repo, upload
    from equivox.integrations.hub.run_folder import is_run, write_run

    check_repo(repo)
    folder = output or Path("hub") / repo.replace("/", "--")
    gated = False
    if is_run(name):
        configs = write_run(Path(name), folder, repo=repo)
    else:
        with progress_bars(quiet=False) as progress:
            written = write_dataset(name, data, folder, repo=repo, progress=progress)
        configs = dict(written.rows)
        gated = written.restricted
        if public and written.facts.licence_id == "unknown":
            raise RequestError(
                f"the licence of {name} is not known ({written.facts.licence}), so it is not made public; "
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
    done = upload(
        folder,
        repo,
        repo_type="dataset",
        message=f"{name if not is_run(name) else 'Run'}, written by equivox",
        private=not public,
        gated=gated,
        create_repo=True,
        replaces=("data/*", "responses/*", "annotations/*", "tables*", "tasks/*", "scores*.json"),
    )
    echo(f"Uploaded: {done.url}")
    return EXIT_DONE


def submit(wish: Wish, *, send: bool) -> int:
    """Write a submission; with `send`, open a pull request on the model's repository."""
    from equivox.integrations.hub.remote import upload
    from equivox.integrations.hub.submission import RESULTS, write_submission

    submission = write_submission(wish)
    for task_id, value in submission.values.items():
        echo(f"  {task_id}: {value:.4g}")
    for task_id, reason in submission.left_out.items():
        echo(f"  {task_id}: left out, {reason}")
    for mark, reason in submission.marked.items():
        echo(f"Marked {mark}: {reason}.")
    show_files(submission.folder)
    if not send:
        echo(f"Nothing was uploaded; add --push to open a pull request on {wish.model_repo}.")
        return EXIT_DONE
    done = upload(
        submission.folder / RESULTS,
        wish.model_repo,
        repo_type="model",
        path_in_repo=RESULTS,
        message="Add equivox evaluation results",
        pull_request=True,
    )
    echo(f"Pull request: {done.url}")
    return EXIT_DONE


def show_files(folder: Path) -> None:
    """Print the written files with sizes; a folder with many files takes one line."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    by_place: dict[str, list[Path]] = {}
    for path in files:
        parts = path.relative_to(folder).parts
        by_place.setdefault(parts[0] if len(parts) > 1 else path.name, []).append(path)
    for place, members in by_place.items():
        size = sum(path.stat().st_size for path in members)
        shown = members[0].relative_to(folder).as_posix() if len(members) == 1 else f"{place}/ ({len(members)} files)"
        echo(f"  {shown}  {size:,} bytes")
    echo(f"Written: {folder.resolve()}")
