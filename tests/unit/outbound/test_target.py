"""A URL is read strictly: whatever two programs could read differently is refused (F-D15, F-D19)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.errors import ConfigurationError
from livewell.outbound.target import Hosts, UrlRefused

HOSTS = Hosts(
    ["api.example.com", "api2", "8.8.8.8", "10.1.2.3", "169.254.169.254"],
    ["local.test", "127.0.0.1", "[::1]", "169.254.1.1"],
)


@pytest.mark.parametrize(
    ("url", "whole", "private"),
    [
        ("https://api.example.com", "https://api.example.com:443/", False),
        ("https://API.Example.com/v1?a=b%20c&d=1,2", "https://api.example.com:443/v1?a=b%20c&d=1,2", False),
        ("https://api.example.com:8443/x", "https://api.example.com:8443/x", False),
        ("https://8.8.8.8/", "https://8.8.8.8:443/", False),
        ("https://api2/x", "https://api2:443/x", False),
        ("http://local.test:8080/x", "http://local.test:8080/x", True),
        ("https://local.test/", "https://local.test:443/", True),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1/", True),
        ("http://[::1]:1/", "http://[::1]:1/", True),
        ("https://api.example.com/a..b/c.d/...", "https://api.example.com:443/a..b/c.d/...", False),
    ],
)
def test_a_plain_url_of_a_named_host_is_taken_as_it_is(url: str, whole: str, private: bool) -> None:
    """Only the host is lower-cased and the port written out."""
    target = HOSTS.read(url)

    assert (target.url, target.private) == (whole, private)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/",
        "https://other.example.com/",
        "https://api.example.com./",
        "https://api.example.com.evil.test/",
        "https://evil.test/api.example.com",
        "https://evil.test?@api.example.com/",
        "https://user@api.example.com/",
        "https://user:password@api.example.com/",
        "https://api.example.com@evil.test/",
        "https://api.example.com:443@evil.test/",
        "https://api.example.com#@evil.test/",
        "https://api.example.com/x#fragment",
        "https://api.example.com\\@evil.test/",
        "https://api.example.com\\.evil.test/",
        "https://api.example.com:99999/",
        "https://api.example.com:0/",
        "https://api.example.com:/",
        "https://api.example.com:44 3/",
        "https:/api.example.com/",
        "https:api.example.com/",
        "//api.example.com/",
        "ftp://api.example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:1/",
        "HTTPS://api.example.com/",
        " https://api.example.com/",
        "https://api.example.com/ ",
        "https://api.example.com/\n",
        "https://api.example.com/a b",
        "https://api.example.com/\r\nHost: evil.test",
        "https://api.example.com/x?symbol=A\r\nX-Evil: 1",
        "https://api.example.com/x?symbol=A\0",
        "https://api.example.com/x?symbol=é",
        "https://api.example.com/x?symbol=%zz",
        "https://api.example.com/x?symbol=%",
        "https://api.example.com/../admin",
        "https://api.example.com/v1/..",
        "https://api.example.com/v1/%2e%2E/admin",
        "https://api.example.com/v1/.%2e/admin",
        "https://api.example.com/./x",
        'https://api.example.com/"<script>',
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
        "http://169.254.169.254/latest/meta-data",
        "https://127.0.0.2/",
        "http://169.254.1.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost/",
        "https://аpi.example.com/",
        "",
        "https://api.example.com/" + "a" * 9000,
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    """Also a named host whose address is one of ours without being named private."""
    with pytest.raises(UrlRefused):
        HOSTS.read(url)


def test_a_refusal_never_repeats_path_or_query() -> None:
    """A credential in the wrong place must not reach a log through the error."""
    for url in (
        "https://evil.test/canary?key=canary",
        "https://canary@api.example.com/",
        "http://api.example.com/canary",
    ):
        with pytest.raises(UrlRefused) as caught:
            HOSTS.read(url)
        assert "canary" not in str(caught.value)


@given(st.text(max_size=60))
def test_no_key_can_leave_its_place_in_the_url(key: str) -> None:
    """A raw key in path or query is either refused or taken verbatim.

    Host and port are never its to choose (F-D19).
    """
    for url in (f"https://api.example.com/quote/{key}", f"https://api.example.com/quote?symbol={key}"):
        try:
            target = HOSTS.read(url)
        except UrlRefused:
            continue
        assert target.url == url.replace("example.com/", "example.com:443/", 1)
        assert all("!" <= letter <= "~" and letter != "#" for letter in target.url)


@pytest.mark.parametrize("host", ["*", "*.example.com", "https://x.test", "x.test:80", "127.1", "0x7f.1", "a b", ""])
def test_a_list_holds_exact_names_only(host: str) -> None:
    """A pattern, a port or a short-hand address in a list is a mistake that is told at once."""
    with pytest.raises(ConfigurationError):
        Hosts([host])
