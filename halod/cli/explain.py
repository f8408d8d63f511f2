# SPDX-License-Identifier: Apache-2.0
"""`halod explain`: what one definition would launch, and how it is judged and why (design 5).

For a person on their own machine: the only command that shows what a definition holds, because the person
typed it. Nothing is read but the policy, nothing is started, nothing is sent.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from halod.cli import registry as scoped
from halod.cli.colour import Paint, escape, wanted, width, wrap
from halod.cli.table import meanings
from halod.definition import Definition, FileRef
from halod.drift import Verdict, judge, words
from halod.drift.flags import FLAG_WORDS, UNKNOWN_FLAG
from halod.errors import UsageError
from halod.launch import identify
from halod.launch.model import INFORMATIONAL, Launch, Nested
from halod.launch.urls import canonical_url, parse_url, whatwg_host
from halod.policy.model import Registry
from halod.secrets_hint import secret_in_definition

NAME: Final = "explain"
HELP: Final = "show what one definition would launch and how it is judged"
DESCRIPTION: Final = """\
Show what one definition would launch, and how it is judged against a policy. Nothing is started.

  halod explain -- npx -y @playwright/mcp@latest
  halod explain --policy halos.yaml --ring ring1-canary -- uvx mcp-server-git@2026.8.1
  halod explain https://mcp.example.com/mcp

Exit codes: 0 approved, or no policy given; 1 not approved; 2 wrong usage or policy."""

_OUTCOMES: Final = {
    "identified": "the package and its exact version are known",
    "identified-unpinned": "the package is known; its version floats, so it can never equal a pin",
    "identified-unsafe": "the package is known, but something else here can change what runs",
    "launcher-version-dependent": "releases of the launcher read this differently",
    "delegate": "a bridge or carrier: what it leads to counts as well",
    "unidentifiable": "which package it runs cannot be told",
}
_URL: Final = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]+://|(?:https?|wss?):)", re.IGNORECASE)
_LABEL: Final = 12


class _LaunchView(msgspec.Struct, frozen=True):
    ecosystem: str | None
    identifier: str | None
    version: str | None
    digest: str | None
    outcome: str
    flags: tuple[str, ...]
    nested: list[str] | dict[str, str] | None


class _View(msgspec.Struct, frozen=True, rename="camel"):
    """The json form (design 5): what does not apply is null."""

    transport: str
    definition_sha256: str
    host: str | None
    launch: _LaunchView | None
    canonical_url: str | None
    kind: str | None = None
    id: str | None = None
    detail: str | None = None
    fix: str | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "words", nargs="+", metavar="-- CMD ARG... | URL", help="the command line after --, or one URL"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="an environment variable of the entry"
    )
    parser.add_argument("--cwd", default="", metavar="DIR", help="the working directory of the entry")
    parser.add_argument("--policy", metavar="FILE", help="the halos.yaml to judge with")
    parser.add_argument("--ring", default="", metavar="R", help="the device's ring")
    parser.add_argument("--unit", action="append", default=[], metavar="U", help="a unit of the device")
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="what to print (default: table)"
    )


def run(args: argparse.Namespace) -> int:
    """Explain one definition. Exit code 0: approved or no policy; 1: not approved.

    Raises:
        UsageError: a wrong argument or policy.
    """
    definition = _definition(args)
    registry = _registry(args)
    launch = None
    if definition.transport == "stdio":
        launch = identify(definition.command, definition.args, definition.env, definition.cwd)
    verdict = judge(definition, registry) if registry is not None else None
    view = _view(definition, launch, verdict, registry)
    if args.format == "json":
        sys.stdout.write(msgspec.json.encode(view).decode() + "\n")
    else:
        _print(view, launch, secret=secret_in_definition(definition))
    return 0 if verdict is None or verdict.kind == "approved" else 1


def _definition(args: argparse.Namespace) -> Definition:
    given = [_text(word) for word in args.words]
    env = [_assignment(_text(word)) for word in args.env]
    is_url = len(given) == 1 and _URL.match(given[0]) is not None
    if is_url and (env or args.cwd):
        raise UsageError("--env and --cwd apply to a command, not to a URL")
    if not is_url and not given[0]:
        raise UsageError("the command is empty")
    if any("\0" in text for text in given):
        raise UsageError("the definition holds a NUL")
    return Definition(
        harness="",
        file=FileRef(0),
        name="",
        scope="user",
        transport="http" if is_url else "stdio",
        command="" if is_url else given[0],
        args=() if is_url else given[1:],
        url=given[0] if is_url else "",
        env=env,
        cwd=_text(args.cwd),
    )


def _text(word: str) -> str:
    """Read an argument as a config file is read: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(word).decode("utf-8", "replace")


def _assignment(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not key or not equals:
        raise UsageError("--env expects KEY=VALUE")
    return key, value


def _registry(args: argparse.Namespace) -> Registry | None:
    if args.policy is None:
        if args.ring or args.unit:
            raise UsageError("--ring and --unit need --policy")
        return None
    return scoped.registry(args.policy, args.ring, args.unit)[1]


def _view(
    definition: Definition, launch: Launch | None, verdict: Verdict | None, registry: Registry | None
) -> _View:
    parts = parse_url(definition.url) if launch is None else None
    plain = _View(
        transport=definition.transport,
        definition_sha256=definition.sha256,
        host=whatwg_host(definition.url) if launch is None else None,
        launch=_launch_view(launch) if launch is not None else None,
        canonical_url=canonical_url(parts) if parts is not None else None,
    )
    if verdict is None or registry is None:
        return plain
    detail, fix = words(
        verdict,
        server="",
        transport=definition.transport,
        sha256=definition.sha256,
        registry=registry,
    )
    named = verdict.entry if verdict.kind in {"approved", "version-drift"} else ""
    return msgspec.structs.replace(
        plain, kind=verdict.kind, id=named or None, detail=detail or None, fix=fix or None
    )


def _launch_view(launch: Launch) -> _LaunchView:
    return _LaunchView(
        launch.ecosystem,
        launch.identifier,
        launch.version,
        launch.digest,
        launch.outcome,
        launch.flags,
        _nested_view(launch.nested),
    )


def _nested_view(nested: Nested | None) -> list[str] | dict[str, str] | None:
    if nested is None:
        return None
    if nested.argv is not None:
        return list(nested.argv)
    return {"url": nested.url} if nested.url is not None else {"shell": nested.shell or ""}


def _print(view: _View, launch: Launch | None, *, secret: bool) -> None:
    paint = Paint(enabled=wanted(sys.stdout))
    room = width(sys.stdout)
    for label, text, style in _lines(view, launch, secret=secret):
        body = wrap(escape(text), room, " " * _LABEL)[_LABEL:]
        head = paint("dim", f"{label:<{_LABEL}}")
        sys.stdout.write(head + (paint(style, body) if style else body) + "\n")


def _lines(view: _View, launch: Launch | None, *, secret: bool) -> Iterator[tuple[str, str, str]]:
    """The page: label, text and style of each line."""
    yield "defined as", "a stdio command" if launch is not None else "an http URL", ""
    yield "sha256", view.definition_sha256, ""
    if launch is None:
        yield "host", view.host or "cannot be told", ""
        yield "compared as", view.canonical_url or "nothing: this URL has no canonical form", ""
    else:
        yield from _launch_lines(launch)
    if secret:
        yield "note", "it visibly carries a credential; put it in a variable instead", "yellow"
    if view.kind is None:
        yield "verdict", "none: no policy was given (--policy)", ""
    elif view.kind == "approved":
        yield "verdict", f"approved as {view.id}", "green"
    else:
        yield "verdict", view.kind, "yellow" if view.kind == "version-drift" else "red"
        yield "reason", view.detail or "", ""
        for flag, meaning in meanings(view.detail or ""):
            if launch is None or flag not in launch.flags:
                yield "", f"{flag}: {meaning}", ""
        yield "fix", view.fix or "", "green"


def _launch_lines(launch: Launch) -> Iterator[tuple[str, str, str]]:
    yield "launches", _package(launch), ""
    yield "outcome", f"{launch.outcome}: {_OUTCOMES[launch.outcome]}", ""
    for flag in launch.flags:
        harmless = flag in INFORMATIONAL
        why = FLAG_WORDS.get(flag, UNKNOWN_FLAG)
        yield "for notice" if harmless else "unsafe", f"{flag}: {why}", "" if harmless else "yellow"
    nested = launch.nested
    if nested is not None:
        yield "carries", nested.url or nested.shell or " ".join(nested.argv or ()), ""


def _package(launch: Launch) -> str:
    if launch.identifier is None:
        return "no package that can be told"
    name = f"{launch.ecosystem} {launch.identifier}" if launch.ecosystem else launch.identifier
    if launch.digest is not None:
        return f"{name}, image {launch.digest}"
    if launch.version is not None:
        return f"{name}, version {launch.version}"
    return f"{name}, no exact version" + (f" (asks for {launch.requested})" if launch.requested else "")
