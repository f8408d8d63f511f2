# SPDX-License-Identifier: Apache-2.0
"""Devices: the list, and one with what it claims, what it covers, what was found on it, and what happened."""

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec
from starlette.responses import Response

from halod.console.access import Access, Role, Route
from halod.console.call import Call
from halod.console.pages import links
from halod.console.pages.findings import values
from halod.console.pages.render import render
from halod.console.pages.words import STATES
from halod.console.policy import bundle
from halod.console.problem import Problem
from halod.console.security import tokens
from halod.console.store.read import devices as devices_of
from halod.console.store.read import findings as findings_of
from halod.console.store.read import overview as overview_of
from halod.console.store.read import transitions as transitions_of

_FILTERS: Final = ("state", "ring", "unit", "hostname", "digest")
_FINDINGS: Final = 100
_HISTORY: Final = 25
_TOKENS: Final = 10


def states(row: devices_of.DeviceRow) -> tuple[str, ...]:
    """Give the states of a device, the gravest first: a silent device does not report, whatever it said last."""
    found = [name for name in ("silent", "limited", "partly") if getattr(row, name)]
    return tuple(found) if found else ("reporting",)


class Claim(msgspec.Struct, frozen=True):
    """One thing that a device says of itself beside what its enrolment key says; `differs` when both do, unequally."""

    name: str
    says: str
    assigned: str
    differs: bool


def claims(row: devices_of.DeviceRow) -> tuple[Claim, ...]:
    """Compare ring and units as a device claims them with what its enrolment key assigned."""
    ring = Claim(
        "Ring", row.ring, row.assigned_ring, bool(row.assigned_ring) and row.ring != row.assigned_ring
    )
    differs = bool(row.assigned_units) and sorted(row.units) != sorted(row.assigned_units)
    return ring, Claim("Units", _joined(row.units), _joined(row.assigned_units), differs)


def _joined(units: Sequence[str]) -> str:
    return ", ".join(units)


def devices(call: Call) -> Response:
    """List devices; the filters are in the address."""
    asked = links.query(call, *_FILTERS, "cursor")
    state: devices_of.State = ""
    for name in get_args(devices_of.State):
        if asked["state"] == name:
            state = name
    where = devices_of.DeviceFilter(
        state=state,
        ring=asked["ring"],
        unit=asked["unit"],
        hostname=asked["hostname"],
        digest=asked["digest"],
    )
    now, silent_after = call.console.clock.now(), call.console.settings.silent_after
    with call.console.store.read() as c:
        page = devices_of.devices(c, where, now=now, silent_after=silent_after, cursor=asked["cursor"])
        offered = {dim: values(c, dim, asked[dim]) for dim in ("ring", "unit")}
        seen = overview_of.overview(c, now=now, silent_after=silent_after)
    filters = {name: asked[name] for name in _FILTERS if asked[name]}
    return render(
        call,
        "devices.html",
        here="devices",
        page=page,
        asked=asked,
        filters=filters,
        chosen=filters,
        offered=offered,
        states=STATES,
        states_of=states,
        seen=seen,
    )


def device(call: Call) -> Response:
    """Show one device."""
    identity = call.request.path_params["device"]
    asked = links.query(call, "findings", "history", "done")
    now, silent_after = call.console.clock.now(), call.console.settings.silent_after
    with call.console.store.read() as c:
        row = devices_of.device(c, identity, now=now, silent_after=silent_after)
        if row is None:
            raise Problem(404, "no such device, or it has been forgotten")
        where = findings_of.FindingFilter(device=identity)
        context: dict[str, Any] = {
            "found": findings_of.findings(c, where, cursor=asked["findings"], limit=_FINDINGS),
            "skipped": devices_of.skipped(c, identity),
            "approved": devices_of.approved(c, identity),
            "history": transitions_of.newest(c, device=identity, cursor=asked["history"], limit=_HISTORY),
            "policy": bundle.current(c),
            "tokens": tokens.list_tokens(c, kind="device", device=identity, limit=_TOKENS)
            if call.actor.role >= Role.OPERATOR
            else [],
        }
    return render(
        call,
        "device.html",
        here="devices",
        row=row,
        states=states(row),
        claims=claims(row),
        asked=asked,
        path=links.device(identity),
        silent_after=silent_after,
        **context,
    )


ROUTES: Final = (
    Route(method="GET", path="/devices", name="devices", access=Access.VIEWER, endpoint=devices, page=True),
    Route(
        method="GET",
        path="/devices/{device}",
        name="device",
        access=Access.VIEWER,
        endpoint=device,
        page=True,
    ),
)
