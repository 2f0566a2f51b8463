"""Where the rows stand in an answer: JMESPath, without the parts that can make much out of little.

The allowed parts (fields, indexes, slices, projections, filters, values, to_array) give at most
what they were given, so the time is the size of the answer times the length of the expression. A
multi-select can double its input ([@,@][].[@,@][] … has 2ⁿ elements) and is not needed, because
columns choose the fields.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import jmespath
from jmespath.exceptions import JMESPathError

EXPRESSION_CHARS_MAX = 200
_DEPTH_MAX = 20
_NODES_MAX = 60
_NODES = frozenset(
    [
        "and_expression",
        "comparator",
        "current",
        "field",
        "filter_projection",
        "flatten",
        "function_expression",
        "identity",
        "index",
        "index_expression",
        "literal",
        "not_expression",
        "or_expression",
        "pipe",
        "projection",
        "slice",
        "subexpression",
        "value_projection",
    ]
)
_FUNCTIONS = frozenset({"values", "to_array", "not_null"})


class RowsPathError(ValueError):
    """The expression is wrong, or does more than finding rows."""


class RowsPath(Protocol):
    """A compiled expression."""

    def search(self, value: Any) -> Any:
        """What it finds."""


def parse(expression: str) -> RowsPath:
    """Compile an expression, or say what is wrong with it."""
    if not 1 <= len(expression) <= EXPRESSION_CHARS_MAX:
        raise RowsPathError(f"1 to {EXPRESSION_CHARS_MAX} characters are allowed")
    try:
        compiled = jmespath.compile(expression)
    except (JMESPathError, RecursionError, ValueError, TypeError) as error:
        raise RowsPathError(f"it is not JMESPath: {str(error).strip().splitlines()[0][:120]}") from None
    _check(compiled.parsed)
    path: RowsPath = compiled
    return path


@lru_cache(maxsize=256)
def compiled(expression: str) -> RowsPath:
    """The same, once per expression."""
    return parse(expression)


def _check(tree: dict[str, Any]) -> None:
    level, nodes, depth = [tree], 0, 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > _NODES_MAX or depth > _DEPTH_MAX:
            raise RowsPathError("it is too long or too deep to be a place in an answer")
        for node in level:
            kind = node["type"]
            if kind not in _NODES or (kind == "function_expression" and node["value"] not in _FUNCTIONS):
                what = f"{node['value']}()" if kind == "function_expression" else kind.replace("_", " ")
                raise RowsPathError(f"{what} is not allowed; columns choose the fields, this only finds the rows")
        level = [child for node in level for child in node["children"] if isinstance(child, dict)]
