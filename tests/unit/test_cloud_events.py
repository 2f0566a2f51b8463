"""CloudEvents in binary mode: the SDK of CloudEvents reads what we write, attribute by attribute."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from cloudevents.core.bindings import amqp, http, kafka
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from hypothesis import strategies as st

from livewell.outbox.event import Event
from livewell.outbox.sinks.cloud_events import (
    amqp_headers,
    document,
    http_headers,
    kafka_headers,
    nats_headers,
    percent_encoded,
)
from livewell.testing.sinks.small_relay import made

[PLAIN] = made(1)
BARE = replace(PLAIN, key=None, tenant="", trace=None)
REPLAYED = replace(PLAIN, replay=True)
EVENTS = pytest.mark.parametrize("event", [PLAIN, BARE, REPLAYED], ids=["plain", "bare", "replayed"])


def said(event: Event) -> dict[str, Any]:
    """The attributes as the SDK gives them: the time is an instant."""
    attributes: dict[str, Any] = dict(event.attributes())
    return {**attributes, "time": datetime.fromisoformat(attributes["time"])}


@EVENTS
def test_http_round_trip(event: Event) -> None:
    """Headers ce-…, and content-type."""
    read = http.from_binary(http.HTTPMessage(http_headers(event), event.payload.encode()), JSONFormat())
    assert read.get_attributes() == said(event)
    assert read.get_data() == json.loads(event.payload)


@EVENTS
def test_kafka_round_trip(event: Event) -> None:
    """Headers ce_…, and the key is the partition key."""
    key = None if event.key is None else event.key.encode()
    read = kafka.from_binary(kafka.KafkaMessage(dict(kafka_headers(event)), key, event.payload.encode()), JSONFormat())
    assert read.get_attributes() == said(event)
    assert read.get_data() == json.loads(event.payload)


@EVENTS
def test_amqp_round_trip(event: Event) -> None:
    """Headers cloudEvents_…, and a property for the content type."""
    properties = {"content-type": event.attributes()["datacontenttype"]}
    message = amqp.AMQPMessage(properties, dict(amqp_headers(event)), event.payload.encode())
    read = amqp.from_binary(message, JSONFormat())
    assert read.get_attributes() == said(event)
    assert read.get_data() == json.loads(event.payload)


@EVENTS
def test_nats_has_the_content_type_as_any_attribute(event: Event) -> None:
    """The NATS binding, 3.1.3: no header without the prefix. The rest is as in HTTP, so the SDK can read it."""
    headers = nats_headers(event)
    assert headers["ce-datacontenttype"] == "application/json"
    assert [name for name in headers if not name.startswith("ce-")] == []
    read = http.from_binary(http.HTTPMessage(headers, event.payload.encode()), JSONFormat())
    assert read.get_attributes() == said(event)


@EVENTS
def test_a_document_is_structured_mode(event: Event) -> None:
    """One JSON object, and the payload in it letter by letter."""
    read = JSONFormat().read(None, document(event))
    assert read.get_attributes() == said(event)
    assert event.payload.encode() in document(event)


def test_the_example_of_the_specification() -> None:
    """HTTP binding 3.1.3.2: "Euro € 😀" is encoded so."""
    assert percent_encoded("Euro € 😀") == "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert percent_encoded('100% "sure"') == "100%25%20%22sure%22"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_is_read_back_and_is_printable_ascii(text: str) -> None:
    """Nothing can end a header line."""
    encoded = percent_encoded(text)
    assert all("!" <= character <= "~" for character in encoded)
    message = http.HTTPMessage({**http_headers(PLAIN), "ce-subject": encoded}, b"{}")
    assert http.from_binary(message, JSONFormat()).get_attributes()["subject"] == text
