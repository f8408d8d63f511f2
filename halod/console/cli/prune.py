# SPDX-License-Identifier: Apache-2.0
"""`halo-server prune`: forget now what is past its time by `[retention]`; the running console does so every hour."""

import argparse
import sys
from collections import Counter
from typing import Any

from halod.console.cli import COMMANDS
from halod.console.cli.common import open_store
from halod.console.clock import SystemClock
from halod.console.security import login, sessions
from halod.console.store import retention


def add(subparsers: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "prune",
        help=COMMANDS["prune"],
        description="Forget now what is past its time by [retention] of the settings. A console that runs does so"
        " every hour; both may run at the same time.",
        allow_abbrev=False,
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    store, now = open_store(args.settings), SystemClock().now()
    total: Counter[str] = Counter()
    try:
        with store.write() as c:
            total["sign-ins"] = sessions.prune(c, args.settings, now=now) + login.prune(c, now=now)
        more = True
        while more:
            done = retention.step(store, args.settings.retention, now)
            total.update(done)
            more = retention.more(done)
    finally:
        store.close()
    gone = [f"{count} {kind}" for kind, count in sorted(total.items()) if count]
    sys.stdout.write(f"forgotten: {', '.join(gone)}\n" if gone else "nothing is past its time\n")
    return 0
