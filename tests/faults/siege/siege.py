"""The siege: every attack at once. Who attacks how hard, and what must hold in the end."""

from __future__ import annotations

import asyncio
from typing import Any

from livewell.settings import Settings
from tests.faults.scenario import Findings, Scale
from tests.faults.siege.attackers import ADDRESSES, Gang, crew
from tests.faults.siege.camp import Camp
from tests.faults.siege.cold import PREFIX

# Connections of each kind at full strength, 500 in all, and what each is told. They come back two
# seconds after they were cut: all of them together ask some hundred times a second, an attack of
# small means.
STRENGTH: dict[str, tuple[int, dict[str, Any]]] = {
    "cookies": (40, {"every_seconds": 0.5}),
    "drips": (120, {"every_seconds": 10}),
    "deaf": (80, {"every_seconds": 0.4, "burst": 2}),
    "chunks": (10, {}),
    "large": (10, {}),
    "hub": (24, {}),
    "cold": (26, {}),
    "silent": (70, {}),
    "half": (60, {}),
    "logins": (40, {"every_seconds": 0.5}),
    "probes": (20, {"every_seconds": 0.5}),
}
AGAIN_SECONDS = 2.0
ARRIVE_SECONDS = 5.0  # until all are there: their own start, on the same two cores, is not what is judged
WITH_KEY = ("hub", "cold")
# The longest that a connection of a kind may be held: the deadlines of head, body and answer are
# 10, 30 and 30 s, and as much again is for a busy machine. That of a deaf one begins with the last
# of its requests, after 40 s.
HELD_SECONDS_MAX = {"silent": 20, "half": 20, "drips": 60, "deaf": 100, "chunks": 10, "large": 10}
RSS_GROWTH_MB_MAX = 100.0
RSS_LATE_GROWTH_MB_MAX = 20.0  # from the first third to the last
LOG_LINES_PER_MINUTE_MAX = 60.0
BUDGET = 6 * int(Settings.model_fields["cold_reads_max"].default)  # unknown keys of one public key in a minute
SESSION_KEYS = 1000


def crews(
    camp: Camp, *, divisor: int = 1, keys: int = SESSION_KEYS, kinds: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Who attacks; a divisor for fewer of them."""
    stored = 2 * STRENGTH["hub"][0] * keys
    camp.store_keys(stored + keys + 100)
    found = []
    for kind, (connections, options) in STRENGTH.items():
        if not kinds or kind in kinds:
            told = options | {"again_seconds": AGAIN_SECONDS, "arrive_seconds": ARRIVE_SECONDS}
            told |= {"keys": keys, "stored": stored} if kind == "hub" else {}
            key = camp.public if kind in WITH_KEY else ""
            found.append(crew(kind, max(1, connections // divisor), key=key, **told))
    return found


async def newcomers(camp: Camp, seconds: float) -> None:
    """People who come in the middle of it, with and without a name."""
    for number in range(3):
        await asyncio.sleep(seconds / 4)
        bearers = [camp.public, camp.site.key().text, camp.site.token(f"late{number}", scope="view subscribe")]
        for bearer, name in zip(bearers, ("public key", "key", "token"), strict=True):
            await camp.honest.newcomer(f"newcomer {number} with a {name}", bearer)


def judge(scale: Scale, findings: Findings, camp: Camp, gang: Gang, *, seconds: float, room: int) -> None:
    """Memory, log and limits; what honest people saw is judged already."""
    rss = camp.process.rss_mb
    third = len(rss) // 3
    growth, late = max(rss) - rss[0], max(rss[-third:]) - max(rss[third // 2 : third + 1])
    findings.check(growth <= RSS_GROWTH_MB_MAX, f"the server grew by {growth:.0f} MB")
    lines, minutes = len(camp.log()), max(1.0, seconds / 60)
    findings.check(lines <= LOG_LINES_PER_MINUTE_MAX * minutes, f"the server logged {lines} lines in {seconds} s")
    followed = gang.seen("hub")["followed"]
    findings.check(followed <= room / 2, f"strangers followed {followed} keys of {room}: more than half")
    known = camp.site.fleet.value("SELECT count(*) FROM livewell.ledger WHERE key LIKE %s", (f"{PREFIX}%",))
    allowed = BUDGET * (int(seconds // 60) + 2)
    findings.check(known <= allowed, f"{known} unknown keys came up, {allowed} are allowed")
    if scale.full:
        named = any(address in line for address in ADDRESSES for line in camp.log())
        findings.check(named, "the log names none of the addresses that attack")
        findings.check(late <= RSS_LATE_GROWTH_MB_MAX, f"memory still grew by {late:.0f} MB at the end")
        for kind, most in HELD_SECONDS_MAX.items():
            held = gang.held_seconds_max(kind)
            findings.check(held <= most, f"{kind}: one was held for {held:.0f} s, {most} are allowed")
    findings.figures |= {
        "rss_late_growth_mb": round(late, 1),
        "unknown_keys": known,
        "by_kind": {one["kind"]: one["seen"] | {"held": one["held_seconds_max"]} for one in gang.crews},
    }
