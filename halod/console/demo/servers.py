# SPDX-License-Identifier: Apache-2.0
"""The servers that people of the demonstration have configured, and what halod says about them.

The definitions exist here only, to make their hashes; what a device reports is the hash, as everywhere.
"""

import hashlib
from typing import Final, Literal

import msgspec

ASK: Final = "Ask in the ai-tools channel: https://wiki.acme.example/mcp"
_PROVIDED: Final = "(the managed config already provides it)"
_APPROVE: Final = "use an approved server in its place, or have it approved"

Kind = Literal["denied", "unapproved", "version-drift"]


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A definition as somebody wrote it, and how it is judged. `{user}` and `{n}` in its words differ by person."""

    name: str
    kind: Kind
    weight: float
    words: tuple[str, ...] = ()
    url: str = ""
    host: str = ""
    pin: str = ""
    """What the registry pins, for drift; the reason, for denied."""
    why: str = ""
    secret: bool = False
    units: tuple[str, ...] = ()
    """Whose it is; empty: everybody's."""
    since: int = 0
    """Day of the story on which it first appears."""


class Defined(msgspec.Struct, frozen=True, kw_only=True):
    """A server as one person has it."""

    server: Server
    sha256: str
    detail: str
    fix: str

    @property
    def transport(self) -> str:
        """`stdio` or `http`."""
        return "http" if self.server.url else "stdio"


def stdio_sha256(words: tuple[str, ...]) -> str:
    """Hash a command line (design 4): each word followed by one NUL."""
    return hashlib.sha256("".join(f"{word}\0" for word in words).encode()).hexdigest()


def url_sha256(url: str) -> str:
    """Hash a URL as it is written (design 4)."""
    return hashlib.sha256(url.encode()).hexdigest()


def define(server: Server, user: str, number: int = 0) -> Defined:
    """Give the server as `user` has it."""
    filled = {"user": user, "n": str(number)}
    if server.url:
        digest = url_sha256(server.url.format(**filled))
    else:
        digest = stdio_sha256(tuple(word.format(**filled) for word in server.words))
    what = "an http URL" if server.url else "a stdio command"
    said, fix = _words(server)
    return Defined(
        server=server,
        sha256=digest,
        detail=f"defined as {what} (definition sha256 {digest[:12]}); {said}",
        fix=f"{fix}. {ASK}",
    )


def _words(server: Server) -> tuple[str, str]:
    name = f'"{server.name}"'
    if server.kind == "version-drift":
        return f"the registry pins {server.pin}", f"change {name} to {server.pin}, or remove it {_PROVIDED}"
    if server.kind == "denied":
        what = "the host it leads to" if server.url else "what it runs"
        return (
            f"{what} is on the deny list: {server.pin}",
            f"remove {name} now: {server.pin}; tell whoever looks after security that it was there",
        )
    said = server.why or f"the registry has no such {'URL' if server.url else 'package'}"
    return said, f"remove {name}, {_APPROVE}"


_PLAYWRIGHT: Final = "npx -y @playwright/mcp@0.0.82"
_WIKI: Final = "https://mcp-wiki.internal.acme.example/mcp"
_GIT: Final = "uvx mcp-server-git@2026.8.1"
_GRAFANA: Final = (
    "docker run -i --rm docker.io/grafana/mcp-grafana@sha256:"
    "ed7c2832b5cd77b1996b3f159b54c99ad548796f6f015119a9edbd2bc97cde0b"
)
_UNKNOWN: Final = "which package it runs cannot be told from the command line"

SERVERS: Final = (
    Server(
        name="playwright",
        kind="version-drift",
        weight=15,
        words=("npx", "-y", "@playwright/mcp@latest"),
        pin=_PLAYWRIGHT,
    ),
    Server(
        name="playwright",
        kind="version-drift",
        weight=9,
        words=("npx", "-y", "@playwright/mcp@0.0.78"),
        pin=_PLAYWRIGHT,
        since=16,
    ),
    Server(
        name="browser",
        kind="version-drift",
        weight=3,
        words=("npx", "@playwright/mcp@latest", "--headless"),
        pin=_PLAYWRIGHT,
    ),
    Server(
        name="git",
        kind="version-drift",
        weight=7,
        words=("uvx", "mcp-server-git"),
        pin=_GIT,
        units=("engineering",),
    ),
    Server(
        name="wiki",
        kind="version-drift",
        weight=5,
        url="https://mcp-wiki.internal.acme.example/mcp/",
        host="mcp-wiki.internal.acme.example",
        pin=_WIKI,
    ),
    Server(
        name="grafana",
        kind="version-drift",
        weight=4,
        words=("docker", "run", "-i", "--rm", "grafana/mcp-grafana:latest"),
        pin=_GRAFANA,
        units=("engineering", "data"),
    ),
    Server(
        name="filesystem",
        kind="unapproved",
        weight=14,
        words=("npx", "-y", "@modelcontextprotocol/server-filesystem", "/Users/{user}/Documents"),
    ),
    Server(
        name="github",
        kind="unapproved",
        weight=13,
        words=("npx", "-y", "@modelcontextprotocol/server-github"),
        units=("engineering",),
    ),
    Server(
        name="memory", kind="unapproved", weight=8, words=("npx", "-y", "@modelcontextprotocol/server-memory")
    ),
    Server(
        name="sequential-thinking",
        kind="unapproved",
        weight=7,
        words=("npx", "-y", "@modelcontextprotocol/server-sequential-thinking"),
    ),
    Server(name="fetch", kind="unapproved", weight=6, words=("uvx", "mcp-server-fetch")),
    Server(name="time", kind="unapproved", weight=3, words=("uvx", "mcp-server-time")),
    Server(
        name="context",
        kind="unapproved",
        weight=5,
        url="https://mcp.context.example/mcp",
        host="mcp.context.example",
    ),
    Server(
        name="notes",
        kind="unapproved",
        weight=6,
        url="https://mcp.notes.example/v1/{user}",
        host="mcp.notes.example",
    ),
    Server(
        name="design-files",
        kind="unapproved",
        weight=5,
        url="http://127.0.0.1:3845/mcp",
        host="127.0.0.1:3845",
        units=("design",),
    ),
    Server(
        name="tickets",
        kind="unapproved",
        weight=5,
        url="https://tickets.example/mcp?workspace={user}",
        host="tickets.example",
    ),
    Server(
        name="billing-db",
        kind="unapproved",
        weight=4,
        words=(
            "npx",
            "-y",
            "@modelcontextprotocol/server-postgres",
            "postgresql://reader:{n}@billing-db.acme.example/billing",
        ),
        secret=True,
        units=("payments", "data"),
    ),
    Server(
        name="warehouse",
        kind="unapproved",
        weight=3,
        words=("uv", "run", "--directory", "/Users/{user}/src/warehouse-mcp", "server.py"),
        why=_UNKNOWN,
        units=("data",),
    ),
    Server(
        name="puppeteer",
        kind="unapproved",
        weight=3,
        words=("npx", "-y", "@modelcontextprotocol/server-puppeteer"),
    ),
    Server(
        name="shell",
        kind="unapproved",
        weight=2,
        words=("node", "/Users/{user}/tools/shell-mcp/index.js", "--token", "{n}"),
        why=_UNKNOWN,
        secret=True,
    ),
    Server(
        name="wiki",
        kind="unapproved",
        weight=2,
        words=("npx", "-y", "mcp-remote", "https://mcp-wiki.internal.acme.example/mcp"),
        why=f"a bridge that the registry does not approve, leading to the approved wiki ({_WIKI})",
    ),
    Server(
        name="postmark",
        kind="denied",
        weight=4,
        words=("npx", "-y", "postmark-mcp"),
        pin="backdoored",
    ),
    Server(
        name="free-models",
        kind="denied",
        weight=4,
        url="https://mcp.evil.example/sse?k={n}",
        host="mcp.evil.example",
        pin="collects what it is sent",
        secret=True,
        since=9,
    ),
)

APPROVED: Final = (
    ("wiki", 8.0, ()),
    ("playwright", 3.0, ()),
    ("git", 4.0, ("engineering",)),
    ("github", 4.0, ("engineering",)),
    ("grafana", 2.0, ("engineering", "data")),
    ("house-tool", 2.0, ()),
    ("calendar", 2.0, ()),
)
"""Entries that people use, how often, and in which units."""

OLD_ENTRY: Final = "jira-bridge"
"""Was in the policy before this one; a few devices still use it."""
