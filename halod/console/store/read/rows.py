# SPDX-License-Identifier: Apache-2.0
"""What the rows have in common: how a time is written in a document, and the base of all of them."""

from typing import Annotated, Any

import msgspec

Time = Annotated[int, msgspec.Meta(extra={"wire": "time"}, extra_json_schema={"format": "date-time"})]
"""Seconds since 1970 here, RFC 3339 in a document."""
Date = Annotated[int, msgspec.Meta(extra={"wire": "date"}, extra_json_schema={"format": "date"})]
"""Days since 1970 (UTC) here, YYYY-MM-DD in a document."""


class Row(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A row of a list. Attribute names are ours, names in JSON are camelCase."""


def texts(stored: str) -> tuple[str, ...]:
    """Give a stored JSON list of texts; () for ""."""
    return msgspec.json.decode(stored, type=tuple[str, ...]) if stored else ()


def columns(row: Any, *names: str) -> dict[str, Any]:  # noqa: ANN401 -- what a query's columns hold
    """Give these columns of a row as keywords."""
    found = row._mapping  # noqa: SLF001 -- SQLAlchemy's own, documented name
    return {name: found[name] for name in names}
