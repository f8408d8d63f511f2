# SPDX-License-Identifier: Apache-2.0
"""Every route with every credential there is and with none: generated from the table of routes."""

import msgspec
import pytest

from halod.console import app
from halod.console.access import Access, Role
from halod.console.security import sessions, tokens
from halod.console.security.oidc.provider import Provider
from halod.console.settings import Oidc
from tests.console import support_people as people

OIDC = Oidc(issuer="https://id.acme.example", client_id="halo", admin_groups=("admins",))
HTTPS = "https://halo.acme.example"
PUBLIC = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/api/v1/policy"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/favicon.ico"),
    ("GET", "/static/{digest}/{name}"),
    ("GET", "/login"),
    ("POST", "/login/link"),
    ("GET", "/login/oidc"),
    ("GET", "/login/oidc/return"),
}
"""What anybody may ask. A route that joins them is a decision: it is added here, with a reason to be."""
JSON = {"Content-Type": "application/json"}
NEEDED = {Access.VIEWER: Role.VIEWER, Access.OPERATOR: Role.OPERATOR, Access.ADMIN: Role.ADMIN}


@pytest.fixture
def console(sqlite_url):
    with people.sqlite_console(sqlite_url, public_url=HTTPS, oidc=OIDC) as made:
        yield made


def table(console):
    return app.table(console.settings, provider=Provider(OIDC, console.clock))


def credentials(console):
    """Every credential by name: its headers, the role that it has, and what it opens."""
    clock, store = console.clock, console.store
    found = {"nothing": ({}, Role.NONE, "")}
    provider = sessions.providers(console.settings)[-1]
    for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):
        name = role.name.lower()
        value = people.session(console, role, subject=name, provider=provider)
        found[f"session {name}"] = (people.cookie(value, https=True), role, "session")
        found[f"api token {name}"] = (people.bearer(people.api_token(console, role)), role, "token")
    now = clock.now()
    with store.write() as c:
        device = tokens.issue_device(c, device="d1", install_id="i1", now=now, days=30, by="test")
        key = tokens.new_enroll_key(c, name="k", now=now, days=30, by="test")
        revoked = tokens.issue_api(c, name="revoked", role=Role.ADMIN, now=now, days=30, by="test")
        tokens.revoke(c, tokens.list_tokens(c, kind="api", limit=1)[0].id, now)
        expired = tokens.issue_api(
            c, name="expired", role=Role.ADMIN, now=now - 40 * 86400, days=30, by="test"
        )
    ended = people.session(console, provider=provider)
    with store.write() as c:
        sessions.end(c, ended)
    with store.write() as c:
        settings = console.settings
        common = {"subject": "s", "name": "n", "role": Role.ADMIN, "provider": provider}
        idle = sessions.create(c, settings, now=now - settings.session_idle, **common)
        other = sessions.create(c, settings, now=now, **{**common, "provider": "oidc:of-other-settings"})
    admin = found["api token admin"][0]["Authorization"].partition(" ")[2]
    cookie = found["session admin"][0]["Cookie"].partition("=")[2]
    wrong = {
        "device token": people.bearer(device),
        "enrolment key": people.bearer(key),
        "login link as a token": people.bearer(people.link(console)),
        "revoked api token": people.bearer(revoked),
        "expired api token": people.bearer(expired),
        "api token that was changed": people.bearer(admin[:-1] + ("A" if admin[-1] != "A" else "B")),
        "api token, basic": {"Authorization": f"Basic {admin}"},
        "empty bearer": {"Authorization": "Bearer "},
        "session as a token": people.bearer(cookie),
        "api token as a cookie": people.cookie(admin, https=True),
        "session in the cookie of http": people.cookie(cookie),
        "ended session": people.cookie(ended, https=True),
        "idle session": people.cookie(idle, https=True),
        "session of other settings": people.cookie(other, https=True),
        "a session's hash": people.cookie(sessions.digest(cookie), https=True),
    }
    return found | {name: (headers, Role.NONE, "") for name, headers in wrong.items()}


def may(route, role, kind):
    """Whether somebody with this credential is let in, by the table alone."""
    if route.access is Access.PUBLIC:
        return True
    return role >= NEEDED[route.access] and not (kind == "token" and route.page)


def test_every_route_with_every_credential(console):
    calls = []
    routes = [route for route in table(console) if route.access not in (Access.DEVICE, Access.ENROLL_KEY)]
    everybody = credentials(console)
    assert len(routes) > 20
    assert len(everybody) > 20
    client = people.client(console, routes=people.probed(routes, calls), base=HTTPS)
    wrong = []
    for route in routes:
        for name, (headers, role, kind) in everybody.items():
            token = {}
            if kind == "session" and route.method != "GET":
                token = {"X-CSRF-Token": sessions.form_token(headers["Cookie"].partition("=")[2])}
            calls.clear()
            sent = {**people.own(), **headers, **token}
            answer = client.request(route.method, people.filled(route.path), headers=sent)
            allowed = may(route, role, kind)
            good = bool(calls) == allowed == (answer.status_code == 299)
            if not allowed:
                good = good and refusal(route, role, kind) == (
                    answer.status_code,
                    answer.headers.get("location", "").partition("?")[0],
                )
            if not good:
                wrong.append((route.method, route.path, name, answer.status_code))
    assert wrong == []


def refusal(route, role, kind):
    """How somebody is refused: 403 who is known, 401 or the way to sign in who is not."""
    if role is not Role.NONE and not (kind == "token" and route.page):
        return 403, ""
    return (303, "/login") if route.page else (401, "")


def test_only_these_are_public(console):
    assert {(route.method, route.path) for route in table(console) if route.access is Access.PUBLIC} <= PUBLIC


def test_devices_have_their_own_doors_and_no_others(console):
    found = {
        (route.method, route.path) for route in table(console) if route.access not in {*NEEDED, Access.PUBLIC}
    }
    assert found | set(app.RAW) == {("POST", "/api/v1/enroll"), ("POST", "/api/v1/fleet/report")}


@pytest.mark.parametrize(
    ("path", "key"), [("/api/v1/enroll", "enrolment key"), ("/api/v1/fleet/report", "device token")]
)
def test_a_devices_door_opens_to_its_own_kind_only(console, path, key):
    everybody = credentials(console)
    routes = table(console)
    client = people.client(console, routes=routes, base=HTTPS)
    for name, (headers, _role, _kind) in everybody.items():
        if name == key:
            continue
        answer = client.post(path, headers={**JSON, **headers}, content=b"{}")
        assert answer.status_code == 401, name
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_state_changing_route_is_never_a_get(console):
    """Links and previews change nothing."""
    from tests.console.support_people import filled

    allowed = {"/login/oidc", "/login/oidc/return"}
    names = ("retry", "delete", "revoke", "accept", "refuse", "logout", "discard", "create")
    for route in table(console):
        if route.method == "GET" and route.path not in allowed:
            assert not any(name in filled(route.path) for name in names), route.path


def test_a_route_has_to_say_who_may():
    with pytest.raises(TypeError, match="access"):
        app.Route(method="GET", path="/x", name="x", endpoint=print)


def test_two_routes_cannot_have_one_address(console):
    routes = table(console)
    seen = [(route.method, route.path) for route in routes]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "DELETE", "PROPFIND"])
def test_other_methods_do_not_slip_past_the_gate(console, method):
    calls = []
    routes = people.probed(table(console), calls)
    client = people.client(console, routes=routes, base=HTTPS)
    methods = {}
    for route in routes:
        methods.setdefault(route.path, set()).add(route.method)
    for path, known in methods.items():
        if method in known or path == "/api/v1/fleet/report":
            continue
        calls.clear()
        answer = client.request(method, people.filled(path), headers=people.own())
        public = any(
            route.path == path and route.method == "GET" and route.access is Access.PUBLIC for route in routes
        )
        if method == "HEAD" and "GET" in known:
            assert bool(calls) == public, path
        else:
            assert answer.status_code == 405, path
            assert not calls
            assert "GET" in answer.headers["allow"] or "GET" not in known


def test_a_role_that_nobody_knows_is_none(console):
    """A row that somebody wrote by hand lets nobody in."""
    from sqlalchemy import update

    from halod.console.store.schema import SESSIONS

    value = people.session(console)
    with console.store.write() as c:
        c.execute(update(SESSIONS).values(role="root"))
    client = people.client(console, base=HTTPS)
    assert (
        client.get("/devices", headers=people.cookie(value, https=True))
        .headers["location"]
        .startswith("/login")
    )


def test_errors_say_nothing_of_the_console(console):
    """A fault inside is a 500 without its text."""

    def broken(call):
        raise ValueError("CANARY-of-a-fault")

    routes = [
        msgspec.structs.replace(route, endpoint=broken)
        for route in table(console)
        if route.access is Access.PUBLIC
    ]
    client = people.client(console, routes=routes, base=HTTPS)
    for route in routes:
        answer = client.request(route.method, people.filled(route.path), headers=people.own())
        assert answer.status_code == 500
        assert "CANARY" not in answer.text
