# SPDX-License-Identifier: Apache-2.0
"""Thirty days of one machine of the demonstration: what it has, what changes, and the documents that it sends.

Pure and deterministic: a machine and a day give the same document everywhere.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from halod.console.demo import draw
from halod.console.demo.people import Harness, Machine
from halod.console.demo.servers import APPROVED, OLD_ENTRY, SERVERS, Defined, Server, define

DAYS: Final = 30
OPENS: Final = 0.055
"""Chance that a person configures one more server on a day."""
RESOLVES: Final = 0.06
"""Chance of one finding to be mended on a day, from the day on which the organisation began to look at them."""
CHANGES: Final = 0.012
LOOKED_AT: Final = 11
"""Day on which the organisation began to look at the findings."""

Document = dict[str, Any]


class Row(msgspec.Struct, frozen=True):
    """A definition on a machine that is a finding."""

    harness: Harness
    defined: Defined
    scope: str
    projects: int
    enabled: bool


class Turn(msgspec.Struct, frozen=True):
    """What one day brought."""

    event: str
    row: Row
    was: str = ""


class Life:
    """A machine as days go by."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.rows: list[Row] = []
        self.waiting: list[tuple[int, Turn]] = []
        """What has not been reported yet, each with its day."""
        for nth in range(draw.weighted((0, 1, 2, 3, 4, 6), (14, 24, 24, 20, 12, 6), machine.number, "start")):
            self._open(0, nth)

    def live(self, day: int) -> bool:
        """Live one day; tells whether anything changed."""
        before = len(self.waiting)
        number = self.machine.number
        for row in list(self.rows):
            name = (number, day, row.defined.sha256, row.harness.id)
            if draw.number(*name, "resolve") < self._resolves(day, row):
                self.rows.remove(row)
                self.waiting.append((day, Turn("resolved", row)))
            elif draw.number(*name, "change") < CHANGES and "{n}" in "".join(row.defined.server.words):
                self._change(day, row)
        if draw.number(number, day, "opens") < OPENS:
            self._open(day, 0)
        return len(self.waiting) > before

    @staticmethod
    def _resolves(day: int, row: Row) -> float:
        if row.defined.server.kind == "denied":
            return 0.13 if day >= LOOKED_AT else 0.0
        if day < LOOKED_AT:
            return 0.008
        return RESOLVES if row.defined.server.kind == "version-drift" else RESOLVES / 1.7

    def _open(self, day: int, nth: int) -> None:
        number, units = self.machine.number, self.machine.units
        offered = [
            one for one in SERVERS if one.since <= day and (not one.units or set(one.units) & set(units))
        ]
        server: Server = draw.weighted(offered, [one.weight for one in offered], number, day, nth, "server")
        harness = draw.pick(self.machine.harnesses, number, day, nth, "in")
        if any(row.harness == harness and row.defined.server.name == server.name for row in self.rows):
            return
        project = harness.id == "claude-code" and draw.number(number, day, nth, "scope") < 0.3
        row = Row(
            harness,
            define(server, self.machine.user, number),
            "project" if project else "user",
            draw.between(1, 4, number, day, nth, "projects") if project else 0,
            draw.number(number, day, nth, "enabled") > 0.07,
        )
        self.rows.append(row)
        self.waiting.append((day, Turn("opened", row)))

    def _change(self, day: int, row: Row) -> None:
        new = msgspec.structs.replace(row, defined=define(row.defined.server, self.machine.user, 1000 * day))
        self.rows[self.rows.index(row)] = new
        self.waiting.append((day, Turn("changed", new, row.defined.sha256)))

    def report(self, *, time: str, digest: str) -> Document:
        """Give the status document, with what has not been reported yet."""
        machine, waiting, self.waiting = self.machine, self.waiting, []
        skipped = list(gaps(machine))
        approved = list(self._approved())
        rows = sorted(
            self.rows, key=lambda row: (row.harness.id, row.defined.server.name, row.defined.sha256)
        )
        inventory = machine.number == INVENTORY
        return {
            "schemaVersion": 1,
            "time": time,
            "device": machine.device,
            "hostname": machine.hostname,
            "os": machine.os,
            "halod": machine.halod,
            "user": machine.user,
            "ring": machine.ring,
            "units": list(machine.units),
            "digest": "" if inventory else digest,
            "mode": "inventory" if inventory else "allowlist",
            "mcpDrift": [] if inventory else [self._finding(row) for row in rows],
            "mcpApproved": [] if inventory else approved,
            "skipped": skipped,
            "transitions": [] if inventory else [self._transition(day, turn, time) for day, turn in waiting],
            "coverage": {
                "accounts": 1,
                "files": len(machine.harnesses) + draw.between(0, 3, machine.number, "files"),
                "definitions": len(rows) + sum(int(one["count"]) for one in approved),
                "durationMs": draw.between(28, 190, machine.number, time),
                "notCovered": ["project-files", "cloud-connectors", "environment-overrides"],
            },
            "mcpDriftTotal": 0 if inventory else len(rows),
            "truncated": False,
            "lastError": _FAULTY.get(machine.number, ("", ""))[1],
            "errorCode": _FAULTY.get(machine.number, ("", ""))[0],
        }

    def _finding(self, row: Row) -> Document:
        server, found = row.defined.server, row.defined
        made: Document = {
            "harness": row.harness.id,
            "file": row.harness.file,
            "server": server.name,
            "kind": server.kind,
            "transport": found.transport,
            "definitionSha256": found.sha256,
            "detail": found.detail,
            "fix": found.fix,
            "user": self.machine.user,
            "scope": row.scope,
            "enabled": row.enabled,
        }
        if server.host:
            made["host"] = server.host
        if server.secret:
            made["secretInDefinition"] = True
        if row.projects > 1:
            made["projects"] = row.projects
        return made

    def _transition(self, day: int, turn: Turn, time: str) -> Document:
        name = f"{self.machine.device}{day}{turn.event}{turn.row.defined.sha256}{turn.row.harness.id}{time}"
        made: Document = {
            "id": hashlib.sha256(name.encode()).hexdigest()[:24],
            "time": time,
            "event": turn.event,
            "finding": self._finding(turn.row),
        }
        if turn.was:
            made["was"] = turn.was
        return made

    def _approved(self) -> Iterator[Document]:
        number, units = self.machine.number, set(self.machine.units)
        for entry, weight, whose in APPROVED:
            if (not whose or units & set(whose)) and draw.number(number, entry) < weight / 12:
                harness = draw.pick(self.machine.harnesses, number, entry, "in")
                count = draw.between(1, 2, number, entry, "count")
                yield {"harness": harness.id, "id": entry, "user": self.machine.user, "count": count}
        if number % 29 == 3:
            yield {
                "harness": self.machine.harnesses[0].id,
                "id": OLD_ENTRY,
                "user": self.machine.user,
                "count": 1,
            }


# --- what is odd about some machines -------------------------------------------------------------------------

SILENT: Final = {9: 26, 23: 19, 41: 28, 58: 12, 77: 28, 96: 5}
"""Machines that fell silent, and on which day."""
INVENTORY: Final = 52
"""A machine without a policy."""
OLD_POLICY: Final = frozenset({5, 14, 27, 33, 48, 61, 70, 88, 104, 112})
"""Machines that have not taken the newest policy."""
_FAULTY: Final = {
    33: ("policy-older", "version 3 of the policy was offered and is older than version 4"),
    88: ("policy-expired", ""),
}
_GAPS: Final[dict[int, tuple[Document, ...]]] = {
    4: ({"reason": "malformed", "line": 41, "column": 3},),
    17: ({"reason": "symlink"},),
    29: ({"reason": "denied-by-system"},),
    36: (
        {"reason": "malformed-entry", "server": "scratch"},
        {"reason": "malformed-entry", "server": "old-notes"},
    ),
    50: ({"reason": "escapes-home"},),
    64: ({"reason": "malformed", "line": 7, "column": 18},),
    73: ({"reason": "wrong-owner"},),
    85: ({"reason": "worker-timeout", "whole": True},),
    101: ({"reason": "error", "errno": "EIO"},),
    110: ({"reason": "too-large"},),
}


def gaps(machine: Machine) -> Iterator[Document]:
    """Give what cannot be read on a machine."""
    for gap in _GAPS.get(machine.number, ()):
        told = {name: value for name, value in gap.items() if name != "whole"}
        if gap.get("whole"):
            yield {"user": machine.user, **told}
        else:
            harness = draw.pick(machine.harnesses, machine.number, "gap")
            yield {"user": machine.user, "harness": harness.id, "file": harness.file, **told}
