# SPDX-License-Identifier: Apache-2.0
"""`halo keygen`: a key to sign policies with. The public half is alone on stdout, ready for halod.toml."""

import argparse
import sys

from halod.cli import signing_key

DESCRIPTION = """\
Make an Ed25519 key to sign policies with: the private half into a new file that only you can read, the public half
to stdout. Keep the file where the policy is signed, and nowhere else; agents get the public half."""
EXAMPLES = """\
examples:
  halo keygen                         make halos.key, print its public half
  halo keygen --out keys/2027.key     into another file
  halo keygen --public halos.key      print the public half of a key that is there

The public half stands in halod.toml: public_keys = ["..."]. Exit codes: 0 done, 2 it could not be done."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--out", metavar="FILE", default="halos.key", help="the new file (halos.key)")
    which.add_argument("--public", metavar="FILE", help="make nothing: print the public half of this key")


def run(args: argparse.Namespace) -> int:
    """Make a key, or read one, and print its public half.

    Raises:
        UsageError: the file is there already, or cannot be written or read.
    """
    if args.public is not None:
        key = signing_key.read(args.public)
    else:
        key = signing_key.make(args.out)
        sys.stderr.write(f"{args.out}: a private key, mode 0600; its public half is\n")
    sys.stdout.write(signing_key.public_text(key) + "\n")
    return 0
