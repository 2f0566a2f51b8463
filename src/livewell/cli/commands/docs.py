"""livewell docs: read the pages that messages point to, wherever Livewell is installed."""

from __future__ import annotations

from pathlib import Path

import click

import livewell
from livewell.capability import capabilities
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo


def root() -> Path:
    """The folder of the pages: inside an installed package, or beside the source in a checkout."""
    package = Path(livewell.__file__).parent
    inside = package / "docs"
    return inside if inside.is_dir() else package.parents[1] / "docs"


def pages(folder: Path) -> dict[str, Path]:
    """What can be read there, as it is named here: `operations/doctor`, `operations/grafana.json`."""
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.suffix in (".md", ".json")}
    return {str(name.with_suffix("") if name.suffix == ".md" else name): found[name] for name in sorted(found)}


def all_pages() -> dict[str, Path]:
    """Ours, and those of capabilities of other packages; ours win."""
    others = (pages(one.docs) for one in capabilities() if one.docs is not None)
    merged = {name: path for found in (*others, pages(root())) for name, path in found.items()}
    return dict(sorted(merged.items()))


@click.command("docs")
@click.argument("page", metavar="[PAGE]", required=False)
@AS_JSON
def docs(*, page: str | None, as_json: bool) -> None:
    """Print a page of the documentation, or list them all.

    \b
    livewell docs operations/doctor
    livewell docs operations/grafana.json > dashboard.json
    """
    if page is None:
        for name in all_pages():
            if as_json:
                print_json({"page": name})
            else:
                echo(name)
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    path = pages(root()).get(name) or all_pages().get(name)
    if path is None:
        raise click.UsageError(f"there is no page {page!r}. All pages: livewell docs")
    text = path.read_text(encoding="utf-8")
    if as_json:
        print_json({"page": name}, as_is={"text": text})
    else:
        echo(text, nl=False)
