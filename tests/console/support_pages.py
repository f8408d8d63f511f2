# SPDX-License-Identifier: Apache-2.0
"""A console for tests of its pages: a store with the demonstration fleet, and a real server with a browser before it.

`python -m tests.console.support_pages URL PORT` serves a database with the clock at NOW.
"""

import asyncio
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

import httpx
import msgspec
from sqlalchemy import insert, select, update

from halod.console import app, demo, server
from halod.console.access import Role
from halod.console.call import Console
from halod.console.ingest.apply import take
from halod.console.metrics import Metrics
from halod.console.security import sessions
from halod.console.settings import Hook, Settings
from halod.console.store import schema
from halod.console.store.engine import Store
from halod.console.store.migrate import upgrade
from halod.definition import stdio_sha256, url_sha256

NOW = 1_796_000_000
DEVICES = 120
ROLES = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
CHROMIUM = os.environ.get("HALOD_CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

HOSTILE_DEVICE = "hostile-1"
STDIO = ("npx", "-y", "@acme/odd tool", "--level", "0.50", "wörk")
URL = "https://mcp.odd.example/v1?team=Ünit#part"


class Clock:
    """Stands still."""

    def now(self):
        return NOW

    def monotonic(self):
        return time.monotonic()


def settings_for(url, port=8640, **fields):
    hooks = (Hook(name="security", url="https://hooks.acme.example/halo", secret_file="unused"),)
    limits = Settings(database_url="").limits
    limits = msgspec.structs.replace(limits, requests_per_minute=1_000_000)
    values = {"policy_keys": (demo.public_key(),), "policy_org": "acme", "webhooks": hooks, "limits": limits}
    return Settings(database_url=url, listen=f"127.0.0.1:{port}", **{**values, **fields})


def console_of(store, **fields):
    settings = settings_for(str(store.engine.url), **fields)
    return Console(settings=settings, store=store, clock=Clock(), metrics=Metrics())


def filled(path, *, known=True):
    """Make a database with the fleet, and with what the tests know (`plain`); give its address."""
    url = f"sqlite:///{path}"
    store = Store.open(url)
    upgrade(store)
    demo.fill(store, settings_for(url), now=NOW, devices=DEVICES)
    if known:
        plain(store)
    letters(store)
    store.close()
    return url


def plain(store):
    """Add a device with two findings whose definitions are known to the tests."""
    base = {"harness": "cursor", "file": "~/.cursor/mcp.json", "kind": "unapproved", "user": "t.est"}
    base |= {"scope": "user", "enabled": True, "detail": "for tests", "fix": "remove it"}
    findings = [
        {
            **base,
            "server": "odd-tool",
            "transport": "stdio",
            "definitionSha256": stdio_sha256(STDIO[0], STDIO[1:]),
        },
        {
            **base,
            "server": "odd-url",
            "transport": "http",
            "host": "mcp.odd.example",
            "definitionSha256": url_sha256(URL),
        },
    ]
    take(store, [document("known-1", findings)], now=NOW - 60)


def document(device, findings=(), **other):
    """Make a status document."""
    made = {
        "schemaVersion": 1,
        "time": "2026-11-30T09:00:00Z",
        "device": device,
        "hostname": device,
        "os": "linux",
    }
    made |= {
        "halod": "0.1.0",
        "user": "t.est",
        "ring": "ring3-ga",
        "units": [],
        "digest": "sha256:" + "0" * 64,
    }
    made |= {
        "mode": "allowlist",
        "mcpDrift": list(findings),
        "mcpApproved": [],
        "skipped": [],
        "lastError": "",
    }
    coverage = {"accounts": 1, "files": 2, "definitions": 3, "durationMs": 5, "notCovered": ["project-files"]}
    return {**made, "errorCode": "", "coverage": coverage, "mcpDriftTotal": len(findings), **other}


def letters(store):
    """Add deliveries of webhooks in every state."""
    rows = (("dead", 12, "status-503"), ("dead", 12, "tls"), ("due", 3, "timed-out"), ("done", 1, ""))
    with store.write() as c:
        for nth, (state, tries, error) in enumerate(rows):
            payload = {
                "type": "finding.new",
                "timestamp": "2026-11-30T09:00:00Z",
                "data": {"server": f"s{nth}"},
            }
            c.execute(
                insert(schema.DELIVERIES).values(
                    hook="security", event="finding.new", payload=msgspec.json.encode(payload).decode(),
                    key=f"key {nth}", state=state, tries=tries, created=NOW - 7200, next_try=NOW + 60, last_error=error,
                )
            )  # fmt: skip


NASTY = (
    '<script>window.hit=1</script><img src="https://evil.example/x" onerror="window.hit=1">'
    "\u202egnp.exe\u202c \x1b[31mred\x1b[0m {{ 7*7 }} ' \" & \u2066iso\u2069 z" + "\u0301" * 40
)
LONG = "A" * 10_000


def poison(store):
    """Write into the tables what `ingest` would never let through, so that the pages stand for themselves."""
    base = {
        "harness": "cursor",
        "file": "~/.cursor/mcp.json",
        "kind": "unapproved",
        "user": "u",
        "scope": "user",
    }
    base |= {"enabled": True, "transport": "stdio", "detail": "d", "fix": "f"}
    rows = [{**base, "server": f"h{nth}", "definitionSha256": f"{nth:064x}"} for nth in range(2)]
    changes = [
        {"id": f"t{nth}", "time": "", "event": "opened", "finding": row} for nth, row in enumerate(rows)
    ]
    skipped = [{"user": "u", "harness": "cursor", "file": "~/x", "reason": "malformed", "server": "s"}] * 2
    approved = [{"harness": "cursor", "id": "wiki", "user": "u", "count": 1}]
    other = {
        "skipped": skipped,
        "transitions": changes,
        "mcpApproved": approved,
        "lastError": "e",
        "errorCode": "c",
    }
    take(store, [document(HOSTILE_DEVICE, rows, **other)], now=NOW - 30)
    with store.write() as c:
        texts = (NASTY, LONG)
        for table, names in (
            (schema.FINDINGS, ("username", "harness", "file", "scope", "server", "host", "detail", "fix")),
            (schema.TRANSITIONS, ("username", "harness", "file", "server", "host", "event")),
            (schema.SKIPPED, ("username", "harness", "file", "reason", "server", "errno")),
        ):
            key = table.c.id if "id" in table.c else table.c.seq if "seq" in table.c else table.c.nth
            found = c.scalars(select(key).where(table.c.device == HOSTILE_DEVICE).order_by(key)).all()
            for number, text in zip(found, texts, strict=False):
                values = {name: f"{name} {text}" for name in names}
                c.execute(
                    update(table).where(table.c.device == HOSTILE_DEVICE, key == number).values(**values)
                )
        _poison_rest(c)


def _poison_rest(c):
    names = (
        "hostname",
        "os",
        "halod",
        "username",
        "ring",
        "digest",
        "mode",
        "assigned_ring",
        "last_error",
        "error_code",
    )
    claims = {name: f"{name} {LONG if name == 'last_error' else NASTY}" for name in names}
    lists = {
        "units": msgspec.json.encode([NASTY]).decode(),
        "not_covered": msgspec.json.encode([NASTY]).decode(),
    }
    c.execute(
        update(schema.DEVICES).where(schema.DEVICES.c.device == HOSTILE_DEVICE).values(**claims, **lists)
    )
    mine = select(schema.FINDINGS.c.thing).where(schema.FINDINGS.c.device == HOSTILE_DEVICE)
    for number, text in zip(c.scalars(mine.order_by(schema.FINDINGS.c.id)).all(), (NASTY, LONG), strict=True):
        values = {name: f"{name} {text}" for name in ("server", "transport", "fix")}
        c.execute(update(schema.THINGS).where(schema.THINGS.c.id == number).values(**values))
    c.execute(insert(schema.AUDIT).values(
        time=NOW, actor=NASTY, actor_kind=NASTY, action=NASTY, target=LONG, address=NASTY,
        detail=msgspec.json.encode({NASTY: NASTY, "long": LONG}).decode(),
    ))  # fmt: skip
    c.execute(insert(schema.ENROLLMENTS).values(
        device=HOSTILE_DEVICE, install_id=NASTY, hostname=NASTY, os=LONG, halod=NASTY, address=NASTY, key_id=0,
        first_asked=NOW, last_asked=NOW, asked=1, state="waiting", decided_by="",
    ))  # fmt: skip
    c.execute(insert(schema.DELIVERIES).values(
        hook=NASTY, event=NASTY, payload=LONG, key="nasty", state="dead", tries=1, created=NOW, next_try=NOW,
        last_error=NASTY,
    ))  # fmt: skip
    for dim in ("harness", "ring", "unit", "reason"):
        c.execute(insert(schema.TALLIES).values(
            dim=dim, value=NASTY, kind="" if dim == "reason" else "unapproved", findings=99, devices=99, first_seen=NOW
        ))  # fmt: skip
    c.execute(insert(schema.TALLIES).values(
        dim="approved", value=NASTY, kind="", findings=9, devices=9, first_seen=NOW
    ))  # fmt: skip


# --- in one process ------------------------------------------------------------------------------------------


class Client:
    """Asks the whole application, without a socket; signed in with a role, or as nobody."""

    def __init__(self, store, role=None, **fields):
        console = console_of(store, **fields)
        self.csrf = ""
        headers = {"accept": "text/html", "sec-fetch-site": "same-origin"}
        if role is not None:
            value = sign_in(store, console.settings, role)
            headers["cookie"] = f"halo={value}"
            self.csrf = sessions.form_token(value)
        self._loop = asyncio.Runner()
        transport = httpx.ASGITransport(app.build(console))
        self._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8640", headers=headers)

    def get(self, path, **options):
        return self._loop.run(self._http.get(path, **options))

    def post(self, path, **form):
        return self._loop.run(self._http.post(path, data={"csrf": self.csrf, **form}))

    def close(self):
        self._loop.run(self._http.aclose())
        self._loop.close()


@contextlib.contextmanager
def client(store, role=None, **fields):
    """Give a client, closed at the end."""
    with contextlib.closing(Client(store, role, **fields)) as made:
        yield made


def sign_in(store, settings, role, name=""):
    """Make a session; give its cookie's value."""
    name = name or f"Test {role.name.lower()}"
    with store.write() as c:
        return sessions.create(c, settings, subject=role.name, name=name, role=role, provider="link", now=NOW)


# --- with a browser ------------------------------------------------------------------------------------------


class Site:
    """A console that listens, and the cookies of one session a role."""

    def __init__(self, url, port, store, name=""):
        self.base = f"http://127.0.0.1:{port}"
        self.store = store
        settings = settings_for(url, port)
        self.cookies = {role: sign_in(store, settings, role, name) for role in ROLES}


@contextlib.contextmanager
def serving(url, directory, *, name=""):
    """Serve a database by a process of its own."""
    bound = server.bind("127.0.0.1:0")
    port = bound.getsockname()[1]
    bound.close()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    with open(pathlib.Path(directory) / "console.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.console.support_pages", url, str(port)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            cwd=pathlib.Path(__file__).resolve().parents[2],
        )  # fmt: skip
    store = Store.open(url)
    try:
        _until_up(process, port, pathlib.Path(directory) / "console.log")
        yield Site(url, port, store, name)
    finally:
        store.close()
        process.terminate()
        process.wait(30)


def _until_up(process, port, log):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/login", timeout=5).status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError("the console did not come up")


class Watched:
    """A page of a browser, with everything that it did and should not have."""

    def __init__(self, context, site):
        self.site = site
        self.wrong = []
        self.requests = []
        self.page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._asked)
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('CSP ' + e.violatedDirective))"
        )

    def _said(self, message):
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.wrong.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog):
        self.wrong.append("a dialog")
        dialog.dismiss()

    def _asked(self, request):
        if "/static/" not in request.url:  # a browser asks for an icon when it likes
            self.requests.append(request.url)
        if not request.url.startswith((self.site.base + "/", "data:", "blob:")):
            self.wrong.append(f"a request to {request.url}")

    def go(self, path, status=200):
        answer = self.page.goto(self.site.base + path)
        assert answer.status == status, f"{path}: {answer.status}"
        return self.page


@contextlib.contextmanager
def browsing(browser, site, role=Role.ADMIN, *, width=1280, height=900, scripts=True, **options):
    """Open a window, signed in with a role (None: nobody); nothing wrong may have happened when it closes."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, java_script_enabled=scripts, **options
    )
    if role is not None:
        context.add_cookies([{"name": "halo", "value": site.cookies[role], "url": site.base}])
    try:
        watched = Watched(context, site)
        yield watched
        assert watched.wrong == []
    finally:
        context.close()


def copied(url, directory):
    """Copy a database that nobody writes; give the copy's address."""
    target = pathlib.Path(directory) / "console.db"
    shutil.copy(url.removeprefix("sqlite:///"), target)
    return f"sqlite:///{target}"


def main(url, port):
    store = Store.open(url)
    settings = settings_for(url, int(port))
    console = Console(settings=settings, store=store, clock=Clock(), metrics=Metrics())
    server.run(app.build(console), settings, server.bind(settings.listen))


if __name__ == "__main__":
    main(*sys.argv[1:])
