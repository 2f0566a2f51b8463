"""F-S4: clients that ask for files and never read the answers (finding H4).

They come on more connections than the server works on at once. No key.

Judged: nobody honest is refused; in the full form also that a client that takes nothing is ended
within SEND_SECONDS_MAX.

0.6.0, short form (30 connections, all with ten requests together): 121 of 201 honest requests were
answered 503, /healthz among them, until the attackers went.
"""

from __future__ import annotations

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import withstand
from tests.faults.siege.attackers import crew
from tests.faults.siege.deaf import REQUESTS_MAX

CODE = "F-S4"
TITLE = "clients that never read"

SEND_SECONDS_MAX = 45.0  # after the last request: an answer has 30 s to be taken, and a busy machine 15 more


async def run(scale: Scale) -> Findings:
    """Attack from eight addresses, with up to 100 requests on each connection.

    They are sent ten together or one after another. The short form has fewer places: 230 × 80
    answers that fill buffers take longer than it lasts.
    """
    findings = Findings()
    places, pause = scale.pick(24, 200), scale.pick(5, 20) / 100
    crews = [crew("deaf", places * 5 // 8, every_seconds=pause, burst=burst) for burst in (10, 1)]
    outcome = await withstand(scale, findings, crews, seconds=scale.pick(14, 90), requests_max=places)
    held = outcome.gang.held_seconds_max()
    allowed = REQUESTS_MAX * pause + SEND_SECONDS_MAX
    findings.check(held <= allowed, f"one that took nothing was held for {held:.0f} s, {allowed:g} are allowed")
    return findings
