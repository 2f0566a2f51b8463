"""Spans from enqueue to handler to upstream, for programs that trace with OpenTelemetry.

All other programs pay for one look into a dictionary.

    enqueue (producer) ──job.trace: a W3C traceparent──▶ run (consumer) ──▶ GET https://host (client)

Nothing is imported here: a program that traces has imported opentelemetry.trace and set a tracer
provider, as the SDK does. Spans have names and numbers, never payloads, URLs with their queries, or
errors' texts. An upstream is not told our trace.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from livewell.version import VERSION

NOTHING: AbstractContextManager[Any] = nullcontext()


def span(name: str, kind: str, *, parent: str | None = None, **attributes: str | int) -> AbstractContextManager[Any]:
    """A span around a block: PRODUCER, CONSUMER or CLIENT.

    Below the present one, or below the parent that a job carries.
    """
    tracer = _tracer()
    return NOTHING if tracer is None else _span(tracer, name, kind, parent, attributes)


def on() -> bool:
    """True if a tracer provider is set.

    Hot paths check this first: even no-op spans cost too much at 50,000 a second.
    """
    return _tracer() is not None


def carried() -> str | None:
    """The present span as a job carries it; None when nobody traces."""
    if _tracer() is None:
        return None
    context = sys.modules["opentelemetry.trace"].get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _tracer() -> Any:
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None  # imported by some library, and nobody has said where spans go
    return provider.get_tracer("livewell", VERSION)


@contextmanager
def _span(tracer: Any, name: str, kind: str, parent: str | None, attributes: dict[str, str | int]) -> Iterator[Any]:
    trace = sys.modules["opentelemetry.trace"]
    context = None if parent is None else _remote(trace, parent)
    named = {f"livewell.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(
        name,
        context=context,
        kind=trace.SpanKind[kind],
        attributes=named,
        record_exception=False,
        set_status_on_exception=False,
    ) as begun:
        try:
            yield begun
        except BaseException as error:
            begun.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))  # its text may hold anything
            raise


def _remote(trace: Any, traceparent: str) -> Any:
    """The context a job brought; None, which is the present one, for what is not a traceparent."""
    parts = traceparent.split("-")
    if [len(part) for part in parts] != [2, 32, 16, 2]:
        return None
    try:
        trace_id, span_id, flags = (int(part, 16) for part in parts[1:])
    except ValueError:
        return None
    context = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
    return trace.set_span_in_context(trace.NonRecordingSpan(context))
