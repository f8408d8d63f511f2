# SPDX-License-Identifier: Apache-2.0
"""Tokens without a network: settings, resources, and the files that are kept."""

import json
import os
import stat
import subprocess
import sys
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.cli import halo
from halod.errors import EnvironmentFault, HalodError, UsageError
from halod.token import settings as halo_toml
from halod.token.grants import poll, refresh
from halod.token.model import Answer, Asked, Clock, Endpoints, TokenRefused, Tokens
from halod.token.obtain import obtain
from halod.token.resource import canonical_resource
from halod.token.store import PATIENCE, Store, default_directory
from tests.support.authorization import CLIENT, RESOURCE, Time

ISSUER = "https://login.acme.example"
ASKED = Asked(ISSUER, CLIENT, (), RESOURCE)
TOKENS = Tokens(ISSUER, CLIENT, (), RESOURCE, "CANARYaccess", "CANARYrefresh", 1.0)
GOOD = f'[auth]\nissuer = "{ISSUER}"\nclient_id = "halo"\n'


# --- halo.toml -----------------------------------------------------------------------------------------------


def test_settings_that_are_whole():
    found = halo_toml.parse(
        (GOOD + 'scopes = ["mcp", "offline_access"]\nca_file = "ca.pem"\n').encode(), "/etc/halod/halo.toml"
    )
    assert found == halo_toml.AuthSettings(ISSUER, "halo", ("mcp", "offline_access"), "/etc/halod/ca.pem")
    assert halo_toml.parse(GOOD.encode(), "/x") == halo_toml.AuthSettings(ISSUER, "halo")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "/h.toml:1: auth.client_id is missing; /h.toml:1: auth.issuer is missing"),
        ("[auth]\n", "/h.toml:1: auth.client_id is missing"),
        ("[auht]\n", 'unknown table "auht"; did you mean "auth"?'),
        ("auth = 1\n", "expected a table ([auth]), got a number"),
        (GOOD + 'isuer = "x"\n', '/h.toml:4: auth: unknown key "isuer"; did you mean "issuer"?'),
        (GOOD + 'client_secret = "CANARY"\n', "auth.client_secret: halo is a public client"),
        (GOOD + "scopes = 1\n", "expected a list of scopes"),
        (GOOD + 'scopes = ["a b"]\n', "expected one scope, without blanks and quotes"),
        (GOOD + "scopes = [7]\n", "got a number"),
        (GOOD + 'scopes = ["a", "a"]\n', "is listed twice"),
        (GOOD + 'ca_file = "../ca.pem"\n', 'must not hold ".."'),
        (
            '[auth]\nissuer = "http://login.acme.example"\nclient_id = "x"\n',
            "must be https; http is for a loopback",
        ),
        ('[auth]\nissuer = "https://CANARY:p@login.acme.example"\nclient_id = "x"\n', "without user name"),
        (
            '[auth]\nissuer = "https://login.acme.example/?CANARY"\nclient_id = "x"\n',
            "without user name, query",
        ),
        ('[auth]\nissuer = "login.acme.example"\nclient_id = ""\n', "must not be empty"),
        ("[auth\n", "is no valid TOML"),
        ("\xff", "is not UTF-8"),
    ],
)
def test_faults_of_settings(text, said):
    with pytest.raises(UsageError) as caught:
        halo_toml.parse(text.encode("latin-1"), "/h.toml")
    assert said in caught.value.message
    assert "CANARY" not in caught.value.message


def test_all_faults_are_told_at_once():
    with pytest.raises(UsageError) as caught:
        halo_toml.parse(b'[auth]\nissuer = 1\nclient_id = ""\nx = 1\n', "/h.toml")
    assert caught.value.message.count("/h.toml:") == 3


def test_where_settings_lie(tmp_path):
    """Beside halod.toml; a file that is named must be there."""
    assert halo_toml.default_path("linux") == "/etc/halod/halo.toml"
    assert halo_toml.default_path("darwin") == "/Library/Application Support/halod/halo.toml"
    file = tmp_path / "halo.toml"
    with pytest.raises(UsageError, match="there are no settings at"):
        halo_toml.load(str(file))
    file.write_text(GOOD, encoding="utf-8")
    assert halo_toml.load(str(file)).client_id == "halo"
    with pytest.raises(UsageError, match="cannot read the settings"):
        halo_toml.load(str(tmp_path))


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=60).map(lambda text: f"{GOOD}{text}".encode("utf-8", "replace")),
    )
)
def test_any_settings_are_read_or_refused(data):
    try:
        halo_toml.parse(data, "/h.toml")
    except UsageError as error:
        assert error.message  # noqa: PT017 - what is raised is what is tested


# --- resources -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("https://MCP.acme.example:443/mcp", "https://mcp.acme.example/mcp"),
        ("https://mcp.acme.example", "https://mcp.acme.example"),
        ("https://mcp.acme.example/", "https://mcp.acme.example"),
        ("https://mcp.acme.example/a/", "https://mcp.acme.example/a/"),
        ("https://mcp.acme.example/?team=1", "https://mcp.acme.example/?team=1"),
        ("http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/mcp"),
    ],
)
def test_a_resource_has_one_form(text, canonical):
    assert canonical_resource(text) == canonical
    assert canonical_resource(canonical) == canonical


@pytest.mark.parametrize(
    "text",
    ["http://mcp.acme.example/", "https://CANARY@a.example/", "https://a.example/#CANARY", "wss://a.example/", "a.example",
     "https://a.example/${CANARY}", "", "https://a.example/\nCANARY", "https:///a"],
)  # fmt: skip
def test_what_is_no_resource(text, capsys):
    assert halo.main(["mcp", "token", "--resource", text]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "--resource must be the https URL of an MCP server" in err
    assert "CANARY" not in err


# --- the store -----------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "state" / "halo"), ASKED, Clock())


def file_of(store, tmp_path, suffix="json"):
    return next((tmp_path / "state" / "halo").glob(f"*.{suffix}"))


def test_what_is_kept_comes_back(store, tmp_path):
    """For this issuer, client, resource and these scopes alone."""
    assert store.read() is None
    assert store.forget() is False
    store.write(TOKENS)
    assert store.read() == TOKENS
    place = str(tmp_path / "state" / "halo")
    for other in (
        Asked(ISSUER + "/x", CLIENT, (), RESOURCE), Asked(ISSUER, "other", (), RESOURCE),
        Asked(ISSUER, CLIENT, ("more",), RESOURCE), Asked(ISSUER, CLIENT, (), RESOURCE + "/x"),
    ):  # fmt: skip
        assert Store(place, other, Clock()).read() is None
    assert [path.name[-5:] for path in (tmp_path / "state" / "halo").iterdir()] == [".json"]
    assert store.forget() is True
    assert store.read() is None


def test_tokens_show_themselves_to_nobody():
    for one in (TOKENS, Answer(200, b"CANARY")):
        assert "CANARY" not in f"{one} {one!r} {[one]}"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b"{" * 50_000, b"x" * 70_000, b'{"version": 2}'],
)
def test_what_is_not_whole_counts_as_nothing(store, tmp_path, content):
    store.write(TOKENS)
    file_of(store, tmp_path).write_bytes(content)
    assert store.read() is None
    store.write(TOKENS)
    assert store.read() == TOKENS


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"access_token": 'x"\r\n'}, {"resource": "https://x.example"}]
)
def test_a_file_of_something_else_counts_as_nothing(store, tmp_path, change):
    store.write(TOKENS)
    file = file_of(store, tmp_path)
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **change}), encoding="utf-8")
    assert store.read() is None


def refused(call):
    with pytest.raises(EnvironmentFault) as caught:
        call()
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value.message


def test_a_link_is_not_followed(store, tmp_path):
    """Neither the file nor the directory nor the lock; what it points to is not touched."""
    store.write(TOKENS)
    with store.lock():
        pass
    victim = tmp_path / "victim"
    for suffix, call in (("json", store.read), ("lock", lambda: store.lock().__enter__())):
        file = file_of(store, tmp_path, suffix)
        file.rename(victim)
        file.symlink_to(victim)
        assert "symbolic link" in refused(call)
        file.unlink()
        victim.rename(file)
    store.write(TOKENS)
    directory = tmp_path / "state" / "halo"
    directory.rename(tmp_path / "moved")
    directory.symlink_to(tmp_path / "moved")
    for call in (store.read, lambda: store.write(TOKENS), store.forget):
        assert "symbolic link" in refused(call)


def test_a_link_in_the_place_of_the_file_is_replaced(store, tmp_path):
    """Renaming over it leaves what it points to as it was."""
    store.write(TOKENS)
    file, victim = file_of(store, tmp_path), tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    file.unlink()
    file.symlink_to(victim)
    store.write(TOKENS)
    assert victim.read_text(encoding="utf-8") == "mine"
    assert store.read() == TOKENS


def test_what_others_could_read_is_not_used(store, tmp_path):
    store.write(TOKENS)
    file = file_of(store, tmp_path)
    file.chmod(0o640)
    assert "is not this account's alone" in refused(store.read)
    file.chmod(0o600)
    os.link(file, tmp_path / "second")
    assert "is not this account's alone" in refused(store.read)
    os.unlink(file)
    os.mkfifo(file, 0o600)
    assert "is not this account's alone" in refused(store.read)
    assert store.forget() is True


def test_a_directory_that_is_open_is_closed(store, tmp_path):
    directory = tmp_path / "state" / "halo"
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    store.write(TOKENS)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what is another account's")
def test_what_is_another_accounts_is_not_used(store, tmp_path):
    store.write(TOKENS)
    file, directory = file_of(store, tmp_path), tmp_path / "state" / "halo"
    os.chown(file, 12345, 12345)
    assert "is not this account's alone" in refused(store.read)
    os.chown(file, 0, 0)
    os.chown(directory, 12345, 12345)
    for call in (store.read, lambda: store.write(TOKENS), store.forget):
        assert "is not this account's alone" in refused(call)


def test_a_failed_write_leaves_the_old_one(store, tmp_path, monkeypatch):
    store.write(TOKENS)

    def full(*_args, **_named):
        raise OSError(28, "CANARY")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused(lambda: store.write(TOKENS))
    monkeypatch.undo()
    assert store.read() == TOKENS
    assert len(list((tmp_path / "state" / "halo").iterdir())) == 1


def test_a_file_where_the_directory_should_be(store, tmp_path):
    (tmp_path / "state").write_text("", encoding="utf-8")
    assert "cannot keep tokens in" in refused(lambda: store.write(TOKENS))


def test_one_holds_the_lock_and_the_other_waits_so_long(tmp_path):
    time = Time()
    mine, other = (Store(str(tmp_path / "halo"), ASKED, time.clock) for _ in range(2))
    with mine.lock(), pytest.raises(TokenRefused, match="for a minute"), other.lock():
        pytest.fail("two hold it")
    assert PATIENCE <= sum(time.waits) < PATIENCE + 1
    with other.lock():
        pass


def test_the_lock_is_taken_when_it_is_free(tmp_path):
    """From another thread, as from another process: flock is of the open file."""
    held, free = threading.Event(), threading.Event()
    store = Store(str(tmp_path / "halo"), ASKED, Clock())

    def hold():
        with store.lock():
            held.set()
            free.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    waiting = Clock(wait=lambda _seconds: free.set() or thread.join(30))
    with Store(str(tmp_path / "halo"), ASKED, waiting).lock():
        assert free.is_set()


@pytest.mark.parametrize(("state", "expected"), [("/s", "/s/halo"), ("", "~"), ("relative", "~")])
def test_where_tokens_are_kept(monkeypatch, state, expected):
    monkeypatch.setenv("XDG_STATE_HOME", state)
    monkeypatch.setenv("HOME", "/h")
    assert default_directory() == expected.replace("~", "/h/.local/state/halo")


# --- any answer ----------------------------------------------------------------------------------------------

_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["Bearer", "abc", RESOURCE, "a.e30.b", "a.W10.b", "a.!.b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
_KEYS = st.sampled_from(
    ["access_token", "token_type", "expires_in", "refresh_token", "aud", "resource", "error"]
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([200, 200, 400, 401]),
    st.one_of(
        st.binary(max_size=40),
        st.dictionaries(_KEYS, _VALUE).map(
            lambda of: json.dumps({"access_token": "t", "token_type": "Bearer", **of}).encode()
        ),
    ),
)
def test_any_answer_is_a_token_or_refused(status, body):
    """Nothing but a refusal is raised, and a token can stand in a header."""
    time = Time()
    try:
        found = refresh(
            ASKED,
            Endpoints("https://x.example/token"),
            TOKENS,
            lambda _url, _form: Answer(status, body),
            time.clock,
        )
    except HalodError:
        return
    assert status == 200
    assert found.access_token.isascii()
    assert found.access_token.isprintable()
    assert time.at <= found.expires_at <= time.at + 30 * 86_400


def test_polling_never_goes_on_for_ever():
    """A server that says nothing but `slow_down` is given up with the code."""
    from halod.token.grants import Invitation

    time, asked = Time(), []
    body = Answer(400, b'{"error": "slow_down"}')
    with pytest.raises(TokenRefused, match="the code has expired"):
        poll(
            ASKED,
            Endpoints("x"),
            Invitation("d", "u", "a", 1.0, 1800.0),
            lambda *_: asked.append(1) or body,
            time.clock,
        )
    assert len(asked) < 60
    assert max(time.waits) == 60


# --- what is loaded ------------------------------------------------------------------------------------------


def test_a_token_that_is_kept_needs_no_network_library(tmp_path):
    """A helper runs at every connection: httpx and the certificates cost more than everything else."""
    config = tmp_path / "halo.toml"
    config.write_text(f'[auth]\nissuer = "{ISSUER}"\nclient_id = "{CLIENT}"\n', encoding="utf-8")
    tokens = Tokens(ISSUER, CLIENT, (), RESOURCE, "CANARYaccess", "", 4e9)
    Store(str(tmp_path / "halo"), ASKED, Clock()).write(tokens)
    code = (
        "import sys; from halod.cli.halo import main; "
        f"main(['mcp', 'token', '--resource', {RESOURCE!r}, '--config', {str(config)!r}]); "
        "print([name for name in ('httpx', 'ssl', 'halod.agent.tls') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == '{"Authorization": "Bearer CANARYaccess"}\n[]\n'
    assert done.stderr == ""


# --- what happens while one waits for the lock -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (msgspec.structs.replace(TOKENS, access_token="fresh", expires_at=4e9), "fresh"),
        (msgspec.structs.replace(TOKENS, refresh_token=""), "nobody is signed in"),
        (None, "nobody is signed in"),
    ],
)
def test_what_another_call_did_is_read_after_the_lock(tmp_path, meanwhile, said):
    """Its token is taken, its end is respected, and the refresh token that was read before is not sent."""
    other = Store(str(tmp_path / "halo"), ASKED, Clock())
    other.write(TOKENS)
    lock = other.lock()
    lock.__enter__()

    def wait(_seconds):
        other.write(meanwhile) if meanwhile else other.forget()
        lock.__exit__(None, None, None)

    clock = Clock(now=lambda: 1000.0, wait=wait)
    store = Store(str(tmp_path / "halo"), ASKED, clock)
    try:
        found = obtain(ASKED, store, lambda *_: pytest.fail("nothing is asked"), clock, None)
    except TokenRefused as refused:
        found = refused.message
    assert found.startswith(said)
