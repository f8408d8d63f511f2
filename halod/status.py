# SPDX-License-Identifier: Apache-2.0
"""The wire model: the only types that leave the machine (design 8), and the redaction of names.

This module imports nothing of the package. What is not here does not leave: no path below a project, no
command line, no argument, no environment, no URL beyond its host.
"""

from typing import Literal

import msgspec

Kind = Literal["denied", "unapproved", "version-drift"]
Scope = Literal["user", "project", "plugin", "agent"]
Transport = Literal["stdio", "http"]
Reason = Literal[
    "escapes-home",
    "symlink",
    "changed",
    "not-regular",
    "wrong-owner",
    "hard-linked",
    "too-large",
    "unreadable",
    "denied-by-system",
    "error",
    "malformed",
    "malformed-entry",
    "opaque",
    "too-many-entries",
    "home-unavailable",
    "no-account",
    "worker-crashed",
    "worker-timeout",
    "worker-invalid",
]
NotCovered = Literal[
    "project-files", "cloud-connectors", "environment-overrides", "plugin-sources"
]
Event = Literal["opened", "changed", "resolved"]


class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """Base of the wire types: camelCase names."""


class Finding(_Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A definition that differs from the registry, or (without `kind`, `detail`, `fix`) an inventory row."""

    harness: str
    file: str
    server: str
    kind: Kind | msgspec.UnsetType = msgspec.UNSET
    transport: Transport
    host: str | msgspec.UnsetType = msgspec.UNSET
    definition_sha256: str
    detail: str | msgspec.UnsetType = msgspec.UNSET
    fix: str | msgspec.UnsetType = msgspec.UNSET
    user: str
    scope: Scope
    enabled: bool
    secret_in_definition: bool = False
    projects: int | msgspec.UnsetType = msgspec.UNSET
    stale: bool = False


class Approved(_Wire, frozen=True, kw_only=True):
    """How many definitions of one harness and account an entry approves."""

    harness: str
    id: str
    user: str
    count: int


class Skipped(_Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A file, entry or account that could not be read, and why. `errno` is a name such as ELOOP."""

    user: str
    harness: str = ""
    file: str = ""
    reason: Reason
    server: str | msgspec.UnsetType = msgspec.UNSET
    line: int | msgspec.UnsetType = msgspec.UNSET
    column: int | msgspec.UnsetType = msgspec.UNSET
    errno: str | msgspec.UnsetType = msgspec.UNSET


class Coverage(_Wire, frozen=True, kw_only=True):
    """What was looked at. `duration_ms` is wall time; `not_covered` names what no scan of a home can see."""

    accounts: int
    files: int
    definitions: int
    duration_ms: int
    not_covered: tuple[NotCovered, ...] = (
        "project-files",
        "cloud-connectors",
        "environment-overrides",
    )


class Transition(_Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A finding that opened, changed (`was` is the old hash) or was resolved."""

    id: str
    time: str
    event: Event
    finding: Finding
    was: str | msgspec.UnsetType = msgspec.UNSET


class Status(_Wire, frozen=True, kw_only=True):
    """The status document: one cycle, one machine (design 8)."""

    schema_version: int = 1
    time: str
    device: str
    hostname: str
    os: str
    halod: str
    user: str
    ring: str
    units: tuple[str, ...]
    digest: str
    mode: Literal["allowlist", "warn", "inventory"]
    mcp_drift: tuple[Finding, ...]
    mcp_approved: tuple[Approved, ...]
    inventory: tuple[Finding, ...] | msgspec.UnsetType = msgspec.UNSET
    skipped: tuple[Skipped, ...]
    transitions: tuple[Transition, ...] | msgspec.UnsetType = msgspec.UNSET
    coverage: Coverage
    mcp_drift_total: int
    truncated: bool = False
    last_error: str = ""
    error_code: str = ""
