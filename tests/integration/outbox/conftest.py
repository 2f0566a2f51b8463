"""Receivers for sinks: each server starts once in a process, when its first test asks for it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from livewell.testing.proxy import TcpProxy
from tests.integration.outbox.labs.kafka import KafkaLab, led_through, mock_cluster
from tests.integration.outbox.labs.nats import NatsLab, nats_server
from tests.integration.outbox.labs.rabbitmq import RabbitLab, rabbit_server
from tests.integration.outbox.labs.redis import RedisLab, redis_server


@pytest.fixture(scope="session")
def nats_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nats_server(tmp_path_factory.mktemp("nats")) as port:
        yield port


@pytest.fixture
async def nats_lab(nats_port: int) -> AsyncIterator[NatsLab]:
    async with TcpProxy("127.0.0.1", nats_port) as proxy:
        lab = NatsLab(proxy, nats_port)
        await lab.make_stream()
        yield lab


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with redis_server(tmp_path_factory.mktemp("redis")) as port:
        yield port


@pytest.fixture
async def redis_lab(redis_port: int) -> AsyncIterator[RedisLab]:
    async with TcpProxy("127.0.0.1", redis_port) as proxy:
        yield RedisLab(proxy, redis_port)


@pytest.fixture(scope="session")
def rabbit_port() -> Iterator[int]:
    # Not in pytest's folder: only its owner may enter that, and the broker runs as another account.
    with tempfile.TemporaryDirectory(prefix="livewell-rabbit-") as folder, rabbit_server(Path(folder)) as port:
        yield port


@pytest.fixture
async def rabbit_lab(rabbit_port: int) -> AsyncIterator[RabbitLab]:
    async with TcpProxy("127.0.0.1", rabbit_port) as proxy:
        lab = RabbitLab(proxy, rabbit_port)
        await lab.make_queue()
        yield lab


@pytest.fixture(scope="session")
def kafka_address() -> Iterator[tuple[str, int]]:
    with mock_cluster() as address:
        yield address


@pytest.fixture
async def kafka_lab(kafka_address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KafkaLab]:
    host, port = kafka_address
    async with TcpProxy(host, port) as proxy:
        led_through(proxy, port, monkeypatch)
        yield KafkaLab(proxy, host, port)
