# SPDX-License-Identifier: Apache-2.0
"""Sessions of people in a browser.

Invariants:

1. The cookie holds 256 random bits; the database holds their sha256, so a copy of it signs nobody in.
2. A session is made at a login, never taken over: the one that the browser had before ends with it.
3. It ends when it is idle for `session_idle`, at its absolute end, by logging out, here or everywhere, and when the
   settings that gave its role have changed (`provider` names them).
4. Its form token is derived from the cookie and is stored nowhere.
"""

import hashlib
import hmac
import secrets
from typing import Final

import msgspec
from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from halod.console.access import Role
from halod.console.settings import Settings
from halod.console.store.schema import SESSIONS

_PREFIX: Final = "hls_"
_LENGTH: Final = len(_PREFIX) + 43
_USED_STEP: Final = 60
"""Seconds: `used` is written once a minute, not with every request."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is valid. Times in seconds since 1970."""

    hash: str
    subject: str
    name: str
    role: Role
    provider: str
    created: int
    used: int
    expires: int


def cookie_name(*, https: bool) -> str:
    """Give the cookie's name; by https, with the prefix that binds it to this very host (RFC 6265bis 4.1.3.2)."""
    return "__Host-halo" if https else "halo"


def set_cookie(name: str, value: str, *, https: bool, max_age: int) -> str:
    """Write a Set-Cookie header. Lax, not Strict: the provider's way back and links in chats are cross-site."""
    secure = "; Secure" if https else ""
    return f"{name}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}"


def digest(value: str) -> str:
    """Give the hash under which a session is stored."""
    return hashlib.sha256(value.encode()).hexdigest()


def form_token(value: str) -> str:
    """Give the token that forms of the session carry."""
    return hmac.new(value.encode(), b"halo form token", hashlib.sha256).hexdigest()


def create(
    connection: Connection,
    settings: Settings,
    *,
    subject: str,
    name: str,
    role: Role,
    provider: str,
    now: int,
    sid: str = "",
    before: str = "",
) -> str:
    """Begin a session and give the cookie's value; `before` is the browser's cookie up to now, whose session ends."""
    if before:
        end(connection, before)
    value = _PREFIX + secrets.token_urlsafe(32)
    connection.execute(
        insert(SESSIONS).values(
            hash=digest(value),
            subject=subject,
            name=name,
            role=role.name.lower(),
            provider=provider,
            id_token_sid=sid,
            created=now,
            used=now,
            expires=now + settings.session_absolute,
        )
    )
    return value


def find(connection: Connection, settings: Settings, value: str, *, now: int) -> Session | None:
    """Find the valid session of a cookie. It writes nothing: `touch` does, when `is_stale`."""
    if len(value) != _LENGTH or not value.isascii() or not value.startswith(_PREFIX):
        return None
    row = connection.execute(select(SESSIONS).where(SESSIONS.c.hash == digest(value))).mappings().first()
    return None if row is None else _valid(row, settings, now)


def listed(connection: Connection, settings: Settings, *, now: int) -> list[Session]:
    """Give every valid session, the newest first."""
    rows = connection.execute(
        select(SESSIONS).order_by(SESSIONS.c.created.desc(), SESSIONS.c.hash)
    ).mappings()
    return [one for row in rows if (one := _valid(row, settings, now)) is not None]


def _valid(row: RowMapping, settings: Settings, now: int) -> Session | None:
    if now >= row["expires"] or now >= row["used"] + settings.session_idle:
        return None
    role = Role.__members__.get(row["role"].upper(), Role.NONE)
    if role is Role.NONE or row["provider"] not in providers(settings):
        return None
    return Session(
        hash=row["hash"],
        subject=row["subject"],
        name=row["name"],
        role=role,
        provider=row["provider"],
        created=row["created"],
        used=row["used"],
        expires=row["expires"],
    )


def is_stale(session: Session, settings: Settings, now: int) -> bool:
    """Tell whether the session's last use has to be written anew."""
    return now - session.used >= min(_USED_STEP, max(1, settings.session_idle // 10))


def touch(connection: Connection, session: Session, now: int) -> None:
    """Write that the session was used."""
    connection.execute(update(SESSIONS).where(SESSIONS.c.hash == session.hash).values(used=now))


def end(connection: Connection, value: str) -> None:
    """End the session of a cookie."""
    connection.execute(delete(SESSIONS).where(SESSIONS.c.hash == digest(value)))


def end_everywhere(connection: Connection, session: Session) -> int:
    """End every session of the same person; gives how many."""
    mine = (SESSIONS.c.subject == session.subject) & (SESSIONS.c.provider == session.provider)
    return connection.execute(delete(SESSIONS).where(mine)).rowcount


def end_named(connection: Connection, name: str) -> int:
    """End every session of a person of this name, "" of everybody; gives how many."""
    which = [SESSIONS.c.name == name] if name else []
    return connection.execute(delete(SESSIONS).where(*which)).rowcount


def prune(connection: Connection, settings: Settings, *, now: int) -> int:
    """Delete sessions that have ended; gives how many. For the scheduler."""
    ended = (SESSIONS.c.expires <= now) | (SESSIONS.c.used <= now - settings.session_idle)
    return connection.execute(delete(SESSIONS).where(ended)).rowcount


LINK: Final = "link"
"""The `provider` of a session from a one-time link."""


def providers(settings: Settings) -> tuple[str, ...]:
    """Give what `provider` of a valid session may be: `link`, and the fingerprint of who signs in and maps groups."""
    if settings.oidc is None:
        return (LINK,)
    what = msgspec.structs.replace(settings.oidc, client_secret_file="", ca_file="")
    return LINK, "oidc:" + hashlib.sha256(msgspec.json.encode(what)).hexdigest()[:32]
