"""The Ray cluster that workers run on: one of its own on this machine, or one that is already there."""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.engines.quiet import debugging, one_line
from equivox.engines.workers import Workers

_STORE_BYTES = 256 * 2**20
"""Ray's object store on this machine: workers here read media themselves, so that it holds only messages."""
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no network by surprise
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
_LONGEST_FOLDER = 24
_REACH_S = 10.0
_PREFIX, _DRIVER = "equivox-ray-", "driver"
TRAVELS = ("EQUIVOX_", "HF_", "HUGGING_FACE_", "OMP_NUM_THREADS", "TRANSFORMERS_", "VLLM_")
"""The beginnings of the names of environment variables that a worker on another machine gets from here."""


@dataclass
class _Connection:
    """The share of this process in Ray: how many pools use it, and the folder of a cluster that it started itself."""

    users: int = 0
    started: bool = False
    folder: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


_connection = _Connection()


def import_ray() -> Any:
    """Import Ray, quietly; RequestError when it is not installed."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise RequestError('several workers need Ray; install it with `pip install "equivox[ray]"`') from None
    return ray


def enter(address: str | None, count: int) -> Any:
    """Connect to the cluster at `address`, or start one on this machine for `count` workers; return the module `ray`.

    A process that is connected already stays so. Raises RequestError when no cluster answers.
    """
    ray = import_ray()
    with _connection.lock:
        if not ray.is_initialized():
            _start(ray, address, count)
        _connection.users += 1
    return ray


@contextmanager
def connected(workers: Workers) -> Iterator[None]:
    """Stay connected while several pools of `workers` come and go; nothing is done for workers without a pool."""
    if not workers.pooled:
        yield
        return
    enter(workers.address, workers.total)
    try:
        yield
    finally:
        leave()


def leave() -> None:
    """Disconnect when the last pool leaves; a cluster that was started here ends, with all of its processes."""
    with _connection.lock:
        _connection.users -= 1
        if not _connection.users:
            _end()


def _end() -> None:
    """End what this process started, at its exit too, if an error kept a pool from being closed."""
    if not _connection.started:
        return
    import ray

    ray.shutdown()
    _connection.started = False
    if _connection.folder is not None:
        shutil.rmtree(_connection.folder, ignore_errors=True)
        _connection.folder = None


def _start(ray: Any, address: str | None, count: int) -> None:
    import logging

    quietly: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        _connection.folder = _new_folder()
        quietly |= {
            "address": "local",
            "num_cpus": max(count, os.cpu_count() or 1),
            "object_store_memory": _STORE_BYTES,
            "_temp_dir": _connection.folder,
        }
    else:
        quietly = {"address": address, "log_to_driver": False, "logging_level": logging.ERROR}
    # Ray's own handlers of SIGTERM end this process without a word, or with a stack of C++.
    handler = signal.getsignal(signal.SIGTERM)
    keeps = callable(handler) and threading.current_thread() is threading.main_thread()
    utils = importlib.import_module("ray._private.utils")
    if keeps and hasattr(utils, "set_sigterm_handler"):
        utils.set_sigterm_handler = lambda _: None  # type: ignore[attr-defined]
    try:
        if address is not None:
            _reach(address)
        ray.init(**quietly)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        if address is None:
            raise RequestError(f"Ray did not start on this machine ({one_line(error)})") from error
        raise RequestError(
            f"no Ray cluster that fits answers at `ray-address` {address} ({one_line(error)}); start one with "
            "`ray start --head`, and give the address that it prints, or `auto` on a machine of the cluster; a cluster "
            "that asks for a token needs RAY_AUTH_MODE=token here"
        ) from error
    if keeps:
        signal.signal(signal.SIGTERM, handler)
    if not debugging():
        # Ray prints every loss of a worker on the driver's stdout, which holds results alone; a pool counts them.
        worker = importlib.import_module("ray._private.worker")
        if hasattr(worker, "print_to_stdstream"):
            worker.print_to_stdstream = lambda *_, **__: None  # type: ignore[attr-defined]
    _connection.started = True
    atexit.register(_end)


def _new_folder() -> str:
    """Return a new folder for Ray's files; those of drivers that were killed are removed."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_short_folder()))
    for other in folder.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError):
            if other != folder and not _alive(int((other / _DRIVER).read_text())):
                shutil.rmtree(other, ignore_errors=True)
    (folder / _DRIVER).write_text(str(os.getpid()))
    return str(folder)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _reach(address: str) -> None:
    """Raise OSError if nothing listens at `host:port`; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_REACH_S).close()


def _short_folder() -> str | None:
    """Return where Ray can keep its files: its sockets are there, whose paths must be short."""
    usual = tempfile.gettempdir()
    short = "/tmp"
    return short if len(usual) > _LONGEST_FOLDER and os.access(short, os.W_OK) else None


def environment() -> dict[str, str]:
    """Return the environment variables that a worker gets from this process."""
    return {name: value for name, value in os.environ.items() if name.startswith(TRAVELS)}
