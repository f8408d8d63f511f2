# SPDX-License-Identifier: Apache-2.0
"""Registry entries as servers that a harness can start, and what their harness has to leave out.

Invariants:

1. The command line of a package's entry makes its launcher run that package with those arguments and nothing else, as
   `launch` reads it and so as `drift` judges it; an entry for which there is no such command line is not rendered.
2. A text that the harness would expand is not rendered: it would start something else than what is pinned.
3. An entry of which only a hash is known has no command line and is not rendered.
"""

import re
from collections.abc import Iterator

import msgspec

from halod.launch import identify
from halod.launch.urls import parse_url
from halod.policy.model import Deny, Entry, Package
from halod.policy.rendering.model import Notes, Request
from halod.policy.wildcards import fits

_OURS = frozenset({"from-flag", "image-command", "package-flag"})
"""What a command line of ours raises by naming the program or an image's arguments: `bin` and `args` answer it."""
_PORTS = {"https": "443", "http": "80", "wss": "443", "ws": "80"}


class Server(msgspec.Struct, frozen=True):
    """An entry with the command line that starts it; `command` is empty for a remote server."""

    entry: Entry
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name under which a harness lists the server: the entry's id."""
        return self.entry.id

    @property
    def env(self) -> tuple[str, ...]:
        """The variables that the server may be handed, in order."""
        return tuple(sorted(self.entry.env or ())) if self.command else ()


class Abilities(msgspec.Struct, frozen=True):
    """What a harness's managed files can say about a server.

    `expands` finds a text that the harness would not take literally. `wildcard`: its list of allowed URLs takes
    `*` for anything. `reserved` are names that it keeps for itself.
    """

    headers: bool = True
    tools_allow: bool = False
    tools_deny: bool = True
    auth: frozenset[str] = frozenset({"none"})
    expands: re.Pattern[str] | None = None
    wildcard: bool = False
    exact_commands: bool = False
    reserved: frozenset[str] = frozenset()


def servers(request: Request, can: Abilities, notes: Notes) -> list[Server]:
    """Give the servers that the harness can have, and note what of the others and of them it cannot."""
    found = []
    for entry in request.registry.entries:
        server = Server(entry, command_line(entry))
        fault = _fault(server, can)
        if fault:
            notes.lacks(f"server {entry.id} ({fault})")
            continue
        _left_out(server, can, notes, blocking=request.blocking)
        found.append(server)
    return found


def command_line(entry: Entry) -> tuple[str, ...]:
    """Give the command line that starts an entry's server; empty for a remote one and for a bare hash."""
    if entry.package is None:
        return entry.command
    arguments = _arguments(entry)
    # dnx reads options behind the package too, until `--` (launchers.md 7).
    between = ("--",) if arguments and entry.package.type == "nuget" else ()
    return (*_launcher(entry.package, entry.env or frozenset()), *between, *arguments)


def _arguments(entry: Entry) -> tuple[str, ...]:
    return entry.args if isinstance(entry.args, tuple) else ()


def _starts(entry: Entry, package: Package) -> bool:
    """Tell whether the launcher takes the command line for the package and the arguments, and nothing else.

    It does not for names that it knows otherwise (`uvx python`, `npx a.tgz`) and words that it takes for itself.
    """
    words = command_line(entry)
    launch = identify(words[0], words[1:])
    answered = _OURS | entry.tolerate | ({flag for flag, _key in launch.unsafe_env} - {*launch.line_flags})
    asked = (
        launch.digest == f"sha256:{package.sha256}" if package.sha256 else launch.version == package.version
    )
    return (
        (launch.ecosystem, launch.identifier) == (package.type, package.identifier)
        and asked
        and launch.args == _arguments(entry)
        and answered.issuperset(launch.unsafe_flags)
    )


def _launcher(package: Package, env: frozenset[str]) -> tuple[str, ...]:
    name, version = package.identifier, package.version_text or package.version
    match package.type:
        case "npm":
            pinned = f"{name}@{version}"
            return ("npx", "-y", "-p", pinned, package.bin) if package.bin else ("npx", "-y", pinned)
        case "pypi":
            if package.bin:
                return ("uvx", "--from", f"{name}=={version}", package.bin)
            return ("uvx", f"{name}@{version}")
        case "nuget":
            return ("dnx", f"{name}@{version}", "--yes")
        case "oci":
            handed = tuple(word for key in sorted(env) for word in ("-e", key))
            return ("docker", "run", "-i", "--rm", *handed, f"{name}@sha256:{package.sha256}")


def _fault(server: Server, can: Abilities) -> str:
    """Say why a server cannot be rendered at all, or nothing."""
    entry = server.entry
    if not (server.command or entry.url):
        return "approved by its hash, which does not tell its command line"
    if entry.id in can.reserved:
        return "the name is reserved"
    if entry.package is not None and not _starts(entry, entry.package):
        return "its launcher would not take the command line for this package with these arguments"
    texts = (*server.command, entry.url)
    if can.expands is not None and any(can.expands.search(text) for text in texts):
        return "a text that would be taken for a variable"
    if can.wildcard and "*" in entry.url:
        return "a URL with *, which would allow others too"
    return ""


def _left_out(server: Server, can: Abilities, notes: Notes, *, blocking: bool) -> None:
    """Note what of a server that is rendered is not in the files."""
    entry = server.entry
    name = f"of server {entry.id}"
    if blocking and can.exact_commands and entry.package is not None:
        notes.lacks(f"another command line {name} than the rendered one")
    if entry.expires is not None:
        notes.lacks(f"the last day {name} ({entry.expires.isoformat()})")
    if entry.headers and not can.headers:
        notes.lacks(f"a header {name}")
    if entry.auth.mode not in can.auth:
        notes.lacks(f"auth mode {entry.auth.mode} {name}")
    if entry.tools_allow and not can.tools_allow:
        notes.lacks(f"tools.allow {name}")
    if not can.tools_deny and (entry.tools_deny or entry.tools_allow == ()):
        notes.lacks(f"tools.deny {name}" if entry.tools_deny else f"an empty tools.allow {name}")


def identity(server: Server) -> dict[str, object]:
    """Give the item of Claude Code's and Copilot's lists that allows a server: never by its name."""
    return {"serverCommand": list(server.command)} if server.command else {"serverUrl": server.entry.url}


def denied(request: Request, schemes: tuple[str, ...], notes: Notes) -> list[dict[str, object]]:
    """Give the items that deny hosts and URLs (harnesses.md 1), and note the denials they cannot express."""
    items: list[dict[str, object]] = []
    for deny in request.registry.deny:
        if deny.host:
            items.extend({"serverUrl": pattern} for pattern in _on_host(deny.host, schemes))
        elif deny.url:
            items.append({"serverUrl": deny.url})
            if "*" in deny.url:
                notes.lacks("denying a URL with * alone (the * also denies URLs with anything in its place)")
                for entry in _matched(deny.url, request.registry.entries):
                    notes.lacks(f"denying a URL with * alone (the * also denies server {entry.id})")
        else:
            notes.lacks(said_of(deny))
    return items


def _matched(pattern: str, entries: tuple[Entry, ...]) -> Iterator[Entry]:
    """Give the entries whose URL fits a pattern in which `*` stands for anything."""
    return (entry for entry in entries if entry.url and fits(pattern, entry.canonical_url))


def said_of(deny: Deny) -> str:
    """Name what a deny item denies, for a warning."""
    if deny.package is not None:
        version = f" {deny.package.version}" if deny.package.version else ""
        return f"the denial of {deny.package.type} package {deny.package.identifier}{version}"
    if deny.host:
        return f"the denial of host {deny.host}"
    return "the denial of a URL" if deny.url else f"the denial of definition {deny.definition_sha256[:12]}"


def _on_host(host: str, schemes: tuple[str, ...]) -> Iterator[str]:
    """Give patterns for every URL on a host: on any port, or on the one that is named."""
    parts = parse_url(f"https://{host}/")
    name = parts.host if parts is not None else host
    port = host.rpartition(":")[2] if host != name and not host.endswith("]") else ""
    for scheme in schemes:
        if not port or port == _PORTS[scheme]:
            yield f"{scheme}://{name}/*"
        yield f"{scheme}://{name}:{port or '*'}/*"
