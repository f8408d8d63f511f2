# SPDX-License-Identifier: Apache-2.0
"""`halod service`: install halod as a machine service, remove it, or show what installing would do (design 10)."""

import argparse
import os
import posixpath
import sys
from typing import Final

from halod.errors import UsageError
from halod.roles import trust
from halod.service import apply, files
from halod.service import plan as planning
from halod.settings import places

NAME: Final = "service"
HELP: Final = "install or remove the machine service"
DESCRIPTION: Final = """\
Install halod as a service of this machine (systemd, launchd), for this very installation of halod.

  halod service print       show the files and commands of install; nothing happens
  halod service install     write and enable them; again whenever halod has moved
  halod service uninstall   stop, disable and remove them; settings and state are kept

Exit codes: 0 done; 2 refused, or something failed (doing it again is safe)."""

_FIRST_ID, _LAST_ID = 300, 400
"""macOS keeps service accounts below 400; its own begin far below 300 (sysadminctl(8))."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", choices=("install", "uninstall", "print"))
    parser.add_argument(
        "--prefix", metavar="DIR", default="/", help="write below DIR (an image) and enable nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Carry the command out.

    Raises:
        UsageError: no root, a prefix that is no directory, settings with faults.
        EnvironmentFault: others could change what would be started, or something cannot be done.
    """
    prefix = posixpath.abspath(args.prefix)
    if args.action != "print" and prefix == "/" and os.geteuid() != 0:
        raise UsageError(f"halod service {args.action} must be run as root", advice="use sudo")
    if not os.path.isdir(prefix):
        raise UsageError("the directory of --prefix does not exist")
    program, sources = files.this_program(), files.read_sources()
    action: planning.Action = "uninstall" if args.action == "uninstall" else "install"
    made = planning.plan(action, program, sources, situation(prefix))
    if args.action == "print":
        lines = apply.show(made)
    else:
        if args.action == "install":
            _demand(program, sources, prefix)
        lines = apply.carry_out(made)
    for line in lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    for note in made.notes:
        sys.stderr.write(f"halod: {note}\n")
    return 0


def situation(prefix: str, platform: str = sys.platform) -> planning.Situation:
    """Look at what the plan depends on."""
    system: planning.System = "darwin" if platform == "darwin" else "linux"
    where = places(platform)
    taken, names = _accounts()
    return planning.Situation(
        system=system,
        prefix=prefix,
        configured=any(path and os.path.exists(path) for path in (where.settings, where.managed)),
        account=where.account,
        account_exists=where.account in names,
        free_id=next(number for number in range(_FIRST_ID, _LAST_ID + 1) if number not in taken),
        manager=system == "darwin" or os.path.isdir("/run/systemd/system"),
    )


def _accounts() -> tuple[set[int], set[str]]:
    """Give the ids that are taken and the names of accounts."""
    import grp
    import pwd

    accounts = pwd.getpwall()
    taken = {account.pw_uid for account in accounts} | {group.gr_gid for group in grp.getgrall()}
    return taken, {account.pw_name for account in accounts}


def _demand(program: files.Program, sources: files.Sources, prefix: str) -> None:
    """Refuse before anything is written when a service of root's would run what others can change."""
    trusted = planning.looked_at(program, sources)
    settings = places(sys.platform).settings
    if prefix == "/" and os.path.exists(settings):
        from halod.settings import load

        trusted += load(settings).trusted_files()
    trust.demand([*trusted, settings])
