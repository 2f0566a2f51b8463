"""Metrics as Prometheus reads them.

Gauges come from the system state, counters and histograms from this process.

    database ──system_state()──▶ gauges ──┐
                                          ├──▶ text
    livewell.telemetry.measures ──▶ counters ───────┘

A gauge is set from the state at the moment of asking, so after a restart the first answer of any
server is right. Every server of a fleet gives the same gauges; ask one, or take max().
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from livewell.capability import offered
from livewell.telemetry import measures
from livewell.telemetry.gauge import Gauge
from livewell.telemetry.system_state import Document

__all__ = ["CONTENT_TYPE", "all_gauges", "process_text", "text"]

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _Asked(Collector):
    """What one request is answered with; without a document only what this process counted."""

    def __init__(self, document: Document | None) -> None:
        self._document = document

    def collect(self) -> Iterator[Metric]:
        """Gauges, then what this process counted."""
        if self._document is not None:
            yield from gauges(self._document)
        yield from _counted()


def text(document: Document) -> bytes:
    """The whole page."""
    return _page(document)


def process_text() -> bytes:
    """What this process counted, and nothing that the database would have to be asked for."""
    return _page(None)


def _page(document: Document | None) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Asked(document))
    return generate_latest(registry)


def all_gauges() -> list[Gauge]:
    """Those of every capability."""
    return [gauge for _, gauges in offered("gauges") for gauge in gauges]


def gauges(document: Document) -> Iterator[GaugeMetricFamily]:
    """The state as gauges; what is not known now has no sample."""
    for gauge in all_gauges():
        family = GaugeMetricFamily(gauge.name, gauge.about, labels=gauge.labels)
        for labels, value in gauge.samples(document):
            if value is not None:
                family.add_metric(list(labels), value)
        yield family


def _counted() -> Iterator[Metric]:
    for counter in measures.COUNTERS:
        counted = CounterMetricFamily(counter.name, counter.about, labels=counter.labels)
        for labels, n in list(counter.values.items()):
            counted.add_metric(labels, n)
        yield counted
    for gauge in measures.GAUGES:
        held = GaugeMetricFamily(gauge.name, gauge.about, labels=gauge.labels)
        for labels, count in list(gauge.values.items()):
            held.add_metric(labels, count())
        yield held
    for histogram in measures.HISTOGRAMS:
        took = HistogramMetricFamily(histogram.name, histogram.about, labels=histogram.labels)
        for labels, (_, total) in list(histogram.values.items()):
            took.add_metric(labels, list(histogram.buckets(labels)), total[0])
        yield took
    began = GaugeMetricFamily(measures.STARTED.name, measures.STARTED.about)
    for n in measures.STARTED.values.values():
        began.add_metric([], n)
    yield began
