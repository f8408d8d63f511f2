# SPDX-License-Identifier: Apache-2.0
"""`/api/v1/policy`: agents fetch the signed policy, an administrator publishes one.

Fetching needs no token: agents send none, a policy is no secret, and it is believed for its signature
(docs/signing.md). The answer is the published bytes with a strong entity tag, so that a question whose
`If-None-Match` names it costs one small look-up and no body.
"""

from typing import Final

import msgspec
from starlette.responses import Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.policy import bundle
from halod.console.problem import Problem
from halod.policy.signed import MAX_BYTES

_HEADERS: Final = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
"""A cache may keep it, but asks before it gives it on: a policy counts from the minute it is published."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a publication came to."""

    org: str
    version: int
    digest: str
    issued: str
    expires: str
    servers: int


def get_policy(call: Call) -> Response:
    """Give the signed policy, or 304 to whoever has it."""
    with call.console.store.read() as c:
        found = bundle.served(c)
    metrics = call.console.metrics
    if found is None:
        metrics.add("halo_policy_requests_total", status="404")
        raise Problem(404, "no policy has been published")
    headers = {**_HEADERS, "ETag": found.etag}
    if _names(call.request.headers.getlist("if-none-match"), found.etag):
        metrics.add("halo_policy_requests_total", status="304")
        return Response(status_code=304, headers=headers)
    metrics.add("halo_policy_requests_total", status="200")
    if call.request.method == "HEAD":
        headers["Content-Length"] = str(len(found.envelope))
        return Response(b"", headers=headers, media_type="application/json")
    return Response(found.envelope, headers=headers, media_type="application/json")


def put_policy(call: Call) -> Response:
    """Publish an envelope that `halo sign` has made."""
    console = call.console
    now = console.clock.now()
    with console.store.read() as c:
        checked = bundle.examine(c, call.body, console.settings, now=now)
    with console.store.change() as c:
        row = bundle.publish(
            c,
            call.body,
            console.settings,
            by=call.actor.name,
            by_kind=call.actor.kind,
            address=call.address,
            now=now,
            checked=checked,
        )
    answer = Answer(
        org=row.org,
        version=row.version,
        digest=row.digest,
        issued=bundle.moment(row.issued),
        expires=bundle.moment(row.expires),
        servers=len(row.policy.entries),
    )
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _names(values: list[str], etag: str) -> bool:
    """Tell whether If-None-Match names an entity tag: by weak comparison, as RFC 9110 section 13.1.2 asks."""
    listed = [one.strip() for value in values for one in value.split(",")]
    return any(one == "*" or one.removeprefix("W/") == etag for one in listed)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/policy",
        name="policy",
        access=Access.PUBLIC,
        endpoint=get_policy,
        summary="The signed policy",
    ),
    Route(
        method="PUT",
        path="/api/v1/policy",
        name="publish-policy",
        access=Access.ADMIN,
        endpoint=put_policy,
        body=MAX_BYTES,
        summary="Publish a signed policy",
    ),
)
