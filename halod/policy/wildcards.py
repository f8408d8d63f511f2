# SPDX-License-Identifier: Apache-2.0
"""Texts with gaps: `*` for anything, and URL templates with `{variables}`. Pure.

Both come from documents of others, so neither becomes a regular expression: those of `re` try every way to share a
text among many gaps, which has no end in sight. Here the work is the length of the text for each gap.
"""

import re
from collections.abc import Container
from string import ascii_letters, digits
from typing import Final

_VARIABLE: Final = re.compile(r"\{[^{}]*\}")
_SEGMENT: Final = frozenset(ascii_letters + digits + "._~-")
_BASE: Final = _SEGMENT | frozenset(":/")
_SCHEME: Final = "https://"


def fits(pattern: str, text: str) -> bool:
    """Tell whether a text is the pattern with anything, or nothing, in the place of each `*`."""
    first, *inner = pattern.split("*")
    if not inner:
        return pattern == text
    last = inner.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for piece in inner:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def fills(template: str, url: str) -> bool:
    """Tell whether a URL is a template with its `{variables}` filled in: one label or segment each.

    A variable that the template begins with, as drafts since 2025-12-11 allow, is an origin with any path.
    """
    first, *rest = _VARIABLE.split(template)
    if not rest:
        return False
    allowed: Container[str] = _SEGMENT
    if not first:
        first, allowed = _SCHEME, _BASE
    ends = {len(first)} if url.startswith(first) else set()
    for piece in rest:
        ends = {at + len(piece) for at in _filled(url, ends, allowed) if url.startswith(piece, at)}
        allowed = _SEGMENT
    return len(url) in ends


def _filled(url: str, starts: set[int], allowed: Container[str]) -> set[int]:
    """Give every place at which a variable can end that begins at one of `starts`; it holds one character at least."""
    ends = set()
    inside = False
    for at, char in enumerate(url):
        inside = (inside or at in starts) and char in allowed
        if inside:
            ends.add(at + 1)
    return ends
