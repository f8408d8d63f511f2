# SPDX-License-Identifier: Apache-2.0
"""How each kind of value in halo-server.toml is read: it gives the value or raises `Fault` in words. Pure.

A message quotes a value only where it can be no secret.
"""

import base64
import binascii
import ipaddress
import posixpath
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from halod.console.settings.listen import is_loopback, split_listen
from halod.console.settings.words import nearest

_DURATION: Final = re.compile(r"([0-9]{1,9})\s*(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_HOST: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9_.-]{0,252}[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", re.IGNORECASE
)
_MANY: Final = 1000
EVENTS: Final = ("finding.new", "definition.new", "device.silent", "device.back", "coverage.lost")
LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("auto", "json", "plain")


class Fault(Exception):
    """A value is not what its key takes."""


def called(value: object) -> str:
    """Name the type of a value as TOML does."""
    if isinstance(value, bool):
        return "true or false"
    names: tuple[tuple[type, str], ...] = (
        (str, "text"),
        (int, "a number"),
        (float, "a number with a fraction"),
        (list, "a list"),
        (dict, "a table"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "a date or other value")


def text(value: object, limit: int = 1024) -> str:
    """Read text on one line."""
    if not isinstance(value, str):
        raise Fault(f"expected text, got {called(value)}")
    if not value.strip():
        raise Fault("must not be empty; leave the key out instead")
    if not value.isprintable() or value != value.strip():
        raise Fault("must be one line without control characters, and not begin or end with a blank")
    if len(value) > limit:
        raise Fault(f"is longer than {limit} characters")
    return value


def texts(value: object) -> tuple[str, ...]:
    """Read a list of texts."""
    return _members(value, text)


def path(value: object) -> str:
    """Read the absolute path of a file."""
    found = text(value)
    if "-----" in found:
        raise Fault("expected the path of a file, not the content of one")
    if not found.startswith("/") or ".." in found.split("/"):
        raise Fault('must be an absolute path without ".."')
    return posixpath.normpath(found)


def number(least: int, most: int, value: object) -> int:
    """Read a number from `least` to `most`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Fault(f"expected a number, got {called(value)}")
    if not least <= value <= most:
        raise Fault(f"must be from {least} to {most}")
    return value


def duration(least: int, most: int, value: object) -> int:
    """Read seconds, or text such as `8h`."""
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if isinstance(value, int) and not isinstance(value, bool):
        seconds = value
    elif found is not None:
        seconds = int(found[1]) * _SECONDS[found[2]]
    else:
        raise Fault('expected seconds, or text such as "15m", "8h", "30d"')
    if not least <= seconds <= most:
        raise Fault(f"must be from {least} to {most} seconds")
    return seconds


def choice(words: tuple[str, ...], value: object) -> str:
    """Read one of some words."""
    if isinstance(value, str) and value in words:
        return value
    hint = nearest(value, words) if isinstance(value, str) else f"; got {called(value)}"
    raise Fault(f"expected one of {', '.join(words)}{hint}")


def events(value: object) -> tuple[str, ...]:
    """Read the events of a webhook."""
    found = _members(value, lambda item: choice(EVENTS, item))
    if not found:
        raise Fault("the list is empty; leave the key out for all of them")
    return found


def listen(value: object) -> str:
    """Read an address to listen on."""
    found = text(value)
    try:
        split_listen(found)
    except ValueError:
        raise Fault("expected an address and a port, such as 127.0.0.1:8640 or [::1]:8640") from None
    return found


def host(value: object) -> str:
    """Read a name as browsers put it into the Host header."""
    found = text(value, 260)
    if not _HOST.fullmatch(found):
        raise Fault("expected a host name, with a port if it is not the scheme's own; no https:// before it")
    return found.lower()


def hosts(value: object) -> tuple[str, ...]:
    """Read a list of such names."""
    return _members(value, host)


def proxies(value: object) -> tuple[str, ...]:
    """Read addresses and networks."""
    return _members(value, _network)


def url(value: object) -> str:
    """Read an https URL (http on a loopback host) without userinfo and fragment. It is never quoted."""
    found = text(value, 2048)
    try:
        parts = urlsplit(found)
        name, _ = parts.hostname, parts.port
    except ValueError:
        raise Fault("is no URL") from None
    if parts.scheme not in ("https", "http") or not name or any(c in found for c in ' "<>\\^`{|}'):
        raise Fault("expected an https URL")
    if "@" in parts.netloc:
        raise Fault("must not carry a user name or password")
    if parts.fragment or "#" in found:
        raise Fault("must not have a fragment (#)")
    if parts.scheme == "http" and not _on_this_machine(name):
        raise Fault("must be https; http is for a loopback host only")
    return found


def origin(value: object) -> str:
    """Read a URL that is scheme, host and port only."""
    found = url(value).rstrip("/")
    parts = urlsplit(found)
    if parts.path or parts.query:
        raise Fault("must be without a path, such as https://halo.acme.example")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def database(value: object) -> str:
    """Read the address of a database. It is never quoted."""
    found = text(value)
    scheme, _, rest = found.partition("://")
    if scheme.partition("+")[0] not in ("sqlite", "postgresql", "postgres"):
        raise Fault("expected sqlite:////FILE or postgresql://HOST/NAME")
    user, at, _ = rest.rpartition("@")
    if at and ":" in user:
        raise Fault(
            "must not hold a password: put the whole address into a file and name it in database_url_file"
        )
    return found


def keys(value: object) -> tuple[str, ...]:
    """Read Ed25519 public keys."""
    return _members(value, _public_key)


def _members(value: object, read: Callable[[object], str]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Fault(f"expected a list, got {called(value)}")
    if len(value) > _MANY:
        raise Fault(f"has more than {_MANY} members")
    found: list[str] = []
    for at, item in enumerate(value, 1):
        try:
            found.append(read(item))
        except Fault as fault:
            raise Fault(f"member {at}: {fault}") from None
    if len(set(found)) != len(found):
        raise Fault("has a member twice")
    return tuple(found)


def _network(value: object) -> str:
    found = text(value)
    try:
        network = ipaddress.ip_network(found, strict=False)
    except ValueError:
        raise Fault("expected an address or a network, such as 10.0.0.0/8") from None
    if network.prefixlen == 0:
        raise Fault("must not be every address: anybody could then say who they are")
    return str(network)


def _public_key(value: object) -> str:
    found = text(value)
    if "PRIVATE KEY" in found:
        raise Fault("this is a private key, which must not be here; give the public one")
    try:
        raw = base64.b64decode(found, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32:
        raise Fault("expected an Ed25519 public key: 32 bytes in base64, as halo keygen prints it")
    return found


def _on_this_machine(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return is_loopback(name)
    except ValueError:
        return False
