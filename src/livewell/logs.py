"""Log lines: for people or as JSON, to stderr, with secrets hidden.

structlog and the standard library's logging (psycopg's pool, and whatever the user's handlers use) take the same way out:

    event ──▶ level ──▶ time ──▶ traceback as text ──▶ hide secrets ──▶ text or JSON ──▶ stderr
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.typing import Processor

from livewell.redact import MASK, redact
from livewell.settings import Settings

__all__ = ["configure", "hide"]


def configure(settings: Settings) -> None:
    """Send every log line of this process to stderr, as the settings say. Called once, by the command line."""
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _hide_all,
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
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(settings)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    logging.getLogger("asyncio").setLevel(logging.WARNING)  # at debug it names its selector, which helps nobody


def hide(value: Any, name: str = "") -> Any:
    """The same value with secrets masked, by what they look like and by what they are called."""
    if name and redact(f"{name}=x") != f"{name}=x":
        return MASK
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: hide(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hide(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    shown = repr(value)
    hidden = redact(shown)
    return value if hidden == shown else hidden


def _hide_all(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide secrets in the values; structlog's own keys (leading underscore) are not printed."""
    return {key: item if key.startswith("_") else hide(item, key) for key, item in event.items()}


def _renderer(settings: Settings) -> Processor:
    if settings.log_format == "json":
        return structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
    )
