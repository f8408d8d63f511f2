# SPDX-License-Identifier: Apache-2.0
"""What the API shows: lists in pages and single rows, straight from `store.read`."""

from typing import Any, Final, get_args

from starlette.responses import Response

from halod.console.access import Access
from halod.console.api import wire
from halod.console.api.asking import CURSOR, LIMIT, Asked, Parameter
from halod.console.api.operation import Operation
from halod.console.call import Call
from halod.console.policy import bundle
from halod.console.problem import Problem
from halod.console.store.read import audit as audit_log
from halod.console.store.read import coverage, devices, findings, registry, transitions
from halod.console.store.read import overview as fleet
from halod.console.store.read.rows import Row


class DeviceDocument(Row, frozen=True, kw_only=True):
    """A device, what it could not read, and which entries approve what on it."""

    device: devices.DeviceRow
    skipped: tuple[devices.SkippedRow, ...]
    approved: tuple[devices.ApprovedRow, ...]


class OverviewDocument(Row, frozen=True, kw_only=True):
    """The fleet at a glance, and how findings went in the last 30 days."""

    overview: fleet.Overview
    trend: tuple[fleet.Day, ...]


def filters(**names: str) -> tuple[Parameter, ...]:
    """Give text parameters by name and meaning."""
    return tuple(Parameter(name=name, text=text) for name, text in names.items())


PAGED: Final = (CURSOR, LIMIT)
DEVICE: Final = Parameter(name="device", text="The device's identity.", in_path=True)
STATE: Final = Parameter(
    name="state",
    text="Only devices that report, are silent, could not read everything, or report too many servers.",
    choices=tuple(one for one in get_args(devices.State) if one),
)
DEVICE_FILTERS: Final = (
    STATE,
    *filters(
        ring="The ring that it says it is in.",
        unit="A unit that it says it is in.",
        hostname="How its hostname begins; case counts.",
        digest="Its policy, as `sha256:` and hex digits.",
    ),
)
FINDING_FILTERS: Final = (
    Parameter(name="group", text="The number of a group.", number=True, least=1),
    *filters(
        device="A device's identity.",
        server="The server's name, whole.",
        definition="The sha256 of the definition.",
        harness="The harness, such as `cursor`.",
        unit="A unit that the device says it is in.",
        ring="The ring that the device says it is in.",
        kind="`denied`, `unapproved`, `version-drift`.",
    ),
)
GROUP_FILTERS: Final = (
    *filters(
        kind="`denied`, `unapproved`, `version-drift`.",
        harness="The harness, such as `cursor`.",
        ring="The ring that the device says it is in.",
        unit="A unit that the device says it is in.",
        server="How the server's name begins; case counts.",
        what="The host (http) or the sha256 of the definition (stdio), whole.",
    ),
    Parameter(name="order", text="What comes first.", choices=get_args(findings.Order), default="devices"),
)
_SHORT: Final = "Filters that rarely meet make short pages, even empty ones: only an empty `next` is the end."


def device_filter(asked: Asked) -> devices.DeviceFilter:
    """Give which devices were asked for."""
    return devices.DeviceFilter(**asked.pick("state", "ring", "unit", "hostname", "digest"))


def finding_filter(asked: Asked) -> findings.FindingFilter:
    """Give which findings were asked for."""
    return findings.FindingFilter(
        thing=asked.number("group"),
        sha256=asked.text("definition"),
        **asked.pick("device", "server", "harness", "unit", "ring", "kind"),
    )


def _times(call: Call) -> dict[str, Any]:
    return {"now": call.console.clock.now(), "silent_after": call.console.settings.silent_after}


def _devices(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = devices.devices(c, device_filter(asked), **_times(call), **asked.pick("cursor", "limit"))
    return wire.page(found)


def _device(call: Call, asked: Asked) -> Response:
    name = asked.text("device")
    with call.console.store.read() as c:
        row = devices.device(c, name, **_times(call))
        if row is None:
            raise Problem(404, "this device is not known")
        found = DeviceDocument(
            device=row, skipped=devices.skipped(c, name), approved=devices.approved(c, name)
        )
    return wire.answer(wire.document(found))


def _device_transitions(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = transitions.newest(c, **asked.pick("device", "cursor", "limit"))
    return wire.page(found)


def _findings(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = findings.findings(c, finding_filter(asked), **asked.pick("cursor", "limit"))
    return wire.page(found)


def _groups(call: Call, asked: Asked) -> Response:
    where = findings.GroupFilter(**asked.pick(*(one.name for one in GROUP_FILTERS)))
    with call.console.store.read() as c:
        found = findings.groups(c, where, **asked.pick("cursor", "limit"))
    return wire.page(found)


def _group(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        row = findings.group(c, asked.number("group"))
    if row is None:
        raise Problem(404, "there is no such group")
    return wire.answer(wire.document(row))


def _prevalence(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = findings.prevalence(c, **asked.pick("dim", "cursor", "limit"))
    return wire.page(found)


def _transitions(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = transitions.since(c, **asked.pick("after", "limit", "device"))
    return wire.answer({"rows": [wire.document(row) for row in found.rows], "next": int(found.next)})


def _coverage(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = coverage.gaps(c, **asked.pick("reason", "harness", "cursor", "limit"))
    return wire.page(found)


def _usage(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        published = bundle.current(c)
        policy = None if published is None else published.policy
        found = registry.usage(
            c, policy, unused=asked.text("unused") == "true", **asked.pick("cursor", "limit")
        )
    return wire.page(found)


def _users(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = registry.users(c, **asked.pick("entry", "cursor", "limit"))
    return wire.page(found)


def _digests(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = registry.digests(c, asked.text("ring"))
    return wire.answer({"rows": [wire.document(row) for row in found], "next": ""})


def _overview(call: Call, asked: Asked) -> Response:  # noqa: ARG001 -- there is nothing to ask
    now = call.console.clock.now()
    with call.console.store.read() as c:
        found = OverviewDocument(
            overview=fleet.overview(c, **_times(call)), trend=fleet.trend(c, today=now // 86_400)
        )
    return wire.answer(wire.document(found))


def _audit(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = audit_log.audit(c, **asked.pick("action", "actor", "cursor", "limit"))
    return wire.page(found)


def _next_number() -> dict[str, Any]:
    return {"type": "integer", "format": "int64", "minimum": 0}


OPERATIONS: Final = (
    Operation(
        path="/overview",
        name="overview",
        summary="The fleet at a glance",
        run=_overview,
        row=OverviewDocument,
    ),
    Operation(
        path="/devices",
        name="devices",
        summary="Devices, by hostname",
        about=f"Silent ones by their last report, the newest first. {_SHORT}",
        run=_devices,
        parameters=(*DEVICE_FILTERS, *PAGED),
        row=devices.DeviceRow,
        listed=True,
    ),
    Operation(
        path="/devices/{device}",
        name="device",
        summary="One device",
        run=_device,
        parameters=(DEVICE,),
        row=DeviceDocument,
    ),
    Operation(
        path="/devices/{device}/transitions",
        name="device-transitions",
        summary="What happened on a device, newest first",
        run=_device_transitions,
        parameters=(DEVICE, *PAGED),
        row=transitions.TransitionRow,
        listed=True,
    ),
    Operation(
        path="/findings",
        name="findings",
        summary="Findings, newest first",
        about=_SHORT,
        run=_findings,
        parameters=(*FINDING_FILTERS, *PAGED),
        row=findings.FindingRow,
        listed=True,
    ),
    Operation(
        path="/findings/groups",
        name="finding-groups",
        summary="Findings by what they are about",
        about=f"`findings`, `devices` and `lastSeen` count exactly what harness, ring and unit select. {_SHORT}",
        run=_groups,
        parameters=(*GROUP_FILTERS, *PAGED),
        row=findings.GroupRow,
        listed=True,
    ),
    Operation(
        path="/findings/groups/{group}",
        name="finding-group",
        summary="One group of findings",
        run=_group,
        parameters=(Parameter(name="group", text="Its number.", number=True, least=1, in_path=True),),
        row=findings.GroupRow,
    ),
    Operation(
        path="/prevalence/{dim}",
        name="prevalence",
        summary="How often each value is, over the fleet, most devices first",
        run=_prevalence,
        parameters=(
            Parameter(name="dim", text="Of what.", choices=get_args(findings.Dim), in_path=True),
            *PAGED,
        ),
        row=findings.Tally,
        listed=True,
    ),
    Operation(
        path="/transitions",
        name="transitions",
        summary="What happened, in the order in which it was committed",
        about="`next` is always a number: ask again with it as `after`, and nothing is missed and nothing comes twice.",
        run=_transitions,
        parameters=(
            Parameter(name="after", text="The number to go on after.", number=True),
            *filters(device="A device's identity."),
            LIMIT,
        ),
        row=transitions.TransitionRow,
        listed=True,
        schema=_next_number(),
    ),
    Operation(
        path="/coverage",
        name="coverage",
        summary="What could not be read, by device",
        about="How often each reason is: `/prevalence/reason`. Silent devices: `/devices?state=silent`.",
        run=_coverage,
        parameters=(*filters(reason="Why.", harness="The harness, such as `cursor`."), *PAGED),
        row=coverage.GapRow,
        listed=True,
    ),
    Operation(
        path="/registry/usage",
        name="registry-usage",
        summary="Approved entries and their use, by id",
        run=_usage,
        parameters=(
            Parameter(name="unused", text="Only entries that nobody uses.", choices=("false", "true")),
            *PAGED,
        ),
        row=registry.EntryRow,
        listed=True,
    ),
    Operation(
        path="/registry/entries/{entry}/devices",
        name="registry-users",
        summary="Who uses an approved entry, by device",
        run=_users,
        parameters=(Parameter(name="entry", text="The entry's id.", in_path=True), *PAGED),
        row=registry.EntryUse,
        listed=True,
    ),
    Operation(
        path="/registry/digests",
        name="registry-digests",
        summary="How many devices of each ring have which policy",
        about="At most 500 rows, the most devices first. Which devices: `/devices?ring=…&digest=…`.",
        run=_digests,
        parameters=filters(ring="Only this ring."),
        row=registry.DigestRow,
        listed=True,
    ),
    Operation(
        path="/audit",
        name="audit",
        summary="The audit log, newest first",
        access=Access.ADMIN,
        run=_audit,
        parameters=(*filters(action="What was done.", actor="Who did it."), *PAGED),
        row=audit_log.AuditRow,
        listed=True,
    ),
)
