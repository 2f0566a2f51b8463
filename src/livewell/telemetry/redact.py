"""Hide secrets in text that is about to be printed, logged or stored.

Pure, and below everything else. Two questions, two functions:

    mask_url   this text IS a database address: hide its passwords, keep what helps (host, database, user)
    redact     this text MAY hold secrets anywhere: an error, a log line, a traceback

For fields with a name: names_secret, and is_credential_name for the one field whose content is
itself a name.

Both would rather hide too much than too little: "unexpected token: }" loses its brace, so that
"token: s3cr3t" never keeps its secret. Both are bounded, linear in their input, and idempotent
(redact by construction: it repeats its pass until nothing changes).
"""

import re
from urllib.parse import unquote

__all__ = ["MASK", "REDACT_CHARS_MAX", "URL_CHARS_MAX", "is_credential_name", "mask_url", "names_secret", "redact"]

MASK = "***"
URL_CHARS_MAX = 8_192
REDACT_CHARS_MAX = 65_536

_CUT = "… (cut)"
_PASSES_MAX = 8  # two are enough for anything seen; a text that has not settled after eight is hidden whole

# libpq's secret parameters, and password-like ones of the proxies and drivers in front of it.
_SECRET_PARAMETER = re.compile(r"(?i)pass(?:word|wd|phrase)|pwd|secret|token|scram_\w+_key")


def mask_url(url: str) -> str:
    """Hide every password in a URL or a key=value conninfo.

    A text too long to be an address is hidden whole.
    """
    if len(url) > URL_CHARS_MAX:
        return MASK
    scheme, separator, rest = url.partition("://")
    if separator and re.fullmatch(r"\s*[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return scheme + separator + _mask_query(_mask_authority(rest))
    return _mask_conninfo(url)


def _mask_authority(rest: str) -> str:
    """Hide from the first colon to the LAST @.

    People forget to escape the @ and / in their passwords.
    """
    credentials, at, tail = rest.rpartition("@")
    if at:
        user, colon, _ = credentials.partition(":")
        return f"{user}:{MASK}@{tail}" if colon else rest
    # No @: "user:secret" with the host forgotten reads as host and port, so a port that is no
    # number is hidden.
    hosts, slash, path = re.fullmatch(r"(?s)([^/?]*)([/?]?)(.*)", rest).groups()  # type: ignore[union-attr]
    return ",".join(_mask_port(host) for host in hosts.split(",")) + slash + path


def _mask_port(host: str) -> str:
    name, port = re.fullmatch(r"(?s)(\[[^\]]*\]|[^:]*)(.*)", host).groups()  # type: ignore[union-attr]
    return host if re.fullmatch(r"(?::[0-9]{0,5})?", port) else f"{name}:{MASK}"


def _mask_query(rest: str) -> str:
    path, mark, query = rest.partition("?")
    return path + mark + "&".join(_mask_parameter(part) for part in query.split("&")) if mark else rest


def _mask_parameter(part: str) -> str:
    """A part without = is the rest of a password that held an &."""
    key, equals, _ = part.partition("=")
    if not equals:
        return MASK if part else part
    return f"{key}={MASK}" if _SECRET_PARAMETER.search(unquote(key)) else part


_CONNINFO_PART = re.compile(
    r"""(?sx)
    (?P<key>[^\s=]+) (?P<equals>\s*=\s*) (?P<value> '(?:\\.|[^'\\])*(?:'|\\?\Z) | (?:\\.|[^\s\\])*\\? )
    | (?P<stray>\S+)   # a word without = is the rest of a password that held a space
    """
)


def _mask_conninfo(conninfo: str) -> str:
    return _CONNINFO_PART.sub(_mask_part, conninfo)


def _mask_part(part: re.Match[str]) -> str:
    if part["stray"] is not None:
        return MASK
    hides = _SECRET_PARAMETER.search(part["key"]) or "://" in part["value"]  # libpq accepts dbname=postgresql://…
    return part["key"] + part["equals"] + MASK if hides else part[0]


# The words a secret's name ends with. What stands before them (PGPASSWORD, x-api-key) does not
# matter.
_NAME = r"""(?:pass(?:word|wd|phrase)|pwd|secret|token|credentials?
    |(?:api|access|account|auth|client|encryption|private|secret|server|shared|signing)[ _-]?key)"""
_QUOTED = r"""b?(?P<quote>\\*["'])(?:(?!(?P=quote))(?:\\.|[^\\]))*(?:(?P=quote)|\\?\Z)"""
_ASSIGN = r"""\\*["']?[ \t]*(?:=>|:=|[:=])[ \t]*"""

_PRIVATE_KEY = re.compile(r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)")
_AUTHORIZATION = re.compile(
    rf"(?isx)(?P<name>authorization{_ASSIGN}) (?:{_QUOTED} | (?:[a-z][a-z0-9-]{{0,30}}[\ \t]+)?\S+)"
)
# In a query string a value ends at &, so the harmless parameters after it stay readable; elsewhere
# at white space.
# "refused the credential: 12 times" is a count.
_NAMED = re.compile(
    rf"""(?isx)
    (?P<parameter>[?&][\w.-]*?(?:{_NAME}|signature|sig|apikey)=) [^&\s"<>]*
    | (?P<name>{_NAME}{_ASSIGN}) (?![0-9][0-9,]{{0,11}}[ ]times\b) (?:{_QUOTED} | \S+)
    """
)
_SQL_PASSWORD = re.compile(r"(?i)(password\s{1,20})'(?:[^']|'')*(?:'|\Z)")  # ALTER ROLE x PASSWORD '…'
_BEARER = re.compile(r"(?i)\b(bearer[ \t]{1,20})[A-Za-z0-9._~+/=-]{8,}")
_JSON_WEB_TOKEN = re.compile(r"(?<![\w-])eyJ[\w-]{5,}\.[\w-]+\.[\w-]*")
_LIVEWELL_KEY = re.compile(r"(?<![A-Za-z0-9])lw_[A-Za-z0-9_-]{6,}")
_AWS_KEY_ID = re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_PORT = re.compile(r"[0-9]{1,5}[/?#]")
# A credential of Livewell is the name of an environment variable, or a plain word that an app
# chose.
_CREDENTIAL_NAME = re.compile(r"[A-Z][A-Z0-9]{0,20}(?:_[A-Z0-9]{1,20}){1,8}|[a-z]{1,20}(?:[_-][a-z]{1,20}){0,3}|")
_CREDENTIAL_FIELD = re.compile(r"credentials?")


def redact(text: str) -> str:
    """Hide what looks like a secret.

    Text without one comes back unchanged, cut after REDACT_CHARS_MAX.
    """
    for _ in range(_PASSES_MAX):
        before, text = text, _cut(_hide(_cut(text)))
        if text == before:
            return text
    return MASK


def names_secret(name: str) -> bool:
    """True if what a field of this name holds is a secret: password, api_key, credential."""
    return redact(f"{name}=x") != f"{name}=x"


def is_credential_name(field: str, value: str) -> bool:
    """True if the field is `credential` and the value is the name of one (FMP_API_KEY), not its content."""
    return bool(_CREDENTIAL_FIELD.fullmatch(field) and _CREDENTIAL_NAME.fullmatch(value)) and redact(value) == value


def _cut(text: str) -> str:
    """Cut at white space: half a secret no longer looks like one (postgresql://u:secr… has lost its @)."""
    if len(text) <= REDACT_CHARS_MAX:
        return text
    kept = text[: REDACT_CHARS_MAX - len(_CUT)]
    return kept[: max(map(kept.rfind, " \n\t")) + 1] + _CUT


def _hide(text: str) -> str:
    text = _PRIVATE_KEY.sub(MASK, text)
    text = re.sub(r"\S+", _hide_credentials, text) if "://" in text else text
    text = _AUTHORIZATION.sub(_hide_value, text)
    text = _NAMED.sub(_hide_value, text)
    text = _SQL_PASSWORD.sub(rf"\1'{MASK}'", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _JSON_WEB_TOKEN.sub(MASK, text)
    text = _LIVEWELL_KEY.sub(f"lw_{MASK}", text)
    text = _AWS_KEY_ID.sub(MASK, text)
    return _AWS_SECRET.sub(_hide_if_mixed, text)


def _hide_credentials(word: re.Match[str]) -> str:
    """Hide the password of a URL, up to the last @ of the word.

    Not one pattern, because that would be quadratic.
    """
    token = word[0]
    at = token.rfind("@")
    start = token.find("://")
    while 0 <= start < at:
        colon = token.find(":", start + 3, at)
        if colon < 0:
            break
        if not set(token[start + 3 : colon]) & set("/?#") and not _PORT.match(token, colon + 1):
            return token[: colon + 1] + MASK + token[at:]
        start = token.find("://", start + 3)
    return token


def _hide_value(found: re.Match[str]) -> str:
    parts = found.groupdict()
    quote = parts["quote"] or ""
    return (parts.get("parameter") or parts["name"]) + quote + MASK + quote


def _hide_if_mixed(found: re.Match[str]) -> str:
    """Forty characters of all three kinds are an AWS secret.

    A git commit has no capitals, a long word no digits.
    """
    kinds = (str.isupper, str.islower, str.isdigit)
    return MASK if all(any(map(kind, found[0])) for kind in kinds) else found[0]
