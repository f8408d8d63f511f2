# SPDX-License-Identifier: Apache-2.0
"""`halo mcp registry import`: one server of a registry as an entry of halos.yaml.

The entry is alone on stdout. What it does not carry and what nobody has verified is said on stderr, one line each; all
text of the document is escaped first. Nothing is written, and nothing but the one document is fetched.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from halod.cli.colour import escape
from halod.drift.flags import FLAG_WORDS, UNKNOWN_FLAG
from halod.errors import UsageError
from halod.policy.importing import arguments, choose, entry
from halod.policy.importing.document import read
from halod.policy.importing.model import Candidate, ImportRefused, Server, Variable, Wanted
from halod.policy.importing.source import OFFICIAL, Source, base_url, source, version_url, wanted
from halod.policy.importing.strictjson import MAX_BYTES

DESCRIPTION: Final = """\
Turn one server of an MCP registry into an entry of halos.yaml, and print it, ready to paste below "servers:".
The file is not touched. What the entry does not carry, and what was not verified, is said on stderr."""
EXAMPLES: Final = """\
examples:
  halo mcp registry import io.github.upstash/context7          the latest version
  halo mcp registry import io.github.upstash/context7@1.0.0    this version
  halo mcp registry import --package npm NAME                  the npm package, where there are several
  halo mcp registry import --package oci --sha256 HEX NAME     an image; its tag alone is no pin
  halo mcp registry import --remote NAME                       the endpoint, instead of a package
  halo mcp registry import --registry-url https://mcp.acme.example NAME
  halo mcp registry import --format json ./server.json         a document that is here (- is stdin)
  halo mcp registry import --server NAME@VERSION https://mcp.acme.example/servers.json
                                                               one of a list
  halo mcp registry import --allow-deprecated NAME

Exit codes: 0 the entry is printed, 2 it is not. docs/import.md says what is refused and why."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "source", metavar="NAME[@VERSION] | URL | FILE", nargs="?", help="the server, or its document"
    )
    parser.add_argument(
        "--package",
        metavar="TYPE[=IDENTIFIER[@VERSION]]|NUMBER",
        default="",
        help="the package to pin; where there are several they are listed with the words that choose each",
    )
    parser.add_argument(
        "--remote",
        metavar="NUMBER|URL",
        nargs="?",
        const="",
        help="pin a streamable-http endpoint instead; which one, where there are several or its URL has variables",
    )
    parser.add_argument("--sha256", metavar="HEX", default="", help="the digest of the image")
    parser.add_argument(
        "--server", metavar="NAME[@VERSION]", default="", help="the server, in a list of several"
    )
    parser.add_argument("--registry-url", metavar="URL", default=OFFICIAL, help=f"the registry ({OFFICIAL})")
    parser.add_argument("--format", choices=("yaml", "json"), default="yaml", help="how to print it (yaml)")
    parser.add_argument("--allow-deprecated", action="store_true", help="import a version that is deprecated")


def run(args: argparse.Namespace) -> int:
    """Print the entry; give 0.

    Raises:
        UsageError: the arguments contradict each other, or there is nothing to import.
    """
    text, which = _arguments(args)
    try:
        return _import(args, text, which)
    except ImportRefused as refused:
        for row in refused.rows:
            _say(row)
        # The words of a document come with it: the error's own line is cleaned, not escaped.
        raise UsageError(escape(refused.message), advice=escape(refused.advice)) from None


def _arguments(args: argparse.Namespace) -> tuple[str, str | None]:
    """Give the source and the endpoint: the word after `--remote` is the source when there is no other."""
    text, which = args.source, args.remote
    if text is None and which:
        text, which = which, ""
    if not text:
        raise UsageError("name a server, a URL or a file", advice="see halo mcp registry import --help")
    if which is not None and (args.package or args.sha256):
        raise UsageError("--remote goes with neither --package nor --sha256")
    return text, which


def _import(args: argparse.Namespace, text: str, which: str | None) -> int:
    where = source(text)
    base = base_url(args.registry_url)
    asked = where.wanted
    if args.server:
        if asked is not None:
            raise ImportRefused("--server is for a URL or a file")
        asked = wanted(args.server)
        if asked is None:
            raise ImportRefused("--server expects NAME or NAME@VERSION")
    server = read(_document(where, base), asked)
    said = [*server.notes]
    said += choose.admit(server, by_name=where.kind == "name", allow_deprecated=args.allow_deprecated)
    if which is None:
        pin = choose.choose_package(server, args.package, args.sha256)
    else:
        pin = choose.choose_remote(server, which)
    origin = _origin(server, where, base)
    said = [*_about(server, where, asked), *said, *pin.notes, *_not_carried(server, pin)]
    for line in (f"imported: {origin}", *said):
        _say(line)
    fields: dict[str, entry.Value] = {"id": entry.entry_id(server.name), **pin.fields}
    sys.stdout.write(entry.to_json(fields) if args.format == "json" else entry.to_yaml(fields, [origin]))
    return 0


def _document(where: Source, base: str) -> bytes:
    if where.kind == "file":
        return _read_file(where.text)
    from halod.agent.tls import tls_context
    from halod.policy.importing.fetch import fetch

    url = version_url(base, where.wanted) if where.wanted is not None else where.text
    return fetch(url, tls_context(), say=_say)


def _say(line: str) -> None:
    sys.stderr.write(f"{escape(line)}\n")
    sys.stderr.flush()


def _read_file(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        descriptor = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "no such file"
        raise UsageError(
            f"cannot read {path}: {why}",
            advice="a server of a registry is NAMESPACE/NAME, a URL begins with https://",
        ) from None


def _origin(server: Server, where: Source, base: str) -> str:
    """Say in one line what was imported and from where: it stands above the entry too."""
    place = {"name": base, "url": where.text, "file": "a file"}[where.kind]
    if where.kind == "url":
        place = place.partition("?")[0]  # a query may hold a key
    status = f", {server.status}" if server.status else ""
    published = f", published {server.published}" if server.published else ""
    day = datetime.now(UTC).date()
    return f"{server.name} {server.version}{status}{published}, from {place} on {day}"


def _about(server: Server, where: Source, asked: Wanted | None) -> Iterator[str]:
    if where.kind == "name" and asked is not None and not asked.version:
        yield f"note: the latest version is {server.version}"
    yield "not verified: what the server does; a registry checks who owns a name, not what is behind it"


def _not_carried(server: Server, pin: choose.Pin) -> Iterator[str]:
    """Say what of the document is not in the entry."""
    for other in choose.offers(server):
        if other not in {pin.candidate, pin.remote}:
            yield f"not in the entry: {choose.row(other)}"
    if pin.remote is not None:
        yield from _variables("header", pin.remote.headers)
    one = pin.candidate
    package = pin.fields.get("package")
    if one is None or not isinstance(package, dict):
        return
    if package.get("version", server.version) != server.version:
        yield f"note: the package has another version than the server, {package['version']}"
    for what, given in (("runtime", one.runtime), ("package", one.arguments)):
        if given:
            yield f"not in the entry: {what} arguments: {' '.join(arguments.words(given))}"
    if one.arguments and one.type == "oci":
        yield "note: an image takes no arguments unless the entry says which: args"
    yield from _variables("variable", one.environment)
    yield from _launched(one, package)


def _variables(what: str, listed: tuple[Variable, ...]) -> Iterator[str]:
    for one in listed:
        words = [
            word
            for word, applies in (
                ("required", one.required),
                ("secret", one.secret),
                ("with a value", one.fixed),
            )
            if applies
        ]
        yield f"not in the entry: {what} {one.name}" + (f" ({', '.join(words)})" if words else "")


def _launched(one: Candidate, package: dict[str, str]) -> Iterator[str]:
    """Warn of what the documented arguments and variables would do to the verdict."""
    launch = arguments.documented(one, package)
    if launch is None:
        yield f"note: runtimeHint {one.hint} is not the launcher that this type is known with"
    else:
        for flag in launch.unsafe_flags:
            why = FLAG_WORDS.get(flag, UNKNOWN_FLAG)
            yield f"warning: with these arguments it would not be approved: {flag}: {why}"
        if arguments.runs_another(launch, package):
            yield "warning: with these arguments the launcher may run something else than what is pinned"
    for flag, name in arguments.unsafe_variables(one):
        yield f"warning: variable {name} changes what runs ({flag}); an entry must list it in env to be approved"
