# SPDX-License-Identifier: Apache-2.0
"""`halo validate`: everything that is wrong with a policy, each fault with its place.

Like a compiler: diagnostics are on stderr, one `file:line:column: message` a line, warnings marked as such;
with `--format json` one document is on stdout instead.
"""

import argparse
import sys
from datetime import UTC, datetime

import msgspec

from halod.policy.load import MAX_BYTES, examine, read_file
from halod.policy.model import Policy, Problem
from halod.policy.warn import warnings

DESCRIPTION = """\
Check a policy (halos.yaml): every fault is reported at once, with its line and column.
The file is not changed and nothing is fetched."""
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


class Report(msgspec.Struct, rename="camel"):
    """What `--format json` prints."""

    file: str
    valid: bool
    digest: str
    servers: int
    denied: int
    problems: list[Problem]
    warnings: list[Problem]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="halos.yaml",
        help="the policy; - is standard input (halos.yaml)",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="text for people, json for programs (text)"
    )


def run(args: argparse.Namespace) -> int:
    """Check the policy and print what was found; 0 when it is valid, else 2.

    Raises:
        UsageError: the file cannot be read.
    """
    standard_input = args.file == "-"
    data = sys.stdin.buffer.read(MAX_BYTES + 1) if standard_input else read_file(args.file)
    policy, root, problems = examine(data)
    today = datetime.now(UTC).date()
    warned = warnings(policy, root, today) if policy is not None and root is not None else []
    name = "<stdin>" if standard_input else args.file
    if args.format == "json":
        _print_json(name, policy, sorted(set(problems)), warned)
    else:
        _print_text(name, policy, sorted(set(problems)), warned)
    return 2 if policy is None else 0


def _print_text(name: str, policy: Policy | None, problems: list[Problem], warned: list[Problem]) -> None:
    for problem in problems:
        sys.stderr.write(f"{name}:{problem.line}:{problem.column}: {problem.message}\n")
    for problem in warned:
        sys.stderr.write(f"{name}:{problem.line}:{problem.column}: warning: {problem.message}\n")
    if policy is None:
        sys.stderr.write(f"{name}: {_count(len(problems), 'fault')}\n")
        return
    said = [_count(len(policy.entries), "server"), f"{len(policy.deny)} denied"]
    said += [_count(len(warned), "warning")] if warned else []
    sys.stdout.write(f"{name}: valid, {', '.join(said)}\n")


def _print_json(name: str, policy: Policy | None, problems: list[Problem], warned: list[Problem]) -> None:
    report = Report(
        file=name.encode("utf-8", "backslashreplace").decode(),
        valid=policy is not None,
        digest=policy.digest if policy else "",
        servers=len(policy.entries) if policy else 0,
        denied=len(policy.deny) if policy else 0,
        problems=problems,
        warnings=warned,
    )
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
