"""A bucket of moto's server, which runs in a process of its own on a loopback port.

What it cannot show stands in docs/reference/artifact_stores.md.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from livewell.exports.artifacts.s3 import S3Store
from livewell.exports.artifacts.s3_address import S3Address, S3Key
from livewell.testing.processes import ChildProcess, free_port
from livewell.testing.proxy import TcpProxy

KEY = S3Key("CANARYKEYID", SecretStr("canary-secret-of-the-store"))
_MISSING = "moto's server or obstore is missing; pip install obstore 'moto[s3]' flask flask-cors"
_SERVER = "import sys; from moto.server import main; main(sys.argv[1:])"


@contextmanager
def s3_server(folder: Path) -> Iterator[int]:
    """The server; skips loudly where the wheel is not there."""
    if any(find_spec(name) is None for name in ("moto", "flask", "flask_cors", "botocore", "obstore")):
        with warnings.catch_warnings():
            warnings.simplefilter("always")  # shown at the end of the run, and not an error of it
            warnings.warn(f"S3 IS NOT TESTED: {_MISSING}", stacklevel=1)
        pytest.skip(_MISSING)
    port = free_port()
    with ChildProcess(["-c", _SERVER, "-H", "127.0.0.1", "-p", str(port)], cwd=folder, program=sys.executable) as child:
        child.wait_for("Running on", timeout=60)
        yield port


class S3Lab:
    """One bucket; its stores go through the proxy, and what looks into it does not."""

    is_remote = True

    def __init__(self, proxy: TcpProxy, port: int) -> None:
        self.proxy = proxy
        self.bucket = f"canary-bucket-{uuid.uuid4().hex[:12]}"
        self.prefix = "canary-prefix/exports"
        self.address = self._address(proxy.port)
        self.secrets: Sequence[str] = (
            "canary-bucket",
            "canary-prefix",
            KEY.id,
            KEY.secret.get_secret_value(),
            str(proxy.port),
            "127.0.0.1",
        )
        self._direct = S3Store(self._address(port), environment={})
        self._client = _client(port)
        self._stores: list[S3Store] = []

    def _address(self, port: int) -> S3Address:
        base = f"http://127.0.0.1:{port}"
        return S3Address(self.bucket, self.prefix, base, "us-east-1", virtual_host=False, key=KEY)

    async def make_bucket(self) -> None:
        """Past the proxy."""
        await asyncio.to_thread(self._client.create_bucket, Bucket=self.bucket)

    def store(self, *, hasty: bool = False, **options: Any) -> S3Store:
        """Through the proxy."""
        seconds = {"request_seconds": 0.4, "total_seconds": 0.8} if hasty else {}
        store = S3Store(self.address, **{"environment": {}, **seconds, **options})
        self._stores.append(store)
        return store

    async def there(self) -> list[str]:
        """Every object, and every upload that was begun and not ended."""

        def look() -> list[str]:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
            keys = [one["Key"] for page in pages for one in page.get("Contents", ())]
            uploads = self._client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", ())
            return [key.removeprefix(f"{self.prefix}/") for key in (*keys, *(one["Key"] for one in uploads))]

        return await asyncio.to_thread(look)

    async def fill(self, paths: Sequence[str]) -> None:
        """Past the proxy, some at a time."""
        for start in range(0, len(paths), 20):
            part = paths[start : start + 20]
            await asyncio.gather(*(self._direct.put(path, b"x", content_type="text/plain") for path in part))

    async def empty(self) -> None:
        """A thousand at a time."""
        keys = [{"Key": f"{self.prefix}/{path}"} for path in await self.there()]
        for start in range(0, len(keys), 1_000):
            part = {"Objects": keys[start : start + 1_000]}
            await asyncio.to_thread(self._client.delete_objects, Bucket=self.bucket, Delete=part)

    async def content_type(self, path: str) -> str | None:
        """As the bucket has it."""
        found = await asyncio.to_thread(self._client.head_object, Bucket=self.bucket, Key=f"{self.prefix}/{path}")
        return str(found["ContentType"])

    def stop(self) -> None:
        """Nobody listens."""
        self.proxy.refuse()
        self.proxy.reset()

    def freeze(self) -> None:
        """A network that is half open."""
        self.proxy.freeze()

    def cut_after(self, answer_bytes: int) -> None:
        """Once for each call, so that a repeat may succeed."""
        self.proxy.reset_after(answer_bytes, resets_max=1)

    def heal(self) -> None:
        """As in the beginning."""
        self.proxy.heal()

    def struck(self) -> int:
        """As the proxy counted."""
        return sum(self.proxy.counts.fired.values())

    async def close(self) -> None:
        """Every store."""
        for store in (self._direct, *self._stores):
            await store.close()


def _client(port: int) -> Any:
    """botocore's own, which looks into the bucket independently of what is tested."""
    return (
        import_module("botocore.session")
        .Session()
        .create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id=KEY.id,
            aws_secret_access_key=KEY.secret.get_secret_value(),
        )
    )
