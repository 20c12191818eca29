"""`equivox export`: a stored run in the format of another project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from equivox.cli import EXIT_DONE
from equivox.cli.output import echo
from equivox.core.errors import RequestError

Writer = Callable[..., list[Path]]
"""`writer(run, out, *, media)`: writes the run in the folder `run` to `out` and returns the files that it wrote.

`media` says whether recordings and images are included. A writer raises RequestError before it writes anything, and
removes credentials and local paths.
"""


@dataclass(frozen=True)
class Target:
    """A format that runs are exported to.

    `writer` is `module:function`, imported only when it is used. `media` says whether the format can hold recordings
    and images.
    """

    what: str
    writer: str
    media: bool = False

    def load(self) -> Writer:
        """Return the function that writes the format; RequestError if a package that it needs is missing."""
        module, _, name = self.writer.partition(":")
        writer: Writer = getattr(import_module(module), name)
        return writer


TARGETS = {
    "inspect": Target("logs for `inspect view`, one per task", "equivox.integrations.inspect:write_logs", media=True),
}
"""Every format that runs are exported to, by the name that `--to` takes."""


def export(run: Path, to: str, out: Path | None, *, media: bool) -> int:
    """Write the run in the folder `run` in the format `to` and print the files."""
    target = TARGETS.get(to)
    if target is None:
        known = "; ".join(f"{name}: {one.what}" for name, one in TARGETS.items())
        raise RequestError(f"`--to` {to!r} is not known; {known}")
    if media and not target.media:
        raise RequestError(f"`--media`: the format {to} holds no recordings and no images; leave it out")
    for path in target.load()(run, out or Path("export") / f"{run.resolve().name}-{to}", media=media):
        echo(f"  {path}  {path.stat().st_size:,} bytes")
    return EXIT_DONE
