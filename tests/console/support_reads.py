# SPDX-License-Identifier: Apache-2.0
"""Filled stores for tests that read, and every list with every kind of filter: `CASES`, for plans and for measuring.

`python -m tests.console.support_reads URL` measures them on a database that `support_bulk` has filled.
"""

import itertools
import statistics
import sys
import time

import pytest

from halod.console.store.engine import Store
from halod.console.store.read import (
    audit,
    coverage,
    devices,
    findings,
    overview,
    registry,
    tokens,
    transitions,
)
from tests.console.conftest import ENGINES
from tests.console.support_bulk import NOW, fill, sha256

SILENT = 3600
_numbers = itertools.count()
TIMES = {"now": NOW, "silent_after": SILENT}


@pytest.fixture(scope="session", params=ENGINES)
def fleet(request, tmp_path_factory):
    """A store with 400 devices that nobody writes to."""
    yield from _filled(request, tmp_path_factory, "fleet", 400)


@pytest.fixture(scope="module", params=ENGINES)
def large_fleet(request, tmp_path_factory):
    """A store with 2,000 devices, 10,000 findings, 20,000 transitions."""
    yield from _filled(request, tmp_path_factory, "large", 2000)


def _filled(request, tmp_path_factory, name, devices):
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template").read_bytes()
        path = tmp_path_factory.mktemp(name) / "console.db"
        path.write_bytes(template)
        store, done = Store.open(f"sqlite:///{path}"), lambda: None
    else:
        server = request.getfixturevalue("postgres")
        name = f"{name}_{next(_numbers)}"  # each module that imports a fixture has one of its own
        server.ask(f"CREATE DATABASE {name} TEMPLATE template_halod")
        store = Store.open(server.url(name))
        done = lambda: server.ask(f"DROP DATABASE {name} WITH (FORCE)")  # noqa: E731 - one of two
    fill(store, devices, transitions=10)
    yield store
    store.close()
    done()


def _devices(**where):
    return lambda c, cursor: devices.devices(c, devices.DeviceFilter(**where), cursor=cursor, **TIMES)


def _every(**where):
    return lambda c, cursor: devices.every(c, devices.DeviceFilter(**where), cursor=cursor, **TIMES)


def _groups(**where):
    return lambda c, cursor: findings.groups(c, findings.GroupFilter(**where), cursor=cursor)


def _findings(**where):
    return lambda c, cursor: findings.findings(c, findings.FindingFilter(**where), cursor=cursor)


def _prevalence(dim):
    return lambda c, cursor: findings.prevalence(c, dim, cursor=cursor)


DEVICE = sha256("device 5")
COMMON, OLD = "sha256:" + sha256("policy 0"), "sha256:" + sha256("policy 8")
POPULAR = sha256("popular 1")
DEVICE_CASES = {
    "": {},
    "reporting": {"state": "reporting"},
    "silent": {"state": "silent"},
    "partly": {"state": "partly"},
    "limited": {"state": "limited"},
    "ring": {"ring": "ring2"},
    "large unit": {"unit": "unit-0"},
    "small unit": {"unit": "unit-60"},
    "no unit": {"unit": "nowhere"},
    "hostname": {"hostname": "mbp-00012"},
    "old digest": {"digest": OLD},
    "hostname ring digest": {"hostname": "mbp-0", "ring": "ring1-canary", "digest": OLD},
    "digest ring": {"digest": COMMON, "ring": "ring3"},
    "silent ring unit": {"state": "silent", "ring": "ring0", "unit": "unit-0"},
    "silent hostname": {"state": "silent", "hostname": "mbp-0001"},
    "partly ring unit": {"state": "partly", "ring": "ring0", "unit": "unit-1"},
    "reporting all": {"state": "reporting", "ring": "ring1-canary", "unit": "unit-2", "hostname": "m"},
}
GROUP_CASES = {
    "": {},
    "kind": {"kind": "denied"},
    "harness ring unit": {"harness": "cursor", "ring": "ring1-canary", "unit": "unit-3"},
    "harness unit": {"harness": "codex", "unit": "unit-0"},
    "ring unit kind": {"ring": "ring0", "unit": "unit-1", "kind": "unapproved"},
    "harness kind server": {"harness": "cursor", "kind": "unapproved", "server": "rare-1"},
    "server": {"server": "popular-0"},
    "wide server": {"server": "r"},
    "wide server few": {"server": "rare", "kind": "denied"},
    "what": {"what": POPULAR},
    "what server": {"what": POPULAR, "server": "popular-01"},
    "what elsewhere": {"what": POPULAR, "server": "rare"},
    "host ring": {"what": "mcp-3.example.com", "ring": "ring0"},
    "nobody": {"harness": "nobody"},
}
FINDING_CASES = {
    "": {},
    "group": {"thing": 1},
    "group unit": {"thing": 1, "unit": "unit-0"},
    "group small unit": {"thing": 1, "unit": "unit-60"},
    "device": {"device": DEVICE},
    "device kind": {"device": DEVICE, "kind": "unapproved"},
    "definition": {"sha256": POPULAR},
    "server": {"server": "popular-01"},
    "server ring": {"server": "popular-01", "ring": "ring2"},
    "harness": {"harness": "cursor"},
    "harness ring kind": {"harness": "cursor", "ring": "ring3", "kind": "denied"},
    "ring": {"ring": "ring0"},
    "large unit": {"unit": "unit-0"},
    "small unit": {"unit": "unit-60"},
    "unit harness kind": {"unit": "unit-4", "harness": "codex", "kind": "denied"},
    "all": {
        "harness": "cursor",
        "ring": "ring0",
        "kind": "unapproved",
        "unit": "unit-0",
        "server": "popular-01",
    },
}
DIMS = ("kind", "harness", "ring", "unit", "definition", "server", "reason", "approved", "digest")
CASES = {
    **{f"devices {name}": _devices(**where) for name, where in DEVICE_CASES.items()},
    **{f"every device {name}": _every(**where) for name, where in DEVICE_CASES.items()},
    **{
        f"groups {order} {name}": _groups(order=order, **where)
        for order in ("devices", "last-seen")
        for name, where in GROUP_CASES.items()
    },
    **{f"findings {name}": _findings(**where) for name, where in FINDING_CASES.items()},
    **{f"prevalence {dim}": _prevalence(dim) for dim in DIMS},
    "group": lambda c, _: findings.group(c, 1),
    "device": lambda c, _: devices.device(c, DEVICE, **TIMES),
    "skipped": lambda c, _: devices.skipped(c, DEVICE),
    "approved": lambda c, _: devices.approved(c, DEVICE),
    "pending": lambda c, cursor: devices.pending(c, cursor=cursor),
    "since": lambda c, cursor: transitions.since(c, after=int(cursor or 0)),
    "since of a device": lambda c, cursor: transitions.since(c, after=int(cursor or 0), device=DEVICE),
    "newest": lambda c, cursor: transitions.newest(c, cursor=cursor),
    "newest of a device": lambda c, cursor: transitions.newest(c, cursor=cursor, device=DEVICE),
    "gaps": lambda c, cursor: coverage.gaps(c, cursor=cursor),
    "gaps reason": lambda c, cursor: coverage.gaps(c, reason="symlink", cursor=cursor),
    "gaps harness": lambda c, cursor: coverage.gaps(c, harness="codex", cursor=cursor),
    "gaps both": lambda c, cursor: coverage.gaps(c, reason="symlink", harness="codex", cursor=cursor),
    "reasons": lambda c, _: coverage.reasons(c),
    "trend": lambda c, _: overview.trend(c, today=NOW // 86400),
    "usage": lambda c, cursor: registry.usage(c, None, cursor=cursor),
    "users": lambda c, cursor: registry.users(c, "entry-3", cursor=cursor),
    "audit": lambda c, cursor: audit.audit(c, cursor=cursor),
    "audit actor": lambda c, cursor: audit.audit(c, actor="person-1", cursor=cursor),
    "audit action": lambda c, cursor: audit.audit(c, action="export", cursor=cursor),
    "audit both": lambda c, cursor: audit.audit(c, action="export", actor="person-1", cursor=cursor),
    "tokens": lambda c, cursor: tokens.tokens(c, cursor=cursor),
    "tokens kind": lambda c, cursor: tokens.tokens(c, kind="api", cursor=cursor),
    "tokens both": lambda c, cursor: tokens.tokens(c, kind="api", device=DEVICE, cursor=cursor),
}
COUNTS = {
    # These count a table of devices through an index: 100,000 entries.
    "overview": lambda c, _: overview.overview(c, **TIMES),
    "digests": lambda c, _: registry.digests(c),
    "digests of a ring": lambda c, _: registry.digests(c, "ring3"),
}


def walk(store, read, most=10_000):
    """Read a whole list, each page in its own transaction; gives its rows in order, and its pages."""
    rows, cursor, pages = [], "", []
    while True:
        with store.read() as c:
            page = read(c, cursor)
        rows += page.rows
        pages.append(page)
        cursor = page.next
        if not cursor:
            return rows, pages
        assert len(pages) < most


def measure(url, rounds=9, pages=6):
    """Print p50 and the worst of the first page of each list, and of the pages behind it."""
    store = Store.open(url)
    print(f"{'list':44} {'rows':>5} {'p50 ms':>8} {'worst':>8}   pages behind it: rows, worst")
    for name, read in {**CASES, **COUNTS}.items():
        times, cursor, behind = [], "", []
        for _ in range(rounds):
            with store.read() as c:
                begun = time.perf_counter()
                found = read(c, "")
                times.append((time.perf_counter() - begun) * 1e3)
        cursor = getattr(found, "next", "")
        while cursor and len(behind) < pages:
            with store.read() as c:
                begun = time.perf_counter()
                page = read(c, cursor)
                behind.append((len(page.rows), (time.perf_counter() - begun) * 1e3))
            cursor = page.next
        rows = len(found.rows) if hasattr(found, "rows") else "-"
        later = f"{[count for count, _ in behind]} {max(ms for _, ms in behind):.1f}" if behind else ""
        mark = " <" if max([*times, *(ms for _, ms in behind)]) > 100 else ""
        print(f"{name:44} {rows:>5} {statistics.median(times):8.1f} {max(times):8.1f}   {later}{mark}")


if __name__ == "__main__":
    measure(sys.argv[1])
