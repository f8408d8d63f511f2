# SPDX-License-Identifier: Apache-2.0
"""Gemini CLI: the system's settings.json (harnesses.md 3).

Its allowlist `mcp.allowed` compares names only: a server that anybody gives an approved name passes it.
"""

import re
from typing import Final

from halod.policy.rendering.model import Notes, Output, Request, System, managed, pretty
from halod.policy.rendering.servers import Abilities, Server, said_of, servers
from halod.policy.yamlpos import shown

HARNESS: Final = "gemini-cli"
_PATHS: Final[dict[System, str]] = {
    "linux": "/etc/gemini-cli/settings.json",
    "macos": "/Library/Application Support/GeminiCli/settings.json",
}
_CAN: Final = Abilities(
    tools_allow=True, auth=frozenset({"none", "oauth"}), expands=re.compile(r"\$(?:\{|[A-Za-z_])")
)
NOBODY: Final = "no-server-is-approved"
"""Stands in an allowlist that would be empty: Gemini CLI takes an empty one for none."""


def render(request: Request) -> Output:
    """Render the file; in mode `warn` without `mcp.allowed`."""
    notes = Notes(HARNESS)
    found = servers(request, _CAN, notes)
    for server in found:
        for tool in server.entry.tools_allow or ():
            if "(" in tool:
                notes.lacks(
                    f"allowing tool {shown(tool)} of server {server.name} (what begins it would be allowed)"
                )
    settings: dict[str, object] = {"mcpServers": {server.name: _definition(server) for server in found}}
    if request.blocking:
        settings["mcp"] = {"allowed": [server.name for server in found] or [NOBODY]}
        notes.lacks("an allowlist by command or URL (mcp.allowed compares names only)")
        for deny in request.registry.deny:
            notes.lacks(said_of(deny))
    warnings = notes.all()
    return Output(managed(request, _PATHS, pretty(settings), warnings), warnings)


def _definition(server: Server) -> dict[str, object]:
    entry = server.entry
    made: dict[str, object] = {}
    if server.command:
        made["command"] = server.command[0]
        made["args"] = list(server.command[1:])
        if server.env:
            made["env"] = {key: "${" + key + ":-}" for key in server.env}
    else:
        made["url"] = entry.url
        made["type"] = "http"
        if entry.headers:
            made["headers"] = dict(entry.headers)
        if entry.auth.mode == "oauth":
            made["oauth"] = _oauth(server)
    if entry.tools_allow is not None:
        # `name(…)` in this list allows the tool `name`, which the policy does not.
        made["includeTools"] = [tool for tool in entry.tools_allow if "(" not in tool]
    if entry.tools_deny:
        made["excludeTools"] = list(entry.tools_deny)
    return made


def _oauth(server: Server) -> dict[str, object]:
    auth = server.entry.auth
    made: dict[str, object] = {"enabled": True}
    if auth.client_id:
        made["clientId"] = auth.client_id
    if auth.scopes:
        made["scopes"] = list(auth.scopes)
    return made
