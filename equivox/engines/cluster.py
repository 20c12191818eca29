"""The Ray cluster that workers run on: one of its own on this machine, or one that is already there."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from equivox.core.errors import UsageError, one_line
from equivox.engines.quiet import debugging

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no network by surprise
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
_STORE_BYTES = 256 * 2**20
"""Ray's object store on this machine, which holds only messages."""
_LONGEST_FOLDER = 24
"""Ray's sockets lie in its folder, and the path of a socket must be short."""
_PREFIX = "equivox-ray-"
_lock = threading.Lock()


def start(address: str | None, count: int) -> Any:
    """Connect this process to the cluster at `address`, or to a new one here for `count` workers; return `ray`.

    A process that is connected already stays so, until it ends. Raises UsageError when Ray is missing or no cluster
    answers.
    """
    os.environ.update(_ENVIRONMENT | os.environ)
    try:
        import ray
    except ModuleNotFoundError:
        raise UsageError(
            'several workers need Ray; install it in a checkout of equivox: `pip install -c constraints.txt ".[ray]"`'
        ) from None
    with _lock:
        if not ray.is_initialized():
            handler = signal.getsignal(signal.SIGTERM)
            keeps = callable(handler) and threading.current_thread() is threading.main_thread()
            if keeps:
                # Ray's own handlers of SIGTERM end this process without a word, or with a stack of C++.
                utils = importlib.import_module("ray._private.utils")
                utils.set_sigterm_handler = lambda _: None  # type: ignore[attr-defined]
            _connect(ray, address, count)
            if keeps:
                signal.signal(signal.SIGTERM, handler)
            if not debugging():
                # Ray prints every loss of a worker on stdout, which holds results alone; a pool counts them.
                importlib.import_module("ray._private.worker").print_to_stdstream = (  # type: ignore[attr-defined]
                    lambda *_, **__: None
                )
    return ray


def end() -> None:
    """Disconnect this process; a cluster that it started ends, with all of its processes. It happens at exit, too."""
    importlib.import_module("ray").shutdown()


def _connect(ray: Any, address: str | None, count: int) -> None:
    quietly: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            folder = _new_folder()
            # The last that is registered comes first.
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            atexit.register(end)
            quietly |= {"include_dashboard": False, "object_store_memory": _STORE_BYTES, "_temp_dir": folder}
            ray.init(address="local", num_cpus=max(count, os.cpu_count() or 1), **quietly)
        else:
            host, _, port = address.rpartition(":")
            if host and port.isdigit() and "/" not in host:  # Ray would try for minutes
                socket.create_connection((host, int(port)), timeout=10).close()
            ray.init(address=address, **quietly)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        if address is None:
            raise UsageError(f"Ray did not start on this machine ({one_line(error)})") from error
        raise UsageError(
            f"no suitable Ray cluster answers at `ray-address` {address} ({one_line(error)}); start one with "
            "`ray start --head`, and give the address that it prints, or `auto` on a machine of the cluster; if the "
            "cluster needs a token, set RAY_AUTH_MODE=token"
        ) from error


def _new_folder() -> str:
    """Return a new folder for Ray's files, named after this process; those of drivers that were killed are removed."""
    usual = tempfile.gettempdir()
    place = usual if len(usual) <= _LONGEST_FOLDER else "/tmp"
    for other in Path(place).glob(f"{_PREFIX}*"):
        with suppress(PermissionError, ValueError):  # somebody else's
            try:
                os.kill(int(other.name.removeprefix(_PREFIX).partition("-")[0]), 0)
            except ProcessLookupError:
                shutil.rmtree(other, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place)
