# SPDX-License-Identifier: Apache-2.0
"""Words of messages about what was mistyped. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """Give `; did you mean "x"?` when a known word is near, else nothing."""
    folded = word[:64].casefold().replace("-", "_")
    names = {name.casefold().replace("-", "_"): name for name in known}
    near = get_close_matches(folded, list(names), n=1, cutoff=0.65)
    return f'; did you mean "{names[near[0]]}"?' if near else ""


def shown(text: str) -> str:
    """Quote a key for a message: printable, at most 60 characters."""
    short = text if len(text) <= 60 else text[:59] + "…"
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short) + '"'
