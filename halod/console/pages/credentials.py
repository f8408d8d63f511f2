# SPDX-License-Identifier: Apache-2.0
"""API tokens and enrolment keys: listed, made, revoked. A secret is shown once, in the answer to the form."""

from typing import Final

from starlette.responses import RedirectResponse, Response

from halod.console.access import Access, Role, Route
from halod.console.call import Call
from halod.console.pages import forms, links
from halod.console.pages.operate import FORM, record
from halod.console.pages.render import render
from halod.console.problem import Problem
from halod.console.security import tokens
from halod.console.store.read import findings as findings_of

_LIMIT: Final = 50
_ROLES: Final = {"viewer": Role.VIEWER, "operator": Role.OPERATOR, "admin": Role.ADMIN}
_MOST_DAYS: Final = 730
_MOST_UNITS: Final = 8


def _after(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Problem(400, "cursor is not one that this list gave")
    return int(text or 0)


def listed(call: Call) -> Response:
    """List API tokens and enrolment keys, with the forms to make one."""
    asked = links.query(call, "tokens", "keys", "done")
    now = call.console.clock.now()
    with call.console.store.read() as c:
        of_programs = tokens.list_tokens(c, kind="api", after=_after(asked["tokens"]), limit=_LIMIT + 1)
        keys = tokens.list_enroll_keys(c, after=_after(asked["keys"]), limit=_LIMIT + 1)
        rings = [row.value for row in findings_of.prevalence(c, "ring", limit=50).rows]
    return render(
        call,
        "tokens.html",
        here="tokens",
        asked=asked,
        tokens=of_programs[:_LIMIT],
        tokens_next=str(of_programs[_LIMIT - 1].id) if len(of_programs) > _LIMIT else "",
        keys=keys[:_LIMIT],
        keys_next=str(keys[_LIMIT - 1].id) if len(keys) > _LIMIT else "",
        roles=_ROLES,
        rings=sorted(set(rings)),
        soon=now + 14 * tokens.DAY,
        most_days=_MOST_DAYS,
    )


def make_token(call: Call) -> Response:
    """Make an API token and show it once."""
    given = forms.fields(call)
    name = forms.name(given, "name", "a token")
    role = _ROLES.get(given.get("role", ""))
    if role is None:
        raise Problem(422, "a token has one of the roles viewer, operator and admin")
    days = forms.number(given, "days", "days", least=1, most=_MOST_DAYS)
    now = call.console.clock.now()
    with call.console.store.write() as c:
        secret = tokens.issue_api(c, name=name, role=role, now=now, days=days, by=call.actor.name)
        record(call, c, "token.create", name, kind="api", role=role.name.lower(), days=days)
    return render(call, "made.html", 201, here="tokens", what="token", name=name, secret=secret)


def make_key(call: Call) -> Response:
    """Make an enrolment key and show it once."""
    given = forms.fields(call)
    name = forms.name(given, "name", "a key")
    ring = forms.optional(given, "ring", "ring")
    units = sorted({unit.strip() for unit in forms.optional(given, "units", "units").split(",")} - {""})
    if len(units) > _MOST_UNITS:
        raise Problem(422, f"a key gives at most {_MOST_UNITS} units")
    days = forms.number(given, "days", "days", least=1, most=_MOST_DAYS)
    uses = forms.number(given, "uses", "uses", least=0, most=1_000_000)
    now = call.console.clock.now()
    with call.console.store.write() as c:
        secret = tokens.new_enroll_key(
            c, name=name, ring=ring, units=units, now=now, days=days, max_uses=uses, by=call.actor.name
        )
        record(call, c, "enroll-key.create", name, ring=ring, units=", ".join(units), days=days, uses=uses)
    return render(call, "made.html", 201, here="tokens", what="enrolment key", name=name, secret=secret)


def revoke_token(call: Call) -> Response:
    """End an API token."""
    number = forms.row_id(call, "token")
    with call.console.store.write() as c:
        ours = tokens.list_tokens(c, kind="api", after=number + 1, limit=1)
        if not (ours and ours[0].id == number):
            raise Problem(404, "there is no such token")
        if tokens.revoke(c, number, call.console.clock.now()):
            record(call, c, "token.revoke", ours[0].name, kind="api", number=number)
    return RedirectResponse("/tokens?done=revoked", 303)


def revoke_key(call: Call) -> Response:
    """End an enrolment key; the tokens that it gave stay."""
    number = forms.row_id(call, "key")
    with call.console.store.write() as c:
        ours = tokens.list_enroll_keys(c, after=number + 1, limit=1)
        if not (ours and ours[0].id == number):
            raise Problem(404, "there is no such key")
        if tokens.revoke_enroll_key(c, number, call.console.clock.now()):
            record(call, c, "enroll-key.revoke", ours[0].name, number=number)
    return RedirectResponse("/tokens?done=revoked", 303)


ROUTES: Final = (
    Route(method="GET", path="/tokens", name="tokens", access=Access.ADMIN, endpoint=listed, page=True),
    Route(
        method="POST",
        path="/tokens",
        name="token-make",
        access=Access.ADMIN,
        endpoint=make_token,
        page=True,
        body=FORM,
    ),
    Route(
        method="POST",
        path="/tokens/{token}/revoke",
        name="token-revoke",
        access=Access.ADMIN,
        endpoint=revoke_token,
        page=True,
        body=FORM,
    ),
    Route(
        method="POST",
        path="/enroll-keys",
        name="enroll-key-make",
        access=Access.ADMIN,
        endpoint=make_key,
        page=True,
        body=FORM,
    ),
    Route(
        method="POST",
        path="/enroll-keys/{key}/revoke",
        name="enroll-key-revoke",
        access=Access.ADMIN,
        endpoint=revoke_key,
        page=True,
        body=FORM,
    ),
)
