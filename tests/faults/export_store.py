"""A small S3 on a folder, to be killed, stopped in the middle and made ill: `… export_store PORT FOLDER`.

It knows what an artifact store asks for (PUT with If-None-Match, GET with a range, HEAD, DELETE,
ListObjectsV2) and checks no signature. A file that was answered is on disk, so the server may be
killed and started again, which moto, whose objects are in memory, does not survive.

    objects/<key>         the files, which the judge reads past the server
    hold-<point>          while it is there, a request that comes to that point waits …
    at-<point>            … and makes this file. Points: put, put-half, put-done, delete, delete-done
    ill-<how>             slow, busy (503), expired (403), full (507), clock (403); `struck` counts them
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from livewell.exports.artifacts.probe import PROBE_USER

BUCKET = "faults"
POINTS = ("put", "put-half", "put-done", "delete", "delete-done")
SLOW_SECONDS = 0.7
_ILLS = {
    "busy": (503, "SlowDown"),
    "expired": (403, "ExpiredToken"),
    "clock": (403, "RequestTimeTooSkewed"),
    "full": (507, "InsufficientStorage"),
}
_TICK_SECONDS = 0.005


class Store(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    folder: ClassVar[Path]

    def do_PUT(self) -> None:
        """Keep an object, unless there is one."""
        half = int(self.headers.get("content-length", "0")) // 2
        self._pass("put")
        if self._is_ill():
            self.close_connection = True
            return
        body = self.rfile.read(half)
        draft = self.folder / f"draft-{os.getpid()}-{id(self)}"
        draft.write_bytes(body)
        self._pass("put-half")
        body += self.rfile.read(int(self.headers.get("content-length", "0")) - half)
        kept = {name: value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
        kept["Content-Type"] = self.headers.get("content-type", "application/octet-stream")
        place = self._place()
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # of a PUT that was killed before its answer
            self._kept(place).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(draft, place)  # an answer that never comes leaves a file, as a real store does
        except FileExistsError:
            self._fail(412, "PreconditionFailed")
            return
        finally:
            draft.unlink()
        self._kept(place).write_text(json.dumps(kept))
        self._pass("put-done")
        self._say(200, {"ETag": '"1"'})

    def do_GET(self) -> None:
        """An object, a part of it, or a list."""
        if self._is_ill():
            return
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._list(query)
            return
        place = self._place()
        if not place.is_file():
            self._fail(404, "NoSuchKey")
            return
        data, headers = place.read_bytes(), self._headers(place)
        given = self.headers.get("range")
        if given is None:
            self._say(200, headers, data)
            return
        first, _, last = given.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or len(data) - 1), len(data) - 1)
        headers["Content-Range"] = f"bytes {begin}-{end}/{len(data)}"
        self._say(206, headers, data[begin : end + 1])

    def do_HEAD(self) -> None:
        """What a GET would say, without the object."""
        if self._is_ill():
            return
        place = self._place()
        if not place.is_file():
            self._say(404, {}, length=0)
            return
        self._say(200, self._headers(place), length=place.stat().st_size)

    def do_DELETE(self) -> None:
        """Remove an object; one that is not there is removed, too."""
        if self._is_ill():
            return
        self._pass("delete")
        place = self._place()
        place.unlink(missing_ok=True)
        self._kept(place).unlink(missing_ok=True)
        self._pass("delete-done")
        self._say(204, {})

    # ── points and ills ──

    def _pass(self, point: str) -> None:
        hold = self.folder / f"hold-{point}"
        if hold.exists() and PROBE_USER not in self.path:  # a worker asks now and then how its store is
            (self.folder / f"at-{point}").touch()
            while hold.exists():
                time.sleep(_TICK_SECONDS)

    def _is_ill(self) -> bool:
        if (self.folder / "ill-slow").exists():
            self._struck("slow")
            time.sleep(SLOW_SECONDS)
        for how, (status, code) in _ILLS.items():
            if (self.folder / f"ill-{how}").exists():
                self._struck(how)
                self.rfile.read(int(self.headers.get("content-length", "0")))
                self._fail(status, code)
                return True
        return False

    def _struck(self, how: str) -> None:
        with (self.folder / "struck").open("a") as log:
            log.write(f"{how}\n")

    # ── keys and answers ──

    def _place(self) -> Path:
        key = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")
        if ".." in key:
            raise ValueError(key)
        return self.folder / "objects" / key

    def _kept(self, place: Path) -> Path:
        return self.folder / "kept" / place.relative_to(self.folder / "objects").as_posix().replace("/", "+")

    def _headers(self, place: Path) -> dict[str, str]:
        kept: dict[str, str] = {}
        with suppress(FileNotFoundError, ValueError):
            kept = json.loads(self._kept(place).read_text())
        return {**kept, "ETag": '"1"', "Last-Modified": self.date_time_string(place.stat().st_mtime)}

    def _list(self, query: dict[str, list[str]]) -> None:
        prefix, after = query.get("prefix", [""])[0], query.get("start-after", [""])[0]
        root = self.folder / "objects"
        keys = sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())
        found = [key for key in keys if key.startswith(prefix) and key > after]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>1</ETag>"
            f"<Size>{(root / key).stat().st_size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for key in found
        )
        head = f"<Name>{BUCKET}</Name><KeyCount>{len(found)}</KeyCount><MaxKeys>1000</MaxKeys>"
        head += f"<Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>"
        text = f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>{head}{rows}</ListBucketResult>'
        self._say(200, {"Content-Type": "application/xml"}, text.encode())

    def _fail(self, status: int, code: str) -> None:
        text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
        self._say(status, {"Content-Type": "application/xml"}, text.encode())

    def _say(self, status: int, headers: dict[str, str], body: bytes = b"", *, length: int | None = None) -> None:
        self.send_response(status, HTTPStatus(status).phrase)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def main() -> None:
    """Serve until killed."""
    Store.folder = Path(sys.argv[2])
    (Store.folder / "objects").mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Store)
    server.daemon_threads = True
    print("storing", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
