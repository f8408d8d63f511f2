# SPDX-License-Identifier: Apache-2.0
"""Becoming an account, with a recorder in place of `os`: the order, the read-back, the way back."""

import errno
import os

import pytest

from halod.roles import identity, libc
from tests.support.roles import GID, UID, in_child


class Recorder:
    """An `os` that notes calls; ids are what was set, or what a test makes of them."""

    def __init__(self, *, euid=0, egid=0, deny=(), lie=False, root_returns=()):
        self.calls = []
        self.uids, self.gids = (euid,) * 3, (egid,) * 3
        self._deny, self._lie, self._returns = deny, lie, root_returns

    def sysconf(self, name):
        return {"SC_NGROUPS_MAX": 16}[name]

    def geteuid(self):
        return self.uids[1]

    def getegid(self):
        return self.gids[1]

    def setgroups(self, groups):
        self._note("setgroups", tuple(groups))

    def setresgid(self, *ids):
        self._note("setresgid", ids)
        self.gids = ids

    def setresuid(self, *ids):
        self._note("setresuid", ids)
        self.uids = (*ids[:2], 0) if self._lie else ids

    def getresgid(self):
        return self.gids

    def getresuid(self):
        return self.uids

    def setuid(self, uid):
        self._return("setuid", uid)

    def seteuid(self, uid):
        self._return("seteuid", uid)

    def _note(self, name, value):
        self.calls.append((name, value))
        if name in self._deny:
            raise PermissionError(errno.EPERM, name)

    def _return(self, name, uid):
        self.calls.append((name, uid))
        if name not in self._returns:
            raise PermissionError(errno.EPERM, name)


class TwoIds:
    """An `os` without setresuid, as on macOS."""

    def __init__(self, *, keeps_root=False):
        self.calls = []
        self.uid = self.euid = self.gid = self.egid = 0
        self._keeps_root = keeps_root

    def sysconf(self, _name):
        return 16

    def geteuid(self):
        return self.euid

    def getuid(self):
        return self.uid

    def getgid(self):
        return self.gid

    def getegid(self):
        return self.egid

    def setgroups(self, groups):
        self.calls.append(("setgroups", tuple(groups)))

    def setgid(self, gid):
        self.calls.append(("setgid", gid))
        self.gid = self.egid = gid

    def setuid(self, uid):
        self.calls.append(("setuid", uid))
        self.euid = uid
        if not self._keeps_root:
            self.uid = uid


def test_groups_go_first_and_user_ids_last():
    system = Recorder()
    identity.assume(UID, GID, (7, 8), system)
    assert system.calls == [("setgroups", (7, 8)), ("setresgid", (GID,) * 3), ("setresuid", (UID,) * 3)]


def test_no_more_groups_are_set_than_the_system_takes():
    system = Recorder()
    identity.assume(UID, GID, tuple(range(100, 140)), system)
    assert system.calls[0] == ("setgroups", tuple(range(100, 116)))


def test_an_id_that_did_not_change_is_an_error():
    with pytest.raises(identity.StillPrivileged):
        identity.assume(UID, GID, (), Recorder(lie=True))


def test_an_account_cannot_be_assumed_with_roots_groups():
    with pytest.raises(PermissionError):
        identity.assume(UID, GID, (), Recorder(deny=("setgroups",)))


def test_a_container_root_that_may_not_set_groups_can_still_be_itself():
    system = Recorder(deny=("setgroups",))
    identity.assume(0, 0, (), system)
    assert system.uids == (0, 0, 0)


def test_without_setresuid_setuid_sets_them_all():
    system = TwoIds()
    identity.assume(UID, GID, (), system)
    assert system.calls == [("setgroups", ()), ("setgid", GID), ("setuid", UID)]


def test_without_setresuid_a_kept_id_is_an_error_too():
    with pytest.raises(identity.StillPrivileged):
        identity.assume(UID, GID, (), TwoIds(keeps_root=True))


def test_an_ordinary_caller_stays_itself_and_gives_up_saved_ids():
    system = Recorder(euid=UID, egid=GID)
    system.uids = (UID, UID, 0)
    identity.keep(system)
    assert system.calls == [("setresgid", (GID,) * 3), ("setresuid", (UID,) * 3)]


def test_the_way_back_is_tried_twice():
    system = Recorder(euid=UID)
    identity.refuse_return(system)
    assert system.calls == [("setuid", 0), ("seteuid", 0)]


@pytest.mark.parametrize("way", ["setuid", "seteuid"])
def test_a_way_back_to_root_is_an_error(way):
    with pytest.raises(identity.StillPrivileged):
        identity.refuse_return(Recorder(euid=UID, root_returns=(way,)))


def test_a_namespace_without_a_root_has_no_way_back():
    """In a user namespace where uid 0 stands for nobody, setuid(0) is EINVAL."""

    class Rootless(Recorder):
        def setuid(self, uid):
            self.calls.append(("setuid", uid))
            raise OSError(errno.EINVAL, "setuid")

    system = Rootless(euid=UID)
    identity.refuse_return(system)
    assert system.calls == [("setuid", 0), ("seteuid", 0)]


def test_another_error_on_the_way_back_is_one():
    class Odd(Recorder):
        def setuid(self, uid):
            raise OSError(errno.EAGAIN, "setuid")

    with pytest.raises(OSError, match="setuid"):
        identity.refuse_return(Odd(euid=UID))


def test_uid_0_has_no_way_back_to_try():
    system = Recorder()
    identity.refuse_return(system)
    assert system.calls == []


class Kernel:
    """A `libc` whose prctl fails with one number, or works; it may keep a capability."""

    def __init__(self, *, fails_with=0, keeps=False):
        self.asked, self.dropped = [], 0
        self._number, self._keeps = fails_with, keeps

    def prctl(self, _option, value):
        self.asked.append(value)
        if self._number:
            raise OSError(self._number, "prctl")
        return 0

    def drop_capabilities(self):
        self.dropped += 1

    def capabilities(self):
        return self._keeps


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EPERM, errno.ENOSYS])
def test_the_bounding_set_ends_where_the_kernel_says(number):
    kernel = Kernel(fails_with=number)
    identity.drop_bounding_set(kernel)
    assert kernel.asked == [0]


def test_another_error_of_the_bounding_set_is_one():
    with pytest.raises(OSError):
        identity.drop_bounding_set(Kernel(fails_with=errno.EFAULT))


def test_every_capability_is_asked_for_when_the_kernel_knows_64():
    kernel = Kernel()
    identity.drop_bounding_set(kernel)
    assert kernel.asked == list(range(64))


def test_a_system_without_capabilities_has_none_to_drop():
    kernel = Kernel(fails_with=errno.ENOSYS)
    identity.drop_capabilities(kernel)
    assert kernel.dropped == 0


def test_a_kernel_without_an_ambient_set_still_drops_the_others():
    kernel = Kernel(fails_with=errno.EINVAL)
    identity.drop_capabilities(kernel)
    assert kernel.dropped == 1


def test_another_error_of_the_ambient_set_is_one():
    with pytest.raises(OSError):
        identity.drop_capabilities(Kernel(fails_with=errno.EFAULT))


def test_a_capability_that_is_still_there_is_an_error():
    with pytest.raises(identity.StillPrivileged):
        identity.drop_capabilities(Kernel(keeps=True))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to have capabilities")
def test_root_without_capabilities_has_empty_sets():
    def drop():
        identity.drop_bounding_set()
        identity.drop_capabilities()
        with open("/proc/self/status") as status:
            lines = [line.split() for line in status if line.startswith("Cap")]
        return {name: int(value, 16) for name, value in lines}

    assert in_child(drop) == dict.fromkeys(["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"], 0)


def test_a_call_that_fails_tells_its_name_and_number():
    with pytest.raises(OSError) as raised:
        libc.prctl(-1)
    assert raised.value.errno == errno.EINVAL
    with pytest.raises(OSError) as raised:
        libc.syscall(444, 0, 0, 0xFF)
    assert raised.value.strerror == "syscall"


def test_a_system_that_is_not_linux_lacks_every_call():
    assert libc.bind("darwin")[0]() == -1
