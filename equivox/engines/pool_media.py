"""How media reach a worker of a pool that cannot read the files of the run: as bytes, inside the message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from equivox.core.errors import EquivoxError
from equivox.core.requests import MediaPart, Request

MESSAGE_BYTES = 16 * 2**20
"""A message with so many bytes of media takes no further request; Ray's object store must hold one for each worker."""


@dataclass
class Parcel:
    """The media of one message to a worker; equal ones are in it once.

    Bytes travel, not references into Ray's object store: a worker waited for a reference without end, twice in some
    40,000 requests (Ray 2.60), probably because it dropped it while a message brought it again.
    """

    size: int = 0
    _loads: dict[str, Callable[[], bytes]] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether the message should go now."""
        return self.size >= MESSAGE_BYTES

    def packed(self, request: Request) -> Request:
        """Return the request with the bytes of its media.

        One that cannot be read here raises OSError, with the reason, when the worker reads it.
        """
        return replace(request, media=tuple(replace(part, load=self._load(part)) for part in request.media))

    def _load(self, part: MediaPart) -> Callable[[], bytes]:
        if part.sha256 not in self._loads:
            try:
                content = part.load()
            except (OSError, EquivoxError) as error:
                self._loads[part.sha256] = _Unreadable(str(error))
            else:
                self._loads[part.sha256] = _Content(content)
                self.size += len(content)
        return self._loads[part.sha256]


def travels(part: MediaPart) -> bool:
    """Return whether the way to read a media item can be sent to another process."""
    from ray import cloudpickle

    try:
        return bool(cloudpickle.dumps(part.load))  # type: ignore[no-untyped-call]
    except Exception:  # pickling raises whatever an object raises
        return False


@dataclass(frozen=True)
class _Content:
    """Gives the bytes that came with the request."""

    content: bytes = field(repr=False)

    def __call__(self) -> bytes:
        return self.content


@dataclass(frozen=True)
class _Unreadable:
    """Raises what the driver met when it read the media item."""

    reason: str

    def __call__(self) -> bytes:
        raise OSError(self.reason)
