# SPDX-License-Identifier: Apache-2.0
"""What rendering works with: one scoped registry in, files with their owner and mode out.

Invariants:

1. Equal requests give equal bytes: nothing here knows a clock, a host, a directory or an order of sets.
2. What a harness cannot express is never dropped in silence: it is a warning of the file that lacks it.
"""

from typing import Literal

import msgspec

from halod.policy.model import Registry

System = Literal["linux", "macos"]
SYSTEMS: tuple[System, ...] = ("linux", "macos")


class Rendered(msgspec.Struct, frozen=True):
    """One file as a machine should have it.

    `path` is absolute, `owner` an account's name, `mode` octal digits as chmod takes them (`0644`).
    """

    path: str
    owner: str
    mode: str
    content: bytes
    warnings: tuple[str, ...] = ()


class Output(msgspec.Struct, frozen=True):
    """What one harness gets. `warnings` has all of them, also those that no file could carry."""

    files: tuple[Rendered, ...] = ()
    warnings: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True):
    """What is rendered: the registry of one ring and its units, for some systems.

    The registry is scoped already, and holds no entry that `deny` takes back.
    """

    registry: Registry
    systems: tuple[System, ...] = SYSTEMS

    @property
    def blocking(self) -> bool:
        """Whether what is not approved is to be blocked (`mcp.mode`)."""
        return self.registry.mode == "allowlist"


class Notes:
    """Collects what one harness cannot express, once each, in the order of the policy."""

    def __init__(self, harness: str) -> None:
        self.harness = harness
        self._found: dict[str, None] = {}

    def lacks(self, what: str) -> None:
        """Record one thing of the policy that is not in the rendered files."""
        self._found[f"{self.harness}: {what} is not supported and was not rendered"] = None

    def all(self) -> tuple[str, ...]:
        """Give the warnings."""
        return tuple(self._found)


def managed(
    request: Request, paths: dict[System, str], content: bytes, warnings: tuple[str, ...]
) -> tuple[Rendered, ...]:
    """Give the file at each system's path, once where they share one: root's, readable for everyone."""
    wanted = dict.fromkeys(paths[system] for system in request.systems)
    return tuple(Rendered(path, "root", "0644", content, warnings) for path in wanted)


def pretty(value: object) -> bytes:
    """Give JSON as a person reads it, with keys in the order they were put in."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
