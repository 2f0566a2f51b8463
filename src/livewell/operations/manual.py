"""The pages of the documentation, which come with the package: for `livewell docs` and the dashboard."""

from __future__ import annotations

from pathlib import Path

from livewell.capability import capabilities


def root() -> Path:
    """The folder of the pages: inside an installed package, or beside the source in a checkout."""
    package = Path(__file__).parents[1]
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


def find_page(name: str) -> Path | None:
    """One page; only a name that is listed is ever opened."""
    return pages(root()).get(name) or all_pages().get(name)
