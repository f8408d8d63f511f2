# SPDX-License-Identifier: Apache-2.0
"""`halo mcp`: what has to do with MCP servers outside the policy file. Each command below it is a module of its own."""

import argparse
from types import ModuleType
from typing import Any

from halod.cli import mcp_import, mcp_token

DESCRIPTION = """\
Work with registries of MCP servers, and with servers that need a token.

  halo mcp registry import    turn a server of a registry into an entry of halos.yaml
  halo mcp token              print a bearer token for a server"""
EXAMPLES = f"{mcp_import.EXAMPLES}\n\n{mcp_token.EXAMPLES}"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands below this one."""
    groups = parser.add_subparsers(dest="group", metavar="registry|token", required=True)
    registry = groups.add_parser("registry", help="registries of MCP servers", allow_abbrev=False)
    commands = registry.add_subparsers(dest="command", metavar="import", required=True)
    importing = commands.add_parser(
        "import", help="turn a server of a registry into an entry of halos.yaml", **_words(mcp_import)
    )
    mcp_import.configure(importing)
    importing.set_defaults(run=mcp_import.run)
    token = groups.add_parser("token", help="print a bearer token for a server", **_words(mcp_token))
    mcp_token.configure(token)
    token.set_defaults(run=mcp_token.run)


def _words(module: ModuleType) -> dict[str, Any]:
    return {
        "description": module.DESCRIPTION,
        "epilog": module.EXAMPLES,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def run(args: argparse.Namespace) -> int:
    """Run the command that was named; give its exit code."""
    code: int = args.run(args)
    return code
