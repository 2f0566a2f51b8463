"""S6, R23: the state and the metrics over HTTP.

They agree, also after a restart, and the dashboard asks for what there is.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from livewell.operations.metrics import all_gauges
from livewell.settings import Settings
from tests.sql.operations.test_system_state import random_history
from tests.support.http import Web, in_process
from tests.support.queue_sql import QueueSession

DASHBOARD = Path(__file__).parents[3] / "docs/operations/grafana.json"
NAME = re.compile(r"\blivewell_[a-z0-9_]+")
# R23, word for word, and the gauges or counters that show it.
R23 = {
    "viewers": "livewell_viewers",
    "subscriptions": "livewell_subscriptions",
    "queue depth": "livewell_queue_depth",
    "jobs by state": "livewell_jobs",
    "refreshes per type": "livewell_type_refreshed",
    "warnings per type": "livewell_warnings",
    "throughput": "livewell_queue_done_per_minute",
    "duration of the due check": "livewell_due_check_seconds",
    "rate-limit use": "livewell_limiter_rate_used",
    "quota use": "livewell_budget_used",
    "quota remaining": "livewell_budget_remaining",
    "estimate accuracy": "livewell_type_size_ratio",
    "breaker state": "livewell_limiter_breaker",
    "leases": "livewell_worker_lease_left_seconds",
    "holders": "livewell_singleton_held",
    "start-up time": "livewell_process_startup_seconds",
}

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scraped(web: Web) -> Samples:
    """What Prometheus reads."""
    async with web.as_key("operate") as client:
        answer = await client.get("/v1/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def told(web: Web) -> dict[str, Any]:
    """The JSON."""
    async with web.as_key("operate") as client:
        answer = await client.get("/v1/system/state")
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


async def test_only_operators_see_them(web: Web) -> None:
    """Names of queues, workers and credentials are in there."""
    async with web.as_key("view", "subscribe") as client:
        assert (await client.get("/v1/system/state")).status_code == 403
        assert (await client.get("/v1/metrics")).status_code == 403
    assert (await web.client.get("/v1/metrics")).status_code == 401


async def test_the_state_has_every_part(web: Web) -> None:
    """As livewell_operate, which may read what it needs and no more."""
    document = await told(web)
    parts = {name: value["how"] for name, value in document.items() if isinstance(value, dict)}
    assert {"database", "queue", "limits", "leases", "schedules", "alerts", "refresh"} <= set(parts)
    assert set(parts.values()) == {"exact"}


async def test_gauges_and_state_agree_after_a_restart(
    web: Web, server_logins: dict[str, tuple[str, str]], server_settings: Settings
) -> None:
    """Nothing is remembered by a process: a new one gives the same gauges with its first answer."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    with QueueSession(web.dsn) as session:
        session.declare()
        random_history(session, seed, 150)
        session.limiter(
            "tight", budget_units=1000, budget_unit="bytes", budget_seconds=86400, rate_calls=10, rate_seconds=60
        )
        session.rows("SELECT livewell.observe_alerts('sky', 'P1', '10 minutes', '{roof}', '{it falls}')")
        session.rows(
            "SELECT livewell.declare_schedule('report', 'interval', NULL, NULL, '5 minutes', NULL, 'once', '1 "
            "minute', false, false)"
        )
    before = await scraped(web)
    async with in_process(web.dsn, server_logins, server_settings) as restarted:
        samples, document = await scraped(restarted), await told(restarted)
    for queue in document["queue"]["queues"]:
        for state in ("ready", "delayed", "held", "running"):
            assert value(samples, "livewell_jobs", queue=queue["name"], state=state) == queue[state]
        for reason, n in queue["dead_reasons"].items():
            assert value(samples, "livewell_dead_jobs", queue=queue["name"], reason=reason) == n
        assert value(samples, "livewell_queue_workers", queue=queue["name"]) == queue["workers"]
    [limiter] = document["limits"]["limiters"]
    assert value(samples, "livewell_budget_remaining", limiter="tight", credential="", unit="bytes") == 1000
    assert value(samples, "livewell_limiter_rate_limit", limiter="tight", credential="") == limiter["rate_calls"]
    assert value(samples, "livewell_viewers") == document["refresh"]["viewers"]
    assert value(samples, "livewell_alerts", rule="sky", level="P1", state="fired") == 1
    assert value(samples, "livewell_schedule_late", schedule="report") == 0
    assert {one["name"] for one in document["schedules"]["late"]} == {"schedule.loop"}
    assert value(samples, "livewell_schedule_late", schedule="schedule.loop") == 1
    steady = {
        name
        for name in before
        if name[0] in ("livewell_jobs", "livewell_dead_jobs", "livewell_queue_depth", "livewell_viewers")
    }
    assert {name: samples[name] for name in steady} == {name: before[name] for name in steady}


async def test_requests_are_counted_where_they_are_answered(web: Web) -> None:
    """A refusal counts too; a method that nobody knows is counted as other."""
    first = await scraped(web)
    await web.client.request("BREW", "/v1/types")
    await web.client.get("/v1/types")
    second = await scraped(web)

    def grown(**labels: str) -> float:
        name = ("livewell_process_requests_total", frozenset(labels.items()))
        return second.get(name, 0) - first.get(name, 0)

    assert grown(method="GET", status="401") == 1
    assert grown(method="other", status="401") == 1
    assert grown(method="GET", status="200") == 1  # the first look itself


async def test_every_figure_of_the_mission_is_a_metric(web: Web) -> None:
    """R23 names them; each has a name that is really served."""
    async with web.as_key("operate") as client:
        text = (await client.get("/v1/metrics")).text
    served = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert {what: name for what, name in R23.items() if name not in served} == {}
    assert {gauge.name for gauge in all_gauges()} <= served


async def test_the_dashboard_asks_only_for_metrics_that_are_served(web: Web) -> None:
    """Broken once on purpose by a name that does not exist."""
    async with web.as_key("operate") as client:
        text = (await client.get("/v1/metrics")).text
    served = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    served |= {f"{name}_{part}" for name in served for part in ("bucket", "sum", "count")}
    labels = {gauge.name: set(gauge.labels) for gauge in all_gauges()}
    asked = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    assert len(asked) > 30
    assert [expression for expression in asked if not set(NAME.findall(expression)) <= served] == []
    for expression in asked:
        for group, name in re.findall(r"by \(([a-z, ]+)\) \((livewell_[a-z_]+)", expression):
            assert set(group.split(", ")) <= labels.get(name, set(group.split(", "))), expression
