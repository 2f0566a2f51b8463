"""A store in a bucket of any S3-compatible service.

A file is one PUT with If-None-Match: it is there when all of it is there, and no other PUT can take
its place. Therefore a file is in memory while it is sent, and `file_bytes_max` bounds it.

A PUT whose answer was lost may have been done. It is sent again, and a store that has the file then
says so; each PUT carries a number of its own among the object's metadata, by which we see that the
file is ours. One whose caller has gone is undone when it ends. Only if the network stays broken
nobody knows: the row that says "writing" is there for that, and whoever cleans up deletes the path.

Every request has a deadline, and all its attempts together have one, too. A process that ends waits
for those that run, so it ends by the second of them at the latest.
"""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.paths import check_prefix, is_path, split_path
from livewell.exports.artifacts.probe import probe
from livewell.exports.artifacts.s3_address import S3Address
from livewell.exports.artifacts.s3_failures import read_failure
from livewell.exports.artifacts.s3_links import LINK_SECONDS_MAX, presigned_url
from livewell.exports.artifacts.store import PIECE_BYTES_MAX, ArtifactError
from livewell.exports.artifacts.threads import Threads
from livewell.exports.downloads import content_disposition

_CONNECT_SECONDS = 5.0
_RETRIES_MAX = 3
_LIST_PAGE = 1_000
_THREADS_MAX = 16
_LOOK_SECONDS = 5.0  # how long a PUT without an answer looks whether it was done
_WRITER = "livewell-put"  # the metadata that names one PUT


class S3Store:
    """Objects of one bucket, below one prefix.

    request_seconds   one request, with its body
    total_seconds     one request and all its repeats
    file_bytes_max    a larger file is refused
    """

    def __init__(
        self,
        address: S3Address,
        *,
        environment: Mapping[str, str] | None = None,
        request_seconds: float = 20.0,
        total_seconds: float = 40.0,
        file_bytes_max: int = 500_000_000,
    ) -> None:
        self._address = address
        self._file_bytes_max = file_bytes_max
        self._obstore = _library()
        self._threads = Threads(_THREADS_MAX, seconds=total_seconds, read_failure=read_failure)
        make = partial(self._make_client, os.environ if environment is None else environment)
        self._client = make(request_seconds, total_seconds - request_seconds, _RETRIES_MAX)
        self._looker = make(min(_LOOK_SECONDS, request_seconds), 0.0, 0)

    def _make_client(
        self, environment: Mapping[str, str], request_seconds: float, repeat_seconds: float, retries_max: int
    ) -> Any:
        address, key = self._address, self._address.key
        config: dict[str, object] = {
            "region": address.region,
            "endpoint": address.base,
            "virtual_hosted_style_request": address.virtual_host,
            "disable_bulk_delete": True,  # not every store knows it
            "conditional_put": "etag",
        }
        if key is not None:
            config |= {"access_key_id": key.id, "secret_access_key": key.secret.get_secret_value()}
        elif environment.get("AWS_ACCESS_KEY_ID"):
            config |= _temporary(environment)
        try:
            return self._obstore.store.S3Store(
                address.bucket,
                prefix=address.prefix or None,
                config=config,
                client_options={
                    "allow_http": address.is_plain_http,
                    "timeout": timedelta(seconds=request_seconds),
                    "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, request_seconds)),
                },
                retry_config={
                    "max_retries": retries_max,
                    "retry_timeout": timedelta(seconds=repeat_seconds),
                    "backoff": {
                        "init_backoff": timedelta(milliseconds=100),
                        "max_backoff": timedelta(seconds=2),
                        "base": 2,
                    },
                },
            )
        except Exception:  # noqa: BLE001 – whatever it is, its text may hold the secret
            problem = "the S3 client did not take its configuration; look at the variables that begin with AWS_"
        raise ConfigurationError(problem)

    async def put(self, path: str, data: bytes | AsyncIterable[bytes], *, content_type: str) -> None:
        """See ArtifactStore. The content type is kept: links of S3 answer with it."""
        split_path(path)
        body = await self._gather(data)
        await self._threads.run(
            partial(self._put, path, body, content_type), late=partial(self._obstore.delete, self._client, path)
        )

    def _put(self, path: str, body: bytes, content_type: str) -> None:
        """In a thread, so that what is undone for a caller who has gone is all of it."""
        writer = secrets.token_hex(16)
        options = {"attributes": {"Content-Type": content_type, _WRITER: writer}}
        try:
            self._obstore.put(self._client, path, body, mode="create", use_multipart=False, **options)
        except Exception as error:  # noqa: BLE001 – the client's own, and what else its library raises
            failure = read_failure(error)
        else:
            return
        may_be_ours = failure.reason in ("already_there", "unreachable") and failure.detail != "busy"
        if not may_be_ours or not self._is_ours(path, writer):
            raise failure

    async def _gather(self, data: bytes | AsyncIterable[bytes]) -> bytes:
        pieces, size = [], 0
        async for piece in _once(data) if isinstance(data, bytes) else data:
            size += len(piece)
            if size > self._file_bytes_max:
                raise ArtifactError("refused", "size")
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _is_ours(self, path: str, writer: str) -> bool:
        """True if the file that is there came by this very call, whose first answer was lost."""
        with suppress(Exception):
            found = self._obstore.get(self._looker, path, options={"head": True})
            return bool(found.attributes.get(_WRITER) == writer)
        return False

    async def read(self, path: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """See ArtifactStore. One request for each piece: no connection waits for a client."""
        size = await self.size(path)
        return self._pieces(path, start, size if end is None else min(end, size))

    async def _pieces(self, path: str, start: int, end: int) -> AsyncIterator[bytes]:
        while start < end:
            length = min(end - start, PIECE_BYTES_MAX)
            get = partial(self._obstore.get_range, self._client, path, start=start, length=length)
            piece = bytes(await self._threads.run(get))
            if len(piece) != length:
                raise ArtifactError("broken")
            start += length
            yield piece

    async def size(self, path: str) -> int:
        """See ArtifactStore."""
        split_path(path)
        try:
            return int((await self._threads.run(partial(self._obstore.head, self._client, path)))["size"])
        except ArtifactError as error:
            if error.reason not in ("not_there", "refused"):
                raise
            failure = error
        raise await self._explain(path, failure)

    async def _explain(self, path: str, failure: ArtifactError) -> ArtifactError:
        """What a refused HEAD means: its answer has no body, that of GET says why.

        A bucket that is gone must not look like a file that is gone: its row would be forgotten.
        """
        try:
            await self._threads.run(partial(self._obstore.get_range, self._client, path, start=0, length=1))
        except ArtifactError as error:
            return error
        return failure

    async def delete(self, path: str) -> bool:
        """See ArtifactStore. S3 does not say whether it was there, so it is asked first."""
        try:
            await self.size(path)
        except ArtifactError as error:
            if error.reason != "not_there":
                raise
            return False
        try:
            await self._threads.run(partial(self._obstore.delete, self._client, path))
        except ArtifactError as error:
            if error.reason != "not_there":  # some stores say so; another was faster
                raise
            return False
        return True

    async def list(self, prefix: str = "", after: str = "") -> AsyncIterator[str]:
        """See ArtifactStore. Objects of other names are no artifacts."""
        look = partial(self._obstore.list, offset=after or None, chunk_size=_LIST_PAGE)
        pages = iter(await self._threads.run(partial(look, self._client, check_prefix(prefix) or None)))
        while page := await self._threads.run(lambda: next(pages, None)):
            for path in (str(one["path"]) for one in page):
                if is_path(path):
                    yield path

    async def check(self) -> None:
        """See ArtifactStore."""
        await probe(self)

    def presign(self, path: str, seconds: int, *, file_name: str, content_type: str) -> str | None:
        """See ArtifactStore. None where our key is temporary: the link would end with it."""
        split_path(path)
        key = self._address.key
        if key is None:
            return None
        return presigned_url(
            self._address,
            key,
            path,
            now=datetime.now(UTC),  # of the signature: the store compares it with its own clock, we never do
            seconds=max(1, min(seconds, LINK_SECONDS_MAX)),
            answer={
                "response-cache-control": "private, no-store",
                "response-content-disposition": content_disposition(file_name),
                "response-content-type": content_type,
            },
        )

    async def close(self) -> None:
        """Connections end with the client; what is under way still ends by its deadline."""
        self._threads.close()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _temporary(environment: Mapping[str, str]) -> dict[str, object]:
    token = environment.get("AWS_SESSION_TOKEN") or environment.get("AWS_TOKEN")
    return {
        "access_key_id": environment.get("AWS_ACCESS_KEY_ID"),
        "secret_access_key": environment.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": token,
    }


def _library() -> Any:
    try:
        library = importlib.import_module("obstore")
        importlib.import_module("obstore.store")
    except ImportError:
        raise ConfigurationError(
            "LIVEWELL_EXPORT_STORE: an S3 store needs obstore, which is not installed; "
            "install it with: pip install 'livewell[exports]'"
        ) from None
    return library
