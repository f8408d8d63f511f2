# SPDX-License-Identifier: Apache-2.0
"""A status as a page for a person: findings by file with what to do, what is approved, what was not read.

Pure: a Status in, text out. Every string of the status is escaped before it is shown: a name is a user's free
text, and a terminal obeys what it is sent. What was not read always has a place: a page with no finding does not
look clean when something is missing.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from halod.cli.colour import Paint, columns, escape, wrap
from halod.drift.flags import FLAG_WORDS
from halod.status import Approved, Finding, Skipped, Status

_KINDS: Final = {
    "denied": ("DENIED", "red"),
    "unapproved": ("UNAPPROVED", "red"),
    "version-drift": ("VERSION DRIFT", "yellow"),
}

_INDENT: Final = " " * 6
_CLEAR_TEXT: Final = (
    "carries a credential in clear text: have it replaced, and refer to the new one by a variable"
)
_WITH_FLAGS: Final = re.compile(r"(?:runs|uses) the approved \w+ with ([a-z, -]+);")

REASONS: Final[dict[str, tuple[str, str]]] = {
    "escapes-home": (
        "a link on the way leads out of the home",
        "Move the folder into the home, or let link_roots in halod.toml name where it may lead.",
    ),
    "symlink": (
        "the file is a symbolic link",
        "Put a regular file in its place, or let link_roots in halod.toml name where links may end.",
    ),
    "changed": ("the file changed while it was read", "Scan again when the tool that writes it is at rest."),
    "not-regular": (
        "a folder, pipe, socket or device stands where a file should",
        "Remove it, unless a tool needs it there.",
    ),
    "wrong-owner": (
        "the file belongs to another account",
        "Give it back to the account (chown) after finding out who put it there.",
    ),
    "hard-linked": (
        "the file is another account's and has several hard links",
        "Replace it by a copy that the account owns.",
    ),
    "too-large": (
        "the file is larger than halod reads",
        "Raise max_file_bytes in halod.toml if that is expected.",
    ),
    "unreadable": (
        "halod may not read the file",
        "Run the scan as this account or as root, or mend the file's mode.",
    ),
    "denied-by-system": (
        "the system refused, as macOS privacy protection (TCC) does",
        "Give halod Full Disk Access, by a privacy profile of your MDM or in System Settings.",
    ),
    "error": ("the system reported an error", "Look at the disk or mount behind the file, then scan again."),
    "malformed": (
        "the file does not parse, so the tool may not read it either",
        "Mend the file at the place shown, or restore it.",
    ),
    "malformed-entry": (
        "the entry defines no server that can be run",
        "Complete the entry (a command or a URL, of the right type) or remove it.",
    ),
    "opaque": ("the config is a program, which halod does not run", "Review by hand what it sets up."),
    "too-many-entries": (
        "the folder has more entries than halod lists",
        "Clear the folder of what is not used.",
    ),
    "home-unavailable": (
        "the account's home could not be opened",
        "Another account's home needs root; else check that it exists, is mounted, and is no link.",
    ),
    "no-account": (
        "there is no such account here",
        "Check the name; accounts of a directory must be resolvable here.",
    ),
    "worker-crashed": ("reading this account failed", "Scan again; report it if it happens twice."),
    "worker-timeout": ("reading this account took too long", "Look for a slow or hanging mount in the home."),
    "worker-invalid": (
        "the reading of this account gave an answer that halod does not accept",
        "Treat the account as not read and report it.",
    ),
}
"""Each reason in words, and what to do about it."""

_NO_RING: Final = (
    "No ring or unit was given (--ring, --unit), so what is approved for some of them does not count."
)

_NOT_COVERED: Final = {
    "project-files": "files in repositories (.mcp.json and the like)",
    "cloud-connectors": "connectors kept in a vendor's cloud",
    "environment-overrides": "config folders moved by environment variables",
    "plugin-sources": "plugins that run from a folder outside the home",
}


def render(status: Status, paint: Paint, room: int) -> str:
    """Give the page: lines of at most `room` columns (a longer word stands alone), with a line end."""
    page = _Page(status, paint, room)
    return "\n".join(page.lines()) + "\n"


class _Page:
    def __init__(self, status: Status, paint: Paint, room: int) -> None:
        self.status = status
        self.paint = paint
        self.room = room
        users = {row.user for rows in (_rows(status), status.skipped, status.mcp_approved) for row in rows}
        self.several = len(users) > 1

    def lines(self) -> Iterator[str]:
        rows = _rows(self.status)
        for (user, harness, file), group in groupby(rows, key=lambda row: (row.user, row.harness, row.file)):
            yield self.heading(user, harness, file)
            for row in group:
                yield from self.finding(row)
            yield ""
        yield from self.approved()
        yield from self.skipped()
        if not rows and not self.status.mcp_approved and not self.status.skipped:
            yield self.nothing()
            yield ""
        yield from self.closing()

    def nothing(self) -> str:
        if not self.status.coverage.accounts:
            return wrap("No person's account was found on this machine, so nothing was read.", self.room, "")
        return wrap("No MCP server is configured in any file that halod knows.", self.room, "")

    def heading(self, user: str, harness: str, file: str) -> str:
        who = f"{escape(user)}  " if self.several else ""
        return f"{who}{self.paint('bold', escape(file) or '(account)')}  {self.paint('dim', escape(harness))}"

    def finding(self, row: Finding) -> Iterator[str]:
        word, style = _KINDS[row.kind] if isinstance(row.kind, str) else ("", "")
        kind = f"{word:<14} " if word else ""
        name = escape(row.server) or '""'
        marks = f"({', '.join(self.marks(row))})"
        head = f"  {self.paint(style, kind)}{self.paint('bold', name)}"
        if columns(f"  {kind}{name}  {marks}") <= self.room:
            yield f"{head}  {self.paint('dim', marks)}"
        else:
            yield head
            yield self.paint("dim", wrap(marks, self.room, _INDENT))
        if row.secret_in_definition:
            yield self.paint("yellow", wrap(_CLEAR_TEXT, self.room, _INDENT))
        if isinstance(row.detail, str) and row.detail:
            yield wrap(escape(row.detail), self.room, _INDENT)
            for flag, meaning in meanings(row.detail):
                yield wrap(f"{flag}: {meaning}", self.room, _INDENT)
        if isinstance(row.fix, str) and row.fix:
            yield self.paint("green", wrap(f"fix: {escape(row.fix)}", self.room, _INDENT))

    def marks(self, row: Finding) -> list[str]:
        host = row.host if isinstance(row.host, str) else ""
        marks = [f"{row.transport} {escape(host)}".rstrip()]
        if row.scope != "user":
            marks.append(row.scope)
        if isinstance(row.projects, int) and row.projects > 1:
            marks.append(f"in {row.projects} projects")
        if not row.enabled:
            marks.append("switched off")
        if row.stale:
            marks.append("not read this time")
        if not isinstance(row.kind, str):
            marks.append(row.definition_sha256[:12])
        return marks

    def approved(self) -> Iterator[str]:
        rows = self.status.mcp_approved
        if not rows:
            return
        total = sum(row.count for row in rows)
        yield self.paint("green", f"Approved: {count(total, 'definition')}")
        for (user, harness), group in groupby(rows, key=lambda row: (row.user, row.harness)):
            yield wrap(self.who(user, harness) + _ids(group), self.room, "  ")
        yield ""

    def who(self, user: str, harness: str) -> str:
        return f"{escape(user)}, {escape(harness)}: " if self.several else f"{escape(harness)}: "

    def skipped(self) -> Iterator[str]:
        rows = self.status.skipped
        if not rows:
            return
        yield self.paint("yellow", f"Not read: {len(rows)}")
        for row in rows:
            words, advice = REASONS[row.reason]
            yield wrap(f"{self.where(row)}: {words}{_place(row)}.", self.room, "  ")
            yield wrap(advice, self.room, _INDENT)
        yield ""

    def where(self, row: Skipped) -> str:
        parts = [f"{escape(row.user)}:"] if self.several or not row.file else []
        parts.append(escape(row.file) or "the whole account")
        if row.harness:
            parts.append(f"({escape(row.harness)})")
        if isinstance(row.server, str):
            parts.append(f'entry "{escape(row.server)}"')
        return " ".join(parts)

    def closing(self) -> Iterator[str]:
        status, cover = self.status, self.status.coverage
        read = f"{count(cover.definitions, 'definition')} in {count(cover.files, 'file')}"
        if cover.accounts != 1:
            read += f" of {count(cover.accounts, 'account')}"
        unread = f", {len(status.skipped)} not read" if status.skipped else ""
        if status.mode == "inventory":
            yield wrap(
                f"Inventory: {read}{unread}. Nothing was judged, as no policy was given.", self.room, ""
            )
        else:
            found = count(status.mcp_drift_total, "finding")
            style = "red" if status.mcp_drift_total else "yellow" if status.skipped else "green"
            line = wrap(f"{found}: {read}{unread}.", self.room, "")
            yield line.replace(found, self.paint(style, found), 1)
        if not (status.ring or status.units) and any(
            "not for this device" in str(row.detail) for row in _rows(status)
        ):
            yield wrap(_NO_RING, self.room, "")
        missing = "; ".join(_NOT_COVERED[name] for name in cover.not_covered)
        yield self.paint("dim", wrap(f"Not covered by any scan of a home: {missing}.", self.room, ""))


def _rows(status: Status) -> tuple[Finding, ...]:
    return status.inventory if isinstance(status.inventory, tuple) else status.mcp_drift


def meanings(detail: str) -> list[tuple[str, str]]:
    """Give each flag that a finding's detail names, with what it means (`halod.drift.words` writes it)."""
    found = _WITH_FLAGS.search(detail)
    named = re.findall(r"[a-z][a-z-]*", found[1]) if found else []
    return [(flag, FLAG_WORDS[flag]) for flag in named if flag in FLAG_WORDS]


def _ids(rows: Iterable[Approved]) -> str:
    return ", ".join(escape(row.id) + (f" x{row.count}" if row.count > 1 else "") for row in rows)


def _place(row: Skipped) -> str:
    if isinstance(row.errno, str) and row.errno:
        return f" ({escape(row.errno)})"
    if isinstance(row.line, int) and row.line:
        column = f", column {row.column}" if isinstance(row.column, int) and row.column else ""
        return f" (line {row.line}{column})"
    return ""


def count(number: int, noun: str) -> str:
    """Give a number with its noun, which takes an s unless it is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def grid(rows: list[tuple[str, ...]], gap: str = "  ") -> str:
    """Give rows of cells as aligned columns, each line without blanks at its end."""
    widths = [max(columns(row[at]) for row in rows) for at in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append(gap.join(cells).rstrip() + "\n")
    return "".join(lines)
