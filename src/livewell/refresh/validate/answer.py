"""Is this answer what the type says, about the keys that were asked?

Bytes in, results out: no database, no clock, no network (R14).

    body ──content type, first byte──▶ JSON ──transform──▶ rows ──by key──▶ columns ──▶ times ──▶ Value
      │                                                       └──no row──▶ Missing            └──settled days differ──▶ Forgotten
      ├── anything else, in the rows of one key ──▶ Failure(reason) for that key
      └── anything else ──▶ Failure(reason); of several keys nobody knows whose fault it is: Singly for all

Poison in a row that says whose it is (NaN, 1e400, NUL, a name twice) is that key's alone; anywhere
else nobody can say whose it is, and the answer is refused as a whole.

No rows reach the store but those of a Value made here (contract 5). Whatever the bytes are, this
answers; it never raises. "Older than what is stored" is for the store, which knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from jmespath.exceptions import JMESPathError

from livewell.model import Blame
from livewell.refresh.definition import rows_path
from livewell.refresh.definition.model import ROWS_MAX, Path, TypeDefinition
from livewell.refresh.reasons import BLAME, Reason
from livewell.refresh.result import Failure, Missing, Result, Singly, Value
from livewell.refresh.validate import strict_json
from livewell.refresh.validate.changed_tail import Tail
from livewell.refresh.validate.key_rows import ABSENT, Row, at_path, packed, value_of
from livewell.refresh.validate.refusal import Refusal, clean, cut, hiding, show
from livewell.telemetry.secret_forms import Secrets, secrets_of

_ERROR_FIELDS = ("Error Message", "error", "errors", "Error", "error_message", "errorMessage", "fault")
_PAGE_BYTES = 2048  # as much as is searched for a secret before 80 characters are shown

Transform = Callable[[Any, Sequence[str]], list[dict[str, Any]]]


def validate(
    definition: TypeDefinition,
    keys: Sequence[str],
    body: bytes,
    *,
    content_type: str | None,
    now: datetime,
    transforms: Mapping[str, Transform] | None = None,
    tail: Tail | None = None,
    secrets: Secrets | None = None,
) -> dict[str, Result]:
    """What became of each key.

    now is the database's clock: only to judge what is absurdly in the future, and which event is
    the next.

    tail: what is stored of the history of which only the tail was asked for. secrets: what no
    detail repeats, and no value may hold (M3).
    """
    secrets = secrets or secrets_of()
    with hiding(secrets):
        try:
            found, suspect = _rows(definition, keys, body, content_type, transforms or {})
            by_key, strangers = _split(definition, keys, found)
            poisoned = _poisoned(definition, by_key) if suspect else {}
        except Refusal as refusal:
            return dict.fromkeys(keys, _refused_whole(refusal, len(keys)))
        judge = partial(_judge, definition, now=now, strangers=strangers, asked=len(keys), tail=tail)
        return {
            key: _failure(poisoned[key], blame=Blame.DATA)
            if key in poisoned
            else _without(secrets, definition, judge(key, by_key[key]))
            for key in keys
        }


def _failure(refusal: Refusal, *, blame: Blame | None = None) -> Failure:
    return Failure(refusal.reason, refusal.detail, blame or BLAME[refusal.reason], field=refusal.field)


def _refused_whole(refusal: Refusal, asked: int) -> Failure | Singly:
    if asked == 1:
        return _failure(refusal)
    detail = clean(f"{refusal.reason} for {asked} keys together: {refusal.detail}")
    return Singly(detail, endpoint=refusal.reason is Reason.EMPTY)


def _without(secrets: Secrets, definition: TypeDefinition, result: Result) -> Result:
    """The result, unless what would be stored holds a secret: viewers would see it."""
    if isinstance(result, Value) and secrets and secrets.is_in(packed(definition, result.rows)):
        return _failure(Refusal(Reason.BAD_TEXT, "a value repeats our credential"), blame=Blame.DATA)
    return result


# ── the answer as a whole ──


def _rows(
    definition: TypeDefinition,
    keys: Sequence[str],
    body: bytes,
    content_type: str | None,
    transforms: Mapping[str, Transform],
) -> tuple[list[Any], bool]:
    """The rows, and whether there may be poison in them; there is none around them."""
    if len(body) > definition.fetch.body_bytes_max:
        raise Refusal(Reason.TOO_LARGE, f"{len(body):,} bytes; the type allows {definition.fetch.body_bytes_max:,}")
    _check_kind(body, content_type)
    parsed = strict_json.parse(body)
    document = parsed.value
    if definition.answer.transform is not None:
        _refuse_poison(document if parsed.suspect else None)
        _refuse_errors(document, document)
        document = _transformed(definition.answer.transform, transforms, document, keys)
    try:
        rows = rows_path.compiled(definition.answer.rows).search(document)
    except (JMESPathError, TypeError, ValueError, RecursionError) as error:
        raise Refusal(Reason.WRONG_SHAPE, f"{definition.answer.rows} cannot be applied: {error}") from None
    _refuse_errors(document, rows)
    if document == {}:
        raise Refusal(Reason.EMPTY, "the answer is {}")
    if not isinstance(rows, list):
        raise Refusal(Reason.WRONG_SHAPE, f"{definition.answer.rows} is {show(rows)}, not a list of rows")
    if len(rows) > ROWS_MAX:
        raise Refusal(Reason.TOO_LARGE, f"{len(rows):,} rows; at most {ROWS_MAX:,} are taken")
    if not rows and len(keys) > 1:
        raise Refusal(Reason.EMPTY, f"no row for any of {len(keys)} keys: the batch endpoint did not work")
    if parsed.suspect:
        _refuse_poison(document, outside=rows)
    return rows, parsed.suspect


def _refuse_poison(document: object, outside: Sequence[object] = ()) -> None:
    found = strict_json.find_poison(document, outside=frozenset(map(id, outside)))
    if found is not None:
        raise found


def _poisoned(definition: TypeDefinition, by_key: Mapping[str, list[Row]]) -> dict[str, Refusal]:
    """Keys with poison in a row of theirs. A row that says its key twice says nothing."""
    poisoned: dict[str, Refusal] = {}
    for key, rows in by_key.items():
        for row in rows:
            found = strict_json.find_poison(row)
            if found is not None:
                if not _says_once(row, definition.answer.key):
                    raise found
                poisoned.setdefault(key, found)
    return poisoned


def _says_once(row: Row, path: Path | None) -> bool:
    """Whether a row says whose it is, and says it once."""
    value: Any = row
    for name in path or ():
        if isinstance(value, strict_json.Twice) and name in value.names:
            return False
        value = value.get(name)
    return path is not None


def _check_kind(body: bytes, content_type: str | None) -> None:
    kind = (content_type or "").partition(";")[0].strip().lower()
    if "html" in kind or body.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] == b"<":
        raise Refusal(Reason.HTML, f"a page, not data: {cut(body[:_PAGE_BYTES].decode('utf-8', 'replace'), 80)}")
    if kind and kind not in ("application/json", "text/json") and not kind.endswith("+json"):
        raise Refusal(Reason.CONTENT_TYPE, f"{cut(content_type or kind, 80)} is not JSON")


def _refuse_errors(document: object, rows: object) -> None:
    """An object that names an error, where rows were expected."""
    if isinstance(document, dict) and not (isinstance(rows, list) and rows):
        for name in _ERROR_FIELDS:
            if document.get(name):
                raise Refusal(Reason.ERROR_OBJECT, f'"{name}": {show(document[name])}')


def _transformed(name: str, transforms: Mapping[str, Transform], document: Any, keys: Sequence[str]) -> Any:
    if name not in transforms:
        raise Refusal(Reason.WRONG_SHAPE, f"transform {name} is not registered in this process")
    try:
        return transforms[name](document, keys)
    except (
        Exception
    ) as error:  # somebody else's code on untrusted input: whatever it raises, this answer is refused and counted
        raise Refusal(Reason.WRONG_SHAPE, f"transform {name}: {type(error).__name__}: {error}") from error


def _split(definition: TypeDefinition, keys: Sequence[str], rows: list[Any]) -> tuple[dict[str, list[Row]], list[str]]:
    """Rows by the key they say they are of, and what they said that nobody asked for."""
    by_key: dict[str, list[Row]] = {key: [] for key in keys}
    strangers: list[str] = []
    path = definition.answer.key
    for row in rows:
        if not isinstance(row, dict):
            raise Refusal(Reason.WRONG_SHAPE, f"a row is {show(row)}, not an object")
        said = keys[0] if path is None else at_path(row, path)
        if type(said) is int:
            said = str(said)
        if isinstance(said, str) and said in by_key:
            by_key[said].append(row)
        elif said is ABSENT:
            raise Refusal(
                Reason.MISSING_FIELD, f'a row has no "{".".join(path or ())}", the field that repeats the key'
            )
        else:
            strangers.append(show(said))
    return by_key, strangers


# ── the rows of one key ──


def _judge(
    definition: TypeDefinition,
    key: str,
    rows: list[Row],
    *,
    strangers: list[str],
    asked: int,
    now: datetime,
    tail: Tail | None,
) -> Result:
    try:
        if strangers and (not rows or asked == 1):
            raise Refusal(Reason.WRONG_KEY, f"asked for {show(key)}, answered with {', '.join(strangers[:3])}")
        if not rows:
            if definition.answer.empty == "rejected":
                raise Refusal(Reason.EMPTY, "the answer has no rows")
            return Missing()
        return value_of(definition, rows, now, tail)
    except Refusal as refusal:
        return _failure(refusal)
