"""Pages of the site that are written elsewhere: the README, the changelog, the metrics' cards, and the command line.

A hook of mkdocs (`mkdocs.yml`); nothing is fetched.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
METRICS = ("ntvd", "spoken_stereoset", "genres", "concept_associations")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that have no file in `docs/`."""
    pages = {
        "index.md": from_docs((ROOT / "README.md").read_text("utf-8")),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text("utf-8"),
        "commands.md": commands(),
        **{
            f"metrics/{name}.md": (ROOT / "metrics" / name / "README.md").read_text("utf-8").split("---\n", 2)[2]
            for name in METRICS
        },
    }
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """Write links to files that are no pages as the names of those files."""
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?!docs/)[^)]*\)", r"\1", markdown)


def from_docs(readme: str) -> str:
    """Return the README as a page of `docs/`: its links start there, those to other files become plain words."""
    text = re.sub(r"\]\(docs/", "](", readme)
    text = text.replace("](CHANGELOG.md)", "](changelog.md)").replace("[CONTRIBUTING](CONTRIBUTING.md)", "CONTRIBUTING")
    pages = r"(?:https?:|#|[\w/]+\.(?:md|png|svg))"
    return re.sub(rf"(?<!!)\[([^\]]+)\]\((?!{pages})[^)]*\)", r"\1", text)


def commands() -> str:
    """Return the reference of the command line, made by typer from the commands themselves."""
    import typer
    from typer.cli import get_docs_for_click

    from equivox.cli.app import app

    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="equivox")
    return get_docs_for_click(obj=command, ctx=context, name="equivox", title="Commands")
