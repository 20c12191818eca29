"""Uploads to the Hub, whose files are complete in a folder before, downloads of data sets, and boards.

A board is a data set whose file `submitted.txt` lists runs, a line each, by data set and commit.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from equivox.core.errors import RunError, UsageError

HUB = "hf://datasets/"
"""The beginning of the address of a data set on the Hub: hf://datasets/OWNER/NAME, with @REVISION if need be."""

OWN_FILES = (
    *("data/*", "responses/*", "annotations/*", "tables*", "tasks/*"),
    *("scores*.json", "sounds/*", "labels/*"),
)
"""The files of a data set that go with the next upload that does not have them: a shard of an earlier version would be
read as rows of this one, and a voice stays only as long as it is sent."""

LIST = "submitted.txt"
MOST_RUNS = 10_000
"""The longest list that is read; a board of more runs would take days to verify."""
_ADDRESS = re.compile(r"hf://datasets/[\w.-]+/[\w.-]+(@[\w./-]+)?")

RepoType = Literal["model", "dataset"]


def check_repo(repo: str) -> None:
    """Raise UsageError unless `repo` is written owner/name according to the Hub's rules."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(repo)
        valid = "/" in repo
    except HFValidationError:
        valid = False
    if not valid:
        raise UsageError(
            f"`repo` is written owner/name, with letters, digits and - _ . of at most 96 characters, got {repo!r}"
        )


def upload(
    folder: Path,
    repo: str,
    *,
    repo_type: RepoType,
    message: str,
    private: bool | None = None,
    gated: bool = False,
    create_repo: bool = False,
    pull_request: bool = False,
    path_in_repo: str | None = None,
) -> str:
    """Upload the files in `folder`, as a pull request if requested, and return its address; a repeated call resumes.

    Files that the Hub already has are not sent again. With `create_repo` the folder is the whole of the repository:
    `OWN_FILES` there that are not in it are deleted in the same commit. With `gated`, users must ask before they see
    the data. UsageError if the Hub refuses (not logged in, no such repository, no right to write); RunError if it
    cannot be reached or is busy.
    """
    from huggingface_hub import HfApi, get_token

    check_repo(repo)
    again = f"the files are complete in {folder}; give the same command again"
    if _offline():
        raise UsageError(f"HF_HUB_OFFLINE is set, so nothing is uploaded; unset it: {again}")
    if get_token() is None:
        raise UsageError(f"not logged in to the Hub; run `hf auth login` or set HF_TOKEN: {again}")
    api = HfApi(library_name="equivox")
    with _in_one_line(repo, again):
        if create_repo:
            api.create_repo(repo, repo_type=repo_type, private=private, exist_ok=True)
            if gated:
                # Done before the first file is visible.
                api.update_repo_settings(repo, repo_type=repo_type, gated="manual")
        done = api.upload_folder(
            repo_id=repo,
            repo_type=repo_type,
            folder_path=folder,
            path_in_repo=path_in_repo,
            commit_message=message,
            create_pr=pull_request,
            delete_patterns=list(OWN_FILES) if create_repo else None,
        )
    return str(done.pr_url if pull_request and done.pr_url else done.commit_url)


@contextmanager
def downloaded(address: str) -> Iterator[Path]:
    """Yield a temporary folder with the files of a data set on the Hub, such as a run that `equivox data push` sent.

    `address` is hf://datasets/OWNER/NAME or hf://datasets/OWNER/NAME@REVISION. UsageError for another address, and if
    the Hub refuses; RunError if it cannot be reached.
    """
    from huggingface_hub import snapshot_download

    repo, _, revision = address.removeprefix(HUB).strip("/").partition("@")
    check_repo(repo)
    if _offline():
        raise UsageError(f"HF_HUB_OFFLINE is set, so {repo} is not fetched; unset it, or name a folder")
    with TemporaryDirectory(prefix="equivox-hub-") as made:
        with _in_one_line(repo, "nothing was kept; give the same command again", reading=True):
            snapshot_download(repo, repo_type="dataset", revision=revision or None, local_dir=made)
        yield Path(made)


def _offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


@contextmanager
def _in_one_line(repo: str, again: str, *, reading: bool = False) -> Iterator[None]:
    """Report an error in one line, without warnings about each attempt; progress bars are for terminals alone."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
    logger = logging.getLogger("huggingface_hub")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    except OfflineModeIsEnabled:
        raise UsageError(f"the Hub is switched off here (HF_HUB_OFFLINE); {again}") from None
    except RepositoryNotFoundError:
        raise UsageError(
            f"the Hub has no repository {repo}, or this token may not see it; make it, or log in as its owner: {again}"
        ) from None
    except HfHubHTTPError as error:
        raise _refused(repo, error, again, reading) from error
    except (OSError, ValueError, RuntimeError) as error:
        # The library wraps the error of a single file.
        first: BaseException = error
        while first.__cause__ is not None and not hasattr(first, "response"):
            first = first.__cause__
        if getattr(first, "response", None) is not None:
            raise _refused(repo, first, again, reading) from error
        if _of_network(error):
            raise _unreached(error, again) from error
        reason = str(first).splitlines()[0] if str(first) else type(first).__name__
        raise RunError(f"{_doing(repo, reading)} did not finish ({reason}); {again}") from error
    except Exception as error:
        if not _of_network(error):
            raise
        raise _unreached(error, again) from error
    finally:
        logger.setLevel(before)


def _of_network(error: BaseException) -> bool:
    """Return whether an error is one of the HTTP library, which is another one in older versions of the Hub's."""
    return type(error).__module__.split(".")[0] in {"httpx", "httpx2", "httpcore", "requests", "urllib3"}


def _unreached(error: BaseException, again: str) -> RunError:
    where = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    return RunError(f"{where} cannot be reached ({type(error).__name__}); {again}")


def _doing(repo: str, reading: bool) -> str:
    return f"the download of {repo}" if reading else f"the upload to {repo}"


def _refused(repo: str, error: BaseException, again: str, reading: bool) -> UsageError | RunError:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 401:
        return UsageError(f"the Hub does not accept this token; run `hf auth login` again: {again}")
    if status == 403:
        may = "read" if reading else "write to"
        return UsageError(f"this token may not {may} {repo}; use one with {may.split()[0]} access: {again}")
    if status == 404:
        return UsageError(f"the Hub has no repository {repo}, or this token may not see it: {again}")
    if status == 429:
        return RunError(f"the Hub limits requests; wait some minutes: {again}")
    if status is not None and status >= 500:
        return RunError(f"the Hub failed (HTTP {status}); {again} later")
    reason = str(getattr(error, "server_message", None) or error).splitlines()[0]
    return RunError(f"the Hub refused {_doing(repo, reading)} (HTTP {status}: {reason}); {again}")


def listed_runs(folder: Path) -> list[str]:
    """Return the addresses of the runs that a downloaded board lists, each once, in order; [] if it lists none yet.

    UsageError for a line that is no address on the Hub: a list of strangers names no files of this machine.
    """
    path = folder / LIST
    if not path.is_file():
        return []
    if path.is_symlink() or path.stat().st_size > 100 * MOST_RUNS:
        raise UsageError(f"{LIST} of the board is a link or too long; it lists at most {MOST_RUNS:,} runs")
    lines = [line.strip() for line in path.read_text("utf-8", errors="replace").splitlines()]
    found = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if strange := next((line for line in found if not _ADDRESS.fullmatch(line)), None):
        raise UsageError(f"{LIST} of the board has {strange[:80]!r}, which is no run on the Hub; take the line out")
    return found[:MOST_RUNS]


def submit_to_board(written: Path, repo: str, board: str) -> tuple[str, str]:
    """Upload a run that was written for the Hub, and ask the board `board` to list it, by a pull request.

    Returns the address of the run, with its commit, and that of the pull request, empty if the board lists the run
    already. The run is public, because everybody verifies it. UsageError and RunError as `upload`.
    """
    commit = upload(
        written, repo, repo_type="dataset", message="Run, written by equivox", private=False, create_repo=True
    ).rpartition("/")[2]
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
