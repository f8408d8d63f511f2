# SPDX-License-Identifier: Apache-2.0
"""What is about the person: their account and theme, and the audit log of everybody's doings."""

from typing import Final

import msgspec
from starlette.responses import RedirectResponse, Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.pages import links, text
from halod.console.pages.forms import fields
from halod.console.pages.render import THEME_COOKIE, THEMES, render
from halod.console.pages.words import ACTIONS
from halod.console.security import sessions
from halod.console.security.site import site
from halod.console.store.read import audit as audit_of

_YEAR: Final = 365 * 86_400


class Line(msgspec.Struct, frozen=True):
    """A line of the audit log, its detail taken apart."""

    row: audit_of.AuditRow
    detail: tuple[tuple[str, str], ...]


def account(call: Call) -> Response:
    """Show who is signed in, and offer theme and signing out."""
    return render(call, "account.html", here="account", saved=links.query(call, "saved")["saved"])


def choose_theme(call: Call) -> Response:
    """Keep the theme in a cookie of this browser, or forget it."""
    chosen = fields(call).get("theme", "")
    response = RedirectResponse("/account?saved=theme", 303)
    https = site(call.console.settings).https
    known = chosen in THEMES
    cookie = sessions.set_cookie(
        THEME_COOKIE, chosen if known else "", https=https, max_age=_YEAR if known else 0
    )
    response.headers.append("set-cookie", cookie)
    return response


def action_words(action: str) -> str:
    """Give an action in words."""
    return ACTIONS.get(action, action)


def audit(call: Call) -> Response:
    """Show the audit log, newest first."""
    asked = links.query(call, "action", "actor", "cursor")
    with call.console.store.read() as c:
        page = audit_of.audit(c, action=asked["action"], actor=asked["actor"], cursor=asked["cursor"])
    lines = tuple(Line(row, _detail(row.detail)) for row in page.rows)
    offered = sorted(set(ACTIONS) | {row.action for row in page.rows} | ({asked["action"]} - {""}))
    return render(
        call,
        "audit.html",
        here="audit",
        page=page,
        lines=lines,
        asked=asked,
        action_words=action_words,
        offered=offered,
    )


def _detail(written: str) -> tuple[tuple[str, str], ...]:
    try:
        found = msgspec.json.decode(written.encode(), type=dict[str, str | int | float | bool | None])
    except msgspec.MsgspecError:
        return (("detail", written),) if written else ()
    return tuple((name, _told(name, value)) for name, value in found.items() if value != "")


def _told(name: str, value: object) -> str:
    """Give a value in words; `expires` is a time in seconds."""
    if name == "expires" and isinstance(value, int) and 0 < value < text.LAST:
        return text.date(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


ROUTES: Final = (
    Route(method="GET", path="/account", name="account", access=Access.VIEWER, endpoint=account, page=True),
    Route(
        method="POST",
        path="/account/theme",
        name="theme",
        access=Access.VIEWER,
        endpoint=choose_theme,
        page=True,
        body=4096,
    ),
    Route(method="GET", path="/audit", name="audit-page", access=Access.ADMIN, endpoint=audit, page=True),
)
