"""`equivox view`: the answers of runs in a browser, from a server on this machine or as a folder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from equivox.core.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Options of the command line."""

    runs: list[Path]
    data: str | None
    static: Path | None
    media: str | None
    host: str
    port: int
    browser: bool
    quiet: bool


def view(wish: Wish) -> int:
    """Serve the page until it is interrupted, or write it as a folder."""
    from equivox.core.files import refuse_unusable

    for folder in wish.runs:
        refuse_unusable(folder, "run")
    if wish.static is not None:
        return _write(wish, wish.static)
    if wish.media is not None:
        raise RequestError("`media` is for `--static DIR`; the server shows every recording that it finds")
    return _serve(wish)


def _serve(wish: Wish) -> int:
    import webbrowser

    from equivox.cli import EXIT_DONE
    from equivox.cli.output import echo
    from equivox.report.view.server import serve

    def ready(address: str) -> None:
        echo(f"{address}  (Ctrl-C ends it)")
        if wish.browser:
            webbrowser.open(address)

    with suppress(KeyboardInterrupt):  # how a server is meant to end
        serve(wish.runs, data=wish.data, host=wish.host, port=wish.port, ready=ready)
    return EXIT_DONE


def _write(wish: Wish, output: Path) -> int:
    from equivox.cli import EXIT_DONE
    from equivox.cli.output import echo
    from equivox.cli.show import progress_bars
    from equivox.core.files import refuse_unusable
    from equivox.report.view.static import FEW, checked_media, sizes, write_static

    refuse_unusable(output, "static")
    for folder in wish.runs:
        if output.resolve().is_relative_to(folder.resolve()):
            raise RequestError(f"`static` {output} is inside of a run, which is not written; name another place")
    media = FEW if wish.media is None else checked_media(wish.media)
    with progress_bars(quiet=wish.quiet) as progress:
        found = write_static(wish.runs, output, media=media, data=wish.data, progress=progress)
    size = sizes(found)
    echo(f"{output / 'index.html'}: {size['total_bytes']}, for any web server or a static Space")
    if found.media < found.all_media:
        all_of_them = (
            f"; all {found.all_media:,} take about {size['all_media_bytes']}: `--media all`" if found.media else ""
        )
        echo(f"{found.media:,} recordings or pictures ({size['media_bytes']}){all_of_them}")
    elif found.media:
        echo(f"all {found.media:,} recordings or pictures ({size['media_bytes']})")
    if found.media:
        echo("Recordings and pictures show people: the licence of the corpus says whether you may publish them.")
    return EXIT_DONE
