"""`equivox export`: a stored run in the format of another project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli import EXIT_DONE
from equivox.cli.options import RunArgument, data_option
from equivox.cli.output import echo
from equivox.core.errors import RequestError

Writer = Callable[..., list[Path]]
"""`writer(run, out, *, media)`: writes the run in the folder `run` to `out` and returns the files that it wrote.

`media` says whether recordings and images are included. Writers of formats with prompts take `data`, too: where the
corpora are now, None for where the run found them. Writers that leave texts out unless they are asked for take `texts`.
A writer raises RequestError before it writes anything, and removes
credentials and local paths.
"""


@dataclass(frozen=True)
class Target:
    """A format that runs are exported to.

    `writer` is `module:function`, imported only when it is used, and `extra` the extra of equivox that it needs.
    `media` says whether the format can hold recordings and images, `prompts` whether it holds the text of requests or a
    hash of it, and `texts` whether prompts and responses are left out unless they are asked for.
    """

    what: str
    writer: str
    extra: str = ""
    media: bool = False
    prompts: bool = False
    texts: bool = False

    def load(self) -> Writer:
        """Return the function that writes the format; RequestError if a package that it needs is missing."""
        module, _, name = self.writer.partition(":")
        with needs_extra(self.extra):
            writer: Writer = getattr(import_module(module), name)
        return writer


TARGETS = {
    "inspect": Target(
        "logs for `inspect view`, one per task",
        "equivox.integrations.inspect.exporting:write_logs",
        extra="inspect",
        media=True,
        prompts=True,
    ),
    "every-eval-ever": Target(
        "the scores as Every Eval Ever has them (schema 0.3), and a row with hashes per response",
        "equivox.integrations.every_eval_ever.exporting:write_evaluation",
        prompts=True,
        texts=True,
    ),
}
"""Every format that runs are exported to, by the name that `--to` takes."""


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn the absence of a package into a RequestError that names the extra of equivox to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not extra or str(error.name).startswith("equivox"):
            raise
        raise RequestError(
            f"this needs {error.name}, which is not installed; install it with `pip install 'equivox[{extra}]'`"
        ) from None


def export(
    run: RunArgument,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="The format: inspect, every-eval-ever.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where the files go; export/RUN-FORMAT by default.")
    ] = None,
    media: Annotated[bool, typer.Option("--media", help="Include recordings and images, if the format can.")] = False,
    data: Annotated[str | None, data_option("Where the corpora are now, for formats with prompts.")] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Include prompts and responses, for formats that have hashes otherwise.")
    ] = False,
) -> int:
    """Write a run in the format of another project, without credentials and local paths."""
    from equivox.cli.show import believe_all

    target = TARGETS.get(to)
    if target is None:
        known = "; ".join(f"{name}: {one.what}" for name, one in TARGETS.items())
        raise RequestError(f"`--to` {to!r} is not known; {known}")
    if media and not target.media:
        raise RequestError(f"`--media`: the format {to} holds no recordings and no images; leave it out")
    if data is not None and not target.prompts:
        raise RequestError(f"`--data`: the format {to} holds no prompts, so no corpus is needed; leave it out")
    if texts and not target.texts:
        raise RequestError(f"`--texts`: the format {to} leaves no choice about texts; leave it out")
    further = ({"data": data} if target.prompts else {}) | ({"texts": texts} if target.texts else {})
    writer = target.load()
    believe_all([run])
    for path in writer(run, out or Path("export") / f"{run.resolve().name}-{to}", media=media, **further):
        echo(f"  {path}  {path.stat().st_size:,} bytes")
    return EXIT_DONE
