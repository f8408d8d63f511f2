# SPDX-License-Identifier: Apache-2.0
"""`halo approve`: the entry of halos.yaml that would approve what a status reports.

A status has a hash, never a command line. With the command, which its owner brings, and whose hash must be the
one that is reported, the entry names what runs; without it, it is the hash. Invariants:

1. Nothing is printed that would not approve what was reported: every entry but the plain hash is judged first.
2. A command line that visibly carries a credential is written nowhere: the entry is then its hash.
"""

import argparse
import os
import sys
from datetime import UTC, datetime
from typing import Final

import msgspec

from halod.cli.colour import escape
from halod.definition import Definition, FileRef
from halod.drift import judge
from halod.errors import UsageError
from halod.launch import canonical_url, identify, parse_url
from halod.policy.importing import entry
from halod.policy.model import Registry
from halod.secrets_hint import secret_in_definition
from halod.status import Finding, Status, decode, server_name

DESCRIPTION: Final = """\
Print the entry of halos.yaml that approves a server of a status document, ready to paste below "servers:".
Without the command it approves the definition by its hash, exactly as its user wrote it. With the command, whose
hash must be the reported one, it approves what that runs."""
EXAMPLES: Final = """\
examples:
  halod scan --format json >status.json
  halo approve --from status.json --server playwright
  halo approve --from status.json --server playwright -- npx -y @playwright/mcp@0.0.82
  halo approve --from status.json --server wiki -- https://mcp-wiki.internal.acme.example/mcp
  halo approve --from status.json --server playwright --sha256 fe294c4d1312

Exit codes: 0 the entry is printed, 2 it is not."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""A status of a machine with 100,000 findings is smaller."""
_TYPES: Final = frozenset({"npm", "pypi", "nuget", "oci"})

Fields = dict[str, entry.Value]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--from", dest="status", metavar="STATUS.json", required=True, help="a status document; - is stdin"
    )
    parser.add_argument("--server", metavar="NAME", required=True, help="the server, as it is reported")
    parser.add_argument(
        "--sha256", metavar="PREFIX", default="", help="which one, where several of that name are reported"
    )
    parser.add_argument("--format", choices=("yaml", "json"), default="yaml", help="how to print it (yaml)")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="-- CMD ARG... | URL",
        help="what is defined: the command line, or the URL",
    )


def run(args: argparse.Namespace) -> int:
    """Print the entry; give 0.

    Raises:
        UsageError: there is no such server, there are several, or the command is not the reported one.
    """
    found = _named(_read(args.status), args.server)
    words = [os.fsencode(word).decode("utf-8", "replace") for word in args.words]
    if words:
        finding, definition = _matching(found, words)
        body, notes = _entry_of(definition)
    else:
        finding = _only(found, args.sha256)
        body = {"definitionSha256": finding.definition_sha256}
        notes = ["it approves this one definition as its user wrote it; any other spelling is another hash"]
    if finding.kind == "denied":
        notes.append("warning: the policy denies it, and deny goes before every approval")
    fields: Fields = {"id": entry.entry_id(args.server), **body}
    for note in notes:
        sys.stderr.write(f"{escape(note)}\n")
    comment = f"reported in {finding.harness}, approved on {datetime.now(UTC).date()}"
    sys.stdout.write(entry.to_json(fields) if args.format == "json" else entry.to_yaml(fields, [comment]))
    return 0


def _read(path: str) -> Status:
    data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else _read_file(path)
    if len(data) > MAX_BYTES:
        raise UsageError("the status is larger than 64 MiB")
    try:
        return decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UsageError(
            "this is no status document", advice="halod scan --format json prints one, and a report is one"
        ) from None


def _read_file(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "no such file"
        raise UsageError(f"cannot read {path}: {why}") from None


def _named(status: Status, name: str) -> list[Finding]:
    """Give the rows of one name, one for each hash."""
    inventory = status.inventory if isinstance(status.inventory, tuple) else ()
    rows = [row for row in (*status.mcp_drift, *inventory) if row.server in {name, server_name(name)}]
    if not rows:
        raise UsageError(
            "the status reports no server of this name", advice="--server takes a name as it is reported"
        )
    return list({row.definition_sha256: row for row in reversed(rows)}.values())[::-1]


def _only(found: list[Finding], prefix: str) -> Finding:
    fit = [row for row in found if row.definition_sha256.startswith(prefix.lower())]
    if len(fit) == 1:
        return fit[0]
    _list(found)
    what = (
        f"there are {len(fit)} definitions of this name"
        if fit
        else "no definition of this name has this hash"
    )
    raise UsageError(what, advice="say which with --sha256, or give the command after --")


def _list(found: list[Finding]) -> None:
    for row in found:
        sys.stderr.write(escape(f"  {row.definition_sha256} {row.transport} {row.harness} {row.file}") + "\n")


def _matching(found: list[Finding], words: list[str]) -> tuple[Finding, Definition]:
    """Give the row whose hash the words have, as a command line or as a URL."""
    if any("\0" in word for word in words) or not words[0]:
        raise UsageError("the command is empty or holds a NUL")
    for row in found:
        if row.transport == "http" and len(words) > 1:
            continue
        definition = _definition(row, words)
        if definition.sha256 == row.definition_sha256:
            return row, definition
    _list(found)
    raise UsageError(
        "this is not what was reported: its hash is another",
        advice="give the command and every argument as they stand in the tool's config",
    )


def _definition(row: Finding, words: list[str]) -> Definition:
    is_url = row.transport == "http"
    return Definition(
        harness=row.harness,
        file=FileRef(0),
        name="",
        scope=row.scope,
        transport=row.transport,
        command="" if is_url else words[0],
        args=() if is_url else words[1:],
        url=words[0] if is_url else "",
    )


def _entry_of(definition: Definition) -> tuple[Fields, list[str]]:
    """Give the narrowest-to-maintain entry that approves a definition: package or URL, command, else its hash."""
    by_hash: Fields = {"definitionSha256": definition.sha256}
    if secret_in_definition(definition):
        return by_hash, [
            "warning: it visibly carries a credential, so it is written by its hash: replace that credential"
        ]
    notes = ["not looked at: environment, working directory and headers, which are in no hash"]
    for fields in (*_package(definition), *_url(definition), *_command(definition)):
        entries, problems = entry.read({"id": "x", **fields})
        if not problems and judge(definition, Registry(entries=entries)).kind == "approved":
            return fields, [*notes, *_wider(definition, fields)]
    return by_hash, [*notes, "it is approved by its hash: halod explain says why it is no package"]


def _wider(definition: Definition, fields: Fields) -> list[str]:
    """Say what an entry approves besides the definition as it is written."""
    if "package" not in fields or "args" in fields or not identify(definition.command, definition.args).args:
        return []
    return ["it approves the package with any arguments; an args list in the entry allows only these"]


def _package(definition: Definition) -> list[Fields]:
    if definition.transport == "http":
        return []
    launch = identify(definition.command, definition.args)
    if launch.ecosystem not in _TYPES or launch.identifier is None:
        return []
    package = {"type": launch.ecosystem, "identifier": launch.identifier}
    if launch.ecosystem == "oci":
        label = {"version": launch.requested} if launch.requested else {}
        digest = {"sha256": (launch.digest or "").removeprefix("sha256:")}
        arguments: Fields = {"args": launch.args} if launch.args else {}
        return [
            {"package": {**package, **label, **digest}, **arguments},
            {"package": {**package, **digest}, **arguments},
        ]
    package["version"] = launch.version or ""
    named = [{**package, "bin": launch.bin}] if launch.bin else []
    return [{"package": one} for one in (package, *named)]


def _url(definition: Definition) -> list[Fields]:
    parts = parse_url(definition.url) if definition.transport == "http" else None
    canonical = canonical_url(parts) if parts is not None else None
    return [] if canonical is None else [{"url": canonical}]


def _command(definition: Definition) -> list[Fields]:
    """Give the command, unless that starts a launcher: `/usr/bin/npx left@latest` only looks like one program."""
    if definition.transport == "http" or identify(definition.command, definition.args).ecosystem in _TYPES:
        return []
    return [{"command": (definition.command, *definition.args)}]
