# SPDX-License-Identifier: Apache-2.0
"""Pages without a browser: who may see what, forms and what they change, empty and error states, hostile text, headers."""

import re

import pytest
from sqlalchemy import insert, select
from starlette.requests import Request

from halod.console.access import Actor, Role
from halod.console.call import Call
from halod.console.hooks import letters as letters_of
from halod.console.ingest.apply import take
from halod.console.pages import ROUTES, error_page, render
from halod.console.problem import Problem
from halod.console.security import tokens
from halod.console.store import schema
from halod.console.store.engine import Store
from tests.console.support_pages import HOSTILE_DEVICE, NOW, client, console_of, document, letters, poison

PAGES = {
    "/": Role.VIEWER,
    "/findings": Role.VIEWER,
    "/devices": Role.VIEWER,
    "/coverage": Role.VIEWER,
    "/registry": Role.VIEWER,
    "/activity": Role.VIEWER,
    "/enrolments": Role.VIEWER,
    "/webhooks": Role.VIEWER,
    "/account": Role.VIEWER,
    "/tokens": Role.ADMIN,
    "/audit": Role.ADMIN,
}
FINDING = {
    "harness": "cursor",
    "file": "~/.cursor/mcp.json",
    "server": "notes",
    "kind": "unapproved",
    "scope": "user",
}
FINDING |= {"transport": "stdio", "definitionSha256": "ab" * 32, "user": "dev", "enabled": True}


@pytest.fixture
def one(sqlite_url):
    """A store on SQLite: for what does not depend on the engine."""
    store = Store.open(sqlite_url)
    yield store
    store.close()


def call_of(store, path):
    scope = {"type": "http", "headers": [], "method": "GET", "path": path, "query_string": b""}
    return Call(console=console_of(store), request=Request(scope), actor=Actor(), body=b"", address="")


def audit_of(store):
    with store.read() as c:
        return [tuple(row) for row in c.execute(select(schema.AUDIT.c.action, schema.AUDIT.c.target))]


def waiting(store, device="dev-1", install="i-1"):
    with store.write() as c:
        c.execute(insert(schema.ENROLLMENTS).values(
            device=device, install_id=install, hostname="h", os="linux", halod="0.1.0", address="192.0.2.1", key_id=0,
            first_asked=NOW, last_asked=NOW, asked=1, state="waiting", decided_by="",
        ))  # fmt: skip


def state_of(store, device="dev-1"):
    with store.read() as c:
        return c.scalar(select(schema.ENROLLMENTS.c.state).where(schema.ENROLLMENTS.c.device == device))


# --- who may see what ----------------------------------------------------------------------------------------


def test_the_table_above_is_whole():
    plain = {route.path for route in ROUTES if route.method == "GET" and route.page and "{" not in route.path}
    assert plain == set(PAGES)


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.OPERATOR, Role.ADMIN])
def test_a_page_is_shown_to_its_role_and_above(one, role):
    with client(one, role) as asking:
        for path, wanted in PAGES.items():
            answer = asking.get(path)
            if role is None:
                assert answer.status_code == 303
                assert answer.headers["location"].startswith("/login")
            elif role >= wanted:
                assert answer.status_code == 200
            else:
                assert answer.status_code == 403
                assert "Not for your role" in answer.text


@pytest.mark.parametrize(("role", "shown"), [(Role.VIEWER, 9), (Role.ADMIN, 11)])
def test_the_navigation_offers_what_may_be_seen(one, role, shown):
    with client(one, role) as asking:
        nav = re.search(r'<nav class="wide".*?</nav>', asking.get("/").text, re.DOTALL)[0]
    assert nav.count("<li>") == shown


# --- fresh consoles, and nothing found -----------------------------------------------------------------------


def test_a_fresh_console_says_how_to_connect_a_device(store):
    """On both engines: every page of an empty console is one, and the first has the settings to copy."""
    with client(store, Role.ADMIN, public_url="") as asking:
        first = asking.get("/").text
        assert "No device has reported yet" in first
        assert "http://127.0.0.1:8640/api/v1/fleet/report" in first
        for path in PAGES:
            assert asking.get(path).status_code == 200
        assert "No device has reported yet" in asking.get("/findings").text
        assert "No device has reported yet" in asking.get("/coverage").text
        assert "serves no policy" in asking.get("/registry").text
        assert "Nobody waits" in asking.get("/enrolments").text


def test_the_address_to_report_to_is_the_one_of_the_settings(one):
    with client(one, Role.VIEWER, public_url="https://halo.acme.example") as asking:
        answer = asking.get("/", headers={"host": "halo.acme.example", "cookie": ""})
        assert answer.status_code == 303
    with client(one, Role.VIEWER, hosts=("halo.acme.example",)) as asking:
        answer = asking.get("/", headers={"host": "halo.acme.example"})
        assert "http://halo.acme.example/api/v1/fleet/report" in answer.text


def test_nothing_found_is_not_called_clean_where_something_was_not_read(one):
    take(
        one,
        [document("whole"), document("part", skipped=[{"user": "u", "reason": "symlink", "file": "~/x"}])],
        now=NOW,
    )
    with client(one, Role.VIEWER) as asking:
        assert "not the same as clean" in asking.get("/").text
        assert "not the same as clean" in asking.get("/findings").text
        assert "not the same as clean" in asking.get("/devices/part").text
        whole = asking.get("/devices/whole").text
        assert "not the same as clean" not in whole
        assert "Nothing was found in 2 files with 3 definitions" in whole


def test_a_device_without_accounts_or_policy_is_told_apart(one):
    coverage = {"accounts": 0, "files": 0, "definitions": 0, "notCovered": []}
    take(
        one,
        [document("nobody", coverage=coverage), document("listing", mode="inventory", digest="")],
        now=NOW,
    )
    with client(one, Role.VIEWER) as asking:
        assert "nobody was looked at" in asking.get("/devices/nobody").text
        assert "nothing is judged" in asking.get("/devices/listing").text


def test_a_silent_device_says_so(one):
    take(one, [document("gone")], now=NOW - 90_000)
    with client(one, Role.VIEWER) as asking:
        answer = asking.get("/devices/gone").text
    assert "state-silent" in answer
    assert "the device is silent" in answer


# --- lists ---------------------------------------------------------------------------------------------------


def test_filters_stay_in_the_address_and_lead_to_the_next_page(store):
    """On both engines: the link to the next page keeps the filters, and together the pages have every row once."""
    rows = [{**FINDING, "server": f"s-{nth:03}", "definitionSha256": f"{nth:064x}"} for nth in range(120)]
    take(store, [document("many", rows)], now=NOW)
    seen, path = [], "/findings?kind=unapproved&server=s-"
    with client(store, Role.VIEWER) as asking:
        while path:
            body = asking.get(path).text
            seen += re.findall(r'<a href="/findings/\d+"><bdi>(s-\d{3})</bdi></a>', body)
            found = re.search(r'rel="next" href="([^"]+)"', body)
            path = found[1].replace("&amp;", "&") if found else ""
            assert not path or "kind=unapproved&server=s-" in path
    assert sorted(seen) == [f"s-{nth:03}" for nth in range(120)]


@pytest.mark.parametrize(
    "path", ["/findings", "/devices", "/coverage", "/activity", "/audit", "/registry", "/enrolments"]
)
def test_a_cursor_of_somebody_elses_is_a_plain_error(one, path):
    with client(one, Role.ADMIN) as asking:
        answer = asking.get(path, params={"cursor": "bm9uc2Vuc2U"})
    assert answer.status_code == 400
    assert "That address is not right" in answer.text


@pytest.mark.parametrize("text", ["\x00", "x" * 5000, "%", "'; DROP TABLE devices", "\u202e", "<script>"])
def test_no_filter_breaks_a_list(one, text):
    take(one, [document("d", [FINDING])], now=NOW)
    with client(one, Role.ADMIN) as asking:
        for path, name in (
            ("/findings", "server"),
            ("/findings", "ring"),
            ("/devices", "hostname"),
            ("/audit", "actor"),
        ):
            answer = asking.get(path, params={name: text})
            assert answer.status_code in {200, 400}
            assert "<script>" not in answer.text


@pytest.mark.parametrize(
    "path", ["/findings/0", "/findings/999", "/findings/x", "/findings/²", "/findings/" + "9" * 30]
)
def test_a_finding_that_is_not_there_is_not_found(one, path):
    with client(one, Role.VIEWER) as asking:
        assert asking.get(path).status_code == 404


def test_a_device_and_an_entry_that_are_not_there_are_not_found(one):
    with client(one, Role.VIEWER) as asking:
        assert asking.get("/devices/nobody").status_code == 404
        assert asking.get("/registry/nothing").status_code == 404
        assert asking.get("/nowhere").status_code == 404


# --- decisions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verb", "state"), [("accept", "accepted"), ("refuse", "refused")])
def test_an_operator_decides_about_a_device_that_waits(store, verb, state):
    waiting(store)
    with client(store, Role.OPERATOR) as asking:
        assert "dev-1" in asking.get("/enrolments").text
        answer = asking.post(f"/enrolments/dev-1/{verb}", install="i-1")
        assert (answer.status_code, answer.headers["location"]) == (303, f"/enrolments?done={state}")
        assert "Nobody waits" in asking.get(f"/enrolments?done={state}").text
    assert state_of(store) == state
    assert (f"device.{verb}", "dev-1") in audit_of(store)


def test_a_decision_is_about_the_installation_that_was_shown(one):
    waiting(one, install="i-2")
    with client(one, Role.OPERATOR) as asking:
        assert asking.post("/enrolments/dev-1/accept", install="i-1").status_code == 409
        assert asking.post("/enrolments/dev-1/accept").status_code == 422
    assert state_of(one) == "waiting"


def test_a_viewer_decides_nothing(one):
    waiting(one)
    with client(one, Role.VIEWER) as asking:
        page = asking.get("/enrolments").text
        assert "<form" not in page
        assert asking.post("/enrolments/dev-1/accept", install="i-1").status_code == 403
    assert state_of(one) == "waiting"


def test_a_form_without_its_token_changes_nothing(one):
    waiting(one)
    with client(one, Role.OPERATOR) as asking:
        asking.csrf = "x"
        assert asking.post("/enrolments/dev-1/accept", install="i-1").status_code == 403
    assert state_of(one) == "waiting"


def test_a_token_of_a_device_is_revoked_on_its_page_alone(one):
    take(one, [document("dev-1"), document("dev-2")], now=NOW)
    with one.change() as c:
        for device in ("dev-1", "dev-2"):
            tokens.issue_device(c, device=device, install_id="i", now=NOW, days=9, by="test")
        mine = tokens.list_tokens(c, device="dev-1")[0].id
    with client(one, Role.OPERATOR) as asking:
        assert asking.post(f"/devices/dev-2/tokens/{mine}/revoke").status_code == 404
        assert asking.post(f"/devices/dev-1/tokens/{mine}/revoke").status_code == 303
        assert "revoked" in asking.get("/devices/dev-1").text
    with one.read() as c:
        assert [one_.revoked for one_ in tokens.list_tokens(c, device="dev-1")] == [NOW]
        assert [one_.revoked for one_ in tokens.list_tokens(c, device="dev-2")] == [None]
    assert ("token.revoke", "dev-1") in audit_of(one)


def test_a_dead_delivery_is_sent_again_or_dropped(one):
    letters(one)
    with client(one, Role.OPERATOR) as asking:
        page = asking.get("/webhooks").text
        numbers = re.findall(r"/webhooks/(\d+)/retry", page)
        assert len(numbers) == 2
        assert "the receiver answered 503" in page
        assert asking.post(f"/webhooks/{numbers[0]}/retry").status_code == 303
        assert asking.post(f"/webhooks/{numbers[1]}/discard").status_code == 303
        assert asking.post(f"/webhooks/{numbers[1]}/discard").status_code == 409
        assert "Nothing is dead" in asking.get("/webhooks").text
    with one.read() as c:
        assert letters_of.counts(c) == {("security", "due"): 2, ("security", "done"): 1}


# --- tokens and keys -----------------------------------------------------------------------------------------


def test_an_api_token_is_shown_once_and_kept_as_a_hash(store):
    with client(store, Role.ADMIN) as asking:
        made = asking.post("/tokens", name="siem", role="viewer", days="30")
        assert made.status_code == 201
        secret = re.search(r"hla_[A-Za-z0-9_-]{43}", made.text)[0]
        assert made.headers["cache-control"] == "no-store"
        listed = asking.get("/tokens").text
        assert "siem" in listed
        assert secret not in listed
    with store.read() as c:
        actor = tokens.find_api(c, secret, NOW)
        assert (actor.name, actor.role) == ("siem", Role.VIEWER)
        assert secret not in str(c.execute(select(schema.AUDIT)).all())
    assert ("token.create", "siem") in audit_of(store)


def test_an_enrolment_key_gives_what_was_filled_in(one):
    with client(one, Role.ADMIN) as asking:
        made = asking.post(
            "/enroll-keys", name="laptops", ring="ring3-ga", units="b, a,", days="30", uses="5"
        )
    secret = re.search(r"hle_[A-Za-z0-9_-]{43}", made.text)[0]
    with one.read() as c:
        key = tokens.find_enroll_key(c, secret, NOW)
    assert (key.name, key.ring, key.units, key.max_uses) == ("laptops", "ring3-ga", ("a", "b"), 5)
    assert key.expires == NOW + 30 * 86_400


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/tokens", {"name": "", "role": "viewer", "days": "30"}),
        ("/tokens", {"name": "x" * 129, "role": "viewer", "days": "30"}),
        ("/tokens", {"name": "a\u202eb", "role": "viewer", "days": "30"}),
        ("/tokens", {"name": "x", "role": "root", "days": "30"}),
        ("/tokens", {"name": "x", "role": "viewer", "days": "0"}),
        ("/tokens", {"name": "x", "role": "viewer", "days": "1e3"}),
        ("/tokens", {"name": "x", "role": "viewer"}),
        ("/enroll-keys", {"name": "x", "days": "9999", "uses": "0"}),
        ("/enroll-keys", {"name": "x", "days": "30", "uses": "-1"}),
        ("/enroll-keys", {"name": "x", "days": "30", "uses": "0", "units": "a,b,c,d,e,f,g,h,i"}),
    ],
)
def test_a_form_that_is_filled_in_wrongly_makes_nothing(one, path, form):
    with client(one, Role.ADMIN) as asking:
        answer = asking.post(path, **form)
    assert answer.status_code == 422
    assert "hla_" not in answer.text
    assert audit_of(one) == []


def test_tokens_and_keys_are_revoked(one):
    with one.write() as c:
        secret = tokens.issue_api(c, name="siem", role=Role.ADMIN, now=NOW, days=9, by="t")
        key = tokens.new_enroll_key(c, name="laptops", now=NOW, days=9, by="t")
        numbers = tokens.list_tokens(c, kind="api")[0].id, tokens.list_enroll_keys(c)[0].id
    with client(one, Role.ADMIN) as asking:
        assert asking.post(f"/tokens/{numbers[0]}/revoke").status_code == 303
        assert asking.post(f"/enroll-keys/{numbers[1]}/revoke").status_code == 303
        assert asking.post("/tokens/12345/revoke").status_code == 404
        assert asking.get("/tokens?done=revoked").text.count("revoked <time") == 2
    with one.read() as c:
        assert tokens.find_api(c, secret, NOW) is None
        assert tokens.find_enroll_key(c, key, NOW) is None


def test_long_lists_of_tokens_go_on(one):
    with one.write() as c:
        for nth in range(60):
            tokens.issue_api(c, name=f"t-{nth:02}", role=Role.VIEWER, now=NOW, days=9, by="t")
    with client(one, Role.ADMIN) as asking:
        body = asking.get("/tokens").text
        found = re.search(r'rel="next" href="([^"]+)"', body)[1]
        names = re.findall(r"<bdi>(t-\d\d)</bdi>", body + asking.get(found).text)
        assert asking.get("/tokens?tokens=x").status_code == 400
    assert sorted(names) == [f"t-{nth:02}" for nth in range(60)]


# --- theme, headers, static files ----------------------------------------------------------------------------


def test_the_theme_is_a_cookie_of_this_browser(one):
    with client(one, Role.VIEWER) as asking:
        answer = asking.post("/account/theme", theme="dark")
        assert answer.headers["set-cookie"].startswith(
            "theme=dark; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax"
        )
        assert "Max-Age=0" in asking.post("/account/theme", theme="").headers["set-cookie"]
        assert "Max-Age=0" in asking.post("/account/theme", theme='x" onload="').headers["set-cookie"]
        own = asking._http.headers["cookie"]
        assert (
            '<html lang="en" data-theme="dark">'
            in asking.get("/", headers={"cookie": f"{own}; theme=dark"}).text
        )
        assert '<html lang="en">' in asking.get("/", headers={"cookie": f"{own}; theme=odd"}).text


def test_static_files_are_kept_for_ever_and_only_under_their_digest(one):
    with client(one) as asking:
        page = asking.get("/login").text
        style = re.search(r'href="(/static/[0-9a-f]{16}/console\.css)"', page)[1]
        answer = asking.get(style)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith("text/css")
        assert asking.get("/static/0000000000000000/console.css").status_code == 404
        assert asking.get(style.replace("console.css", "..%2Ftext.py")).status_code == 404


def test_pages_carry_no_script_and_no_style_of_their_own(one):
    """So the policy needs no exception. The page with the box has one script, from a file, and cannot send a form."""
    take(one, [document("d", [FINDING])], now=NOW)
    with client(one, Role.ADMIN) as asking:
        found = re.search(r"/findings/\d+", asking.get("/findings").text)[0]
        for path in (*PAGES, found, "/devices/d", "/login"):
            body = asking.get(path).text
            assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", body), path
            scripts = re.findall(r"<script[^>]*>", body)
            assert len(scripts) == (1 if path == found else 0)
            assert all(
                re.fullmatch(r'<script src="/static/[0-9a-f]{16}/hash\.js" defer>', one_) for one_ in scripts
            )
        sealed = asking.get(found)
        free = asking.get("/findings").headers.get_list("content-security-policy")
    policies = sealed.headers.get_list("content-security-policy")
    assert "form-action 'none'; connect-src 'none'" in policies
    assert len(free) == len(policies) - 1 == 1
    assert "'unsafe" not in "".join(policies)
    assert "<form" not in sealed.text


# --- errors and signing in ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 405, 408, 409, 413, 415, 418, 421, 422, 429, 500, 503]
)
def test_an_error_is_a_page_that_needs_no_database(one, status):
    one.close()
    asked = call_of(one, "/")
    answer = error_page(asked, Problem(status, "words <b>", headers={"Retry-After": "3"}))
    body = answer.body.decode()
    assert answer.status_code == status
    assert answer.headers["retry-after"] == "3"
    assert "words &lt;b&gt;" in body
    assert 'href="/login"' in body
    assert "<nav" not in body


@pytest.mark.parametrize(
    ("context", "has", "hasnot"),
    [
        ({}, "halo-server login-link", "<form"),
        ({"link": "hll_x", "next": "/findings"}, 'name="link" value="hll_x"', "/login/oidc"),
        ({"oidc": True, "next": "/findings?a=1"}, 'href="/login/oidc?next=/findings%3Fa%3D1"', "<form"),
        ({"error": "This link was used"}, 'role="alert"', "signed out"),
        ({"left": True}, "You have signed out.", "too</a>"),
        (
            {"left": True, "provider_logout": "https://id.acme.example/out"},
            'href="https://id.acme.example/out"',
            "alert",
        ),
        ({"left": True, "provider_logout": "javascript:alert(1)"}, "You have signed out.", "javascript:"),
    ],
)
def test_the_page_for_signing_in_says_how(one, context, has, hasnot):
    """No form leads to the provider: a browser would hold the redirect against `form-action`."""
    given = {
        "link": "",
        "next": "/",
        "left": False,
        "error": "",
        "provider_logout": "",
        "oidc": False,
        **context,
    }
    body = render(call_of(one, "/login"), "login.html", **given).body.decode()
    assert has in body
    assert hasnot not in body


# --- hostile text --------------------------------------------------------------------------------------------


def test_hostile_text_is_inert_on_every_page(store):
    """On both engines, with text in the tables that would never be let in."""
    poison(store)
    with store.read() as c:
        things = c.scalars(
            select(schema.FINDINGS.c.thing).where(schema.FINDINGS.c.device == HOSTILE_DEVICE)
        ).all()
    with client(store, Role.ADMIN) as asking:
        for path in (*PAGES, f"/devices/{HOSTILE_DEVICE}", *(f"/findings/{thing}" for thing in things)):
            answer = asking.get(path)
            assert answer.status_code == 200, path
            body = re.sub(r' value="[^"]*"', "", answer.text)  # what a form sends back; nobody sees it
            assert "<script>" not in body
            assert '<img src="https' not in body
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", body)
        assert "\\u{202e}gnp.exe" in asking.get(f"/devices/{HOSTILE_DEVICE}").text
        assert "A" * 10_000 in asking.get("/audit").text
