"""One job or dead letter in full, for `jobs show` and `dead show`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from livewell.cli.output import print_facts, print_json
from livewell.cli.terminal import echo
from livewell.telemetry.control_characters import escaped
from livewell.telemetry.logs import hide
from livewell.words import age

REVEAL = click.option("--reveal", is_flag=True, help="Show the payload as it is stored, secrets included.")

_TIMES = ("run_at", "created_at", "started_at", "finished_at")
_LAST = ("error", "errors", "traceback", "payload")  # long, so below the rest


def print_record(record: Mapping[str, Any], now: datetime, *, as_json: bool, reveal: bool) -> None:
    """Everything known; secrets in the payload are masked unless asked for."""
    payload = None if record["payload"] is None else json.loads(record["payload"])
    if as_json:
        shown = {name: value for name, value in record.items() if name != "payload"}
        print_json(shown, as_is={"payload": payload if reveal else hide(payload)})
        return
    facts = {name: _shown(name, value, now) for name, value in record.items() if name not in _LAST}
    print_facts({name: value for name, value in facts.items() if value})
    if record["error"]:
        echo("")
        print_facts({"error": record["error"]})
    if len(record.get("errors", ())) > (1 if record["error"] else 0):
        echo("\nfailures")
        for one in record["errors"]:
            echo(f"  attempt {one['attempt']}, {age(one['at'], now)}: {escaped(hide(one['error']))}")
    if record.get("traceback"):
        echo(f"\ntraceback of the last failure\n{hide(record['traceback']).rstrip()}")
    if payload is not None:
        text = escaped(json.dumps(payload if reveal else hide(payload), ensure_ascii=False, indent=2))
        echo(f"\npayload\n{text}")


def _shown(name: str, value: Any, now: datetime) -> str:
    if value is None or value is False:
        return ""
    if name in _TIMES:
        return f"{value:%Y-%m-%d %H:%M:%S %Z} ({age(value, now)})"
    return "yes" if value is True else str(value)
