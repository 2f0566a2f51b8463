"""The line of the benchmark about the system state runs, on tiny numbers.

Nothing here looks at how fast it was.
"""

from __future__ import annotations

from pathlib import Path

from bench import report, runner, server
from bench.operations.lab import Lab
from bench.operations.sizes import Sizes
from bench.operations.state import LINES


def test_the_state_is_measured(tmp_path: Path) -> None:
    """What the state says is compared with what there is, in every look."""
    with server.start() as started:
        lab = Lab(started, Sizes(sessions=50, keys=100, checks=1), tmp_path, lambda _: None)
        measured, failed = runner.run(lab, LINES, 1)
    assert failed == {}
    assert set(report.report(LINES, measured, {})["met"]) == {"state"}
