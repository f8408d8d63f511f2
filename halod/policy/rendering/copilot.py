# SPDX-License-Identifier: Apache-2.0
"""GitHub Copilot CLI and VS Code: one managed-settings.json binds both (harnesses.md 4 and 8).

It says which servers may run and defines none: people, or their repositories, do that. Without a policy to
enforce (mode `warn`) the file is an empty object, which takes back an earlier one.
"""

from typing import Final

from halod.policy.rendering.model import Notes, Output, Request, System, managed, pretty
from halod.policy.rendering.servers import Abilities, denied, identity, servers

HARNESSES: Final = ("copilot-cli", "vscode")
_PATHS: Final[dict[System, str]] = {
    "linux": "/etc/github-copilot/managed-settings.json",
    "macos": "/Library/Application Support/GitHubCopilot/managed-settings.json",
}
_CAN: Final = Abilities(headers=False, tools_deny=False, wildcard=True, exact_commands=True)
_SCHEMES: Final = ("https", "http")


def render(request: Request) -> Output:
    """Render the file that both read, with the warnings of both."""
    settings: dict[str, object] = {}
    warnings: list[str] = []
    for harness in HARNESSES:
        notes = Notes(harness)
        found = servers(request, _CAN, notes)
        if found:
            notes.lacks("the definition of a server (managed-settings.json only allows and denies)")
        if request.blocking:
            settings["allowedMcpServers"] = [identity(server) for server in found]
            settings["deniedMcpServers"] = denied(request, _SCHEMES, notes)
        warnings += notes.all()
    return Output(managed(request, _PATHS, pretty(settings), tuple(warnings)), tuple(warnings))
