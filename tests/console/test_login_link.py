# SPDX-License-Identifier: Apache-2.0
"""One-time links: once, for a quarter of an hour, by a button, whoever races for it."""

import threading

import pytest
from sqlalchemy import select

from halod.console.security import login
from halod.console.settings import Limits
from halod.console.store.schema import AUDIT, LOGINS
from tests.console import support_people as people
from tests.console.test_csrf import FORM


@pytest.fixture
def console(sqlite_url):
    with people.sqlite_console(sqlite_url) as made:
        yield made


def use(client, token, target="/"):
    body = f"link={token}&next={target}".encode()
    return client.post("/login/link", headers={**people.own(), **FORM}, content=body)


def test_a_preview_does_not_use_a_link_up(console):
    client, token = people.client(console), people.link(console)
    for method in ("GET", "HEAD", "GET"):
        answer = client.request(method, f"/login?link={token}")
        assert answer.status_code == 200
        assert "set-cookie" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert use(client, token).status_code == 303


def test_a_link_works_once_and_makes_an_administrator(console):
    client, token = people.client(console), people.link(console)
    first = use(client, token)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    again = use(client, token)
    assert again.status_code == 403
    assert "set-cookie" not in again.headers
    assert "used before" in again.text
    value = first.headers["set-cookie"].partition("=")[2].partition(";")[0]
    assert client.get("/audit", headers=people.cookie(value)).status_code == 200
    with console.store.read() as c:
        line = c.execute(select(AUDIT)).mappings().one()
    assert (line["action"], line["actor"], line["address"]) == ("login", login.NAME, "127.0.0.1")
    assert token not in str(line)


def test_a_link_ends_after_a_quarter_of_an_hour(store):
    console = people.make_console(store)
    client, token, late = people.client(console), people.link(console), people.link(console)
    console.clock.pass_(login.LINK_SECONDS - 1)
    assert use(client, token).status_code == 303
    console.clock.pass_(1)
    assert use(client, late).status_code == 403
    with console.store.write() as c:
        assert login.prune(c, now=console.clock.now()) == 1
        assert c.execute(select(LOGINS)).all() == []


def test_of_many_browsers_one_is_signed_in(store):
    console = people.make_console(store)
    token = people.link(console)
    clients = [people.client(console) for _ in range(6)]
    ready, got = threading.Barrier(len(clients)), []

    def race(client):
        ready.wait(30)
        got.append(use(client, token).status_code)

    threads = [threading.Thread(target=race, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(got) == [303, 403, 403, 403, 403, 403]


@pytest.mark.parametrize(
    "token", ["", "hll_", "hll_" + "A" * 43, "hla_" + "A" * 43, "x" * 3000, "%00", "hll_%ff"]
)
def test_what_is_no_link_signs_nobody_in(console, token):
    assert use(people.client(console), token).status_code in (400, 403)


def test_guessing_is_slow(sqlite_url):
    with people.sqlite_console(sqlite_url, limits=Limits(refused_per_minute=3)) as console:
        guess(console)


def guess(console):
    client = people.client(console)
    got = [use(client, "hll_" + "A" * 43).status_code for _ in range(5)]
    assert got == [403, 403, 403, 429, 429]
    token = people.link(console)
    refused = use(client, "hll_" + "A" * 43)
    assert int(refused.headers["retry-after"]) >= 1
    elsewhere = people.client(console, address="192.0.2.7")
    assert use(elsewhere, "hll_" + "A" * 43).status_code == 403
    # Many may share an address: who has a link is let in whatever the others try.
    assert use(client, token).status_code == 303
    console.clock.pass_(60)
    assert use(client, token).status_code == 403


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
        "/%0d%0aSet-Cookie:x", "/\t/evil.example", "///evil.example", "/login?next=/", "/logout", "devices",
        "http:/devices", "/dévices", "/" + "a" * 2000, "/\x00", "",
    ],
)  # fmt: skip
def test_nobody_is_sent_elsewhere(console, target):
    from urllib.parse import quote

    answer = use(people.client(console), people.link(console), quote(target, safe=""))
    assert answer.status_code == 303
    expected = "/" if target != "/%0d%0aSet-Cookie:x" else target
    assert answer.headers["location"] == expected
    assert "x" not in answer.cookies
    page = people.client(console).get("/login", params={"next": target, "link": people.link(console)})
    assert 'href="//' not in page.text
    assert "evil.example" not in page.text
