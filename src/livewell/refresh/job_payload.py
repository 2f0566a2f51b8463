"""The payload of a refresh job, as the database writes it."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.fetch.conditional import Validator
from livewell.refresh.validate.changed_tail import Tail, stored_tail


class Wanted(BaseModel):
    """What one job asks for: a key of a type, as the type was when the job was made."""

    model_config = ConfigDict(extra="ignore")

    type: str
    key: str
    version: int
    # On a connection of its own: an answer on a shared one proved nothing, or would prove nothing.
    fresh: bool = False
    etag: str | None = None  # of what is stored, with its hash
    last_modified: str | None = None
    hash: str | None = None
    since: datetime | None = None  # of a history: the source's time of what is stored

    @property
    def validator(self) -> Validator | None:
        """What to ask "has it changed?" with."""
        if self.hash is None or not (self.etag or self.last_modified):
            return None
        return Validator(self.etag, self.last_modified, bytes.fromhex(self.hash))

    def tail(self, definition: TypeDefinition) -> Tail | None:
        """What is stored of a history of which only the tail is asked for again."""
        return stored_tail(definition, self.since, bytes.fromhex(self.hash) if self.hash else None)
