"""The short form of every fault scenario: its fault fires, and nothing is violated."""

import secrets
from pathlib import Path

import pytest

from tests.faults.scenario import Scale, Scenario, scenarios


@pytest.mark.parametrize("scenario", list(scenarios()), ids=lambda scenario: scenario.code)
async def test_nothing_is_violated(
    scenario: Scenario, livewell_server: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The fault fired at least once and every invariant held."""
    folder: Path = tmp_path_factory.mktemp(scenario.code)
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    findings = await scenario.run(Scale(full=False, seed=seed, server=livewell_server, folder=folder))
    if findings.skipped is not None:
        pytest.skip(f"{scenario.code} NOT RUN HERE: {findings.skipped}")
    print(findings.figures)
    assert findings.violations == []
    assert findings.fired > 0
