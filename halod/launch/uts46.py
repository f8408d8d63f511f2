# SPDX-License-Identifier: Apache-2.0
"""Host names with characters beyond ASCII: what a WHATWG client makes of them (UTS 46, non-transitional).

Invariants:

1. `plain_alabel` maps only letters and digits that become nothing but their own lower case; it is what pins
   and canonical URLs are made with, and None in doubt (registry.md D).
2. `whatwg_alabel` follows Node and Electron for the host that is shown to people; "cannot be told" is None.

The mapping is made of `unicodedata` instead of UTS 46's own table: it agrees with Node on every code point
that it answers for (tests/unit/test_launch_whatwg.py), and answers None for the others.
"""

import re
import unicodedata
from functools import lru_cache

from halod.launch.hosts import punycode_decode, punycode_encode

# Strings, compiled when a host first needs one: most homes have only ASCII hosts, and these take 3 ms.
_DOTS = "[.\u3002\uff0e\uff61]"
# Scripts without marks, contextual rules and case folding of their own: Latin, Greek, Cyrillic, Armenian,
# kana, Han and Hangul syllables.
_PLAIN = (
    "[\u00c0-\u024f\u0370-\u0373\u0376-\u0377\u037b-\u037d\u0386-\u03ce\u0400-\u0481\u048a-\u04bf\u04c1-\u052f"
    "\u0531-\u0556\u0561-\u0586\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]"
)
_IGNORED = "[\u00ad\u034f\u180b-\u180d\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
# Code points that UTS 46 disallows for reasons that no property of `unicodedata` shows (checked against
# Node).
_DISALLOWED = (
    "[\u04c0\u10a0-\u10c5\u115f\u1160\u17b4\u17b5\u1806\u2132\u2183\u2ff0-\u2ffb\u3164\uffa0\ufffc"
    "\U0002f868\U0002f874\U0002f91f\U0002f95f\U0002f9bf]"
)
_JOINERS = "\u200c\u200d"
_KEPT = "\u00df\u03c2"
_NEVER = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zs", "Zl", "Zp"})
_REPLACEMENT = "\ufffd"
_MAX_HOST = 512


def plain_alabel(host: str) -> str | None:
    """Give a host as A-labels when every character is ASCII, or maps to nothing but its own lower case."""
    if host.isascii():
        return host.lower()
    out: list[str] = []
    for char in host:
        if char < "\x80":
            out.append(char.lower())
            continue
        lower = char.lower()
        if len(lower) != 1 or not re.match(_PLAIN, char) or not re.match(_PLAIN, lower):
            return None
        if unicodedata.normalize("NFKC", char) != char or unicodedata.normalize("NFKC", lower) != lower:
            return None
        if unicodedata.category(char) not in {"Ll", "Lu", "Lo"}:
            return None
        out.append(lower)
    return _to_alabels("".join(out))


def whatwg_alabel(host: str) -> str | None:
    """Give a host as a WHATWG client writes it; None where the client refuses it or it cannot be told."""
    if host.isascii():
        mapped = host.lower()
        if "xn--" not in mapped:
            return mapped
    else:
        if len(host) > _MAX_HOST or any(char in _JOINERS for char in host):
            return None
        mapped = unicodedata.normalize("NFC", "".join(map(_map, host)))
    labels = mapped.split(".")
    for label in labels:
        if label.startswith("xn--") and not _valid_alabel(label):
            return None
        if not label.isascii() and not _valid_label(label):
            return None
    if any(map(_right_to_left, labels)) and not all(map(_bidi_rule, labels)):
        return None
    return _to_alabels(mapped)


@lru_cache(1024)
def _map(char: str) -> str:
    if char < "\x80":
        return char.lower()
    if char in _KEPT:
        return char
    if re.match(_DOTS, char):
        return "."
    if re.match(_IGNORED, char):
        return ""
    if re.match(_DISALLOWED, char):
        return _REPLACEMENT
    folded = unicodedata.normalize("NFKC", char).casefold()
    mapped = unicodedata.normalize("NFKC", folded)
    return _REPLACEMENT if re.search(_DOTS, mapped) else mapped


def _valid_label(label: str) -> bool:
    if unicodedata.category(label[0])[0] == "M":
        return False
    return all(unicodedata.category(char) not in _NEVER for char in label) and _REPLACEMENT not in label


def _valid_alabel(label: str) -> bool:
    text = label[4:]
    decoded = punycode_decode(text)
    if not decoded or decoded.isascii():
        return False
    return punycode_encode(decoded) == text and whatwg_alabel(decoded) == label


def _right_to_left(label: str) -> bool:
    return not label.isascii() and any(unicodedata.bidirectional(char) in {"R", "AL", "AN"} for char in label)


def _bidi_rule(label: str) -> bool:
    """Hold the whole bidi rule's spirit for the plain labels, and refuse the others (RFC 5893)."""
    if not label or not _right_to_left(label):
        return (
            all(unicodedata.bidirectional(char) in {"L", "EN", "ES"} for char in label)
            and not label[:1].isdigit()
        )
    return all(unicodedata.bidirectional(char) in {"R", "AL", "NSM"} for char in label) and (
        unicodedata.bidirectional(label[-1]) != "NSM"
    )


def _to_alabels(host: str) -> str | None:
    out: list[str] = []
    for label in host.split("."):
        if label.isascii():
            out.append(label)
            continue
        encoded = punycode_encode(label)
        if encoded is None or len(encoded) > 59:
            return None
        out.append(f"xn--{encoded}")
    return ".".join(out)
