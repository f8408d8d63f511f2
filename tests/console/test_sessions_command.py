# SPDX-License-Identifier: Apache-2.0
"""Who runs the console can see who is signed in and sign people out; what else is done by command is in the audit log."""

import pytest
from sqlalchemy import select

from halod.console import cli
from halod.console.access import Role
from halod.console.call import Console
from halod.console.cli import serve
from halod.console.clock import SystemClock
from halod.console.metrics import Metrics
from halod.console.security import sessions
from halod.console.settings import Settings
from halod.console.store.engine import Store
from halod.console.store.migrate import upgrade
from halod.console.store.schema import AUDIT


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.mkdir(mode=0o700)
    store = Store.open(f"sqlite:///{path}/console.db")
    upgrade(store)
    yield path, store
    store.close()


def signed_in(store, name, role=Role.VIEWER):
    with store.write() as c:
        return sessions.create(
            c, Settings(database_url=""), subject=name, name=name, role=role, provider=sessions.LINK,
            now=SystemClock().now(),
        )  # fmt: skip


def lines(store):
    with store.read() as c:
        return [(row.action, row.target) for row in c.execute(select(AUDIT).order_by(AUDIT.c.seq))]


def works(store, value):
    with store.read() as c:
        return sessions.find(c, Settings(database_url=""), value, now=SystemClock().now()) is not None


def test_a_person_is_signed_out_everywhere(data, capsys):
    path, store = data
    ann, again, bob = (signed_in(store, name) for name in ("ann", "ann", "bob"))
    assert cli.main(["sessions", "list", "--data-dir", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("ann ") == 2
    assert "viewer" in shown
    assert not any(value in shown or sessions.digest(value) in shown for value in (ann, again, bob))
    assert cli.main(["sessions", "end", "--name", "ann", "--data-dir", str(path)]) == 0
    assert [works(store, value) for value in (ann, again, bob)] == [False, False, True]
    assert cli.main(["sessions", "end", "--name", "ann", "--data-dir", str(path)]) == 1
    assert cli.main(["sessions", "end", "--all", "--data-dir", str(path)]) == 0
    assert not works(store, bob)
    capsys.readouterr()
    assert cli.main(["sessions", "end", "--all", "--data-dir", str(path)]) == 1
    assert capsys.readouterr().out == "nobody is signed in\n"
    assert lines(store) == [("sessions.end", "ann"), ("sessions.end", "everybody")]


def test_nobody_is_signed_in(data, capsys):
    path, _ = data
    assert cli.main(["sessions", "list", "--data-dir", str(path)]) == 0
    assert capsys.readouterr().out == "nobody is signed in\n"
    assert cli.main(["sessions", "end", "--data-dir", str(path)]) == 2


def test_a_backup_is_in_the_audit_log(data, tmp_path):
    """It holds everything that an export holds, and more."""
    path, store = data
    target = tmp_path / "copy.db"
    assert cli.main(["backup", str(target), "--data-dir", str(path)]) == 0
    assert lines(store) == [("backup", str(target))]
    assert target.stat().st_mode & 0o777 == 0o600


def test_the_link_that_serve_prints_is_in_the_audit_log(data, capsys):
    _, store = data
    settings = Settings(database_url="")
    serve._welcome(Console(settings=settings, store=store, clock=SystemClock(), metrics=Metrics()))
    assert "/login?link=hll_" in capsys.readouterr().err
    assert lines(store) == [("login-link.create", "")]
