"""Documents as a test speaks them: the SQL functions of résumés, for one user unless a call says otherwise."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.queue_sql import QueueSession

TABLES = ("resume_version", "resume_document", "resume_user")
USER = "ann"
DOCUMENTS_MAX, VERSIONS_MAX, BYTES_MAX = 3, 4, 1000
Answer = dict[str, Any]


def text(name: str = "Ann", size: int = 0) -> str:
    """A document about somebody, padded to a size."""
    plain = json.dumps({"basics": {"name": name}})
    return plain + " " * (size - len(plain))


class ResumeSession(QueueSession):
    """One session on one connection."""

    def reset(self) -> None:
        self.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in TABLES).encode())

    def create(
        self,
        content: str | None = None,
        *,
        user: str = USER,
        name: str = "CV",
        request: str | None = None,
        key: str | None = None,
    ) -> Answer:
        answer: Answer = self.value(
            "SELECT livewell.create_resume(%s, %s::uuid, %s, %s, %s, %s, %s)",
            user,
            key or str(uuid.uuid4()),
            request,
            name,
            text() if content is None else content,
            DOCUMENTS_MAX,
            BYTES_MAX,
        )
        return answer

    def change(
        self, key: str, content: str | None = None, *, expected: int = 1, user: str = USER, name: str = "CV"
    ) -> Answer:
        answer: Answer = self.value(
            "SELECT livewell.change_resume(%s, %s::uuid, %s, %s, %s, %s, %s)",
            user,
            key,
            expected,
            name,
            text("Ben") if content is None else content,
            VERSIONS_MAX,
            BYTES_MAX,
        )
        return answer

    def show(self, key: str, *, user: str = USER, version: int | None = None) -> Answer | None:
        found: Answer | None = self.value("SELECT livewell.show_resume(%s, %s::uuid, %s)", user, key, version)
        return found

    def delete(self, key: str, *, user: str = USER) -> bool:
        was_there: bool = self.value("SELECT livewell.delete_resume(%s, %s::uuid)", user, key)
        return was_there

    def listed(self, *, user: str = USER) -> list[str]:
        """Ids, the one that changed last first."""
        return [str(key) for key in self.column("SELECT id FROM livewell.list_resumes(%s, NULL, NULL, 100)", user)]

    def versions(self, key: str, *, user: str = USER) -> list[int]:
        query = "SELECT version FROM livewell.list_resume_versions(%s, %s::uuid, NULL, 100)"
        return self.column(query, user, key)

    def counted(self, user: str = USER) -> tuple[int, int]:
        """Documents and bytes as the user's row says."""
        [row] = self.rows("SELECT documents, bytes FROM livewell.resume_user WHERE user_id = %s", user)
        return row[0], row[1]

    def true_counts(self, user: str = USER) -> tuple[int, int]:
        """The same, counted."""
        [row] = self.rows(
            "SELECT (SELECT count(*) FROM livewell.resume_document WHERE user_id = %s), "
            "(SELECT coalesce(sum(bytes), 0)::bigint FROM livewell.resume_version WHERE user_id = %s)",
            user,
            user,
        )
        return row[0], row[1]


@pytest.fixture
def resumes(queue_dsn: str) -> Iterator[ResumeSession]:
    """No document is there."""
    with ResumeSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        yield session
        session.reset()
