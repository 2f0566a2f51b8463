"""The plans of the statements inside our functions.

EXPLAIN of a plpgsql function shows only "Function Scan", auto_explain shows what it ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.support.queue_sql import QueueSession


@dataclass(frozen=True, slots=True)
class Node:
    """One scan of one relation."""

    kind: str
    relation: str
    index: str
    rows: int  # that it gave
    discarded: int  # that it read and threw away


@dataclass(frozen=True, slots=True)
class Plan:
    """One statement that a function ran."""

    statement: str
    nodes: tuple[Node, ...]


class PlanRecorder:
    """Collects the plans of everything a session runs, nested statements included."""

    def __init__(self, session: QueueSession) -> None:
        self.session = session
        self._plans: list[Plan] = []
        session.rows("LOAD 'auto_explain'")
        for setting, value in {
            "log_min_duration": "0",
            "log_nested_statements": "on",
            "log_analyze": "on",
            "log_timing": "off",
            "log_format": "json",
            "log_level": "notice",
        }.items():
            session.rows(f"SET auto_explain.{setting} = {value}")
        session.connection.add_notice_handler(self._notice)

    def plans(self, query: str, *params: Any) -> list[Plan]:
        """Run a statement; answers the plans of all that ran inside."""
        self._plans.clear()
        self.session.rows(query, *params)
        return list(self._plans)

    def _notice(self, notice: psycopg.errors.Diagnostic) -> None:
        text = notice.message_primary or ""
        if "plan:" in text:
            found = json.loads(text.split("plan:\n", 1)[1])
            self._plans.append(Plan(" ".join(found["Query Text"].split()), tuple(_scans(found["Plan"]))))


def _scans(node: dict[str, Any]) -> Iterator[Node]:
    if "Relation Name" in node or "Index Name" in node:
        loops = node.get("Actual Loops", 1)
        yield Node(
            node["Node Type"],
            node.get("Relation Name", ""),
            node.get("Index Name", ""),
            round(node.get("Actual Rows", 0) * loops),
            round(node.get("Rows Removed by Filter", 0) * loops) + round(node.get("Rows Removed by Index Recheck", 0)),
        )
    for child in node.get("Plans", []):
        yield from _scans(child)


def relations(plans: list[Plan]) -> set[str]:
    """Every table that was read or written."""
    return {node.relation for plan in plans for node in plan.nodes if node.relation}


def indexes(plans: list[Plan]) -> set[str]:
    """Every index that was used."""
    return {node.index for plan in plans for node in plan.nodes if node.index}


def sequential(plans: list[Plan]) -> set[str]:
    """Tables that were read from end to end."""
    return {node.relation for plan in plans for node in plan.nodes if node.kind == "Seq Scan"}


def rows_read(plans: list[Plan], table: str) -> int:
    """The most rows that one scan of a table touched."""
    scans = [node for plan in plans for node in plan.nodes if node.relation == table and "Scan" in node.kind]
    return max((node.rows + node.discarded for node in scans), default=0)
