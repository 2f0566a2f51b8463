"""Secrets leave no trace in what is printed; everything else is left as it was."""

import time
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from livewell.telemetry.logs import hide
from livewell.telemetry.redact import MASK, REDACT_CHARS_MAX, URL_CHARS_MAX, mask_url, redact

# Every secret holds this, so that finding it is never an accident of the words around it.
CANARY = "Zq7canary"

unhurried = settings(deadline=None)  # the default of 200 ms fails on a busy machine

printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
secrets = st.builds(lambda before, after: before + CANARY + after, printable, printable)
# As it stands in a URL (escaped), a quoted text (without quote and backslash), or a word (without a
# leading quote).
url_secrets = secrets.map(lambda secret: quote(secret, safe=""))
quoted_secrets = st.text(st.characters(exclude_characters="'\"\\", codec="utf-8"), max_size=20).map(
    lambda text: text + CANARY + text
)
word_secrets = secrets.filter(lambda secret: secret[0] not in "'\"\\b")
prose = st.lists(
    st.sampled_from(["the", "worker", "stopped", "at 12:30", "(job 17)", "a=1", "key=AAPL", "host:5432", "me@home.org"])
).map(" ".join)


@unhurried
@given(st.sampled_from(["postgresql", "postgres", "https", "redis", "amqp"]), st.sampled_from(["me", ""]), secrets)
def test_mask_url_hides_a_password_even_when_it_is_not_escaped(scheme: str, user: str, secret: str) -> None:
    """An @, a slash or a question mark in a password does not let the rest of it out."""
    masked = mask_url(f"{scheme}://{user}:{secret}@db.example:5432/shop")

    assert f"{scheme}://{user}:{MASK}@db.example:5432/shop" == masked


@unhurried
@given(st.sampled_from(["password", "sslpassword", "PASSWORD", "pass%77ord", "oauth_client_secret"]), url_secrets)
def test_mask_url_hides_a_password_in_the_query_string(name: str, secret: str) -> None:
    """The other parameters stay."""
    masked = mask_url(f"postgresql://db/shop?sslmode=require&{name}={secret}&application_name=x")

    assert f"postgresql://db/shop?sslmode=require&{name}={MASK}&application_name=x" == masked


@unhurried
@given(st.sampled_from(["password", "sslpassword", "scram_client_key"]), quoted_secrets)
def test_mask_url_hides_a_quoted_password_in_a_conninfo(name: str, secret: str) -> None:
    """Blanks inside quotes belong to the password."""
    assert f"host=db {name} = {MASK} dbname=shop" == mask_url(f"host=db {name} = '{secret}' dbname=shop")


@unhurried
@given(word_secrets)
def test_mask_url_hides_a_bare_password_in_a_conninfo(secret: str) -> None:
    """A bare value ends at white space."""
    assert CANARY not in mask_url(f"host=db password={secret} dbname=shop")


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://me@db/shop", "postgresql://me@db/shop"),
        ("postgresql://h1:5432,h2:5433/shop?sslmode=require", "postgresql://h1:5432,h2:5433/shop?sslmode=require"),
        ("postgresql://[::1]:5432/shop", "postgresql://[::1]:5432/shop"),
        ("postgresql:///shop?host=/var/run", "postgresql:///shop?host=/var/run"),
        ("host=/tmp dbname=shop user='a b'", "host=/tmp dbname=shop user='a b'"),
        ("postgresql://me:s3cret", "postgresql://me:***"),
        ("postgresql://db/shop?password=s3&cret", "postgresql://db/shop?password=***&***"),
        ("host=db password=two words", "host=db password=*** ***"),
        (r"password='it\'s s3cret' host=db", "password=*** host=db"),
        ("password='s3cret without end", "password=***"),
        ("dbname=postgresql://me:s3cret@db/shop", "dbname=***"),
        ("s3cret", "***"),
        ("", ""),
        ("x" * (URL_CHARS_MAX + 1), "***"),
    ],
)
def test_mask_url_keeps_what_helps_and_hides_what_it_does_not_understand(url: str, masked: str) -> None:
    """Host, user and options stay readable; stray words may be a piece of a password."""
    assert masked == mask_url(url)


@unhurried
@given(st.one_of(st.text(), st.text(alphabet="a:/@?&= '\\*p.")))
def test_mask_url_twice_is_mask_url_once(url: str) -> None:
    """Masking what is masked changes nothing."""
    assert mask_url(url) == mask_url(mask_url(url))


FORMS = {
    "postgresql://me:{}@db/shop": url_secrets,
    '{{"dsn":"redis://:{}@db:1"}}': url_secrets,
    "GET https://api.example/v1?symbol=A&apikey={}&limit=5": url_secrets,
    "https://s3.example/x?X-Amz-Signature={}": url_secrets,
    "password={}": word_secrets,
    "PGPASSWORD={}": word_secrets,
    "host=db sslpassword = {} dbname=shop": word_secrets,
    "apikey={}": word_secrets,
    "token={}": word_secrets,
    "aws_secret_access_key = {}": word_secrets,
    "X-Api-Key: {}": word_secrets,
    "client_secret: {}": word_secrets,
    "passphrase => {}": word_secrets,
    '{{"user": "me", "password": "{}"}}': quoted_secrets,
    r"{{\"token\": \"{}\"}}": quoted_secrets,
    "{{'apikey': '{}'}}": quoted_secrets,
    "{{b'x-api-key': b'{}'}}": quoted_secrets,
    "password='{}": quoted_secrets,
    "ALTER ROLE me PASSWORD '{}'": quoted_secrets,
    "Authorization: Bearer {}": word_secrets,
    "Proxy-Authorization: Basic {}": word_secrets,
    "{{'authorization': 'Bearer {}'}}": quoted_secrets,
    "sent Bearer {}.abc": st.just(CANARY),
    "key lw_{}0123": st.just(CANARY),
    "jwt eyJhbGciOi.{}.c2ln": st.just(CANARY),
    "aws {}/K7MDENGbPxRfiCYEXAMPLEKEYab+cd": st.just(CANARY),
    "aws id {}": st.just("AKIAZQ7CANARYEXAMPLE"),
    "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----": st.just(CANARY),
}


@pytest.mark.parametrize("form", FORMS)
@unhurried
@given(st.data())
def test_a_planted_secret_never_survives(form: str, data: st.DataObject) -> None:
    """Whatever form it has and whatever stands around it.

    Proven by removing each pattern in turn: this fails.
    """
    text = " ".join([data.draw(prose), form.format(data.draw(FORMS[form])), data.draw(prose)])

    assert CANARY.upper() not in redact(text).upper()


@settings(max_examples=25, deadline=None)
@given(st.integers(REDACT_CHARS_MAX - 60, REDACT_CHARS_MAX + 10))
def test_a_secret_at_the_cut_does_not_survive_in_part(position: int) -> None:
    """Half an address no longer looks like one, so the word at the cut goes."""
    redacted = redact("x" * 100 + " " * (position - 100) + f"postgresql://me:{CANARY * 3}@db/shop " + "y" * 100)

    assert "canary" not in redacted


@unhurried
@given(
    st.one_of(prose, st.text(alphabet=st.characters(exclude_characters=":=@'\"", max_codepoint=0x2FF), max_size=30)),
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    """Nothing is hidden where nothing looks like a secret."""
    assert text == redact(text)


@pytest.mark.parametrize(
    "text",
    [
        'FATAL: password authentication failed for user "me"',
        "see https://example.org:8080/a?b=c&mail=me@example.org",
        "connection to server at 127.0.0.1, port 5432 failed: Connection refused",
        "postgresql://me@db:5432/shop?sslmode=require",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "unique key AAPL, group_key=user:17, tokens_used=42, secretary: Bob",
        "/usr/lib/python3.11/site-packages/livewell/queue/worker.py:212",
        '{"a":"http://h:80/x","t":"12:30","mail":"me@x.org"}',
        "",
    ],
)
def test_everyday_lines_are_unchanged(text: str) -> None:
    """Errors, paths, addresses without password, commits and mail addresses stay readable."""
    assert text == redact(text)


def test_harmless_parameters_beside_a_key_stay_readable() -> None:
    """In a query string a secret ends at the ampersand."""
    assert redact("GET /v1?apikey=abc123&symbol=AAPL") == "GET /v1?apikey=***&symbol=AAPL"


def test_counts_after_a_secrets_name_stay_readable() -> None:
    """R25: "did not accept the credential: *** times" hid a number that is the whole message.

    A number alone is still hidden.
    """
    assert redact("did not accept the credential: 1,234 times for type fx") == (
        "did not accept the credential: 1,234 times for type fx"
    )
    assert redact("password: 1234") == "password: ***"
    assert redact("password: 1234times") == "password: ***"


@pytest.mark.parametrize("name", ["FMP_API_KEY", "MYFX_KEY", "main", "second-account", ""])
def test_the_name_of_a_credential_stays_readable(name: str) -> None:
    """`--json` showed "credential": "***" where the table showed the variable's name."""
    assert hide({"limiters": [{"credential": name}], "credentials": [name]}) == {
        "limiters": [{"credential": name}],
        "credentials": [name],
    }


@pytest.mark.parametrize(
    "secret", ["hunter2", "s3cr3t", "AKIAZQ7CANARYEXAMPLE", "JBSWY3DPEHPK3PXP", "lw_abcdefgh", "a b", "A" * 300, 17]
)
def test_a_credential_that_is_no_name_is_hidden(secret: object) -> None:
    """Only what has the form of a name is believed to be one, and only under `credential`."""
    assert hide({"credential": secret}) == {"credential": MASK}
    assert hide({"credentials": [secret, "FMP_API_KEY"]}) == {"credentials": [MASK, "FMP_API_KEY"]}
    assert hide({"api_key": "FMP_API_KEY", "password": "main"}) == {"api_key": MASK, "password": MASK}


def test_an_address_after_a_harmless_one_is_still_hidden() -> None:
    """A port and a path do not stop the search within one word."""
    text = f'{{"a":"http://h:80/x","b":"postgres://me:{CANARY}@db"}}'

    assert redact(text) == '{"a":"http://h:80/x","b":"postgres://me:***@db"}'


fragments = st.sampled_from(
    [
        "://",
        ":",
        "@",
        "password=",
        "token: ",
        "'",
        '"',
        "\\",
        " ",
        "\n",
        "a",
        "80/",
        "lw_abcdef",
        "Bearer ",
        "&",
        "?",
        "=",
        "authorization: ",
        "***",
        "-----BEGIN PRIVATE KEY-----",
        "eyJabcdef.",
        "PASSWORD '",
        "x" * 40,
        "aB1" * 14,
    ]
)


@example("http://a:\"password='x y'@h")  # hiding the blank makes one word, and so an address, of two
@unhurried
@given(st.one_of(st.text(), st.lists(fragments, max_size=30).map("".join)))
def test_redact_twice_is_redact_once(text: str) -> None:
    """Redacting what is redacted changes nothing, however tangled."""
    assert redact(text) == redact(redact(text))


@pytest.mark.parametrize("text", ["a" * 100_000, "word " * 30_000, "p=x password=y " * 20_000])
def test_long_text_is_cut_and_stays_so(text: str) -> None:
    """The result is bounded, and redacting it again cuts no further."""
    redacted = redact(text)

    assert redacted.endswith("… (cut)")
    assert len(redacted) <= REDACT_CHARS_MAX
    assert redacted == redact(redacted)


@pytest.mark.parametrize(
    "piece",
    [
        "://:",
        "://",
        "a@",
        "password",
        "password=\\",
        "?a",
        "eyJ-",
        "lw_",
        "bearer ",
        "-----BEGIN PRIVATE KEY",
        "'",
        "aB1/",
        "PASSWORD '",
        "token '",
        "authorization:",
        "http://h:80/",
        "\\",
        " ",
        "a.b-c",
        "x" * 40 + " ",
    ],
)
def test_hostile_text_is_redacted_in_linear_time(piece: str) -> None:
    """A quadratic pattern needs minutes of processor time for 64 KB, a linear one a tenth of a second."""
    text = (piece * REDACT_CHARS_MAX)[:REDACT_CHARS_MAX]
    started = time.process_time()

    redact(text)

    assert time.process_time() - started < 5
