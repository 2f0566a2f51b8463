"""The short form of the fault scenarios: its fault fires, and nothing is violated.

`make test` runs the sample below; the others have the mark `campaign`. All of them, short:
`make faults ARGS=--short`, or `make test ARGS="-m campaign tests/faults"`.
"""

import re
import secrets
from pathlib import Path

import pytest

from tests.faults.campaign import names
from tests.faults.scenario import Scale, Scenario, scenarios

# Chosen by seconds and by what no other test does to us: real signals, servers that die, disks that
# are full, sockets that hang, every route with everybody's ids, all attacks at once. What
# docs/guarantees.md names is here.
SAMPLE = {
    "F-A1",
    "F-A2",
    "F-A3",
    "F-A5",
    "F-A6",
    "F-A7",
    "F-A8",
    "F-A10",
    "F-Q17",
    "F-B1",
    "F-B2",
    "F-B4",
    "F-B6",
    "F-B8",
    "F-B11",
    "F-B12",
    "F-B13",
    "F-B15",
    "F-B17",
    "F-B18",
    "F-D21",
    "F-E2",
    "F-E4",
    "F-E9",
    "F-F1",
    "F-F2",
    "F-F3",
    "F-F4",
    "F-F5-http",
    "F-F7",
    "F-F11",
    "F-S10",
}
CODE = re.compile(r"\bF-[A-Z]\d+(?:-[a-z]+)?\b")


def marked(scenario: Scenario) -> object:
    """With the mark of those that only the campaign runs."""
    return pytest.param(scenario, marks=() if scenario.code in SAMPLE else pytest.mark.campaign, id=scenario.code)


@pytest.mark.parametrize("scenario", [marked(scenario) for scenario in scenarios()])
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


def page(name: str) -> str:
    """The text of a page of the documents, wherever it is."""
    [found] = (Path(__file__).parents[2] / "docs").rglob(name)
    return found.read_text()


def test_the_page_names_the_sample() -> None:
    """So that nobody takes for tested by `make test` what only `make faults` runs."""
    [listed] = re.findall(r"^The sample of `make test`: (.*?)\.$", page("faults.md"), re.MULTILINE | re.DOTALL)

    assert set(CODE.findall(listed)) == SAMPLE
    assert {scenario.code for scenario in scenarios()} >= SAMPLE


def test_what_a_promise_names_is_in_the_sample() -> None:
    """docs/guarantees.md says that `make test` runs what it names."""
    named = set(CODE.findall(page("guarantees.md")))

    assert len(named) > 15
    assert named <= SAMPLE
