# SPDX-License-Identifier: Apache-2.0
"""`halo-server token`: make tokens of the API, list and revoke those of the API and of devices."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from halod.console.access import Role
from halod.console.cli import COMMANDS, words
from halod.console.cli.common import open_store, operator
from halod.console.clock import SystemClock
from halod.console.security import audit, tokens
from halod.console.store.engine import Store

ROLES = ("viewer", "operator", "admin")
_PAGE = 200


def add(subparsers: Any) -> tuple[argparse.ArgumentParser, ...]:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "token",
        help=COMMANDS["token"],
        description="Tokens. A machine gets its own by enrolling; programs get theirs here.",
        allow_abbrev=False,
    )
    what = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = what.add_parser("create", help="make a token of the API; it is printed once, on stdout")
    create.add_argument("--name", required=True, type=words.name, help="what it is for")
    create.add_argument("--role", required=True, choices=ROLES)
    create.add_argument("--days", type=words.days, default=90, help="how long it is valid (90)")
    listed = what.add_parser("list", help="list tokens, the newest first")
    listed.add_argument("--kind", choices=("api", "device"), default="")
    listed.add_argument("--device", default="", help="of one device")
    revoke = what.add_parser("revoke", help="end a token, or all of a device, for good")
    which = revoke.add_mutually_exclusive_group(required=True)
    which.add_argument("number", nargs="?", type=words.number, help="as list shows it")
    which.add_argument("--device", default="", help="all tokens of this device")
    return create, listed, revoke


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 when there was nothing to revoke."""
    store, now = open_store(args.settings), SystemClock().now()
    try:
        if args.action == "create":
            return _create(store, args, now)
        return _list(store, args, now) if args.action == "list" else _revoke(store, args, now)
    finally:
        store.close()


def _create(store: Store, args: argparse.Namespace, now: int) -> int:
    by = operator()
    with store.write() as c:
        text = tokens.issue_api(
            c, name=args.name, role=Role[args.role.upper()], now=now, days=args.days, by=by
        )
        who = {"actor": by, "actor_kind": "command"}
        audit.record(
            c, time=now, action="token.create", target=args.name, role=args.role, days=args.days, **who
        )
    sys.stdout.write(f"{text}\n")
    return 0


def _list(store: Store, args: argparse.Namespace, now: int) -> int:
    head = ("NUMBER", "KIND", "STATE", "NAME OR DEVICE", "ROLE", "CREATED", "EXPIRES", "USED", "BY")
    rows = [
        (
            *(str(row.id), row.kind, words.state(row.revoked, row.expires, now)),
            *(row.name or row.device, row.role, words.at(row.created), words.at(row.expires)),
            *(words.at(row.used)[:10], row.created_by),
        )
        for row in _every(store, args)
    ]
    sys.stdout.write(words.table(head, rows) if rows else "there are no tokens\n")
    return 0


def _every(store: Store, args: argparse.Namespace) -> Iterator[tokens.Token]:
    after = 0
    with store.read() as c:
        while found := tokens.list_tokens(c, kind=args.kind, device=args.device, after=after, limit=_PAGE):
            yield from found
            after = found[-1].id


def _revoke(store: Store, args: argparse.Namespace, now: int) -> int:
    with store.write() as c:
        one = args.number is not None
        done = int(tokens.revoke(c, args.number, now)) if one else tokens.revoke_device(c, args.device, now)
        if done:
            target = args.device or str(args.number)
            audit.record(
                c, time=now, actor=operator(), actor_kind="command", action="token.revoke", target=target
            )
    sys.stdout.write(f"{done} revoked\n" if done else "there is no such token, or it was revoked before\n")
    return 0 if done else 1
