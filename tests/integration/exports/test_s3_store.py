"""What only S3 can do wrong (E8, E15)."""

from __future__ import annotations

import asyncio
import logging
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.s3 import S3Store
from livewell.exports.artifacts.s3_address import S3Address, S3Key
from livewell.testing.artifacts.errors import failure, is_silent_about
from livewell.testing.artifacts.parts import PDF, listed, read_all, some_path
from livewell.testing.http import Connection, HttpServer, Request, head_lines
from livewell.testing.processes import ChildProcess, eventually_async
from tests.integration.exports.labs.s3 import KEY, S3Lab

SECRETS = ("canary-bucket", "canary-prefix", KEY.id, KEY.secret.get_secret_value(), "canary-told", "127.0.0.1")
CALLS: dict[str, Callable[[S3Store, str], Any]] = {
    "put": lambda store, path: store.put(path, b"x", content_type=PDF),
    "read": read_all,
    "size": lambda store, path: store.size(path),
    "delete": lambda store, path: store.delete(path),
    "list": lambda store, _: listed(store),
    "check": lambda store, _: store.check(),
}


class Said:
    """What a server that is nobody's store answers, and how often it was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.status = 503
        self.body = b""
        self.headers: list[tuple[str, str]] = []
        self.asked: list[tuple[str, str]] = []

    def error(self, status: int, code: str) -> None:
        self.status = status
        self.body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>canary-told</Message></Error>".encode()

    def answer(self, connection: Connection, request: Request) -> None:
        self.asked.append((request.method, request.target))
        body = b"" if request.method == "HEAD" else self.body
        connection.write(head_lines(self.status, [("Content-Length", str(len(body))), *self.headers]) + b"\r\n" + body)


@pytest.fixture
async def said() -> AsyncIterator[Said]:
    """The server; its port is in `said.port`."""
    said = Said()
    async with HttpServer(said.answer) as server:
        said.port = server.port
        yield said


def store_at(port: int, **options: Any) -> S3Store:
    base = f"http://127.0.0.1:{port}"
    address = S3Address("canary-bucket", "canary-prefix", base, "us-east-1", virtual_host=False, key=KEY)
    return S3Store(address, **{"environment": {}, "request_seconds": 1.0, "total_seconds": 2.0, **options})


REFUSALS = {
    "SlowDown": (503, "unreachable", "busy"),
    "InternalError": (500, "unreachable", "busy"),
    "ExpiredToken": (400, "refused", "expired_credentials"),
    "SignatureDoesNotMatch": (403, "refused", "credentials"),
    "InvalidAccessKeyId": (403, "refused", "credentials"),
    "RequestTimeTooSkewed": (403, "refused", "clock"),
    "AccessDenied": (403, "refused", "permission"),
    "NoSuchBucket": (404, "refused", "bucket"),
    "PermanentRedirect": (301, "refused", "region"),
    "XMinioStorageFull": (507, "full", "quota"),
    "Teapot": (418, "refused", ""),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", REFUSALS)
async def test_what_a_store_refuses_is_told_by_our_own_words(
    code: str, call: str, said: Said, caplog: pytest.LogCaptureFixture
) -> None:
    """Clock, key, bucket, region, quota, overload: each by its name, and nothing of the store's text (E15).

    Also where the first request was a HEAD, whose answer has no body: a bucket that is gone is no
    file that is gone.
    """
    status, reason, detail = REFUSALS[code]
    caplog.set_level(logging.DEBUG)
    said.error(status, code)
    store, path = store_at(said.port), some_path()
    error = await failure(CALLS[call](store, path), code)
    is_silent_about(error, [*SECRETS, path, code, "canary"])
    assert "canary" not in caplog.text
    assert (error.reason, error.detail) == (reason, detail)
    await store.close()


@pytest.mark.parametrize("body", [b"<html>canary-told</html>", b"", b"\xff\xfe", b"{}"])
@pytest.mark.parametrize("call", ["put", "read", "list", "check"])
async def test_what_is_no_store_at_all_is_found_out(call: str, body: bytes, said: Said) -> None:
    """A proxy's page with status 200: no success, and nothing of it in the error."""
    said.status, said.body = 200, body
    if call == "read":
        said.headers = []
    error = None
    try:
        got = await CALLS[call](store_at(said.port), some_path())
    except Exception as caught:  # noqa: BLE001 – what it is, is looked at below
        error = caught
    else:
        assert call in ("read", "list")
        assert got in (b"", [])
    if error is not None:
        is_silent_about(error, SECRETS)
        assert type(error).__name__ == "ArtifactError"


async def test_a_request_is_repeated_a_few_times_and_no_more(said: Said) -> None:
    """Overload is not answered with more load."""
    said.error(503, "SlowDown")
    await failure(store_at(said.port).size(some_path()), "busy")
    assert 2 <= len(said.asked) <= 4


async def test_a_store_that_overwrites_is_found_by_its_check(said: Said) -> None:
    """One that does not know If-None-Match; E7 could not be kept there."""
    kept: dict[str, bytes] = {}

    def answer(connection: Connection, request: Request) -> None:
        name, body, status = request.target, b"", 200
        headers = [("ETag", '"x"'), ("Last-Modified", "Thu, 19 Nov 2026 21:45:00 GMT")]
        if request.method == "PUT":
            kept[name] = request.body
        elif request.method == "DELETE":
            kept.pop(name, None)
        elif name not in kept:
            status = 404
        else:
            body = kept[name]
        length = str(len(body))
        if request.method == "GET" and body:
            status = 206
            headers.append(("Content-Range", f"bytes 0-{len(body) - 1}/{len(body)}"))
        sent = b"" if request.method == "HEAD" else body
        connection.write(head_lines(status, [("Content-Length", length), *headers]) + b"\r\n" + sent)

    async with HttpServer(answer) as server:
        error = await failure(store_at(server.port).check(), "a store that overwrites")
    assert (error.reason, error.detail) == ("refused", "overwrites")
    assert kept == {}


async def test_a_file_that_is_too_large_is_not_gathered(s3_lab: S3Lab) -> None:
    """A file is in memory while it is sent: its size is bounded, also that of a stream without an end."""
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1_000

    store = s3_lab.store(file_bytes_max=10_000)
    for data in (endless(), b"x" * 10_001):
        error = await failure(store.put(some_path(), data, content_type=PDF), "too large")
        assert (error.reason, error.detail) == ("refused", "size")
    assert taken == 11
    assert await s3_lab.there() == []


async def test_a_slow_store_is_waited_for_and_then_given_up(s3_lab: S3Lab) -> None:
    """Slow is slow; slower than the deadline is unreachable."""
    path, patient, hasty = some_path(), s3_lab.store(), s3_lab.store(hasty=True)
    s3_lab.proxy.delay(0.15)
    await patient.put(path, b"x", content_type=PDF)
    assert await read_all(patient, path) == b"x"
    s3_lab.proxy.delay(1.5)
    error = await failure(hasty.size(path), "too slow")
    assert (error.reason, error.detail) == ("unreachable", "timeout")
    is_silent_about(error, s3_lab.secrets)


async def test_a_file_whose_writer_has_gone_is_taken_away_when_it_arrives(s3_lab: S3Lab) -> None:
    """A request cannot be called back; what it did is undone."""
    store, path = s3_lab.store(), some_path()
    s3_lab.proxy.delay(0.4)
    writing = asyncio.create_task(store.put(path, b"x", content_type=PDF))
    await asyncio.sleep(0.2)  # it is on its way, and nothing tells when
    writing.cancel()
    await asyncio.wait([writing])
    assert writing.cancelled()
    await eventually_async(lambda: is_there(s3_lab, path), timeout=20, interval=0.005)
    await eventually_async(lambda: is_gone(s3_lab, path), timeout=20)


async def is_there(lab: S3Lab, path: str) -> bool:
    return path in await lab.there()


async def is_gone(lab: S3Lab, path: str) -> bool:
    return path not in await lab.there()


async def test_a_call_that_was_cancelled_logs_nothing(s3_lab: S3Lab, caplog: pytest.LogCaptureFixture) -> None:
    """The client's error comes later, and asyncio logs what nobody reads: bucket and path (E15)."""
    store = s3_lab.store(hasty=True)
    for turns in range(12):
        for call in ("size", "put", "read"):
            task = asyncio.ensure_future(CALLS[call](store, some_path()))
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.sleep(0.002 * turns)
            task.cancel()
            await asyncio.wait([task])
    del task
    await asyncio.sleep(1.0)  # until what was sent has been answered
    assert "canary" not in caplog.text
    assert caplog.text == ""
    await s3_lab.empty()


async def test_a_link_of_s3_gives_the_file_with_its_name_and_type(s3_lab: S3Lab) -> None:
    """E8: made per click, for an hour at most; ended by deleting the file."""
    store, path = s3_lab.store(), some_path()
    await store.put(path, b"the file", content_type="text/plain")
    url = store.presign(path, 7_200, file_name="Müller.pdf", content_type=PDF)
    assert url is not None
    assert "X-Amz-Expires=3900" in url
    status, headers, body = await asyncio.to_thread(load, url)
    assert (status, body) == (200, b"the file")
    assert headers["content-type"] == PDF
    assert headers["content-disposition"] == "attachment; filename=\"Muller.pdf\"; filename*=UTF-8''M%C3%BCller.pdf"
    assert headers["cache-control"] == "private, no-store"
    await store.delete(path)
    status, _, _ = await asyncio.to_thread(load, url)
    assert status in (403, 404)  # moto says 403


LEAVER = """
import asyncio, sys
from pydantic import SecretStr
from livewell.exports.artifacts.s3 import S3Store
from livewell.exports.artifacts.s3_address import S3Address, S3Key

key = S3Key("a", SecretStr("b"))
address = S3Address("bucket", "", f"http://127.0.0.1:{sys.argv[1]}", "us-east-1", virtual_host=False, key=key)
store = S3Store(address, environment={}, request_seconds=1, total_seconds=2)
path = f"{'0' * 32}/00000000-0000-0000-0000-000000000001/1.pdf"

async def main():
    calls = [asyncio.create_task(store.size(path)) for _ in range(8)]
    if sys.argv[2] == "waits":
        await asyncio.gather(*calls, return_exceptions=True)
    else:
        await asyncio.sleep(0.05)

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["waits", "leaves calls behind"])
async def test_a_process_ends_well_right_after_its_last_call(end: str, said: Said) -> None:
    """The client's own coroutines aborted one process in three here."""
    said.error(404, "NoSuchKey")
    with ChildProcess(["-c", LEAVER, str(said.port), end]) as child:
        assert await asyncio.to_thread(child.wait, 60) == 0, child.describe()


def test_no_link_is_made_with_a_key_that_is_temporary() -> None:
    """It would end with the key, and say that it is good for longer; ours is used instead."""
    address = S3Address("bucket", "", "https://s3.example", "us-east-1", virtual_host=False, key=None)
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"}
    store = S3Store(address, environment=environment)
    assert store.presign(some_path(), 60, file_name="cv.pdf", content_type=PDF) is None


def test_a_virtual_host_is_the_bucket_and_not_a_part_of_the_path() -> None:
    """Amazon's style, and that of endpoints that begin with the bucket."""
    address = S3Address("bucket", "p", "https://bucket.s3.example", "us-east-1", virtual_host=True, key=KEY)
    path = some_path()
    url = S3Store(address, environment={}).presign(path, 60, file_name="cv.pdf", content_type=PDF)
    assert url is not None
    assert (urlsplit(url).netloc, urlsplit(url).path) == ("bucket.s3.example", f"/p/{path}")


async def test_both_styles_of_address_reach_the_bucket(said: Said) -> None:
    """The request line says which."""
    said.error(404, "NoSuchKey")
    port = said.port
    for virtual_host, begins in ((False, "/canary-bucket/canary-prefix/"), (True, "/canary-prefix/")):
        base = f"http://127.0.0.1:{port}"
        address = S3Address("canary-bucket", "canary-prefix", base, "us-east-1", virtual_host=virtual_host, key=KEY)
        await failure(S3Store(address, environment={}).size(some_path()), "not there")
        assert said.asked[-1][1].startswith(begins)


def test_a_wrong_configuration_of_the_client_is_told_without_its_values() -> None:
    """Whatever the library says of it."""
    key = S3Key("canary", SecretStr("canary\n\0"))
    address = S3Address("bucket", "", "https://canary host", "us-east-1", virtual_host=False, key=key)
    try:
        S3Store(address, environment={})
    except ConfigurationError as error:
        is_silent_about(error, ["canary"])


def load(url: str) -> tuple[int, dict[str, str], bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 – loopback
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {}, b""
