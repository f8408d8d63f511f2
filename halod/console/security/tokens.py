# SPDX-License-Identifier: Apache-2.0
"""Device tokens, API tokens and enrolment keys: made, found, listed, revoked.

A secret is 256 random bits behind a prefix by which a leak scanner knows it. It is shown once, when it is made; the
database has its sha256 only, and is asked by that, so nothing is compared byte by byte with what a caller sent.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec
from sqlalchemy import Connection, RowMapping, insert, or_, select, update

from halod.console.access import Actor, Role
from halod.console.store import bulk
from halod.console.store.schema import ENROLL_KEYS, TOKENS
from halod.status import clean

DAY: Final = 86_400
Prefix = Literal["hld_", "hla_", "hle_", "hll_"]
"""Device token, API token, enrolment key, login link."""
DEVICE: Final = "hld_"
API: Final = "hla_"
ENROLL_KEY: Final = "hle_"
_FORM: Final = re.compile(r"hl[dael]_[A-Za-z0-9_-]{43}")
FOREVER: Final = 2**53
"""When something ends that has no end."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `tokens` as it may be shown: without its hash."""

    id: int
    kind: str
    device: str
    name: str
    role: str
    created_by: str
    created: int
    expires: int
    revoked: int | None
    used: int | None


class EnrollKey(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `enroll_keys` as it may be shown."""

    id: int
    name: str
    ring: str
    units: tuple[str, ...]
    created_by: str
    created: int
    expires: int
    max_uses: int
    uses: int
    revoked: int | None


def new(prefix: Prefix) -> str:
    """Make a secret."""
    return prefix + secrets.token_urlsafe(32)


def digest(text: str) -> str:
    """Give what is kept of a secret."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_form(text: str, prefix: str) -> bool:
    """Tell whether a text looks like a secret of this kind: what does not is not looked up."""
    return text.startswith(prefix) and _FORM.fullmatch(text) is not None


def bearer(value: str | None) -> str:
    """Read the header Authorization: the bearer's secret, or ""."""
    scheme, _, token = (value or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


# --- tokens ------------------------------------------------------------------------------------------------


def issue_device(c: Connection, *, device: str, install_id: str, now: int, days: int, by: str) -> str:
    """Give a device its token; those that it had before end. They still prove who it is until this one is used.

    (What is answered may be lost. Then the device asks again with the token that it has: `last_given`.)
    """
    c.execute(
        update(TOKENS)
        .where(TOKENS.c.device == device, TOKENS.c.kind == "device", TOKENS.c.expires > now)
        .values(expires=now)
    )
    text = new("hld_")
    _insert(c, text, kind="device", device=device, install_id=install_id, now=now, days=days, by=by)
    return text


def issue_api(c: Connection, *, name: str, role: Role, now: int, days: int, by: str) -> str:
    """Make a token for a program."""
    text = new("hla_")
    _insert(c, text, kind="api", name=clean(name, 128), role=role.name.lower(), now=now, days=days, by=by)
    return text


def _insert(c: Connection, text: str, *, now: int, days: int, by: str, **values: str) -> None:
    end = now + days * DAY if days else FOREVER
    c.execute(
        insert(TOKENS).values(
            hash=digest(text), created_by=clean(by, 256), created=now, expires=end, **values
        )
    )


def find_api(c: Connection, text: str, now: int) -> Actor | None:
    """Give the actor behind an API token that is valid."""
    row = _valid(c, text, API, now)
    if row is None or row["role"].upper() not in Role.__members__:
        return None
    return Actor(kind="api-token", name=row["name"], role=Role[row["role"].upper()])


def _valid(c: Connection, text: str, prefix: str, now: int) -> RowMapping | None:
    if not is_form(text, prefix):
        return None
    kind = "api" if prefix == API else "device"
    row = (
        c.execute(select(TOKENS).where(TOKENS.c.hash == digest(text), TOKENS.c.kind == kind))
        .mappings()
        .first()
    )
    return row if row is not None and row["revoked"] is None and row["expires"] > now else None


def find_devices(c: Connection, hashes: Iterable[str], now: int) -> Mapping[str, RowMapping]:
    """Give the device tokens that are valid, by their hashes: `id`, `device`, `used`."""
    statement = select(TOKENS.c.id, TOKENS.c.hash, TOKENS.c.device, TOKENS.c.used).where(
        bulk.among(c, TOKENS.c.hash, sorted(set(hashes))),
        TOKENS.c.kind == "device",
        TOKENS.c.revoked.is_(None),
        TOKENS.c.expires > now,
    )
    return {row["hash"]: row for row in c.execute(statement).mappings()}


def use(c: Connection, rows: Iterable[tuple[int, int | None]], now: int) -> None:
    """Note that tokens (`id`, `used`) were used, once a day each."""
    late = sorted({number for number, used in rows if used is None or used <= now - DAY})
    if late:
        bulk.update_by(c, TOKENS, "id", [{"id": number, "used": now} for number in late])


def proves(c: Connection, text: str, *, device: str, install_id: str) -> bool:
    """Tell whether a token shows that its bearer is `device`: the last one that was given to it.

    It may have expired. It must not have been revoked, and its install id must be the one that is asked with. One
    before the last proves as well while those after it were neither used nor revoked: the answer with them was lost.
    """
    if not is_form(text, DEVICE):
        return False
    of_device = (
        select(TOKENS)
        .where(TOKENS.c.device == device, TOKENS.c.kind == "device")
        .order_by(TOKENS.c.id.desc())
        .limit(16)
    )
    wanted = digest(text)
    for row in c.execute(of_device).mappings():
        if row["revoked"] is not None:
            return False
        if row["hash"] == wanted:
            return secrets.compare_digest(row["install_id"].encode(), install_id.encode())
        if row["used"] is not None:
            return False
    return False


def has_token(c: Connection, device: str) -> bool:
    """Tell whether a token was ever given to a device."""
    asked = select(TOKENS.c.id).where(TOKENS.c.device == device, TOKENS.c.kind == "device").limit(1)
    return c.execute(asked).first() is not None


def revoke(c: Connection, number: int, now: int) -> bool:
    """End a token for good; False when there is none, or it was revoked before."""
    done = c.execute(
        update(TOKENS).where(TOKENS.c.id == number, TOKENS.c.revoked.is_(None)).values(revoked=now)
    )
    return done.rowcount == 1


def revoke_device(c: Connection, device: str, now: int) -> int:
    """End every token of a device for good: none proves anything any more. Gives how many."""
    done = c.execute(
        update(TOKENS)
        .where(TOKENS.c.device == device, TOKENS.c.kind == "device", TOKENS.c.revoked.is_(None))
        .values(revoked=now)
    )
    return done.rowcount


def list_tokens(
    c: Connection, *, kind: str = "", device: str = "", after: int = 0, limit: int = 50
) -> list[Token]:
    """Give tokens by their number, the newest first; `after` is the last number of the page before."""
    wanted = Token.__struct_fields__
    statement = select(*(TOKENS.c[name] for name in wanted)).order_by(TOKENS.c.id.desc()).limit(limit)
    if kind:
        statement = statement.where(TOKENS.c.kind == kind)
    if device:
        statement = statement.where(TOKENS.c.device == device)
    if after:
        statement = statement.where(TOKENS.c.id < after)
    return [Token(**row) for row in c.execute(statement).mappings()]


# --- enrolment keys ----------------------------------------------------------------------------------------


def new_enroll_key(
    c: Connection,
    *,
    name: str,
    ring: str = "",
    units: Iterable[str] = (),
    now: int,
    days: int,
    max_uses: int = 0,
    by: str,
) -> str:
    """Make an enrolment key; `max_uses` 0: for as many devices as ask."""
    text = new("hle_")
    c.execute(
        insert(ENROLL_KEYS).values(
            hash=digest(text),
            name=clean(name, 128),
            ring=clean(ring, 128),
            units=msgspec.json.encode(sorted({clean(unit, 128) for unit in units} - {""})).decode(),
            created_by=clean(by, 256),
            created=now,
            expires=now + days * DAY if days else FOREVER,
            max_uses=max_uses,
        )
    )
    return text


def find_enroll_key(c: Connection, text: str, now: int) -> EnrollKey | None:
    """Give the key that is valid now, used up or not."""
    if not is_form(text, ENROLL_KEY):
        return None
    asked = select(ENROLL_KEYS).where(
        ENROLL_KEYS.c.hash == digest(text), ENROLL_KEYS.c.revoked.is_(None), ENROLL_KEYS.c.expires > now
    )
    row = c.execute(asked).mappings().first()
    return None if row is None else _key(row)


def use_enroll_key(c: Connection, number: int, now: int) -> bool:
    """Count one use; False when the key has been used as often as it may, or has ended. Atomic."""
    done = c.execute(
        update(ENROLL_KEYS)
        .where(
            ENROLL_KEYS.c.id == number,
            ENROLL_KEYS.c.revoked.is_(None),
            ENROLL_KEYS.c.expires > now,
            or_(ENROLL_KEYS.c.max_uses == 0, ENROLL_KEYS.c.uses < ENROLL_KEYS.c.max_uses),
        )
        .values(uses=ENROLL_KEYS.c.uses + 1)
    )
    return done.rowcount == 1


def revoke_enroll_key(c: Connection, number: int, now: int) -> bool:
    """End a key; False when there is none, or it was revoked before. Tokens that it gave stay."""
    done = c.execute(
        update(ENROLL_KEYS)
        .where(ENROLL_KEYS.c.id == number, ENROLL_KEYS.c.revoked.is_(None))
        .values(revoked=now)
    )
    return done.rowcount == 1


def list_enroll_keys(c: Connection, *, after: int = 0, limit: int = 50) -> list[EnrollKey]:
    """Give keys by their number, the newest first."""
    statement = select(ENROLL_KEYS).order_by(ENROLL_KEYS.c.id.desc()).limit(limit)
    if after:
        statement = statement.where(ENROLL_KEYS.c.id < after)
    return [_key(row) for row in c.execute(statement).mappings()]


def _key(row: RowMapping) -> EnrollKey:
    values = {name: row[name] for name in EnrollKey.__struct_fields__ if name != "units"}
    return EnrollKey(units=msgspec.json.decode(row["units"] or "[]", type=tuple[str, ...]), **values)
