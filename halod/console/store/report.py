# SPDX-License-Identifier: Apache-2.0
"""What a device said, cleaned: the only form in which a report reaches the store.

Every string here has passed the rules of `halod.status` and the limits below; `ingest.wire` makes these.
"""

import msgspec


class Finding(msgspec.Struct, frozen=True):  # by place, too: many are made from rows
    """One finding as it was reported. Fields as the columns of `findings`."""

    username: str
    harness: str
    file: str
    scope: str
    server: str
    kind: str
    transport: str
    host: str
    sha256: str
    detail: str
    fix: str
    projects: int
    enabled: bool
    secret: bool
    stale: bool

    @property
    def name(self) -> tuple[str, str, str, str, str]:
        """What identifies it within its device, but for the n-th of that name (design 8)."""
        return (self.username, self.harness, self.file, self.scope, self.server)

    @property
    def thing(self) -> tuple[str, str, str]:
        """What it is about, over the fleet: kind, server and the host or hash."""
        return (self.kind, self.server, (self.host if self.transport == "http" else "") or self.sha256)


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be read, and why."""

    username: str
    harness: str
    file: str
    reason: str
    server: str
    errno: str
    line: int
    column: int


class Approved(msgspec.Struct, frozen=True, kw_only=True):
    """How many definitions an entry of the registry approves."""

    harness: str
    username: str
    entry: str
    count: int

    @property
    def name(self) -> tuple[str, str, str]:
        """What identifies it within its device, and what it is sorted by: the order of a report says nothing."""
        return (self.harness, self.username, self.entry)


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, by its id."""

    tid: str
    claimed_time: str
    event: str
    was: str
    finding: Finding


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One status of one device."""

    device: str
    hostname: str
    os: str
    halod: str
    username: str
    ring: str
    units: tuple[str, ...]
    """Sorted, each once."""
    digest: str
    mode: str
    claimed_time: str
    content: str
    """Hex sha256 of what does not change by itself: equal to the last one's means that nothing is new."""
    findings: tuple[Finding, ...]
    approved: tuple[Approved, ...]
    skipped: tuple[Skipped, ...]
    transitions: tuple[Transition, ...]
    accounts: int
    files: int
    definitions: int
    not_covered: tuple[str, ...]
    drift_total: int
    truncated: bool
    last_error: str
    error_code: str
    looked: bool
    """Whether it says what it looked at: an old Halos report does not."""

    @property
    def partly(self) -> bool:
        """Whether something could not be read, or nobody was looked at."""
        return bool(self.skipped or self.error_code or (self.looked and not self.accounts))
