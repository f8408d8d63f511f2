# SPDX-License-Identifier: Apache-2.0
"""Errors of the console's API: RFC 9457 problem documents, in words of ours and never with what was sent."""

import msgspec
from starlette.responses import Response

_TITLES = {
    400: "Bad request",
    401: "Unauthorised",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    421: "Wrong address",
    422: "Not acceptable as it is",
    429: "Too many requests",
    500: "The console failed",
    503: "Not available now",
}


class Problem(Exception):
    """Ends a call with an error answer; the gate makes it a document, or a page for a person.

    `detail` is one line of our own words; nothing of a request's content belongs into it.
    """

    def __init__(self, status: int, detail: str = "", *, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}

    @property
    def title(self) -> str:
        """What the status means, in words."""
        return _TITLES.get(self.status, "Error")

    def response(self) -> Response:
        """Give the problem document."""
        body = {"type": "about:blank", "title": self.title, "status": self.status}
        if self.detail:
            body["detail"] = self.detail
        return Response(
            msgspec.json.encode(body), self.status, self.headers, media_type="application/problem+json"
        )
