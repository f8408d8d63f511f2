# SPDX-License-Identifier: Apache-2.0
"""`halo-server enroll-key`: make, list and revoke the keys that machines exchange for a token of their own."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from halod.console.cli import COMMANDS, words
from halod.console.cli.common import open_store, operator
from halod.console.clock import SystemClock
from halod.console.security import audit, tokens
from halod.console.store.engine import Store

_PAGE = 200


def add(subparsers: Any) -> tuple[argparse.ArgumentParser, ...]:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "enroll-key",
        help=COMMANDS["enroll-key"],
        description="Enrolment keys: the same on many machines, each exchanges it once for a token of its own.",
        allow_abbrev=False,
    )
    what = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = what.add_parser("create", help="make a key; it is printed once, on stdout")
    create.add_argument("--name", required=True, type=words.name, help="what it is for")
    create.add_argument("--ring", type=words.name, help="the ring of the machines that use it")
    create.add_argument(
        "--unit", action="append", default=[], type=words.name, help="a unit of them; repeatable"
    )
    create.add_argument("--days", type=words.days, default=30, help="how long it is valid (30)")
    create.add_argument(
        "--uses", type=words.count, default=0, help="how many machines may use it; 0: any number"
    )
    listed = what.add_parser("list", help="list keys, the newest first")
    revoke = what.add_parser("revoke", help="end a key; tokens that it gave stay valid")
    revoke.add_argument("number", type=words.number, help="as list shows it")
    return create, listed, revoke


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 when there was nothing to revoke."""
    store, now = open_store(args.settings), SystemClock().now()
    try:
        if args.action == "create":
            return _create(store, args, now)
        return _list(store, now) if args.action == "list" else _revoke(store, args, now)
    finally:
        store.close()


def _create(store: Store, args: argparse.Namespace, now: int) -> int:
    by = operator()
    with store.write() as c:
        text = tokens.new_enroll_key(
            c,
            name=args.name,
            ring=args.ring or "",
            units=args.unit,
            now=now,
            days=args.days,
            max_uses=args.uses,
            by=by,
        )
        said = {"ring": args.ring or "", "units": ",".join(args.unit), "days": args.days, "uses": args.uses}
        who = {"actor": by, "actor_kind": "command"}
        audit.record(c, time=now, action="enroll-key.create", target=args.name, **who, **said)
    sys.stdout.write(f"{text}\n")
    return 0


def _list(store: Store, now: int) -> int:
    head = ("NUMBER", "STATE", "NAME", "RING", "UNITS", "USES", "CREATED", "EXPIRES", "BY")
    rows = [
        (
            *(
                str(row.id),
                words.state(row.revoked, row.expires, now),
                row.name,
                row.ring,
                ",".join(row.units),
            ),
            f"{row.uses}/{row.max_uses}" if row.max_uses else str(row.uses),
            *(words.at(row.created), words.at(row.expires), row.created_by),
        )
        for row in _every(store)
    ]
    sys.stdout.write(words.table(head, rows) if rows else "there are no enrolment keys\n")
    return 0


def _every(store: Store) -> Iterator[tokens.EnrollKey]:
    after = 0
    with store.read() as c:
        while found := tokens.list_enroll_keys(c, after=after, limit=_PAGE):
            yield from found
            after = found[-1].id


def _revoke(store: Store, args: argparse.Namespace, now: int) -> int:
    with store.write() as c:
        done = tokens.revoke_enroll_key(c, args.number, now)
        if done:
            who = {"actor": operator(), "actor_kind": "command"}
            audit.record(c, time=now, action="enroll-key.revoke", target=str(args.number), **who)
    sys.stdout.write("1 revoked\n" if done else "there is no such key, or it was revoked before\n")
    return 0 if done else 1
