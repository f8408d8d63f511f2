# SPDX-License-Identifier: Apache-2.0
"""The HTTP server as a process: what it bounds, how it begins and ends, and what it says."""

import contextlib
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import httpx
import pytest

from halod.console import app, cli, server
from halod.console.access import Access, Route
from halod.console.security import front
from halod.console.settings import Settings
from halod.errors import EnvironmentFault, UsageError
from tests.console import support_people as people
from tests.support.certificates import Authority

RUN = "import sys; from halod.console.cli import main; sys.exit(main())"
pytestmark = pytest.mark.xdist_group("server")


def command(*words):
    return [sys.executable, "-c", RUN, *words]


class Served:
    """A running `halo-server serve`."""

    def __init__(self, process, log):
        self.process = process
        self._log = log

    def log(self):
        return self._log.read_text(encoding="utf-8")

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.log())
            if found:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"{pattern} was not said; the log:\n{self.log()}")

    @property
    def base(self):
        return self.wait_for(r"halo-server is at (\S+)/\n")[1]

    @property
    def link(self):
        return self.wait_for(r"(http\S+/login\?link=\S+)")[1]

    @property
    def port(self):
        return int(self.base.rpartition(":")[2])

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(60)


@contextlib.contextmanager
def serving(directory, *words, **environment):
    log = directory / "log"
    with log.open("w") as said:
        process = subprocess.Popen(
            command("serve", "--data-dir", str(directory / "data"), "--listen", "127.0.0.1:0", *words),
            stdout=said, stderr=said, env={**os.environ, **environment},
        )  # fmt: skip
        try:
            yield Served(process, log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(30)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as running:
        wait_until_it_answers(running)
        yield running


class Inside:
    """The same server in this process, with a route that answers without end."""

    def __init__(self, console, bound):
        self.port = bound.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.ended = threading.Event()
        endless = Route(
            method="GET",
            path="/endless",
            name="endless",
            access=Access.PUBLIC,
            endpoint=lambda call: self.endless(),
        )
        routes = (*app.table(console.settings), endless)
        self.server = server.make(app.build(console, routes=routes, jobs=False), console.settings)

    def endless(self):
        from starlette.responses import StreamingResponse

        def pieces():
            try:
                while True:
                    yield b"a" * 65536
            finally:
                self.ended.set()

        return StreamingResponse(pieces())


@pytest.fixture
def inside(sqlite_url):
    bound = server.bind("127.0.0.1:0")
    listen = f"127.0.0.1:{bound.getsockname()[1]}"
    with people.sqlite_console(sqlite_url, listen=listen) as console:
        running = Inside(console, bound)
        thread = threading.Thread(target=running.server.run, args=([bound],))
        thread.start()
        try:
            yield running
        finally:
            running.server.should_exit = True
            thread.join(60)


def wait_until_it_answers(running):
    end = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{running.base}/readyz", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        assert time.monotonic() < end, running.log()
        time.sleep(0.05)


def connect(running):
    made = socket.create_connection(("127.0.0.1", running.port), timeout=60)
    made.settimeout(60)
    return made


def is_closed(connection):
    try:
        return connection.recv(65536) == b""
    except ConnectionError:
        return True


def test_a_link_from_the_log_signs_in_and_the_log_does_not_tell_it_again(served):
    link = served.link
    token = link.partition("link=")[2]
    with httpx.Client(base_url=served.base) as browser:
        assert browser.get(link).status_code == 200
        headers = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
        answer = browser.post("/login/link", data={"link": token, "next": "/devices"}, headers=headers)
        assert (answer.status_code, answer.headers["location"]) == (303, "/devices")
        assert browser.get("/devices").status_code == 200
        value = browser.cookies["halo"]
        assert browser.get(f"/login?link={token}&next=/CANARY").status_code == 200
        assert browser.get("/CANARY?CANARY=1", headers={"User-Agent": "CANARY"}).status_code == 404
    log = served.log()
    assert log.count(token) == 1
    assert value not in log
    assert "CANARY" not in log
    assert '"route":"/login/link","status":303' in log


def test_its_files_are_its_own(served):
    directory = os.path.dirname(served._log) + "/data"
    assert os.stat(directory).st_mode & 0o777 == 0o700
    for name in os.listdir(directory):
        assert os.stat(os.path.join(directory, name)).st_mode & 0o077 == 0, name


def test_the_server_does_not_say_what_it_is(served):
    answer = httpx.get(f"{served.base}/healthz")
    assert "server" not in answer.headers
    assert "uvicorn" not in answer.text.lower()


FLOODS = {
    "one header without end": b"GET /login HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 200_000,
    "headers without end": b"GET /login HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(20_000)),
    "an address without end": b"GET /" + b"a" * 200_000,
    "more headers than anybody needs": b"GET /login HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 200 + b"\r\n",
    "a header of 40 KiB": b"GET /login HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 40_000 + b"\r\n\r\n",
    "garbage": b"\x16\x03\x01\x02\x00" + b"\x00\xff" * 5000,
    "a length that is none": b"POST /login/link HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n",
    "two lengths": b"POST /login/link HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": b"POST /login/link HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n",
    "a space before the colon": b"GET /login HTTP/1.1\r\nHost : x\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
def test_heads_without_end_and_heads_that_are_none_are_refused(served, name):
    """A 400 or the end of the connection, and the console goes on."""
    with connect(served) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(FLOODS[name])
        got = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                got += piece
    assert got == b"" or got.startswith((b"HTTP/1.1 400", b"HTTP/1.1 4")), got[:100]
    assert httpx.get(f"{served.base}/healthz").status_code == 200


@pytest.mark.parametrize("name", FLOODS)
def test_the_same_within_this_process(inside, name):
    with connect(inside) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(FLOODS[name])
        got = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                got += piece
    assert got == b"" or got.startswith(b"HTTP/1.1 4"), got[:100]


def test_a_connection_that_says_nothing_ends(inside, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    for said in (
        b"",
        b"GET / HTTP/1.1\r\nX: a",
        f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{inside.port}\r\n\r\nGET ".encode(),
    ):
        with connect(inside) as connection:
            connection.sendall(said)
            while not is_closed(connection):
                pass


def test_a_body_that_comes_slowly_ends(inside, monkeypatch):
    monkeypatch.setattr(front, "BODY_SECONDS", 0.3)
    head = f"POST /login/link HTTP/1.1\r\nHost: 127.0.0.1:{inside.port}\r\nContent-Length: 50\r\n\r\nlink="
    with connect(inside) as connection:
        connection.sendall(head.encode())
        got = b""
        while piece := connection.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in got.lower()


def test_a_client_that_takes_nothing_is_left(inside, monkeypatch):
    """An export to a stalled client ends, and gives back what it holds."""
    monkeypatch.setattr(front, "SEND_SECONDS", 0.3)
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(60)
    with made:
        made.connect(("127.0.0.1", inside.port))
        made.sendall(f"GET /endless HTTP/1.1\r\nHost: 127.0.0.1:{inside.port}\r\n\r\n".encode())
        assert inside.ended.wait(60)


def test_it_is_no_websocket(inside):
    head = f"GET /login HTTP/1.1\r\nHost: 127.0.0.1:{inside.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    head += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with connect(inside) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith((b"HTTP/1.1 200", b"HTTP/1.1 4"))


def test_an_application_that_does_not_start_is_told():
    async def broken(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "CANARY"})

    bound = server.bind("127.0.0.1:0")
    with pytest.raises(EnvironmentFault, match="did not start"):
        in_a_thread(lambda: server.run(broken, Settings(database_url=""), bound))
    bound.close()


def in_a_thread(work):
    """Run it where no signals are taken; raises what it raised."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(60)


def test_trailers_and_chunks_without_end_are_cut(served):
    head = f"POST /login/link HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    for endless in (b"0\r\nX-A: " + b"a" * 65536, b"1;" + b"x" * 65536):
        with connect(served) as connection:
            connection.sendall(head.encode() + endless)
            try:
                for _ in range(64):
                    connection.sendall(b"a" * 65536)
                cut = is_closed(connection)
            except ConnectionError:
                cut = True
        assert cut


def test_a_head_that_comes_slowly_ends_after_a_while(inside, monkeypatch):
    """Slow loris: a hundred connections that say a letter now and then are gone within bounds; others are served."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 1.0)
    connections = [connect(inside) for _ in range(100)]
    for number, connection in enumerate(connections):
        connection.sendall(b"GET / HTTP/1.1\r\nX: " if number % 2 else b"G")
    began = time.monotonic()
    left = list(connections)
    try:
        while left and time.monotonic() - began < 60:
            for connection in list(left):
                try:
                    connection.setblocking(False)
                    if connections.index(connection) % 2:
                        connection.send(b"a")
                    if connection.recv(1) == b"":
                        left.remove(connection)
                except BlockingIOError:
                    pass
                except OSError:
                    left.remove(connection)
            assert httpx.get(f"{inside.base}/login", timeout=30).status_code == 200
            time.sleep(0.1)
    finally:
        for connection in connections:
            connection.close()
    assert left == []
    assert time.monotonic() - began > server.HEAD_SECONDS / 2, "they were cut for something else"


def test_requests_in_a_pipeline_are_answered_in_order(served):
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode()
    with connect(served) as connection:
        connection.sendall(request * 3)
        got = b""
        while got.count(b'"status":"ok"') < 3:
            piece = connection.recv(65536)
            assert piece, got
            got += piece
    assert got.count(b"HTTP/1.1 200") == 3


def test_memory_stays_where_it_is_under_a_flood(served):
    def used():
        with open(f"/proc/{served.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("only Linux tells")
    before = used()

    def flood():
        for _ in range(20):
            with connect(served) as connection, contextlib.suppress(OSError):
                for _ in range(200):
                    connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 65536)

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert used() - before < 64 * 1024 * 1024


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order(tmp_path, sig):
    with serving(tmp_path, "--log-format", "plain") as running:
        wait_until_it_answers(running)
        assert running.end(sig) == 0
        assert "Traceback" not in running.log()
        assert "error" not in running.log()


def test_two_cannot_listen_at_one_place():
    bound = server.bind("127.0.0.1:0")
    with bound, pytest.raises(EnvironmentFault, match="Address already in use"):
        server.bind(f"127.0.0.1:{bound.getsockname()[1]}")
    with server.bind("[::1]:0") as six:
        assert six.family == socket.AF_INET6


def test_it_does_not_listen_to_others_without_tls(tmp_path, capsys):
    """One line, before anything is made; which addresses these are is tried in test_console_settings."""
    assert cli.main(["serve", "--data-dir", str(tmp_path / "x"), "--listen", "0.0.0.0:0"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "without TLS would send tokens in the clear" in line


def test_tls_of_its_own(tmp_path):
    authority = Authority(tmp_path)
    pair = authority.issue("halo", address="127.0.0.1")
    os.chmod(pair, 0o600)
    settings = tmp_path / "halo-server.toml"
    settings.write_text(f'tls_cert = "{pair}"\ntls_key = "{pair}"\n')
    with serving(tmp_path, "--config", str(settings)) as running:
        context = ssl.create_default_context(cafile=str(authority.file))
        base = running.base
        assert base.startswith("https://127.0.0.1:")
        end = time.monotonic() + 60
        while True:
            try:
                answer = httpx.get(f"{base}/login", verify=context)
                break
            except httpx.ConnectError:
                assert time.monotonic() < end, running.log()
                time.sleep(0.05)
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with (
            socket.create_connection(("127.0.0.1", running.port)) as raw,
            pytest.raises((ssl.SSLError, OSError)),
        ):
            old.wrap_socket(raw)


@pytest.mark.parametrize("kind", ["passphrase", "garbage", "missing"])
def test_a_certificate_that_cannot_be_used(tmp_path, kind):
    authority = Authority(tmp_path)
    pair = authority.issue("halo", address="127.0.0.1", password=b"CANARY" if kind == "passphrase" else None)
    if kind == "garbage":
        pair.write_text("CANARY")
    if kind == "missing":
        pair.unlink()
    with pytest.raises(UsageError, match="tls_") as told:
        server.tls_context(Settings(database_url="", tls_cert=str(pair)))
    assert "CANARY" not in told.value.message
