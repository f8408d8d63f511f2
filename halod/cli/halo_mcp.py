# SPDX-License-Identifier: Apache-2.0
"""`halo mcp`: what has to do with MCP servers outside the policy file. Each command below it is a module of its own."""

import argparse

from halod.cli import mcp_import

DESCRIPTION = """\
Work with registries of MCP servers.

  halo mcp registry import    turn a server of a registry into an entry of halos.yaml"""
EXAMPLES = mcp_import.EXAMPLES


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands below this one."""
    groups = parser.add_subparsers(dest="group", metavar="registry", required=True)
    registry = groups.add_parser("registry", help="registries of MCP servers", allow_abbrev=False)
    commands = registry.add_subparsers(dest="command", metavar="import", required=True)
    command = commands.add_parser(
        "import",
        help="turn a server of a registry into an entry of halos.yaml",
        description=mcp_import.DESCRIPTION,
        epilog=mcp_import.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    mcp_import.configure(command)


def run(args: argparse.Namespace) -> int:
    """Run the command that was named; give its exit code."""
    return mcp_import.run(args)
