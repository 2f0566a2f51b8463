"""The market app: Financial Modeling Prep (R27).

types/       its upstream and its data types, as files that `livewell types apply` reads
simulator/   FMP as a process of its own, with faults, limits and a log that proves what was served
demo/        `livewell demo`
"""

from pathlib import Path

TYPES = Path(__file__).parent / "types"


def type_files() -> list[Path]:
    """The upstream's file first, then the types, by name."""
    return sorted(TYPES.glob("*.toml"), key=lambda path: (path.name != "fmp.toml", path.name))
