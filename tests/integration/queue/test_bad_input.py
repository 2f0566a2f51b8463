"""Bad input: a clear error with the value and what is allowed, and nothing half-written."""

from datetime import datetime
from typing import Any

import pytest

from livewell import Livewell, LivewellError, Settings
from livewell.errors import ConfigurationError, InvalidOption, InvalidPayload, UnknownQueue, UnknownTask
from tests.integration.queue.bench import Bench, Open


@pytest.fixture
async def bench(open_app: Open) -> Bench:
    app = Livewell(Settings())

    @app.task(name="take")
    async def take(value: Any = None) -> None: ...

    return await open_app(app)


async def refuses(
    bench: Bench, error: type[LivewellError], words: str, *, value: object = None, **options: Any
) -> None:
    handle = bench.app._handles["take"]
    with pytest.raises(error, match=words):
        await handle.options(**options).enqueue(value=value)
    assert await bench.scalar("SELECT count(*) FROM livewell.job") == 0


async def test_an_unknown_task_names_those_there_are(bench: Bench) -> None:
    """The message lists the declared tasks."""
    with pytest.raises(UnknownTask, match="'nope' is not declared; there are: take"):
        await bench.app.enqueue("nope")


async def test_an_argument_that_does_not_fit_is_named(bench: Bench) -> None:
    """Unknown arguments are refused before anything is written."""
    with pytest.raises(InvalidPayload, match="surprise: Extra inputs are not permitted"):
        await bench.app.enqueue("take", surprise=1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x" * 300_000, "the payload has 300,012 bytes; 262,144 are allowed"),
        ("a\x00b", "NUL"),
        ({"k\x00": [1]}, "NUL"),
        ("\ud800", "surrogate"),
        (float("nan"), "JSON"),
        (float("inf"), "JSON"),
    ],
    ids=["too large", "NUL", "NUL in a key", "lone surrogate", "NaN", "infinity"],
)
async def test_a_payload_postgres_could_not_store_is_refused(bench: Bench, value: object, words: str) -> None:
    """The error says why; nothing reaches the database."""
    await refuses(bench, InvalidPayload, words, value=value)


async def test_a_text_that_only_looks_like_an_escaped_nul_is_fine(bench: Bench) -> None:
    """The six characters \\u0000 are not the character NUL."""
    enqueued = await bench.app.enqueue("take", value="\\u0000")
    assert await bench.scalar("SELECT payload ->> 'value' FROM livewell.job WHERE id = %s", enqueued.id) == "\\u0000"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": -1}, "delay -1: allowed are seconds from 0 on"),
        ({"delay": "soon"}, "delay 'soon'"),
        ({"delay": float("nan")}, "delay nan"),
        ({"delay": "400d"}, "allowed are 0 to 31622400"),
        ({"run_at": datetime(2026, 1, 1)}, "it needs a time zone"),  # noqa: DTZ001 - the point of the test
        ({"priority": 101}, "priority 101: allowed are -100 to 100"),
        ({"priority": 10**9}, "priority 1000000000"),
        ({"lane": 2}, "lane 2: allowed are 0"),
        ({"attempts": 0}, "attempts 0: allowed are 1 to 100"),
        ({"unique_key": ""}, "unique key ''"),
        ({"unique_key": "x" * 513}, "1 to 512 bytes"),
        ({"unique_key": "\ud800"}, "1 to 512 bytes of UTF-8"),
        ({"group": "a\x00"}, "group 'a"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_an_option_outside_its_bounds_is_refused(bench: Bench, options: dict[str, Any], words: str) -> None:
    """The value and what is allowed are in the message."""
    with pytest.raises(InvalidOption, match=words):
        await bench.app._handles["take"].options(**options).enqueue(value=1)
    assert await bench.scalar("SELECT count(*) FROM livewell.job") == 0


async def test_sql_that_goes_round_the_client_meets_the_same_bounds(bench: Bench) -> None:
    """The database refuses unknown queues, bad priorities and large payloads by itself, whole calls at a time."""
    good = '{"id": 1, "queue": "default", "kind": "take", "payload": {}}'
    for bad, error in (
        ('{"id": 2, "queue": "typo", "kind": "take", "payload": {}}', UnknownQueue),
        ('{"id": 2, "queue": "default", "kind": "take", "payload": {}, "priority": 101}', InvalidOption),
        ('{"id": 2, "queue": "default", "kind": "", "payload": {}}', InvalidOption),
        ('{"id": 2, "queue": "default", "kind": "take", "payload": "' + "x" * 262_144 + '"}', InvalidPayload),
        ('{"id": 2, "queue": "default", "kind": "take", "payload": "\\u0000"}', InvalidPayload),
    ):
        with pytest.raises(error):
            await bench.app.database.call("SELECT * FROM livewell.enqueue_jobs(%s::jsonb)", (f"[{good}, {bad}]",))
    assert await bench.scalar("SELECT count(*) FROM livewell.job") == 0


def test_a_declaration_that_cannot_work_is_refused_at_once() -> None:
    """Before anything runs: variable arguments, a task twice, a bad queue policy, a bad timeout."""
    app = Livewell(Settings())

    @app.task(name="once")
    async def once() -> None: ...

    async def many(*values: int) -> None: ...

    async def plain() -> None: ...

    with pytest.raises(ConfigurationError, match="cannot be stored by name"):
        app.task()(many)
    with pytest.raises(ConfigurationError, match="declared twice"):
        app.task(name="once")(plain)
    with pytest.raises(ConfigurationError, match="attempts 0"):
        app.queue("mail", attempts=0)
    with pytest.raises(InvalidOption, match="timeout 'never'"):
        app.task(timeout="never", name="t")(plain)


async def test_using_an_app_that_is_not_open_says_so() -> None:
    """The message gives the remedy."""
    app = Livewell(Settings())

    @app.task()
    async def take() -> None: ...

    with pytest.raises(LivewellError, match="async with app"):
        await take.enqueue()


async def test_an_enqueue_with_a_reserved_id_can_be_sent_again(bench: Bench) -> None:
    """The second call finds the first one's job, also when that has already ended."""
    (job_id,) = await bench.app.reserve_ids()
    handle = bench.app._handles["take"].options(id=job_id)
    await handle.enqueue(value=1)
    await handle.enqueue(value=1)
    assert await bench.scalar("SELECT count(*) FROM livewell.job") == 1
    await bench.app.admin.cancel(job_id)
    await handle.enqueue(value=1)
    assert await bench.scalar("SELECT count(*) FROM livewell.job") == 0
