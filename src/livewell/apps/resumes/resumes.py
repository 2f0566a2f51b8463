"""`app.resumes`: documents with versions, each of one user.

made = await app.resumes.create(document, user="ann", request="r1")      # the same request: the same document
await app.resumes.change(made.id, document, user="ann", expected=made.version)

       ──create──▶ version 1 ──change, expected 1──▶ version 2 ──change, expected 1──▶ ResumeConflict: it is at 2

A version is never changed. An export names one, so what it says of a document stays true (E16).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self
from uuid import UUID, uuid4

from livewell.apps.resumes.content import Content, read_content
from livewell.db import Database
from livewell.errors import InvalidOption, ResumeConflict, ResumeNotFound, ResumesFull
from livewell.settings import Settings

if TYPE_CHECKING:
    from livewell.apps.resumes.schema import Resume

Record = dict[str, Any]
NAME_CHARS_MAX = 200
REQUEST_BYTES_MAX = 200

SHOW = "SELECT livewell.show_resume(%s, %s::uuid, %s)"
_CREATE = "SELECT livewell.create_resume(%s, %s, %s, %s, %s, %s, %s)"
_CHANGE = "SELECT livewell.change_resume(%s, %s, %s, %s, %s, %s, %s)"
_DELETE = "SELECT livewell.delete_resume(%s, %s)"
_PAGE = "SELECT * FROM livewell.list_resumes(%s, %s, %s, %s)"
_VERSIONS = "SELECT * FROM livewell.list_resume_versions(%s, %s, %s, %s)"


class _App(Protocol):
    @property
    def database(self) -> Database: ...
    @property
    def settings(self) -> Settings: ...


@dataclass(frozen=True, slots=True)
class Written:
    """A document that was written.

    is_new: false if it was there already, with the same content: nothing was written.
    """

    id: UUID
    version: int
    is_new: bool


class Resumes:
    """The documents of one database. Every call says for which user."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    @classmethod
    def of(cls, app: _App) -> Self:
        """For an open app."""
        return cls(app.database, app.settings)

    async def create(
        self,
        document: Mapping[str, Any] | bytes | Resume,
        *,
        user: str,
        name: str | None = None,
        request: str | None = None,
    ) -> Written:
        """Make a document. Without a name it has that of its person.

        request: a key of yours for this call; asked again with it, the answer is the same document.
        """
        content = self._content(document)
        called = _name(name or content.person)
        key = uuid4()
        params = (user, key, _request(request), called, content.text, *self._bounds())
        [(answer,)] = await self._database.call(_CREATE, params)
        if answer["answer"] == "reused":
            raise InvalidOption(f"request {request!r}: it made another document before; choose a new key")
        _check_room(answer)
        return Written(UUID(answer["id"]), answer["version"], answer["answer"] == "made")

    async def change(
        self,
        document: UUID | str,
        content: Mapping[str, Any] | bytes | Resume,
        *,
        user: str,
        expected: int,
        name: str | None = None,
    ) -> Written:
        """Write the next version. expected: the version that you have seen; another one by now is a conflict.

        name: what it is called from now on; without one it keeps its name.
        """
        key = resume_id(document)
        ready = self._content(content)
        called = _name(name or (await self.show(key, user=user))["name"])
        bounds = (self._settings.resume_versions_max, self._settings.resume_user_bytes_max)
        params = (user, key, expected, called, ready.text, *bounds)
        [(answer,)] = await self._database.call(_CHANGE, params)
        if answer["answer"] == "missing":
            _missing(key)
        if answer["answer"] == "conflict":
            raise ResumeConflict(
                f"document {key}: it is at version {answer['version']} by now, not {expected}; "
                "read it again and change that",
                version=answer["version"],
            )
        _check_room(answer)
        return Written(key, answer["version"], answer["answer"] == "changed")

    async def show(self, document: UUID | str, *, user: str, version: int | None = None) -> Record:
        """A document with one of its versions, the latest if none is named; `content` is its JSON."""
        key = resume_id(document)
        [(found,)] = await self._database.call(SHOW, (user, key, version))
        if found is None:
            _missing(key)
        record: Record = found
        return record

    async def page(self, *, user: str, after: tuple[datetime, UUID] | None = None, limit: int = 50) -> list[Record]:
        """A page of documents, the one that changed last first; after: changed_at and id of the last before."""
        return await self._database.call_dicts(_PAGE, (user, *(after or (None, None)), limit))

    async def versions(
        self, document: UUID | str, *, user: str, before: int | None = None, limit: int = 50
    ) -> list[Record]:
        """A page of the versions of a document, the newest first."""
        key = resume_id(document)
        found = await self._database.call_dicts(_VERSIONS, (user, key, before, limit))
        if not found and before is None:
            _missing(key)
        return found

    async def delete(self, document: UUID | str, *, user: str) -> None:
        """Delete a document and its versions. Its exports stay, with their history."""
        key = resume_id(document)
        [(was_there,)] = await self._database.call(_DELETE, (user, key))
        if not was_there:
            _missing(key)

    def _content(self, document: Mapping[str, Any] | bytes | Resume) -> Content:
        return read_content(document, bytes_max=self._settings.resume_bytes_max)

    def _bounds(self) -> tuple[int, int]:
        return self._settings.resume_documents_max, self._settings.resume_user_bytes_max


def resume_id(document: UUID | str) -> UUID:
    """An id of a document, or ResumeNotFound: no other text is one."""
    if isinstance(document, UUID):
        return document
    try:
        return UUID(document)
    except ValueError:
        raise ResumeNotFound(
            f"document {document[:60]!r}: ids are UUIDs; list them with: livewell resumes list"
        ) from None


def _name(text: str) -> str:
    if not 1 <= len(text.strip()) <= NAME_CHARS_MAX or "\x00" in text:
        raise InvalidOption(f"name: 1 to {NAME_CHARS_MAX} characters are allowed, without NUL")
    return text.strip()


def _request(key: str | None) -> str | None:
    if key is not None and (not 1 <= len(key.encode()) <= REQUEST_BYTES_MAX or "\x00" in key):
        raise InvalidOption(f"request: 1 to {REQUEST_BYTES_MAX} bytes are allowed, without NUL")
    return key


def _check_room(answer: Record) -> None:
    if answer["answer"] == "documents":
        raise ResumesFull(
            f"{answer['used']} documents: at most {answer['allowed']} are allowed for one user; delete one first",
            used=answer["used"],
            allowed=answer["allowed"],
            unit="documents",
        )
    if answer["answer"] == "bytes":
        raise ResumesFull(
            f"{answer['used']:,} bytes of documents: at most {answer['allowed']:,} are allowed for one user; "
            "delete a document first",
            used=answer["used"],
            allowed=answer["allowed"],
            unit="bytes",
        )


def _missing(document: UUID) -> NoReturn:
    raise ResumeNotFound(f"document {document}: you have none with this id; see: livewell resumes list")
