# SPDX-License-Identifier: Apache-2.0
"""`halod check`: what it finds wrong, in words, and that it asks real servers."""

import contextlib
import datetime as dt
import json
import os
import pwd
import socket
import ssl
import threading

import msgspec
import pytest

from halod import cli
from halod.agent import canary as sender
from halod.agent import probe
from halod.agent.tls import tls_context
from halod.check import files, machine, network, policy
from halod.check.examine import examine
from halod.policy import signed
from halod.settings import parse, secret
from tests.support.certificates import DAY, NOW, Authority
from tests.support.guard import HANG, LONG
from tests.support.roles import in_child
from tests.support.signing import KEY, STRANGER, envelope, expired, payload, pinned
from tests.support.signing import POLICY as SIGNED

ROOT = os.geteuid() == 0
TOKEN = "CANARY-token"
needs_root = pytest.mark.skipif(not ROOT, reason="needs root to make files of others")

POLICY = """\
org: acme
rings: [ring1, ring2]
units: {payments: {}}
mcp:
  servers:
    - id: wiki
      url: https://wiki.acme.example/mcp
"""


def settings_of(text="", **more):
    return parse(text.encode(), "/etc/halod/halod.toml", platform="linux", **more)


def put(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


@contextlib.contextmanager
def served(answer: bytes, context: ssl.SSLContext | None = None, seen: list | None = None):
    """Run a server that reads one request at a time and answers with `answer`; gives its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(HANG)

    def serve():
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), plain:
                plain.settimeout(HANG)
                speaks = context.wrap_socket(plain, server_side=True) if context else plain
                with speaks:
                    request = speaks.recv(65_536)
                    if seen is not None:
                        seen.append(request)
                    speaks.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(HANG)


def http(status: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Words", "Content-Length: 0", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


def speaking(certificate, *, client_ca=None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


# --- the network -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "token", "verdict", "words"),
    [
        (204, True, "ok", "answers (HTTP 204)"),
        (405, True, "ok", "answers (HTTP 405)"),
        (401, False, "ok", "asks for a token"),
        (401, True, "fault", "refuses the token"),
        (403, True, "fault", "refuses the token"),
        (403, False, "fault", "refuses the request"),
        (404, True, "warning", "nothing is at this path"),
        (503, True, "warning", "is there, but not well"),
        (429, True, "warning", "is there, but not well"),
        (418, True, "warning", "not expected here"),
        (302, True, "fault", "redirects elsewhere, which is not followed"),
    ],
)
def test_an_answer_is_told_in_words(authority, tmp_path, status, token, verdict, words):
    seen = []
    certificate = authority.issue("good", address="127.0.0.1")
    answer = http(status, "Location: https://elsewhere.example/CANARY")
    with served(answer, speaking(certificate), seen) as port:
        text = f"report.url = 'https://127.0.0.1:{port}/r?CANARY'\nreport.ca_file = '{authority.file}'\n"
        if token:
            text += f"report.token_file = '{put(tmp_path / 'token', TOKEN)}'\n"
        checks = network.endpoints(settings_of(text), root=False)
    check = checks[-1]
    assert (check.name, check.verdict) == ("report.url", verdict)
    assert words in check.message
    assert check.message.startswith(f"127.0.0.1:{port}")
    assert not any("CANARY" in item.message + item.advice for item in checks)
    assert len(seen) == 1
    assert (f"Authorization: Bearer {TOKEN}".encode() in seen[0]) == token
    assert seen[0].startswith(b"GET /r?CANARY HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("status", "verdict"), [(200, "ok"), (404, "fault"), (401, "fault"), (405, "warning")]
)
def test_the_policys_endpoint_is_asked_without_the_token(tmp_path, status, verdict):
    seen = []
    with served(http(status), None, seen) as port:
        key = "EAWfVlDNL2ESvCZ9DnnZc7N0qWzzMVTKkWQyxJ1xmlk="
        text = (
            f"policy.url = 'http://127.0.0.1:{port}/p'\npolicy.public_keys = ['{key}']\n"
            f"report.url = 'http://127.0.0.1:{port}/r'\nreport.token_file = '{put(tmp_path / 't', TOKEN)}'\n"
        )
        by_name = {check.name: check for check in network.endpoints(settings_of(text), root=False)}
    assert by_name["policy.url"].verdict == verdict
    assert [TOKEN.encode() in request for request in seen] == [True, False]


def unsound():
    content = msgspec.json.encode(payload("org: acme\nmcp: {servers: [{id: x}]}\n"))
    return signed._sealed(content, [], [KEY])


@pytest.mark.parametrize("as_root", [False, pytest.param(True, marks=needs_root)])
@pytest.mark.parametrize(
    ("document", "verdict", "words", "advice"),
    [
        (envelope, "ok", 'version 7 for "acme", expires ', ""),
        (
            lambda: b"<html>CANARY</html>",
            "fault",
            "is not JSON (line 1, column 1) (policy-malformed)",
            "as it is",
        ),
        (lambda: envelope(STRANGER), "fault", "none of the keys in policy.public_keys", "public_keys"),
        (lambda: envelope(version=5), "fault", "older than version 6, which was seen before", "sign"),
        (expired, "fault", "of the policy expired on", "clock"),
        (
            lambda: envelope(org="other", policy=SIGNED.replace("acme", "other")),
            "fault",
            'signed for the organisation "other", not for "acme"',
            "policy.org",
        ),
        (unsound, "fault", "the signed policy is invalid: policy:", "halo validate"),
        (lambda: envelope() + b" " * 1024 * 1024, "fault", "larger than 1 MiB", "as it is"),
    ],
)
def test_the_policy_that_is_served_is_judged_as_the_agent_would(
    tmp_path, document, verdict, words, advice, as_root
):
    """Signature, organisation, version and expiry, against what this machine has seen; nothing is remembered."""
    before = b'{"installId":"x","policyOrg":"acme","policyVersion":6,"policySha256":"y"}'
    state = tmp_path / "state"
    state.mkdir()
    (state / "device.json").write_bytes(before)
    body = document()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    with served(head + body) as port:
        settings = settings_of(
            f"policy.url = 'http://127.0.0.1:{port}/p'\npolicy.org = 'acme'\nstate.dir = '{state}'\n"
            f"policy.public_keys = {pinned(KEY)}\ndevice.ring = 'ring0'\ndevice.agent_account = 'nobody'\n"
        )
        checks = network.endpoints(settings, root=as_root)
    by_name = {check.name: check for check in checks}
    assert (by_name["policy.url"].verdict, by_name["policy"].verdict) == ("ok", verdict)
    assert words in by_name["policy"].message
    assert advice in by_name["policy"].advice
    assert ("device" in by_name) == (verdict == "ok")
    assert not any("CANARY" in check.message + check.advice for check in checks)
    assert os.listdir(state) == ["device.json"]
    assert (state / "device.json").read_bytes() == before


@pytest.mark.parametrize(
    ("ring", "verdict", "words"),
    [("ring0", "ok", "knows"), ("rnig0", "fault", "ring0"), ("", "warning", "in no ring")],
)
def test_the_device_is_compared_with_the_policy_that_is_served(tmp_path, ring, verdict, words):
    """As with one that lies on the machine. Another organisation's version does not matter."""
    (tmp_path / "device.json").write_bytes(
        b'{"installId":"x","policyOrg":"other","policyVersion":99,"policySha256":"y",'
        b'"policyOthers":[{"org":"acme","version":7,"sha256":""},{"org":"third","version":99,"sha256":""}]}'
    )
    body = envelope()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    with served(head + body) as port:
        settings = settings_of(
            f"policy.url = 'http://127.0.0.1:{port}/p'\npolicy.org = 'acme'\nstate.dir = '{tmp_path}'\n"
            f"policy.public_keys = {pinned(KEY)}\n" + (f"device.ring = '{ring}'\n" if ring else "")
        )
        check = network.endpoints(settings, root=False)[-1]
    assert check.verdict == verdict
    assert words in check.message + check.advice


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        ({"address": "127.0.0.1", "trusted": False}, "issued by nobody this machine trusts"),
        ({"address": "127.0.0.1", "start": NOW - 3 * DAY, "end": NOW - dt.timedelta(hours=1)}, "has expired"),
        (
            {"address": "127.0.0.1", "start": NOW + dt.timedelta(hours=1), "end": NOW + DAY},
            "is not valid yet",
        ),
        ({"host": "other.acme.example"}, "for another host name"),
    ],
)
def test_the_reason_of_tls_is_told(authority, tmp_path, certificate, words):
    trusted = certificate.pop("trusted", True)
    file = authority.issue("server", **certificate)
    certificate["trusted"] = trusted
    ca = authority.file if trusted else Authority(tmp_path, "other-ca").file
    seen = []
    with served(http(204), speaking(file), seen) as port:
        text = f"report.url = 'https://127.0.0.1:{port}/r'\nreport.ca_file = '{ca}'\n"
        check = network.endpoints(settings_of(text), root=False)[-1]
    assert check.verdict == "fault"
    assert words in check.message
    assert check.advice
    assert seen == []


def test_a_server_that_wants_a_client_certificate_is_told(authority):
    server = speaking(authority.issue("mtls", address="127.0.0.1"), client_ca=authority.file)
    client = authority.issue("device", host="device.acme.example")
    with served(http(204), server) as port:
        text = f"report.url = 'https://127.0.0.1:{port}/r'\nreport.ca_file = '{authority.file}'\n"
        without = network.endpoints(settings_of(text), root=False)[-1]
        shown = network.endpoints(settings_of(f"{text}report.client_cert = '{client}'\n"), root=False)[-1]
    assert "wants a client certificate" in without.message
    assert shown.verdict == "ok"


def test_a_certificate_file_that_is_none_is_told(tmp_path):
    text = f"report.url = 'https://127.0.0.1:1/r'\nreport.ca_file = '{put(tmp_path / 'ca', 'CANARY')}'\n"
    check = network.endpoints(settings_of(text), root=False)[-1]
    assert (check.name, check.verdict) == ("report", "fault")
    assert "ca_file" in check.message
    assert "CANARY" not in check.message + check.advice


def test_refused_silent_garbage_and_unknown_names_are_told(authority, monkeypatch):
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    tls = tls_context()
    assert probe.ask(f"https://127.0.0.1:{port}/", tls).kind == "connection-refused"
    with served(b"CANARY\r\n\r\n") as port:
        garbage = probe.ask(f"http://127.0.0.1:{port}/", tls)
    assert garbage.kind in {"protocol", "closed"}
    assert "CANARY" not in garbage.words
    silent = socket.create_server(("127.0.0.1", 0))
    with silent:
        port = silent.getsockname()[1]
        assert probe.ask(f"https://127.0.0.1:{port}/", tls, total=0.3).kind == "timeout"

    def unknown(*_args, **_more):
        raise socket.gaierror(socket.EAI_NONAME, "CANARY")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    told = network.words(
        "report.url", "halos.acme.example", probe.ask("https://halos.acme.example/", tls), token=False
    )
    assert told.message == "halos.acme.example: the server's name cannot be resolved"
    assert "name servers" in told.advice


def test_a_proxy_that_refuses_or_is_none_is_told(monkeypatch):
    tls = tls_context()
    with served(http(407)) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        said = probe.ask("https://halos.acme.example/", tls)
    assert said.kind == "proxy"
    assert "HTTPS_PROXY" in network.words("report.url", "h", said, token=False).advice
    monkeypatch.setenv("HTTPS_PROXY", "socks5://CANARY@127.0.0.1:1")
    said = probe.ask("https://halos.acme.example/", tls)
    assert said.kind == "settings"
    assert "CANARY" not in said.words


@needs_root
def test_root_lets_the_agents_account_ask():
    """The connection belongs to the account: the kernel says so in /proc/net/tcp."""
    other = pwd.getpwnam("nobody")
    ids = probe.Ids(other.pw_uid, other.pw_gid, ())
    owners = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(HANG)
    port = listener.getsockname()[1]

    def serve():
        client, (_, from_port) = listener.accept()
        with client, open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table]
            owners.extend(row[7] for row in rows if row[1] == f"0100007F:{from_port:04X}")
            client.recv(65_536)
            client.sendall(http(204))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    said = probe.ask(f"http://127.0.0.1:{port}/", tls_context(), ids=ids)
    thread.join(HANG)
    listener.close()
    assert (said.kind, said.status) == ("answer", 204)
    assert owners == [str(other.pw_uid)]


@needs_root
def test_a_child_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(probe, "_GRACE", 0.2)
    other = pwd.getpwnam("nobody")
    monkeypatch.setattr(probe, "_ask", lambda *_: threading.Event().wait(LONG))
    said = probe.ask(
        "http://127.0.0.1:1/", tls_context(), ids=probe.Ids(other.pw_uid, other.pw_gid, ()), total=0.2
    )
    assert (said.kind, said.words) == ("failed", "the question was not answered in time")


@needs_root
def test_a_child_that_fails_says_so_without_the_reason(monkeypatch):
    def fail(*_args):
        raise RuntimeError("CANARY")

    monkeypatch.setattr(probe, "_ask", fail)
    said = probe.ask("http://127.0.0.1:1/", tls_context(), ids=probe.Ids(65534, 65534, ()))
    assert said.kind == "failed"
    assert "CANARY" not in said.words


class Ended(BaseException):
    """Stands for the end of the process."""


@needs_root
def test_the_child_gives_up_its_rights_before_it_asks(monkeypatch):
    def end(_code):
        raise Ended

    def work():
        reader, writer = os.pipe()
        ids = probe.Ids(12345, 12346, (12347,))
        monkeypatch.setattr(os, "_exit", end)
        with contextlib.suppress(Ended):
            probe._in_child(
                writer, ids, lambda: probe.Answered("answer", 200, f"{os.getresuid()} {os.getgroups()}")
            )
        monkeypatch.undo()
        return os.read(reader, 4096)

    said = msgspec.msgpack.decode(in_child(work), type=probe.Answered)
    assert said.words == "(12345, 12345, 12345) [12347]"


@needs_root
def test_a_child_that_cannot_change_its_account_asks_nothing(monkeypatch):
    asked = []

    def refuse(*_ids):
        raise PermissionError("CANARY")

    def end(_code):
        raise Ended

    reader, writer = os.pipe()
    with monkeypatch.context() as patched:
        patched.setattr(probe.identity, "assume", refuse)
        patched.setattr(os, "_exit", end)
        with contextlib.suppress(Ended):
            probe._in_child(writer, probe.Ids(1, 1, ()), lambda: asked.append(1))
    said = msgspec.msgpack.decode(os.read(reader, 4096), type=probe.Answered)
    os.close(reader)
    os.close(writer)
    assert (said.kind, asked) == ("failed", [])
    assert "CANARY" not in said.words


def test_nothing_is_asked_when_the_agents_account_is_missing():
    text = "report.url = 'https://127.0.0.1:1/r'\ndevice.agent_account = 'no-such-account'\n"
    check = network.endpoints(settings_of(text), root=True)[-1]
    assert (check.verdict, check.message) == ("warning", "not tried: the agent's account is missing")


def test_without_an_endpoint_reports_go_nowhere():
    (check,) = network.endpoints(settings_of(), root=False)
    assert (check.name, check.verdict) == ("report.url", "warning")
    assert network.canary(settings_of()).verdict == "fault"


@pytest.mark.parametrize(
    ("outcome", "verdict"), [("delivered", "ok"), ("refused", "fault"), ("unavailable", "warning")]
)
def test_the_canary_says_how_far_it_came(monkeypatch, outcome, verdict):
    monkeypatch.setattr(sender, "send", lambda _settings: sender.Result(outcome, "words", "advice"))
    check = network.canary(settings_of("report.url = 'https://127.0.0.1:1/r'"))
    assert (check.verdict, check.message) == (verdict, "words")


def test_a_host_is_shown_without_the_rest():
    assert network.host_of("https://Halos.acme.example/CANARY?CANARY") == "halos.acme.example"
    assert network.host_of("https://[::1]:8443/x") == "[::1]:8443"
    assert network.host_of("no URL") == "the server"


# --- files -------------------------------------------------------------------------------------------------


def secret_check(path):
    text = f"report.url = 'https://x.example/'\nreport.token_file = '{path}'\n"
    (check,) = files.secrets(settings_of(text), root=ROOT)
    return check


def test_a_good_token_is_good(tmp_path):
    check = secret_check(put(tmp_path / "token", TOKEN + "\n"))
    assert check.verdict == "ok"
    assert secret.read(str(tmp_path / "token")).text == TOKEN


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (TOKEN, 0o644, "can be read by others (mode 0644)"),
        (TOKEN, 0o620, "can be read by others (mode 0620)"),
        ("", 0o600, "does not hold one token"),
        ("CANARY CANARY", 0o600, "does not hold one token"),
        ("CANARY\nCANARY", 0o600, "does not hold one token"),
        ("CANARY" * 1000, 0o600, "does not hold one token"),
        ("CANARY\u00e9", 0o600, "does not hold one token"),
    ],
)
def test_a_bad_token_is_told_and_not_repeated(tmp_path, content, mode, words):
    check = secret_check(put(tmp_path / "token", content, mode))
    assert check.verdict == "fault"
    assert words in check.message
    assert check.advice
    assert "CANARY" not in check.message + check.advice


def test_a_missing_token_and_one_that_is_no_file_are_told(tmp_path):
    assert "does not exist" in secret_check(tmp_path / "none").message
    assert "no regular file" in secret_check(tmp_path).message
    put(tmp_path / "file", "x")
    assert "cannot be looked at" in secret_check(tmp_path / "file" / "below").message


def test_a_key_is_not_read_as_a_token(tmp_path):
    text = f"report.client_cert = '/c'\nreport.client_key = '{put(tmp_path / 'key', 'a b')}'\n"
    (check,) = files.secrets(settings_of(text), root=ROOT)
    assert (check.name, check.verdict) == ("report.client_key", "ok")


@needs_root
def test_the_owner_of_a_token_counts(tmp_path):
    path = put(tmp_path / "token", TOKEN)
    os.chown(path, 12345, 12345)
    assert "owned by uid 12345" in secret_check(path).message


@needs_root
def test_a_token_that_the_caller_may_not_read_asks_for_root(shared_tmp, account):
    path = put(shared_tmp / "token", TOKEN)
    with account(12345):
        text = f"report.url = 'https://x.example/'\nreport.token_file = '{path}'\n"
        (check,) = files.secrets(settings_of(text), root=False)
    assert (check.verdict, check.advice) == ("warning", "run halod check as root")


@needs_root
def test_what_others_could_write_is_told(shared_tmp):
    loose = put(shared_tmp / "halod.toml", "", 0o666)
    (check,) = files.ownership("ownership", [str(loose)], "the settings")
    assert check.message == f"{loose} can be written by everybody"
    loose.chmod(0o644)
    assert files.ownership("ownership", [str(loose)], "the settings")[0].verdict == "ok"


# --- policy ------------------------------------------------------------------------------------------------


def policy_checks(tmp_path, text=POLICY, device=""):
    path = put(tmp_path / "halos.yaml", text)
    return policy.policy(settings_of(f"policy.path = '{path}'\n{device}"))


def test_a_valid_policy_that_knows_the_device_is_good(tmp_path):
    checks = policy_checks(tmp_path, device="device.ring = 'ring1'\ndevice.units = ['payments']\n")
    assert [check.verdict for check in checks] == ["ok", "ok"]
    assert checks[0].message.startswith("valid, 1 server, sha256:")


def test_a_ring_or_unit_that_the_policy_does_not_know_is_told(tmp_path):
    checks = policy_checks(tmp_path, device="device.ring = 'rnig1'\ndevice.units = ['x']\n")
    assert [check.verdict for check in checks] == ["ok", "fault", "fault"]
    assert 'did you mean "ring1"?' in checks[1].message


def test_no_ring_where_there_are_some_may_be_a_slip(tmp_path):
    check = policy_checks(tmp_path)[-1]
    assert (check.name, check.verdict) == ("device.ring", "warning")
    assert "ring1, ring2" in check.advice


def test_every_fault_of_a_policy_is_told(tmp_path):
    checks = policy_checks(tmp_path, "rings: [a]\nmcp: {modes: 1, server: []}\n")
    assert [check.verdict for check in checks] == ["fault", "fault"]
    assert "halos.yaml:2:" in checks[0].message
    many = policy_checks(tmp_path, "mcp:\n" + "".join(f"  k{number}: 1\n" for number in range(30)))
    assert len(many) == 21
    assert many[-1].message == "and 10 more"


def test_a_policy_that_is_missing_fetched_or_none_is_told(tmp_path):
    (missing,) = policy.policy(settings_of(f"policy.path = '{tmp_path / 'none'}'"))
    assert (missing.name, missing.verdict) == ("policy.path", "fault")
    key = "EAWfVlDNL2ESvCZ9DnnZc7N0qWzzMVTKkWQyxJ1xmlk="
    (fetched,) = policy.policy(
        settings_of(f"policy.url = 'https://x.example/p'\npolicy.public_keys = ['{key}']")
    )
    assert (fetched.verdict, "1 key" in fetched.message) == ("ok", True)
    (none,) = policy.policy(settings_of())
    assert none.verdict == "warning"
    checks = policy_checks(tmp_path, device=f"policy.public_keys = ['{key}']\ndevice.ring = 'ring1'\n")
    assert [check.verdict for check in checks] == ["ok", "warning", "ok"]


# --- the machine -------------------------------------------------------------------------------------------


def test_the_agents_account_must_exist_and_not_be_root():
    named = settings_of(
        "device.agent_account = 'no-such-account'\ndevice.accounts = ['nobody', 'no-such-person']"
    )
    agent, missing = machine.accounts(named, root=True)
    assert (agent.verdict, "no account no-such-account" in agent.message) == ("fault", True)
    assert "useradd" in agent.advice
    assert (missing.verdict, "no-such-person" in missing.message) == ("warning", True)
    assert machine.accounts(named, root=False)[0].verdict == "warning"
    assert machine.accounts(settings_of("device.agent_account = 'nobody'"), root=True)[0].verdict == "ok"


def test_an_account_with_uid_0_is_no_agent(monkeypatch):
    zero = pwd.struct_passwd(("toor", "x", 0, 0, "", "/root", "/bin/sh"))
    monkeypatch.setattr(machine, "entry", lambda _name: zero)
    assert machine.accounts(settings_of("device.agent_account = 'toor'"), root=True)[0].verdict == "fault"


def state_checks(path, *, root=False):
    return machine.state(settings_of(f"state.dir = '{path}'\ndevice.agent_account = 'nobody'"), root=root)


@pytest.mark.parametrize(
    ("mode", "verdict", "words"),
    [
        (0o700, "ok", "belongs to the agent"),
        (0o755, "warning", "can be read by others"),
        (0o770, "fault", "can be written by others"),
    ],
)
def test_the_state_directory_is_the_agents_alone(tmp_path, mode, verdict, words):
    directory = tmp_path / "state"
    directory.mkdir()
    directory.chmod(mode)
    (check,) = state_checks(directory)
    assert check.verdict == verdict
    assert words in check.message


def test_a_state_directory_that_is_missing_or_none_is_told(tmp_path):
    assert state_checks(tmp_path / "none")[0].verdict == "ok"
    file = put(tmp_path / "file", "")
    assert state_checks(file)[0].message.endswith("is no directory")
    assert "cannot be looked at" in state_checks(file / "below")[0].message


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    full = type("Full", (), {"f_bavail": 1, "f_frsize": 4096})
    monkeypatch.setattr(os, "statvfs", lambda _path: full)
    tmp_path.chmod(0o700)
    assert "64 MiB" in state_checks(tmp_path)[0].message


@needs_root
def test_the_owner_of_the_state_directory_and_of_what_is_above_counts(shared_tmp):
    directory = shared_tmp / "state"
    directory.mkdir(mode=0o700)
    wrong = state_checks(directory, root=True)[0]
    assert (wrong.verdict, wrong.advice) == ("fault", f"chown nobody {directory}")
    assert "owned by uid 0, not by nobody" in wrong.message
    os.chown(directory, pwd.getpwnam("nobody").pw_uid, 0)
    assert state_checks(directory, root=True)[0].verdict == "ok"
    os.chown(shared_tmp, 12345, 12345)
    check = state_checks(directory, root=True)[0]
    assert (check.verdict, "owned by uid 12345" in check.message) == ("fault", True)


@needs_root
@pytest.mark.parametrize(
    ("owner", "verdict", "words"),
    [
        ("nobody", "ok", "was not checked without root"),
        (12345, "ok", "was not checked without root"),
        (0, "warning", "owned by uid 0, which is neither nobody nor this account"),
    ],
)
def test_an_ordinary_user_is_told_no_fault_of_the_state_directory(shared_tmp, account, owner, verdict, words):
    """It is the agent's, or the caller's own; else it is left to root, and nobody is told to take it."""
    directory = shared_tmp / "state"
    directory.mkdir(mode=0o700)
    os.chown(directory, pwd.getpwnam("nobody").pw_uid if owner == "nobody" else owner, 0)
    with account(12345):
        (check,) = state_checks(directory)
    assert check.verdict == verdict
    assert words in check.message
    assert "chown" not in check.advice


@needs_root
def test_what_an_ordinary_user_may_not_see_is_no_fault(shared_tmp, account):
    """Closed directories and files of root's: a warning each, which says who can look."""
    closed = shared_tmp / "closed"
    closed.mkdir(mode=0o700)
    key = put(closed / "key", "x")
    put(closed / "halos.yaml", POLICY)
    text = (
        f"policy.path = '{closed / 'halos.yaml'}'\nreport.url = 'https://127.0.0.1:1/'\n"
        f"report.token_file = '{key}'\nreport.client_cert = '{key}'\nreport.client_key = '{key}'\n"
    )
    settings = settings_of(text)
    with account(12345):
        checks = [
            *files.secrets(settings, root=False),
            *policy.policy(settings),
            *state_checks(closed / "state"),
            *network.endpoints(settings, root=False),
        ]
    assert {check.name for check in checks} >= {"report.token_file", "policy.path", "state.dir", "report.url"}
    assert {(check.verdict, check.advice) for check in checks} == {("warning", "run halod check as root")}


@pytest.mark.parametrize(
    ("abi", "filtered", "words"),
    [
        (7, True, "Landlock (ABI 7)"),
        (0, True, "lacks Landlock"),
        (7, False, "lacks the system call filter"),
        (0, False, "lacks Landlock and the system call filter"),
    ],
)
def test_the_sandbox_is_told(abi, filtered, words):
    check = machine.words_of_sandbox(abi, filtered=filtered)
    assert words in check.message
    assert check.verdict == ("ok" if abi and filtered else "warning")
    assert ("partial" in check.message) == (check.verdict == "warning")


def test_the_sandbox_of_this_machine_has_words():
    assert machine.sandbox().message


# --- all of it ---------------------------------------------------------------------------------------------


@pytest.fixture
def halod_toml(tmp_path):
    """Give a way to write the settings; the directory has a policy."""
    put(tmp_path / "halos.yaml", POLICY)

    def write(text=""):
        head = f"device.agent_account = 'nobody'\ndevice.ring = 'ring1'\npolicy.path = '{tmp_path / 'halos.yaml'}'\n"
        return str(put(tmp_path / "halod.toml", head + text))

    return write


def test_all_is_looked_at_in_order(halod_toml):
    names = [check.name for check in examine(halod_toml())]
    assert names == sorted(names, key=names.index)
    for name in (
        "settings",
        "policy.path",
        "device",
        "device.agent_account",
        "state.dir",
        "sandbox",
        "report.url",
    ):
        assert name in names
    assert ("installation" in names) == ROOT
    assert ("rights" in names) != ROOT


def test_faults_of_the_settings_are_all_told_and_nothing_else_is_guessed(halod_toml):
    checks = examine(halod_toml("scan.intervall = 1\nlog.level = 'x'\n"))
    settings = [check.message for check in checks if check.name == "settings"]
    assert [message.partition(": ")[0].rpartition(":")[2] for message in settings] == ["4", "5"]
    assert not any(check.name.startswith("policy") for check in checks)


def test_the_command_ends_with_0_or_2(halod_toml, capsys):
    command = ["check", "--config", halod_toml()]
    assert cli.main([*command, "--format", "json"]) in (0, 2)
    document = json.loads(capsys.readouterr().out)
    assert document["faults"] == sum(check["verdict"] == "fault" for check in document["checks"])
    assert document["warnings"] >= 1
    assert cli.main(["check", "--config", halod_toml("nonsense = 1\n")]) == 2
    out = capsys.readouterr().out
    assert 'halod.toml:4: unknown key "nonsense"' in " ".join(out.split())
    assert out.splitlines()[-1].startswith("1 fault")


def test_missing_settings_are_a_fault_with_advice(tmp_path, capsys):
    assert cli.main(["check", "--config", str(tmp_path / "none.toml")]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "fault settings: there are no settings at" in out
    assert "copy the sample" in out


@needs_root
def test_a_good_installation_passes_and_its_canary_is_told(halod_toml, tmp_path, capsys, monkeypatch):
    """Exit 0 with nothing but warnings; the server is asked once, as the agent's account."""
    from halod.roles import trust

    monkeypatch.setattr(trust, "own_paths", list)  # the interpreter of a test may be anybody's
    seen = []
    with served(http(405), None, seen) as port:
        token = put(tmp_path / "token", TOKEN)
        text = f"report.url = 'http://127.0.0.1:{port}/r'\nreport.token_file = '{token}'\n"
        code = cli.main(["check", "--config", halod_toml(text), "--canary"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert "canary" in out
    assert len(seen) == 1
    assert "CANARY" not in out


@needs_root
def test_no_token_is_sent_where_others_could_have_written_the_settings(halod_toml, tmp_path, capsys):
    seen = []
    with served(http(204), None, seen) as port:
        token = put(tmp_path / "token", TOKEN)
        file = halod_toml(f"report.url = 'http://127.0.0.1:{port}/r'\nreport.token_file = '{token}'\n")
        os.chmod(file, 0o666)
        assert cli.main(["check", "--config", file, "--canary", "--format", "json"]) == 2
    checks = msgspec.json.decode(capsys.readouterr().out)["checks"]
    assert checks[-1]["message"] == "not tried: others could have written where it leads"
    assert seen == []


def test_the_canary_is_not_sent_over_faults(halod_toml):
    text = "report.url = 'https://127.0.0.1:1/r'\nreport.token_file = '/nonexistent/token'\n"
    check = examine(halod_toml(text), canary=True)[-1]
    assert (check.name, check.message) == ("canary", "not sent: mend the faults first")
