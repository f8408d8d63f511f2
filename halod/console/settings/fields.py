# SPDX-License-Identifier: Apache-2.0
"""Every key of halo-server.toml: how it is read, and what docs/console-settings.md says of it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from halod.console.settings import kinds
from halod.console.settings.model import DAY, Hook, Limits, Oidc, Retention, Settings

_YEARS: Final = 3650
_MILLION: Final = 1_000_000


class Field(msgspec.Struct, frozen=True):
    """One key. `form` is how its value is written, for people."""

    read: Callable[[object], object]
    form: str
    words: str
    secret: bool = False
    """It names a file with a secret, which is looked at when the settings are read."""
    must: bool = False


def _text(words: str, *, must: bool = False) -> Field:
    return Field(kinds.text, "text", words, must=must)


def _texts(words: str) -> Field:
    return Field(kinds.texts, "list of texts", words)


def _path(words: str, *, secret: bool = False, must: bool = False) -> Field:
    return Field(kinds.path, "path", words, secret, must)


def _days(words: str) -> Field:
    return Field(partial(kinds.number, 1, _YEARS), "days", words)


def _count(words: str) -> Field:
    return Field(partial(kinds.number, 1, _MILLION), "number", words)


def _duration(least: int, most: int, words: str) -> Field:
    return Field(partial(kinds.duration, least, most), "duration", words)


TOP: Final[Mapping[str, Field]] = {
    "database_url": Field(
        kinds.database,
        "URL",
        "`sqlite:////FILE` or `postgresql://USER@HOST/NAME`, without a password. Without it: SQLite in"
        " `/var/lib/halo-server` (root), else in the account's state directory.",
    ),
    "database_url_file": _path(
        "A file with the whole address, password included. Not with `database_url`.", secret=True
    ),
    "listen": Field(
        kinds.listen, "address:port", "Where to listen. Beyond this machine: only with TLS or `proxies`."
    ),
    "public_url": Field(
        kinds.origin,
        "URL without path",
        "How browsers and agents reach the console. Needed for `oidc`, for `proxies`, and to listen on every address.",
    ),
    "hosts": Field(
        kinds.hosts,
        "list of names",
        "Further names (Host headers) under which requests are answered; any other one gets 421.",
    ),
    "tls_cert": _path("Certificate chain (PEM), TLS by the console itself."),
    "tls_key": _path("Its key (PEM, without a passphrase); without it, it is in `tls_cert`.", secret=True),
    "proxies": Field(
        kinds.proxies,
        "list of addresses or networks",
        "Reverse proxies in front of the console, which do TLS: their `X-Forwarded-For` is believed, nobody else's.",
    ),
    "device_token_days": _days("How long a device's token is valid; a machine renews its own."),
    "session_idle": _duration(300, 7 * DAY, "A session ends when it was not used for so long."),
    "session_absolute": _duration(300, 30 * DAY, "A session ends after this time, used or not."),
    "silent_after": _duration(300, 90 * DAY, "A device is silent when nothing came from it for so long."),
    "policy_keys": Field(
        kinds.keys,
        "list of keys",
        "Public keys, as `halo keygen` prints them, that a published policy is signed with.",
    ),
    "policy_org": _text("The `org` that a published policy has to be of."),
    "log_level": Field(
        partial(kinds.choice, kinds.LEVELS),
        ", ".join(f'`"{word}"`' for word in kinds.LEVELS),
        "Least level of a line.",
    ),
    "log_format": Field(
        partial(kinds.choice, kinds.FORMATS),
        ", ".join(f'`"{word}"`' for word in kinds.FORMATS),
        "`auto` is `plain` on a terminal, else `json`.",
    ),
}

OIDC: Final[Mapping[str, Field]] = {
    "issuer": Field(
        kinds.url, "URL", "The provider's issuer, exactly as its discovery document says.", must=True
    ),
    "client_id": _text("The console's client id there.", must=True),
    "client_secret_file": _path(
        "A file with the client's secret; without it, a public client (PKCE alone).", secret=True
    ),
    "scopes": _texts("What is asked for; `openid` is among them."),
    "groups_claim": _text(
        "The claim with a person's groups, in the ID token or else in the userinfo answer."
    ),
    "viewer_groups": _texts("Groups whose members see everything but the audit log."),
    "operator_groups": _texts("Groups whose members also accept and refuse devices."),
    "admin_groups": _texts(
        "Groups whose members also make tokens and keys, publish the policy, read the audit log."
    ),
    "ca_file": _path("Certificates (PEM) to trust for the provider instead of the system's."),
}

WEBHOOK: Final[Mapping[str, Field]] = {
    "name": _text("How pages, logs and metrics call it.", must=True),
    "url": Field(kinds.url, "URL", "Where events are posted.", must=True),
    "secret_file": _path("A file with the secret that signs them.", secret=True, must=True),
    "events": Field(
        kinds.events, "list of " + ", ".join(f'`"{word}"`' for word in kinds.EVENTS), "Which events."
    ),
    "ca_file": _path("Certificates (PEM) to trust for it instead of the system's."),
}

RETENTION: Final[Mapping[str, Field]] = {
    "transitions": _days("How long the history of findings is kept."),
    "audit": _days("How long the audit log is kept."),
    "devices": _days("A device from which nothing came for so long is forgotten, with its findings."),
    "deliveries": _days("How long delivered and dead webhooks are kept."),
}

LIMITS: Final[Mapping[str, Field]] = {
    "reports_per_minute": _count("Of one device token; a burst of as many is taken."),
    "requests_per_minute": _count("Of one address, over everything but reports."),
    "refused_per_minute": _count("Credentials that are not valid, of one address."),
    "servers_in_30_days": _count("Distinct server names that one device may report in 30 days."),
}


class Table(msgspec.Struct, frozen=True):
    """One table of the file. `many`: written `[[name]]`."""

    kind: type[msgspec.Struct]
    fields: Mapping[str, Field]
    words: str
    many: bool = False


TABLES: Final[Mapping[str, Table]] = {
    "": Table(Settings, TOP, "Before the first table."),
    "oidc": Table(
        Oidc,
        OIDC,
        "Who signs people in. Without it, one-time links do. A person in no listed group gets 403.",
    ),
    "webhook": Table(Hook, WEBHOOK, "Where events are sent, one table for each.", many=True),
    "retention": Table(Retention, RETENTION, "How long what is past is kept, in days."),
    "limits": Table(Limits, LIMITS, "What one address, one token and one device may ask."),
}
