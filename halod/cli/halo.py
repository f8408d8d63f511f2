# SPDX-License-Identifier: Apache-2.0
"""The command line of `halo`, the platform team's program: which commands there are.

A command is a module `halod.cli.halo_COMMAND` with DESCRIPTION, EXAMPLES, `configure(parser)` and
`run(args) -> exit code`, imported when it is the one called. How a command ends is `halod.cli.errors`.
"""

import sys

from halod.cli import errors
from halod.errors import UsageError

COMMANDS = {
    "validate": "check a policy, or a policy repository, and say everything that is wrong with it",
    "plan": "show what each AI tool on a ring would get, as files to deliver",
    "keygen": "make a key to sign policies with",
    "sign": "sign a policy, so that agents may fetch it from anywhere",
    "mcp": "make an entry of a server of an MCP registry, or print a token for a server",
    "approve": "turn a server that a status reports into an entry of the policy",
}
"""Each command, in the order of the help, with the line that the help shows."""

_DESCRIPTION = "Write, check and publish the policy of MCP servers, halos.yaml."
_EXAMPLES = """\
examples:
  halo validate                       check halos.yaml in this directory
  halo validate policies              check the policy repository in a directory
  halo validate --format json -       check what a pipe brings, for a program

halo COMMAND --help tells more. Exit codes: 0 done, 2 wrong usage or an invalid policy."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and give its exit code; with `argv` None, that of this process.

    Exit codes: the command's own; 2 for an error of ours; 70 for a fault inside halo; 130 when interrupted.
    """
    words = sys.argv[1:] if argv is None else argv
    return errors.guard(_dispatch, words, process=argv is None, program="halo")


def _dispatch(words: list[str]) -> int:
    import argparse
    import importlib

    name = words[0] if words else ""
    if name not in COMMANDS:
        return _no_command(name)
    module = importlib.import_module(f"halod.cli.halo_{name}")
    parser = errors.Parser(
        prog=f"halo {name}",
        description=module.DESCRIPTION,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    code: int = module.run(parser.parse_args(words[1:]))
    return code


def _no_command(first: str) -> int:
    """Answer `--help`, `--version`, and what is no command."""
    if first in {"--version", "-V", "version"}:
        from halod import __version__

        sys.stdout.write(f"halo {__version__}\n")
        return 0
    if first in {"--help", "-h", "help"}:
        sys.stdout.write(_help())
        return 0
    if not first:
        sys.stderr.write(_help())
        return 2
    from difflib import get_close_matches

    close = get_close_matches(first, COMMANDS, n=1)
    what = "option" if first.startswith("-") else "command"
    advice = f"did you mean {close[0]}?" if close else "halo --help lists the commands"
    raise UsageError(f"there is no {what} of this name", advice=advice)


def _help() -> str:
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    usage = "usage: halo COMMAND [OPTION]...\n       halo --help | --version"
    return f"{usage}\n\n{_DESCRIPTION}\n\ncommands:\n{rows}\n\n{_EXAMPLES}\n"
