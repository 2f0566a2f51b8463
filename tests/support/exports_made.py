"""Exports that are finished without a worker: what one would have done, on a server's own database and store."""

from __future__ import annotations

import hashlib
import json
import zlib
from types import TracebackType
from typing import Self
from uuid import UUID

from livewell.exports.artifacts.paths import artifact_path
from tests.support.exports_sql import FINISH, ExportSession
from tests.support.http import Web
from tests.support.queue_sql import Claim

TEMPLATES = ("minimal", "modern", "compact")


class Maker:
    """The worker of one server under test."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.session = ExportSession(web.dsn)
        self.session.declare("exports", base=60, cap=3600, group_limit=3)
        self.session.kind("resume", estimate=200_000, templates=TEMPLATES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.connection.close()

    def begin(self) -> tuple[Claim, str]:
        """Take the next job; its claim and its export."""
        claim = self.session.take()
        [(payload,)] = self.session.rows("SELECT payload FROM livewell.job WHERE id = %s", claim.id)
        export = str(payload["export"])
        assert self.session.begin(claim, export, 100_000_000)["answer"] == "begun"
        return claim, export

    async def finish(self, claim: Claim, export: str, data: bytes) -> None:
        """Store the file, then say so."""
        [(user,)] = self.session.rows("SELECT user_id FROM livewell.export WHERE id = %s", export)
        path = artifact_path(user, UUID(export), claim.fence, "pdf")
        query = "SELECT livewell.plan_export_file(%s, %s, %s, %s, %s, %s, %s)"
        given = (claim.worker, claim.id, claim.fence, export, path, len(data), 100_000_000)
        assert self.session.value(query, *given) == "planned"
        await self.web.state.exports.store.put(path, data, content_type="application/pdf")
        result = {
            "bytes": len(data),
            "pages": 1,
            "sha256": hashlib.sha256(data).hexdigest(),
            "crc32": zlib.crc32(data),
            "as_of": None,
        }
        with self.session.connection.transaction():
            said = self.session.value(FINISH, claim.id, claim.fence, export, path, json.dumps(result))
            assert said == "finished"
            self.session.finish(claim)

    async def make(self, data: bytes = b"%PDF-1.7 one page") -> str:
        """Finish the next one; its id."""
        claim, export = self.begin()
        await self.finish(claim, export, data)
        return export

    def fail(self, reason: str) -> str:
        """Let the next one fail for good."""
        claim, export = self.begin()
        query = "SELECT livewell.fail_export(%s, %s, %s, %s, %s, false)"
        self.session.rows(query, claim.worker, claim.id, claim.fence, export, reason)
        self.session.finish(claim)
        return export
