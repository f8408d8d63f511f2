# SPDX-License-Identifier: Apache-2.0
"""halo.toml: the organisation's authorization server. It lies beside halod.toml, and every account may read it.

Invariants:

1. It holds no secret: `halo` is a public client (OAuth 2.1), and a key that sounds like a secret is refused.
2. All faults are told at once, each with its line.
3. The system's own file, and every file for root, count only where nobody but root could have written them and the
   certificates they name: whoever names the issuer says where people sign in.
"""

import os
import posixpath
import re
import sys
from typing import Final

import msgspec

from halod.errors import UsageError
from halod.launch.urls import is_loopback, parse_url
from halod.roles import trust
from halod.settings.fields import PATH_LIMIT, Reader
from halod.settings.model import Problem, places
from halod.settings.reading import decode_toml, read_file
from halod.settings.values import Value, called, secret_advice, shown

KEYS: Final = ("issuer", "client_id", "scopes", "ca_file")
CLIENT_LIMIT: Final = 512
"""Characters: a client id can be a URL."""
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,255}")
_SAMPLE: Final = "https://login.acme.example"


class AuthSettings(msgspec.Struct, frozen=True):
    """The table `[auth]`, checked. `issuer` is as written: metadata must name exactly it (RFC 8414 section 3.3)."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...] = ()
    ca_file: str = ""


def default_path(platform: str = sys.platform) -> str:
    """Give the system's own place of halo.toml."""
    return posixpath.join(posixpath.dirname(places(platform).settings), "halo.toml")


def load(path: str | None = None, *, system: str = "") -> AuthSettings:
    """Read and check the settings.

    Args:
        path: the file that `--config` names, the caller's own affair unless that is root; None: that at `system`.
        system: the system's own place; "": that of this system.

    Raises:
        UsageError: there are none, they cannot be read, have faults, or could be another's words.
    """
    file = posixpath.abspath(path or system or default_path())
    guarded = path is None or os.geteuid() == 0
    if guarded:
        _demand(file)
    data = read_file(file, missing_ok=True)
    if data is None:
        raise UsageError(
            f"there are no settings at {file}",
            advice="they name the authorization server, see docs/token.md; --config names another file",
        )
    settings = parse(data, file)
    if guarded and settings.ca_file:
        _demand(settings.ca_file)
    return settings


def _demand(path: str) -> None:
    """Refuse a file that another account than root could have written or replaced. Raises UsageError."""
    problems = trust.check([path])
    if problems:
        raise UsageError(
            f"the settings are not to be believed: {problems[0]}",
            advice="they say where people sign in; give it to root and to nobody else to write",
        )


def parse(data: bytes, name: str) -> AuthSettings:
    """Check the bytes of a halo.toml; `name` is what messages call it.

    Raises:
        UsageError: there are faults; the message has all of them.
    """
    reader = Reader(platform=sys.platform, root=False)
    source, document = decode_toml(name, data, reader)
    auth: dict[str, Value] = {}
    for key, item in document.items():
        value = Value(item, source, (key,))
        if key != "auth":
            reader.known(("auth",), value, "table")
        elif not isinstance(item, dict):
            reader.fault(value, f"expected a table ([auth]), got {called(item)}")
        else:
            auth = {inner: value.member(inner, of) for inner, of in item.items()}
    for key, value in auth.items():
        if key not in KEYS:
            _unknown(reader, key, value)
    if not reader.problems:
        for key in KEYS[:2]:
            if key not in auth:
                reader.problems.append(Problem(name, source.line(("auth",)), f"auth.{key} is missing"))
    issuer = _issuer(reader, auth["issuer"]) if "issuer" in auth else None
    client = reader.text(auth["client_id"], CLIENT_LIMIT) if "client_id" in auth else None
    scopes = reader.unique(auth["scopes"], "scopes", _scope) if "scopes" in auth else ()
    ca_file = reader.path(auth["ca_file"]) if "ca_file" in auth else ""
    if reader.problems or issuer is None or client is None or scopes is None or ca_file is None:
        raise UsageError("; ".join(map(str, sorted(set(reader.problems)))))
    return AuthSettings(issuer, client, scopes, ca_file)


def _unknown(reader: Reader, key: str, value: Value) -> None:
    if secret_advice(key):
        reader.fault(value, "halo is a public client: there is no secret, and none may stand here")
    else:
        reader.known(KEYS, value, "key")


def _issuer(reader: Reader, value: Value) -> str | None:
    text = reader.text(value, PATH_LIMIT)
    if text is None:
        return None
    parts = parse_url(text)
    if parts is None or parts.userinfo or parts.query is not None or parts.fragment is not None:
        reader.fault(value, f"expected a URL such as {_SAMPLE}, without user name, query and fragment")
    elif parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.host)):
        reader.fault(value, "must be https; http is for a loopback host only")
    else:
        return text
    return None


def _scope(reader: Reader, value: Value) -> str | None:
    text = value.value
    if isinstance(text, str) and _SCOPE.fullmatch(text):
        return text
    what = "expected one scope, without blanks and quotes"
    reader.fault(value, f"{what}, got {shown(text) if isinstance(text, str) else called(text)}")
    return None
