# SPDX-License-Identifier: Apache-2.0
"""Requests that another site makes a browser send. Pure.

A request that changes something is taken only

1. from our own pages, by the browser's word: `Sec-Fetch-Site: same-origin`, or without that header an `Origin` that
   is ours. One that has neither, or contradicts itself, is refused (every browser since 2023 sends both to https and
   loopback addresses);
2. with the session's form token, in the field `csrf` or the header `X-CSRF-Token`, unless it is signing in, which
   does nothing by the session that a browser has.

Requests with an `Authorization` header need neither: no browser adds one by itself, and the cookie is not looked at.
"""

import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from halod.console.problem import Problem

SAFE: Final = frozenset({"GET", "HEAD"})
FIELDS_LIMIT: Final = 100
FORM: Final = "application/x-www-form-urlencoded"


def form_fields(content_type: str, body: bytes) -> dict[str, str]:
    """Read a form; the last of fields with one name counts. Raises Problem 400 or 415 when it is none."""
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise Problem(415, "expected a form")
    try:
        text = body.decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=FIELDS_LIMIT))
    except ValueError:
        raise Problem(400, "the form cannot be read") from None


def check_origin(headers: Mapping[str, str], origin: str) -> None:
    """Refuse what does not come from our own pages. Raises Problem 403."""
    sent, fetch = headers.get("origin"), headers.get("sec-fetch-site")
    if fetch not in (None, "same-origin") or (sent not in (None, "null", origin)):
        raise Problem(403, "this request came from another site")
    if fetch is None and sent != origin:
        raise Problem(403, "the browser did not say which page this request came from")


def check_token(headers: Mapping[str, str], body: bytes, expected: str) -> None:
    """Refuse a request without the session's form token. Raises Problem 403."""
    given = headers.get("x-csrf-token", "")
    if not given and headers.get("content-type", "").lower().startswith(FORM):
        given = form_fields(FORM, body).get("csrf", "")
    if not expected or not hmac.compare_digest(given.encode(), expected.encode()):
        raise Problem(403, "this page is too old, or was not ours: go back, reload it and try again")
