# SPDX-License-Identifier: Apache-2.0
"""Names under which the console answers, who a client is behind proxies, and headers of every answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.console.access import Access, Route
from halod.console.security import gate
from halod.console.security.headers import CSP
from halod.console.security.site import site
from halod.console.settings import Limits, Settings
from tests.console import support_people as people

ANSWERED = (200, 503)
"""Of the health check, which says what does not run; nothing runs beside these tests."""


def place(**settings):
    return site(Settings(database_url="", **settings))


@pytest.fixture
def console(sqlite_url):
    with people.sqlite_console(sqlite_url) as made:
        yield made


# --- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1:8640", "localhost:8640", "LOCALHOST:8640", "[::1]:8640"])
def test_this_machine_answers_to_its_own_names(console, host):
    client = people.client(console)
    assert client.get("/login", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8640", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:8640", "", "127.1:8640",
        "localhost:8640.evil.example", "0.0.0.0:8640", "localhost.:8640", "2130706433:8640", "127.0.0.1:8640@evil.example",
    ],
)  # fmt: skip
def test_a_rebound_name_reaches_nothing(console, host):
    """DNS rebinding: a page whose name now points here is told so, with or without a session."""
    client = people.client(console)
    sent = {**people.cookie(people.session(console)), "Host": host}
    for path in ("/", "/devices", "/api/v1/policy", "/login", "/static/x/y"):
        answer = client.get(path, headers=sent)
        assert answer.status_code == 421
        assert "set-cookie" not in answer.headers
    assert client.post("/api/v1/fleet/report", headers={"Host": host}).status_code == 421
    assert client.get("/healthz", headers=sent).status_code in ANSWERED


def test_two_names_are_none(console):
    import asyncio

    from halod.console import app

    application = app.build(console, jobs=False)
    said = []

    async def ask(headers):
        scope = {
            "type": "http", "method": "GET", "path": "/login", "raw_path": b"/login", "query_string": b"", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8640), "scheme": "http", "root_path": "", "state": {},
        }  # fmt: skip

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            said.append(message)

        await application(scope, receive, send)

    asyncio.run(ask([(b"host", b"127.0.0.1:8640"), (b"host", b"evil.example")]))
    asyncio.run(ask([]))
    assert [message["status"] for message in said if message["type"] == "http.response.start"] == [421, 421]


def test_a_public_address_has_its_name_only():
    found = place(
        public_url="https://halo.acme.example", hosts=("halo.internal:8640",), listen="127.0.0.1:8640"
    )
    assert found.https
    assert found.allows("halo.acme.example")
    assert found.allows("Halo.Acme.Example:443")
    assert found.allows("halo.internal:8640")
    assert not found.allows("127.0.0.1:8640")
    assert not found.allows("halo.acme.example:8443")
    assert found.origin("halo.acme.example") == "https://halo.acme.example"


def test_https_is_what_the_settings_say_and_no_header(console):
    client = people.client(console)
    sent = {
        "X-Forwarded-Proto": "https",
        "Forwarded": "proto=https;for=1.2.3.4",
        "X-Forwarded-Host": "evil.example",
    }
    answer = client.get("/login", headers=sent)
    assert answer.status_code == 200
    assert "strict-transport-security" not in answer.headers
    assert "evil.example" not in answer.text


# --- addresses ---------------------------------------------------------------------------------------------

PROXIES = {"proxies": ("10.0.0.0/8", "2001:db8::/32"), "public_url": "https://halo.acme.example"}


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.1", ["1.1.1.1"], "192.0.2.1"),
        ("10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1, 10.0.0.2"], "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6", "1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["1.1.1.1, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1, "], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1:4711"], "1.1.1.1"),
        ("10.0.0.1", ["[2001:4860::1]:4711"], "2001:4860::1"),
        ("10.0.0.1", ["::ffff:1.1.1.1"], "1.1.1.1"),
        ("::ffff:10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
        ("2001:db8::1", ["1.1.1.1"], "1.1.1.1"),
        ("", ["1.1.1.1"], ""),
        ("10.0.0.1", [", ".join(["6.6.6.6"] * 10_000 + ["1.1.1.1"])], "1.1.1.1"),
        ("10.0.0.1", ["\x00"], "10.0.0.1"),
    ],
)
def test_a_client_is_who_the_nearest_declared_proxy_says(peer, forwarded, address):
    assert place(**PROXIES).address(peer, forwarded) == address


@given(st.text(max_size=40), st.lists(st.text(max_size=200), max_size=4))
def test_whatever_headers_say_an_address_is_one_or_none(peer, forwarded):
    import ipaddress

    found = place(**PROXIES).address(peer, forwarded)
    assert found == "" or ipaddress.ip_address(found)


def test_behind_a_proxy_nobody_else_is_heard(sqlite_url):
    with people.sqlite_console(sqlite_url, listen="0.0.0.0:8640", **PROXIES) as console:
        base = "https://halo.acme.example"
        got = {
            address: people.client(console, address=address, base=base).get("/login").status_code
            for address in ("10.1.2.3", "127.0.0.1", "192.0.2.1", "11.0.0.1")
        }
        assert got == {"10.1.2.3": 200, "127.0.0.1": 200, "192.0.2.1": 403, "11.0.0.1": 403}
        direct = people.client(console, address="192.0.2.1", base=base)
        assert direct.get("/healthz").status_code in ANSWERED
        assert direct.get("/login", headers={"X-Forwarded-For": "10.1.2.3"}).status_code == 403


def test_limits_go_by_the_client_not_by_the_proxy(sqlite_url):
    with people.sqlite_console(sqlite_url, limits=Limits(requests_per_minute=3), **PROXIES) as console:
        client = people.client(console, address="10.1.2.3", base="https://halo.acme.example")

        def ask(address):
            return client.get("/login", headers={"X-Forwarded-For": f"9.9.9.9, {address}"}).status_code

        assert [ask("192.0.2.1") for _ in range(5)] == [200, 200, 200, 429, 429]
        assert ask("192.0.2.2") == 200
        assert client.get("/healthz", headers={"X-Forwarded-For": "192.0.2.1"}).status_code in ANSWERED
        console.clock.pass_(20)
        assert ask("192.0.2.1") == 200


# --- headers -----------------------------------------------------------------------------------------------


def test_every_answer_has_every_header(console):
    client = people.client(console)
    everything = ["/", "/login", "/nothing", "/api/v1/nothing", "/healthz", "/api/v1/policy", "/metrics"]
    for path in everything:
        answer = client.get(path)
        headers = answer.headers
        assert CSP in headers.get_list("content-security-policy"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "camera=()" in headers["permissions-policy"]
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers
    refused = client.get("/login", headers={"Host": "evil.example"})
    assert refused.headers["x-content-type-options"] == "nosniff"


def test_what_is_private_is_kept_by_nobody(console):
    client, mine = people.client(console), people.cookie(people.session(console))
    for path in ("/", "/devices", "/findings", "/audit", "/account", "/login", "/metrics", "/nothing"):
        assert "no-store" in client.get(path, headers=mine).headers["cache-control"], path


def test_an_endpoints_policy_stands_beside_ours_and_its_other_headers_do_not(console):
    from starlette.responses import Response

    def endpoint(call):
        return Response(
            headers={"Content-Security-Policy": "form-action 'none'", "X-Frame-Options": "ALLOWALL"}
        )

    route = Route(method="GET", path="/x", name="x", access=Access.PUBLIC, endpoint=endpoint)
    answer = people.client(console, routes=[route]).get("/x")
    assert answer.headers.get_list("content-security-policy") == ["form-action 'none'", CSP]
    assert answer.headers.get_list("x-frame-options") == ["DENY"]


# --- errors ------------------------------------------------------------------------------------------------


def test_errors_are_pages_for_people_and_documents_for_programs(console):
    client, mine = people.client(console), people.cookie(people.session(console))
    page = client.get("/nothing", headers={**mine, "Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    for path in ("/nothing", "/api/v1/nothing"):
        answer = client.get(path, headers={**mine, "Accept": "application/json"})
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == 404
    answer = client.post("/devices", headers=mine)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_body_that_is_not_asked_for_is_refused(console):
    client, mine = people.client(console), people.cookie(people.session(console))
    assert client.request("GET", "/devices", headers=mine, content=b"x").status_code == 413
    assert client.post("/login/link", content=b"x" * 5000).status_code == 413

    def pieces():
        yield b"x" * 3000
        yield b"x" * 3000

    class Stream:
        async def __aiter__(self):
            for piece in pieces():
                yield piece

    assert client.post("/login/link", content=Stream()).status_code == 413
    assert client.post("/login/link", headers={"Content-Length": "-1"}, content=b"x").status_code == 400


def test_an_outage_of_the_database_is_told(console):
    from sqlalchemy.exc import OperationalError

    def endpoint(call):
        raise OperationalError("SELECT 'CANARY'", {}, Exception("CANARY"))

    route = Route(method="GET", path="/x", name="x", access=Access.PUBLIC, endpoint=endpoint)
    answer = people.client(console, routes=[route]).get("/x")
    assert answer.status_code == 503
    assert "CANARY" not in answer.text


def test_a_console_that_has_too_much_to_do_says_when_to_come_again(console, monkeypatch):
    monkeypatch.setattr(gate, "WAITING", 0)
    answer = people.client(console).get("/api/v1/policy")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_an_error_page_that_fails_does_not_hide_the_error(console, monkeypatch):
    from halod.console import pages

    monkeypatch.setattr(pages, "error_page", lambda call, problem: 1 / 0)
    answer = people.client(console).get("/nothing", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
