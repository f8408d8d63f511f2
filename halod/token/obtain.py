# SPDX-License-Identifier: Apache-2.0
"""A token for one MCP server: the one that is kept, a refreshed one, or one for which the person signs in.

Invariants:

1. A token that still counts needs no network; LEEWAY seconds before its end it counts no longer.
2. The refresh token is used under the lock and read after it was taken: two calls never use the same one.
3. Without a person at a terminal nothing is asked that only a person could answer.
"""

from typing import Final

from halod.token.grants import Denied, invite, poll, refresh
from halod.token.metadata import discover
from halod.token.model import Asked, Clock, Endpoints, Send, Tell, TokenRefused, Tokens
from halod.token.resource import host_of
from halod.token.store import Store

LEEWAY: Final = 60.0
"""Seconds: a token is not handed out that ends before it is used, and clocks differ."""


def obtain(asked: Asked, store: Store, send: Send, clock: Clock, tell: Tell | None) -> str:
    """Give a bearer token. `tell` shows a line to a person who can sign in; None when nobody is there.

    Raises:
        TokenRefused: there is none, for a reason that is told; EnvironmentFault: the store cannot be used.
    """
    kept = store.read()
    if kept is not None and _counts(kept, clock):
        return kept.access_token
    if kept is not None and kept.refresh_token:
        token = _refreshed(asked, store, send, clock)
        if token:
            return token
    if tell is None:
        raise TokenRefused(
            f"nobody is signed in at {host_of(asked.issuer)} for this server",
            advice=f"run `halo mcp token --resource {asked.resource}` once in a terminal",
        )
    return _signed_in(asked, store, send, clock, tell)


def forget(store: Store) -> bool:
    """Delete what is kept, when no other call is refreshing it; tell whether there was anything.

    Raises:
        TokenRefused: another call is refreshing all the time; EnvironmentFault: the store cannot be used.
    """
    with store.lock():
        return store.forget()


def _counts(tokens: Tokens, clock: Clock) -> bool:
    return tokens.expires_at - LEEWAY > clock.now()


def _refreshed(asked: Asked, store: Store, send: Send, clock: Clock) -> str:
    """Refresh under the lock; "" when the person has to sign in again."""
    with store.lock():
        kept = store.read()
        if kept is None:
            return ""
        if _counts(kept, clock):  # another call has done it meanwhile
            return kept.access_token
        if not kept.refresh_token:
            return ""
        try:
            fresh = refresh(asked, discover(asked.issuer, send), kept, send, clock)
        except Denied:
            store.forget()
            return ""
        store.write(fresh)
        return fresh.access_token


def _signed_in(asked: Asked, store: Store, send: Send, clock: Clock, tell: Tell) -> str:
    endpoints: Endpoints = discover(asked.issuer, send)
    invitation = invite(asked, endpoints, send)
    tell(
        f"to sign in for {asked.resource}, open {invitation.address} and enter the code {invitation.user_code}"
    )
    tell("waiting until it is confirmed there; Ctrl-C gives up")
    fresh = poll(asked, endpoints, invitation, send, clock)
    with store.lock():
        store.write(fresh)
    return fresh.access_token
