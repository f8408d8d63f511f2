# SPDX-License-Identifier: Apache-2.0
"""`halo-server serve`: the console, until Ctrl-C or SIGTERM."""

import argparse
import sys
from typing import Any, Final

import msgspec

from halod.console import app, logs, server
from halod.console.call import Console
from halod.console.cli import COMMANDS
from halod.console.cli.common import add_options, settings_of
from halod.console.clock import SystemClock
from halod.console.metrics import Metrics
from halod.console.security import login
from halod.console.security.site import site
from halod.console.settings import Settings, check_listen, split_listen
from halod.console.settings.kinds import FORMATS, LEVELS
from halod.console.store.engine import Store
from halod.console.store.migrate import require_current, upgrade

_EXAMPLES: Final = """\
examples:
  halo-server serve                        everything in this account's state directory, http://127.0.0.1:8640
  halo-server serve --data-dir /srv/halo --listen 127.0.0.1:9000
  halo-server serve --config /etc/halo-server/halo-server.toml

Beyond this machine it listens only with TLS (tls_cert, tls_key) or behind a declared proxy (proxies)."""


def add(subparsers: Any) -> None:  # noqa: ANN401 - argparse gives the type no name
    """Describe the command."""
    parser = subparsers.add_parser(
        "serve",
        help=COMMANDS["serve"],
        description="Take the reports of a fleet, keep them, show them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_options(parser)
    parser.add_argument("--listen", metavar="ADDR", help="address and port, 127.0.0.1:8640 by default")
    parser.add_argument(
        "--migrate", action="store_true", help="bring a PostgreSQL database to this release first"
    )
    parser.add_argument("--log-format", choices=FORMATS)
    parser.add_argument("--log-level", choices=LEVELS)


def run(args: argparse.Namespace) -> int:
    """Serve; gives 0 after an orderly end."""
    settings = settings_of(args)
    if args.listen:
        settings = msgspec.structs.replace(settings, listen=args.listen)
    check_listen(settings)
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
    sys.stderr.write(f"\n  halo-server is at {base}/\n")
    if settings.oidc is None:
        sys.stderr.write(
            f"  Sign in, once, within 15 minutes:\n\n    {new_link(console.store, base, console.clock.now())}\n\n"
            "  Another link: halo-server login-link, with the same --config or --data-dir\n"
        )
    sys.stderr.write("\n")
    sys.stderr.flush()


def new_link(store: Store, base: str, now: int) -> str:
    """Make a login link."""
    with store.write() as connection:
        return f"{base}/login?link={login.make_link(connection, now=now)}"


def address(settings: Settings) -> str:
    """Give the address that people open."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    host, port = split_listen(settings.listen)
    shown = f"[{host}]" if ":" in host else host
    return f"{site(settings).scheme}://{shown}:{port}"
