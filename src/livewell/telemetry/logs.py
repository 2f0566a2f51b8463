"""Log lines: for people or as JSON, to stderr, with secrets hidden.

structlog and the standard library's logging (psycopg's pool, and whatever the user's handlers use)
take the same way out:

    event ──▶ level ──▶ time ──▶ traceback as text ──▶ hide secrets ──▶ text or JSON ──▶ stderr
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Literal

import structlog
from structlog.typing import Processor

from livewell.telemetry.control_characters import escaped, printable
from livewell.telemetry.redact import MASK, is_credential_name, names_secret, redact
from livewell.telemetry.repeats import Repeats
from livewell.telemetry.secret_forms import Secrets
from livewell.telemetry.tracebacks import known_secrets

__all__ = ["configure", "held_back", "hide"]


def configure(*, level: str, form: Literal["text", "json"]) -> None:
    """Send every log line of this process to stderr, from this level on.

    Called once, by the command line.
    """
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _hide_all,
        _plain_all,
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.PositionalArgumentsFormatter(), *before],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(form)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    pool = logging.getLogger("psycopg.pool")
    pool.filters = [_seldom(Repeats())]
    logging.getLogger("asyncio").setLevel(logging.WARNING)  # at debug it names its selector, which helps nobody


def _seldom(repeats: Repeats) -> Callable[[logging.LogRecord], bool]:
    """Let a few lines of a kind through in a minute.

    Of an outage every attempt of every pool is one (539 lines in 75 s). The next that passes says
    how many were left out.
    """

    def passes(record: logging.LogRecord) -> bool:
        left_out = sum(n for _, n in repeats.overdue())
        if left_out:
            record.msg = f"{record.msg} ({left_out} more such lines in the minute before)"
        return repeats.passes(record.name)

    return passes


@contextmanager
def held_back() -> Iterator[None]:
    """No log lines while a table is drawn in the same terminal: they would tear it.

    Where stderr goes elsewhere they are written as ever.
    """
    if not sys.stderr.isatty():
        yield
        return
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def hide(value: Any, name: str = "", known: Secrets | None = None) -> Any:
    """The same value with secrets masked, by what they look like and by what they are called.

    Those that are known also by what they are.
    """
    if name and names_secret(name):
        return _hide_secret(value, name)
    if isinstance(value, str):
        return redact(known.hide(value) if known else value)
    if isinstance(value, dict):
        return {key: hide(item, str(key), known) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hide(item, known=known) for item in value]
    if value is None or isinstance(value, bool | int | float | Decimal):
        return value
    shown = repr(value)
    hidden = redact(known.hide(shown) if known else shown)
    return value if hidden == shown else hidden


def _hide_secret(value: Any, name: str) -> Any:
    """Masked, unless there is none, or it is the name of a credential."""
    if value is None or (isinstance(value, str) and is_credential_name(name, value)):
        return value
    if isinstance(value, list | tuple):
        return [_hide_secret(item, name) for item in value]
    return MASK


def _hide_all(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide secrets in the values; structlog's own keys (leading underscore) are not printed."""
    known = known_secrets()
    return {key: item if key.startswith("_") else hide(item, key, known) for key, item in event.items()}


def _plain_all(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Nothing in a line that a terminal would obey.

    What is no text is printed as Python writes it, with escapes.
    """
    return {key: printable(item) if isinstance(item, str) else item for key, item in event.items()}


def _renderer(form: Literal["text", "json"]) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer(serializer=_json)
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
    )


def _json(event: Any, **_: Any) -> str:
    return escaped(json.dumps(event, default=str, ensure_ascii=False))
