# SPDX-License-Identifier: Apache-2.0
"""`halo-server backup`: a copy of the database in a new file, while the console runs."""

import argparse
import sys
from typing import Any

from halod.console.cli import COMMANDS
from halod.console.cli.common import open_store, operator
from halod.console.clock import SystemClock
from halod.console.security import audit
from halod.console.store.backup import backup


def add(subparsers: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "backup",
        help=COMMANDS["backup"],
        description="Write a copy of the database to a new file, while the console runs. SQLite is copied and looked"
        " through; of PostgreSQL pg_dump makes an archive for pg_restore.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="where to write it; it must not be there yet")
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    store = open_store(args.settings)  # it is there, and of this release
    try:
        with store.write() as c:  # before it is made, as exports
            who = {"actor": operator(), "actor_kind": "command"}
            audit.record(c, time=SystemClock().now(), action="backup", target=args.file, **who)
    finally:
        store.close()
    size = backup(args.settings.database_url, args.file)
    sys.stdout.write(f"{args.file}: {size / 1024 / 1024:.1f} MiB\n")
    return 0
