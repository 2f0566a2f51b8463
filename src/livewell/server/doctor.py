"""Is somebody hammering at the server's gate?

Servers count what they refuse, once a minute, as warnings without addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

from livewell.finding import Check, Finding, Patient

_MINUTES = 15
_MINUTES_MIN = 3  # refused in so many of them: a single minute is no siege
# What ordinary clients do, too: silence of browsers that connect ahead, a key that was mistyped, a
# client in a hurry.
_ORDINARY = ("silent", "unknown_caller", "too_often")
_ORDINARY_MIN = 10
_REFUSED = """
SELECT w.what, sum(w.n)::bigint AS minutes, (array_agg(w.sample ORDER BY w.last_at DESC))[1] AS sample
FROM livewell.warning w WHERE w.place = 'gate' AND w.last_at > livewell.now() - %s * interval '1 minute'
GROUP BY w.what ORDER BY w.what
"""
_WORDS = {
    "address_connections": "connections of an address that had its share",
    "all_connections": "connections, because all were taken",
    "silent": "connections that said nothing",
    "slow_head": "requests whose head did not come in time",
    "long_head": "requests whose head was too long",
    "chunked_body": "bodies without a length",
    "pipelined": "requests sent before the answer to the one before",
    "not_http": "what was no HTTP",
    "slow_body": "bodies that did not come in time",
    "large_body": "bodies that were too large",
    "slow_answer": "clients that did not take their answer",
    "too_often": "requests of clients that ask too often",
    "unknown_caller": "requests without a good key or token",
    "busy": "requests, because all places were taken",
}


async def hammered(patient: Patient) -> Sequence[Finding]:
    """Kinds of refusals that go on."""
    rows = await patient.database.call(_REFUSED, (_MINUTES,))
    return [
        Finding(
            "hammered",
            kind,
            f"Servers refused {_WORDS.get(kind, kind)} in {minutes} minutes of the last hour; lately: {sample}.",
            "Somebody is hammering at the gate, or a client is broken. Others are served: every bound has a "
            "share for each client.",
            "look for the worst address in the server's log (refused at the gate), and block it at the proxy: "
            "livewell docs howto/face_the_internet",
        )
        for kind, minutes, sample in rows
        if minutes >= (_ORDINARY_MIN if kind in _ORDINARY else _MINUTES_MIN)
    ]


CHECKS: tuple[Check, ...] = (hammered,)
