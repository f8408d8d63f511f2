# SPDX-License-Identifier: Apache-2.0
"""Takes documents without HTTP and tokens: for the demonstration, the seeder and tests."""

from collections.abc import Iterable
from typing import Any

import msgspec

from halod.console.ingest import wire
from halod.console.store import apply, known
from halod.console.store.engine import Store
from halod.console.store.news import News


def take(store: Store, documents: Iterable[bytes | dict[str, Any]], *, now: int) -> list[News]:
    """Take status documents, each with its `device`, 64 in a transaction; give what each transaction brought.

    Raises:
        wire.Malformed, wire.NotAStatus: a document is none; those before it may have been taken.
    """
    news = []
    batch = []
    for document in documents:
        body = document if isinstance(document, bytes) else msgspec.json.encode(document)
        read = wire.read(body)
        if not read.device:
            raise wire.NotAStatus
        batch.append(wire.report(read, read.device))
        if len(batch) == 64:
            news.append(_take(store, batch, now))
            batch = []
    if batch:
        news.append(_take(store, batch, now))
    return news


def _take(store: Store, batch: list[Any], now: int) -> News:
    with store.change() as c:
        devices = [report.device for report in batch]
        apply.heard(c, devices, now)
        return apply.apply(c, batch, known.load(c, devices), now).news
