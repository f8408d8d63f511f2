# SPDX-License-Identifier: Apache-2.0
"""`halo-server serve`: the console, until Ctrl-C or SIGTERM."""

import argparse
import sys
from typing import Any, Final

import msgspec

from halod.console import app, logs, server
from halod.console.call import Console
from halod.console.cli import COMMANDS
from halod.console.cli.common import operator
from halod.console.cli.place import address, note_address
from halod.console.clock import SystemClock
from halod.console.hooks import target
from halod.console.metrics import Metrics
from halod.console.security import audit, login
from halod.console.settings import Settings, check_listen
from halod.console.settings.kinds import FORMATS, LEVELS
from halod.console.store.engine import Store
from halod.console.store.migrate import require_current, upgrade

_EXAMPLES: Final = """\
examples:
  halo-server serve                        everything in this account's state directory, http://127.0.0.1:8640
  halo-server serve --data-dir /srv/halo --listen 127.0.0.1:9000
  halo-server serve --config /etc/halo-server/halo-server.toml

Beyond this machine it listens only with TLS (tls_cert, tls_key) or behind a declared proxy (proxies)."""


def add(subparsers: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "serve",
        help=COMMANDS["serve"],
        description="Take the reports of a fleet, keep them, show them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--listen", metavar="ADDR", help="address and port, 127.0.0.1:8640 by default")
    parser.add_argument(
        "--migrate", action="store_true", help="bring a PostgreSQL database to this release first"
    )
    parser.add_argument("--log-format", choices=FORMATS)
    parser.add_argument("--log-level", choices=LEVELS)
    return parser


def run(args: argparse.Namespace) -> int:
    """Serve; gives 0 after an orderly end."""
    settings: Settings = args.settings
    if args.listen:
        settings = msgspec.structs.replace(settings, listen=args.listen)
    check_listen(settings)
    target.check(settings.webhooks)
    logs.configure(args.log_level or settings.log_level, args.log_format or settings.log_format)
    if settings.tls_cert:
        server.tls_context(settings)
    store = Store.open(settings.database_url)
    try:
        if store.sqlite or args.migrate:
            upgrade(store)
        else:
            require_current(store)
        bound = server.bind(settings.listen)
        port = bound.getsockname()[1]
        settings = msgspec.structs.replace(settings, listen=f"{settings.listen.rpartition(':')[0]}:{port}")
        console = Console(settings=settings, store=store, clock=SystemClock(), metrics=Metrics())
        _welcome(console)
        server.run(app.build(console), settings, bound)
    finally:
        store.close()
    return 0


def _welcome(console: Console) -> None:
    """Say where the console is and, unless a provider signs people in, print a link that does."""
    settings = console.settings
    base = address(settings)
    with console.store.write() as connection:
        note_address(connection, base)
        link = "" if settings.oidc else login.make_link(connection, now=console.clock.now())
        if link:
            who = {"actor": operator(), "actor_kind": "command"}
            audit.record(connection, time=console.clock.now(), action="login-link.create", **who)
    lines = ["", f"  halo-server is at {base}/"]
    if link:
        lines += ["  Sign in, once, within 15 minutes:", "", f"    {base}/login?link={link}", ""]
        lines += ["  Another link: halo-server login-link, with the same --config or --data-dir"]
    sys.stderr.write("\n".join([*lines, "", ""]))
    sys.stderr.flush()
