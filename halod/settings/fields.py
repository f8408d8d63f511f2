# SPDX-License-Identifier: Apache-2.0
"""Typed reading of settings: each kind of value has one reader, which gives a value or records a fault.

Invariants:

1. A reader never raises and never stops the check of its neighbours: all faults are seen at once.
2. A message names keys and says what is expected; a value is quoted only where it cannot be a secret.
"""

import base64
import binascii
import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from halod.launch.urls import is_loopback, parse_url
from halod.settings.model import FILE_BYTES, INTERVAL, ExtraLocation, Places, Problem, places
from halod.settings.values import (
    LABEL_LIMIT,
    Value,
    called,
    described,
    did_you_mean,
    nearest,
    secret_advice,
    shown,
)

PATH_LIMIT: Final = 1024
_URL_LIMIT: Final = 2048
_MANY: Final = 1000
"""Members of any list."""

_DURATION: Final = re.compile(r"([0-9]{1,9})\s*(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SIZE: Final = re.compile(r"([0-9]{1,9})\s*(KiB|MiB)")
_BYTES: Final = {"KiB": 1024, "MiB": 1024 * 1024}
_P: Final = 2**255 - 19
_ORDER_8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER: Final = frozenset({0, 1, _P - 1, _P, _P + 1, _ORDER_8, _P - _ORDER_8})
_ACCOUNT: Final = re.compile(r"[^\s:/,\x00-\x1f\x7f]{1,64}")


def is_weak_key(raw: bytes) -> bool:
    """Tell whether an Ed25519 public key is a point of small order, for which signatures can be made up.

    The y coordinates of all of them, also in the two encodings that are not canonical (RFC 8032 section 5.1;
    verifiers such as OpenSSL do not refuse them). 32 zero bytes, which a template might leave, are one.
    """
    return (int.from_bytes(raw, "little") & ((1 << 255) - 1)) in _SMALL_ORDER


class Reader:
    """Collects the faults of settings that are read for one system.

    `root` refuses relative paths: where they lead would depend on the directory that the service starts in.
    Otherwise they begin at the directory of the file that names them.
    """

    def __init__(self, *, platform: str, root: bool) -> None:
        self.problems: list[Problem] = []
        self.places: Places = places(platform)
        self.root = root

    def fault(self, value: Value, message: str) -> None:
        """Record a fault at a value."""
        self.problems.append(
            Problem(value.source.name, value.source.line(value.path), f"{value.name}: {message}")
        )

    def table(self, kind: type[msgspec.Struct], values: Mapping[str, Value]) -> dict[str, Any]:
        """Read the values of one table of settings by the kinds of its keys; faulty ones are left out.

        The keys are known already.
        """
        read: dict[str, Any] = {}
        hints = described(kind)
        for key, value in values.items():
            of = hints[key].kind
            got = self.choice(value, hints[key].choices) if of == "choice" else _READERS[of](self, value)
            if got is not None:
                read[key] = got
        return read

    def known(self, names: Collection[str], value: Value, what: str) -> None:
        """Record that a key is not among `names`."""
        key = str(value.path[-1])
        if what == "table" and not isinstance(value.value, (dict, list)):
            message = f"unknown key {shown(key)}; every key stands in a table"
        else:
            message = f"unknown {what} {shown(key)}"
        secret = secret_advice(key)
        near = nearest(key, names)
        if secret:
            message += f"; {secret}"
        elif near:
            message += f'; did you mean "{near}"?'
        elif what == "table":
            message += f"; there are {', '.join(names)}"
        where = ".".join(str(part) for part in value.path[:-1] if isinstance(part, str))
        line = value.source.line(value.path)
        self.problems.append(Problem(value.source.name, line, f"{where}: {message}" if where else message))

    # --- one reader for each kind ---

    def text(self, value: Value, limit: int) -> str | None:
        """Read text on one line without control characters, neither empty nor blank at its ends."""
        text = value.value
        if not isinstance(text, str):
            self.fault(value, f"expected text, got {called(text)}")
        elif not text.strip():
            self.fault(value, "must not be empty; leave the key out instead")
        elif not text.isprintable():
            self.fault(value, "must be one line without control characters")
        elif text != text.strip():
            self.fault(value, "must not begin or end with a blank")
        elif len(text) > limit:
            self.fault(value, f"is longer than {limit} characters")
        else:
            return text
        return None

    def label(self, value: Value) -> str | None:
        """Read a name."""
        return self.text(value, LABEL_LIMIT)

    def account(self, value: Value) -> str | None:
        """Read the name of an account, one that is not root."""
        name = self.text(value, LABEL_LIMIT)
        if name is None:
            return None
        if not _ACCOUNT.fullmatch(name):
            self.fault(value, "expected the name of an account")
        elif name == "root":
            self.fault(value, "must not be root: this account has the network and therefore no other right")
        else:
            return name
        return None

    def members(self, value: Value, of: str) -> list[Value] | None:
        """Read a list; `of` says in the plural what it holds."""
        items = value.value
        if not isinstance(items, list):
            self.fault(value, f"expected a list of {of}, got {called(items)}")
            return None
        if len(items) > _MANY:
            self.fault(value, f"has more than {_MANY} members")
            return None
        return [value.member(number, item) for number, item in enumerate(items)]

    def unique(
        self, value: Value, of: str, read: Callable[["Reader", Value], str | None]
    ) -> tuple[str, ...] | None:
        """Read a list of texts without repetitions; members with a fault are left out."""
        items = self.members(value, of)
        if items is None:
            return None
        found: dict[str, None] = {}
        for item in items:
            text = read(self, item)
            if text is None:
                continue
            if text in found:
                self.fault(item, f"{shown(text)} is listed twice")
            found[text] = None
        return tuple(found)

    def labels(self, value: Value) -> tuple[str, ...] | None:
        """Read a list of names."""
        return self.unique(value, "names", Reader.label)

    def accounts(self, value: Value) -> str | tuple[str, ...] | None:
        """Read `console`, `all`, or a list of account names."""
        if isinstance(value.value, list):
            names = self.unique(value, "account names", Reader.label)
            if names == () and not value.value:
                self.fault(value, 'the list is empty; name accounts, or use "console" or "all"')
                return None
            return names
        if value.value in ("console", "all"):
            return value.value
        if isinstance(value.value, str):
            hint = did_you_mean(value.value, ("console", "all"))
            self.fault(value, f'expected "console", "all" or a list of account names{hint}')
        else:
            self.fault(
                value, f'expected "console", "all" or a list of account names, got {called(value.value)}'
            )
        return None

    def choice(self, value: Value, words: tuple[str, ...]) -> str | None:
        """Read one word of a closed vocabulary."""
        if isinstance(value.value, str) and value.value in words:
            return value.value
        listed = ", ".join(f'"{word}"' for word in words)
        got = f"; got {called(value.value)}" if not isinstance(value.value, str) else ""
        hint = did_you_mean(value.value, words) if isinstance(value.value, str) else ""
        self.fault(value, f"expected one of {listed}{got}{hint}")
        return None

    def flag(self, value: Value) -> bool | None:
        """Read true or false."""
        if isinstance(value.value, bool):
            return value.value
        self.fault(value, f"expected true or false, got {called(value.value)}")
        return None

    def duration(self, value: Value) -> int | None:
        """Read seconds, or text such as `15m`."""
        seconds = self._measure(value, _DURATION, _SECONDS, 'seconds, or text such as "15m"')
        return self._within(value, seconds, INTERVAL, "60 seconds", "one day (86400 seconds)")

    def size(self, value: Value) -> int | None:
        """Read bytes, or text such as `128 MiB`."""
        size = self._measure(value, _SIZE, _BYTES, 'bytes, or text such as "128 MiB"')
        return self._within(value, size, FILE_BYTES, "64 KiB", "256 MiB")

    def _measure(
        self, value: Value, form: re.Pattern[str], units: Mapping[str, int], what: str
    ) -> int | None:
        given = value.value
        if isinstance(given, int) and not isinstance(given, bool):
            return given
        found = form.fullmatch(given.strip()) if isinstance(given, str) else None
        if found is not None:
            return int(found[1]) * units[found[2]]
        got = "" if isinstance(given, str) else f", got {called(given)}"
        self.fault(value, f"expected {what}{got}")
        return None

    def _within(
        self, value: Value, number: int | None, bounds: tuple[int, int], least: str, most: str
    ) -> int | None:
        if number is None or bounds[0] <= number <= bounds[1]:
            return number
        self.fault(value, f"must be from {least} to {most}")
        return None

    def path(self, value: Value) -> str | None:
        """Read the path of a file or directory; gives it absolute and without `.` and `..`."""
        text = self.text(value, PATH_LIMIT)
        if text is None:
            return None
        if text.startswith("~"):
            self.fault(value, "is not expanded: the service has no home; write the path from / on")
        elif "-----" in text:
            self.fault(value, "expected the path of a file, not the content of one")
        elif ".." in text.split("/"):
            self.fault(value, 'must not hold ".."')
        elif text.startswith("/"):
            return posixpath.normpath(text)
        elif self.root or not value.source.name.startswith("/"):
            self.fault(value, "must be an absolute path")
        else:
            return posixpath.normpath(posixpath.join(posixpath.dirname(value.source.name), text))
        return None

    def url(self, value: Value) -> str | None:
        """Read an https URL (http on a loopback host) without userinfo and fragment. It is never quoted."""
        text = self.text(value, _URL_LIMIT)
        if text is None:
            return None
        parts = parse_url(text)
        if "@" in text.partition("://")[2].partition("/")[0]:
            self.fault(value, "must not carry a user name or password; a token stands in report.token_file")
        elif parts is None or parts.scheme not in ("https", "http"):
            self.fault(value, "expected an https URL, such as https://halos.acme.example/api/v1/fleet/report")
        elif parts.fragment is not None:
            self.fault(value, "must not have a fragment (#)")
        elif parts.scheme == "http" and not is_loopback(parts.host):
            self.fault(value, "must be https; http is for a loopback host only")
        else:
            return text
        return None

    def keys(self, value: Value) -> tuple[str, ...] | None:
        """Read Ed25519 public keys."""
        return self.unique(value, "public keys", Reader._public_key)

    def _public_key(self, value: Value) -> str | None:
        text = self.text(value, PATH_LIMIT)
        if text is None:
            return None
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) == 32 and is_weak_key(raw):
            self.fault(value, "anybody could sign for this key: it is none that a key generator makes")
            return None
        if len(raw) == 32:
            return text
        if "PRIVATE KEY" in text:
            self.fault(value, "this is a private key, which must not be here; give the public one")
        else:
            self.fault(value, "expected an Ed25519 public key: 32 bytes in base64, 44 characters")
        return None

    def roots(self, value: Value) -> tuple[str, ...] | None:
        """Read `"~"` and absolute directories."""
        return self.unique(value, '"~" and absolute directories', Reader._root)

    def _root(self, value: Value) -> str | None:
        if value.value == "~":
            return "~"
        text = self.text(value, PATH_LIMIT)
        if text is None:
            return None
        clean = posixpath.normpath(text)
        if not text.startswith("/") or ".." in text.split("/"):
            self.fault(value, 'expected "~" or an absolute directory such as /nix/store')
        elif clean.strip("/") == "":
            self.fault(value, "must not be /: every link would be allowed")
        else:
            return clean
        return None

    def locations(self, value: Value) -> tuple[ExtraLocation, ...] | None:
        """Read the list of additional files."""
        items = self.members(value, "tables ([[scan.extra_locations]])")
        if items is None:
            return None
        from halod.settings.locations import read_location  # few settings need it

        read = [read_location(self, item) for item in items]
        return tuple(location for location in read if location is not None)


_READERS: Final[Mapping[str, Callable[[Reader, Value], Any]]] = {
    "account": Reader.account,
    "accounts": Reader.accounts,
    "duration": Reader.duration,
    "flag": Reader.flag,
    "keys": Reader.keys,
    "label": Reader.label,
    "labels": Reader.labels,
    "locations": Reader.locations,
    "path": Reader.path,
    "roots": Reader.roots,
    "size": Reader.size,
    "url": Reader.url,
}
