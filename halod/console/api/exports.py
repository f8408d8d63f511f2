# SPDX-License-Identifier: Apache-2.0
"""Exports: a whole list as one file, streamed.

Invariants:

1. Memory is bounded: one page of rows is held, read in a short transaction of its own, so an export holds up no
   writer and no clean-up. It is no picture of one moment: what changes meanwhile may be seen before or after its
   change, but what stays is in it exactly once.
2. Everything that can be refused is refused before the first byte. An export that breaks off later breaks the
   connection off: a client that checks how an answer ends does not take it for whole.
3. Every export is written into the audit log before it begins, with its filters.
4. Text of devices passes `halod.status.clean` again; CSV is safe to open in a spreadsheet (`csvtext`).
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from halod.console.access import Access
from halod.console.api import csvtext, ocsf, wire
from halod.console.api.asking import Asked, Parameter
from halod.console.api.lists import DEVICE_FILTERS, FINDING_FILTERS, device_filter, filters, finding_filter
from halod.console.api.operation import Operation
from halod.console.call import Call
from halod.console.security import audit
from halod.console.store.engine import Store
from halod.console.store.paging import Page
from halod.console.store.read import devices, findings, transitions
from halod.console.store.read.rows import Row
from halod.status import clean

PAGE: Final = 500
CSV: Final = "text/csv; charset=utf-8; header=present"
JSON_LINES: Final = "application/x-ndjson"

Read = Callable[[Any, str], Page[Any]]
"""Reads the page behind a cursor over a connection."""
Write = Callable[[Iterator[tuple[Any, ...]]], Iterator[bytes]]
"""Writes pages of rows as pieces of a file."""


def _pages(store: Store, read: Read) -> Iterator[tuple[Any, ...]]:
    cursor = ""
    while True:
        with store.read() as c:
            page = read(c, cursor)
        yield page.rows
        cursor = page.next
        if not cursor:
            return


def _csv(row: type[Row]) -> Write:
    head = csvtext.line(one.encode_name for one in msgspec.structs.fields(row)).encode()

    def write(pages: Iterator[tuple[Any, ...]]) -> Iterator[bytes]:
        first = head
        for rows in pages:
            lines = [csvtext.line(map(_cell, wire.document(one).values())) for one in rows]
            yield first + "".join(lines).encode()
            first = b""

    return write


def _cell(value: Any) -> Any:  # noqa: ANN401 -- whatever a row has
    """Write a list as one field, for people: JSON Lines has it exactly."""
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _json_lines(document: Callable[[Any], Any]) -> Write:
    encoder = msgspec.json.Encoder()

    def write(pages: Iterator[tuple[Any, ...]]) -> Iterator[bytes]:
        for rows in pages:
            yield encoder.encode_lines([document(one) for one in rows])

    return write


def _clean_document(row: Row) -> dict[str, Any]:
    return {name: _clean(value) for name, value in wire.document(row).items()}


def _clean(value: Any) -> Any:  # noqa: ANN401 -- whatever a row has
    if isinstance(value, str):
        return clean(value, len(value))
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    return value


def _send(call: Call, asked: Asked, name: str, read: Read, write: Write) -> Response:
    store, now = call.console.store, call.console.clock.now()
    pages = _pages(store, read)
    first = next(pages)  # what is refused is refused here
    stem, _, kind = name.partition(".")
    headers = {
        "Content-Disposition": f'attachment; filename="halo-{stem}-{wire.day(now // 86_400)}.{kind}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    if call.request.method == "HEAD":
        return Response(b"", headers=headers, media_type=_media(name))
    with store.write() as c:
        audit.record(
            c,
            time=now,
            actor=call.actor.name,
            actor_kind=call.actor.kind,
            action="export",
            target=name,
            address=call.address,
            **asked.given(),
        )
    body = write(itertools.chain([first], pages))
    return StreamingResponse(filter(None, body), headers=headers, media_type=_media(name))


def _media(name: str) -> str:
    return CSV if name.endswith(".csv") else JSON_LINES


def _findings(asked: Asked) -> Read:
    where = finding_filter(asked)
    return lambda c, cursor: findings.findings(c, where, cursor=cursor, limit=PAGE)


def _devices(call: Call, asked: Asked) -> Read:
    where, now, silent = device_filter(asked), call.console.clock.now(), call.console.settings.silent_after
    return lambda c, cursor: devices.every(c, where, now=now, silent_after=silent, cursor=cursor, limit=PAGE)


def _transitions(call: Call, asked: Asked) -> Read:
    """Read from `after` to what was the newest when the export began."""
    after, device = asked.number("after"), asked.text("device")
    with call.console.store.read() as c:
        newest = transitions.newest(c, limit=1).rows
    last = newest[0].seq if newest else 0

    def read(c: Any, cursor: str) -> Page[Any]:  # noqa: ANN401 -- a connection
        page = transitions.since(c, after=int(cursor or after), limit=PAGE, device=device)
        rows = tuple(row for row in page.rows if row.seq <= last)
        return Page(rows, page.next if rows and rows[-1].seq < last else "")

    return read


def _findings_csv(call: Call, asked: Asked) -> Response:
    return _send(call, asked, "findings.csv", _findings(asked), _csv(findings.FindingRow))


def _findings_jsonl(call: Call, asked: Asked) -> Response:
    return _send(call, asked, "findings.jsonl", _findings(asked), _json_lines(_clean_document))


def _findings_ocsf(call: Call, asked: Asked) -> Response:
    return _send(call, asked, "findings.ocsf.jsonl", _findings(asked), _json_lines(ocsf.event))


def _devices_csv(call: Call, asked: Asked) -> Response:
    return _send(call, asked, "devices.csv", _devices(call, asked), _csv(devices.DeviceRow))


def _devices_jsonl(call: Call, asked: Asked) -> Response:
    return _send(call, asked, "devices.jsonl", _devices(call, asked), _json_lines(_clean_document))


def _transitions_jsonl(call: Call, asked: Asked) -> Response:
    return _send(call, asked, "transitions.jsonl", _transitions(call, asked), _json_lines(_clean_document))


_CSV_NOTE: Final = (
    "RFC 4180, UTF-8. Text that a spreadsheet could take for a formula, or that begins with an apostrophe,"
    " has an apostrophe in front."
)
_OCSF_NOTE: Final = f"OCSF {ocsf.VERSION} Detection Findings (class 2004), one event a line."


def _export(
    name: str,
    summary: str,
    run: Callable[[Call, Asked], Response],
    parameters: tuple[Parameter, ...],
    about: str = "",
) -> Operation:
    return Operation(
        path=f"/export/{name}",
        name=f"export-{name.replace('.', '-')}",
        summary=summary,
        about=about,
        run=run,
        access=Access.VIEWER,
        parameters=parameters,
        media=_media(name),
    )


_AFTER: Final = (
    Parameter(name="after", text="The number to go on after.", number=True),
    *filters(device="A device's identity."),
)
OPERATIONS: Final = (
    _export("findings.csv", "Findings as CSV", _findings_csv, FINDING_FILTERS, _CSV_NOTE),
    _export("findings.jsonl", "Findings as JSON Lines", _findings_jsonl, FINDING_FILTERS),
    _export("findings.ocsf.jsonl", "Findings as OCSF events", _findings_ocsf, FINDING_FILTERS, _OCSF_NOTE),
    _export("devices.csv", "Devices as CSV", _devices_csv, DEVICE_FILTERS, _CSV_NOTE),
    _export("devices.jsonl", "Devices as JSON Lines", _devices_jsonl, DEVICE_FILTERS),
    _export("transitions.jsonl", "Transitions as JSON Lines", _transitions_jsonl, _AFTER),
)
