# SPDX-License-Identifier: Apache-2.0
"""Requests that another site makes a browser send: every route that changes something, every way to forge it."""

import pytest

from halod.console import app
from halod.console.access import Access
from halod.console.problem import Problem
from halod.console.security import csrf, sessions
from tests.console import support_people as people

EVIL = "https://evil.example"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def console(sqlite_url):
    with people.sqlite_console(sqlite_url) as made:
        yield made


def forged(token, other):
    """Every forgery: headers and body."""
    good = {"X-CSRF-Token": token}
    field = f"csrf={token}".encode()
    return {
        "no token": (people.own(), b""),
        "an empty token": ({**people.own(), "X-CSRF-Token": ""}, b"csrf="),
        "a wrong token": ({**people.own(), "X-CSRF-Token": "0" * 64}, b""),
        "another session's token": ({**people.own(), "X-CSRF-Token": other}, f"csrf={other}".encode()),
        "a token that is no text": ({**people.own(), "X-CSRF-Token": "é".encode()}, b""),
        "another site's origin": ({**good, "Origin": EVIL}, field),
        "another site's origin, fetch metadata forged": (
            {**good, "Origin": EVIL, "Sec-Fetch-Site": "same-origin"},
            field,
        ),
        "cross-site": ({**good, "Sec-Fetch-Site": "cross-site"}, field),
        "same-site": ({**good, "Sec-Fetch-Site": "same-site"}, field),
        "typed by hand": ({**good, "Sec-Fetch-Site": "none"}, field),
        "cross-site with our origin": (
            {**good, "Origin": people.ORIGIN, "Sec-Fetch-Site": "cross-site"},
            field,
        ),
        "a sandboxed frame": ({**good, "Origin": "null", "Sec-Fetch-Site": "cross-site"}, field),
        "origin null alone": ({**good, "Origin": "null"}, field),
        "another port": ({**good, "Origin": "http://127.0.0.1:9999"}, field),
        "https for http": ({**good, "Origin": "https://127.0.0.1:8640"}, field),
        "a name that begins with ours": ({**good, "Origin": "http://127.0.0.1:8640.evil.example"}, field),
        "nothing said": (good, field),
    }


def changing(console):
    return [
        route
        for route in app.table(console.settings)
        if route.method != "GET" and route.access in (Access.VIEWER, Access.OPERATOR, Access.ADMIN)
    ]


def test_every_forgery_on_every_route_that_changes_something(console):
    calls = []
    routes = changing(console)
    value = people.session(console)
    token = sessions.form_token(value)
    other = sessions.form_token(people.session(console, subject="another"))
    client = people.client(console, routes=people.probed(routes, calls))
    assert len(routes) > 8
    for route in routes:
        path = people.filled(route.path)
        for name, (headers, body) in forged(token, other).items():
            sent = {**people.cookie(value), **headers, **FORM}
            answer = client.request(route.method, path, headers=sent, content=body if route.body else b"")
            assert answer.status_code == 403, (route.path, name)
        query = client.request(
            route.method, path, params={"csrf": token}, headers={**people.cookie(value), **people.own()}
        )
        assert query.status_code == 403, "a token in an address is in logs and histories"
    assert calls == []


def test_a_form_of_our_own_passes_on_every_route(console):
    calls = []
    routes = changing(console)
    value = people.session(console)
    token = sessions.form_token(value)
    client = people.client(console, routes=people.probed(routes, calls))
    for route in routes:
        for origin in ({}, {"Origin": people.ORIGIN}):
            sent = {**people.cookie(value), **people.own(), **origin}
            if route.body:
                more = {"headers": {**sent, **FORM}, "content": f"csrf={token}".encode()}
            else:
                more = {"headers": {**sent, "X-CSRF-Token": token}}
            answer = client.request(route.method, people.filled(route.path), **more)
            assert answer.status_code == 299, route.path
    old = {**people.cookie(value), "Origin": people.ORIGIN, "X-CSRF-Token": token}
    answer = client.request(routes[0].method, people.filled(routes[0].path), headers=old)
    assert answer.status_code == 299, "a browser without fetch metadata says its origin"


def test_a_program_with_a_token_needs_neither(console):
    calls = []
    routes = [route for route in changing(console) if not route.page]
    client = people.client(console, routes=people.probed(routes, calls))
    token = people.bearer(people.api_token(console))
    for route in routes:
        assert client.request(route.method, people.filled(route.path), headers=token).status_code == 299


def test_a_cookie_beside_a_token_that_is_none_does_not_count(console):
    """Who shows a token is asked for it alone: a cookie does not help, and its protection cannot be gone around."""
    calls = []
    routes = [route for route in changing(console) if not route.page]
    client = people.client(console, routes=people.probed(routes, calls))
    sent = {**people.cookie(people.session(console)), **people.bearer("hla_" + "A" * 43)}
    for route in routes:
        assert client.request(route.method, people.filled(route.path), headers=sent).status_code == 401
    assert calls == []


def test_nobody_is_signed_in_by_another_site(console):
    """Login CSRF: a page elsewhere cannot sign a browser in with a link of the attacker's."""
    client = people.client(console)
    for headers, _ in forged("x" * 64, "y" * 64).values():
        if headers.get("Sec-Fetch-Site") == "same-origin" and headers.get("Origin") != EVIL:
            continue
        body = f"link={people.link(console)}&next=/".encode()
        answer = client.post("/login/link", headers={**headers, **FORM}, content=body)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_forms():
    assert csrf.form_fields("application/x-www-form-urlencoded; charset=utf-8", b"a=1&b=%20x&c=") == {
        "a": "1",
        "b": " x",
        "c": "",
    }
    for body in (b"\xff=1", b"a=%ff", b"&".join(b"a%d=1" % n for n in range(101))):
        with pytest.raises(Problem) as told:
            csrf.form_fields(csrf.FORM, body)
        assert told.value.status == 400
    with pytest.raises(Problem) as told:
        csrf.form_fields("text/plain", b"a=1")
    assert told.value.status == 415
