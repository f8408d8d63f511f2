# SPDX-License-Identifier: Apache-2.0
"""What a worker may answer: numbers, closed vocabularies, hashes, hosts and redacted names (design 3).

Encoded as msgpack arrays. Nothing here is trusted by the reader: `assemble` checks every string against the
rules of design 8 again, and a value outside its vocabulary makes the whole answer `worker-invalid`.
"""

from typing import Literal

import msgspec

from halod.definition import Scope, Transport
from halod.launch.model import Outcome
from halod.status import NotCovered, Reason

RowKind = Literal["approved", "version-drift", "unapproved", "denied", "inventory"]


class Row(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One definition, judged. `entry` is a registry id or ""; `note` and `flags` are drift's vocabularies.

    `projects` counts the definitions of project scope that this row stands for. `outcome` is "" for http.
    """

    location: int
    parts: tuple[str, ...]
    name: str
    transport: Transport
    host: str
    sha256: str
    scope: Scope
    enabled: bool
    secret: bool
    kind: RowKind
    outcome: Outcome | Literal[""] = ""
    flags: tuple[str, ...] = ()
    entry: str = ""
    note: str = ""
    projects: int = 1


class Gap(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One file or entry that was not read. `server` is a redacted name or "".

    `depth` is 0 for the file alone, else the number of its path's components behind which all is unread.
    """

    location: int
    parts: tuple[str, ...]
    reason: Reason
    server: str = ""
    line: int = 0
    column: int = 0
    errno: str = ""
    depth: int = 0


class Answer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A worker's whole answer for one account. `sandbox` is what the kernel let it confine."""

    rows: tuple[Row, ...] = ()
    gaps: tuple[Gap, ...] = ()
    read: tuple[tuple[int, tuple[str, ...]], ...] = ()
    files: int = 0
    definitions: int = 0
    not_covered: tuple[NotCovered, ...] = ()
    sandbox: Literal["full", "partial"] = "full"
