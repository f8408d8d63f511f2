# SPDX-License-Identifier: Apache-2.0
"""`halo-server login-link`: print a link that signs an administrator in, once, within 15 minutes."""

import argparse
import os
import sys
from typing import Any

import msgspec

from halod.console.cli import COMMANDS
from halod.console.cli.common import add_options, open_store, settings_of
from halod.console.cli.serve import address
from halod.console.clock import SystemClock
from halod.console.security import audit, login


def add(subparsers: Any) -> None:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser = subparsers.add_parser(
        "login-link",
        help=COMMANDS["login-link"],
        description="Print a link that signs an administrator in, once, within 15 minutes.",
        allow_abbrev=False,
    )
    add_options(parser)
    parser.add_argument(
        "--listen", metavar="ADDR", help="where serve listens, if it was told so by this option"
    )


def run(args: argparse.Namespace) -> int:
    """Print the link on stdout; gives 0."""
    settings = settings_of(args)
    if args.listen:
        settings = msgspec.structs.replace(settings, listen=args.listen)
    base = address(settings)
    store, now = open_store(settings), SystemClock().now()
    try:
        with store.write() as connection:
            token = login.make_link(connection, now=now)
            who = f"uid {os.geteuid()}"
            audit.record(connection, time=now, actor=who, actor_kind="command", action="login-link.create")
    finally:
        store.close()
    sys.stdout.write(f"{base}/login?link={token}\n")
    return 0
