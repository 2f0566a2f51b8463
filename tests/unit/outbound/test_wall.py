"""Which wall an answer is: words and status must agree, and no word that stands in several of them decides."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.errors import InvalidOption
from livewell.outbound import Wall, classify

INVALID = "Invalid API KEY. Feel free to create a Free API Key or visit https://site.financialmodelingprep.com/faqs"
SYMBOL = (
    "Premium Query Parameter: 'Special Endpoint : This value set for 'symbol' is not available under your "
    "current subscription, please upgrade your plan"
)
ENDPOINT = (
    "Restricted Endpoint: This endpoint is not available under your current subscription, please upgrade your plan"
)
LEGACY = (
    "Legacy Endpoint : Due to Legacy endpoints being no longer supported, this endpoint is only available for "
    "legacy users"
)
EXCLUSIVE = (
    "Exclusive Endpoint : This endpoint is not available under your current subscription, please upgrade your plan"
)
SYMBOLS = "This endpoint is limited to the following symbols : AAPL, TSLA, AMZN. Please upgrade your plan"
SUSPENDED = "Account suspended. Please contact support"
RATE = "Limit Reach . Please upgrade your plan or visit our documentation for more details"
BANDWIDTH = "Bandwidth Limit Reach . Please upgrade your plan or visit our documentation for more details"

TABLE = [
    (401, INVALID, "auth"),
    (402, SYMBOL, "entitlement_key"),
    (402, ENDPOINT, "entitlement_type"),
    (403, LEGACY, "legacy_path"),
    (403, EXCLUSIVE, "entitlement_type"),
    (403, SYMBOLS, "entitlement_key"),
    (403, SUSPENDED, "suspended"),
    (429, RATE, "rate"),
    (429, BANDWIDTH, "bandwidth"),
]


def body(message: str) -> bytes:
    return json.dumps({"Error Message": message}).encode()


def kind(status: int, content: bytes, vocabulary: str = "fmp") -> str | None:
    wall = classify(vocabulary, status, {}, content)
    return wall.kind if wall else None


@pytest.mark.parametrize(("status", "message", "expected"), TABLE)
def test_every_refusal_of_fmp_is_known(status: int, message: str, expected: str) -> None:
    """As an error object, as plain text, and in other spacing and case."""
    assert kind(status, body(message)) == expected
    assert kind(status, message.encode()) == expected
    assert kind(status, body(message.upper().replace(" ", "  "))) == expected


@pytest.mark.parametrize(("_status", "message", "expected"), TABLE)
def test_an_error_object_with_status_200_is_judged_by_its_words(_status: int, message: str, expected: str) -> None:
    """FMP answers 200 with an object instead of an array."""
    assert kind(200, body(message)) == expected
    assert kind(200, json.dumps({"error": message}).encode()) == expected


def test_story_1_a_bandwidth_wall_is_never_taken_for_a_rate_limit() -> None:
    """The ten-hour retry: a bandwidth 429 was treated as a rate limit.

    It was retried every few seconds, and nothing fetched.
    """
    assert kind(429, body(BANDWIDTH)) == "bandwidth"
    assert kind(429, body(RATE)) == "rate"
    assert classify("fmp", 429, {"retry-after": "5"}, body(BANDWIDTH)) == Wall("bandwidth", 5.0)


def test_story_3_upgrade_your_plan_decides_nothing() -> None:
    """Wrong wall, four days: the words stand in bandwidth and plan errors alike."""
    told = {kind(status, body(message)) for status, message, _ in TABLE if "upgrade your plan" in message.lower()}
    assert told == {"entitlement_key", "entitlement_type", "rate", "bandwidth"}
    for status in (200, 400, 402, 403, 404, 429, 500):
        with_words, without = kind(status, body("Please upgrade your plan")), kind(status, body("Sorry"))
        assert with_words == without


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (403, BANDWIDTH, "auth"),
        (500, BANDWIDTH, "transient"),
        (404, BANDWIDTH, None),
        (402, RATE, "entitlement_key"),
        (429, SUSPENDED, "rate"),
        (401, ENDPOINT, "auth"),
        (503, INVALID, "transient"),
    ],
)
def test_words_under_a_status_they_do_not_belong_to_are_not_believed(
    status: int, message: str, expected: str | None
) -> None:
    """Then the status speaks alone.

    Six hours of silence need more than a phrase in some error page.
    """
    assert kind(status, body(message)) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b'[{"symbol":"AAPL","name":"Bandwidth Limit Reach"}]',
        b'{"title":"Bandwidth Limit Reach"}',
        b'{"symbol":"A","error message":"Bandwidth Limit Reach"}',
        b'{"error":{"x":"Bandwidth Limit Reach"}}',
        b"Bandwidth Limit Reach",
        b"<html>Limit Reach</html>",
        b"\xff\xfe\x00",
        b"",
        b'{"Error Message":"Something new"}',
    ],
)
def test_a_200_without_known_words_in_an_error_object_is_no_wall(content: bytes) -> None:
    """Rows, headlines and pages may hold any words.

    What is wrong with them is for validate to say.
    """
    assert kind(200, content) is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, None), (204, None), (301, None), (302, None), (304, None), (400, None), (404, None), (410, None), (422, None),
        (401, "auth"), (402, "entitlement_key"), (403, "auth"), (408, "transient"), (425, "transient"), (429, "rate"),
        (500, "transient"), (502, "transient"), (503, "transient"), (504, "transient"), (599, "transient"), (600, None),
    ],
)  # fmt: skip
def test_plain_reads_the_status_alone(status: int, expected: str | None) -> None:
    """Words of another upstream's vocabulary change nothing."""
    assert kind(status, body(BANDWIDTH), "plain") == expected


def test_the_wait_that_was_asked_for_comes_along() -> None:
    """A 503 may ask for it as well as a 429."""
    assert classify("plain", 429, {"retry-after": "7"}, b"") == Wall("rate", 7.0)
    assert classify("plain", 503, {"retry-after": "garbage"}, b"") == Wall("transient", None)


def test_an_unknown_vocabulary_is_a_mistake() -> None:
    """It is told with what is allowed."""
    with pytest.raises(InvalidOption, match="plain, fmp"):
        classify("klingon", 200, {}, b"")


@given(st.integers(0, 999), st.binary(max_size=4_000), st.sampled_from(["plain", "fmp"]))
def test_no_answer_makes_it_fail(status: int, content: bytes, vocabulary: str) -> None:
    """Bytes from outside: any of them."""
    classify(vocabulary, status, {}, content)
