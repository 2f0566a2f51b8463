"""Which environment variables may be an upstream's credentials, and what they hold.

A credential is sent to its upstream. So a file, or a row that an older release has applied, may not
name a variable that holds a secret of ours or belongs to this machine: its value would leave (L7).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

import structlog
from pydantic import SecretStr

from livewell.refresh.definition.model import UpstreamDefinition
from livewell.refresh.queues import is_refresh_queue
from livewell.settings import Settings
from livewell.telemetry.secret_forms import Secrets, secrets_of

log = structlog.get_logger("livewell.refresh")

# Ours, Postgres's, and what systems, shells, linkers, proxies and Python read.
_NEVER = re.compile(
    r"""(?x)
    LIVEWELL_.* | DATABASE_URL | PG[A-Z0-9]* | .*PATH
    | HOME | USER | LOGNAME | SHELL | PWD | OLDPWD | TERM | LANG | LANGUAGE | LC_.* | TZ | TMP | TEMP | TMPDIR | HOSTNAME | MAIL
    | EDITOR | VISUAL | PAGER | DISPLAY | IFS | ENV | PS[1-4] | SSH_.* | GPG_.* | XDG_.* | DBUS_.* | LD_.* | DYLD_.* | PYTHON.*
    | VIRTUAL_ENV | SSL_CERT_.* | (?:HTTPS?|FTP|ALL|NO)_PROXY | SUDO_.* | INVOCATION_ID | JOURNAL_STREAM | NOTIFY_SOCKET
    | CREDENTIALS_DIRECTORY | KUBERNETES_.*
    """
)
ALLOWED = (
    "its value would be sent to the upstream. Allowed is any other name than LIVEWELL_*, DATABASE_URL, PG*, "
    "those of the system (PATH, HOME, "
    "SSH_* …), and those that the settings jwt, alert_channels and sinks name. Put the upstream's key into a "
    "variable of its own, such as FMP_API_KEY, where the workers run, and name that one"
)


def own_variables(settings: Settings) -> frozenset[str]:
    """What the settings name as env:NAME.

    Keys of token issuers, addresses and secrets of alert channels, and of sinks.
    """
    named = [issuer.key for issuer in settings.jwt or ()]
    for channel in settings.alert_channels or ():
        named += [channel.address, channel.secret or ""]
    for sink in settings.sinks or ():
        named += sink.variables()
    return frozenset(one.removeprefix("env:") for one in named if one.startswith("env:"))


def is_ours(name: str, own: Collection[str]) -> bool:
    """True if a variable of this name may not be a credential of an upstream."""
    return name in own or _NEVER.fullmatch(name) is not None


def refusal(name: str) -> str:
    """Why it may not, and what to do."""
    return f"the variable {name} is Livewell's own or the system's, and {ALLOWED}"


def secrets_for(upstream: UpstreamDefinition) -> Secrets:
    """Every credential of the upstream that this process has.

    Whichever a call is made with, the upstream may know them all.
    """
    return secrets_of(*(os.environ.get(name, "") for name in upstream.credentials))


class Credentials:
    """The part of the environment that upstreams may use."""

    def __init__(self, settings: Settings) -> None:
        self._own = own_variables(settings)
        self._told: set[str] = set()

    def can_use(self, queue: str, credential: str) -> bool:
        """True if this process can and may make the calls of a queue with the credential.

        Where it may not, the log says why, once.
        """
        if not is_refresh_queue(queue):
            return True
        if is_ours(credential, self._own) and credential not in self._told:
            self._told.add(credential)
            log.error("a credential is not used", queue=queue, variable=credential, why=refusal(credential))
        return self.read(credential) is not None

    def read(self, credential: str) -> SecretStr | None:
        """What the variable holds; None if it is not set, or may not be sent to anybody."""
        secret = os.environ.get(credential)
        return SecretStr(secret) if secret and not is_ours(credential, self._own) else None
