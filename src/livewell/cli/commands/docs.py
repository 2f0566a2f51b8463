"""livewell docs: read the pages that messages point to, wherever Livewell is installed."""

from __future__ import annotations

import click

from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo
from livewell.operations.manual import all_pages, find_page


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
    path = find_page(name)
    if path is None:
        raise click.UsageError(f"there is no page {page!r}. All pages: livewell docs")
    text = path.read_text(encoding="utf-8")
    if as_json:
        print_json({"page": name}, as_is={"text": text})
    else:
        echo(text, nl=False)
