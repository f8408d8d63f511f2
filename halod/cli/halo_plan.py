# SPDX-License-Identifier: Apache-2.0
"""`halo plan`: what each AI tool on one ring and its units would get, as files that are ready to deliver.

Files go to stdout, or with `--out` into a directory; what a tool cannot express is a line on stderr. Nothing of
this machine is changed but that directory.
"""

import argparse
import difflib
import os
import sys
from datetime import UTC, date, datetime

from halod.cli.colour import escape
from halod.cli.plan_files import read_output, write_output
from halod.cli.policy_files import Directory
from halod.errors import UsageError
from halod.policy.load import load
from halod.policy.model import Policy
from halod.policy.rendering.manifest import NAME, Plan, plan
from halod.policy.rendering.model import SYSTEMS, System
from halod.policy.repository import examine_all
from halod.policy.scope import check_device

DESCRIPTION = """\
Show what each AI tool on a ring, and in a unit, would get: the managed files with the servers that the policy
approves there, and with what keeps others out. What a tool cannot express is told on stderr, once each."""
EXAMPLES = """\
examples:
  halo plan --ring canary                                   show every file
  halo plan --ring canary --out build/canary                write them, with a manifest.json
  halo plan --ring canary --against build/canary            only what would change, as a diff
  halo plan --ring ga --unit payments --system linux        the files of Linux alone

Exit codes: 0 planned (there may be warnings), 2 wrong usage or an invalid policy.
What is rendered for which tool: docs/rendering.md."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="halos.yaml", help="the policy (halos.yaml)"
    )
    parser.add_argument("--ring", metavar="R", required=True, help="the ring of the machines")
    parser.add_argument(
        "--unit", metavar="U", action="append", default=[], help="a unit of theirs; may be repeated"
    )
    parser.add_argument("--out", metavar="DIR", help="write the files below DIR, and DIR/manifest.json")
    parser.add_argument(
        "--against",
        metavar="DIR",
        help="print only what would change: a diff against what --out once wrote into DIR",
    )
    parser.add_argument("--system", choices=SYSTEMS, help="files of one system only (of both)")


def run(args: argparse.Namespace) -> int:
    """Render, then compare, write or print.

    Raises:
        UsageError: the policy is not valid, does not know the ring or a unit, or a directory is unusable.
    """
    if "" in {args.out, args.against}:
        raise UsageError("--out and --against need the name of a directory")
    today = datetime.now(UTC).date()
    policy = _repository(args.file, today) if os.path.isdir(args.file) else load(args.file)
    units = tuple(args.unit)
    for problem in check_device(policy, args.ring, units):
        raise UsageError(problem, advice="name what the policy has under rings and units")
    systems: tuple[System, ...] = (args.system,) if args.system else SYSTEMS
    made = plan(policy, args.ring, units, today, systems)
    said = []
    if args.against is not None:
        difference = _difference(read_output(args.against), made)
        sys.stdout.write(_shown(difference))
        said += [] if difference else [f"no file differs from those below {args.against}"]
    if args.out is not None:
        gone = write_output(args.out, made)
        if args.against is None:
            sys.stdout.write(_summary(made, gone))
        said += [f"written below {args.out}: {len(made.files)} files and {NAME}"]
    elif args.against is None:
        sys.stdout.write(_whole(made))
    for line in (*said, *(f"warning: {warning}" for warning in made.manifest.warnings)):
        sys.stderr.write(f"{escape(line)}\n")
    return 0


def _repository(path: str, today: date) -> Policy:
    """Read the policy of a repository, with the rings that its Ring documents define."""
    directory = Directory(path)
    found = examine_all(directory.files(), today)
    faults = sorted(found.faults + directory.faults)
    if found.policy is None or faults:
        one = faults[0] if faults else None
        where = f"{one.file}:{one.line}:{one.column}: {one.message}" if one else "there is no policy in it"
        raise UsageError(f"{path}: {where}", advice=f"halo validate {path} shows every fault")
    return found.policy


def _whole(made: Plan) -> str:
    parts = [
        f"==> {file.path} ({file.owner}, {file.mode}) <==\n{file.content.decode()}" for file in made.files
    ]
    return "\n".join(parts)


def _summary(made: Plan, gone: list[str]) -> str:
    lines = [f"{file.owner} {file.mode} {file.path}\n" for file in made.files]
    return "".join([*lines, *(f"removed {path}\n" for path in gone)])


def _difference(before: dict[str, bytes], made: Plan) -> str:
    """Give one unified diff of all files, in the order of their paths; empty when nothing changes."""
    after = {file.path: file.content for file in made.files}
    lines: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        lines += difflib.unified_diff(
            _lines(old),
            _lines(new),
            "/dev/null" if old is None else f"a{path}",
            "/dev/null" if new is None else f"b{path}",
        )
    return "".join(lines)


def _shown(difference: str) -> str:
    """Give a diff as it is, but to a terminal without what would steer it: files that were there may hold anything."""
    if not sys.stdout.isatty():
        return difference
    return "\n".join(map(escape, difference.split("\n")))


def _lines(content: bytes | None) -> list[str]:
    """Split into lines that all end with a newline, so that a diff's lines do not run together."""
    text = "" if content is None else content.decode("utf-8", "backslashreplace")
    return [line + "\n" for line in text.split("\n")[: -1 if text.endswith("\n") else None]] if text else []
