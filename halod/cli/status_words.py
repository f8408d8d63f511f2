# SPDX-License-Identifier: Apache-2.0
"""The words of `halod status`: lines for a person, made of a reply. Pure, but for the terminal's colours."""

import sys
from typing import TYPE_CHECKING, Final

from halod.cli.colour import Paint, escape, wanted, width, wrap

if TYPE_CHECKING:
    from halod.agent.reply import Followed, Reply, Sent, Watched
    from halod.status import Status

_INDENT: Final = 11
_WATCHERS: Final = {
    "watching": "watched",
    "starting": "watcher starts",
    "limited": "watched in part",
    "unavailable": "home not there, looked for again",
    "lost": "watcher ended, starts again",
    "off": "not watched",
}
_SANDBOX: Final = {
    "full": "full: workers read beneath the home only, without network",
    "partial": "partial: the kernel lacks Landlock or seccomp",
    "unknown": "not known: no worker of the last scan ended well",
}


def render(reply: "Reply") -> str:
    """Give the lines for a service that runs."""
    lines = _Lines()
    lines.add("service", f"halod {reply.version}, running since {_when(reply.started)}")
    _last_scan(lines, reply.status)
    if reply.policy is not None:
        lines.add("fetched", _fetched(reply.policy))
    if reply.next_cycle:
        lines.add("next scan", f"in {_span(reply.next_cycle)}, or soon after a config changes")
    lines.add("delivery", _delivery(reply.delivery))
    lines.add("sandbox", _SANDBOX[reply.sandbox] if reply.status else "not known before the first scan")
    lines.add("accounts", _accounts(reply.accounts))
    for problem in reply.problems:
        lines.problem(problem)
    for warning in reply.warnings:
        lines.problem(warning, label="warning", colour="yellow")
    if not reply.problems:
        lines.text += "\nnothing is wrong with the service\n"
    return lines.text


def render_stopped(status: "Status") -> str:
    """Give the lines for a service that does not run and has left a status."""
    lines = _Lines()
    lines.add("service", "does not run")
    _last_scan(lines, status)
    lines.problem("the service does not run; the last scan is shown")
    return lines.text


class _Lines:
    """Labelled lines, wrapped and coloured for the terminal at hand."""

    def __init__(self) -> None:
        self._paint = Paint(enabled=wanted(sys.stdout))
        self._width = width(sys.stdout)
        self.text = ""
        self._told = False

    def add(self, label: str, words: str) -> None:
        """Add one line."""
        wrapped = wrap(escape(words), self._width, " " * _INDENT)
        self.text += f"{self._paint('dim', f'{label:<{_INDENT}}')}{wrapped[_INDENT:]}\n"

    def problem(self, words: str, *, label: str = "wrong", colour: str = "red") -> None:
        """Add what is wrong, or what may be meant."""
        if not self._told:
            self.text += "\n"
            self._told = True
        wrapped = wrap(escape(words), self._width, " " * _INDENT)
        self.text += f"{self._paint(colour, label.ljust(_INDENT))}{wrapped[_INDENT:]}\n"


def _last_scan(lines: _Lines, status: "Status | None") -> None:
    if status is None:
        lines.add("last scan", "none yet")
        return
    coverage = status.coverage
    lines.add(
        "last scan",
        f"{_when(status.time)}, took {coverage.duration_ms} ms: {_count(coverage.accounts, 'account')},"
        f" {_count(coverage.files, 'file')}, {_count(coverage.definitions, 'server')}",
    )
    if status.mode == "inventory":
        lines.add("policy", "none: servers are listed and not judged")
    else:
        ring = f", ring {status.ring}" if status.ring else ""
        lines.add("policy", f"{status.digest[:19]}, {status.mode}{ring}")
        kinds = [str(row.kind) for row in status.mcp_drift]
        parts = [
            f"{kinds.count(kind)} {kind}"
            for kind in ("denied", "unapproved", "version-drift")
            if kind in kinds
        ]
        stale = sum(row.stale for row in status.mcp_drift)
        parts += [f"{stale} of them not seen lately"] if stale else []
        lines.add("findings", ", ".join(parts) or "none")
    if status.skipped:
        reasons = sorted({row.reason for row in status.skipped})
        lines.add("not read", f"{len(status.skipped)}: {', '.join(reasons)}")


def _fetched(policy: "Followed") -> str:
    asked = f"; server asked {_when(policy.asked)}" if policy.asked else ""
    trouble = f"; {policy.trouble}" if policy.trouble else ""
    if not policy.version:
        return f"no good policy yet{asked}{trouble}"
    expires = f"expires {_when(policy.expires)}"
    return f"version {policy.version} of {_when(policy.issued)}, {expires}{asked}{trouble}"


def _delivery(sent: "Sent") -> str:
    if sent.outcome == "off":
        return "off: there is no report.url"
    waiting = f"; {_count(sent.waiting, 'transition')} waiting" if sent.waiting else ""
    dropped = f"; {sent.dropped} dropped in all" if sent.dropped else ""
    if not sent.outcome:
        return f"not tried yet{waiting}"
    if sent.outcome == "accepted":
        return f"accepted {_when(sent.time)}{waiting}{dropped}"
    http = f" (HTTP {sent.http})" if sent.http else ""
    last = f"; last accepted {_when(sent.accepted)}" if sent.accepted else "; none accepted since the start"
    return f"{sent.outcome}{http} {_when(sent.time)}{last}{waiting}{dropped}"


def _accounts(accounts: tuple["Watched", ...]) -> str:
    if not accounts:
        return "none"
    return ", ".join(f"{one.user} ({_WATCHERS[one.watcher]})" for one in accounts)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _when(text: str) -> str:
    """Give a time of ours for people: `2026-11-30 09:15:02 UTC`."""
    return text.replace("T", " ").removesuffix("Z") + " UTC"


def _span(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
