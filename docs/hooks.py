"""Pages of the site that are written elsewhere: the README, the changelog, metrics' cards, notebooks, and the commands.

A hook of mkdocs (`mkdocs.yml`); nothing is fetched.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
METRICS = ("ntvd", "numbers", "spoken_stereoset", "genres", "concept_associations")
NOTEBOOKS = ("first_look", "paper_table")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that have no file in `docs/`."""
    pages = {
        "index.md": from_docs((ROOT / "README.md").read_text("utf-8")),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text("utf-8"),
        "commands.md": commands(),
        **{f"metrics/{name}.md": (ROOT / "metrics" / name / "README.md").read_text("utf-8") for name in METRICS},
    }
    notebooks = {name: content for notebook in NOTEBOOKS for name, content in from_notebook(notebook).items()}
    for name, content in {**pages, **notebooks}.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write links that lead out of `docs/` as the names of those files; links to notebooks lead to their pages."""
    markdown = re.sub(r"(\]\([\w/.]+)\.ipynb\)", r"\1.md)", markdown)
    folder = PurePosixPath(page.file.src_uri).parent

    def inside(link: re.Match[str]) -> str:
        leads_out = posixpath.normpath(folder / link[2]).startswith("..")
        return link[1] if leads_out else link[0]

    return re.sub(r"\[([^\]]+)\]\(((?:\.\./)+[^)]*)\)", inside, markdown)


def from_docs(readme: str) -> str:
    """Return the README as a page of `docs/`: its links start there, those to other files become plain words."""
    text = re.sub(r"\]\(docs/", "](", readme)
    text = text.replace("](CHANGELOG.md)", "](changelog.md)")
    text = re.sub(r"\[(CONTRIBUTING|SECURITY)\]\(\1\.md\)", r"\1", text)
    pages = r"(?:https?:|#|[\w/]+\.(?:md|ipynb|png|svg)\b)"
    return re.sub(rf"(?<!!)\[([^\]]+)\]\((?!{pages})[^)]*\)", r"\1", text)


def from_notebook(name: str) -> dict[str, str | bytes]:
    """Return the page of an executed notebook and its pictures, by their paths in the site."""
    from nbconvert import MarkdownExporter

    body, resources = MarkdownExporter().from_filename(str(ROOT / "docs" / "examples" / f"{name}.ipynb"))
    body = re.sub(r"<style scoped>.*?</style>\n?", "", body, flags=re.DOTALL)
    body = body.replace('<table border="1" class="dataframe">', "<table>")
    body = body.replace("![png](", f"![The figure that this cell draws]({name}_")
    title, _, rest = body.partition("\n")
    page = f'{title}\n\n<a href="{name}.ipynb" download>Download this notebook</a>\n{rest}'
    pictures = {f"examples/{name}_{file}": content for file, content in resources["outputs"].items()}
    return {f"examples/{name}.md": page, **pictures}


def commands() -> str:
    """Return the reference of the command line, made by typer from the commands themselves."""
    import typer
    from typer.cli import get_docs_for_click

    from equivox.cli.app import app

    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="equivox")
    return get_docs_for_click(obj=command, ctx=context, name="equivox", title="Commands")
