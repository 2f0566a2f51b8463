"""A ZIP of ten large files takes no more memory than one of small ones (E9, demand 6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from livewell.testing.processes import ChildProcess

MEMBER_BYTES = 100_000_000
ADDED_BYTES_MAX = 8_000_000


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read from /proc")
def test_ten_files_of_a_hundred_megabytes_add_at_most_eight(tmp_path: Path) -> None:
    """In a process of its own, where nothing else grows."""
    arguments = ["-m", "tests.integration.exports.archive_reader", str(tmp_path), "10", str(MEMBER_BYTES)]
    with ChildProcess(arguments, cwd=Path(__file__).parents[3]) as child:
        assert child.wait(120) == 0, child.describe()
        [said] = [json.loads(line) for line in child.lines("stdout")]
    print(f"{said['added_bytes'] / 1e6:.1f} MB added, {said['length'] / 1e9:.2f} GB in {said['seconds']:.1f} s")
    assert said["length"] == said["said"] > 10 * MEMBER_BYTES
    assert said["added_bytes"] <= ADDED_BYTES_MAX
