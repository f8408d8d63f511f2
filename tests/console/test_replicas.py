# SPDX-License-Identifier: Apache-2.0
"""Two `halo-server serve` on one PostgreSQL behind a proxy: no accepted report is lost, whatever happens to one of them."""

import base64
import collections
import concurrent.futures
import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
from sqlalchemy import func, select

from halod.console.access import Role
from halod.console.clock import SystemClock
from halod.console.security import login, tokens
from halod.console.store import counts
from halod.console.store.engine import Store
from halod.console.store.migrate import upgrade
from halod.console.store.schema import DELIVERIES, DEVICES, FINDINGS, HEARTBEATS, TRANSITIONS
from tests.console.support_postgres import running
from tests.console.support_replicas import Machine, Replica, Sender, document, finding, transition
from tests.support.proxy import Proxy

pytestmark = [pytest.mark.xdist_group("replicas"), pytest.mark.timeout(600)]
MACHINES = 16
WORKERS = 8
ROUNDS = 24
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()


class Pair:
    """The proxy, the two replicas and what is behind them."""

    def __init__(self, proxy, replicas, store, receiver, key):
        self.proxy, self.replicas, self.store, self.receiver, self.key = proxy, replicas, store, receiver, key
        self.clock = SystemClock()
        self.all = []

    def machines(self, number):
        """Make machines that have a token."""
        now = self.clock.now()
        with self.store.write() as c:
            made = [Machine(len(self.all) + nth, "") for nth in range(number)]
            self.all += made
            for one in made:
                one.token = tokens.issue_device(
                    c, device=one.device, install_id="i", now=now, days=30, by="test"
                )
        return made

    def client(self, **options):
        return httpx.Client(
            base_url=self.proxy.url, headers={"Origin": self.proxy.url}, timeout=60, **options
        )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Start everything; end it at the end."""
    tmp_path = tmp_path_factory.mktemp("replicas")
    key = tmp_path / "halos.key"
    public = command("halo", "keygen", "--out", key).strip()
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "secret").chmod(0o600)
    with contextlib.ExitStack() as stack:
        # Power does not fail here, but processes do: what the server has is what counts.
        server = stack.enter_context(running())
        url = server.url("postgres")
        store = Store.open(url)
        stack.callback(store.close)
        upgrade(store)
        replicas = [Replica(tmp_path, name, tmp_path / "halo-server.toml") for name in ("a", "b")]
        proxy = stack.enter_context(Proxy([one.address for one in replicas]))
        receiver = stack.enter_context(hooks())
        settings = {
            "database_url": url, "public_url": proxy.url, "proxies": ["127.0.0.1"],
            "hosts": [f"127.0.0.1:{one.port}" for one in replicas], "policy_keys": [public], "policy_org": "acme",
        }  # fmt: skip
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        lines += ["[limits]", "reports_per_minute = 100000", "requests_per_minute = 100000"]
        lines += [
            "[[webhook]]",
            'name = "test"',
            f'url = "{receiver.url}"',
            f'secret_file = "{tmp_path / "secret"}"',
        ]
        lines += ['events = ["finding.new"]']
        (tmp_path / "halo-server.toml").write_text("\n".join(lines) + "\n")
        for one in replicas:
            stack.callback(one.close)
            one.start()
        yield Pair(proxy, replicas, store, receiver, key)


@pytest.fixture
def pair(whole):
    """Two replicas that run, and counts of the proxy that begin here."""
    for one in whole.replicas:
        if one.process.poll() is not None:
            one.start()
    whole.proxy.served.clear()
    return whole


def command(name, *words):
    code = f"import sys; from halod.cli{'.halo' if name == 'halo' else ''} import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class _Hooks:
    """Takes webhooks and remembers their ids."""

    def __init__(self, server):
        self.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        self.ids = collections.Counter()
        self.sent = {}


@contextlib.contextmanager
def hooks():
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.ids[self.headers["webhook-id"]] += 1
            found.sent[self.headers["webhook-id"]] = body
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = _Hooks(server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def load(pair, machines, *, meanwhile, rounds=ROUNDS):
    """Let machines report at the same time; `meanwhile(accepted)` runs beside them, `accepted()` counts."""

    def work(mine):
        send = Sender(("127.0.0.1", pair.proxy.port))
        try:
            for _ in range(rounds):
                for one in mine:
                    one.report(send)
        finally:
            send.close()

    with concurrent.futures.ThreadPoolExecutor(WORKERS + 1) as pool:
        working = [pool.submit(work, machines[nth::WORKERS]) for nth in range(WORKERS)]

        def accepted():
            """Count what was accepted; a machine that failed ends the wait for more."""
            for one in working:
                if one.done():
                    one.result()
            return sum(one.accepted for one in machines)

        beside = pool.submit(meanwhile, accepted)
        for done in working:
            done.result()
        beside.result()


def until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come true"
        time.sleep(0.02)


def compare(pair):
    """What is in the database is what was accepted: no more, no less, nothing twice, and counted right."""
    machines = pair.all
    with pair.store.read() as c:
        rows = c.execute(select(TRANSITIONS.c.device, TRANSITIONS.c.tid).order_by(TRANSITIONS.c.seq)).all()
        kept = collections.defaultdict(list)
        for row in rows:
            kept[row.device].append(row.tid)
        assert dict(kept) == {one.device: one.told for one in machines if one.told}
        found = collections.defaultdict(dict)
        for row in c.execute(select(FINDINGS)):
            assert (row.harness, row.server) not in found[row.device]
            found[row.device][row.harness, row.server] = row.sha256
        assert dict(found) == {one.device: one.seen for one in machines if one.seen}
        assert c.execute(select(func.count()).select_from(DEVICES)).scalar() == len(machines)
        assert c.execute(select(func.count()).select_from(HEARTBEATS)).scalar() == len(machines)
        assert counts.kept(c) == counts.recount(c)


def test_a_replica_is_killed_under_load(pair):
    """SIGKILL of one costs no report that was answered with 2xx; the other one goes on, and the first comes back."""
    machines = pair.machines(MACHINES)
    first, second = pair.replicas

    def kill(accepted):
        until(lambda: accepted() > MACHINES * ROUNDS // 4)
        first.kill()
        until(lambda: accepted() > MACHINES * ROUNDS // 2)
        first.start()

    load(pair, machines, meanwhile=kill)
    assert pair.proxy.served[first.address] > 10
    assert pair.proxy.served[second.address] > pair.proxy.served[first.address]
    assert sum(one.accepted for one in machines) == MACHINES * ROUNDS
    assert sum(len(one.told) for one in machines) > MACHINES * ROUNDS // 3
    compare(pair)


def test_replicas_are_restarted_one_after_the_other(pair):
    """A rolling restart loses nothing, and no report waits for longer than the agent's next try."""
    machines = pair.machines(MACHINES)

    def roll(accepted):
        for nth, one in enumerate(pair.replicas, 1):
            until(lambda nth=nth: accepted() > MACHINES * ROUNDS * nth // 4)
            assert one.stop(signal.SIGTERM) == 0, one.log()
            one.start()

    load(pair, machines, meanwhile=roll)
    compare(pair)
    for one in pair.replicas:
        assert "Traceback" not in one.log()


def test_a_repetition_through_the_other_replica_changes_nothing(pair):
    """The same report through both replicas is one report: its transition is there once."""
    (one,) = pair.machines(1)
    row = finding("notes", 1)
    opened = transition("t1", "opened", row)
    body = json.dumps(document(one.device, [row], [opened])).encode()
    for replica in (*pair.replicas, *pair.replicas):
        send = Sender(replica.address)
        assert send(one.token, body) == 204
        send.close()
    one.told, one.seen = ["t1"], {("cursor", "notes"): row["definitionSha256"]}
    compare(pair)


def test_what_one_replica_knows_the_other_knows(pair):
    """The policy, sessions with their CSRF tokens and revoked tokens hold everywhere at once."""
    now = pair.clock.now()
    with pair.store.write() as c:
        admin = tokens.issue_api(c, name="ci", role=Role.ADMIN, now=now, days=1, by="test")
        link = login.make_link(c, now=now)
    first, second = pair.replicas
    (pair.key.parent / "halos.yaml").write_text(
        "org: acme\nrings: [ring1-canary]\nmcp: {mode: allowlist, servers: []}\n"
    )
    signed = pair.key.parent / "signed"
    command("halo", "sign", pair.key.parent / "halos.yaml", "--key", pair.key, "--out", signed)
    envelope = signed.read_bytes()
    headers = {"Authorization": f"Bearer {admin}", "Content-Type": "application/json"}
    published = httpx.put(f"{first.url}/api/v1/policy", content=envelope, headers=headers, timeout=60)
    assert published.status_code in (200, 201, 204), published.text
    for one in (second, first):
        assert httpx.get(f"{one.url}/api/v1/policy", timeout=60).content == envelope

    with pair.client(follow_redirects=False) as browser:
        before = sum(pair.proxy.served.values())
        form = browser.get(f"/login?link={link}")
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form.text))
        assert browser.post("/login/link", data=fields).status_code == 303
        pages = [browser.get("/account") for _ in pair.replicas]
        assert [page.status_code for page in pages] == [200, 200]
        csrf = {re.search(r'name="csrf" value="([^"]+)"', page.text)[1] for page in pages}
        assert len(csrf) == 1
        assert browser.post("/logout", data={"csrf": "wrong"}).status_code == 403
        assert browser.post("/logout", data={"csrf": csrf.pop()}).status_code == 303
        ended = [browser.get("/account").status_code for _ in pair.replicas]
        assert ended == [303, 303]
        assert sum(pair.proxy.served.values()) - before == 8
        assert min(pair.proxy.served.values()) >= 4, "both replicas took part"


def test_a_webhook_is_sent_by_one_of_them(pair):
    """What is new is told once, however many replicas look for what is due."""

    def open_ones():
        with pair.store.read() as c:
            return c.execute(select(DELIVERIES.c.seq).where(DELIVERIES.c.state != "done")).all()

    until(lambda: not open_ones())  # what other tests brought, perhaps twice: a replica was killed between
    before = set(pair.receiver.ids)
    send = Sender(("127.0.0.1", pair.proxy.port))
    for nth, one in enumerate(pair.machines(MACHINES)):
        row = finding(f"never-before-{nth}", 1)
        body = json.dumps(document(one.device, [row], [transition("t1", "opened", row)])).encode()
        assert send(one.token, body) == 204
        one.told, one.seen = ["t1"], {("cursor", row["server"]): row["definitionSha256"]}
    send.close()
    until(lambda: not open_ones())
    new = {name: times for name, times in pair.receiver.ids.items() if name not in before}
    assert set(new.values()) == {1}, "nothing is sent twice"
    # What other tests brought in this minute may have used up its single letters: the rest is folded, and counted.
    told = [pair.receiver.sent[name] for name in new]
    counts = [
        one["data"]["count"] for one in told if "finding.new" in (one["type"], one["data"].get("event"))
    ]
    assert sum(counts) == MACHINES
