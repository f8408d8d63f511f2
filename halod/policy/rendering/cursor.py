# SPDX-License-Identifier: Apache-2.0
"""Cursor: no managed file defines, allows or denies MCP servers (harnesses.md 5), so there are only warnings.

Its controls of MCP servers are in the team's dashboard, which is not on the machine.
"""

from typing import Final

from halod.policy.rendering.model import Notes, Output, Request

HARNESS: Final = "cursor"


def render(request: Request) -> Output:
    """Say what Cursor lacks of this registry."""
    notes = Notes(HARNESS)
    if request.registry.entries:
        notes.lacks("the definition of a server (no managed file of Cursor has any)")
    if any(entry.tools_allow is not None or entry.tools_deny for entry in request.registry.entries):
        notes.lacks("allowing or denying tools")
    if request.blocking:
        notes.lacks("an allowlist of servers (set it in the team's dashboard)")
        if request.registry.deny:
            notes.lacks("denying servers")
    return Output(warnings=notes.all())
