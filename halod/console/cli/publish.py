# SPDX-License-Identifier: Apache-2.0
"""`halo-server publish`: make a policy that `halo sign` has signed that of the fleet."""

import argparse
import sys
from typing import Any

from halod.console.cli import COMMANDS
from halod.console.cli.common import open_store, operator
from halod.console.clock import SystemClock
from halod.console.policy import bundle
from halod.console.problem import Problem
from halod.errors import UsageError


def add(subparsers: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "publish",
        help=COMMANDS["publish"],
        description="Publish a signed policy. It has to be signed by one of policy_keys of the settings, of"
        " policy_org, newer than the one before, and not expired.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="what halo sign has written: halos.yaml.signed")
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    envelope = bundle.read_file(args.file)
    store = open_store(args.settings)
    try:
        with store.change() as c:
            row = bundle.publish(c, envelope, args.settings, by=operator(), now=SystemClock().now())
    except Problem as problem:
        raise UsageError(problem.detail) from None
    finally:
        store.close()
    sys.stdout.write(
        f"{row.org}, version {row.version}, expires {bundle.moment(row.expires)}, {row.digest}\n"
    )
    return 0
