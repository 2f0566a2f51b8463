"""Options in, a sink out; or an error that says what to write instead, and shows no secret."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from livewell.errors import ConfigurationError
from livewell.outbox.sinks import registry
from livewell.outbox.sinks.kind import SinkContext
from livewell.outbox.sinks.registry import BUILT_IN, SinkOptions, find_kind, kinds, make_sink
from tests.integration.capability.conftest import write_distribution

SECRET = "s3cret-path-of-mine"  # noqa: S105 - it is nobody's
ENVIRONMENT = {
    "HOOK": f"https://hooks.example/{SECRET}",
    "KEY": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "NATS": f"nats://relay:{SECRET}@nats.example:4222",
    "KAFKA": "kafka.example:9092",
    "RABBIT": f"amqps://relay:{SECRET}@rabbit.example/",
    "REDIS": f"rediss://relay:{SECRET}@redis.example:6379/0",
    "SHORT": "whsec_MTIz",
    "EMPTY": "  ",
}
CONTEXT = SinkContext(ENVIRONMENT)


def refusal(kind: str, address: str | None = None, **options: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        make_sink(SinkOptions(kind, address, options), CONTEXT)
    assert SECRET not in f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"
    return str(caught.value)


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    """The list is closed, but for other packages."""
    assert (
        "sink kind 'natz' is unknown; there are: file, kafka, nats, null, rabbitmq, redis, tasks, webhook"
        in refusal("natz")
    )


@pytest.mark.parametrize(
    ("kind", "address", "options"),
    [
        ("nats", "env:NATS", {}),
        ("kafka", "env:KAFKA", {}),
        ("rabbitmq", "env:RABBIT", {"exchange": "events"}),
        ("redis", "env:REDIS", {"stream_max": 1000}),
        ("webhook", "env:HOOK", {"secret": "env:KEY"}),
    ],
)
def test_a_sink_is_made_without_a_connection_and_shows_no_secret(
    kind: str, address: str, options: dict[str, object]
) -> None:
    """Neither its repr nor any of its fields that are printed."""
    declared = SinkOptions(kind, address, options)
    sink = make_sink(declared, CONTEXT)
    assert SECRET not in f"{sink!r}{vars(sink)!r}{declared!r}{CONTEXT!r}"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"at_once": 0}, "option at_once is 0: Input should be greater than or equal to 1"),
        ({"at_once": "many"}, "option at_once is 'many': Input should be a valid integer"),
        ({"at_once": True}, "option at_once is True: Input should be a valid integer"),
        ({"colour": SECRET}, "option colour is unknown; allowed are: answer_seconds, at_once, connect_seconds"),
        ({"subject": "a b"}, "option subject is 'a b': String should match pattern"),
        ({"credentials": SECRET}, "option credentials: write env:NAME"),
    ],
)
def test_a_wrong_option_is_named_with_its_value_and_what_is_allowed(options: dict[str, object], words: str) -> None:
    """But for values that may be secrets."""
    assert words in refusal("nats", "env:NATS", **options)


def test_a_missing_option_is_named() -> None:
    """A webhook is signed."""
    assert "option secret is missing" in refusal("webhook", "env:HOOK")


@pytest.mark.parametrize(
    "address", [f"nats://relay:{SECRET}@nats.example", SECRET, "", None, "env:", "env:A B", "file:/etc/passwd"]
)
def test_a_literal_address_is_refused_unseen(address: str | None) -> None:
    """It would stand in tables and logs."""
    assert "sink of kind nats: address: write env:NAME" in refusal("nats", address)


@pytest.mark.parametrize("variable", ["NOT_THERE", "EMPTY"])
def test_a_variable_that_is_not_set_is_named(variable: str) -> None:
    """With where to set it."""
    said = refusal("nats", f"env:{variable}")
    assert f"the environment variable {variable} is not set; set it where the worker is started" in said


def test_a_kind_without_an_address_takes_none() -> None:
    """Something was meant with it."""
    assert "this kind has none; leave it out" in refusal("null", "env:NATS")


@pytest.mark.parametrize("variable", ["SHORT", "HOOK"])
def test_a_key_for_signing_is_long_enough_and_base64(variable: str) -> None:
    """With the command that makes one."""
    assert "make one with: echo whsec_$(openssl rand -base64 32)" in refusal(
        "webhook", "env:HOOK", secret=f"env:{variable}"
    )


@pytest.mark.parametrize(
    ("kind", "extra"),
    [("nats", "nats"), ("kafka", "kafka"), ("rabbitmq", "rabbitmq"), ("redis", "redis"), ("webhook", "webhooks")],
)
def test_a_missing_extra_is_refused_with_its_command(kind: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an ImportError in the middle of the night."""

    module = find_kind(kind)  # imported before its library is gone

    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(registry, "find_kind", lambda _: module)
    monkeypatch.setattr(importlib, "import_module", missing)
    variable = {"nats": "NATS", "kafka": "KAFKA", "rabbitmq": "RABBIT", "redis": "REDIS", "webhook": "HOOK"}[kind]
    options = {"secret": "env:KEY"} if kind == "webhook" else {}
    assert f"install it with: pip install 'livewell[{extra}]'" in refusal(kind, f"env:{variable}", **options)


def test_no_client_library_is_loaded_before_a_sink_needs_it() -> None:
    """A worker without the extras starts: every module of sinks, and none of their libraries."""
    modules = "".join(f"import livewell.outbox.sinks.{kind}\n" for kind in BUILT_IN)
    source = (
        f"import sys\n{modules}"
        "wanted = {'nats', 'aiokafka', 'aio_pika', 'aiormq', 'redis', 'standardwebhooks'}\n"
        "print(sorted(wanted & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


TOY = """
from livewell.outbox.sink import DELIVERED
from livewell.outbox.sinks.kind import SinkKind
from livewell.outbox.sinks.options import Options

class ToyOptions(Options):
    loud: bool = False

class ToySink:
    dedupes = False
    event_bytes_max = None
    def __init__(self, parts):
        self.loud = parts.options.loud
    async def open(self): ...
    async def close(self): ...
    async def send(self, events, settle):
        for event in events:
            settle(event, DELIVERED)

KIND = SinkKind(options=ToyOptions, make=ToySink, has_address=False)
WRONG = object()
"""

Offer = Callable[[str, str], None]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Install a package that offers a kind."""
    (tmp_path / "toy_sink.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toy_sink", raising=False)

    def install(package: str, entry: str) -> None:
        write_distribution(tmp_path, package, {"toy": entry}, group="livewell.sinks")

    return install


def test_a_package_offers_a_kind(offer: Offer) -> None:
    """By entry point: its options are checked like ours."""
    offer("toy-sinks", "toy_sink:KIND")
    assert kinds()[-1] == "toy"
    sink = make_sink(SinkOptions("toy", options={"loud": True}), CONTEXT)
    assert vars(sink) == {"loud": True}
    assert "option size is unknown; allowed are: loud" in refusal("toy", size=1)


def test_a_package_that_is_broken_is_named(offer: Offer) -> None:
    """With the command that removes it."""
    offer("toy-sinks", "toy_sink:NOTHING")
    assert "cannot be loaded: AttributeError" in (said := refusal("toy"))
    assert "pip uninstall toy-sinks" in said


def test_what_is_no_kind_is_refused(offer: Offer) -> None:
    """Its type is named."""
    offer("toy-sinks", "toy_sink:WRONG")
    assert "is of type object, not a livewell.outbox.sinks.kind.SinkKind" in refusal("toy")


def test_two_packages_cannot_offer_the_same_kind(offer: Offer) -> None:
    """Which one is meant nobody knows."""
    offer("toy-sinks", "toy_sink:KIND")
    offer("other-toys", "toy_sink:KIND")
    assert "offered by other-toys and toy-sinks" in refusal("toy")
