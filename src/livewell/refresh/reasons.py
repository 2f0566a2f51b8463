"""Why an answer was not stored: a closed list of words, and what each of them means.

This list is the only one. SQL has the same in `refresh_reasons()`, the browser has the words in
`livewell.js`; tests compare both with it.

Only the upstream's fault counts for the breaker. A failure that one key can cause alone (an odd
row, a symbol outside the plan) is the data's fault. So ten made-up symbols of one visitor do not
stop everybody (R13).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from livewell.model import Blame


class Reason(StrEnum):
    """The words that ledger.reason and refresh_count.outcome may hold for a failure."""

    # the answer as a whole
    NOT_JSON = "not_json"
    NOT_UTF8 = "not_utf8"
    HTML = "html"
    ERROR_OBJECT = "error_object"  # {"Error Message": …} with status 200
    TRUNCATED = "truncated"
    TOO_LARGE = "too_large"  # bytes on the wire, decoded bytes, or rows
    BOMB = "bomb"  # decompresses to too much
    TOO_DEEP = "too_deep"
    BAD_NUMBER = "bad_number"  # NaN, Infinity, 1e400, hundreds of digits
    BAD_TEXT = "bad_text"  # NUL, half a surrogate pair, our own credential
    EMPTY = "empty"
    WRONG_SHAPE = "wrong_shape"
    CONTENT_TYPE = "content_type"
    # the rows of one key
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    OUT_OF_BOUNDS = "out_of_bounds"
    WRONG_KEY = "wrong_key"
    DUPLICATE_ROW = "duplicate_row"
    NO_SOURCE_TIME = "no_source_time"
    FUTURE_SOURCE = "future_source"
    OLDER = "older"
    # the call
    STATUS = "status"
    DEADLINE = "deadline"
    CONNECTION = "connection"
    REFUSED_ADDRESS = "refused_address"
    TLS = "tls"
    RATE_WALL = "rate_wall"
    BANDWIDTH_WALL = "bandwidth_wall"
    ENTITLEMENT_KEY = "entitlement_key"
    ENTITLEMENT_TYPE = "entitlement_type"
    AUTH = "auth"
    SUSPENDED = "suspended"
    LEGACY_PATH = "legacy_path"
    TRANSIENT = "transient"
    # ours
    TYPE_CHANGED = "type_changed"


class Fate(StrEnum):
    """What becomes of the job."""

    RETRY = "retry"  # tried again, until its attempts are used up
    RELEASED = "released"  # goes back without losing an attempt: a limit or a breaker holds it
    CANCELLED = "cancelled"  # would be refused again; no dead letter, as there is nothing to mend in the job
    SUCCEEDED = "succeeded"  # done: the question was answered, or is no longer asked


class LedgerEffect(StrEnum):
    """What becomes of the key's row in the ledger. The value that is stored stays in every case."""

    FAILING = "failing"  # backed off, once the job has used up its attempts
    PARKED_KEY = "parked_key"  # not asked again before negative_ttl has passed
    PARKED_TYPE = "parked_type"  # the same, and the whole type is parked
    OLDER = "older"  # nothing is confirmed; asked again after as long as it has been stale
    DUE = "due"  # asked again at once


@dataclass(frozen=True, slots=True)
class Meaning:
    """What follows from a reason.

    blame: whose fault it is, unless the caller knows better (no connection at all is an outage, a
    4xx about one key is the data's fault). fared: how the call counts for the limiter, whatever
    blame came with it; None: as the blame says. for_all: it concerns the account or the moment, so
    a call for many keys need not be repeated one by one.
    """

    words: str
    blame: Blame = Blame.UPSTREAM
    fate: Fate = Fate.RETRY
    ledger: LedgerEffect = LedgerEffect.FAILING
    fared: Blame | None = None
    for_all: bool = False


_NOT_DATA = "The source answered with something that is not data"
_TOO_LARGE = "The source's answer was too large"
_NOT_AGREED = "The source's answer does not fit what was agreed"
_BAD_TIME = "The source's answer has an impossible time"
_ERROR = "The source answered with an error"
_UNREACHABLE = "The source cannot be reached"
_NO_MORE_CALLS = "The source allows no more calls for now"
_NOT_IN_PLAN = "The source does not give this under the present plan"
_ACCOUNT = "The source does not accept our account"

MEANING = MappingProxyType(
    {
        Reason.NOT_JSON: Meaning(_NOT_DATA),
        Reason.NOT_UTF8: Meaning(_NOT_DATA),
        Reason.HTML: Meaning(_NOT_DATA),
        Reason.ERROR_OBJECT: Meaning(_ERROR),
        Reason.TRUNCATED: Meaning("The source's answer was cut off"),
        Reason.TOO_LARGE: Meaning(_TOO_LARGE),
        Reason.BOMB: Meaning(_TOO_LARGE),
        Reason.TOO_DEEP: Meaning(_TOO_LARGE),
        Reason.BAD_NUMBER: Meaning(_NOT_AGREED),
        Reason.BAD_TEXT: Meaning(_NOT_AGREED),
        # The database finds these two as well, and no blame comes with them.
        Reason.EMPTY: Meaning("The source's answer was empty", fared=Blame.UPSTREAM),
        Reason.NO_SOURCE_TIME: Meaning(_BAD_TIME, Blame.DATA, fared=Blame.UPSTREAM),
        Reason.WRONG_SHAPE: Meaning(_NOT_DATA),
        Reason.CONTENT_TYPE: Meaning(_NOT_DATA),
        Reason.MISSING_FIELD: Meaning(_NOT_AGREED, Blame.DATA),
        Reason.WRONG_TYPE: Meaning(_NOT_AGREED, Blame.DATA),
        Reason.OUT_OF_BOUNDS: Meaning(_NOT_AGREED, Blame.DATA),
        Reason.WRONG_KEY: Meaning("The source answered about something else", Blame.DATA),
        Reason.DUPLICATE_ROW: Meaning(_NOT_AGREED, Blame.DATA),
        Reason.FUTURE_SOURCE: Meaning(_BAD_TIME, Blame.DATA),
        Reason.OLDER: Meaning(
            "The source answered with something older", Blame.DATA, Fate.SUCCEEDED, LedgerEffect.OLDER, Blame.DATA
        ),
        Reason.STATUS: Meaning(_ERROR),
        Reason.DEADLINE: Meaning("The source did not answer in time"),
        Reason.CONNECTION: Meaning(_UNREACHABLE),
        Reason.REFUSED_ADDRESS: Meaning("The source's address is not allowed here", Blame.OURS),
        Reason.TLS: Meaning(_UNREACHABLE),
        Reason.RATE_WALL: Meaning(_NO_MORE_CALLS, fate=Fate.RELEASED, fared=Blame.OURS, for_all=True),
        Reason.BANDWIDTH_WALL: Meaning(_NO_MORE_CALLS, Blame.WALL, fate=Fate.RELEASED, fared=Blame.WALL, for_all=True),
        Reason.ENTITLEMENT_KEY: Meaning(_NOT_IN_PLAN, Blame.DATA, Fate.CANCELLED, LedgerEffect.PARKED_KEY, Blame.DATA),
        Reason.ENTITLEMENT_TYPE: Meaning(
            _NOT_IN_PLAN, Blame.OURS, Fate.CANCELLED, LedgerEffect.PARKED_TYPE, Blame.DATA
        ),
        # Stop and tell a person: the breaker is what stops, so it must count these two.
        Reason.AUTH: Meaning(_ACCOUNT, Blame.OUTAGE, for_all=True),
        Reason.SUSPENDED: Meaning(_ACCOUNT, Blame.OUTAGE, for_all=True),
        Reason.LEGACY_PATH: Meaning(_NOT_IN_PLAN, Blame.OURS, Fate.CANCELLED, LedgerEffect.PARKED_TYPE, Blame.DATA),
        Reason.TRANSIENT: Meaning(_UNREACHABLE, for_all=True),
        Reason.TYPE_CHANGED: Meaning(
            "What is asked for has just been changed", Blame.OURS, Fate.SUCCEEDED, LedgerEffect.DUE
        ),
    }
)
BLAME = MappingProxyType({reason: meaning.blame for reason, meaning in MEANING.items()})
