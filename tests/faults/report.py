"""Turn the newest line per code of faults.jsonl into a table: `python -m tests.faults.report`.

The table stands in docs/reference/evidence/faults.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FIGURES_SHOWN = 4


def table(lines: list[str]) -> str:
    """One row per code: what was done to it, how often, and what came of it."""
    newest: dict[str, dict[str, Any]] = {}
    for line in lines:
        run = json.loads(line)
        if run["full"] and run["skipped"] is None:
            newest[run["code"]] = run
    rows = [_row(newest[code]) for code in sorted(newest, key=_order)]
    return "\n".join(["| code | fault | fired | violations | figures |", "|---|---|---|---|---|", *rows])


def _row(run: dict[str, Any]) -> str:
    figures = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in list(run["figures"].items())[:FIGURES_SHOWN]
    )
    return f"| {run['code']} | {run['title']} | {run['fired']:,} | {len(run['violations'])} | {figures} |"


def _order(code: str) -> tuple[str, int, str]:
    """F-B2 before F-B10, and F-A1-refresh after F-A1."""
    family, _, variant = code[2:].partition("-")
    return family[0], int(family[1:]), variant


if __name__ == "__main__":
    print(table(Path(sys.argv[1] if len(sys.argv) > 1 else "faults.jsonl").read_text().splitlines()))
