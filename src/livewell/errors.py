"""Every exception Livewell raises, in one place.

Expected outcomes (a fenced finish, a merged enqueue) are values, not exceptions: see model.py. An
exception is either the caller's mistake or needs a person, so each message says what happened, the
value, and what mends it.
"""

from collections.abc import Mapping
from datetime import datetime


class LivewellError(Exception):
    """The base of everything Livewell raises on purpose."""


class ConfigurationError(LivewellError):
    """A setting is wrong: the message names the variable, the value and what is allowed.

    The command line exits with 2.
    """


class DatabaseError(LivewellError):
    """The database could not do what was asked, through no fault of the caller."""

    def __init__(self, message: str, *, sqlstate: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class DatabaseUnavailable(DatabaseError):
    """The database did not answer, or not within the deadline.

    The outcome of a write may be unknown. An enqueue has then been tried several times. Repeating
    it is safe with an id (app.reserve_ids) or a unique key.

    was_sent: false if there was no connection, so that the statement has done nothing.
    """

    def __init__(self, message: str, *, sqlstate: str = "", was_sent: bool = True) -> None:
        super().__init__(message, sqlstate=sqlstate)
        self.was_sent = was_sent


class DatabaseConflict(DatabaseError):
    """Postgres ended the transaction for a deadlock or a serialisation failure (40P01, 40001).

    It is nobody's fault: run it again.
    """


class ReplicaRefused(DatabaseUnavailable):
    """A claim or a limit was asked of a replica: it would decide on old data (R28)."""


class MigrationError(LivewellError):
    """The schema is missing, older, newer or changed by hand; the message gives the command."""


class EmbeddedPostgresError(LivewellError):
    """The embedded server could not be found, started or stopped."""


class UnknownTask(LivewellError):
    """No task of that name is registered with this app."""


class UnknownQueue(LivewellError):
    """No queue of that name is declared."""


class UnknownSchedule(LivewellError):
    """No schedule of that name is known."""


class InvalidPayload(LivewellError):
    """The arguments do not fit the task, cannot be written as JSON, or are too large."""


class InvalidOption(LivewellError):
    """A delay, priority, lane or key is outside what is allowed."""


class UnknownLimiter(LivewellError):
    """No limiter of that name is declared."""


class UnknownSingleton(LivewellError):
    """No singleton of that name was ever held."""


class BatchSealed(LivewellError):
    """The batch is sealed or does not exist: nothing can be added to it."""


class PermitRefused(LivewellError):
    """More permits were asked for than the limiter can ever give at once."""


class PermitLate(LivewellError):
    """The permit was not used within its time; the job goes back, and the permit is burnt."""


class CallFailed(LivewellError):
    """A call to an upstream brought no whole answer.

    `reason` is from a closed list, `detail` holds no secret and at most 300 characters.

    wire_bytes count all the same: received bytes were paid for. `sent` False: the request never
    left, nobody was called. status and headers are there where the head of an answer came before
    the failure (a 429 with half a body is still a 429). alone False: the connection had carried
    other questions, so what came may have been the answer to one of them.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        wire_bytes: int = 0,
        sent: bool = False,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        alone: bool = True,
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.wire_bytes = wire_bytes
        self.sent = sent
        self.status = status
        self.headers = headers or {}
        self.alone = alone


class AlertNotFound(LivewellError):
    """No alert has that number, or no channel that name."""


class ContactNotFound(LivewellError):
    """No contact, merge or conflict of the tenant has that id."""


class ResumeNotFound(LivewellError):
    """The user has no document with that id, or it has no such version."""


class ResumeConflict(LivewellError):
    """The document was changed since its editor saw it; `version` is where it is now."""

    def __init__(self, message: str, *, version: int) -> None:
        super().__init__(message)
        self.version = version


class ResumesFull(LivewellError):
    """The user has as many documents, or bytes of them, as one user may have."""

    def __init__(self, message: str, *, used: int, allowed: int, unit: str) -> None:
        super().__init__(message)
        self.used = used
        self.allowed = allowed
        self.unit = unit


class InvalidResume(LivewellError):
    """A document does not fit the schema, or is too large.

    `place` is where, such as document.work[2].summary. What stands there is never in the message.
    """

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}")
        self.place = place
        self.why = why


class ExportQuotaFull(LivewellError):
    """The user's files take all the room there is for them (507). Nothing was made."""

    def __init__(self, *, used: int, reserved: int, allowed: int, needed: int) -> None:
        super().__init__(
            f"{used:,} bytes are stored and {reserved:,} reserved of {allowed:,}; {needed:,} more do not fit. "
            "Delete exports that are not needed, or wait until some expire"
        )
        self.used = used
        self.reserved = reserved
        self.allowed = allowed
        self.needed = needed


class ExportDailyLimit(LivewellError):
    """The user has asked for as many exports as a day has (429). Nothing was made."""

    def __init__(self, *, used: int, allowed: int, resets_at: datetime) -> None:
        super().__init__(f"{used} of {allowed} exports of this day were asked for; the next day begins at {resets_at}")
        self.used = used
        self.allowed = allowed
        self.resets_at = resets_at


class JobNotFound(LivewellError):
    """No job, finished job or dead letter has that id."""


class EventNotFound(LivewellError):
    """No event of the outbox has that id, or no replay that number."""


class UnknownSink(LivewellError):
    """No sink of the outbox has that name."""


class ActNotFound(LivewellError):
    """No act on many has that number."""


class OwnershipLost(LivewellError):
    """Somebody else owns this job by now.

    The transaction that would have finished it was rolled back.
    """


class InvalidDefinition(ConfigurationError):
    """A type file, an upstream file or a row of the registry is wrong.

    The message names the file, the place, the value and what is allowed.
    """


class ChangeRefused(LivewellError):
    """A type file asks for more than an addition to its table.

    `statements` is the SQL a person would have to run.
    """

    def __init__(self, message: str, *, statements: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.statements = statements


class UnknownType(LivewellError):
    """No type or upstream of that name is in the registry."""
