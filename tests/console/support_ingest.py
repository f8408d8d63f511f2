# SPDX-License-Identifier: Apache-2.0
"""Documents, tokens and a console in this process for the tests of ingest; and a console as a process of its own."""

import asyncio
import contextlib
import functools
import json
import os
import pathlib
import subprocess
import sys
import threading

import httpx
import msgspec
from sqlalchemy import select

from halod.console import app
from halod.console.call import Console
from halod.console.metrics import Metrics
from halod.console.security import tokens
from halod.console.settings import Limits, Settings
from halod.console.store import counts
from halod.console.store.schema import DEVICES, FINDINGS, HEARTBEATS, TOKENS, TRANSITIONS
from halod.status import Transition, encode
from tests.support.state import finding, status

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOW = 1_796_000_000
ORIGIN = "http://127.0.0.1:8640"
REPORT = "/api/v1/fleet/report"
ENROLL = "/api/v1/enroll"
DEVICE = "d" * 64
ROOMY = Limits(reports_per_minute=1_000_000, requests_per_minute=1_000_000, refused_per_minute=1_000_000)


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now=NOW):
        self.at = float(now)

    def now(self):
        return int(self.at)

    def monotonic(self):
        return self.at

    def go(self, seconds):
        self.at += seconds


def make_console(store, clock=None, **settings):
    made = Settings(database_url="", **{"limits": ROOMY, **settings})
    return Console(settings=made, store=store, clock=clock or Clock(), metrics=Metrics())


class Client:
    """Asks an application that runs on a loop in a thread of its own, its lifespan included."""

    def __init__(self, application):
        self._application = application
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="console-loop")
        self._thread.start()
        self._to, self._from = self.run(self._queues())
        self._life = asyncio.run_coroutine_threadsafe(self._live(), self.loop)
        assert self._say("startup") == "lifespan.startup.complete"
        transport = httpx.ASGITransport(application, client=("127.0.0.1", 50_000))
        self._client = httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=60)

    async def _queues(self):
        return asyncio.Queue(), asyncio.Queue()

    async def _live(self):
        await self._application(
            {"type": "lifespan", "asgi": {"version": "3.0"}}, self._to.get, self._from.put
        )

    def _say(self, word):
        self.loop.call_soon_threadsafe(self._to.put_nowait, {"type": f"lifespan.{word}"})
        return self.run(self._from.get())["type"]

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def request(self, method, path, **more):
        return self.run(self._client.request(method, path, **more))

    get = functools.partialmethod(request, "GET")
    post = functools.partialmethod(request, "POST")

    def together(self, requests):
        """Ask all of them at the same time: (method, path, options) each."""

        async def all_of_them():
            return await asyncio.gather(
                *(self._client.request(method, path, **more) for method, path, more in requests)
            )

        return self.run(all_of_them())

    def close(self):
        self.run(self._client.aclose())
        assert self._say("shutdown") == "lifespan.shutdown.complete"
        self._life.result(60)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(60)
        self.loop.close()


@contextlib.contextmanager
def client_of(console):
    """A client of the whole application, with its writer running."""
    client = Client(app.build(console, jobs=False))
    try:
        yield client
    finally:
        client.close()


def device_token(store, device=DEVICE, *, install_id="i" * 32, now=NOW, days=365):
    with store.write() as c:
        return tokens.issue_device(c, device=device, install_id=install_id, now=now, days=days, by="test")


def enroll_key(store, **options):
    with store.write() as c:
        return tokens.new_enroll_key(c, **{"name": "fleet", "now": NOW, "days": 30, "by": "test", **options})


def document(*findings, device=DEVICE, transitions=None, **fields):
    """A status as an agent of today sends it, as a dictionary."""
    made = status(*findings, device=device, **fields)
    if transitions is not None:
        made = msgspec.structs.replace(made, transitions=tuple(transitions))
    return json.loads(encode(made))


def happened(tid, event="opened", row=None, **was):
    return Transition(id=tid, time="2026-11-30T09:15:02Z", event=event, finding=row or finding(), **was)


def post(client, token, document, path=REPORT, **headers):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    head = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    return client.post(path, content=body, headers={**head, **headers})


def rows(store, table=FINDINGS, *columns, **where):
    """Give the rows of a table as dictionaries, in the order of its key."""
    statement = select(*(columns or [table])).order_by(*table.primary_key.columns)
    for name, value in where.items():
        statement = statement.where(table.c[name] == value)
    with store.read() as c:
        return [dict(row) for row in c.execute(statement).mappings()]


def one(store, table=DEVICES, **where):
    (row,) = rows(store, table, **where)
    return row


def servers(store, device=DEVICE):
    return sorted(row["server"] for row in rows(store, FINDINGS, device=device))


def transition_ids(store, device=DEVICE):
    return [row["tid"] for row in rows(store, TRANSITIONS, device=device)]


def check_counts(store):
    """Counts are what a recount gives, and a device's own number is that of its rows."""
    with store.read() as c:
        assert counts.kept(c) == counts.recount(c)
        numbers = {
            row.device: row.findings for row in c.execute(select(DEVICES.c.device, DEVICES.c.findings))
        }
        for row in c.execute(select(FINDINGS.c.device)):
            numbers[row.device] -= 1
        assert set(numbers.values()) <= {0}


def heard_at(store, device=DEVICE):
    return one(store, HEARTBEATS, device=device)["last_report"]


def token_rows(store, device=DEVICE):
    return rows(store, TOKENS, device=device)


# --- a console as a process --------------------------------------------------------------------------------


class Served:
    """Consoles in another process, one at a time, which can be killed and are at the same port afterwards."""

    def __init__(self, process):
        self._process = process
        self.url = ""

    def serve(self, database):
        """Begin with a database."""
        self.url = f"http://127.0.0.1:{self._ask('serve ' + database)['port']}{REPORT}"

    def kill(self):
        """SIGKILL, in the middle of whatever it does; another one takes its place."""
        self._ask("kill")

    def stop(self):
        """SIGTERM: gives the exit code of an orderly end; another one takes its place."""
        return self._ask("stop")["code"]

    def end(self):
        """Serve nothing."""
        self._ask("end")

    def _ask(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the console's process ended"
        return json.loads(answer)


@contextlib.contextmanager
def consoles():
    """The process of `Served`, while the block runs."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.console.serve_ingest"],
        cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield Served(process)
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
