"""HTTP as one user speaks it, on a bare connection, and the user's own log of what was downloaded.

The judge of the demo is what arrived here, so none of the code that served it is used.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

CALL_SECONDS = 30.0
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
_IDLE_SECONDS = 1.5  # the server hangs up on connections that are idle for longer than a few
_FAILURES = (OSError, http.client.HTTPException)


class ServerAway(Exception):
    """No answer came: nobody knows whether the server did it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, the whole of it."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    @property
    def sha256(self) -> str:
        """Of the bytes that arrived."""
        return hashlib.sha256(self.body).hexdigest()


class Client:
    """One connection, opened again when it breaks. Used by one thread at a time."""

    def __init__(self, address: str, key: str, *, seconds: float = CALL_SECONDS) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self.headers = {"Authorization": f"Bearer {key}"}
        self._seconds = seconds
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def ask(self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Answer:
        """One request, once. Raises ServerAway."""
        given = {**self.headers, **(headers or {})}
        data = None
        if body is not None:
            data, given["Content-Type"] = json.dumps(body).encode(), "application/json"
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
            self._connection.request(method, path, data, given)
            answer = self._connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            found = Answer(answer.status, names, answer.read())
        except _FAILURES as error:
            self.close()
            raise ServerAway(f"{type(error).__name__}: {error}") from error
        self._used_at = time.monotonic()
        return found

    def insist(self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Answer:
        """Again until it is answered; for what may be done twice."""
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return self.ask(method, path, body, headers=headers)
            except ServerAway:
                if time.monotonic() > give_up:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def follow_link(self, url: str) -> Answer:
        """What a link gives, to somebody who has only the link."""
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        host, port = parts.hostname or self._host, parts.port or self._port
        stranger = http.client.HTTPConnection(host, port, timeout=self._seconds)
        try:
            stranger.request("GET", path)
            answer = stranger.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        except _FAILURES as error:
            raise ServerAway(f"{type(error).__name__}: {error}") from error
        finally:
            stranger.close()

    def close(self) -> None:
        """Hang up; the next request opens a connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
