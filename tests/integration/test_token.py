# SPDX-License-Identifier: Apache-2.0
"""`halo mcp token` against an authorization server in another process: every grant, and all that can go wrong."""

import base64
import json
import os
import pty
import shlex
import ssl
import stat
import subprocess
import sys
import traceback
from datetime import date

import pytest

from halod.errors import HalodError
from halod.policy.load import examine
from halod.policy.rendering import manifest
from halod.token import http
from halod.token.model import Asked, Tokens
from halod.token.obtain import obtain
from halod.token.store import Store
from tests.support.authorization import CLIENT, RESOURCE, ROOT, Time, running, settings
from tests.support.certificates import Authority

TLS = ssl.create_default_context()
MAIN = "import sys; from halod.cli.halo import main; sys.exit(main())"


@pytest.fixture
def server():
    with running() as issuer:
        yield issuer


class Person:
    """Who asks: a store of their own, a clock, and what they are told."""

    def __init__(self, server, directory, *, resource=RESOURCE, scopes=()):
        self.server = server
        self.time = Time()
        self.told = []
        self.asked = Asked(server.issuer, CLIENT, scopes, resource)
        self.store = Store(str(directory), self.asked, self.time.clock)

    def token(self, *, present=True, tls=TLS, seconds=5):
        tell = self.told.append if present else None
        return obtain(
            self.asked,
            self.store,
            lambda url, form: http.send(url, form, tls, seconds),
            self.time.clock,
            tell,
        )

    def keep(self, *, lasts, refresh=""):
        tokens = Tokens(
            self.asked.issuer, self.asked.client_id, self.asked.scopes, self.asked.resource,
            "CANARYkept", refresh, self.time.at + lasts,
        )  # fmt: skip
        self.store.write(tokens)

    def refused(self, **how):
        """Why there is no token; what is raised holds nothing of the server or the store."""
        with pytest.raises(HalodError) as caught:
            self.token(**how)
        shown = "".join(traceback.format_exception(caught.value))
        assert "CANARY" not in shown.replace(__file__, "")
        assert caught.value.exit_code == 2
        return f"{caught.value.message}; {caught.value.advice}"


@pytest.fixture
def person(server, tmp_path):
    return Person(server, tmp_path / "halo")


def places(server, place):
    return [one for one in server.log() if one["place"] == place]


# --- signing in ----------------------------------------------------------------------------------------------


def test_a_person_signs_in_once(person, server):
    """The address and the code are shown; the token is kept, and the next call asks nobody."""
    server.set(confirm_after=2)
    assert person.token().startswith("CANARYaccess")
    assert person.told[0] == (
        f"to sign in for {RESOURCE}, open {server.issuer}/activate and enter the code WDJB-1"
    )
    assert person.time.waits == [1.0, 1.0, 1.0]
    before = len(server.log())
    assert person.token(present=False).startswith("CANARYaccess")
    assert len(server.log()) == before
    assert "CANARY" not in "".join(person.told)


def test_what_is_sent(server, tmp_path):
    """Client, scopes and resource, and no secret."""
    person = Person(server, tmp_path / "halo", scopes=("mcp.read", "offline_access"))
    person.token()
    device, token = places(server, "device")[0], places(server, "token")[0]
    assert device["form"] == {"client_id": CLIENT, "scope": "mcp.read offline_access", "resource": RESOURCE}
    assert token["form"].keys() == {"grant_type", "device_code", "client_id", "resource"}
    assert token["form"]["resource"] == RESOURCE


def test_polling_slows_down_and_backs_off(person, server):
    """`slow_down` adds five seconds for good; a server that fails is asked half as often."""
    server.plan(
        token=["authorization_pending", "slow_down", "authorization_pending", {"status": 503}, "close", "ok"]
    )
    person.token()
    assert person.time.waits == [1.0, 1.0, 6.0, 6.0, 12.0, 24.0]


def test_polling_ends_with_the_code(person, server):
    server.set(confirm_after=10_000, code_lasts=10)
    assert "the code has expired; run the command again" in person.refused()
    assert sum(person.time.waits) <= 10


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("access_denied", "the request was refused"),
        ("expired_token", "the code has expired"),
        ("invalid_grant", "the sign-in has expired or was withdrawn"),
        ("invalid_target", "does not know this resource"),
        ("unauthorized_client", "does not know auth.client_id"),
        ("CANARYerror", "for a reason that is not known here"),
    ],
)
def test_what_a_server_refuses_is_said(person, server, code, said):
    server.plan(token=[code])
    assert said in person.refused()
    assert person.store.read() is None


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ({"merge": {"device_code": "CANARY with blank"}}, "no device code that can be used"),
        ({"merge": {"device_code": None}}, "no device code that can be used"),
        ({"merge": {"user_code": "CANARY\u001b[31m"}}, "no code that a person could type"),
        ({"merge": {"verification_uri": "http://evil.example/CANARY"}}, "no address that a person could open"),
        ({"merge": {"verification_uri": "javascript:alert(1)"}}, "no address that a person could open"),
        ({"merge": {"verification_uri": 7}}, "no address that a person could open"),
        ("invalid_scope", "does not give auth.scopes"),
        ({"status": 400, "body": "<html>CANARY</html>"}, "does not answer with a JSON object (HTTP 400)"),
        ({"status": 429, "body": ""}, "answers HTTP 429"),
        ({"status": 302, "headers": {"Location": "/device"}}, "redirects what must not be sent elsewhere"),
    ],
)  # fmt: skip
def test_an_invitation_that_cannot_be_used(person, server, device, said):
    server.plan(device=[device])
    assert said in person.refused()


# --- metadata ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"merge": {"issuer": "https://evil.example"}}, "another issuer than auth.issuer"),
        ({"merge": {"issuer": None}}, "another issuer than auth.issuer"),
        ({"merge": {"token_endpoint": "http://evil.example/token"}}, "no token endpoint that can be used"),
        ({"merge": {"token_endpoint": None}}, "no token endpoint that can be used"),
        (
            {"merge": {"device_authorization_endpoint": "ftp://x/"}},
            "no device authorization endpoint that can",
        ),
        ({"merge": {"device_authorization_endpoint": None}}, "has no device authorization"),
        ({"merge": {"grant_types_supported": ["authorization_code"]}}, "has no device authorization"),
        ({"body": "<html>CANARY</html>"}, "does not answer with a JSON object"),
        ({"body": '{"issuer": "a", "issuer": "b"}'}, "does not answer with a JSON object"),
        ({"body": "[" * 100_000}, "does not answer with a JSON object"),
        ({"body": '{"a": "' + "x" * 300_000 + '"}'}, "answers with more than 256 KiB"),
        (
            {"status": 302, "headers": {"Location": "https://evil.example/CANARY"}},
            "redirects to another origin",
        ),
        ({"status": 302, "headers": {"Location": "http://127.0.0.1:1/x"}}, "redirects to another origin"),
        ({"status": 302, "headers": {}}, "redirects to another origin"),
        ({"status": 500, "body": "CANARY"}, "answers HTTP 500"),
        ({"headers": {"Content-Encoding": "gzip"}, "body": "CANARY"}, "answers compressed"),
        ("flood-body", "answers with more than 256 KiB"),
        ("garbage", "does not speak HTTP as expected"),
        ("truncate-body", "does not speak HTTP as expected"),
        ("close", "does not speak HTTP as expected"),
    ],
)
def test_metadata_that_cannot_be_used(person, server, metadata, said):
    server.plan(metadata=[metadata])
    assert said in person.refused()
    assert places(server, "token") == []


def test_a_slash_at_the_end_is_told(person, server):
    """The most frequent slip."""
    server.plan(metadata=[{"merge": {"issuer": server.issuer + "/"}}])
    assert "they differ in the / at the end" in person.refused()


def test_a_server_that_hangs_is_left(person, server):
    server.plan(metadata=["hang"])
    assert "does not answer in time" in person.refused(seconds=0.5)


def test_redirects_within_the_origin_are_followed_so_often(person, server):
    here = {"status": 307, "headers": {"Location": "/.well-known/openid-configuration"}}
    server.plan(metadata=[here, here, "ok"])
    assert person.token().startswith("CANARYaccess")
    person.store.forget()
    server.plan(metadata=[here] * 4)
    assert "redirects again and again" in person.refused()


@pytest.mark.parametrize(
    "at",
    ["/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant", "/tenant/.well-known/openid-configuration"],
)  # fmt: skip
def test_an_issuer_with_a_path_is_found(server, tmp_path, at):
    """In the three places where metadata may be."""
    person = Person(server, tmp_path / "halo")
    issuer = server.issuer + "/tenant"
    server.set(issuer=issuer, metadata_at=[at])
    person.asked = Asked(issuer, CLIENT, (), RESOURCE)
    person.store = Store(str(tmp_path / "halo"), person.asked, person.time.clock)
    assert person.token().startswith("CANARYaccess")


def test_a_server_without_metadata(person, server):
    server.set(metadata_at=[])
    assert "has no metadata of an authorization server" in person.refused()


def test_nobody_listens(person, server):
    person.asked = Asked("http://127.0.0.1:1", CLIENT, (), RESOURCE)
    assert "127.0.0.1:1 cannot be reached" in person.refused()


def test_certificates_are_checked(tmp_path):
    """The organisation's own authority is trusted when it is named, and no other one."""
    authority = Authority(tmp_path)
    with running(cert=authority.issue("issuer", address="127.0.0.1")) as server:
        person = Person(server, tmp_path / "halo")
        assert "shows a certificate that this machine does not trust" in person.refused()
        assert person.token(tls=ssl.create_default_context(cafile=str(authority.file))).startswith("CANARY")


def test_nothing_is_asked_without_tls():
    for url in ("http://login.acme.example/", "file:///etc/passwd", "https://a b/"):
        assert http.send(url, None, TLS).fault == "is not asked without TLS"


# --- what a token must be ------------------------------------------------------------------------------------


def jwt(**claims):
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(
        [*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "CANARYsignature"]
    )


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"token_type": "mac"}, "another type than Bearer"),
        ({"token_type": None}, "another type than Bearer"),
        ({"token_type": ["Bearer"]}, "another type than Bearer"),
        ({"access_token": "CANARY\r\nX-Evil: 1"}, "no token that can be sent in a header"),
        ({"access_token": 'CANARY"}'}, "no token that can be sent in a header"),
        ({"access_token": ""}, "no token that can be sent in a header"),
        ({"access_token": None}, "no token that can be sent in a header"),
        ({"access_token": "CANARY" + "x" * 20_000}, "no token that can be sent in a header"),
        ({"refresh_token": "CANARY \n"}, "no refresh token that can be kept"),
        ({"refresh_token": 7}, "no refresh token that can be kept"),
        ({"resource": "https://evil.example/mcp"}, "a token for another resource"),
        ({"aud": ["https://evil.example/mcp"]}, "a token for another resource"),
        ({"audience": 7}, "a token for another resource"),
        ({"access_token": jwt(aud="https://evil.example")}, "a token for another resource"),
        ({"access_token": jwt(aud=RESOURCE + "/x")}, "a token for another resource"),
        ({"access_token": jwt(aud=[])}, "a token for another resource"),
    ],
)
def test_a_token_that_is_not_taken(person, server, members, said):
    server.plan(token=[{"merge": members}])
    assert said in person.refused()
    assert person.store.read() is None


@pytest.mark.parametrize(
    "members",
    [
        {"token_type": "bearer"},
        {"resource": "https://MCP-wiki.acme.example:443/mcp"},
        {"access_token": jwt(aud=["https://other.example", RESOURCE])},
        {"access_token": jwt(sub="me")},
        {"access_token": "a.b.c"},
        {"access_token": "opaque+/._~-=="},
        {"refresh_token": None},
    ],
)
def test_a_token_that_is_taken(person, server, members):
    server.plan(token=[{"merge": members}])
    assert person.token() == members.get("access_token", "CANARYaccess2")


@pytest.mark.parametrize("lasts", [None, 0, -5, 30, "3600", True, [3600]])
def test_a_token_without_a_usable_life_is_used_once(person, server, lasts):
    """The next call asks again, without a person."""
    server.plan(token=[{"merge": {"expires_in": lasts}}])
    first = person.token()
    assert person.token(present=False) != first


# --- refreshing ----------------------------------------------------------------------------------------------


def test_a_token_is_refreshed_a_minute_before_its_end(person, server):
    person.keep(lasts=61, refresh=server.seed())
    assert person.token(present=False) == "CANARYkept"
    person.time.at += 1
    fresh = person.token(present=False)
    assert fresh.startswith("CANARYaccess")
    assert places(server, "token")[0]["form"]["resource"] == RESOURCE
    assert person.told == []
    person.time.at += 3600
    assert person.token(present=False) not in {fresh, "CANARYkept"}
    assert server.reused() == 0


def test_a_server_that_does_not_rotate(person, server):
    """The refresh token goes on when there is no new one."""
    refresh = server.seed()
    person.keep(lasts=0, refresh=refresh)
    server.plan(token=[{"merge": {"refresh_token": None}}])
    person.token(present=False)
    assert person.store.read().refresh_token == refresh


def test_a_refresh_token_that_ended(person, server):
    """A person signs in again; without one there is one clear line, and no second try."""
    person.keep(lasts=0, refresh="CANARYgone")
    said = person.refused(present=False)
    assert f"run `halo mcp token --resource {RESOURCE}` once in a terminal" in said
    assert person.store.read() is None
    person.refused(present=False)
    assert len(places(server, "token")) == 1
    person.keep(lasts=0, refresh="CANARYgone")
    assert person.token().startswith("CANARYaccess")
    assert len(person.told) == 2


def test_a_server_that_is_away_costs_no_refresh_token(person, server):
    """What cannot be asked now is asked later."""
    person.keep(lasts=0, refresh=server.seed())
    for fault in ("close", {"status": 503}, {"status": 429}):
        server.plan(token=[fault])
        assert "try again later" in person.refused(present=False)
    server.plan(token=[{"body": "<html>CANARY</html>"}])
    assert "does not answer with a JSON object" in person.refused(present=False)
    assert person.token(present=False).startswith("CANARYaccess")


def test_without_a_person_nothing_is_asked(person, server):
    said = person.refused(present=False)
    assert said.count("\n") == 0
    assert "nobody is signed in at 127.0.0.1" in said
    assert server.log() == []


# --- the command ---------------------------------------------------------------------------------------------


class Command:
    """The command as a process, with a state directory and settings of its own."""

    def __init__(self, server, folder, **more):
        self.server = server
        self.folder = folder
        self.config = folder / "halo.toml"
        self.config.write_text(settings(server.issuer, **more), encoding="utf-8")
        self.env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(folder / "state"),
            "NO_COLOR": "1",
        }

    def start(self, *words, **how):
        words = ("mcp", "token", "--resource", RESOURCE, *words, "--config", str(self.config))
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *words], env=self.env, cwd=self.folder, text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
        )  # fmt: skip

    def run(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def in_terminal(self, *words):
        """Run with a terminal for stdin and stderr; give the code, stdout and what the terminal shows."""
        mine, its = pty.openpty()
        try:
            process = self.start(*words, stdin=its, stderr=its)
            out, _ = process.communicate(timeout=60)
            os.set_blocking(mine, False)
            return process.returncode, out, os.read(mine, 65536).decode() if out or process.returncode else ""
        finally:
            os.close(mine)
            os.close(its)

    def keep(self, refresh, lasts=0.0):
        asked = Asked(self.server.issuer, CLIENT, (), RESOURCE)
        clock = Time().clock
        directory = self.folder / "state" / "halo"
        Store(str(directory), asked, clock).write(
            Tokens(asked.issuer, CLIENT, (), RESOURCE, "CANARYold", refresh, lasts)
        )


@pytest.fixture
def command(server, tmp_path):
    return Command(server, tmp_path)


def test_the_command_from_sign_in_to_forgetting(command):
    """A terminal once, then as a helper; headers and the token alone; and nothing kept after --forget."""
    code, out, shown = command.in_terminal()
    assert code == 0, shown
    token = json.loads(out)["Authorization"].removeprefix("Bearer ")
    assert token.startswith("CANARYaccess")
    assert out == json.dumps({"Authorization": f"Bearer {token}"}) + "\n"
    assert "enter the code WDJB-1" in shown
    assert "CANARY" not in shown
    assert command.run("--format", "token") == (0, f"{token}\n", "")

    directory = command.folder / "state" / "halo"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert len(list(directory.glob("*.json"))) == 1

    assert command.run("--forget") == (0, "", "the token is deleted\n")
    assert command.run("--forget") == (0, "", "there was no token\n")
    assert list(directory.glob("*.json")) == []
    code, out, err = command.run()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"run `halo mcp token --resource {RESOURCE}` once in a terminal" in err


def test_calls_at_the_same_time_use_a_refresh_token_once(command, server):
    """Every one of them prints the new token; the server sees one refresh, and none that was used before."""
    command.keep(server.seed())
    processes = [command.start("--format", "token") for _ in range(6)]
    ended = [(process.communicate(timeout=120), process.returncode) for process in processes]
    assert {code for _, code in ended} == {0}, ended
    assert len({out for (out, _), _ in ended}) == 1
    assert len(places(server, "token")) == 1
    assert server.reused() == 0


def test_a_token_is_in_no_argument_and_no_error(command, server):
    """Whatever goes wrong."""
    command.keep(server.seed())
    for fault in (
        "garbage",
        "flood-body",
        {"merge": {"token_type": "mac"}},
        {"body": "<html>CANARY"},
        "invalid_scope",
    ):
        server.plan(token=[fault])
        code, out, err = command.run()
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "CANARY" not in err
        assert "Traceback" not in err


def test_the_helper_that_is_rendered_is_this_command(command, server):
    """What `halo plan` writes for Claude Code runs as it stands, but for the settings of the test."""
    entry = {"id": "wiki", "url": RESOURCE, "auth": {"mode": "halos"}}
    policy, _, problems = examine(json.dumps({"mcp": {"servers": [entry]}}).encode())
    assert problems == []
    made = manifest.plan(policy, "", (), date(2026, 11, 30), ("linux",))
    file = next(one for one in made.files if one.path.endswith("managed-mcp.json"))
    words = shlex.split(json.loads(file.content)["mcpServers"]["wiki"]["headersHelper"])
    command.keep(server.seed())
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words[1:], "--config", str(command.config)],
        env=command.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert words[0] == "halo"
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["Authorization"].startswith("Bearer CANARYaccess")


def test_the_own_authority_of_the_settings(tmp_path):
    """ca_file is used, and told of when it cannot be."""
    authority = Authority(tmp_path)
    with running(cert=authority.issue("issuer", address="127.0.0.1")) as server:
        command = Command(server, tmp_path, ca_file=str(authority.file))
        command.keep(server.seed())
        assert command.run()[0] == 0
        broken = Command(server, tmp_path, ca_file=str(command.config))
        broken.keep(server.seed())
        code, _, err = broken.run()
        assert (code, "auth.ca_file cannot be read or holds no certificate" in err) == (2, True)
