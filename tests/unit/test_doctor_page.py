"""The doctor's page has every finding, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FINDING = re.compile(
    r'Finding\(\s*"([a-z_0-9]+)"|^\s+"((?:upstream|quota)_[a-z0-9]+)",$|"(role_missing|schema_drift|schema)"',
    re.MULTILINE,
)


def test_every_finding_is_on_the_page_and_has_a_test() -> None:
    """docs/operations/doctor.md is what an operator reads at night."""
    checks = [*(ROOT / "src/livewell/operations/doctor").glob("*.py"), *(ROOT / "src/livewell").glob("**/doctor.py")]
    source = "\n".join(path.read_text() for path in checks)
    words = {word for match in FINDING.findall(source) for word in match if word}
    page = set(re.findall(r"^\| `([a-z_0-9]+)` \|", (ROOT / "docs/operations/doctor.md").read_text(), re.MULTILINE))
    tests = "\n".join(path.read_text() for path in (ROOT / "tests/integration/operations").glob("test_doctor*.py"))
    assert len(words) > 25
    assert words == page
    assert [word for word in sorted(words) if f'"{word}"' not in tests] == []
