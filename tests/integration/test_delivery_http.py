# SPDX-License-Identifier: Apache-2.0
"""The door for HTTP against a real server in another process that does everything wrong a server can."""

import json
import logging
import socket
import ssl
import threading
import time

import pytest

from halod import __version__
from halod.agent.faults import WORDS, Fault
from halod.agent.http import BODY_LIMIT, Client
from halod.agent.tls import tls_context
from halod.errors import UsageError
from tests.support.certificates import DAY, NOW, Authority
from tests.support.guard import HANG, LONG, until
from tests.support.server import TOKEN, running

SOON = 1.0
BODY = b'{"CANARYbody": 1}'


@pytest.fixture(scope="module")
def _started():
    with running() as started:
        yield started


@pytest.fixture
def server(_started):
    """Give the module's one server, rid of what an earlier test broke off."""
    _started.settle()
    return _started


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def client_for(url, *, total=HANG, **files):
    return Client(url, tls_context(**{name: str(file) for name, file in files.items()}), total=total)


def post(url, *, total=HANG, **files):
    client = client_for(url, total=total, **files)
    try:
        return client.send("POST", url, bearer=TOKEN, body=BODY)
    finally:
        client.close()


def fault_of(url, *, total=HANG, **files):
    """Give the fault of a request, after checking that it says nothing of what was asked."""
    with pytest.raises(Fault) as caught:
        post(url, total=total, **files)
    fault = caught.value
    assert fault.__cause__ is None
    assert fault.__context__ is None
    assert str(fault) == fault.kind
    assert fault.kind in WORDS
    return fault


# What is sent


def test_what_is_sent(server):
    """The headers are those of the contract, and no others that would tell more."""
    server.plan("200")
    assert post(server.url).status == 200
    entry = server.log()[-1]
    assert entry["body"].encode() == BODY
    assert entry["headers"] == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": f"halod/{__version__}",
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "content-length": str(len(BODY)),
    }


def test_one_connection_is_used_again(server):
    """Several reports at once do not shake hands each time."""
    server.plan("200")
    client = client_for(server.url)
    for _ in range(3):
        client.send("POST", server.url, bearer=TOKEN, body=BODY)
    client.close()
    assert len({entry["connection"] for entry in server.log()[-3:]}) == 1


def test_cookies_are_not_kept(server):
    """A server cannot mark a machine, or fill its memory, with cookies."""
    server.plan("cookie", "200")
    client = client_for(server.url)
    assert client.send("POST", server.url, body=BODY).status == 503
    assert client.send("POST", server.url, body=BODY).status == 200
    client.close()
    assert "cookie" not in server.log()[-1]["headers"]


def test_the_answer_shows_nothing(server):
    """What a server says is not shown by accident."""
    server.plan("cookie")
    answer = post(server.url)
    assert repr(answer) == "Answer(503, 0 bytes)"
    assert "set-cookie" not in answer.headers


def test_a_client_speaks_to_one_origin(server):
    """A token for one server cannot be sent to another by mistake."""
    client = client_for(server.url)
    with pytest.raises(ValueError, match="one origin"):
        client.send("GET", "https://other.acme.example/")
    client.close()
    assert repr(client) == "Client()"


# What comes back

STATUSES = (
    200,
    201,
    202,
    204,
    304,
    400,
    401,
    403,
    404,
    405,
    409,
    410,
    413,
    415,
    422,
    425,
    429,
    500,
    502,
    503,
    504,
)


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_an_answer(server, status):
    """A status is for the caller to judge."""
    server.plan(f"{status} Retry-After: 7")
    answer = post(server.url)
    assert (answer.status, answer.headers["retry-after"], answer.whole) == (status, "7", True)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
def test_redirects_are_not_followed(server, status):
    """The token does not travel to where a server points."""
    before = len(server.log())
    server.plan(f"{status} Location: {server.origin}/CANARYelsewhere")
    fault = fault_of(server.url)
    assert (fault.kind, fault.status) == ("redirect", status)
    assert len(server.log()) == before + 1


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("close", "closed"),
        ("truncate-head", "closed"),
        ("truncate-body", "closed"),
        ("truncate-chunk", "closed"),
        ("garbage", "protocol"),
        ("bad-length", "protocol"),
        ("two-lengths", "protocol"),
        ("flood-head", "protocol"),
        ("flood-line", "protocol"),
        ("flood-chunks", "protocol"),
        ("flood-informational", "protocol"),
        ("switch", "protocol"),
    ],
)
def test_what_is_no_answer(server, word, kind):
    """A broken answer is a fault of its own, not the end of the time."""
    server.plan(word)
    assert fault_of(server.url, total=HANG).kind == kind


def test_a_flood_is_cut(server):
    """Of a body without end the first part is read; the status counts."""
    server.plan("flood-body")
    answer = post(server.url)
    assert (answer.status, len(answer.body), answer.whole) == (200, BODY_LIMIT, False)


def test_compressed_bodies_are_not_unpacked(server):
    """Nothing was asked for compressed: what comes so is left as it is."""
    server.plan("gzip-bomb")
    assert post(server.url).body == b"\x1f\x8b\x08\x00"


@pytest.mark.parametrize("word", ["hang", "drip-head", "drip-body"])
def test_the_time_is_for_the_whole_request(server, word):
    """A server that sends a byte now and then has no more time than one that hangs."""
    server.plan(word)
    started = time.monotonic()
    assert fault_of(server.url, total=SOON).kind == "timeout"
    assert SOON - 0.1 <= time.monotonic() - started < HANG


def test_a_server_that_does_not_read(tmp_path):
    """A body that nobody takes ends with the time."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        client = client_for(url, total=SOON)
        with pytest.raises(Fault, match="timeout"):
            client.send("POST", url, body=b"x" * 16 * 1024 * 1024)
        client.close()


def test_the_log_stays_silent(server, caplog):
    """The libraries' own lines hold URLs: even a root logger that wants everything gets none."""
    caplog.set_level(logging.DEBUG)
    server.plan("200", "302 Location: /", "garbage")
    post(server.url)
    fault_of(server.url)
    fault_of(server.url)
    assert [record for record in caplog.records if record.name.startswith("http")] == []


# Connections


def test_nobody_listens():
    """A closed port is refused."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/"
        assert fault_of(url).kind == "connection-refused"


def test_an_unknown_name():
    """`.invalid` never resolves (RFC 6761)."""
    assert fault_of("https://halod.invalid/", total=HANG).kind in {"dns", "timeout"}


def test_a_resolver_that_hangs(monkeypatch):
    """A look-up cannot be interrupted; it is left behind, and closes what it gets too late."""
    release = threading.Event()
    look_up = socket.getaddrinfo
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        def slow(host, *rest, **options):
            release.wait(LONG)
            return look_up("127.0.0.1", *rest, **options)

        monkeypatch.setattr(socket, "getaddrinfo", slow)
        assert fault_of(f"https://slow.acme.example:{port}/", total=0.3).kind == "timeout"
        release.set()
        listener.settimeout(HANG)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(HANG)
            assert connection.recv(1) == b""


def test_a_name_that_is_said_to_be_this_machine(monkeypatch):
    """Plain http goes to a loopback address, whatever `localhost` resolves to."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert fault_of(f"http://localhost:{port}/", total=SOON).kind == "timeout"
        monkeypatch.setattr("halod.agent.bounded._is_loopback", lambda _stream: False)
        assert fault_of(f"http://localhost:{port}/").kind == "plain-http"


@pytest.mark.parametrize(
    "url",
    [
        "http://console.acme.example/api/v1/fleet/report",
        "http://127.0.0.1.acme.example/",
        "http://0x7f.1/",
        "http://10.0.0.1/",
        "http://[::2]/",
        "ftp://127.0.0.1/",
        "console.acme.example/",
        "https:///x",
        "https://user:CANARY@console.acme.example/",
        "https://@console.acme.example/",
        "https://console.acme.example/#CANARY",
        "https://console.acme.example:port/",
        "https://console.acme.example:99999/",
        "https://[::1/",
        "https://console.acme.example/a b",
        "https://console.acme.example/\n",
        "https://cönsole.acme.example/",
        "",
    ],
)
def test_urls_that_are_refused(url):
    """Nothing is sent in the clear, and no message quotes the URL."""
    with pytest.raises(UsageError) as caught:
        client_for(url)
    assert "CANARY" not in str(caught.value) + caught.value.advice
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST", "[::1]"])
def test_plain_http_to_this_machine(host):
    """Loopback needs no certificate."""
    client_for(f"http://{host}:1/").close()


# Breaking off


@pytest.mark.parametrize("word", ["hang", "drip-head", "drip-body", "flood-informational"])
def test_a_request_is_broken_off_from_outside(server, word):
    """`abort` ends a request that hangs in its answer, long before its time is over."""
    server.plan(word)
    before = len(server.log())
    _is_broken_off(client_for(server.url, total=LONG), server.url, lambda: len(server.log()) > before)


def _is_broken_off(client, url, under_way):
    faults = []

    def ask():
        try:
            client.send("POST", url, body=BODY)
        except Fault as fault:
            faults.append(fault.kind)

    thread = threading.Thread(target=ask)
    thread.start()
    until(under_way)
    client.abort()
    thread.join(HANG)  # without `abort` it would be LONG
    assert not thread.is_alive()
    assert faults == ["stopped"]
    with pytest.raises(Fault, match="stopped"):
        client.send("GET", url)
    client.close()


def test_a_handshake_is_broken_off():
    """A server that takes the connection and never speaks TLS holds nobody."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        connections = []

        def accepted():
            connections.append(listener.accept()[0])
            return bool(connections[0].recv(1))

        _is_broken_off(client_for(url, total=LONG), url, accepted)
        connections[0].close()


def test_a_look_up_is_broken_off(monkeypatch):
    """Neither does a resolver."""
    asked, release = threading.Event(), threading.Event()

    def slow(*_args, **_options):
        asked.set()
        release.wait(LONG)
        raise socket.gaierror(socket.EAI_NONAME, "CANARY")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    url = "https://slow.acme.example/"
    _is_broken_off(client_for(url, total=LONG), url, asked.is_set)
    release.set()


# TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def good(authority):
    return authority.issue("good", host="localhost", address="127.0.0.1")


@pytest.fixture(scope="module")
def secure(good):
    with running(cert=good) as started:
        yield started


def test_an_own_ca(secure, authority):
    """With the organisation's CA its console is trusted, by address and by name."""
    secure.plan("204")
    assert post(secure.url, ca_file=authority.file).status == 204
    assert post(secure.url.replace("127.0.0.1", "localhost"), ca_file=authority.file).status == 204


def test_an_unknown_ca(secure, tmp_path):
    """Neither the system's CAs nor another own one vouch for it."""
    before = len(secure.log())
    assert fault_of(secure.url).kind == "tls-unknown-ca"
    assert fault_of(secure.url, ca_file=Authority(tmp_path, "other-ca").file).kind == "tls-unknown-ca"
    assert len(secure.log()) == before


@pytest.mark.parametrize(
    ("start", "end"), [(NOW - 9 * DAY, NOW - DAY), (NOW + DAY, NOW + 9 * DAY)], ids=["expired", "not-yet"]
)
def test_a_certificate_out_of_its_time(authority, start, end):
    """Expired, or not valid yet: the same advice, look at the dates."""
    with running(cert=authority.issue("dated", address="127.0.0.1", start=start, end=end)) as server:
        assert fault_of(server.url, ca_file=authority.file).kind == "tls-expired"
        assert server.log() == []


@pytest.mark.parametrize("names", [{"host": "other.acme.example"}, {"address": "127.0.0.2"}, {}])
def test_a_certificate_of_another_host(authority, names):
    """The certificate must name the host that was asked for."""
    with running(cert=authority.issue("elsewhere", **names)) as server:
        assert fault_of(server.url, ca_file=authority.file).kind == "tls-hostname"
        assert (
            fault_of(server.url.replace("127.0.0.1", "localhost"), ca_file=authority.file).kind
            == "tls-hostname"
        )
        assert server.log() == []


def test_plain_http_behind_https(server):
    """A server that speaks no TLS."""
    assert fault_of(server.url.replace("http:", "https:")).kind == "tls-other"


@pytest.fixture(scope="module")
def mutual(good, authority):
    with running(cert=good, client_ca=authority.file) as started:
        yield started


def test_a_client_certificate(mutual, authority):
    """It is shown, together with its key, to a server that asks."""
    mutual.plan("204")
    own = authority.issue("laptop")
    assert post(mutual.url, ca_file=authority.file, client_cert=own).status == 204
    assert post(mutual.url, ca_file=authority.file, client_cert=own, client_key=own).status == 204


def test_a_client_certificate_that_is_missing_or_foreign(mutual, authority, tmp_path):
    """The server's alert may be lost when it closes at once (TLS 1.3): then the connection was closed."""
    before = len(mutual.log())
    foreign = Authority(tmp_path, "other-ca").issue("laptop")
    wanted = {"tls-client-certificate", "closed"}
    assert fault_of(mutual.url, ca_file=authority.file).kind in wanted
    assert fault_of(mutual.url, ca_file=authority.file, client_cert=foreign).kind in wanted
    assert len(mutual.log()) == before


def test_files_of_tls_that_cannot_be_used(authority, tmp_path):
    """Each is named by its key of the settings; nothing of it is quoted, nobody is asked for a password."""
    own = authority.issue("own")
    locked = authority.issue("locked", password=b"CANARYpass")
    empty = tmp_path / "empty.pem"
    empty.write_text("CANARY")
    for files, key in [
        ({"ca_file": str(empty)}, "report.ca_file"),
        ({"ca_file": str(tmp_path / "none")}, "report.ca_file"),
        ({"client_cert": str(empty)}, "report.client_cert"),
        ({"client_cert": str(own), "client_key": str(authority.issue("another"))}, "report.client_key"),
        ({"client_cert": str(locked)}, "encrypted"),
        ({"client_key": str(own)}, "report.client_key"),
    ]:
        with pytest.raises(UsageError) as caught:
            tls_context(**files)
        said = caught.value.message + caught.value.advice
        assert key in said
        assert "CANARY" not in said
        assert caught.value.__cause__ is None


def test_a_python_without_certificates_of_its_own(monkeypatch):
    """A self-contained build looks where its own machine kept them: the packaged ones are used then."""
    nowhere = ssl.get_default_verify_paths()._replace(cafile=None, capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nowhere)
    context = tls_context()
    assert context.cert_store_stats()["x509_ca"] > 50
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


# Proxies


class Proxy(threading.Thread):
    """A proxy that tunnels every CONNECT to one port, or answers what it is told to."""

    def __init__(self, target, answer=b"HTTP/1.1 200 OK\r\n\r\n"):
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._target = target
        self._answer = answer
        self.heads = []
        self.origin = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        self.heads.append(head.decode())
        client.sendall(self._answer)
        if b" 200 " in self._answer:
            server = socket.create_connection(("127.0.0.1", self._target))
            back = threading.Thread(target=pump, args=(server, client), daemon=True)
            back.start()
            pump(client, server)
            back.join()
            server.close()
        client.close()

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.join(HANG)


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy(secure):
    started = Proxy(secure.port)
    yield started
    started.stop()


URL = "https://console.acme.example/api/v1/fleet/report"


@pytest.fixture(scope="module")
def named(authority):
    with running(cert=authority.issue("console", host="console.acme.example")) as started:
        yield started


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment(named, authority, monkeypatch, variable):
    """The proxy sees whom the agent speaks to, and its own credentials, but neither token nor body."""
    proxy = Proxy(named.port)
    monkeypatch.setenv(variable, f"http://agent:p%40ss@{proxy.origin}")
    named.plan("ok")
    try:
        assert post(URL, ca_file=authority.file).status == 422
    finally:
        proxy.stop()
    (head,) = proxy.heads
    assert head.startswith("CONNECT console.acme.example:443 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic YWdlbnQ6cEBzcw==" in head
    assert "CANARY" not in head
    assert "proxy-authorization" not in json.dumps(named.log()).lower()


def test_a_proxy_without_scheme(named, authority, monkeypatch):
    """`HTTPS_PROXY=host:port` is how many write it."""
    proxy = Proxy(named.port)
    monkeypatch.setenv("HTTPS_PROXY", proxy.origin)
    try:
        assert post(URL, ca_file=authority.file).status == 422
    finally:
        proxy.stop()


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 407 Who\r\n\r\n", b"HTTP/1.1 503 No\r\n\r\n", b"HTTP/1.1 302 X\r\n\r\n"]
)
def test_a_proxy_that_refuses(monkeypatch, answer):
    """It is the proxy, not the server, that is named."""
    proxy = Proxy(0, answer)
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.origin}")
    try:
        assert fault_of(URL).kind == "proxy"
    finally:
        proxy.stop()


def test_a_proxy_that_is_not_there(monkeypatch):
    """A refused connection to the proxy is no refusal of the server's."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{reserved.getsockname()[1]}")
        assert fault_of(URL).kind == "proxy"


def test_loopback_is_never_proxied(server, monkeypatch):
    """A proxy elsewhere cannot reach this machine's loopback."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.plan("204")
    assert post(server.url).status == 204


@pytest.mark.parametrize(
    "proxy", ["socks5://127.0.0.1:1080", "http://", "http://host:port", "ftp://host", "http://hö"]
)
def test_a_proxy_that_cannot_be_used(monkeypatch, proxy):
    """Reports are not sent past a proxy that was meant and mistyped."""
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(UsageError, match="proxy of the environment"):
        client_for(URL)


def test_a_date_of_the_server(server):
    """Retry-After as a date is relative to the server's own Date, which the answer keeps."""
    server.plan("503 Retry-After: Mon, 30 Nov 2026 09:15:02 GMT")
    assert post(server.url).headers["date"].endswith(" GMT")
