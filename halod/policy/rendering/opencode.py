# SPDX-License-Identifier: Apache-2.0
"""OpenCode: the managed opencode.json, which is merged over what a person has (harnesses.md 6).

There is no allowlist of servers. Tools are denied twice: releases before 1.1.1 know `tools` alone, and in later
ones a rule of `permission` outranks it (opencode.ai/v1/docs/permissions).
"""

import re
from typing import Final

from halod.policy.rendering.model import Notes, Output, Request, System, managed, pretty
from halod.policy.rendering.servers import Abilities, Server, said_of, servers
from halod.policy.rendering.tools import Naming, tool_rules

HARNESS: Final = "opencode"
_PATHS: Final[dict[System, str]] = {
    "linux": "/etc/opencode/opencode.json",
    "macos": "/Library/Application Support/opencode/opencode.json",
}
_TOOLS: Final = Naming(
    before="",
    between="_",
    own=("apply_patch", "doom_loop", "external_directory", "plan_enter", "plan_exit"),
    owner="OpenCode",
)
"""`own` are its tools and permissions whose names could be a server's and a tool's, too."""
_CAN: Final = Abilities(auth=frozenset({"none", "oauth"}), expands=re.compile(r"\{(?:env|file):"))


def render(request: Request) -> Output:
    """Render the file; it is the same in both modes, as nothing in it can block a server."""
    notes = Notes(HARNESS)
    found = servers(request, _CAN, notes)
    settings: dict[str, object] = {"mcp": {server.name: _definition(server) for server in found}}
    rules = tool_rules(found, request.registry.entries, _TOOLS, notes)
    if rules:
        settings["tools"] = dict.fromkeys(rules, False)
        settings["permission"] = dict.fromkeys(rules, "deny")
    if request.blocking:
        notes.lacks("an allowlist of servers")
        for deny in request.registry.deny:
            notes.lacks(said_of(deny))
    warnings = notes.all()
    return Output(managed(request, _PATHS, pretty(settings), warnings), warnings)


def _definition(server: Server) -> dict[str, object]:
    if server.command:
        made: dict[str, object] = {"type": "local", "command": list(server.command)}
        if server.env:
            made["environment"] = {key: "{env:" + key + "}" for key in server.env}
        return {**made, "enabled": True}
    entry = server.entry
    made = {"type": "remote", "url": entry.url}
    if entry.headers:
        made["headers"] = {name: "{env:" + value[2:-1] + "}" for name, value in entry.headers}
    oauth = {}
    if entry.auth.mode == "oauth" and entry.auth.client_id:
        oauth["clientId"] = entry.auth.client_id
    if entry.auth.mode == "oauth" and entry.auth.scopes:
        oauth["scope"] = " ".join(entry.auth.scopes)
    if oauth:
        made["oauth"] = oauth
    return {**made, "enabled": True}
