# SPDX-License-Identifier: Apache-2.0
"""`halo mcp token`: a bearer token of the person for one MCP server, on stdout and nowhere else."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from halod.cli.colour import escape
from halod.errors import UsageError
from halod.token.model import Answer, Asked, Clock
from halod.token.obtain import forget, obtain
from halod.token.resource import canonical_resource
from halod.token.settings import AuthSettings, load
from halod.token.store import Store, default_directory

if TYPE_CHECKING:
    from ssl import SSLContext

DESCRIPTION: Final = """\
Print a bearer token for an MCP server that the organisation's authorization server protects (auth: {mode: halos}).
In a terminal you are asked to sign in once; from then on the token is refreshed without asking. Claude Code calls
this command as the server's headersHelper."""
EXAMPLES: Final = """\
examples:
  halo mcp token --resource https://mcp-wiki.acme.example/mcp
                                          {"Authorization": "Bearer …"}, as a headersHelper has to print it
  halo mcp token --resource URL --format token      the token alone
  halo mcp token --resource URL --config FILE       with other settings than the system's halo.toml
  halo mcp token --resource URL --forget            delete the token that is kept for this server

Exit codes: 0 printed, 2 there is no token: stderr says why and what to do. docs/token.md"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("--resource", metavar="URL", required=True, help="the URL of the MCP server")
    parser.add_argument(
        "--format", choices=("headers", "token"), default="headers", help="how to print it (headers)"
    )
    parser.add_argument("--forget", action="store_true", help="delete the token that is kept, and print none")
    parser.add_argument("--config", metavar="FILE", help="settings elsewhere than in the system's halo.toml")


def run(args: argparse.Namespace) -> int:
    """Print a token, or delete it; give 0.

    Raises:
        UsageError: the arguments or settings are wrong, or there is no token.
        EnvironmentFault: tokens cannot be kept here.
    """
    resource = canonical_resource(args.resource)
    settings = load(args.config)
    clock = Clock()
    asked = Asked(settings.issuer, settings.client_id, settings.scopes, resource)
    store = Store(default_directory(), asked, clock)
    if args.forget:
        _say("the token is deleted" if forget(store) else "there was no token")
        return 0
    token = _token(asked, settings, store, clock)
    sys.stdout.write(_headers(token) if args.format == "headers" else f"{token}\n")
    return 0


def _token(asked: Asked, settings: AuthSettings, store: Store, clock: Clock) -> str:
    made: list[SSLContext] = []

    def ask(url: str, form: dict[str, str] | None) -> Answer:
        from halod.token.http import send  # only what asks needs it, as the certificates

        if not made:
            made.append(_tls(settings.ca_file))
        return send(url, form, made[0])

    return obtain(asked, store, ask, clock, _say if _person() else None)


def _tls(ca_file: str) -> "SSLContext":
    from halod.agent.tls import tls_context

    try:
        return tls_context(ca_file)
    except UsageError:
        raise UsageError(
            "auth.ca_file cannot be read or holds no certificate",
            advice="it must be a PEM file with one or more CA certificates",
        ) from None


def _person() -> bool:
    """Tell whether a person can read what is asked, and is there: a helper's output is no terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _headers(token: str) -> str:
    """Give the object that Claude Code reads from a `headersHelper`. A token needs no escape in JSON."""
    return f'{{"Authorization": "Bearer {token}"}}\n'


def _say(line: str) -> None:
    sys.stderr.write(f"{escape(line)}\n")
    sys.stderr.flush()
