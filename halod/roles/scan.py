# SPDX-License-Identifier: Apache-2.0
"""What a worker does with a home: reads it, judges what it finds, and says so in codes (design 3).

Invariants:

1. Nothing but vocabulary, numbers, hashes, hosts and redacted names is in the answer: `assemble` would not
   believe anything else. Names are shown unredacted only when the job says `reveal`.
2. One definition that cannot be judged never costs the others: it counts as unapproved.
3. Everything this needs is imported with this module: a confined worker can read no library.
"""

from typing import cast

import msgspec

from halod.definition import Definition, FileRef
from halod.drift import FLAGS, Judge, Verdict, judge_worse
from halod.harnesses import read_home
from halod.harnesses.dialect import Location
from halod.harnesses.model import Found, Reading, Unread
from halod.home import Home
from halod.launch import whatwg_host
from halod.policy.model import Registry
from halod.roles.answer import Answer, Gap, Row
from halod.roles.effort import Effort
from halod.roles.fit import fitted
from halod.roles.worker import Job
from halod.secrets_hint import secret_in_definition
from halod.status import NAME_LIMIT, NotCovered, Reason, clean, file_part, hashed_name, is_host, server_name


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan needs beside the home: the `payload` of its Job.

    `judge` is None for an inventory. `harnesses` are the ids to read, None for all. `extra` are the locations
    that settings add. `reveal` shows the names that the user chose: only for an account that looks at its own
    files on its own terminal. `home` is the home's path, which no name may hold; "" until a worker knows it.
    """

    judge: Judge | None = None
    harnesses: frozenset[str] | None = None
    extra: tuple[Location, ...] = ()
    reveal: bool = False
    home: str = ""

    @classmethod
    def of(
        cls,
        registry: Registry | None,
        harnesses: frozenset[str] | None = None,
        *,
        extra: tuple[Location, ...] = (),
        reveal: bool = False,
    ) -> "Task":
        """Make the task that compares with `registry`, made ready once for all accounts."""
        judge = None if registry is None else Judge(registry)
        return cls(judge=judge, harnesses=harnesses, extra=extra, reveal=reveal)


def scan_home(home: Home, job: Job) -> Answer:
    """Read one home and answer for it."""
    task = job.payload if isinstance(job.payload, Task) else Task()
    reading = read_home(home, harnesses=task.harnesses, extra=task.extra)
    if not task.home:
        task = msgspec.structs.replace(task, home=job.home)
    return answer(reading, task)


def answer(reading: Reading, task: Task) -> Answer:
    """Put what a scan found into codes. Rows of project scope that differ only in the project are one row."""
    rows: dict[Row, int] = {}
    effort = Effort()
    for found in reading.found:
        row = _row(found, task, effort)
        rows[row] = rows.get(row, 0) + 1
    whole = Answer(
        rows=tuple(_folded(rows)),
        gaps=tuple([_gap(unread, task, effort) for unread in reading.unread]),
        read=tuple([(file.location, _parts(file, task)) for file in reading.read]),
        files=reading.files,
        definitions=len(reading.found),
        not_covered=cast("tuple[NotCovered, ...]", tuple(sorted(reading.not_covered))),
    )
    return fitted(whole)


def _folded(rows: dict[Row, int]) -> list[Row]:
    folded = []
    for row, count in rows.items():
        if row.scope == "project":
            folded.append(msgspec.structs.replace(row, projects=count) if count > 1 else row)
        else:
            folded.extend([row] * count)
    return folded


def _row(found: Found, task: Task, effort: Effort) -> Row:
    looked = all(half is None or effort.definition(half) for half in (found.definition, found.other))
    definition, verdict = _judged(found, task.judge) if looked else _unjudged(found)
    return Row(
        location=definition.file.location,
        parts=_parts(definition.file, task),
        name=_name(definition.name, task, effort),
        transport=definition.transport,
        host=verdict.host if definition.transport == "http" and is_host(verdict.host) else "",
        sha256=definition.sha256,
        scope=definition.scope,
        enabled=definition.enabled,
        secret=looked and _secret(definition),
        kind="inventory" if task.judge is None else verdict.kind,
        outcome=verdict.outcome,
        flags=tuple([flag for flag in verdict.flags if flag in FLAGS]),
        entry=verdict.entry,
        note=verdict.note,
    )


def _unjudged(found: Found) -> tuple[Definition, Verdict]:
    """Give what is said of a definition that is too long to be looked at: of two halves the command."""
    halves = (found.definition, found.other or found.definition)
    definition = next((half for half in halves if half.transport == "stdio"), found.definition)
    return definition, Verdict(kind="unapproved", note="unidentifiable")


def _judged(found: Found, judge: Judge | None) -> tuple[Definition, Verdict]:
    if judge is None:
        definition = found.definition
        if found.other is not None and found.other.transport == "stdio":
            definition = found.other  # of two halves the command is shown: it is what can run here
        return definition, Verdict(kind="unapproved", host=_host(definition))
    try:
        return judge_worse(found, judge)
    except Exception:  # noqa: BLE001 - whatever a definition provokes, the others are still judged
        return found.definition, Verdict(kind="unapproved", note="unidentifiable")


def _host(definition: Definition) -> str:
    try:
        return whatwg_host(definition.url) if definition.transport == "http" else ""
    except Exception:  # noqa: BLE001 - as above: a URL that cannot be read has no host
        return ""


def _secret(definition: Definition) -> bool:
    try:
        return secret_in_definition(definition)
    except Exception:  # noqa: BLE001 - as above: a hint that cannot be given is not given
        return False


def _name(name: str, task: Task, effort: Effort) -> str:
    if not effort.name(name):
        return hashed_name(name)
    if task.reveal:
        return clean(name, NAME_LIMIT)
    return hashed_name(name) if len(task.home) > 1 and task.home in name else server_name(name)


def _parts(file: FileRef, task: Task) -> tuple[str, ...]:
    if not task.reveal:
        return tuple([file_part(part) if part else "" for part in file.parts])
    return tuple(
        ["/".join([_shown(text) for text in part.split("/")]) if part else "" for part in file.parts]
    )


def _shown(component: str) -> str:
    text = clean(component)
    return hashed_name(component) if text in {"", ".", ".."} else text


def _gap(unread: Unread, task: Task, effort: Effort) -> Gap:
    return Gap(
        location=unread.file.location,
        parts=_parts(unread.file, task),
        reason=cast("Reason", unread.reason),
        server=_name(unread.server, task, effort) if unread.server is not None else "",
        line=unread.line,
        column=unread.column,
        errno=unread.errno,
        depth=unread.depth,
    )
