# SPDX-License-Identifier: Apache-2.0
"""Whose homes are scanned: look-ups in the password database, made before any fork (design 3 and 10).

Invariants:

1. A home is what the password database says, or the directory a person named: never `$HOME`.
2. Everything a worker needs to become the account is a number here; nothing is looked up after the fork.
3. One home is scanned once, however many accounts share it.

Who is at the console is found out by the service (`halod.agent.logind`), which gives uids.
"""

import os
import posixpath
import pwd
import stat
import sys
from collections.abc import Iterable

import msgspec

from halod.errors import UsageError

# Lower uids are the system's own (login.defs(5), UID_MIN; macOS counts people from 501 on).
_FIRST_PERSON = 500 if sys.platform == "darwin" else 1000
# "nobody": the overflow uid of Linux, and -2 as macOS writes it without a sign.
_NOBODY = frozenset({65534, 2**32 - 2})
_NO_GROUP = 2**32 - 2 if sys.platform == "darwin" else 65534
# Where people's homes lie even when the database enumerates none of them (directory services).
_PEOPLE = "/Users" if sys.platform == "darwin" else "/home"


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One account and its home.

    `groups` are the supplementary groups that its worker gets. `listed` says that the uid has a password
    entry; where it has none, `name` is the uid as text.
    """

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    home: str
    listed: bool = True


class Database:
    """The system's password and group database; tests hand in one of their own."""

    def by_uid(self, uid: int) -> pwd.struct_passwd | None:
        """Give the entry of a uid, or None."""
        try:
            return pwd.getpwuid(uid)
        except (KeyError, OverflowError):
            return None

    def by_name(self, name: str) -> pwd.struct_passwd | None:
        """Give the entry of a name, or None; a name that no database can hold has none."""
        try:
            return pwd.getpwnam(name)
        except (KeyError, ValueError):
            return None

    def all(self) -> list[pwd.struct_passwd]:
        """Give every entry that the system enumerates; directory services often enumerate none."""
        return pwd.getpwall()

    def groups(self, name: str, gid: int) -> tuple[int, ...]:
        """Give the ids of all groups of an account."""
        return tuple(os.getgrouplist(name, gid))


_SYSTEM = Database()


def _account(entry: pwd.struct_passwd, database: Database) -> Account:
    """Turn a password entry into an account."""
    return Account(
        name=entry.pw_name,
        uid=entry.pw_uid,
        gid=entry.pw_gid,
        groups=database.groups(entry.pw_name, entry.pw_gid),
        home=entry.pw_dir,
    )


def caller(database: Database = _SYSTEM) -> Account | None:
    """Give the account this process runs as; None when its uid has no password entry, hence no home."""
    entry = database.by_uid(os.geteuid())
    return None if entry is None else _account(entry, database)


def named(names: Iterable[str], database: Database = _SYSTEM) -> tuple[list[Account], list[str]]:
    """Give the accounts of these names, each once, and the names that no account has (`no-account`)."""
    accounts: list[Account] = []
    unknown: list[str] = []
    for name in dict.fromkeys(names):
        entry = database.by_name(name)
        if entry is None:
            unknown.append(name)
        else:
            accounts.append(_account(entry, database))
    return accounts, unknown


def of_directory(path: str, database: Database = _SYSTEM) -> Account:
    """Treat a directory as the home of its owner: a backup, a mounted disk, a copy.

    The worker gets no supplementary groups. An owner without a password entry gets a group that owns nothing:
    the directory's own group could be one with rights (a disk from another machine counts its own way).
    Raises UsageError when there is no such directory.
    """
    status = _directory(path)
    if status is None:
        raise UsageError("--home: there is no directory of this name")
    entry = database.by_uid(status.st_uid)
    return Account(
        name=str(status.st_uid) if entry is None else entry.pw_name,
        uid=status.st_uid,
        gid=_NO_GROUP if entry is None else entry.pw_gid,
        home=posixpath.abspath(path),
        listed=entry is not None,
    )


def of_uids(uids: Iterable[int], database: Database = _SYSTEM) -> list[Account]:
    """Give the accounts of these uids, in their order; a uid without a password entry has no home."""
    entries = (database.by_uid(uid) for uid in dict.fromkeys(uids))
    return [_account(entry, database) for entry in entries if entry is not None]


def exists_beside(name: str, database: Database = _SYSTEM, people: Iterable[str] = (_PEOPLE,)) -> bool:
    """Tell whether a directory of this name lies among the homes: what is left of an account, or its home

    while the directory service that knows it does not answer.
    """
    homes = [entry.pw_dir for entry in database.all() if _is_person(entry.pw_uid, _FIRST_PERSON)]
    parents = {posixpath.dirname(home) for home in homes} | set(people)
    return any(_directory(posixpath.join(parent, name)) is not None for parent in parents if parent)


def everyone(
    database: Database = _SYSTEM,
    first: int = _FIRST_PERSON,
    people: Iterable[str] = (_PEOPLE,),
    also: Iterable[int] = (),
) -> list[Account]:
    """Give every person's account whose home exists: `--all-users`, ordered by home.

    These are the entries that the database enumerates, and the owners of the directories that lie beside
    their homes and in `people`: accounts of a directory service, and homes whose account is gone. `first` is
    the lowest uid of a person; `also` are uids that are known otherwise, as those who are logged in.
    """
    homes = _Homes(first)
    for entry in database.all():
        if homes.person(entry.pw_uid):
            homes.add(_account(entry, database))
    for account in of_uids(also, database):
        if homes.person(account.uid):
            homes.add(account)
    for parent in sorted({posixpath.dirname(home) for home in homes.paths()} | set(people)):
        for path, uid in _directories(parent):
            if homes.person(uid):
                homes.add(_owner(path, uid, database))
    return homes.accounts()


def _is_person(uid: int, first: int) -> bool:
    """Whether a uid can be a person's."""
    return uid >= first and uid not in _NOBODY


def _owner(path: str, uid: int, database: Database) -> Account:
    """Give the account that owns a directory among homes; without an entry, the directory is its home."""
    entry = database.by_uid(uid)
    if entry is None:
        return Account(name=str(uid), uid=uid, gid=_NO_GROUP, home=path, listed=False)
    return _account(entry, database)


def _directory(path: str) -> os.stat_result | None:
    """Look at a directory, by links too; None when there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status if stat.S_ISDIR(status.st_mode) else None


def _directories(parent: str) -> list[tuple[str, int]]:
    """Give the real directories in a directory, sorted, with their owners; none when it cannot be listed."""
    found = []
    try:
        with os.scandir(parent) as entries:  # noqa: TID251 - where homes lie, not in one
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone, or a mount that does not answer
                if stat.S_ISDIR(status.st_mode):
                    found.append((entry.path, status.st_uid))
    except OSError:
        return []
    return sorted(found)


class _Homes:
    """Accounts by home: of several that share one, the owner of the directory, else the first."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._by_identity: dict[tuple[int, int], tuple[Account, bool]] = {}

    def person(self, uid: int) -> bool:
        """Whether a uid can be a person's."""
        return _is_person(uid, self._first)

    def add(self, account: Account) -> None:
        """Take an account when its home is there and not taken by a better one."""
        if not posixpath.isabs(account.home):
            return
        status = _directory(account.home)
        if status is None:
            return
        owns = status.st_uid == account.uid
        held = self._by_identity.get((status.st_dev, status.st_ino))
        if held is None or (owns and not held[1]):
            self._by_identity[status.st_dev, status.st_ino] = account, owns

    def paths(self) -> list[str]:
        """Give the homes known so far."""
        return [account.home for account, _ in self._by_identity.values()]

    def accounts(self) -> list[Account]:
        """Give the accounts, ordered by home."""
        return sorted((account for account, _ in self._by_identity.values()), key=lambda one: one.home)
