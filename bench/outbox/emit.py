"""What emitting costs: in a business transaction, and until the sink has the event."""

from __future__ import annotations

import statistics

import psycopg

from bench.children import ask
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.outbox.lab import SYSTEM, Lab, relay

_GAP_SECONDS = (0.03, 0.08)
# The shop, and the table that an outbox made by hand has: the same columns, the same key.
_SHOP = """
CREATE TABLE public.customer (id bigint PRIMARY KEY, name text NOT NULL);
INSERT INTO public.customer SELECT n, 'customer ' || n FROM generate_series(0, 999) AS n;
CREATE TABLE public.article (id bigint PRIMARY KEY, stock integer NOT NULL) WITH (fillfactor = 50);
INSERT INTO public.article SELECT n, 1000000 FROM generate_series(0, 999) AS n;
CREATE TABLE public.purchase (
    id bigint PRIMARY KEY, customer bigint NOT NULL REFERENCES public.customer, placed_at timestamptz NOT NULL
);
CREATE TABLE public.purchase_line (
    purchase bigint REFERENCES public.purchase, line integer, article bigint NOT NULL REFERENCES public.article,
    n integer NOT NULL, PRIMARY KEY (purchase, line)
);
CREATE SEQUENCE public.bench_event_seq;
CREATE TABLE public.bench_event (LIKE livewell.event INCLUDING ALL) PARTITION BY RANGE (day);
CREATE TABLE public.bench_event_all PARTITION OF public.bench_event DEFAULT;
"""


def _transact(lab: Lab) -> Figures:
    with lab.database() as database:
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute(_SHOP)
        database.checkpoint()
        took = ask(SYSTEM, "transact", database.dsn, transactions=lab.sizes.transactions)
    ours, bare = statistics.median(took["emit"]), statistics.median(took["bare"])
    return {"ratio_to_bare": ours / bare, "us": 1e6 * ours, "bare_us": 1e6 * bare}


def _idle(lab: Lab) -> Figures:
    with lab.database() as database, relay(database, sink="noting") as worker:
        worker.tell("go")
        sent = ask(SYSTEM, "send", database.dsn, events=lab.sizes.samples, gap_seconds=_GAP_SECONDS)["sent"]
        worker.wait(lambda: worker.done >= len(sent))
        worker.tell("stop")
        came = worker.answer()["starts"]
    return latency(sent, came)


def latency(sent: dict[str, float], came: dict[str, float]) -> Figures:
    """From the commit to the sink. Every event has to have come."""
    late = [1000 * (came[key] - at) for key, at in sent.items()]
    cuts = statistics.quantiles(late, n=100, method="inclusive") if len(late) > 1 else late * 99
    return {"p50_ms": cuts[49], "p99_ms": cuts[98], "latest_ms": max(late), "samples": len(late)}


LINES: tuple[Line[Lab], ...] = (
    Line(
        "emit",
        "a business transaction with one emit, beside a bare INSERT",
        (Check("emit", "ratio_to_bare", 1.25, at_most=True),),
        lambda lab: [Contender("livewell", lambda: _transact(lab))],
    ),
    Line(
        "idle",
        "from the commit to the sink, idle",
        (Check("idle/p50", "p50_ms", 10.0, at_most=True), Check("idle/p99", "p99_ms", 50.0, at_most=True)),
        lambda lab: [Contender("livewell", lambda: _idle(lab))],
    ),
)
