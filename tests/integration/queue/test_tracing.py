"""R23: spans from enqueue to handler to upstream, when somebody traces; nothing otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from livewell import Livewell
from livewell.model import JobState
from livewell.outbound import Outbound
from livewell.telemetry import tracing
from livewell.testing import FakeUpstream
from tests.integration.queue.bench import Open


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """A tracer provider as the SDK makes it, for this test alone."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


async def test_a_job_continues_the_trace_of_whoever_enqueued_it(open_app: Open, spans: InMemorySpanExporter) -> None:
    """Producer, consumer and what the handler does are one trace.

    An error is named by its type alone.
    """
    app = Livewell()

    @app.task(attempts=1)
    async def greet(name: str) -> None:
        with tracing.span("inside", "CLIENT"):
            raise ValueError(f"a secret about {name}")

    bench = await open_app(app)
    async with bench.working():
        enqueued = await greet.enqueue(name="ann")
        await bench.until(enqueued.id, JobState.FAILED)
    by_kind = {span.kind: span for span in spans.get_finished_spans()}
    enqueue, run, inside = (
        by_kind[kind] for kind in (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER, trace.SpanKind.CLIENT)
    )
    assert run.parent is not None
    assert inside.parent is not None
    assert {span.context.trace_id for span in (enqueue, run, inside)} == {enqueue.context.trace_id}
    assert (run.parent.span_id, inside.parent.span_id) == (enqueue.context.span_id, run.context.span_id)
    assert run.status.description == "ValueError"
    assert "secret" not in "".join(span.to_json() for span in spans.get_finished_spans())


async def test_a_call_to_an_upstream_is_a_span_that_shows_no_query(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    """And the upstream is not told our trace."""
    async with (
        FakeUpstream(tmp_path) as upstream,
        Outbound(allowed_hosts=[], private_hosts=["127.0.0.1"]) as outbound,
    ):
        await outbound.get(f"{upstream.url}/quote?symbol=AAPL&apikey=hidden", body_bytes_max=10_000)
    [span] = spans.get_finished_spans()
    assert span.name.startswith("GET http://127.0.0.1")
    assert "hidden" not in span.to_json()


def test_without_a_provider_there_is_no_span_and_no_trace() -> None:
    """The SDK may be installed, and nobody has said where spans go."""
    with tracing.span("nothing", "CLIENT") as span:
        assert span is None
    assert tracing.carried() is None


@pytest.mark.parametrize("given", ["", "x", "00-zz-11-01", "00-" + "g" * 32 + "-" + "1" * 16 + "-01"])
def test_a_trace_that_is_none_is_passed_over(spans: InMemorySpanExporter, given: str) -> None:
    """The column may hold anything."""
    with tracing.span("run", "CONSUMER", parent=given):
        assert tracing.carried() is not None
    assert spans.get_finished_spans()[0].parent is None
