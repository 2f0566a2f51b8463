"""The judge of refreshing fleets.

It finds nothing where nothing is wrong, and every sabotage where something is.
"""

from __future__ import annotations

from pathlib import Path

from tests.faults.refresh_fleet import RefreshFleet, Ruling, open_refresh_fleet
from tests.faults.scenario import Findings, Scale

# what is done behind the product's back → the figures that must show it
SABOTAGE = {
    "UPDATE livewell_data.quote SET price = price + 1 WHERE key = 'AAPL'": {"wrong_values", "torn"},
    "UPDATE livewell.ledger SET checked_at = checked_at + interval '1 second' WHERE key = 'AAPL'": {"false_fresh"},
    "UPDATE livewell.ledger SET version = version + 1 WHERE key = 'AAPL'": {"torn", "miscounted"},
    "UPDATE livewell.refresh_count SET n = n - 1 WHERE outcome = 'stored'": {"miscounted"},
}
OLDER = """
WITH back AS (UPDATE livewell.ledger SET source_at = source_at - interval '1 hour', version = version + 1 WHERE key = 'AAPL' RETURNING key)
UPDATE livewell_data.quote q SET timestamp = timestamp - 3600 FROM back WHERE q.key = back.key
"""


async def test_every_sabotage_is_found(livewell_server: str, tmp_path: Path) -> None:
    """A wrong value, an older one, a stamp of freshness, a torn write, a wrong counter.

    Each by its own figure, and nothing before.
    """
    scale = Scale(full=False, seed=1, server=livewell_server, folder=tmp_path)
    findings = Findings()
    async with open_refresh_fleet(scale, ttl="10m") as market:
        await market.workers(1)
        market.watch("quote", ["AAPL", "MSFT"])
        await market.until_fresh(findings, 60)
        await market.until_quiet(findings)
        assert _found(market.judge(findings)) == set()
        assert findings.violations == []
        for statement, figures in {**SABOTAGE, OLDER: {"older_over_newer"}}.items():
            found, said = _sabotaged(market, statement)
            assert figures <= found, (statement, found)
            assert said, statement


def _sabotaged(market: RefreshFleet, statement: str) -> tuple[set[str], list[str]]:
    """What the judge finds inside a transaction that is rolled back."""
    findings = Findings()
    market.fleet.rows("BEGIN")
    try:
        market.fleet.rows(statement)
        return _found(market.judge(findings)), findings.violations
    finally:
        market.fleet.rows("ROLLBACK")


def _found(ruling: Ruling) -> set[str]:
    return {name for name, n in ruling.figures().items() if n and name not in ("calls", "stored", "confirmed")}
