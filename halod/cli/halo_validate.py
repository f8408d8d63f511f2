# SPDX-License-Identifier: Apache-2.0
"""`halo validate`: everything that is wrong with a policy, each fault with its place.

Like a compiler: diagnostics are on stderr, one `file:line:column: message` a line, warnings marked as such;
with `--format json` or `sarif` one document is on stdout instead.
"""

import argparse
import os
import sys
from datetime import UTC, date, datetime

import msgspec

from halod.cli.policy_files import Directory
from halod.errors import UsageError
from halod.policy.load import MAX_BYTES, examine, read_file
from halod.policy.model import Policy
from halod.policy.repository import Located, examine_all
from halod.policy.warn import slips, warnings

DESCRIPTION = """\
Check a policy (halos.yaml), or the policy repository in a directory, where Ring documents
define the rings: every fault is reported at once, with its line and column.
No file is changed and nothing is fetched."""
EXAMPLES = """\
example:
  $ cat halos.yaml
  rings: [canary, ga]
  mcp:
    servers:
      - id: playwright-mcp
        package: {type: npm, identifier: "@playwright/mcp", version: "1.0"}
        ring: [canary]
  $ halo validate
  halos.yaml:5:68: version: for npm "1.0" is a range; write all three numbers, such as 1.2.0
  halos.yaml:6:7: server: unknown key "ring"; did you mean "rings"?
  halos.yaml: 2 faults

Exit codes: 0 the policy is valid (there may be warnings), 2 it is not, or it cannot be read.
Every key is described in docs/policy.md."""


class Row(msgspec.Struct, rename="camel", omit_defaults=True):
    """A fault or a warning in what `--format json` prints; `file` is there when a directory was checked."""

    line: int
    column: int
    message: str
    file: str = ""


class Report(msgspec.Struct, rename="camel"):
    """What `--format json` prints; `rings` is there when a directory was checked."""

    file: str
    valid: bool
    digest: str
    servers: int
    denied: int
    problems: list[Row]
    warnings: list[Row]
    rings: list[str] | msgspec.UnsetType = msgspec.UNSET


class Found(msgspec.Struct):
    """What was found under the name that was given; `rings` is None when that is a file."""

    name: str
    file: str
    policy: Policy | None
    faults: list[Located]
    warnings: list[Located]
    rings: tuple[str, ...] | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "file",
        metavar="FILE|DIR",
        nargs="?",
        default="halos.yaml",
        help="the policy, or the directory of a policy repository; - is standard input (halos.yaml)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "sarif"),
        default="text",
        help="text for people, json for programs, sarif for the pages of a code host (text)",
    )


def run(args: argparse.Namespace) -> int:
    """Check the policy and print what was found; 0 when it is valid, else 2.

    Raises:
        UsageError: the file cannot be read.
    """
    today = datetime.now(UTC).date()
    found = _directory(args.file, today) if os.path.isdir(args.file) else _file(args.file, today)
    if args.format == "sarif":
        from halod.cli.sarif_policy import document

        _print(msgspec.json.encode(document(found.faults, found.warnings, os.getcwd())))
    elif args.format == "json":
        _print(msgspec.json.encode(_report(found)))
    else:
        _print_text(found)
    return 0 if found.policy is not None else 2


def _file(path: str, today: date) -> Found:
    standard_input = path == "-"
    data = sys.stdin.buffer.read(MAX_BYTES + 1) if standard_input else read_file(path)
    policy, root, problems = examine(data)
    warned = [] if root is None else slips(root) if policy is None else warnings(policy, root, today)
    name = "<stdin>" if standard_input else path
    faults, doubts = (
        [Located(name, one.line, one.column, one.message) for one in sorted(set(some))]
        for some in (problems, warned)
    )
    return Found(name, name, policy, faults, doubts)


def _directory(path: str, today: date) -> Found:
    """Check a directory. Names of files are given beneath the path as it was given.

    Raises UsageError when it is too large.
    """
    directory = Directory(path)
    found = examine_all(directory.files(), today)
    if directory.too_large:
        raise UsageError(
            f"{path} is no policy repository: it has {directory.too_large}",
            advice="name the directory of the policy alone",
        )
    above = "" if path in {".", "./"} else path.rstrip("/") + "/"
    faults, doubts = (
        [
            Located(above + one.file if one.file else path, one.line, one.column, one.message)
            for one in sorted(some)
        ]
        for some in (found.faults + directory.faults, found.warnings + directory.warnings)
    )
    file = above + found.file if found.file else path
    return Found(path, file, None if faults else found.policy, faults, doubts, found.rings)


def _print_text(found: Found) -> None:
    for one in found.faults:
        sys.stderr.write(f"{one.file}:{one.line}:{one.column}: {one.message}\n")
    for one in found.warnings:
        sys.stderr.write(f"{one.file}:{one.line}:{one.column}: warning: {one.message}\n")
    if found.policy is None:
        sys.stderr.write(f"{found.name}: {_count(len(found.faults), 'fault')}\n")
        return
    said = [_count(len(found.policy.entries), "server"), f"{len(found.policy.deny)} denied"]
    said += [_count(len(found.rings), "ring")] if found.rings is not None else []
    said += [_count(len(found.warnings), "warning")] if found.warnings else []
    sys.stdout.write(f"{found.file}: valid, {', '.join(said)}\n")


def _report(found: Found) -> Report:
    policy = found.policy
    inside = found.rings is not None
    faults, doubts = (
        [Row(one.line, one.column, one.message, _encodable(one.file) if inside else "") for one in some]
        for some in (found.faults, found.warnings)
    )
    return Report(
        file=_encodable(found.file),
        valid=policy is not None,
        digest=policy.digest if policy else "",
        servers=len(policy.entries) if policy else 0,
        denied=len(policy.deny) if policy else 0,
        problems=faults,
        warnings=doubts,
        rings=list(found.rings) if found.rings is not None else msgspec.UNSET,
    )


def _encodable(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _print(document: bytes) -> None:
    sys.stdout.write(msgspec.json.format(document, indent=2).decode() + "\n")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
