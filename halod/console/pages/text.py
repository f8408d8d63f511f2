# SPDX-License-Identifier: Apache-2.0
r"""Text as the pages show it: times, hashes, and strings of devices, which are hostile until shown otherwise.

Invariants:

1. What a device said is escaped, isolated from the direction of its surroundings (`<bdi>`), and free of
   characters that no one sees: those are spelled out, as in `\u{202e}`.
2. A text of any length takes bounded room: the rest is reachable, in a details element or on its own page.
"""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS: Final = re.compile(
    r"([^\W_])([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[^\S\n]*"
    r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_CUT: Final = 64
LAST: Final = 253_402_300_800
"""The first second of the year 10000, which no datetime has."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def visible(text: str) -> str:
    """Spell out what would not be seen, or would move what is: control, format, private and unassigned characters.

    Of combining marks on one letter four are kept: more only climb over the lines above.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _MARKS.sub(r"\1\2", text)
    return "".join(
        f"\\u{{{ord(char):x}}}" if unicodedata.category(char) in _UNSEEN else char for char in text
    )


def claim(text: str, room: int = _CUT) -> Markup:
    """Show a text of a device; one longer than `room` is cut, the whole in a details element."""
    shown = visible(text)
    if len(shown) <= room:
        return Markup("<bdi>{}</bdi>").format(shown)
    return Markup(
        '<details class="long"><summary><bdi>{}</bdi>… <span class="more">whole text, {:,} characters</span></summary>'
        '<p class="whole"><bdi>{}</bdi></p></details>'
    ).format(shown[:room], len(shown), shown)


def brief(text: str, room: int = _CUT) -> Markup:
    """Show a text of a device on one spot, as in a link: cut to `room`, the whole is where the link leads."""
    shown = visible(text)
    return Markup("<bdi>{}</bdi>").format(shown if len(shown) <= room else shown[:room] + "…")


def iso(at: int) -> str:
    """Give RFC 3339, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(at: int) -> str:
    """Give a time in full, for people: `30 Nov 2026, 09:15 UTC`."""
    then = datetime.fromtimestamp(at, UTC)
    return f"{then.day} {then:%b %Y, %H:%M} UTC"


def date(at: int) -> str:
    """Give a day: `30 Nov 2026`."""
    then = datetime.fromtimestamp(at, UTC)
    return f"{then.day} {then:%b %Y}"


def relative(at: int, now: int) -> str:
    """Give how far `at` is from `now`, in words; beyond a fortnight the date."""
    span = abs(now - at)
    if span > 14 * _DAY:
        return date(at)
    if span < _MINUTE:
        return "just now" if at <= now else "in a moment"
    for unit, word in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if span >= unit:
            count = span // unit
            words = f"{count} {word}{'' if count == 1 else 's'}"
            return f"{words} ago" if at <= now else f"in {words}"
    raise AssertionError


def when(at: int | None, now: int) -> Markup:
    """Show a time: relative words, the exact one as title and for machines."""
    if at is None or not 0 < at < LAST:
        return Markup('<span class="none">never</span>')
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(at), moment(at), relative(at, now))


def exactly(at: int) -> Markup:
    """Show a time in full."""
    if not 0 < at < LAST:
        return Markup('<span class="none">never</span>')
    return Markup('<time datetime="{}">{}</time>').format(iso(at), moment(at))


_HASH: Final = re.compile(r"(?P<algorithm>[a-z0-9]{1,10}:)?(?P<digits>[0-9a-f]+)")


def short(value: str, digits: int = 12) -> Markup:
    """Show the beginning of a hash; who needs the whole follows the link around it or finds it beside.

    What should be a hash and is none is a text like any other.
    """
    found = _HASH.fullmatch(value)
    if found is None:
        return Markup("<code>{}</code>").format(brief(value, 20))
    shown = found["digits"][:digits] + ("…" if len(found["digits"]) > digits else "")
    return Markup('<code class="hash">{}{}</code>').format(found["algorithm"] or "", shown)


def full(value: str) -> Markup:
    """Show a hash whole, in a way that a narrow screen may break."""
    return Markup('<code class="hash whole">{}</code>').format(claim(value, 160))


def unfold(value: str, digits: int = 12) -> Markup:
    """Show a hash cut, the whole of it in a details element."""
    found = _HASH.fullmatch(value)
    if found is None:
        return claim(value, _CUT)
    if len(found["digits"]) <= digits:
        return full(value)
    return Markup('<details class="long"><summary>{}</summary>{}</details>').format(
        short(value, digits), full(value)
    )


def number(value: int) -> str:
    """Give `12,345`."""
    return f"{value:,}"


def escaped(text: str) -> Markup:
    """Escape a text of ours or of the organisation, and spell out what is not seen."""
    return escape(visible(text))
