"""The market app: Financial Modeling Prep out of the box (R27), and a simulator of it. types/ holds
its upstream and its types as files.
"""

from pathlib import Path

TYPES = Path(__file__).parent / "types"


def type_files() -> list[Path]:
    """The upstream's file first, then the types, by name."""
    return sorted(TYPES.glob("*.toml"), key=lambda path: (path.name != "fmp.toml", path.name))
