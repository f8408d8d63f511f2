# SPDX-License-Identifier: Apache-2.0
"""`halo-server webhooks`: make a secret, try a webhook out, list what is kept, retry or discard what is dead."""

import argparse
import asyncio
import base64
import secrets
import sys
from typing import Any, Final

import msgspec

from halod.console.cli import COMMANDS, words
from halod.console.cli.common import open_store, operator
from halod.console.clock import SystemClock
from halod.console.hooks import letters, send, target
from halod.console.hooks.events import Payload, moment
from halod.console.hooks.letters import By
from halod.console.settings import Settings
from halod.errors import UsageError

TEST: Final = "webhook.test"


def add(subparsers: Any) -> tuple[argparse.ArgumentParser, ...]:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "webhooks",
        help=COMMANDS["webhooks"],
        description="Webhooks: docs/webhooks.md says what is sent.",
        allow_abbrev=False,
    )
    what = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    secret = what.add_parser("secret", help="print a new secret, for secret_file and the receiver")
    test = what.add_parser("test", help="send a webhook.test once, now, and say what came of it")
    test.add_argument("hook", metavar="NAME", help="of a webhook in the settings")
    listed = what.add_parser("list", help="list deliveries, the newest first")
    listed.add_argument("--state", choices=letters.STATES, default="")
    listed.add_argument("--hook", metavar="NAME", default="")
    listed.add_argument("--limit", type=words.count, default=50, metavar="N", help="at most so many (50)")
    retry = what.add_parser("retry", help="send what is dead again, with the same id")
    discard = what.add_parser("discard", help="drop what is dead")
    for one in (retry, discard):
        which = one.add_mutually_exclusive_group(required=True)
        which.add_argument("number", nargs="?", type=words.number, default=0, help="as list shows it")
        which.add_argument("--hook", metavar="NAME", default="", help="all that is dead of this webhook")
    return secret, test, listed, retry, discard


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 when a test was not taken, or there was nothing to retry or discard."""
    if args.action == "secret":
        made = base64.b64encode(secrets.token_bytes(32)).decode()
        sys.stdout.write(f"{target.PREFIX}{made}\n")
        return 0
    if args.action == "test":
        return _test(args.settings, args.hook)
    return _list(args) if args.action == "list" else _change(args)


def _test(settings: Settings, name: str) -> int:
    hook = next((one for one in settings.webhooks if one.name == name), None)
    if hook is None:
        raise UsageError("there is no webhook of this name in the settings", advice="name them with --config")
    now = SystemClock().now()
    receiver = target.target(hook)
    payload = Payload(
        id=f"msg_{secrets.token_hex(16)}", type=TEST, timestamp=moment(now), data={"count": 0, "devices": []}
    )

    async def once() -> send.Outcome:
        async with send.client(receiver) as http:
            return await send.send(http, receiver, payload.id, msgspec.json.encode(payload), now=now)

    outcome = asyncio.run(once())
    sys.stdout.write(f"{name}: {outcome.error or 'taken'}\n")
    return 1 if outcome.error else 0


def _list(args: argparse.Namespace) -> int:
    rows: list[letters.DeliveryRow] = []
    store = open_store(args.settings)
    try:
        with store.read() as c:
            cursor, more = "", True
            while more and len(rows) < args.limit:
                page = letters.deliveries(c, state=args.state, hook=args.hook, cursor=cursor, limit=200)
                rows += page.rows
                cursor, more = page.next, bool(page.next)
    finally:
        store.close()
    head = ("NUMBER", "WEBHOOK", "EVENT", "STATE", "ATTEMPTS", "CREATED", "NEXT", "LAST ERROR")
    cells = [
        (
            *(str(row.seq), row.hook, row.event, row.state, str(row.tries), words.at(row.created)),
            *(words.at(row.next_try) if row.state == "due" else "-", row.last_error),
        )
        for row in rows[: args.limit]
    ]
    sys.stdout.write(words.table(head, cells) if cells else "there are no deliveries\n")
    return 0


def _change(args: argparse.Namespace) -> int:
    change = letters.retry if args.action == "retry" else letters.discard
    store = open_store(args.settings)
    try:
        with store.write() as c:
            by = By(actor=operator(), actor_kind="command")
            done = change(c, by=by, now=SystemClock().now(), seq=args.number, hook=args.hook)
    finally:
        store.close()
    said = {"retry": "to be sent again", "discard": "dropped"}[args.action]
    sys.stdout.write(f"{done} {said}\n" if done else "nothing dead is kept under this name\n")
    return 0 if done else 1
