# SPDX-License-Identifier: Apache-2.0
"""The rows of the state database: what is written, and nothing else that is read (`schema_sql`).

Every function works in the transaction of its caller and raises Damaged for what halod did not write. Only
`status` types, and numbers and words of ours, are encoded here.
"""

import sqlite3
import zlib
from typing import Final, TypeVar

import msgspec

from halod.agent.database import Damaged
from halod.agent.identity import Known, Reconciled
from halod.status import Status, Transition, encode

OUTBOX_LIMIT: Final = 10_000
"""Transitions that wait for delivery (design 9)."""
_FREE_PAGES: Final = 256
"""Pages given back to the file system after each cycle, at most."""

_JSON: Final = msgspec.json.Encoder()
_KNOWN: Final = msgspec.json.Decoder(Known)
_TRANSITION: Final = msgspec.json.Decoder(Transition)
_STATUS: Final = msgspec.json.Decoder(Status)
_Type = TypeVar("_Type")


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The last try to deliver, for `halod status`. `outcome` is a word of ours; `http` a status code or 0."""

    time: str
    outcome: str
    http: int = 0
    failures: int = 0
    accepted: str = ""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """Totals since the database was made. `dropped` transitions were never delivered."""

    cycles: int = 0
    transitions: int = 0
    reports: int = 0
    dropped: int = 0
    forgotten: int = 0


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What `halod status` shows of the state. `fault` is the code of a StateFault that still holds, or ""."""

    status: bytes | None
    waiting: int
    counters: Counters
    delivery: Delivery | None
    fault: str


def checked(body: bytes) -> tuple[bytes, int]:
    """Give a body and its checksum."""
    return body, zlib.crc32(body)


def decoded(decoder: msgspec.json.Decoder[_Type], body: object, crc: object) -> _Type:
    """Decode a document of ours. Raises Damaged when it is not what was written."""
    if not isinstance(body, bytes) or zlib.crc32(body) != crc:
        raise Damaged
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Damaged from None


def meta(db: sqlite3.Connection, key: str, kind: type[_Type]) -> _Type | None:
    """Give a small document by name, or None."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    try:
        return msgspec.json.decode(row[0], type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        raise Damaged from None


def set_meta(db: sqlite3.Connection, key: str, value: object) -> None:
    """Put a small document in place."""
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, _JSON.encode(value)))


def findings(db: sqlite3.Connection) -> list[tuple[int, Known]]:
    """Give the known findings with their row numbers; no identity is there twice."""
    rows = db.execute("SELECT id, body, crc FROM finding").fetchall()
    found = [(number, decoded(_KNOWN, body, crc)) for number, body, crc in rows]
    if len({known.slot for _, known in found}) != len(found):
        raise Damaged
    return found


def store_findings(db: sqlite3.Connection, rows: list[tuple[int, Known]], outcome: Reconciled) -> None:
    """Write what is different from before: most cycles change nothing."""
    before = {known.slot: (number, known) for number, known in rows}
    for known in outcome.known:
        number, old = before.pop(known.slot, (None, None))
        if known != old:
            db.execute(
                "INSERT OR REPLACE INTO finding (id, body, crc) VALUES (?, ?, ?)",
                (number, *checked(_JSON.encode(known))),
            )
    db.executemany("DELETE FROM finding WHERE id = ?", [(number,) for number, _ in before.values()])


def add_transitions(db: sqlite3.Connection, after: int, new: list[Transition]) -> None:
    """Append to the outbox, numbered from `after` + 1 on."""
    db.executemany(
        "INSERT INTO outbox (seq, body, crc) VALUES (?, ?, ?)",
        [(number, *checked(encode(one))) for number, one in enumerate(new, after + 1)],
    )


def set_status(db: sqlite3.Connection, number: int, status: Status) -> None:
    """Put the newest status in place of the one before."""
    db.execute(
        "INSERT OR REPLACE INTO status (one, seq, body, crc) VALUES (1, ?, ?, ?)",
        (number, *checked(encode(status))),
    )


def drop_oldest(db: sqlite3.Connection) -> int:
    """Keep the newest OUTBOX_LIMIT transitions; give how many went."""
    return db.execute(
        "DELETE FROM outbox WHERE seq <= (SELECT seq FROM outbox ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (OUTBOX_LIMIT,),
    ).rowcount


def waiting(db: sqlite3.Connection, after: int, most: int) -> list[tuple[int, Transition]]:
    """Give the first `most` transitions after a number, in order."""
    rows = db.execute(
        "SELECT seq, body, crc FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?", (after, most)
    ).fetchall()
    return [(number, decoded(_TRANSITION, body, crc)) for number, body, crc in rows]


def newest(db: sqlite3.Connection) -> tuple[int, Status] | None:
    """Give the newest status and the number of its cycle; None before the first."""
    row = db.execute("SELECT seq, body, crc FROM status").fetchone()
    return None if row is None else (row[0], decoded(_STATUS, row[1], row[2]))


def summary(db: sqlite3.Connection, fault: str) -> Summary:
    """Gather what `halod status` shows."""
    found = newest(db)
    (waiting,) = db.execute("SELECT count(*) FROM outbox").fetchone()
    return Summary(
        status=None if found is None else encode(found[1]),
        waiting=waiting,
        counters=meta(db, "counters", Counters) or Counters(),
        delivery=meta(db, "delivery", Delivery),
        fault=fault,
    )


def give_back(db: sqlite3.Connection) -> None:
    """Give free pages back to the file system."""
    db.execute(f"PRAGMA incremental_vacuum({_FREE_PAGES})").fetchall()
