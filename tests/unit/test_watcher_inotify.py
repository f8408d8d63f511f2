# SPDX-License-Identifier: Apache-2.0
"""Linux's events through watchdog's bindings: limits, and what the kernel's bytes mean."""

import ctypes
import errno
import os
import resource
import struct
import sys

import pytest

from tests.support.roles import UID, in_child

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

if sys.platform == "linux":
    from halod.roles.watched import inotify


@pytest.fixture
def place(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def source():
    here = os.open(".", os.O_RDONLY)
    made = inotify.Inotify()
    yield made
    made.close()
    os.fchdir(here)
    os.close(here)


def test_the_same_directory_is_the_same_watch(source, place, tmp_path):
    watch = source.add(place)
    assert watch > 0
    assert source.add(place) == watch
    (tmp_path / "a").write_text("x")
    assert {(event[0], event[2]) for event in source.read()} == {(watch, "a")}
    assert source.read() == []


def test_single_writes_are_told_where_they_are_asked_for_and_stay_so(source, place, tmp_path):
    source.add(place)
    with open(tmp_path / "log", "wb", buffering=0) as log:
        source.read()
        log.write(b"x")
        assert source.read() == []
        watch = source.add(place, busy=True)
        source.add(place)
        log.write(b"x")
        assert source.read() == [(watch, 0x2, "log")]


def test_a_directory_that_is_left_tells_no_more(source, place, tmp_path):
    watch = source.add(place)
    source.remove(watch)
    assert source.read() == [(watch, 0x8000, "")]
    source.remove(watch)
    (tmp_path / "a").write_text("x")
    assert source.read() == []


def test_no_directory_is_kept_busy(source, place, tmp_path):
    source.add(place)
    assert os.getcwd() == str(tmp_path)
    source.rest()
    assert os.getcwd() == "/"


def test_what_is_no_directory_is_not_watched(source):
    with open("/dev/null") as null:
        assert source.add(null.fileno()) == 0
    assert not source.limited


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE, errno.ENOMEM])
def test_a_refusal_for_the_number_of_watches_is_a_limit(source, place, monkeypatch, code):
    def refuse(*_arguments):
        ctypes.set_errno(code)
        return -1

    monkeypatch.setattr(inotify, "inotify_add_watch", refuse)
    assert source.add(place) == 0
    assert source.limited


def test_another_refusal_is_none(source, place, monkeypatch):
    def refuse(*_arguments):
        ctypes.set_errno(errno.EACCES)
        return -1

    monkeypatch.setattr(inotify, "inotify_add_watch", refuse)
    assert source.add(place) == 0
    assert not source.limited


def test_no_descriptor_left_is_a_limit():
    """The same errno as the account's limit of instances (inotify_init(2))."""

    def attempt():
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        try:
            inotify.Inotify()
        except inotify.Exhausted:
            return "exhausted"
        return "made"

    assert in_child(attempt) == "exhausted"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs an account whose instances are all its own")
def test_an_account_without_instances_left_is_a_limit():
    """The real limit of the machine, exhausted by another uid than anybody's."""
    with open("/proc/sys/fs/inotify/max_user_instances") as limit:
        most = int(limit.read())
    if most > 4096:
        pytest.skip(f"an account may have {most} instances here")

    def attempt():
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 100, most + 100))
        os.setresuid(UID + 7, UID + 7, UID + 7)
        made = 0
        try:
            for _ in range(most + 1):
                inotify.Inotify()
                made += 1
        except inotify.Exhausted:
            return made
        return -1

    assert in_child(attempt) == most


def test_a_kernel_without_inotify_is_an_error(monkeypatch):
    def refuse():
        ctypes.set_errno(errno.ENOSYS)
        return -1

    monkeypatch.setattr(inotify, "inotify_init", refuse)
    with pytest.raises(OSError, match="inotify_init"):
        inotify.Inotify()


def test_events_are_cut_out_of_what_the_kernel_gave():
    def event(watch, mask, name=b""):
        return struct.pack("iIII", watch, mask, 0, len(name)) + name

    data = (
        event(1, 0x100, b"a\0\0\0")
        + event(-1, 0x4000)
        + event(2, 0x8, "é".encode().ljust(16, b"\0"))
        + event(3, 0x8, b"\xff\0")
    )
    assert inotify.parse(data) == [(1, 0x100, "a"), (-1, 0x4000, ""), (2, 0x8, "é"), (3, 0x8, "\udcff")]
    assert inotify.parse(data[:10]) == []
