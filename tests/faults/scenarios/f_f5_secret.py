"""F-F5: the upstream's credential is a secret that exists nowhere else, and it stays secret.

It is sent in a header and then in the query, while everything goes wrong that can.

Afterwards it is looked for in every column of every table, in all that the workers wrote, in what
readers were told, in the simulator's log (which knows it by its hash only), and in the command line
and the statements of the database. It was sent: the simulator accepted it and no other.

That each failure of the client would repeat the address if it were let:
tests/integration/outbound/test_secrets.py.
"""

from __future__ import annotations

import base64
import json
import secrets
from pathlib import Path
from urllib.parse import quote

from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.request import credential_name
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-F5"
TITLE = "the upstream's credential is nowhere but in the call"

SHORT_DEADLINE_SECONDS = 1.0
FAULTS = (
    *("error_500", "reset", "closed", "cut_off", "truncated", "html", "error_message", "invalid_key", "empty_object"),
    *("renamed_field", "huge_body", "gzip_bomb", "not_utf8", "never_answers", "entitlement_symbol"),
)
TABLES = """
SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname IN ('livewell', 'livewell_data', 'public') AND NOT c.relispartition ORDER BY 1
"""


async def run(scale: Scale) -> Findings:
    """Every fault in each place of the credential; then look everywhere."""
    findings = Findings()
    secret = f"canary/{secrets.token_urlsafe(18)}+="  # has what an address would encode
    knobs = Knobs(tick_seconds=1, credentials=(credential_name(secret),), huge_bytes=5_000_000, bomb_bytes=5_000_000)
    told: list[str] = []
    deadline = None if scale.full else SHORT_DEADLINE_SECONDS
    async with open_refresh_fleet(
        scale, types=(), secret=secret, knobs=knobs, deadline_seconds=deadline, log_level="debug"
    ) as market:
        await market.apply("quote", fetch={"batch": None})
        workers = await market.workers(1)
        for place in ("header:apikey", "query:apikey"):
            await market.upstream(f'breaker = false\ncredential_in = "{place}"')
            told += await _suffer(market, findings)
        await market.until_quiet(findings)
        findings.fired = market.fired(*FAULTS)
        findings.check(market.fired("ok") > 0, "no call was accepted: the secret was never sent")
        findings.check(market.fired("no_key") == 0, "a call came without the secret, or with another")
        forms = {
            secret,
            quote(secret, safe=""),
            quote(secret),
            base64.b64encode(secret.encode()).decode(),
            secret[7:31],
        }
        places = {
            name: str(market.fleet.rows(f"SELECT t::text FROM {name} t")) for (name,) in market.fleet.rows(TABLES)
        }
        places["statements"] = str(market.fleet.rows("SELECT query FROM pg_stat_activity"))
        places["simulator's log"] = market.simulator.log.read_text()
        places["readers"] = "\n".join(told)
        for worker in workers:
            places[f"worker {worker.pid}"] = "\n".join(worker.child.lines())
            places[f"command of {worker.pid}"] = _command(worker.pid)
        leaks = {name: n for name, text in places.items() if (n := sum(text.count(form) for form in forms))}
        findings.check(not leaks, f"the secret is in {leaks}")
        findings.check(
            len(places[f"worker {workers[0].pid}"]) > 0, "the worker wrote nothing: there was nothing to look at"
        )
        ruling = market.judge(findings)
        findings.figures = {
            "occurrences": sum(leaks.values()),
            "places_searched": len(places),
            "bytes_searched": sum(map(len, places.values())),
            "failures": dict(market.counts()),
            **ruling.figures(),
        }
    return findings


async def _suffer(market: RefreshFleet, findings: Findings) -> list[str]:
    told = []
    for number, (fault, key) in enumerate(zip(FAULTS, market.symbols(len(FAULTS)), strict=True)):
        await market.simulator.next(fault)
        reading = await market.app.get("quote", key, max_age=0, wait="20s")
        told.append(json.dumps([number, repr(reading), reading.error]))
        await market.until_quiet(findings)
    return told


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
