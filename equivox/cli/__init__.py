"""The command line. Every command imports what it needs when it runs, so that help answers at once."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence

from equivox.cli import interrupts
from equivox.cli.output import EXIT_DONE, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_REQUEST, show_everything

ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
"""Settings of the command line where a user has none.

Arrow's own allocator keeps what it has freed. The statistics multiply many small matrices: numpy spreads each over all
cores, which takes longer than one core does. Several cores share whole tests instead (`equivox.compare.pairs`).
"""

CYCLES_AFTER = 20_000
"""New objects after which Python looks for cycles, 700 by default: records are many, and none is in a cycle."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 incomplete, 2 wrong request, 130 interrupted, 143 ended by SIGTERM."""
    interrupts.listen()
    for stream in ("stdout", "stderr"):  # None for a command whose terminal is closed, as of a timer
        setattr(sys, stream, getattr(sys, stream) or open(os.devnull, "w"))  # noqa: SIM115
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    gc.set_threshold(CYCLES_AFTER, *gc.get_threshold()[1:])
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; errors and interrupts are one line on stderr."""
    try:
        interrupts.begin()
        code = _run(arguments)
        interrupts.end()
    except KeyboardInterrupt:
        return interrupts.tell()
    return interrupts.tell() if code == EXIT_INTERRUPTED else code  # how typer reports an interrupt


def _run(arguments: list[str]) -> int:
    import typer

    from equivox.cli.app import app
    from equivox.core.errors import EquivoxError

    show_everything(sys.stdout, sys.stderr)
    debug = "--debug" in arguments or bool(os.environ.get("EQUIVOX_DEBUG"))
    try:
        code = typer.main.get_command(app).main(
            [argument for argument in arguments if argument != "--debug"],
            prog_name="equivox",
            standalone_mode=False,
        )
        sys.stdout.flush()  # after an interrupt at the very end nobody does it
    except EquivoxError as error:
        if debug:
            raise
        return _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage: "):  # a group of commands that is named alone
            print(message)
            message = "a command is missing"
        return _fail(f"{message} (see --help)", EXIT_REQUEST)
    except MemoryError:
        if debug:
            raise
        return _fail("not enough memory; close other programs, or use less data", EXIT_INCOMPLETE)
    except BrokenPipeError:
        # The receiving program closed the pipe (`| head`); redirect stdout so that closing it stays silent.
        _silence()
        return EXIT_DONE
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and not debug:
            _silence()
            return _fail(f"cannot write: {str(error.strerror).lower()}; stored responses are kept", EXIT_INCOMPLETE)
        if debug or error.errno not in (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES):
            raise
        from equivox.core.files import shortened

        path = f"the path {shortened(str(error.filename))}" if error.filename else "a path"
        return _fail(f"{path} cannot be used: {str(error.strerror).lower()}; name another one", EXIT_REQUEST)
    return code if isinstance(code, int) else EXIT_DONE


def _silence() -> None:
    """Let what is left to be printed go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    from equivox.core.redact import without_secrets
    from equivox.core.text import visible

    print(f"equivox: {visible(without_secrets(' '.join(message.split())))}", file=sys.stderr)
    return code
