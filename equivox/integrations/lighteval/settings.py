"""Settings without an option on lighteval's command line, from the environment; errors that it shows in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from equivox.annotate import RULES
from equivox.core.errors import EquivoxError, RequestError

DATA, ANNOTATOR, LIMIT, SEED, RUNS, MODEL = (
    "EQUIVOX_DATA",
    "EQUIVOX_ANNOTATOR",
    "EQUIVOX_LIMIT",
    "EQUIVOX_SEED",
    "EQUIVOX_RUNS",
    "EQUIVOX_MODEL_CONFIG",
)


class Stop(EquivoxError, SystemExit):
    """An error that ends another program's command with one line on stderr and exit code 1.

    In Python it is an `EquivoxError` like any other. Without it, the other program would print a traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = f"equivox: {' '.join(message.split())}"


@contextmanager
def one_line() -> Iterator[None]:
    """Turn any equivox error into one that another program's command line shows as one line."""
    try:
        yield
    except Stop:
        raise
    except EquivoxError as error:
        raise Stop(str(error)) from error


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of equivox inside lighteval; each field has an environment variable.

    Parameters
    ----------
    data
        `EQUIVOX_DATA`: `sample`, or the folder that `equivox data build` wrote into. With None only corpora that need
        no build are available (BADF's published grid).
    annotator
        `EQUIVOX_ANNOTATOR`: the annotator, as in `equivox run --annotator`.
    limit, seed
        `EQUIVOX_LIMIT`, `EQUIVOX_SEED`: as in `equivox run --limit` and `--seed`.
    runs
        `EQUIVOX_RUNS`: the folder in which each evaluation is stored as a run.
    model
        `EQUIVOX_MODEL_CONFIG`: the model behind the custom model, as in `equivox run`; None: the name in lighteval's
        command.
    """

    data: str | None = None
    annotator: str = RULES
    limit: int | None = None
    seed: int = 0
    runs: Path = Path("runs/lighteval")
    model: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings in the environment; RequestError for an invalid number.

        >>> Settings.from_environment({"EQUIVOX_DATA": "sample", "EQUIVOX_LIMIT": "24"}).limit
        24
        """
        given = {k: v for k, v in (os.environ if environment is None else environment).items() if v}
        return cls(
            data=given.get(DATA),
            annotator=given.get(ANNOTATOR, RULES),
            limit=_whole(given, LIMIT, least=1),
            seed=_whole(given, SEED, least=0) or 0,
            runs=Path(given.get(RUNS, cls.runs)),
            model=given.get(MODEL),
        )


def _whole(given: Mapping[str, str], name: str, *, least: int) -> int | None:
    if name not in given:
        return None
    try:
        number = int(given[name])
    except ValueError:
        number = least - 1
    if number < least:
        raise RequestError(f"{name} must be a whole number from {least} up, got {given[name]!r}; or leave it out")
    return number
