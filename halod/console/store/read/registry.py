# SPDX-License-Identifier: Apache-2.0
"""Who uses what is approved, and who still has an old policy."""

from collections.abc import Iterable
from typing import Final

import msgspec
from sqlalchemy import Connection, func, select

from halod.console.store.paging import DEFAULT_LIMIT, Page, checked, decode_cursor, encode_cursor
from halod.console.store.read.rows import Row, columns
from halod.console.store.read.walk import Listing, read
from halod.console.store.schema import APPROVED, DEVICES, TALLIES
from halod.policy.model import Entry, Policy


class EntryRow(Row, frozen=True, kw_only=True):
    """An entry of the registry and its use.

    `what` is the package with its version, the host, or the first digits of the definition's hash. `drift`
    counts devices with a `version-drift` finding of that name: a finding does not say which entry it is close to.
    """

    entry: str
    what: str
    rings: tuple[str, ...]
    units: tuple[str, ...]
    owner: str
    expires: str
    """YYYY-MM-DD, or ""."""
    devices: int
    definitions: int
    drift: int
    used: bool
    known: bool
    """Whether the policy has it: a device may still use an entry of an older one."""


class EntryUse(Row, frozen=True, kw_only=True):
    """A device that uses an entry."""

    device: str
    hostname: str
    username: str = msgspec.field(name="user")
    harness: str
    count: int


class DigestRow(Row, frozen=True, kw_only=True):
    """How many devices of a ring have a policy."""

    ring: str
    digest: str
    devices: int


_T: Final = TALLIES.c
_A: Final = APPROVED.c
_MOST_DIGESTS: Final = 500


def usage(
    c: Connection,
    policy: Policy | None,
    *,
    unused: bool = False,
    cursor: str = "",
    limit: int = DEFAULT_LIMIT,
) -> Page[EntryRow]:
    """List the entries of `policy` and those that devices use though it does not have them, by id.

    `unused`: only entries of the policy that nobody uses.
    """
    after = str(decode_cursor("usage", cursor, str)[0]) if cursor else ""
    entries = {entry.id: entry for entry in policy.entries} if policy is not None else {}
    names = sorted(name for name in entries if name > after)
    if unused:
        names = _unused(c, names, limit + 1)
    else:
        used = select(_T.value).where(_T.dim == "approved", _T.devices > 0, _T.value > after)
        names = sorted({*names[: limit + 1], *c.scalars(used.order_by(_T.value).limit(limit + 1))})
    shown = names[:limit]
    tallies = _tallies(c, "approved", "", shown)
    drift = _tallies(c, "server", "version-drift", shown)
    rows = tuple(
        _entry(name, entries.get(name), tallies.get(name, (0, 0)), drift.get(name, (0, 0))[0])
        for name in shown
    )
    return Page(rows, encode_cursor("usage", shown[-1]) if len(names) > limit else "")


def entry(c: Connection, policy: Policy | None, name: str) -> EntryRow | None:
    """Give one entry and its use, None if the policy does not have it and nobody uses it."""
    checked(name)
    ours = {one.id: one for one in policy.entries}.get(name) if policy is not None else None
    used = _tallies(c, "approved", "", [name]).get(name, (0, 0))
    if ours is None and used[0] <= 0:
        return None
    return _entry(name, ours, used, _tallies(c, "server", "version-drift", [name]).get(name, (0, 0))[0])


def _unused(c: Connection, names: list[str], most: int) -> list[str]:
    found: list[str] = []
    for at in range(0, len(names), 1000):
        part = names[at : at + 1000]
        used = _tallies(c, "approved", "", part)
        found += [name for name in part if used.get(name, (0, 0))[0] == 0]
        if len(found) >= most:
            break
    return found[:most]


def _tallies(c: Connection, dim: str, kind: str, values: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Give (devices, definitions) of each value that is counted."""
    counted = select(_T.value, _T.devices, _T.findings)
    rows = c.execute(counted.where(_T.dim == dim, _T.kind == kind, _T.value.in_(list(values))))
    return {row.value: (row.devices, row.findings) for row in rows}


def _entry(name: str, entry: Entry | None, used: tuple[int, int], drift: int) -> EntryRow:
    return EntryRow(
        entry=name,
        what="" if entry is None else _what(entry),
        rings=() if entry is None else entry.rings,
        units=() if entry is None else entry.units,
        owner="" if entry is None else entry.owner,
        expires="" if entry is None or entry.expires is None else entry.expires.isoformat(),
        devices=used[0],
        definitions=used[1],
        drift=drift,
        used=used[0] > 0,
        known=entry is not None,
    )


def _what(entry: Entry) -> str:
    package = entry.package
    if package is not None:
        version = f"sha256:{package.sha256}" if package.sha256 else package.version_text or package.version
        return f"{package.type} {package.identifier} {version}"
    if entry.url:
        return entry.url
    if entry.command:
        return (
            f"the command {entry.command[0]} …"
            if len(entry.command) > 1
            else f"the command {entry.command[0]}"
        )
    return f"definition {entry.definition_sha256[:12]}"


_USERS: Final = Listing(
    kind="registry.users",
    rows=select(APPROVED),
    key=(_A.device, _A.harness, _A.username),
    types=(str, str, str),
    make=lambda row: EntryUse(**columns(row, *EntryUse.__struct_fields__)),
    show=lambda found: select(found, func.coalesce(DEVICES.c.hostname, "").label("hostname")).outerjoin_from(
        found, DEVICES, DEVICES.c.device == found.c.device
    ),
)


def users(c: Connection, entry: str, *, cursor: str = "", limit: int = DEFAULT_LIMIT) -> Page[EntryUse]:
    """List who uses an entry, by device."""
    checked(entry)
    return read(c, _USERS, cursor=cursor, limit=limit, equal=[(_A.entry, entry)])


def digests(c: Connection, ring: str = "") -> tuple[DigestRow, ...]:
    """Count devices by ring and policy digest, of one ring or of all; at most 500 rows, the most devices first."""
    checked(ring)
    one = DEVICES.c
    count = func.count().label("devices")
    counted = select(one.ring, one.digest, count).group_by(one.digest, one.ring)
    if ring:
        counted = counted.where(one.ring == ring)
    rows = c.execute(counted.order_by(count.desc(), one.ring, one.digest).limit(_MOST_DIGESTS))
    return tuple(DigestRow(**columns(row, *DigestRow.__struct_fields__)) for row in rows)
