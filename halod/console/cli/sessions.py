# SPDX-License-Identifier: Apache-2.0
"""`halo-server sessions`: who is signed in, and signing people out: those who leave, or have lost a laptop."""

import argparse
import sys
from typing import Any

from halod.console.cli import COMMANDS, words
from halod.console.cli.common import open_store, operator
from halod.console.clock import SystemClock
from halod.console.security import audit, sessions


def add(subparsers: Any) -> tuple[argparse.ArgumentParser, ...]:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "sessions",
        help=COMMANDS["sessions"],
        description="Sessions of people in a browser. One that is ended is refused from its next request on.",
        allow_abbrev=False,
    )
    what = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = what.add_parser("list", help="list who is signed in, who came last first")
    end = what.add_parser("end", help="sign out a person, in every browser, or everybody")
    which = end.add_mutually_exclusive_group(required=True)
    which.add_argument("--name", default="", help="as list shows it")
    which.add_argument("--all", action="store_true", help="everybody")
    return listed, end


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 when there was nobody to sign out."""
    store, now = open_store(args.settings), SystemClock().now()
    try:
        if args.action == "list":
            with store.read() as c:
                found = sessions.listed(c, args.settings, now=now)
            sys.stdout.write(_table(found) if found else "nobody is signed in\n")
            return 0
        with store.write() as c:
            ended = sessions.end_named(c, args.name)
            if ended:
                who = {"actor": operator(), "actor_kind": "command"}
                target = args.name or "everybody"
                audit.record(c, time=now, action="sessions.end", target=target, sessions=ended, **who)
    finally:
        store.close()
    nobody = "nobody of this name is signed in" if args.name else "nobody is signed in"
    sys.stdout.write(f"{ended} ended\n" if ended else f"{nobody}\n")
    return 0 if ended else 1


def _table(found: list[sessions.Session]) -> str:
    head = ("NAME", "ROLE", "BY", "BEGAN", "LAST USED", "ENDS")
    return words.table(
        head,
        [
            (
                *(one.name, one.role.name.lower(), one.provider.partition(":")[0]),
                *(words.at(one.created), words.at(one.used), words.at(one.expires)),
            )
            for one in found
        ],
    )
