# SPDX-License-Identifier: Apache-2.0
"""Whose homes are scanned: the console, everybody, names; and look-ups that hang."""

import os
import pwd
import threading

import pytest

from halod import accounts
from halod.agent import logind
from halod.agent.logind import Seats, Session, at_console
from halod.agent.people import Lookup, People, Selection
from tests.support.guard import HANG, until


class Database(accounts.Database):
    def __init__(self, **uids):
        self.entries = [
            pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", "/bin/sh"))
            for name, uid in uids.items()
        ]

    def by_uid(self, uid):
        return next((entry for entry in self.entries if entry.pw_uid == uid), None)

    def by_name(self, name):
        return next((entry for entry in self.entries if entry.pw_name == name), None)

    def all(self):
        return self.entries

    def groups(self, name, gid):
        return (gid,)


PEOPLE = Database(root=0, dev=1001, ops=1002, svc=90)


def seats(*sessions, users="/no/such", records=(), platform="linux", console="/no/such"):
    return Seats(
        platform=platform, ask=lambda: sessions, users=users, records=lambda: records, console=console
    )


def select(accounts="console", excluded=(), known=(), database=PEOPLE, **options):
    return People(accounts, excluded, database=database, seats=seats(**options)).select(known)


def names(selection):
    return [one.name for one in selection.accounts]


@pytest.mark.parametrize(
    ("sessions", "uids"),
    [
        ([], []),
        ([Session(uid=1001, active=True, type="wayland", seat="seat0")], [1001]),
        ([Session(uid=1001, active=True, type="tty")], []),  # over the network
        ([Session(uid=1001, active=True, type="tty", seat="seat0")], [1001]),
        ([Session(uid=1001, active=False, type="x11", seat="seat0")], []),
        ([Session(uid=120, active=True, kind="greeter", type="wayland", seat="seat0")], []),
        ([Session(uid=1001, active=True, type="x11")], [1001]),  # a remote desktop
        (
            [
                Session(uid=1002, active=True, type="tty", seat="seat0"),
                Session(uid=1001, active=True, type="x11", seat="seat1"),
                Session(uid=1001, active=True, type="x11", seat="seat1"),
            ],
            [1001, 1002],
        ),
    ],
)
def test_who_is_at_the_console(sessions, uids):
    """Active sessions of people, graphical or on a seat, each person once."""
    assert at_console(sessions) == uids


def test_the_sources_are_asked_in_turn(tmp_path):
    """logind, then its files, then the login records; the first that knows somebody counts."""
    (tmp_path / "1002").write_text("NAME=ops\nSTATE=active\nACTIVE_SEATS=seat0\n")
    (tmp_path / "1001").write_text("NAME=dev\nSTATE=active\nACTIVE_SEATS=\n")
    (tmp_path / "junk").write_text("STATE=active\nACTIVE_SEATS=seat0\n")
    session = Session(uid=1001, active=True, seat="seat0")
    uid_of = {"dev": 1001}.get
    ask = {"platform": "linux", "console": "/no/such"}
    one = Seats(ask=lambda: [session], users=str(tmp_path), records=list, **ask)
    assert one.people(uid_of) == [1001]
    two = Seats(ask=list, users=str(tmp_path), records=list, **ask)
    assert two.people(uid_of) == [1002]
    three = Seats(ask=list, users="/no/such", records=lambda: ["dev", "nobody-knows"], **ask)
    assert three.people(uid_of) == [1001]
    assert two.logged_in() == [1001, 1002]


def test_macos_asks_for_the_owner_of_the_console(tmp_path):
    """The owner of /dev/console is at the screen; root there means the login window."""
    path = tmp_path / "console"
    path.write_text("")
    expected = [os.getuid()] if os.getuid() else []
    assert Seats(platform="darwin", console=str(path)).people({}.get) == expected
    assert logind.console_owner(str(path)) == [os.getuid()]
    assert logind.console_owner("/no/such") == []


def test_the_real_sources_answer():
    """On this machine, whatever it is, every source gives a list and none fails."""
    assert isinstance(logind.sessions(), list)
    assert isinstance(logind.user_files(), list)
    assert isinstance(logind.login_records(), list)


def test_console_selects_the_one_at_the_machine():
    """The person at the console, and her name at the top of the status."""
    found = People(
        "console", (), database=PEOPLE, seats=seats(Session(uid=1001, active=True, seat="seat0"))
    ).select(())
    assert (names(found), found.console) == (["dev"], "dev")


def test_root_and_excluded_accounts_are_never_selected():
    """Whoever sits there or is named."""
    at = seats(Session(uid=1001, active=True, seat="seat0"))
    assert names(People("console", ["dev"], database=PEOPLE, seats=at).select(())) == []
    assert names(select(("root", "dev"))) == ["dev"]
    assert names(People(("root",), (), database=PEOPLE, seats=seats(), root=False).select(())) == ["root"]


def test_names_that_nobody_has_are_told():
    """A name of the settings without an account is reported, unless it is excluded."""
    assert select(("dev", "ghost")).unknown == ("ghost",)
    assert select(("ghost",), excluded=["ghost"]).unknown == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="a directory counts for its owner, and only root owns none")
def test_all_is_everybody_with_a_home(tmp_path):
    """Entries of the database, and people whom only logind knows."""
    database = Database()
    for name, uid in (("dev", 70001), ("remote", 70002)):
        (tmp_path / name).mkdir()
        database.entries.append(pwd.struct_passwd((name, "x", uid, uid, "", str(tmp_path / name), "")))
    listed = Database()
    listed.entries = database.entries
    listed.all = lambda: database.entries[:1]
    found = People("all", (), database=listed, seats=seats(Session(uid=70002, active=True))).select(())
    assert {"dev", "remote"} <= set(names(found))


def test_what_departed_is_sure():
    """Excluded accounts, and those gone with their home; not one that a directory does not know just now."""
    assert select(("dev",), known=["dev", "ops"]).departed == frozenset()
    assert select(("dev",), excluded=["ops"], known=["ops"]).departed == {"ops"}
    assert select(("dev",), known=["left-long-ago-x"]).departed == {"left-long-ago-x"}
    assert select(("dev",), known=["4711"]).departed == frozenset()


def test_an_account_whose_home_is_still_there_has_not_departed(tmp_path):
    """The directory beside the homes vouches for it while the account cannot be looked up."""
    (tmp_path / "away").mkdir()
    database = Database(dev=1001)
    database.entries[0] = database.entries[0].__class__((*database.entries[0][:5], str(tmp_path / "dev"), ""))
    assert select(("dev",), known=["away"], database=database).departed == frozenset()


def test_a_look_up_that_hangs_is_not_repeated():
    """While one hangs no second one is started; its late result is not mixed into another's."""
    gate, woken = threading.Event(), threading.Event()
    lookup = Lookup(woken.set)
    assert lookup.start(lambda: Selection() if gate.wait(HANG) else None)
    assert lookup.take() is None
    assert not lookup.start(Selection)
    gate.set()
    assert woken.wait(HANG)
    until(lambda: lookup.start(lambda: Selection(console="x")))
    until(lambda: (found := lookup.take()) is not None and found.console == "x")


def test_a_look_up_that_fails_says_so_once():
    """Whatever it raises."""
    woken = threading.Event()
    lookup = Lookup(woken.set)
    lookup.start(lambda: 1 / 0)
    assert woken.wait(HANG)
    assert lookup.take() == "failed"
    assert lookup.take() is None
