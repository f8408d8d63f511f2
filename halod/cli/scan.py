# SPDX-License-Identifier: Apache-2.0
"""`halod scan`: the supervisor and its workers in one command, without network.

Decides nothing about definitions: it finds the accounts and the policy, lets workers read and judge, puts the
answers together and prints them. Exit codes are those of design 10.
"""

import argparse
import gc
import os
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from halod.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from halod.accounts import Account
    from halod.assemble import Scanned
    from halod.cli.scan_settings import Chosen
    from halod.policy.model import Policy, Registry
    from halod.status import Status

NAME = "scan"
HELP = "read MCP configs, compare them with the registry, print what differs"
DESCRIPTION = """\
Read the MCP configs of an account, compare them with the approved registry and print what differs.
Without a policy the scan is an inventory: every definition is listed and none is judged. Your own home is
that of your account, whatever the variable HOME says. Run as root, halod refuses an installation or a policy
that somebody else could write.

Nothing is changed, started or sent. Not read are files in repositories, connectors kept in a vendor's
cloud, and folders that environment variables moved elsewhere."""
EXAMPLES = """\
examples:
  halod scan                                                  an inventory of your own account
  halod scan --policy halos.yaml --ring ring1-canary          what differs from the registry
  sudo halod scan --all-users --policy halos.yaml --ring ga   every person's account on this machine
  sudo halod scan --user dev ops --harness cursor             two accounts, one tool
  halod scan --home /mnt/backup/dev --format json             a backup or mounted disk, as a document
  halod scan --policy halos.yaml --format sarif > halod.sarif for a code-scanning page

exit codes:
  0  nothing found            2  wrong usage, settings or policy
  1  findings                 3  no finding, but something could not be read"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options (design 10)."""
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument(
        "--home", metavar="DIR", help="take DIR as one account's home; its owner is the account"
    )
    whose.add_argument(
        "--user", metavar="NAME", nargs="+", action="extend", help="scan these accounts instead of your own"
    )
    whose.add_argument("--all-users", action="store_true", help="scan every person's account on this machine")
    parser.add_argument(
        "--policy", metavar="FILE", help="the approved registry (halos.yaml); without it: inventory"
    )
    parser.add_argument("--ring", metavar="R", default="", help="this device's ring, one of the policy's")
    parser.add_argument(
        "--unit",
        metavar="U",
        action="append",
        default=[],
        help="a unit this device belongs to; may be repeated",
    )
    parser.add_argument(
        "--harness", metavar="ID", action="append", default=[], help="only this AI tool; may be repeated"
    )
    parser.add_argument(
        "--format", choices=("table", "json", "sarif"), default="table", help="what to print (default: table)"
    )
    parser.add_argument("--send", action="store_true", help="hand the status to the running agent as well")
    parser.add_argument(
        "--config", metavar="FILE", help="settings (halod.toml) to take policy, ring and units from"
    )


def run(args: argparse.Namespace) -> int:
    """Scan and print; give the exit code.

    Raises:
        UsageError: an option, an account's name or the policy is wrong.
        EnvironmentFault: root may not run this installation, or the caller has no home.
    """
    started = time.monotonic()
    # What is imported lives as long as the process: collecting among it would cost a tenth of a scan.
    gc.disable()
    _load_msgspec()
    chosen = None
    if args.send or args.config is not None:
        from halod.cli import scan_settings

        chosen = scan_settings.apply(args)
    from halod.roles import trust

    trust.demand([args.policy] if args.policy else [])
    policy, registry = _policy(args)
    harnesses = known_harnesses(args.harness)
    accounts, unknown = _accounts(args)
    reveal = _reveal(args, accounts)
    scanned = [*_missing(unknown), *_scan(accounts, registry, harnesses, chosen, reveal=reveal)]
    status = _status(scanned, policy, registry, args, started, chosen=chosen, reveal=reveal)
    _print(status, args.format)
    if args.send and chosen is not None:
        scan_settings.send(status, chosen.run_dir)
    return exit_code(status)


def _load_msgspec() -> None:
    """Import msgspec without typing_extensions, which it takes when it is there and does not need since 3.11.

    That module and what it imports (inspect, ast, dis, tokenize) are a fifteenth of a whole scan.
    """
    name = "typing_extensions"
    if name in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # documented: makes an import of it fail
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def exit_code(status: "Status") -> int:
    """Give the exit code for a status (design 10)."""
    if status.mcp_drift:
        return 1
    return 3 if status.skipped else 0


def _policy(args: argparse.Namespace) -> "tuple[Policy | None, Registry | None]":
    if args.policy is None:
        if args.ring or args.unit:
            raise UsageError("--ring and --unit need --policy", advice="name the registry that knows them")
        return None, None
    from halod.cli.registry import registry

    return registry(args.policy, args.ring, args.unit)


def known_harnesses(names: list[str]) -> frozenset[str] | None:
    """Give the ids as a set, None when none is named. Raises UsageError when there is no such harness."""
    if not names:
        return None
    from halod.harnesses import HARNESS_IDS

    for name in names:
        if name not in HARNESS_IDS:
            from difflib import get_close_matches

            close = get_close_matches(name, sorted(HARNESS_IDS), n=1)
            advice = f"did you mean {close[0]}?" if close else "halod harnesses lists the ids"
            raise UsageError(f"there is no harness of the id {name!r}", advice=advice)
    return frozenset(names)


def _accounts(args: argparse.Namespace) -> "tuple[list[Account], list[str]]":
    from halod import accounts

    if args.home is not None:
        return [accounts.of_directory(args.home)], []
    if args.user:
        return accounts.named(args.user)
    if args.all_users:
        return accounts.everyone(), []
    own = accounts.caller()
    if own is None:
        raise EnvironmentFault(
            "this process's user id has no password entry, so it has no home",
            advice="name the home with --home DIR",
        )
    return [own], []


def _reveal(args: argparse.Namespace, accounts: "list[Account]") -> bool:
    """Tell whether real names may be shown: one's own files, on one's own terminal, as a table (design 8)."""
    own = all(account.uid == os.getuid() for account in accounts)
    return own and args.format == "table" and not args.send and sys.stdout.isatty()


def _missing(names: list[str]) -> "list[Scanned]":
    from halod.assemble import Scanned

    return [Scanned(user=name, reason="no-account") for name in names]


def _scan(
    accounts: "list[Account]",
    registry: "Registry | None",
    harnesses: frozenset[str] | None,
    chosen: "Chosen | None",
    *,
    reveal: bool,
) -> "list[Scanned]":
    from halod.assemble import Scanned
    from halod.cli.progress import Progress
    from halod.roles.scan import Task, scan_home
    from halod.roles.supervisor import run as supervise
    from halod.roles.worker import Job

    task = Task.of(registry, harnesses, extra=() if chosen is None else chosen.extra, reveal=reveal)
    jobs = [Job.of(account, task) for account in accounts]
    if chosen is not None:
        size, roots = chosen.max_file_bytes, chosen.link_roots
        jobs = [Job.of(account, task, max_file_bytes=size, link_roots=roots) for account in accounts]
    gc.enable()  # for the workers, who inherit it: they read files of any size
    scanned = []
    with Progress(sys.stderr, len(jobs), dumb=os.environ.get("TERM") == "dumb") as progress:
        for outcome in supervise(jobs, scan_home):
            reason = outcome.failure or "worker-crashed"
            scanned.append(Scanned(user=outcome.job.name, answer=outcome.answer, reason=reason))
            progress.step()
    return scanned


def _status(
    scanned: "list[Scanned]",
    policy: "Policy | None",
    registry: "Registry | None",
    args: argparse.Namespace,
    started: float,
    *,
    chosen: "Chosen | None",
    reveal: bool,
) -> "Status":
    from halod.assemble import Machine, assemble
    from halod.device import device_id, os_name

    machine = Machine(
        time=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        device=device_id(),
        hostname=os.uname().nodename,
        os=os_name(),
        ring=args.ring,
        units=tuple(args.unit),
        duration_ms=round((time.monotonic() - started) * 1000),
    )
    extra = () if chosen is None else chosen.extra
    return assemble(scanned, machine, policy=policy, registry=registry, extra=extra, reveal=reveal)


def _print(status: "Status", form: str) -> None:
    if form == "table":
        from halod.cli.colour import Paint, wanted, width
        from halod.cli.table import render

        sys.stdout.write(render(status, Paint(enabled=wanted(sys.stdout)), width(sys.stdout)))
        return
    if form == "sarif":
        import msgspec

        from halod.cli.sarif import document

        data = msgspec.json.encode(document(status))
    else:
        from halod.status import encode

        data = encode(status)
    sys.stdout.flush()
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()
