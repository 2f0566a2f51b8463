"""Why an answer was not stored: a closed list of words, each with whose fault it is.

Only the upstream's fault counts for the breaker. What one key can cause alone (an odd row, a symbol outside the plan) is the data's, so that ten made-up symbols of one
visitor do not stop everybody (R13).
"""

from __future__ import annotations

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


_DATA = {
    Reason.MISSING_FIELD,
    Reason.WRONG_TYPE,
    Reason.OUT_OF_BOUNDS,
    Reason.WRONG_KEY,
    Reason.DUPLICATE_ROW,
    Reason.NO_SOURCE_TIME,
    Reason.FUTURE_SOURCE,
    Reason.OLDER,
    Reason.ENTITLEMENT_KEY,
}
_OURS = {
    Reason.REFUSED_ADDRESS,
    Reason.ENTITLEMENT_TYPE,
    Reason.AUTH,
    Reason.SUSPENDED,
    Reason.LEGACY_PATH,
    Reason.TYPE_CHANGED,
}


def _blame(reason: Reason) -> Blame:
    if reason is Reason.BANDWIDTH_WALL:
        return Blame.WALL
    if reason in _DATA:
        return Blame.DATA
    return Blame.OURS if reason in _OURS else Blame.UPSTREAM


# Whose fault each is, unless the caller knows better ([] for a key that had data is the upstream's).
BLAME = MappingProxyType({reason: _blame(reason) for reason in Reason})
