# SPDX-License-Identifier: Apache-2.0
"""Sessions: begun at a login, ended by time, by hand and by changed settings; never taken over."""

import http.cookies

import msgspec
import pytest
from sqlalchemy import select

from halod.console.access import Role
from halod.console.security import sessions
from halod.console.settings import Oidc
from halod.console.store.schema import AUDIT, LOGINS, SESSIONS
from tests.console import support_people as people
from tests.console.test_csrf import FORM


@pytest.fixture
def console(sqlite_url):
    with people.sqlite_console(sqlite_url, session_idle=1000, session_absolute=5000) as made:
        yield made


def sign_in(console, client, *, before=""):
    body = f"link={people.link(console)}&next=/devices".encode()
    more = people.cookie(before) if before else {}
    answer = client.post("/login/link", headers={**people.own(), **FORM, **more}, content=body)
    assert answer.status_code == 303
    return answer


def value_of(answer, name="halo"):
    return http.cookies.SimpleCookie(answer.headers["set-cookie"])[name]


def is_in(client, value, **more):
    return client.get("/account", headers={**people.cookie(value), **more}).status_code == 200


def test_a_login_gives_a_cookie_that_scripts_cannot_read_and_sites_cannot_send(console):
    answer = sign_in(console, people.client(console))
    morsel = value_of(answer)
    assert morsel["httponly"] is True
    assert (morsel["samesite"], morsel["path"], morsel["domain"], morsel["max-age"]) == (
        "Lax",
        "/",
        "",
        "5000",
    )
    assert answer.headers["location"] == "/devices"


def test_by_https_the_cookie_is_bound_to_this_host(store):
    console = people.make_console(store, public_url="https://halo.acme.example")
    client = people.client(console, base="https://halo.acme.example")
    answer = sign_in(console, client)
    morsel = value_of(answer, "__Host-halo")
    assert morsel["secure"] is True
    assert morsel["domain"] == ""
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    assert client.get("/account", headers=people.cookie(morsel.value, https=True)).status_code == 200
    assert client.get("/account", headers=people.cookie(morsel.value)).status_code == 303


def test_the_database_holds_nothing_that_signs_in(console):
    client = people.client(console)
    value = value_of(sign_in(console, client)).value
    token = sessions.form_token(value)
    link = people.link(console)
    with console.store.read() as c:
        kept = repr([*c.execute(select(SESSIONS)), *c.execute(select(LOGINS)), *c.execute(select(AUDIT))])
    for secret in (value, value.removeprefix("hls_"), token, link, link.removeprefix("hll_")):
        assert secret not in kept


def test_a_session_cannot_be_fixed_beforehand(console):
    """A cookie that an attacker planted is worth nothing before and after the victim signs in."""
    client = people.client(console)
    planted = "hls_" + "A" * 43
    answer = sign_in(console, client, before=planted)
    assert value_of(answer).value != planted
    assert not is_in(client, planted)


def test_a_login_ends_the_session_before_it(store):
    console = people.make_console(store)
    client = people.client(console)
    first = value_of(sign_in(console, client)).value
    second = value_of(sign_in(console, client, before=first)).value
    assert first != second
    assert not is_in(client, first)
    assert is_in(client, second)


def test_a_session_ends_when_it_is_idle(console):
    client, value = people.client(console), people.session(console)
    console.clock.pass_(999)
    assert is_in(client, value)
    console.clock.pass_(999)
    assert is_in(client, value), "using it keeps it"
    console.clock.pass_(1000)
    assert not is_in(client, value)


def test_a_session_ends_whether_used_or_not(console):
    client, value = people.client(console), people.session(console)
    for _ in range(10):
        console.clock.pass_(499)
        assert is_in(client, value)
    console.clock.pass_(10)
    assert not is_in(client, value)


def test_signing_out_ends_this_session_only(console):
    client = people.client(console)
    here, there = people.session(console), people.session(console)
    sent = {**people.cookie(here), **people.own(), "X-CSRF-Token": sessions.form_token(here)}
    answer = client.post("/logout", headers=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?left")
    assert value_of(answer)["max-age"] == "0"
    assert not is_in(client, here)
    assert is_in(client, there)


def test_signing_out_everywhere_ends_every_session_of_that_person(store):
    console = people.make_console(store)
    client = people.client(console)
    here, there = people.session(console), people.session(console)
    other = people.session(console, subject="somebody else")
    sent = {**people.cookie(here), **people.own(), "X-CSRF-Token": sessions.form_token(here)}
    assert client.post("/logout/everywhere", headers=sent).status_code == 303
    assert [is_in(client, value) for value in (here, there, other)] == [False, False, True]
    with console.store.read() as c:
        lines = c.execute(select(AUDIT.c.action, AUDIT.c.actor)).all()
    assert ("logout.everywhere", "somebody") in [tuple(line) for line in lines]


def test_a_session_ends_when_the_settings_map_groups_otherwise(store):
    oidc = Oidc(issuer="https://id.acme.example", client_id="halo", admin_groups=("a",), viewer_groups=("v",))
    before = people.make_console(store, oidc=oidc, public_url="https://halo.acme.example")
    value = people.session(before, provider=sessions.providers(before.settings)[-1])
    moved = msgspec.structs.replace(oidc, admin_groups=("b",), ca_file="/etc/other.pem")
    with store.read() as c:
        assert sessions.find(c, before.settings, value, now=people.NOW) is not None
        same = msgspec.structs.replace(
            before.settings, oidc=msgspec.structs.replace(oidc, ca_file="/etc/other.pem")
        )
        assert sessions.find(c, same, value, now=people.NOW) is not None
        for other in (moved, None):
            changed = msgspec.structs.replace(before.settings, oidc=other)
            assert sessions.find(c, changed, value, now=people.NOW) is None


def test_what_has_ended_is_forgotten(store):
    console = people.make_console(store, session_idle=1000, session_absolute=5000)
    people.session(console)
    console.clock.pass_(500)
    people.session(console)
    console.clock.pass_(600)
    with console.store.write() as c:
        assert sessions.prune(c, console.settings, now=console.clock.now()) == 1
        assert len(c.execute(select(SESSIONS)).all()) == 1


def test_use_is_written_once_a_minute(console):
    client, value = people.client(console), people.session(console)

    def used():
        with console.store.read() as c:
            return c.execute(select(SESSIONS.c.used)).scalar()

    console.clock.pass_(59)
    is_in(client, value)
    assert used() == people.NOW
    console.clock.pass_(1)
    is_in(client, value)
    assert used() == people.NOW + 60


@pytest.mark.parametrize(
    "value", ["", "x", "hls_", "hls_" + "A" * 42, "hls_" + "é" * 43, "hls_" + "A" * 4000]
)
def test_what_is_no_cookie_of_ours_asks_no_database(console, value):
    with console.store.read() as c:
        assert sessions.find(c, console.settings, value, now=people.NOW) is None


def test_a_person_is_sent_back_to_where_they_were(console):
    client = people.client(console)
    answer = client.get("/devices?state=silent&q=a%26b")
    assert answer.status_code == 303
    page = client.get(answer.headers["location"])
    assert "/devices?state=silent" in page.text or "devices%3Fstate" in answer.headers["location"]
    assert client.get("/").headers["location"] == "/login"
    value = people.session(console, Role.VIEWER)
    there = client.get("/login?next=/devices", headers=people.cookie(value))
    assert (there.status_code, there.headers["location"]) == (303, "/devices")
