# SPDX-License-Identifier: Apache-2.0
"""Codex: managed_config.toml has the servers, requirements.toml the identities it may start (harnesses.md 2).

The matchers `args` and `url` of newer sources are never rendered: current releases refuse to load them.
"""

from typing import Final

from halod.policy.rendering import toml
from halod.policy.rendering.model import Notes, Output, Request, System, managed
from halod.policy.rendering.servers import Abilities, Server, said_of, servers

HARNESS: Final = "codex"
_MANAGED: Final[dict[System, str]] = {
    "linux": "/etc/codex/managed_config.toml",
    "macos": "/etc/codex/managed_config.toml",
}
_REQUIREMENTS: Final[dict[System, str]] = {
    "linux": "/etc/codex/requirements.toml",
    "macos": "/etc/codex/requirements.toml",
}
_CAN: Final = Abilities(tools_allow=True, auth=frozenset({"none", "oauth"}))


def render(request: Request) -> Output:
    """Render both files; in mode `warn` requirements.toml requires nothing."""
    notes = Notes(HARNESS)
    found = servers(request, _CAN, notes)
    if request.blocking:
        for program, packaged in _programs(found).items():
            admits = "every package" if packaged else "every argument"
            notes.lacks(
                f'comparing the arguments of "{program}"'
                f" (an identity is the command alone, so {program} admits {admits})"
            )
        for deny in request.registry.deny:
            notes.lacks(said_of(deny))
    warnings = notes.all()
    config = {server.name: _definition(server) for server in found}
    required: dict[str, dict[str, toml.Value]] = {
        server.name: {
            "identity": {"command": server.command[0]} if server.command else {"url": server.entry.url}
        }
        for server in found
    }
    requirements = toml.tables("mcp_servers", required) if request.blocking else b""
    return Output(
        managed(request, _MANAGED, toml.tables("mcp_servers", config) if config else b"", warnings)
        + managed(request, _REQUIREMENTS, requirements, warnings),
        warnings,
    )


def _definition(server: Server) -> dict[str, toml.Value]:
    entry = server.entry
    made: dict[str, toml.Value] = {}
    if server.command:
        made["command"] = server.command[0]
        made["args"] = list(server.command[1:])
        if server.env:
            made["env_vars"] = list(server.env)
    else:
        made["url"] = entry.url
        if entry.headers:
            made["env_http_headers"] = {name: value[2:-1] for name, value in entry.headers}
        if entry.auth.mode == "oauth" and entry.auth.client_id:
            made["oauth"] = {"client_id": entry.auth.client_id}
        if entry.auth.mode == "oauth" and entry.auth.scopes:
            made["scopes"] = list(entry.auth.scopes)
    if entry.tools_allow is not None:
        made["enabled_tools"] = list(entry.tools_allow)
    if entry.tools_deny:
        made["disabled_tools"] = list(entry.tools_deny)
    return made


def _programs(found: list[Server]) -> dict[str, bool]:
    """Give the commands that identities name, and whether each fetches packages."""
    programs: dict[str, bool] = {}
    for server in found:
        if server.command:
            packaged = programs.get(server.command[0], False) or server.entry.package is not None
            programs[server.command[0]] = packaged
    return programs
