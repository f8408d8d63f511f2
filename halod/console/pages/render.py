# SPDX-License-Identifier: Apache-2.0
"""From a template and what it shows to an answer. Every page goes through `render`.

Invariants:

1. Everything that is not markup of ours is escaped: autoescape is on for every template, and a name that a
   template uses and nobody gave is an error, never an empty place.
2. A page carries no script and no style of its own, so the strictest Content-Security-Policy holds. A page with the
   box that computes hashes is `sealed`: by a policy of its own, beside the gate's, it can send no form at all.
3. `error_page` asks nothing but the call: it works when the database does not.
"""

import functools
import os
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from halod.console.access import Role
from halod.console.call import Call
from halod.console.pages import assets, links, text, words
from halod.console.problem import Problem

SEALED: Final = "form-action 'none'; connect-src 'none'"
"""The policy of a page that may send no form; it stands beside that of every page (`security.headers`)."""
THEME_COOKIE: Final = "theme"
THEMES: Final = ("light", "dark")
"""What the cookie may say; without it the browser's own preference counts."""


class Place(msgspec.Struct, frozen=True):
    """An entry of the navigation."""

    key: str
    label: str
    path: str
    role: Role = Role.VIEWER
    group: str = "fleet"


PLACES: Final = (
    Place("overview", "Overview", "/"),
    Place("findings", "Findings", "/findings"),
    Place("devices", "Devices", "/devices"),
    Place("coverage", "Coverage gaps", "/coverage"),
    Place("registry", "Registry", "/registry"),
    Place("activity", "Activity", "/activity"),
    Place("enrolments", "Enrolments", "/enrolments", group="console"),
    Place("webhooks", "Webhooks", "/webhooks", group="console"),
    Place("tokens", "Tokens and keys", "/tokens", Role.ADMIN, "console"),
    Place("audit", "Audit log", "/audit", Role.ADMIN, "console"),
)


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(os.path.join(os.path.dirname(__file__), "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "brief": text.brief,
        "claim": text.claim,
        "exactly": text.exactly,
        "full": text.full,
        "harness": words.harness,
        "num": text.number,
        "plural": words.plural,
        "shown": text.escaped,
        "short": text.short,
        "unfold": text.unfold,
    }
    made.globals |= {
        "Role": Role,
        "asset": assets.address,
        "link": links.link,
        "device_page": links.device,
        "enrolment": links.enrolment,
        "entry_page": links.entry,
        "W": words,
    }
    return made


_ENVIRONMENT: Final = _environment()


def theme(call: Call) -> str:
    """Give the theme that this browser has chosen, "" for none."""
    chosen = call.request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


def render(call: Call, template: str, status: int = 200, *, sealed: bool = False, **context: Any) -> Response:  # noqa: ANN401 templates take anything
    """Give a page. `template` is a file of `templates/`; `context` what it shows.

    Args:
        call: the request; its actor decides what the navigation offers.
        template: name of the template.
        status: of the answer.
        sealed: the page may send no form: it has a box for what must not leave the browser.
        **context: values by name.
    """
    now = call.console.clock.now()
    shared = {
        "me": call.actor,
        "now": now,
        "when": functools.partial(text.when, now=now),
        "theme": theme(call),
        "places": [place for place in PLACES if call.actor.role >= place.role],
        "here": "",
        "csrf": call.actor.csrf,
    }
    body = _ENVIRONMENT.get_template(template).render({**shared, **context})
    return HTMLResponse(body, status, {"Content-Security-Policy": SEALED} if sealed else None)


def error_page(call: Call, problem: Problem) -> Response:
    """Give the page of an error; it needs no store and no session."""
    title, advice = words.PROBLEMS.get(problem.status, (problem.title, "Go back and try again."))
    answer = render(
        call,
        "error.html",
        problem.status,
        title=title,
        advice=advice,
        detail=problem.detail,
        status_code=problem.status,
    )
    answer.headers.update(problem.headers)
    return answer
