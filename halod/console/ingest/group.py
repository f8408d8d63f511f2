# SPDX-License-Identifier: Apache-2.0
"""Takes a group of reports in one transaction.

What takes long and needs no lock is done before it: cleaning reports, and reading what is known of their devices. What
was read is used only if the device's row has the same `revision` under the lock, so replicas do this side by side.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, RowMapping, select

from halod.console.ingest import wire
from halod.console.security import tokens
from halod.console.store import apply, bulk, known
from halod.console.store.engine import Store
from halod.console.store.news import News
from halod.console.store.report import Report
from halod.console.store.schema import DEVICES

SPENT: Final = 4290
"""In place of a status: 429, the device has changed more than it may (`budget`)."""

Tell = Callable[[Connection, News, int], None]
"""Told of a group's news inside its transaction: webhooks are queued there."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One report that waits. `refusal`: what its bearer is told if the token is valid (the body is no status)."""

    token: str
    """Hex sha256 of the token."""
    size: int
    document: wire.Document | None = None
    refusal: int = 0


def take(
    store: Store,
    c: Connection,
    items: Sequence[Item],
    now: int,
    *,
    names_limit: int = apply.NAMES_LIMIT,
    tell: Tell | None = None,
    spent: Callable[[str], bool] = lambda _device: False,
    costs: dict[str, apply.Cost] | None = None,
) -> list[int]:
    """Take a group in a transaction of `Store.write`, and give the status of every answer.

    `spent` tells of a device whether what it changes is refused (`SPENT`); into `costs` goes what each has cost.
    """
    bearers = tokens.find_devices(c, (item.token for item in items), now)
    statuses = [_verdict(item, bearers.get(item.token)) for item in items]
    good = [at for at, status in enumerate(statuses) if status == 204]
    devices = {at: _device(items[at], bearers[items[at].token]) for at in good}
    content = _contents(c, devices.values())
    changed = {devices[at] for at in good if _is_change(items[at].document, content.get(devices[at]))}
    refused = {device for device in changed if spent(device)}
    for at in [at for at in good if devices[at] in refused]:
        statuses[at] = SPENT
    changed -= refused
    if changed:
        which = [at for at in good if devices[at] in changed]
        asked = [(_document(items[at]), devices[at]) for at in which]
        reports, there = _under_lock(store, c, asked)
        outcome = apply.apply(c, reports, there, now, names_limit=names_limit)
        if costs is not None:
            costs.update(outcome.costs)
        for place in outcome.refused:
            statuses[which[place]] = 429
        if tell is not None and outcome.news:
            tell(c, outcome.news, now)
    apply.heard(c, {devices[at] for at in good if statuses[at] == 204}, now)
    tokens.use(c, ((row["id"], row["used"]) for row in bearers.values()), now)
    return statuses


def _under_lock(
    store: Store, c: Connection, asked: Sequence[tuple[wire.Document, str]]
) -> tuple[list[Report], dict[str, known.Device]]:
    """Take the lock; give the documents as reports, and what is known of their devices now."""
    names = {device for _, device in asked}
    there = known.load(c, names)
    reports = [wire.report(document, device) for document, device in asked]
    if not store.sqlite:  # whose transactions begin with the lock
        store.lock(c)
        there = known.load(c, names, there.values())
    return reports, there


def _verdict(item: Item, row: RowMapping | None) -> int:
    if row is None:
        return 401
    if item.document is None:
        return item.refusal
    named = item.document.device
    if not named and not row["device"]:
        return 422
    return 403 if named and named != row["device"] else 204


def _document(item: Item) -> wire.Document:
    if item.document is None:
        raise ValueError("no document was read")
    return item.document


def _device(item: Item, row: RowMapping) -> str:
    return _document(item).device or str(row["device"])


def _contents(c: Connection, devices: Any) -> dict[str, str]:  # noqa: ANN401 - any iterable of names
    """Give what each device said last; nothing for one whose reports are refused."""
    asked = select(DEVICES.c.device, DEVICES.c.content).where(
        bulk.among(c, DEVICES.c.device, sorted(set(devices))), DEVICES.c.limited.is_(False)
    )
    return {row.device: row.content for row in c.execute(asked)}


def _is_change(document: wire.Document | None, content: str | None) -> bool:
    return document is not None and (document.content != content or document.transitions > 0)
