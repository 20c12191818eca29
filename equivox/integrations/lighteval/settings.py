"""What lighteval's command line has no option for, read from the environment, and errors that it shows as one line."""

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
    """An error that ends a command line of another program with one line on stderr and exit code 1.

    In Python it is an `EquivoxError` like any other. The program is not ours: it would print a traceback otherwise.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = f"equivox: {' '.join(message.split())}"


@contextmanager
def one_line() -> Iterator[None]:
    """Turn any error of equivox's into one that a foreign command line shows as one line."""
    try:
        yield
    except Stop:
        raise
    except EquivoxError as error:
        raise Stop(str(error)) from error


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How equivox is to behave inside lighteval; each field is an environment variable of the same name.

    Parameters
    ----------
    data
        `EQUIVOX_DATA`: `sample`, or the folder that `equivox data build` wrote into. None reads what needs no
        building (BADF's published grid) and refuses the rest.
    annotator
        `EQUIVOX_ANNOTATOR`: who reads the answers, as `equivox run --annotator` takes it.
    limit, seed
        `EQUIVOX_LIMIT`, `EQUIVOX_SEED`: as `equivox run --limit` and `--seed`.
    runs
        `EQUIVOX_RUNS`: where each evaluation is kept as a run of equivox's.
    model
        `EQUIVOX_MODEL_CONFIG`: which model the custom model asks, as `equivox run` takes it; None: the one that
        lighteval's command names.
    """

    data: str | None = None
    annotator: str = RULES
    limit: int | None = None
    seed: int = 0
    runs: Path = Path("runs/lighteval")
    model: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings; RequestError for a number that is none.

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
