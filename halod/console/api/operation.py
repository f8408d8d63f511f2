# SPDX-License-Identifier: Apache-2.0
"""One operation of the API: what makes both its route and its description."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from halod.console.access import Access, Method, Route
from halod.console.api import asking
from halod.console.api.asking import Asked, Parameter
from halod.console.call import Call
from halod.console.store.read.rows import Row


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation.

    What it answers with is `row` (one, or a list of them with `listed`), a `schema` of its own, a file of
    `media`, or nothing (204).
    """

    path: str
    """Behind /api/v1."""
    name: str
    summary: str
    run: Callable[[Call, Asked], Response]
    access: Access = Access.VIEWER
    method: Method = "GET"
    about: str = ""
    """More words for its description."""
    parameters: tuple[Parameter, ...] = ()
    row: type[Row] | None = None
    listed: bool = False
    schema: dict[str, Any] | None = None
    media: str = ""

    def route(self) -> Route:
        """Give its route."""
        return Route(
            method=self.method,
            path=f"/api/v1{self.path}",
            name=self.name,
            access=self.access,
            endpoint=self._answer,
            summary=self.summary,
        )

    def _answer(self, call: Call) -> Response:
        request = call.request
        return self.run(
            call, asking.read(self.parameters, request.query_params.multi_items(), request.path_params)
        )
