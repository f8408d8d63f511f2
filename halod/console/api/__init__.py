# SPDX-License-Identifier: Apache-2.0
"""/api/v1 for programs: lists, actions, exports, and the OpenAPI document of all of it."""

from functools import lru_cache
from typing import Final

import msgspec
from starlette.responses import Response

from halod.console import monitor
from halod.console.access import Access, Route
from halod.console.api import actions, exports, lists, openapi
from halod.console.call import Call
from halod.console.hooks import routes as hooks
from halod.console.ingest import enroll
from halod.console.policy import routes as policy
from halod.console.security.refusals import NoRefusals

OPERATIONS: Final = (*lists.OPERATIONS, *actions.OPERATIONS, *exports.OPERATIONS)


@lru_cache(maxsize=1)
def _document() -> bytes:
    return msgspec.json.encode(openapi.document(DESCRIBED, OPERATIONS))


def _openapi(_call: Call) -> Response:
    """Give the OpenAPI document."""
    return Response(_document(), media_type="application/json")


ROUTES: Final = (
    *(one.route() for one in OPERATIONS),
    Route(
        method="GET",
        path="/api/v1/openapi.json",
        name="openapi",
        access=Access.VIEWER,
        endpoint=_openapi,
        summary="This document",
    ),
)


def _raw(_call: Call) -> Response:
    """Stand for the application that takes reports; the gate never comes here."""
    return Response(status_code=404)


DESCRIBED: Final = (
    *ROUTES,
    *enroll.routes(NoRefusals()),
    *policy.ROUTES,
    *hooks.ROUTES,
    *monitor.ROUTES,
    Route(
        method="POST",
        path="/api/v1/fleet/report",
        name="report",
        access=Access.DEVICE,
        endpoint=_raw,
        summary="Take the status of one machine",
    ),
)
"""Every route that the OpenAPI document describes. The one of reports is no route: `app` mounts it beside them."""
