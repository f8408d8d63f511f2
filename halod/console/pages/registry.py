# SPDX-License-Identifier: Apache-2.0
"""Registry: what is approved, who uses it, what drifts from it, and which rings' devices have an old policy."""

from collections.abc import Iterable
from typing import Final

import msgspec
from starlette.responses import Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.pages import links
from halod.console.pages.render import render
from halod.console.policy import bundle
from halod.console.problem import Problem
from halod.console.store.read import registry as registry_of


class Ring(msgspec.Struct, frozen=True):
    """The devices of a ring by the policy that they have; `current` is None while the console has no policy."""

    name: str
    devices: int
    current: int | None
    old: tuple[registry_of.DigestRow, ...]
    """Digests that are not the current one, most devices first."""


def rings(rows: Iterable[registry_of.DigestRow], digest: str) -> tuple[Ring, ...]:
    """Gather digests by ring."""
    by_ring: dict[str, list[registry_of.DigestRow]] = {}
    for row in rows:
        by_ring.setdefault(row.ring, []).append(row)
    return tuple(_ring(name, by_ring[name], digest) for name in sorted(by_ring))


def _ring(name: str, rows: list[registry_of.DigestRow], digest: str) -> Ring:
    old = sorted((row for row in rows if row.digest != digest), key=lambda row: (-row.devices, row.digest))
    current = sum(row.devices for row in rows if row.digest == digest) if digest else None
    return Ring(name, sum(row.devices for row in rows), current, tuple(old))


def registry(call: Call) -> Response:
    """Show the registry and its use."""
    asked = links.query(call, "show", "cursor")
    unused = asked["show"] == "unused"
    with call.console.store.read() as c:
        policy = bundle.current(c)
        rules = policy.policy if policy else None
        page = registry_of.usage(c, rules, unused=unused, cursor=asked["cursor"])
        digests = registry_of.digests(c)
    return render(
        call,
        "registry.html",
        here="registry",
        policy=policy,
        page=page,
        asked=asked,
        unused=unused,
        rings=rings(digests, policy.digest if policy else ""),
        keys=call.console.settings.policy_keys,
    )


def entry(call: Call) -> Response:
    """Show who uses one entry."""
    name = call.request.path_params["entry"]
    asked = links.query(call, "cursor")
    with call.console.store.read() as c:
        policy = bundle.current(c)
        row = registry_of.entry(c, policy.policy if policy else None, name)
        if row is None:
            raise Problem(404, "the registry has no such entry, and nobody uses one")
        page = registry_of.users(c, name, cursor=asked["cursor"])
    ours = [one for one in policy.policy.entries if one.id == name] if policy else []
    return render(
        call,
        "entry.html",
        here="registry",
        row=row,
        entry=ours[0] if ours else None,
        page=page,
        asked=asked,
        path=links.entry(name),
    )


ROUTES: Final = (
    Route(
        method="GET", path="/registry", name="registry", access=Access.VIEWER, endpoint=registry, page=True
    ),
    Route(
        method="GET", path="/registry/{entry}", name="entry", access=Access.VIEWER, endpoint=entry, page=True
    ),
)
