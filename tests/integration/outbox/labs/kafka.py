"""librdkafka's mock cluster: the real wire protocol, and no broker's disk behind it.

It gives producers their numbers, and does not look at sequences: what a producer sends again is
there twice. A real broker would drop it.

A Kafka client connects to the addresses that the cluster names, not only to those it was given. The
mock names itself, so the lab leads connections of sinks to the proxy where they are made.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import aiokafka.client
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from livewell.outbox.sink import Sink
from livewell.testing.proxy import TcpProxy
from livewell.testing.sinks import ProxiedLab, Received
from tests.integration.outbox.labs.parts import PASSWORD, WRONG, make

_READ_SECONDS_MAX = 20


@contextlib.contextmanager
def mock_cluster() -> Iterator[tuple[str, int]]:
    """A cluster of one broker; gives its host and port. It lives as long as the producer that made it."""
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    brokers = owner.list_topics(timeout=20).brokers
    [broker] = brokers.values()
    yield broker.host, broker.port
    owner.flush(1)


def led_through(proxy: TcpProxy, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lead every connection of aiokafka to the broker's port to the proxy."""
    create = aiokafka.client.create_conn

    async def create_conn(host: str, wanted: int, **options: Any) -> Any:
        return await create(host, proxy.port if wanted == port else wanted, **options)

    monkeypatch.setattr(aiokafka.client, "create_conn", create_conn)


class KafkaLab(ProxiedLab):
    """One topic."""

    secret = PASSWORD
    mock_repeats_max = 60  # it knows producers, and not their sequences

    def __init__(self, proxy: TcpProxy, host: str, port: int) -> None:
        super().__init__(proxy)
        self.topic = f"t{uuid.uuid4().hex}"
        self._direct = f"{host}:{port}"

    def sink(self, **options: object) -> Sink:
        """Through the proxy."""
        given: dict[str, object] = {
            "topic": self.topic,
            "event_bytes_max": self.event_bytes_max,
            "answer_seconds": 2.0,
            "connect_seconds": 3.0,
            **options,
        }
        return make("kafka", f"127.0.0.1:{self.proxy.port}", given, login=f"relay:{WRONG}-{PASSWORD}")

    def stranger(self) -> Sink:
        """With a login, which the mock does not speak: what is seen is a broker that refuses."""
        return self.sink(login="env:SINK_LOGIN", mechanism="PLAIN")

    async def received(self) -> list[Received]:
        """Every partition from its beginning, past the proxy, by another library than the sink's."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> list[Received]:
        settings = {"bootstrap.servers": self._direct, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
        reader = Consumer({**settings, "log_level": 0})
        try:
            numbers = reader.list_topics(self.topic, timeout=_READ_SECONDS_MAX).topics[self.topic].partitions
            found: list[Received] = []
            for number in numbers:
                place = TopicPartition(self.topic, number)
                low, high = reader.get_watermark_offsets(place, timeout=_READ_SECONDS_MAX)
                reader.assign([TopicPartition(self.topic, number, low)])
                for _ in range(low, high):
                    message = reader.poll(_READ_SECONDS_MAX)
                    assert message is not None
                    assert message.error() is None
                    found.append(_received(message))
            return found
        finally:
            reader.close()


def _received(message: Any) -> Received:
    headers = dict(message.headers())
    key = None if message.key() is None else message.key().decode()
    return Received(headers["ce_id"].decode(), message.value().decode(), key)
