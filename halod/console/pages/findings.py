# SPDX-License-Identifier: Apache-2.0
"""Findings: grouped by what they are about, and one group with who has it, where, since when and what to do."""

from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.pages import links
from halod.console.pages.forms import row_id
from halod.console.pages.render import render
from halod.console.pages.words import KINDS, ORDERS
from halod.console.problem import Problem
from halod.console.store.read import findings as findings_of
from halod.console.store.read import overview as overview_of
from halod.status import is_sha256

_FILTERS: Final = ("kind", "harness", "ring", "unit", "server", "what", "order")
_EXPORTED: Final = ("kind", "harness", "ring", "unit")
"""Filters that mean the same for an export, which lists findings one by one."""
_CHOICES: Final = 200
"""Most values that a filter offers; others can be typed into the address."""


def values(c: Connection, dim: findings_of.Dim, chosen: str) -> list[str]:
    """Give what a filter offers: the values that the fleet has, and the one that is chosen."""
    rows = findings_of.prevalence(c, dim, limit=_CHOICES).rows
    return sorted({row.value for row in rows if row.value} | ({chosen} if chosen else set()))


def findings(call: Call) -> Response:
    """List groups of findings; the filters are in the address."""
    asked = links.query(call, *_FILTERS, "cursor")
    order: findings_of.Order = "last-seen" if asked["order"] == "last-seen" else "devices"
    where = findings_of.GroupFilter(
        kind=asked["kind"],
        harness=asked["harness"],
        ring=asked["ring"],
        unit=asked["unit"],
        server=asked["server"],
        what=asked["what"],
        order=order,
    )
    with call.console.store.read() as c:
        page = findings_of.groups(c, where, cursor=asked["cursor"])
        offered = {dim: values(c, dim, asked[dim]) for dim in ("harness", "ring", "unit")}
        seen = overview_of.overview(
            c, now=call.console.clock.now(), silent_after=call.console.settings.silent_after
        )
    filters = {name: asked[name] for name in _FILTERS if asked[name]}
    return render(
        call,
        "findings.html",
        here="findings",
        page=page,
        asked=asked,
        filters=filters,
        chosen={name: value for name, value in filters.items() if name != "order"},
        exported={name: value for name, value in filters.items() if name in _EXPORTED},
        offered=offered,
        kinds=KINDS,
        orders=ORDERS,
        order=order,
        seen=seen,
    )


def finding(call: Call) -> Response:
    """Show one group of findings: who, where, since when, the fix; and the box that compares hashes."""
    number = row_id(call, "group")
    asked = links.query(call, "harness", "ring", "unit", "definition", "cursor")
    where = findings_of.FindingFilter(
        thing=number,
        harness=asked["harness"],
        ring=asked["ring"],
        unit=asked["unit"],
        sha256=asked["definition"],
    )
    with call.console.store.read() as c:
        group = findings_of.group(c, number)
        if group is None:
            raise Problem(404, "no such finding")
        page = findings_of.findings(c, where, cursor=asked["cursor"])
    hashes = sorted({row.sha256 for row in page.rows} | ({group.what} if is_sha256(group.what) else set()))
    return render(
        call,
        "finding.html",
        sealed=True,
        here="findings",
        group=group,
        page=page,
        asked=asked,
        path=f"/findings/{number}",
        chosen={name: value for name, value in asked.items() if value and name != "cursor"},
        hashes=hashes,
        details=sorted({row.detail for row in page.rows if row.detail})[:5],
        secret=any(row.secret for row in page.rows),
    )


ROUTES: Final = (
    Route(
        method="GET", path="/findings", name="findings", access=Access.VIEWER, endpoint=findings, page=True
    ),
    Route(
        method="GET",
        path="/findings/{group}",
        name="finding",
        access=Access.VIEWER,
        endpoint=finding,
        page=True,
    ),
)
