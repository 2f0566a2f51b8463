"""A fleet that refreshes: workers, the simulated upstream, viewers, and a judge at the end.

The workers are processes with the market's types.

    async with open_refresh_fleet(scale, ttl="2s", limits='rate = "50/s"') as market:
        await market.workers(2)
        await market.watch("quote", market.symbols(10))         viewers; every watched key is looked at all the time (claims)
        await market.simulator.next("html", "nan")              faults, killed workers, a crashed database …
        await market.until_fresh(findings, 20)                  liveness
        ruling = market.judge(findings)                         safety

The oracle is the simulator's log. What the product did is not asked of the product: triggers of the
test's own write down every row that was ever stored and every move of the ledger, with the
transaction that did it, so a wrong value that was soon replaced is found too.
"""

from __future__ import annotations

import asyncio
import time
import tomllib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
from pydantic import SecretStr

from livewell import Livewell, Settings
from livewell.apps.market import TYPES
from livewell.apps.market.simulator.data.prices import Market
from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.oracle.evidence import Evidence
from livewell.apps.market.simulator.oracle.judge import Judge, Stored, calls_above_limit, unfaithful
from livewell.apps.market.simulator.oracle.log import read_events
from livewell.apps.market.simulator.oracle.verdict_check import Claim
from livewell.apps.market.simulator.simulator import Simulator
from livewell.refresh.definition.document import read
from livewell.refresh.reading import Reading
from livewell.refresh.registry.apply import apply
from tests.faults.fleet import Fleet, Worker, open_fleet
from tests.faults.refresh_app import DEADLINE
from tests.faults.scenario import Findings, Scale

COMMAND = ("-m", "livewell.cli", "worker", "tests.faults.refresh_app:app")
CREDENTIAL = "FMP_TEST_KEY"
HOST = "127.0.0.1"
CLAIMS_MAX = 4000
LOOK_SECONDS = 0.1
DOWN_SLACK_SECONDS = 15.0  # a key goes on failing until it is called again; the log knows the restart from then on
# Answers that may move the check time of a key: it was said what is so. An older answer may be the
# first of its key.
CONFIRMING = ("ok", "not_modified", "added_field", "stale_answer", "slow_drip", "unknown_symbol")

TRAIL = """
CREATE TABLE public.stored (n bigserial, xid text DEFAULT pg_current_xact_id()::text, data_type text, key text, row jsonb, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE public.moved (n bigserial, xid text DEFAULT pg_current_xact_id()::text, data_type text, key text, version bigint, source_at timestamptz, checked_at timestamptz, confirmed boolean);
CREATE FUNCTION public.note_stored() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    'BEGIN INSERT INTO public.stored (data_type, key, row) VALUES (TG_TABLE_NAME, NEW.key, to_jsonb(NEW)); RETURN NULL; END';
CREATE FUNCTION public.note_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    'BEGIN INSERT INTO public.moved (data_type, key, version, source_at, checked_at, confirmed)
     VALUES (NEW.data_type, NEW.key, NEW.version, NEW.source_at, NEW.checked_at, OLD.checked_at IS DISTINCT FROM NEW.checked_at); RETURN NULL; END';
CREATE TRIGGER note_moved AFTER UPDATE ON livewell.ledger FOR EACH ROW
    WHEN (OLD.version IS DISTINCT FROM NEW.version OR OLD.checked_at IS DISTINCT FROM NEW.checked_at) EXECUTE FUNCTION public.note_moved()
"""
# A stored row, the ledger's new version and the end of the job are of one transaction, or torn.
TORN = """
SELECT count(*) FILTER (WHERE m.key IS NULL)::integer, count(*) FILTER (WHERE s.key IS NULL)::integer,
       count(*) FILTER (WHERE m.key IS NOT NULL AND NOT EXISTS (
           SELECT FROM livewell.job_history h WHERE h.kind = 'livewell.refresh' AND h.outcome = 'succeeded' AND h.xmin::text = m.xid))::integer
FROM (SELECT DISTINCT xid, data_type, key FROM public.stored) s
FULL JOIN (SELECT DISTINCT ON (data_type, key, version) xid, data_type, key FROM public.moved WHERE version > 0 ORDER BY data_type, key, version, n) m
USING (xid, data_type, key)
"""
STORED = (
    "SELECT s.data_type, s.key, s.row, s.at, m.source_at FROM public.stored s LEFT JOIN public.moved m USING "
    "(xid, data_type, key) ORDER BY s.n"
)
CONFIRMED = "SELECT data_type, key, count(*)::integer FROM public.moved WHERE confirmed GROUP BY 1, 2"
MISCOUNTED = """
SELECT (SELECT coalesce(sum(version), 0) FROM livewell.ledger)::integer
     - (SELECT coalesce(sum(n), 0) FROM livewell.refresh_count WHERE outcome IN ('stored', 'corrected'))::integer
"""
CHECKED = (
    "SELECT data_type, key FROM livewell.ledger WHERE checked_at > %s AND (data_type, key) IN (SELECT * FROM "
    "unnest(%s::text[], %s::text[]))"
)
COUNTED = "SELECT outcome, sum(n)::integer FROM livewell.refresh_count GROUP BY outcome"
VERDICTS = """
SELECT l.data_type, l.key, livewell.verdict(d, l, livewell.now()), livewell.now(), extract(epoch FROM coalesce(l.ttl_override, d.ttl))::float8, extract(epoch FROM d.max_source_age)::float8
FROM livewell.ledger l JOIN livewell.data_type d ON d.name = l.data_type WHERE (l.data_type, l.key) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
"""


@dataclass(slots=True)
class Ruling:
    """What the judge found; everything but the first three should be 0."""

    calls: int = 0
    stored: int = 0  # rows ever written
    confirmed: int = 0  # times that the check time of a key moved
    wrong_values: int = 0  # stored, and never served for that key
    older_over_newer: int = 0
    false_fresh: int = 0  # confirmed more often than anything true was served, or called fresh without it
    false_verdicts: int = 0
    calls_above_limit: int = 0
    torn: int = 0
    miscounted: int = 0  # versions that no counter knows of, or the other way round

    def figures(self) -> dict[str, int]:
        """For the report."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(slots=True)
class RefreshFleet:
    """The fleet, the upstream, the app that reads, and what the viewers watch."""

    fleet: Fleet
    simulator: Simulator
    app: Livewell
    env: dict[str, str]
    ttl: str
    limit: tuple[int, float] | None = None  # calls in so many seconds, if the judge shall count them
    watched: list[tuple[str, str]] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    down: list[tuple[float, float]] = field(
        default_factory=list
    )  # when the simulator was dead, and so could not write down that calls failed

    # ── workers, types, viewers ──

    def start(self, *, env: Mapping[str, str] | None = None, **settings: object) -> Worker:
        """Start a worker process and return at once."""
        return self.fleet.start(env={**self.env, **(env or {})}, command=COMMAND, **settings)

    async def workers(self, n: int, *, env: Mapping[str, str] | None = None, **settings: object) -> list[Worker]:
        """Start n worker processes and wait until each has registered."""
        return await self.fleet.workers(n, env={**self.env, **(env or {})}, command=COMMAND, **settings)

    async def apply(self, name: str, **changes: Any) -> None:
        """Apply a shipped type that goes by age alone and lives as long as the fleet says.

        Changes by table, None takes a value away.
        """
        document = tomllib.loads((TYPES / f"{name}.toml").read_text(), parse_float=Decimal)
        document["type"]["ttl"] = self.ttl
        document["answer"]["rule"] = "age"
        document["answer"].pop("calendar", None)
        for table, values in changes.items():
            document[table] |= values
            document[table] = {option: value for option, value in document[table].items() if value is not None}
        await apply(self.app.database, read(document, f"{name}.toml"), f"{name}.toml")
        self.hurry()
        known = self.fleet.value(
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = %s::regclass", (f"livewell_data.{name}",)
        )
        if not known:
            self.fleet.rows(
                f"CREATE TRIGGER note_stored AFTER INSERT OR UPDATE ON livewell_data.{name} FOR EACH ROW "
                "EXECUTE FUNCTION public.note_stored()"
            )

    async def upstream(self, limits: str = "") -> None:
        """Apply the upstream; limits is TOML."""
        document = {
            "name": "fmp",
            "base_url": self.simulator.url,
            "credential_in": "header:apikey",
            "credentials": [CREDENTIAL],
            "vocabulary": "fmp",
            **tomllib.loads(limits, parse_float=Decimal),
        }
        definition = read({"upstream": document}, "fmp.toml", private_hosts=[HOST])
        await apply(self.app.database, definition, "fmp.toml")
        self.hurry()

    def hurry(self) -> None:
        """Shorten the back-off of retries.

        A test is about what retries bring, not about how long they wait. Applying an upstream or a
        type sets it back.
        """
        self.fleet.rows(
            "UPDATE livewell.queue SET backoff_base_seconds = 0.05, backoff_cap_seconds = 0.05 WHERE name LIKE "
            "'refresh.%%'"
        )

    def symbols(self, n: int) -> list[str]:
        """The first symbols that the simulator knows."""
        places = Market(0, 1000).universe.places
        return sorted(places, key=places.__getitem__)[:n]

    def watch(self, kind: str, keys: Sequence[str], user: str | None = None) -> str:
        """A viewer of these keys; answers the session."""
        session = str(uuid.uuid4())
        self.fleet.rows("SELECT livewell.open_session(%s, %s)", (session, user))
        self.fleet.rows("SELECT livewell.subscribe(%s, %s, %s, %s)", (session, user, [kind] * len(keys), list(keys)))
        self.watched += [(kind, key) for key in keys if (kind, key) not in self.watched]
        self.sessions.append(session)
        return session

    def stay(self) -> None:
        """Every viewer is still there: after five minutes of silence they would not count."""
        self.fleet.rows("UPDATE livewell.viewer_session SET seen_at = livewell.now()")

    async def demand(self, keys: Iterable[str], kind: str = "quote", wait: str = "20s") -> list[Reading]:
        """Readers who want each of these anew, all at once; answers what they got."""
        return await asyncio.gather(*(self.app.get(kind, key, max_age=0, wait=wait) for key in keys))

    # ── what is seen from outside ──

    def fired(self, *answers: str) -> int:
        """How many calls were answered so, by the simulator's log."""
        return sum(event["answer"] in answers for event in self.calls())

    def calls(self) -> list[dict[str, Any]]:
        """Every call, as the simulator wrote it down."""
        return [event for event in read_events(self.simulator.log) if event["event"] == "call"]

    def counts(self) -> Counter[str]:
        """What the product counted, by outcome or reason."""
        return Counter(dict(self.fleet.rows(COUNTED)))

    def look(self) -> dict[tuple[str, str], str]:
        """The verdict of every watched key now; remembered as a claim, for the judge."""
        kinds, keys = [one[0] for one in self.watched], [one[1] for one in self.watched]
        found = {}
        for kind, key, verdict, at, ttl, source_age in self.fleet.rows(VERDICTS, (kinds, keys)):
            found[kind, key] = verdict
            if len(self.claims) < CLAIMS_MAX:
                self.claims.append(Claim(kind, key, verdict, at, ttl, source_age))
        return found

    async def keep_looking(self, enough: asyncio.Event) -> None:
        """Look again and again, whatever the database does."""
        while not enough.is_set():
            with suppress(psycopg.Error):
                self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def until_fired(self, findings: Findings, seconds: float, n: int, *answers: str) -> None:
        """Wait until so many calls were answered so."""
        for _ in range(round(seconds / 0.05)):
            if self.fired(*answers) >= n:
                return
            await asyncio.sleep(0.05)
        findings.check(False, f"{answers} fired {self.fired(*answers)} times within {seconds:g} s, {n} were wanted")

    async def until_fresh(self, findings: Findings, seconds: float, *, anew: bool = False) -> float | None:
        """Liveness: demand that every watched key is seen fresh within so many seconds.

        anew: by a check from now on. Returns how long it took. The keys need not be fresh all at
        one look: a key that is refreshed when it has become stale is stale for a moment.
        """
        kinds, keys = [one[0] for one in self.watched], [one[1] for one in self.watched]
        begun, seen, since = time.monotonic(), set[tuple[str, str]](), None
        while time.monotonic() - begun < seconds:
            with suppress(psycopg.Error):
                if since is None:
                    since = self.fleet.value("SELECT livewell.now()")
                fresh = {place for place, verdict in self.look().items() if verdict in ("fresh", "unverifiable")}
                if anew:
                    fresh &= set(self.fleet.rows(CHECKED, (since, kinds, keys)))
                seen |= fresh
            if len(seen) == len(set(self.watched)):
                return time.monotonic() - begun
            await asyncio.sleep(0.05)
        left = sorted(set(self.watched) - seen)
        findings.check(False, f"{len(left)} watched keys were not fresh within {seconds:g} s: {left[:3]}")
        return None

    async def until_quiet(self, findings: Findings, seconds: float = 30.0) -> None:
        """Wait until nothing is queued or running."""
        if await self.fleet.until("NOT EXISTS (SELECT FROM livewell.job)", seconds) is None:
            left = self.fleet.rows("SELECT unique_key, state::text, last_error FROM livewell.job LIMIT 3")
            findings.check(False, f"jobs are left after {seconds:g} s: {left}")

    @asynccontextmanager
    async def without_upstream(self) -> AsyncIterator[None]:
        """Kill the simulator; it is back afterwards."""
        begun = time.time()
        await self.simulator.kill()
        try:
            yield
        finally:
            await self.simulator.restart()
            self.down.append((begun, time.time() + DOWN_SLACK_SECONDS))

    def _was_down(self, claim: Claim) -> bool:
        """Whether a claim that a key is failing is about calls that nobody wrote down."""
        at = claim.at.timestamp()
        return claim.verdict == "failing" and any(begun <= at <= ended for begun, ended in self.down)

    # ── the judge ──

    def judge(self, findings: Findings) -> Ruling:
        """Safety: judge every row that was ever stored, every verdict and every limit.

        Every row was served for its key, nothing older came over newer, nothing is called fresher
        than it is, no limit was broken, nothing is torn.
        """
        # The database first, the log second: the workers go on, and what they store after this the
        # log may know already.
        stored, confirmed = self.fleet.rows(STORED), self.fleet.rows(CONFIRMED)
        torn, miscounted = self.fleet.rows(TORN)[0], abs(self.fleet.value(MISCOUNTED))
        log, ruling = self.simulator.log, Ruling(torn=sum(torn), miscounted=miscounted, stored=len(stored))
        judge, evidence = Judge(log), Evidence(log)
        findings.check(not unfaithful(log), "the simulator's own answers cannot be made again: it judges nobody")
        findings.check(not any(torn), f"torn: {torn} (rows without ledger, ledger without rows, without a job's end)")
        findings.check(not miscounted, f"{miscounted} versions were not counted, or counted twice")
        ruling.calls = len(self.calls())
        _judge_values(findings, ruling, judge, stored)
        _judge_confirmations(findings, ruling, evidence, confirmed)
        lies = judge.false_verdicts(claim for claim in self.claims if not self._was_down(claim))
        ruling.false_verdicts = len(lies)
        ruling.false_fresh += sum(lie.reason in ("not_served", "too_old", "has_a_time") for lie in lies)
        findings.check(not lies, f"verdicts that the log contradicts: {lies[:3]}")
        if self.limit is not None:
            ruling.calls_above_limit = calls_above_limit(log, *self.limit)
            findings.check(
                not ruling.calls_above_limit, f"{ruling.calls_above_limit} calls above the limit {self.limit}"
            )
        return ruling


def _judge_values(findings: Findings, ruling: Ruling, judge: Judge, rows: Sequence[tuple[Any, ...]]) -> None:
    values = [Stored(kind, key, [row], source_at, at) for kind, key, row, at, source_at in rows]
    wrong = judge.never_served(values)
    ruling.wrong_values = len(wrong)
    findings.check(not wrong, f"stored and never served: {wrong[:3]}")
    newest: dict[tuple[str, str], datetime] = {}
    for kind, key, _, _, source_at in rows:
        if source_at is not None:
            ruling.older_over_newer += source_at < newest.get((kind, key), source_at)
            newest[kind, key] = source_at
    findings.check(not ruling.older_over_newer, f"{ruling.older_over_newer} older values came over newer ones")


def _judge_confirmations(
    findings: Findings, ruling: Ruling, evidence: Evidence, rows: Sequence[tuple[Any, ...]]
) -> None:
    for kind, key, n in rows:
        served = sum(seen.answer in CONFIRMING for seen in evidence.seen(kind, key))
        ruling.confirmed += n
        ruling.false_fresh += max(0, n - served)
        findings.check(n <= served, f"{kind} {key}: confirmed {n} times, and something true was served {served} times")


@asynccontextmanager
async def open_refresh_fleet(
    scale: Scale,
    *,
    types: Sequence[str] = ("quote",),
    ttl: str = "10m",
    limits: str = "breaker = false",
    limit: tuple[int, float] | None = None,
    knobs: Knobs | None = None,
    deadline_seconds: float | None = None,
    secret: str = "test-key-of-the-simulator",  # noqa: S107 - of nobody
    **settings: object,
) -> AsyncIterator[RefreshFleet]:
    """A fleet on a fresh database, with the upstream and these types applied, no worker yet.

    Every look at the watched keys goes on until it is closed.
    """
    log = scale.folder / f"simulator-{uuid.uuid4().hex[:8]}.log"
    given = {"outbound_private_hosts": HOST, **settings}
    async with (
        open_fleet(scale, **given) as fleet,
        Simulator(log, knobs=knobs or Knobs(tick_seconds=1)) as simulator,
    ):
        fleet.rows(TRAIL)
        app = Livewell()
        whole = {"database_url": SecretStr(fleet.dsn), **fleet.settings}
        await app.open(settings=Settings.model_validate(whole))
        env = {CREDENTIAL: secret} | ({DEADLINE: str(deadline_seconds)} if deadline_seconds is not None else {})
        market = RefreshFleet(fleet, simulator, app, env, ttl, limit)
        enough = asyncio.Event()
        looking = asyncio.create_task(market.keep_looking(enough))
        try:
            await market.upstream(limits)
            for name in types:
                await market.apply(name)
            yield market
        finally:
            enough.set()
            await looking
            with suppress(psycopg.Error):
                await app.close()
