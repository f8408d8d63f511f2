# SPDX-License-Identifier: Apache-2.0
"""`halo-server login-link`: print a link that signs an administrator in, once, within 15 minutes."""

import argparse
import sys
from typing import Any

from halod.console.cli import COMMANDS
from halod.console.cli.common import open_store, operator
from halod.console.cli.place import address, known_address
from halod.console.clock import SystemClock
from halod.console.security import audit, login
from halod.console.settings import Settings


def add(subparsers: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "login-link",
        help=COMMANDS["login-link"],
        description="Print a link that signs an administrator in, once, within 15 minutes.",
        allow_abbrev=False,
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the link on stdout; gives 0."""
    settings: Settings = args.settings
    store, now = open_store(settings), SystemClock().now()
    try:
        with store.write() as connection:
            base = known_address(connection) or address(settings)
            token = login.make_link(connection, now=now)
            audit.record(
                connection, time=now, actor=operator(), actor_kind="command", action="login-link.create"
            )
    finally:
        store.close()
    sys.stdout.write(f"{base}/login?link={token}\n")
    return 0
