"""livewell docs: read the pages that messages point to, wherever Livewell is installed."""

from __future__ import annotations

from pathlib import Path

import click

import livewell
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo


def root() -> Path:
    """The folder of the pages: inside an installed package, or beside the source in a checkout."""
    package = Path(livewell.__file__).parent
    inside = package / "docs"
    return inside if inside.is_dir() else package.parents[1] / "docs"


def pages() -> list[str]:
    """What can be read, as it is named here: `operations/doctor`, `operations/grafana.json`."""
    folder = root()
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".md", ".json"))
    return sorted(str(path.with_suffix("") if path.suffix == ".md" else path) for path in found)


@click.command("docs")
@click.argument("page", metavar="[PAGE]", required=False)
@AS_JSON
def docs(*, page: str | None, as_json: bool) -> None:
    """Print a page of the documentation, or list them all.

    \b
    livewell docs operations/doctor
    livewell docs operations/grafana.json > dashboard.json
    """
    known = pages()
    if page is None:
        for name in known:
            if as_json:
                print_json({"page": name})
            else:
                echo(name)
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in known:
        raise click.UsageError(f"there is no page {page!r}. All pages: livewell docs")
    path = root() / name
    text = (path if path.suffix else path.with_suffix(".md")).read_text(encoding="utf-8")
    if as_json:
        print_json({"page": name}, as_is={"text": text})
    else:
        echo(text, nl=False)
