# SPDX-License-Identifier: Apache-2.0
"""The final component: what is opened, what is refused, and what counts as a change."""

import errno
import gc
import os
import socket
import sys
import time
import traceback
from pathlib import Path

import pytest

from halod.home import Absent, File, Home, Match, Refused
from halod.home.fault import fault

ME = os.geteuid()
STRANGER = 54321
needs_root = pytest.mark.skipif(ME != 0, reason="only root can give files to another account")


@pytest.fixture
def root(tmp_path):
    """Give the path of an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def home(root):
    """Give the opened home; every descriptor is gone afterwards."""
    gc.collect()  # what other tests have dropped
    before = sorted(os.listdir("/dev/fd"))
    with Home.open(str(root), uid=ME, max_file_bytes=1000) as opened:
        yield opened
    assert sorted(os.listdir("/dev/fd")) == before


def refusal(home: Home, path: str = "f") -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        home.read(path)
    return caught.value.reason, caught.value.errno


class Clock:
    """A clock that does something each time it is read: `Home` reads it between lstat and open."""

    def __init__(self, *steps) -> None:
        self.steps = list(steps)

    def __call__(self) -> float:
        if self.steps:
            self.steps.pop(0)()
        return time.time()


def test_a_file_is_read_whole_with_its_identity(home, root):
    (root / "f").write_bytes(b"\xef\xbb\xbf{}\0\xff")
    got = home.read("f")
    found = (root / "f").stat()
    assert isinstance(got.data, bytearray)
    assert (got.data, got.device, got.inode) == (b"\xef\xbb\xbf{}\0\xff", found.st_dev, found.st_ino)


def test_one_file_by_two_paths_has_one_identity(home, root):
    (root / "d").mkdir()
    (root / "d/f").write_text("x")
    (root / "l").symlink_to("d")
    one, two = home.read("d/f"), home.read("l/f")
    assert (one.device, one.inode) == (two.device, two.inode)


def test_an_empty_file_is_read(home, root):
    (root / "f").touch()
    assert home.read("f").data == b""
    assert home.reread("f").data == b""


def test_a_large_file_comes_in_pieces(home, root, monkeypatch):
    """A short read is not the end of the file."""
    (root / "f").write_bytes(bytes(range(250)) * 4)
    readv = os.readv
    monkeypatch.setattr(os, "readv", lambda fd, buffers: readv(fd, [buffers[0][:7]]))
    assert home.read("f").data == bytes(range(250)) * 4


@pytest.mark.parametrize(("size", "fine"), [(1000, True), (1001, False)])
def test_the_size_limit_is_inclusive(home, root, size, fine):
    (root / "f").write_bytes(b"x" * size)
    if fine:
        assert len(home.read("f").data) == size
    else:
        assert refusal(home) == ("too-large", "")


def test_a_sparse_file_counts_by_its_size(home, root):
    (root / "f").touch()
    os.truncate(root / "f", 1 << 40)
    assert refusal(home) == ("too-large", "")


def test_a_link_is_refused_wherever_it_leads(home, root):
    (root / "g").write_text("x")
    for name, target in (("f", "g"), ("dangling", "missing"), ("out", "/etc/hostname")):
        (root / name).symlink_to(target)
        assert refusal(home, name) == ("symlink", "")


def test_a_pipe_is_never_opened(home, root):
    """Nobody holds its reading end afterwards."""
    os.mkfifo(root / "f")
    assert refusal(home) == ("not-regular", "")
    with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
        os.open(root / "f", os.O_WRONLY | os.O_NONBLOCK)


def test_a_socket_a_directory_and_a_device_are_not_regular(home, root, monkeypatch):
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        assert refusal(home, "s") == ("not-regular", "")
    (root / "d").mkdir()
    assert refusal(home, "d") == ("not-regular", "")
    with Home.open("/dev", uid=ME) as devices:
        assert refusal(devices, "null") == ("not-regular", "")


@needs_root
def test_files_of_other_accounts_are_refused_and_roots_are_read(root):
    (root / "f").write_text("x")
    with Home.open(str(root), uid=STRANGER) as home:
        assert home.read("f").data == b"x"
        os.chown(root / "f", STRANGER, STRANGER)
        assert home.read("f").data == b"x"
        os.chown(root / "f", STRANGER + 1, STRANGER)
        assert refusal(home) == ("wrong-owner", "")


@needs_root
def test_a_hard_link_to_a_file_that_is_not_the_accounts_is_refused(root):
    (root / "f").write_text("x")
    os.link(root / "f", root / "g")
    with Home.open(str(root), uid=STRANGER) as home:
        assert refusal(home) == ("hard-linked", "")
        os.chown(root / "f", STRANGER, STRANGER)
        assert home.read("f").data == b"x"


@needs_root
def test_a_file_without_rights_is_unreadable(shared_tmp, account):
    (shared_tmp / "f").write_text("x")
    (shared_tmp / "f").chmod(0)
    with account(STRANGER), Home.open(str(shared_tmp), uid=STRANGER) as home:
        assert refusal(home) == ("unreadable", "")


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (errno.ENOENT, None),
        (errno.ENOTDIR, None),
        (errno.EACCES, ("unreadable", "")),
        (errno.EPERM, ("denied-by-system", "")),
        (errno.EIO, ("error", "EIO")),
        (errno.ESTALE, ("error", "ESTALE")),
        (9999, ("error", "EIO")),
        (None, ("error", "EIO")),
    ],
)
def test_every_errno_has_an_answer_without_a_path(code, answer):
    error = OSError(code, "CANARY", "CANARY-path")
    got = fault(error)
    assert isinstance(got, Absent if answer is None else Refused)
    if isinstance(got, Refused):
        assert (got.reason, got.errno) == answer
    assert "CANARY" not in f"{got!r}{got}"


@pytest.mark.parametrize("code", [errno.EIO, errno.EPERM, errno.EAGAIN])
def test_a_failing_open_or_read_is_told_by_its_name(home, root, monkeypatch, code):
    (root / "f").write_text("x")

    def failing(*args, **kwargs):
        raise OSError(code, "CANARY")

    expected = ("denied-by-system", "") if code == errno.EPERM else ("error", errno.errorcode[code])
    with monkeypatch.context() as patch:
        patch.setattr(os, "readv", failing)
        assert refusal(home) == expected
    assert home.read("f").data == b"x"
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        assert refusal(home) == expected


def test_a_file_that_memory_cannot_hold_costs_itself_only(root):
    """A limit that an administrator set too high is not a crash."""
    (root / "f").touch()
    os.truncate(root / "f", 1 << 43)
    with Home.open(str(root), uid=ME, max_file_bytes=1 << 62) as home:
        assert refusal(home) == ("error", "ENOMEM")


def test_swapped_for_a_link_between_the_looks(root):
    (root / "f").write_text("x")
    (root / "g").write_text("CANARY")

    def swap():
        (root / "f").unlink()
        (root / "f").symlink_to("g")

    with Home.open(str(root), uid=ME, now=Clock(swap)) as home:
        assert refusal(home) == ("symlink", "")


def test_swapped_for_a_pipe_between_the_looks(root):
    """Opening the pipe does not block, and it is not read; the second look tells what it is."""
    (root / "f").write_text("x")

    def swap():
        (root / "f").unlink()
        os.mkfifo(root / "f")

    with Home.open(str(root), uid=ME, now=Clock(swap)) as home:
        assert refusal(home) == ("not-regular", "")


def replace(root: Path, text: str):
    def swap():
        (root / "new").write_text(text)
        (root / "new").rename(root / "f")

    return swap


def test_a_file_saved_by_rename_between_the_looks_is_read_again(root):
    (root / "f").write_text("old")
    with Home.open(str(root), uid=ME, now=Clock(replace(root, "new"))) as home:
        assert home.read("f").data == b"new"


def test_a_file_replaced_at_every_look_is_changed(root):
    (root / "f").write_text("old")
    clock = Clock(replace(root, "1"), replace(root, "2"))
    with Home.open(str(root), uid=ME, now=clock) as home:
        assert refusal(home) == ("changed", "")


def test_a_file_removed_between_the_looks_is_looked_for_again(root):
    (root / "f").write_text("old")
    with Home.open(str(root), uid=ME, now=Clock((root / "f").unlink)) as home, pytest.raises(Absent):
        home.read("f")


def test_a_file_removed_at_the_second_look_is_changed(root):
    (root / "f").write_text("old")
    clock = Clock((root / "f").unlink)
    with Home.open(str(root), uid=ME, now=clock) as home, pytest.raises(Refused, match="changed"):
        home.reread("f")


def test_the_second_look_walks_anew(root):
    """A directory that was replaced together with its file is left for the new one."""
    (root / "d").mkdir()
    (root / "d/f").write_text("old")

    def swap():
        (root / "d/f").unlink()
        (root / "d").rename(root / "gone")
        (root / "d").mkdir()
        (root / "d/f").write_text("new")

    with Home.open(str(root), uid=ME, now=Clock(swap)) as home:
        assert home.read("d/f").data == b"new"


def grow(path: Path) -> None:
    with path.open("a") as file:
        file.write("+")


def touch(path: Path) -> None:
    """Change the ctime alone."""
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def shrink(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("change", [grow, touch, shrink])
@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_changes_while_it_is_read_is_read_again_once(home, root, monkeypatch, change, times):
    (root / "f").write_text("four")
    readv, left = os.readv, [times]

    def changing(fd, buffers):
        first = len(buffers[0]) == os.fstat(fd).st_size + 1
        count = readv(fd, buffers)
        if first and left[0] > 0:
            left[0] -= 1
            change(root / "f")
        return count

    monkeypatch.setattr(os, "readv", changing)
    if times == 1:
        assert home.read("f").data == (root / "f").read_bytes()
    else:
        assert refusal(home) == ("changed", "")


def test_the_read_stops_one_byte_behind_the_size_it_saw(home, root, monkeypatch):
    (root / "f").write_text("four")
    readv, counts = os.readv, []

    def growing(fd, buffers):
        with (root / "f").open("a") as file:
            file.write("x" * 100)
        counts.append(readv(fd, buffers))
        return counts[-1]

    monkeypatch.setattr(os, "readv", growing)
    assert refusal(home) == ("changed", "")
    assert counts == [5, 105]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_file_that_lies_about_its_size_is_changed():
    with Home.open("/proc/self", uid=ME, trusted_links=False) as home:
        assert refusal(home, "limits") == ("changed", "")


def test_recent_means_changed_less_than_a_second_ago(root):
    (root / "f").write_text("x")
    changed = (root / "f").stat().st_ctime
    for later, recent in ((0.0, True), (0.9, True), (1.1, False), (-5.0, True)):
        with Home.open(str(root), uid=ME, now=lambda later=later: changed + later) as home:
            assert home.read("f").recent is recent


def test_an_old_mtime_does_not_hide_that_a_file_changed(root):
    (root / "f").write_text("x")
    os.utime(root / "f", (1, 1))
    with Home.open(str(root), uid=ME) as home:
        assert home.read("f").recent is True


def test_what_is_handed_out_does_not_show_itself():
    shown = repr(File(bytearray(b"CANARY"), 1, 2)) + repr(Match("CANARY", ("CANARY",)))
    assert "CANARY" not in shown


def test_a_printed_error_carries_no_path(home, root):
    (root / "CANARY").symlink_to("CANARY2")
    try:
        home.read("CANARY/f")
    except Refused as refused:
        shown = "".join(traceback.format_exception(refused))
    except Absent as absent:
        shown = "".join(traceback.format_exception(absent))
    assert "CANARY'" not in shown
    assert "FileNotFoundError" not in shown


# Link roots


@pytest.fixture
def store(tmp_path):
    """Give a directory of the caller's that plays /nix/store, with a file `pkg/f`."""
    place = tmp_path / "store"
    (place / "pkg").mkdir(parents=True)
    (place / "pkg/f").write_text("stored")
    return place


def opened(root: Path, *roots: str | Path, uid: int = ME) -> Home:
    return Home.open(str(root), uid=uid, link_roots=tuple(map(str, roots)))


@pytest.fixture
def dotfiles(root):
    """Put a file of the account's at `dot/f`, and links to it."""
    (root / "dot").mkdir()
    (root / "dot/f").write_text("mine")
    (root / "c").mkdir()
    (root / "c/f").symlink_to("../dot/f")
    (root / "f").symlink_to(root / "dot/f")
    return root


def test_a_final_link_may_end_in_the_home_when_the_setting_says_so(dotfiles):
    with opened(dotfiles, "~") as home:
        assert home.read("f").data == b"mine"
        assert home.read("c/f").data == b"mine"
        assert home.fds == (home.fd,)
    with opened(dotfiles) as home:
        assert refusal(home, "c/f") == ("symlink", "")


def test_a_final_link_through_directory_links_and_links(dotfiles):
    (dotfiles / "alias").symlink_to("dot")
    (dotfiles / "g").symlink_to("alias/h")
    (dotfiles / "dot/h").symlink_to("./f")
    with opened(dotfiles, "~") as home:
        assert home.read("g").data == b"mine"


@pytest.mark.parametrize(
    "target",
    ["/etc/hostname", "../store/pkg/f", "../../x", "out/f", "dot/../../store/pkg/f"],
)
def test_a_final_link_out_of_every_root_is_a_symlink(dotfiles, store, target):
    (dotfiles / "out").symlink_to("../store/pkg")
    (dotfiles / "g").symlink_to(target)
    with opened(dotfiles, "~") as home:
        assert refusal(home, "g") == ("symlink", "")


@pytest.mark.parametrize("target", ["dot", ".", "dot/..", "dot/."])
def test_a_final_link_to_a_directory_is_not_regular(dotfiles, target):
    (dotfiles / "g").symlink_to(target)
    with opened(dotfiles, "~") as home:
        assert refusal(home, "g") == ("not-regular", "")


@pytest.mark.parametrize("target", ["missing", "missing/f", "dot/f/x"])
def test_a_final_link_that_dangles_inside_is_absent(dotfiles, target):
    (dotfiles / "g").symlink_to(target)
    with opened(dotfiles, "~") as home, pytest.raises(Absent):
        home.read("g")


def test_a_final_link_to_itself_is_an_error(dotfiles):
    (dotfiles / "g").symlink_to("g")
    with opened(dotfiles, "~") as home:
        assert refusal(home, "g") == ("error", "ELOOP")


def test_a_final_link_that_becomes_a_file_while_it_is_read_is_looked_at_again(dotfiles, monkeypatch):
    readlink = os.readlink

    def swapped(name, *, dir_fd=None):
        (dotfiles / "f").unlink()
        (dotfiles / "f").write_text("now a file")
        return readlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "readlink", swapped)
    with opened(dotfiles, "~") as home:
        assert home.read("f").data == b"now a file"


@needs_root
def test_in_the_home_the_target_must_be_the_accounts(dotfiles):
    with opened(dotfiles, "~", uid=STRANGER) as home:
        assert refusal(home, "f") == ("wrong-owner", "")
        os.chown(dotfiles / "dot/f", STRANGER, STRANGER)
        assert home.read("f").data == b"mine"


@needs_root
def test_a_final_link_may_end_in_a_directory_of_roots(root, store):
    gc.collect()  # what other tests have dropped
    before = sorted(os.listdir("/dev/fd"))
    (root / "f").symlink_to(store / "pkg/f")
    (root / "chain").symlink_to(store / "other/f")
    (store / "other").mkdir()
    (store / "other/f").symlink_to(store / "pkg/f")
    (root / "twice").symlink_to("f")
    with opened(root, store, uid=STRANGER) as home:
        assert len(home.fds) == 2
        for name in ("f", "chain", "twice"):
            assert home.read(name).data == b"stored"
    with opened(root, "~", uid=STRANGER) as home:
        assert refusal(home) == ("symlink", "")
    assert sorted(os.listdir("/dev/fd")) == before


@needs_root
def test_a_stores_deduplicated_files_are_read(root, store):
    """`nix-store --optimise` gives equal files one inode; no account could have made these links."""
    os.link(store / "pkg/f", store / "pkg/g")
    (root / "f").symlink_to(store / "pkg/f")
    with opened(root, store, uid=STRANGER) as home:
        assert home.read("f").data == b"stored"


@needs_root
def test_in_a_link_root_the_target_must_be_roots(root, store):
    os.chown(store / "pkg/f", STRANGER, STRANGER)
    (root / "f").symlink_to(store / "pkg/f")
    with opened(root, store, uid=STRANGER) as home:
        assert refusal(home) == ("wrong-owner", "")


@needs_root
def test_a_link_that_passes_a_root_and_ends_in_the_home_needs_the_home_to_be_named(dotfiles, store):
    (store / "back").symlink_to(dotfiles / "dot/f")
    (dotfiles / "g").symlink_to(store / "back")
    with opened(dotfiles, store) as home:
        assert refusal(home, "g") == ("symlink", "")
    with opened(dotfiles, store, "~") as home:
        assert home.read("g").data == b"mine"


@needs_root
def test_a_walk_in_a_root_does_not_leave_it(root, store):
    (store.parent / "f").write_text("CANARY")
    (store / "up").symlink_to("..")
    for name, target in (("a", "up/f"), ("b", "../f"), ("c", "pkg/../../f")):
        (root / name).symlink_to(f"{store}/{target}")
    with opened(root, store) as home:
        for name in ("a", "b", "c"):
            assert refusal(home, name) == ("symlink", "")


@needs_root
def test_a_link_root_that_is_not_roots_or_not_there_allows_nothing(root, store):
    gc.collect()  # what other tests have dropped
    before = sorted(os.listdir("/dev/fd"))
    (root / "f").symlink_to(store / "pkg/f")
    with opened(root, store.parent / "missing", "relative", "~") as home:
        assert refusal(home) == ("symlink", "")
    os.chown(store, STRANGER, STRANGER)
    with opened(root, store) as home:
        assert refusal(home) == ("symlink", "")
        assert home.fds == (home.fd,)
    assert sorted(os.listdir("/dev/fd")) == before
