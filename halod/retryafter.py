# SPDX-License-Identifier: Apache-2.0
"""Reading Retry-After (RFC 9110 section 10.2.3). Pure: the caller brings the time."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

RETRY_AFTER_MAX: Final = 3600.0
"""Seconds of Retry-After that are honoured: a server's mistake must not silence a machine for days."""


def retry_after(value: str, *, date: str = "", now: float) -> float:
    """Read a Retry-After header: seconds to wait, 0 when it says nothing usable.

    A date is taken relative to the answer's own `date` header when there is one: this machine's clock may be
    wrong. `now` is wall time in seconds since the epoch. The result is from 0 to RETRY_AFTER_MAX.
    """
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return float(min(int(text[:10]), int(RETRY_AFTER_MAX)))
    until = _http_date(text)
    if until is None:
        return 0.0
    since = _http_date(date.strip())
    seconds = until - (now if since is None else since)
    return min(max(seconds, 0.0), RETRY_AFTER_MAX)


def _http_date(text: str) -> float | None:
    if not text or len(text) > 64:
        return None
    try:
        moment: datetime = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
