# SPDX-License-Identifier: Apache-2.0
"""What a batch of reports brought that somebody may want to be told: made by `apply`, read by `hooks.events`.

It stands here because `ingest` and `hooks` do not know each other: whoever starts the writer hands it a function
that takes a News inside the writer's transaction.
"""

import msgspec


class NewFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that was not there before: a row that was inserted, with its thing and its device.

    A finding that changed its hash is new too, since what runs is another thing. A stale one is not.
    """

    thing: int
    kind: str
    server: str
    transport: str
    host: str
    sha256: str
    fix: str
    harness: str
    device: str
    hostname: str
    username: str


class News(msgspec.Struct, frozen=True, kw_only=True):
    """The news of one batch; empty for most."""

    new_findings: tuple[NewFinding, ...] = ()
    new_definitions: tuple[str, ...] = ()
    """sha256 that no device of this fleet has reported before, each once."""
    coverage_lost: tuple[str, ...] = ()
    """Devices of which all could be read before, and not any more (`partly` became true)."""

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.new_findings or self.new_definitions or self.coverage_lost)
