"""`livewell demo contacts`: real processes, real kills, and judges that can say no (O9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from livewell.apps.contacts.demo.verdict import Verdict, judge_contacts, judge_events
from livewell.testing.processes import ChildProcess

ANN = [("email", "ann@x.y"), ("phone", "1")]
BOB = [("email", "bob@x.y"), ("phone", "2")]
EMITTED = [("e1", "a", "contact.created"), ("e2", "b", "contact.created"), ("e3", "a", "identity.added")]


def test_it_ends_with_both_verdicts(livewell_dsn: str, tmp_path: Path) -> None:
    """And the faults fired: workers were killed, contacts were merged."""
    command = ["-m", "livewell.cli", "demo", "contacts", "--for", "4", "--json"]
    with ChildProcess(command, env={"TMPDIR": str(tmp_path), "DATABASE_URL": livewell_dsn}, cwd=tmp_path) as child:
        assert child.wait(timeout=150) == 0, child.describe()
        found = json.loads(child.lines("stdout")[-1])
    assert len(child.lines("stdout")) == 1
    assert (found["violations"], found["lies"]) == (0, [])
    assert min(found["calls"], found["merges"], found["kills"]) > 0
    assert found["people"] == found["contacts"]
    assert found["received"] == found["events"] + found["duplicates"]


@pytest.mark.parametrize(
    ("groups", "lies"),
    [
        ([ANN, BOB], 0),
        ([[ANN[0]], [ANN[1]], BOB], 3),  # split: nobody has both, and two have one each
        ([ANN + BOB], 3),  # merged though nobody said so
        ([ANN], 1),  # lost
    ],
)
def test_the_judge_of_contacts_sees_what_is_wrong(groups: list[list[tuple[str, str]]], lies: int) -> None:
    """Split, wrongly merged and lost people."""
    verdict = Verdict()
    judge_contacts([ANN, BOB, [("email", "ANN@X.Y")]], groups, verdict)
    assert len(verdict.lies) == lies


@pytest.mark.parametrize(
    ("received", "lies", "duplicates"),
    [
        ([0, 1, 2], 0, 0),
        ([1, 0, 2], 0, 0),  # of two keys
        ([0, 0, 1, 2, 2], 0, 2),  # the same again, after a kill
        ([2, 1, 0], 1, 0),  # of one key
        ([0, 1], 2, 0),  # lost: the event, and with it the order of its key
    ],
)
def test_the_judge_of_events_sees_what_is_wrong(
    tmp_path: Path, received: list[int], lies: int, duplicates: int
) -> None:
    """Lost events and a wrong order; a duplicate with the same id is none."""
    file = tmp_path / "received"
    lines = [dict(zip(("id", "key", "topic"), EMITTED[place], strict=True)) for place in received]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    verdict = Verdict()
    judge_events(EMITTED, file, verdict)
    assert (len(verdict.lies), verdict.duplicates) == (lies, duplicates)
