# SPDX-License-Identifier: Apache-2.0
"""Puts the invented fleet and the signed policy into a new database, for `make run`."""

import argparse
import sys
from pathlib import Path

import msgspec

from halod.console import demo
from halod.console.cli.common import add_options, settings_of
from halod.console.clock import SystemClock
from halod.console.policy import bundle
from halod.console.store.engine import Store
from halod.console.store.migrate import upgrade


def main() -> int:
    """Fill the database; give 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument(
        "--policy", type=Path, required=True, help="the signed policy, newer than the fleet's"
    )
    parser.add_argument("--devices", type=int, default=demo.DEVICES)
    args = parser.parse_args()
    settings, now = settings_of(args, make=True), SystemClock().now()
    store = Store.open(settings.database_url)
    try:
        upgrade(store)
        # The fleet's history has policies of its own, by a key that the console is not told of.
        past = msgspec.structs.replace(settings, policy_keys=(demo.public_key(),))
        demo.fill(store, past, now=now, devices=args.devices)
        with store.change() as connection:
            bundle.publish(connection, args.policy.read_bytes(), settings, by="make run", now=now)
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
