# SPDX-License-Identifier: Apache-2.0
"""Which accounts a scan covers, with a password database of the test's own and real directories."""

import os
import pwd

import pytest

from halod import accounts
from halod.errors import UsageError

ME = os.geteuid()
needs_root = pytest.mark.skipif(ME != 0, reason="needs root to make homes of others")


def entry(name, uid, home, gid=100):
    return pwd.struct_passwd((name, "x", uid, gid, "", str(home), "/bin/sh"))


class Names:
    """A password database; `hidden` entries are found and not enumerated, as with a directory service."""

    def __init__(self, *entries, hidden=()):
        self._listed, self._all = list(entries), [*entries, *hidden]

    def by_uid(self, uid):
        return next((one for one in self._all if one.pw_uid == uid), None)

    def by_name(self, name):
        return next((one for one in self._all if one.pw_name == name), None)

    def all(self):
        return self._listed

    def groups(self, _name, gid):
        return (gid, 4711)


def directory(parent, name, uid):
    made = parent / name
    made.mkdir()
    os.chown(made, uid, uid)
    return made


def everyone(database, people=()):
    found = accounts.everyone(database, first=1000, people=[str(path) for path in people])
    return [(one.name, one.uid, os.path.basename(one.home)) for one in found]


def test_the_caller_is_who_the_process_runs_as_whatever_home_says(monkeypatch):
    monkeypatch.setenv("HOME", "/CANARY")
    found = accounts.caller(Names(entry("me", ME, "/home/me")))
    assert found == accounts.Account(name="me", uid=ME, gid=100, groups=(100, 4711), home="/home/me")


def test_a_caller_without_a_password_entry_has_no_home():
    assert accounts.caller(Names()) is None


def test_the_real_database_knows_root():
    database = accounts.Database()
    root = database.by_name("root")
    assert root == database.by_uid(0)
    assert root in database.all()
    assert 0 in database.groups("root", 0)
    assert accounts.named(["root"])[0][0].uid == 0


@pytest.mark.parametrize("uid", [2**31 + 7, 2**70, -5])
def test_a_uid_nobody_has_is_not_found(uid):
    assert accounts.Database().by_uid(uid) is None


@pytest.mark.parametrize("name", ["", "no-such-account-here", "nul\0inside", "\ud800"])
def test_a_name_nobody_has_is_not_found(name):
    assert accounts.Database().by_name(name) is None


def test_named_accounts_come_once_each_beside_the_unknown_names():
    database = Names(entry("ann", 1001, "/home/ann"), entry("bob", 1002, "/home/bob"))
    found, unknown = accounts.named(["bob", "nobody-here", "ann", "bob"], database)
    assert [one.name for one in found] == ["bob", "ann"]
    assert unknown == ["nobody-here"]


def test_a_directory_belongs_to_its_owner_without_supplementary_groups(tmp_path):
    found = accounts.of_directory(str(tmp_path), Names(entry("me", ME, "/elsewhere", gid=7)))
    assert found == accounts.Account(name="me", uid=ME, gid=7, home=str(tmp_path))


def test_a_relative_directory_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    assert accounts.of_directory("home", Names()).home == str(tmp_path / "home")


@needs_root
def test_an_owner_without_a_password_entry_is_a_number_with_a_group_that_owns_nothing(tmp_path):
    home = directory(tmp_path, "old", 54321)
    found = accounts.of_directory(str(home), Names())
    assert (found.name, found.uid, found.listed, found.groups) == ("54321", 54321, False, ())
    assert found.gid in (65534, 2**32 - 2)


@pytest.mark.parametrize("name", ["absent", "file", "nul\0inside"])
def test_what_is_no_directory_is_a_usage_error_that_does_not_quote_it(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError) as raised:
        accounts.of_directory(str(tmp_path / name), Names())
    assert name not in raised.value.message.replace("there is no directory of this name", "")


@needs_root
def test_people_are_those_with_a_persons_uid_and_a_home_that_is_there(tmp_path):
    database = Names(
        entry("daemon", 2, directory(tmp_path, "daemon", 2)),
        entry("ann", 1001, directory(tmp_path, "ann", 1001)),
        entry("gone", 1002, tmp_path / "gone"),
        entry("nobody", 65534, directory(tmp_path, "nobody", 65534)),
        entry("macos-nobody", 2**32 - 2, tmp_path),
        entry("relative", 1003, "ann"),
        entry("file", 1004, tmp_path / "file"),
    )
    (tmp_path / "file").write_text("x")
    assert everyone(database) == [("ann", 1001, "ann")]


@needs_root
def test_owners_beside_known_homes_are_people_too(tmp_path):
    directory(tmp_path, "carol", 1003)
    directory(tmp_path, "former", 1004)
    directory(tmp_path, "lost+found", 0)
    (tmp_path / "file").write_text("x")
    os.chown(tmp_path / "file", 1005, 1005)
    os.symlink("carol", tmp_path / "link")
    os.chown(tmp_path / "link", 1006, 1006, follow_symlinks=False)
    database = Names(
        entry("ann", 1001, directory(tmp_path, "ann", 1001)),
        hidden=[entry("carol", 1003, tmp_path / "carol")],
    )
    assert everyone(database) == [("ann", 1001, "ann"), ("carol", 1003, "carol"), ("1004", 1004, "former")]
    listed = {one.name: one.listed for one in accounts.everyone(database, first=1000, people=())}
    assert listed == {"ann": True, "carol": True, "1004": False}


@needs_root
def test_people_are_found_where_no_account_is_enumerated(tmp_path):
    home = directory(tmp_path, "carol", 1003)
    database = Names(hidden=[entry("carol", 1003, home)])
    assert everyone(database) == []
    assert everyone(database, people=[tmp_path, tmp_path / "absent"]) == [("carol", 1003, "carol")]


@needs_root
def test_a_home_is_scanned_once_as_the_account_that_owns_it(tmp_path):
    home = directory(tmp_path, "shared", 1002)
    os.symlink(home, tmp_path / "link")
    database = Names(
        entry("first", 1001, tmp_path / "link"), entry("owner", 1002, home), entry("third", 1003, home)
    )
    assert everyone(database) == [("owner", 1002, "shared")]


@needs_root
def test_of_strangers_who_share_a_home_the_first_is_scanned(tmp_path):
    home = directory(tmp_path, "shared", 0)
    database = Names(entry("first", 1001, home), entry("second", 1002, home))
    assert everyone(database) == [("first", 1001, "shared")]


@needs_root
def test_an_old_copy_beside_a_home_is_not_a_second_home(tmp_path):
    home = directory(tmp_path, "ann", 1001)
    directory(tmp_path, "ann-old", 1001)
    assert everyone(Names(entry("ann", 1001, home))) == [("ann", 1001, "ann")]
