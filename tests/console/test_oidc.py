# SPDX-License-Identifier: Apache-2.0
"""Signing in with a provider that plays every fault: who is let in, and that nobody else is."""

import base64
import hmac
import http.cookies
import io
import json
import time
import urllib.parse

import pytest
from sqlalchemy import select

from halod.console import logs
from halod.console.access import Role
from halod.console.clock import SystemClock
from halod.console.security import sessions
from halod.console.security.oidc import identity, wire
from halod.console.security.oidc.identity import Refused, keys_of, role_of
from halod.console.security.oidc.provider import AGAIN, Provider
from halod.console.settings import Oidc
from halod.console.store.schema import AUDIT, LOGINS, SESSIONS
from tests.console import support_people as people
from tests.server import provider as fake

HOME = "https://halo.acme.example"
RETURN = "/login/oidc/return"


class Clock(people.Clock):
    """The provider's tokens carry real times; this clock begins there and stands still."""

    def __init__(self):
        super().__init__(int(time.time()))


@pytest.fixture
def provider():
    with fake.Provider().running() as running:
        yield running


@pytest.fixture
def console(sqlite_url, provider):
    oidc = Oidc(
        issuer=provider.issuer,
        client_id=fake.CLIENT,
        viewer_groups=("staff",),
        operator_groups=("helpdesk",),
        admin_groups=("platform", "root"),
    )
    with people.sqlite_console(sqlite_url, clock=Clock(), public_url=HOME, oidc=oidc) as made:
        yield made


@pytest.fixture
def client(console):
    return people.client(console, base=HOME)


def begin(client, target="/devices"):
    """Leave for the provider; gives where, and the cookie of the journey."""
    answer = client.get("/login/oidc", params={"next": target})
    assert answer.status_code == 303
    return answer.headers["location"], cookie_of(answer, "__Host-halo-login")


def cookie_of(answer, name):
    for line in answer.headers.get_list("set-cookie"):
        found = http.cookies.SimpleCookie(line)
        if name in found:
            return found[name]
    return None


def come_back(client, journey, query, **headers):
    sent = {"Cookie": f"__Host-halo-login={journey.value}"} if journey else {}
    return client.get(RETURN, params=query, headers={**sent, "Sec-Fetch-Site": "cross-site", **headers})


def sign_in(client, provider, target="/devices"):
    location, journey = begin(client, target)
    return come_back(client, journey, provider.agree(location))


def session_of(answer):
    found = cookie_of(answer, "__Host-halo")
    return found.value if found else None


def is_refused(answer, status=403):
    assert answer.status_code == status, answer.text
    assert session_of(answer) is None
    assert "CANARY" not in answer.text
    assert cookie_of(answer, "__Host-halo-login")["max-age"] == "0"
    return True


# --- who is let in -----------------------------------------------------------------------------------------


def test_the_whole_way(console, client, provider):
    location, journey = begin(client, "/devices?state=silent")
    asked = dict(urllib.parse.parse_qsl(location.partition("?")[2]))
    assert asked["response_type"] == "code"
    assert asked["client_id"] == fake.CLIENT
    assert asked["redirect_uri"] == HOME + RETURN
    assert asked["scope"] == "openid profile email groups"
    assert asked["code_challenge_method"] == "S256"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    assert (journey["secure"], journey["httponly"], journey["samesite"], journey["path"]) == (
        True,
        True,
        "Lax",
        "/",
    )
    answer = come_back(client, journey, provider.agree(location))
    assert (answer.status_code, answer.headers["location"]) == (303, "/devices?state=silent")
    value = session_of(answer)
    assert client.get("/account", headers=people.cookie(value, https=True)).status_code == 200
    assert cookie_of(answer, "__Host-halo-login")["max-age"] == "0"
    with console.store.read() as c:
        line = c.execute(select(AUDIT)).mappings().one()
        row = c.execute(select(SESSIONS)).mappings().one()
        assert c.execute(select(LOGINS)).all() == []
    assert (line["action"], line["actor"], line["target"]) == ("login", "dev", "u1")
    assert (row["subject"], row["role"]) == ("u1", "viewer")


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["staff"], "viewer"),
        (["staff", "helpdesk"], "operator"),
        (["platform", "staff", "x"], "admin"),
        ("root", "admin"),
        (["STAFF", "staff "], None),
        ([], None),
        (None, None),
        ({"staff": True}, None),
        ([["staff"], 1, None], None),
        ("staff,root", None),
    ],
)
def test_groups_give_roles(console, client, provider, groups, role):
    provider.user["groups"] = groups
    answer = sign_in(client, provider)
    with console.store.read() as c:
        roles = c.execute(select(SESSIONS.c.role)).scalars().all()
        lines = [tuple(line) for line in c.execute(select(AUDIT.c.action, AUDIT.c.actor, AUDIT.c.actor_kind))]
    if role:
        assert (answer.status_code, roles) == (303, [role])
    else:
        assert is_refused(answer)
        assert roles == []
        assert lines == [("login.refused", "dev", "none")]
        assert "group" in answer.text


def test_userinfo_is_asked_for_groups_only_when_the_token_has_none(client, provider):
    assert sign_in(client, provider).status_code == 303
    assert "/userinfo" not in provider.asked
    provider.user["groups"] = None
    provider.userinfo = {"groups": ["platform"]}
    assert sign_in(client, provider).status_code == 303
    assert "/userinfo" in provider.asked
    provider.userinfo = {"groups": ["platform"], "sub": "somebody-else"}
    assert is_refused(sign_in(client, provider))
    provider.answers["/userinfo"] = lambda handler: handler.say(500, {"groups": ["platform"]})
    assert is_refused(sign_in(client, provider))


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "\x1b[31mroot\u202e<script>"}, "[31mroot<script>"),
        ({"preferred_username": "", "email": "a@acme.example"}, "a@acme.example"),
        ({"preferred_username": 7, "email": None, "name": "A\nB"}, "A B"),
        ({"preferred_username": None}, "u1"),
        ({"preferred_username": "x" * 5000}, "x" * 128),
    ],
)
def test_what_a_provider_calls_somebody_is_a_claim(console, client, provider, claims, name):
    provider.user.update(claims)
    answer = sign_in(client, provider)
    assert answer.status_code == 303
    with console.store.read() as c:
        assert c.execute(select(SESSIONS.c.name)).scalar() == name
    page = client.get("/account", headers=people.cookie(session_of(answer), https=True))
    assert "<script>" not in page.text.replace("<script src", "").replace("<script defer", "")


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_client_with_a_secret(sqlite_url, tmp_path, method):
    secret = "CANARY s:e%c+r/et"
    file = tmp_path / "secret"
    file.write_text(secret + "\n")
    file.chmod(0o600)
    with fake.Provider(secret=secret, algorithm="ES256").running() as provider:
        provider.metadata["token_endpoint_auth_methods_supported"] = [method]
        oidc = Oidc(
            issuer=provider.issuer,
            client_id=fake.CLIENT,
            client_secret_file=str(file),
            viewer_groups=("staff",),
        )
        with people.sqlite_console(sqlite_url, clock=Clock(), public_url=HOME, oidc=oidc) as console:
            client = people.client(console, base=HOME)
            assert sign_in(client, provider).status_code == 303
            assert bool(provider.authorizations[-1]) == (method == "client_secret_basic")
            file.write_text("another\n")
            assert is_refused(sign_in(client, provider))


# --- the way there and back ----------------------------------------------------------------------------------


def test_a_journey_ends_once(client, provider):
    location, journey = begin(client)
    query = provider.agree(location)
    assert come_back(client, journey, query).status_code == 303
    assert is_refused(come_back(client, journey, query), 400)


def test_a_journey_belongs_to_its_browser(client, provider):
    """Login CSRF: an attacker's code, brought to a victim's browser, signs nobody in."""
    location, _ = begin(client)
    query = provider.agree(location)
    assert is_refused(come_back(client, None, query), 400)
    _, other = begin(client)
    assert is_refused(come_back(client, other, query), 400)


def test_another_journeys_code_does_not_help(client, provider):
    """Code injection: the nonce and PKCE of the journey that began do not fit."""
    stolen = provider.agree(begin(client)[0])["code"]
    location, journey = begin(client)
    query = provider.agree(location)
    assert is_refused(come_back(client, journey, {**query, "code": stolen}))


def test_a_journey_ends_after_ten_minutes(console, client, provider):
    location, journey = begin(client)
    query = provider.agree(location)
    console.clock.pass_(600)
    assert is_refused(come_back(client, journey, query), 400)


@pytest.mark.parametrize(
    "change",
    [
        {"state": ""},
        {"state": "x" * 64},
        {"state": None},
        {"state": ["same", "same"]},
        {"state": "é"},
    ],
)
def test_a_state_that_is_not_the_journeys(client, provider, change):
    location, journey = begin(client)
    query = provider.agree(location)
    state = query["state"]
    changed = {**query, **change}
    if isinstance(changed["state"], list):
        changed["state"] = [state, state]
    if changed["state"] is None:
        del changed["state"]
    assert is_refused(come_back(client, journey, changed), 400)
    assert "/token" not in provider.asked


@pytest.mark.parametrize(
    "change",
    [
        {"error": "access_denied", "error_description": "CANARY<script>", "code": None},
        {"error": "server_error"},
        {"code": None},
        {"code": ""},
        {"code": "x" * 9000},
        {"code": ["a", "b"]},
        {"iss": "https://evil.example"},
        {"iss": ["", ""]},
    ],
)
def test_an_answer_that_brings_no_code(client, provider, change):
    location, journey = begin(client)
    query = {
        name: value for name, value in {**provider.agree(location), **change}.items() if value is not None
    }
    assert is_refused(come_back(client, journey, query))
    assert "/token" not in provider.asked


def test_the_issuer_is_asked_for_where_it_is_announced(client, provider):
    """RFC 9207, against mix-up."""
    provider.metadata["authorization_response_iss_parameter_supported"] = True
    location, journey = begin(client)
    assert is_refused(come_back(client, journey, provider.agree(location)))
    location, journey = begin(client)
    query = {**provider.agree(location), "iss": provider.issuer}
    assert come_back(client, journey, query).status_code == 303


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/\\evil.example", "/login", "x"]
)
def test_nobody_is_sent_elsewhere(client, provider, target):
    assert sign_in(client, provider, target).headers["location"] == "/"


def test_guessing_is_slow(sqlite_url, provider):
    oidc = Oidc(issuer=provider.issuer, client_id=fake.CLIENT, viewer_groups=("staff",))
    limits = people.Limits(refused_per_minute=3)
    with people.sqlite_console(
        sqlite_url, clock=Clock(), public_url=HOME, oidc=oidc, limits=limits
    ) as console:
        client = people.client(console, base=HOME)
        got = [client.get(RETURN, params={"state": "x", "code": "y"}).status_code for _ in range(5)]
        assert got == [400, 400, 400, 429, 429]
        # Any web page can make a browser do that: who was sent to the provider comes in all the same.
        assert session_of(sign_in(client, provider))


def test_signing_out_offers_to_end_the_providers_session_too(client, provider):
    value = session_of(sign_in(client, provider))
    sent = {**people.cookie(value, https=True), **people.own(), "X-CSRF-Token": sessions.form_token(value)}
    answer = client.post("/logout", headers=sent)
    assert answer.headers["location"] == "/login?left"
    page = client.get("/login?left").text
    assert f"{provider.issuer}/logout?client_id=halo" in page.replace("&amp;", "&")


@pytest.mark.parametrize("where", [None, "javascript:alert(1)", "http://192.0.2.1/", "//x"])
def test_an_end_of_session_that_is_no_address_is_not_shown(client, provider, where):
    provider.metadata = {"end_session_endpoint": where}
    assert "organisation's sign-in too" not in client.get("/login?left").text.replace("&#39;", "'")


@pytest.mark.parametrize("where", ["javascript:alert(1)", "http://192.0.2.1/", "//x", ""])
def test_a_browser_is_sent_to_https_only(client, provider, where):
    provider.metadata = {"authorization_endpoint": where}
    answer = client.get("/login/oidc")
    assert (answer.status_code, answer.headers.get("location")) == (503, None)


# --- tokens that do not count --------------------------------------------------------------------------------


def unsigned(token):
    """The claims of a token under `alg: none`."""
    header = (
        base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "first"}).encode()).decode().rstrip("=")
    )
    return f"{header}.{token.split('.')[1]}."


def hmac_signed(secret):
    """The claims of a token, signed with a shared secret that is known to everybody."""

    def tamper(token):
        header = {"alg": "HS256", "kid": "first", "typ": "JWT"}
        head = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
        signed = f"{head}.{token.split('.')[1]}"
        signature = hmac.digest(secret, signed.encode(), "sha256")
        return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"

    return tamper


CLAIMS = {
    "another nonce": {"nonce": "x"},
    "no nonce": {"nonce": None},
    "a nonce that is a list": {"nonce": ["x"]},
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "issuers": {"iss": ["https://evil.example"]},
    "another audience": {"aud": "other"},
    "no audience": {"aud": None},
    "other audiences": {"aud": ["other", "third"]},
    "an audience that is a number": {"aud": 7},
    "more audiences without azp": {"aud": [fake.CLIENT, "other"]},
    "given to another party": {"azp": "other"},
    "more audiences, given to another": {"aud": [fake.CLIENT, "other"], "azp": "other"},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a subject that is a number": {"sub": 1},
    "a subject without end": {"sub": "x" * 256},
    "a subject with controls": {"sub": "a\x00b"},
    "no end": {"exp": None},
    "an end that is text": {"exp": "tomorrow"},
    "an end that is true": {"exp": True},
    "no beginning": {"iat": None},
    "another access token's hash": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}
HEADERS = {
    "an access token": {"typ": "at+jwt"},
    "a logout token": {"typ": "logout+jwt"},
    "a key that nobody published": {"kid": "unknown"},
    "a key id that is a number": {"kid": 7},
    "an extension that must be understood": {"crit": ["x"], "x": 1},
}
TOKENS = {
    "none": unsigned,
    "None": lambda token: unsigned(token).replace(unsigned(token).split(".")[0], "eyJhbGciOiJOb25lIn0"),
    "HS256 with the public key": hmac_signed(fake.shared_key("first").as_pem(private=False)),
    "HS256 with the client's id": hmac_signed(fake.CLIENT.encode()),
    "cut": lambda token: token[:-8],
    "no signature": lambda token: token.rpartition(".")[0] + ".",
    "two parts": lambda token: token.rpartition(".")[0],
    "five parts": lambda token: token + ".a.b",
    "other claims": lambda token: ".".join([token.split(".")[0], "e30", token.split(".")[2]]),
    "a number": lambda token: 7,
    "nothing": lambda token: None,
    "a list": lambda token: [token],
    "without end": lambda token: token + "A" * 100_000,
    "nested without end": lambda token: base64.urlsafe_b64encode(b"[" * 60_000).decode() + ".e30.x",
    "not base64": lambda token: "é.é.é",
    "empty": lambda token: "",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_that_do_not_count(client, provider, name):
    provider.claims = CLAIMS[name]
    assert is_refused(sign_in(client, provider))


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_do_not_count(client, provider, name):
    provider.header = HEADERS[name]
    if "crit" in provider.header or provider.header.get("kid") == 7:
        header = provider.header
        provider.header = {}
        provider.tamper = lambda token: resigned(provider, token, header)
    assert is_refused(sign_in(client, provider))


def resigned(provider, token, header):
    """Sign again with a header that the library would not write."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    payload = token.split(".")[1]
    head = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": "first", **header}).encode())
    signed = f"{head.decode().rstrip('=')}.{payload}"
    signature = provider.key.private_key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_that_are_none(client, provider, name):
    provider.tamper = TOKENS[name]
    assert is_refused(sign_in(client, provider))


def test_a_key_in_the_token_itself_is_not_believed(client, provider):
    theirs = fake.shared_key("attacker")
    jwk = theirs.as_dict(private=False)
    for header in ({"jwk": jwk}, {"jku": f"{provider.issuer}/evil"}, {"x5u": f"{provider.issuer}/evil"}):
        provider.tamper = lambda token, header=header: signed_by(theirs, token, header)
        assert is_refused(sign_in(client, provider))
    assert "/evil" not in provider.asked


def signed_by(key, token, header):
    class Other:
        pass

    other = Other()
    other.key = key
    return resigned(other, token, header)


@pytest.mark.parametrize(
    ("claims", "passed", "good"),
    [
        ({}, 359, True),
        ({}, 360, False),
        ({"nbf": 59}, 0, True),
        ({"nbf": 90}, 0, False),
        ({"iat": 59}, 0, True),
        ({"iat": 90}, 0, False),
    ],
)
def test_clocks_may_differ_by_a_minute(console, client, provider, claims, passed, good):
    at = console.clock.now()
    provider.claims = {"iat": at, "exp": at + 300, **{name: at + value for name, value in claims.items()}}
    location, journey = begin(client)
    query = provider.agree(location)
    console.clock.pass_(passed)
    answer = come_back(client, journey, query)
    assert (answer.status_code == 303) == good


# --- keys ----------------------------------------------------------------------------------------------------


def test_keys_may_be_rotated(console, client, provider):
    assert sign_in(client, provider).status_code == 303
    provider.rotate("second")
    console.clock.pass_(AGAIN)
    assert sign_in(client, provider).status_code == 303


def test_made_up_key_ids_make_no_load(console, client, provider):
    assert sign_in(client, provider).status_code == 303
    provider.header = {"kid": "made-up"}
    for _ in range(5):
        assert is_refused(sign_in(client, provider))
    assert provider.asked.count("/jwks") == 1
    console.clock.pass_(AGAIN)
    assert is_refused(sign_in(client, provider))
    assert provider.asked.count("/jwks") == 2


def test_keys_are_fetched_again_after_an_hour(console, client, provider):
    """A key that was withdrawn ends within the hour."""
    assert sign_in(client, provider).status_code == 303
    provider.published = [("other", fake.shared_key("second"))]
    assert sign_in(client, provider).status_code == 303
    console.clock.pass_(3600)
    provider.claims = {"exp": console.clock.now() + 300, "iat": console.clock.now()}
    assert is_refused(sign_in(client, provider))


def test_keys_that_cannot_sign_are_left_out():
    good = {**fake.shared_key("first").as_dict(private=False), "kid": "a"}
    ec = {**fake.shared_key("first", "ES256").as_dict(private=True), "kid": "b"}
    listed = [
        good, ec, {**good, "use": "enc"}, {"kty": "oct", "k": "AAAA"}, {**good, "n": "AQAB"}, {"kty": "RSA"},
        {"kty": "XX"}, 7, None, {**ec, "crv": "P-999"},
    ]  # fmt: skip
    found = keys_of({"keys": listed})
    assert [key.get("kid") for key in found] == ["a", "b"]
    assert not any(key.is_private for key in found)
    for document in ({}, {"keys": None}, {"keys": {}}, {"keys": [[]]}):
        assert keys_of(document) == ()
    assert len(keys_of({"keys": [good] * 1000})) == 100


# --- a provider that is broken ---------------------------------------------------------------------------------


def drip(handler):
    """Send a byte now and then, without end."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:
        handler.close_connection = True


FAULTS = {
    "an error": lambda handler: handler.say(500, {}),
    "a page": lambda handler: handler.say(200, b"<html>CANARY</html>"),
    "a list": lambda handler: handler.say(200, b"[]"),
    "a redirect": lambda handler: handler.say(302, {}, Location="http://127.0.0.1:9/CANARY"),
    "too much": lambda handler: handler.say(200, b'{"x":"' + b"A" * 600_000 + b'"}'),
    "compressed": lambda handler: handler.say(200, b"\x1f\x8b", Content_Encoding="gzip"),
    "slow": drip,
    "nested": lambda handler: handler.say(200, b"[" * 100_000),
    "garbage": lambda handler: (handler.wfile.write(b"\x00\xff"), setattr(handler, "close_connection", True)),
}


def identify(asked, provider):
    location = asked.authorization_url(redirect="r", state="s", nonce="n", verifier="v" * 43)
    code = provider.agree(location)["code"]
    return asked.identify(code=code, redirect="r", nonce="n", verifier="v" * 43)


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/jwks"])
@pytest.mark.parametrize("name", FAULTS)
def test_answers_that_are_none(provider, path, name):
    """Bounded in time and size, and nobody is identified."""
    oidc = Oidc(issuer=provider.issuer, client_id=fake.CLIENT, viewer_groups=("staff",))
    asked = Provider(oidc, SystemClock(), wire.Wire(seconds=0.5))
    provider.answers[path] = FAULTS[name]
    began = time.monotonic()
    with pytest.raises((wire.Unreachable, Refused)) as told:
        identify(asked, provider)
    assert time.monotonic() - began < 20
    assert "CANARY" not in str(told.value)
    assert told.value.__cause__ is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"token_endpoint": None},
        {"authorization_endpoint": 7},
        {"jwks_uri": ["x"]},
    ],
)
def test_a_provider_that_does_not_say_what_it_is(client, provider, metadata):
    provider.metadata = metadata
    answer = client.get("/login/oidc")
    assert answer.status_code == 503
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    "where", ["http://192.0.2.1/x", "file:///etc/passwd", "gopher://x", "//x", "https://a@b/"]
)
@pytest.mark.parametrize("endpoint", ["token_endpoint", "jwks_uri"])
def test_only_https_is_asked(client, provider, endpoint, where):
    provider.metadata = {endpoint: where}
    location, journey = begin(client)
    assert is_refused(come_back(client, journey, provider.agree(location)), 503)


def test_an_outage_is_told_and_asked_again_after_a_while(console, client, provider):
    provider.answers["/.well-known/openid-configuration"] = FAULTS["an error"]
    assert client.get("/login/oidc").status_code == 503
    provider.answers.clear()
    assert client.get("/login/oidc").status_code == 503
    assert provider.asked.count("/.well-known/openid-configuration") == 1
    console.clock.pass_(AGAIN)
    assert client.get("/login/oidc").status_code == 303
    provider.answers["/.well-known/openid-configuration"] = FAULTS["an error"]
    console.clock.pass_(3600)
    assert client.get("/login/oidc").status_code == 303, "what is known serves through an outage"


def test_a_provider_that_hangs_holds_few_threads(provider):
    asked = wire.Wire(seconds=0.5)
    for _ in range(wire.AT_ONCE):
        asked._slots.acquire()
    with pytest.raises(wire.Unreachable, match="too many"):
        asked.get(f"{provider.issuer}/jwks")


# --- what is never told ----------------------------------------------------------------------------------------


def test_no_secret_of_a_sign_in_is_logged_or_kept(console, client, provider):
    said = io.StringIO()
    logs.configure("debug", "json", stream=said)
    try:
        location, journey = begin(client)
        query = provider.agree(location)
        value = session_of(come_back(client, journey, query))
        provider.claims = {"nonce": "x"}
        sign_in(client, provider)
        provider.answers["/token"] = lambda handler: handler.say(
            400, {"error": "x", "error_description": "CANARY"}
        )
        sign_in(client, provider)
    finally:
        logs.configure()
    with console.store.read() as c:
        kept = repr([c.execute(select(table)).all() for table in (SESSIONS, LOGINS, AUDIT)])
    asked = dict(urllib.parse.parse_qsl(location.partition("?")[2]))
    for secret in ("CANARY", journey.value, value, query["code"], asked["state"], asked["nonce"]):
        assert secret not in said.getvalue()
        assert secret not in kept
    assert "id-token-nonce" in said.getvalue()


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "x"}, "iss"),
        ({"aud": ["x"]}, "aud"),
        ({"aud": 7}, "aud"),
        ({"azp": "x"}, "azp"),
        ({"aud": ["halo", "x"]}, "azp"),
        ({"nonce": 7}, "nonce"),
        ({"nonce": "é"}, "nonce"),
        ({"exp": 939}, "exp"),
        ({"exp": float("inf")}, "exp"),
        ({"exp": True}, "exp"),
        ({"iat": 1061}, "iat"),
        ({"iat": None}, "iat"),
        ({"sub": ""}, "sub"),
    ],
)
def test_what_must_hold_is_checked_without_the_library(claims, reason):
    good = {"iss": "i", "aud": "halo", "nonce": "n", "exp": 1300, "iat": 1000, "sub": "s"}
    known = {"issuer": "i", "client_id": "halo", "nonce": "n", "now": 1000}
    identity._strict(good, **known)
    with pytest.raises(Refused, match=f"id-token-{reason}"):
        identity._strict({**good, **claims}, **known)


def test_roles_by_groups_alone():
    oidc = Oidc(issuer="x", client_id="y", viewer_groups=("v",), operator_groups=("o",), admin_groups=("a",))
    assert role_of(frozenset({"v", "a"}), oidc) is Role.ADMIN
    assert role_of(frozenset({"o", "v"}), oidc) is Role.OPERATOR
    assert role_of(frozenset({"w"}), oidc) is Role.NONE
    assert role_of(frozenset(), Oidc(issuer="x", client_id="y")) is Role.NONE
