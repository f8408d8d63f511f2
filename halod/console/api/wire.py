# SPDX-License-Identifier: Apache-2.0
"""Rows as documents: camelCase names, times in RFC 3339, days as dates. Pure.

What a schema says of a row (`openapi`) and what is sent come from the same annotations.
"""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from starlette.responses import Response

from halod.console.store.paging import Page
from halod.console.store.read.rows import Row

_EPOCH: Final = date(1970, 1, 1)
_LAST: Final = 253_402_300_799
"""9999-12-31T23:59:59Z."""


@lru_cache(maxsize=4096)
def moment(seconds: int) -> str:
    """Give seconds since 1970 as RFC 3339 in UTC."""
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def day(days: int) -> str:
    """Give days since 1970 as a date."""
    return (_EPOCH + timedelta(days=days)).isoformat()


def document(row: Row) -> dict[str, Any]:
    """Give what a row is in JSON."""
    found = {}
    for name, wire_name, how in _fields(type(row)):
        value = getattr(row, name)
        found[wire_name] = value if how == "" else _value(value, how)
    return found


def _value(value: Any, how: str) -> Any:  # noqa: ANN401 -- whatever a field holds
    if value is None:
        return None
    if how == "time":
        return moment(value)
    if how == "date":
        return day(value)
    if isinstance(value, Row):
        return document(value)
    return [document(one) if isinstance(one, Row) else one for one in value]


@lru_cache(maxsize=64)
def _fields(row: type[Row]) -> tuple[tuple[str, str, str], ...]:
    """Give (attribute, name in JSON, how it is written) of each field."""
    return tuple((one.name, one.encode_name, _how(one.type)) for one in msgspec.structs.fields(row))


def _how(annotation: Any) -> str:  # noqa: ANN401 -- any annotation
    if get_origin(annotation) is Annotated:
        for one in get_args(annotation)[1:]:
            if isinstance(one, msgspec.Meta) and one.extra:
                return str(one.extra.get("wire", ""))
        return ""
    parts = get_args(annotation)
    if any(isinstance(one, type) and issubclass(one, Row) for one in (annotation, *parts)):
        return "rows"
    return next(filter(None, map(_how, parts)), "")


def answer(value: Any, *, status: int = 200) -> Response:  # noqa: ANN401 -- anything that is JSON
    """Give a JSON answer that no cache keeps."""
    return Response(
        msgspec.json.encode(value), status, {"Cache-Control": "no-store"}, media_type="application/json"
    )


def page(found: Page[Any]) -> Response:
    """Give a page of a list: `rows`, and `next`, which is "" on the last one."""
    return answer({"rows": [document(row) for row in found.rows], "next": found.next})
