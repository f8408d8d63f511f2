# SPDX-License-Identifier: Apache-2.0
"""The tables of the state database, as steps from one version to the next (`PRAGMA user_version`).

A step is never edited after a release: a later one changes what it made. Every step runs in one transaction
with the version it leads to, so a crash leaves the version before.

    meta      key, value        counters and small documents, by name
    status    one row           the newest status as JSON, and its number
    finding   one row each      a Known (`identity`) as JSON
    outbox    one row each      a Transition as JSON, by its number: the order of delivery

`crc` is the CRC-32 of `body`: SQLite notices a damaged page only where its structure is hurt.
"""

from typing import Final

APPLICATION_ID: Final = 0x68616C6F
"""`PRAGMA application_id`: "halo" in ASCII, so that file(1) and we know whose database it is."""

MIGRATIONS: Final = (
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE status (one INTEGER PRIMARY KEY, seq INTEGER, body BLOB NOT NULL, crc INTEGER NOT NULL)",
        "CREATE TABLE finding (id INTEGER PRIMARY KEY, body BLOB NOT NULL, crc INTEGER NOT NULL)",
        "CREATE TABLE outbox (seq INTEGER PRIMARY KEY, body BLOB NOT NULL, crc INTEGER NOT NULL)",
    ),
)
