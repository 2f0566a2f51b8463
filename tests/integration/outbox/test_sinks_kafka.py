"""The Kafka sink on librdkafka's mock cluster: the wire protocol is real, the broker is not."""

from __future__ import annotations

import struct

import pytest
from aiokafka.producer.message_accumulator import MessageBatch

from livewell.errors import ConfigurationError
from livewell.outbox.sink import Verdict
from livewell.testing.sinks import Check, checks
from livewell.testing.sinks.small_relay import made, send
from tests.integration.outbox.labs.kafka import KafkaLab
from tests.integration.outbox.labs.parts import make


@pytest.mark.parametrize("check", checks("network", "login"), ids=lambda check: check.__name__)
async def test_kafka_conforms(check: Check, kafka_lab: KafkaLab) -> None:
    """Every check of the suite; a login is refused by a cluster that speaks none."""
    await check(kafka_lab)


async def test_a_lost_acknowledgement_is_sent_again_under_its_sequence(
    kafka_lab: KafkaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same producer, same epoch, same sequence: a broker knows that it has it. The mock does not look."""
    sent: list[tuple[int, int, int]] = []
    build = MessageBatch.get_data_buffer

    def watched(batch: MessageBatch) -> bytes:
        data = bytes(build(batch))
        sent.append(struct.unpack_from(">qhi", data, 43))  # of the header of a record batch, version 2
        return data

    sink, events = kafka_lab.sink(answer_seconds=10.0), made(5, lanes_=1)
    await send(sink, made(1))
    monkeypatch.setattr(MessageBatch, "get_data_buffer", watched)
    kafka_lab.proxy.reset_after(0, resets_max=1)
    told = await send(sink, events)
    await sink.close()

    assert len(told.ids(Verdict.DELIVERED)) == 5
    assert kafka_lab.struck() == 1
    first = sent[0]
    assert sent[:2] == [first, first]
    assert len(set(sent)) == 5
    assert first[0] >= 0


async def test_a_producer_that_was_given_up_sends_nothing_later(kafka_lab: KafkaLab) -> None:
    """What it still held would overtake its successor; seen failing with stop() alone."""
    sink, events = kafka_lab.sink(answer_seconds=0.5), made(5)
    await send(sink, made(1))
    kafka_lab.stop()
    told = await send(sink, events)
    assert told.away is not None
    kafka_lab.heal()
    await send(sink, made(1))
    await sink.close()
    assert not {one.id for one in await kafka_lab.received()} & {event.id for event in events}


def test_a_login_is_user_and_password() -> None:
    """The value is not shown."""
    with pytest.raises(ConfigurationError, match="the variable SINK_LOGIN must hold user:password") as caught:
        make("kafka", "127.0.0.1:1", {"login": "env:SINK_LOGIN"}, login="only-a-pass")
    assert "only-a-pass" not in str(caught.value)
