# SPDX-License-Identifier: Apache-2.0
"""`halo-server migrate`: bring the database to this release's schema. Replicas may all run it; one does it."""

import argparse

from halod.console.store import migrate
from halod.console.store.engine import Store


def upgrade(url: str, *, check: bool) -> int:
    """Migrate, or with `check` only tell: exit status 0 when nothing is to be done, else 1.

    Raises:
        UsageError: the database cannot be opened, is of a later release, or is somebody else's.
    """
    store = Store.open(url)
    try:
        if check:
            found = migrate.state(store)
            print(_WORDS[found])
            return 0 if found == "current" else 1
        found = migrate.upgrade(store)
        print("the database is current" if found == "current" else f"the database is at {migrate.HEAD} now")
        return 0
    finally:
        store.close()


_WORDS = {
    "empty": "the database is empty: halo-server migrate",
    "behind": "the database is of an earlier release: halo-server migrate",
    "current": "the database is current",
    "newer": "the database has been migrated by a later release of halo-server",
}


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command; the loader of settings gives `args.settings`."""
    parser = subparsers.add_parser("migrate", help="bring the database to this release's schema")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if there is something to do"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return upgrade(args.settings.database_url, check=args.check)
