"""Read Python source as a tree."""

from __future__ import annotations

import ast
import gc


def parse(text: str) -> ast.Module:
    """As ast.parse, with the garbage collector at rest.

    In Python 3.11 a collection in the middle of it, which runs Python code, ends it with "AST
    constructor recursion depth mismatch" (cpython#106905): once in hundreds of runs of these tests.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_on:
            gc.enable()
