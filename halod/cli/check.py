# SPDX-License-Identifier: Apache-2.0
"""`halod check`: what is wrong with this machine's settings, files, policy and endpoints, in words."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halod.check.model import Check

NAME = "check"
HELP = "say in words what is wrong with settings, files, policy and endpoints"
DESCRIPTION = """\
Read the settings and everything they name, and say in words what is wrong: faults of the settings, who could
write or read the files, the policy, the token, the agent's account, the state directory, the sandbox, and
whether the endpoints can be reached. Nothing is changed."""
EXAMPLES = """\
examples:
  sudo halod check                             the settings of this machine
  halod check --config halod.toml              settings before they are rolled out
  sudo halod check --canary                    also send a test finding to the endpoint
  sudo halod check --format json               a document for a device management server

exit codes:
  0  nothing is wrong (there may be warnings)
  2  at least one fault"""

_COLOURS = {"ok": "green", "warning": "yellow", "fault": "red"}
_INDENT = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options (design 10)."""
    parser.add_argument("--config", metavar="FILE", help="the settings, instead of those of this machine")
    parser.add_argument(
        "--canary", action="store_true", help="send a harmless test finding through the running agent"
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="what to print (default: table)"
    )


def run(args: argparse.Namespace) -> int:
    """Check and print; 0 when there is no fault, else 2."""
    from halod.check.examine import examine

    checks = examine(args.config, canary=args.canary)
    faults = sum(check.verdict == "fault" for check in checks)
    warnings = sum(check.verdict == "warning" for check in checks)
    if args.format == "json":
        _print_json(checks, faults, warnings)
    else:
        _print_table(checks, faults, warnings)
    return 2 if faults else 0


def _print_table(checks: "list[Check]", faults: int, warnings: int) -> None:
    from halod.check.model import count
    from halod.cli.colour import Paint, escape, wanted, width, wrap

    paint, room = Paint(enabled=wanted(sys.stdout)), width(sys.stdout)
    for check in checks:
        words = check.message if check.message.startswith(check.name) else f"{check.name}: {check.message}"
        lines = wrap(escape(words), room, " " * _INDENT)
        verdict = paint(_COLOURS[check.verdict], f"{check.verdict:<{_INDENT}}")
        sys.stdout.write(f"{verdict}{lines[_INDENT:]}\n")
        if check.advice:
            sys.stdout.write(paint("dim", wrap(escape(check.advice), room, " " * (_INDENT + 2))) + "\n")
    said = [count(faults, "fault")] if faults else []
    said += [count(warnings, "warning")] if warnings else []
    sys.stdout.write(f"\n{', '.join(said) or 'nothing is wrong'}\n")


def _print_json(checks: "list[Check]", faults: int, warnings: int) -> None:
    import msgspec

    document = {"faults": faults, "warnings": warnings, "checks": checks}
    data = msgspec.json.format(msgspec.json.encode(document), indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()
