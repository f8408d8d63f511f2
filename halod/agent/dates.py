# SPDX-License-Identifier: Apache-2.0
"""Times as a status has them. Pure."""

from datetime import UTC, datetime


def date(seconds: float) -> str:
    """Give seconds since the epoch as RFC 3339 in UTC, to the second: `2026-11-30T09:15:02Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
