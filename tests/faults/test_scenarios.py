"""The short form of the fault scenarios: its fault fires, and nothing is violated."""

import secrets
from pathlib import Path

import pytest

from tests.faults.campaign import names
from tests.faults.scenario import Scale, Scenario, scenarios

# Each starts a market of its own, ten seconds and more: here a sample is enough, the campaign runs them all.
CAMPAIGN_ONLY = {
    "F-D3",
    "F-D4",
    "F-D5",
    "F-D9",
    "F-D11",
    "F-D12",
    "F-D13",
    "F-D14",
    "F-D18",
    "F-B1-refresh",
    "F-B8-refresh",
    "F-C1",
    "F-C2",
    "F-C3",
    "F-C1-schedule",
    "F-C2-schedule",
    "F-C3-schedule",
    "F-A1-refresh",
}
HERE = [scenario for scenario in scenarios() if scenario.code not in CAMPAIGN_ONLY]


@pytest.mark.parametrize("scenario", HERE, ids=lambda scenario: scenario.code)
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


def test_a_family_is_asked_for_by_its_letter() -> None:
    """`make faults ARGS="F-S"` runs F-S1 and all that follow."""
    family = {scenario.code for scenario in scenarios() if "F-S" in names(scenario)}

    assert {"F-S1", "F-S5"} <= family
    assert all(code.startswith("F-S") for code in family)
