"""Boards on the Hub: data sets whose file `submitted.txt` lists runs, a line each, by data set and commit."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from equivox.core.errors import RequestError
from equivox.integrations.hub.remote import HUB, downloaded, upload

LIST = "submitted.txt"
MOST_RUNS = 10_000
"""The longest list that is read; a board of more runs would take days to verify."""
_ADDRESS = re.compile(r"hf://datasets/[\w.-]+/[\w.-]+(@[\w./-]+)?")


def listed_runs(folder: Path) -> list[str]:
    """Return the addresses of the runs that a downloaded board lists, each once, in order; [] if it lists none yet.

    RequestError for a line that is no address on the Hub: a list of strangers names no files of this machine.
    """
    path = folder / LIST
    if not path.is_file():
        return []
    if path.is_symlink() or path.stat().st_size > 100 * MOST_RUNS:
        raise RequestError(f"{LIST} of the board is a link or too long; it lists at most {MOST_RUNS:,} runs")
    lines = [line.strip() for line in path.read_text("utf-8", errors="replace").splitlines()]
    found = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if strange := next((line for line in found if not _ADDRESS.fullmatch(line)), None):
        raise RequestError(f"{LIST} of the board has {strange[:80]!r}, which is no run on the Hub; take the line out")
    return found[:MOST_RUNS]


def submit_to_board(written: Path, repo: str, board: str) -> tuple[str, str]:
    """Upload a run that was written for the Hub, and ask the board `board` to list it, by a pull request.

    Returns the address of the run, with its commit, and that of the pull request, empty if the board lists the run
    already. The run is public, because everybody verifies it. RequestError and RunError as `upload`.
    """
    replaces = ("data/*", "responses/*", "annotations/*", "tables*", "scores*.json", "sounds/*")
    commit = upload(
        written, repo, repo_type="dataset", message="Run, written by equivox", private=False, create_repo=True,
        replaces=replaces,
    ).rpartition("/")[2]  # fmt: skip
    address = f"{HUB}{repo}@{commit}"
    with downloaded(f"{HUB}{board}") as folder, TemporaryDirectory(prefix="equivox-board-") as made:
        known = listed_runs(folder)
        if address in known:
            return address, ""
        before = (folder / LIST).read_text("utf-8") if (folder / LIST).is_file() else ""
        asked = Path(made) / LIST
        asked.write_text(f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{address}\n", "utf-8")
        url = upload(asked.parent, board, repo_type="dataset", message=f"Add the run {repo}", pull_request=True)
    return address, url
