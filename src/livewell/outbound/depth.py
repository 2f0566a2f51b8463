"""How deep JSON is nested, told before a parser is asked: a parser recurses, this does not.

Brackets inside strings do not count. One pass at the speed of C (a 10 MB answer of nothing but "[]"
takes 0.4 s, an ordinary quote under 2 µs); text that is no JSON gets some answer, and the parser
refuses it afterwards.
"""

import re
from array import array
from itertools import accumulate

__all__ = ["DEPTH_MAX", "too_deep"]

DEPTH_MAX = 32

# Possessive: a string that never ends is taken to the end of the text once, not tried again from
# every quote.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STEP = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: one down, one up
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


def too_deep(body: bytes, depth_max: int = DEPTH_MAX) -> bool:
    """Say whether arrays and objects are nested more than so deep."""
    if body.count(b"[") + body.count(b"{") <= depth_max:
        return False  # too few to be deep, wherever they stand: most answers end here
    steps = array("b", _STRING.sub(b"", body).translate(_STEP, _NOT_BRACKETS))
    return any(map(depth_max.__lt__, accumulate(steps)))
