# SPDX-License-Identifier: Apache-2.0
"""Claude Code: managed-mcp.json and managed-settings.json (harnesses.md 1).

managed-mcp.json takes exclusive control: with it, no other server loads. So it is not written in mode `warn`.
The lists of managed-settings.json go by command line or URL, never by a name that anybody may take.
"""

import re
from typing import Final

from halod.policy.rendering.model import Notes, Output, Request, System, managed, pretty
from halod.policy.rendering.servers import Abilities, Server, denied, identity, servers
from halod.policy.rendering.tools import Naming, tool_rules

HARNESS: Final = "claude-code"
_DIRECTORIES: Final[dict[System, str]] = {
    "linux": "/etc/claude-code",
    "macos": "/Library/Application Support/ClaudeCode",
}
_CAN: Final = Abilities(
    auth=frozenset({"none", "oauth", "halos"}),
    expands=re.compile(r"\$\{"),
    wildcard=True,
    exact_commands=True,
    reserved=frozenset({"workspace", "claude-in-chrome", "computer-use"}),
)
_TOOLS: Final = Naming(before="mcp__", between="__", first_between=True)
"""A server's name ended at the first `__` in rules for all its tools before 2.1.299."""
_SCHEMES: Final = ("https", "http", "wss", "ws")
_SAFE: Final = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")


def render(request: Request) -> Output:
    """Render both files; in mode `warn` only what narrows the tools of servers."""
    notes = Notes(HARNESS)
    found = servers(request, _CAN, notes)
    settings: dict[str, object] = {}
    if request.blocking:
        settings["allowManagedMcpServersOnly"] = True
        settings["allowedMcpServers"] = [identity(server) for server in found]
        settings["deniedMcpServers"] = denied(request, _SCHEMES, notes)
    elif found:
        notes.lacks("servers beside those that people have (managed-mcp.json takes exclusive control)")
    # With managed-mcp.json no other server is there; without it, people may have any under its id.
    present = [server.entry for server in found] if request.blocking else request.registry.entries
    rules = tool_rules(found, present, _TOOLS, notes)
    if rules:
        settings["permissions"] = {"deny": rules}
    definitions = {"mcpServers": {server.name: _definition(server) for server in found}}
    warnings = notes.all()
    files = managed(request, _at("managed-settings.json"), pretty(settings), warnings)
    if request.blocking:
        files = managed(request, _at("managed-mcp.json"), pretty(definitions), warnings) + files
    return Output(files, warnings)


def _at(name: str) -> dict[System, str]:
    return {system: f"{directory}/{name}" for system, directory in _DIRECTORIES.items()}


def _definition(server: Server) -> dict[str, object]:
    if server.command:
        made: dict[str, object] = {
            "type": "stdio",
            "command": server.command[0],
            "args": list(server.command[1:]),
        }
        if server.env:
            made["env"] = {key: "${" + key + ":-}" for key in server.env}
        return made
    entry = server.entry
    made = {"type": "http", "url": entry.url}
    if entry.headers:
        made["headers"] = dict(entry.headers)
    if entry.auth.mode == "halos":
        made["headersHelper"] = f"halo mcp token --resource {_quote(entry.url)} --format headers"
    oauth = {}
    if entry.auth.mode == "oauth" and entry.auth.client_id:
        oauth["clientId"] = entry.auth.client_id
    if entry.auth.mode == "oauth" and entry.auth.scopes:
        oauth["scopes"] = " ".join(entry.auth.scopes)
    if oauth:
        made["oauth"] = oauth
    return made


def _quote(word: str) -> str:
    """Quote a word for the shell that runs a `headersHelper`."""
    return word if _SAFE.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"
