"""CloudEvents 1.0 in binary mode: the payload is the body, everything else stands in headers.

    binding   header        value                     datacontenttype
    HTTP      ce-id         percent-encoded           content-type
    NATS      ce-id         percent-encoded           ce-datacontenttype, like any attribute
    Kafka     ce_id         UTF-8 bytes               content-type
    AMQP      cloudEvents_id   text                   the property content_type

Pure. Percent-encoded are the space, the quotation mark, the percent sign, and all that is not
printable ASCII (HTTP binding 3.1.3.2; the NATS binding refers to it).
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from livewell.outbox.event import Event

CONTENT_TYPE_ATTRIBUTE = "datacontenttype"

_PLAIN = re.compile(r"[!#$&-~]*")
_ENCODED = re.compile(r"[^!#$&-~]")


def percent_encoded(value: str) -> str:
    """An attribute's value as it stands in a header of HTTP or NATS."""
    if _PLAIN.fullmatch(value):
        return value
    return _ENCODED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), value)


def http_headers(event: Event) -> dict[str, str]:
    """Headers of a request; the body is the payload."""
    return {
        "content-type" if name == CONTENT_TYPE_ATTRIBUTE else f"ce-{name}": percent_encoded(value)
        for name, value in event.attributes().items()
    }


def nats_headers(event: Event) -> dict[str, str]:
    """Headers of a NATS message."""
    return {f"ce-{name}": percent_encoded(value) for name, value in event.attributes().items()}


def kafka_headers(event: Event) -> list[tuple[str, bytes]]:
    """Headers of a Kafka record."""
    return [
        ("content-type" if name == CONTENT_TYPE_ATTRIBUTE else f"ce_{name}", value.encode())
        for name, value in event.attributes().items()
    ]


def amqp_headers(event: Event) -> dict[str, str]:
    """Headers of an AMQP message; its content type is a property of its own."""
    return {
        f"cloudEvents_{name}": value for name, value in event.attributes().items() if name != CONTENT_TYPE_ATTRIBUTE
    }


def document(event: Event) -> bytes:
    """The event as one JSON document: structured mode, with the payload letter by letter as data."""
    attributes: dict[str, Any] = dict(event.attributes())
    return orjson.dumps(attributes)[:-1] + b',"data":' + event.payload.encode() + b"}"
