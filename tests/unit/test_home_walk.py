# SPDX-License-Identifier: Apache-2.0
"""Directory components: links inside the home, links out of it, what is remembered and what is held."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.home import Absent, Home, Refused
from halod.home.walk import KEEP, MAX_HELD, MAX_LINKS

ME = os.geteuid()
STRANGER = 54321
needs_root = pytest.mark.skipif(ME != 0, reason="only root can give files to another account")


@pytest.fixture
def root(tmp_path):
    """Give the path of a home beside a directory `outside` with a canary file."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("CANARY-outside")
    (tmp_path / "home2").mkdir()
    (tmp_path / "home2/f").write_text("CANARY-neighbour")
    home = tmp_path / "home"
    (home / "a/b/c").mkdir(parents=True)
    (home / "f").write_text("top")
    (home / "a/f").write_text("a")
    (home / "a/b/f").write_text("b")
    (home / "a/b/c/f").write_text("c")
    return home


@pytest.fixture
def home(root):
    """Give the opened home; every descriptor is gone afterwards."""
    before = sorted(os.listdir("/dev/fd"))
    with Home.open(str(root), uid=ME) as opened:
        yield opened
    assert sorted(os.listdir("/dev/fd")) == before


def link(root: Path, name: str, target: str) -> None:
    (root / name).symlink_to(target.replace("HOME", str(root)))


def refusal(home: Home, path: str) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        home.read(path)
    return caught.value.reason, caught.value.errno


@pytest.mark.parametrize(
    ("target", "content"),
    [
        ("a", b"a"),
        ("a/b/c", b"c"),
        ("./a//b/./", b"b"),
        ("a/b/..", b"a"),
        ("a/b/../../a/b/c/..", b"b"),
        ("HOME/a", b"a"),
        ("/.HOME//a/./b", b"b"),
        ("HOME/a/b/../b", b"b"),
        ("HOME", b"top"),
        (".", b"top"),
        ("a/..", b"top"),
    ],
)
def test_a_directory_link_that_stays_inside_is_followed(home, root, target, content):
    link(root, "l", target)
    assert home.read("l/f").data == content


@pytest.mark.parametrize(
    "target",
    [
        "..",
        "../outside",
        "a/../../outside",
        "../home",
        "../home/a",
        "a/b/../../../home/a",
        "/",
        "/etc",
        "HOME/..",
        "HOME/../home/a",
        "HOME/../outside",
        "HOME2",
        "/../HOME/a",
    ],
)
def test_a_directory_link_that_leaves_the_home_is_refused(home, root, target):
    link(root, "l", target)
    assert refusal(home, "l/f") == ("escapes-home", "")
    assert refusal(home, "l/f") == ("escapes-home", ""), "and so from memory"


def test_a_home_whose_name_begins_alike_is_outside(home, root):
    link(root, "l", f"{root}2")
    assert refusal(home, "l/f") == ("escapes-home", "")


def test_dots_pop_the_directory_that_was_walked_not_the_text(home, root):
    link(root, "a/up", "b/c")
    link(root, "l", "a/up/..")
    assert home.read("l/f").data == b"b"


def test_a_link_below_a_link_is_resolved_where_it_lies(home, root):
    link(root, "l", "a/b")
    link(root, "a/b/m", "../../a")
    assert home.read("l/m/f").data == b"a"


@pytest.mark.parametrize("target", ["missing", "f", "f/x", "a/missing/..", "f/.."])
def test_a_directory_link_that_dangles_is_absent(home, root, target):
    link(root, "l", target)
    for _ in range(2):
        with pytest.raises(Absent):
            home.read("l/f")
    assert not home.exists("l/f")


@pytest.mark.parametrize(
    "path", ["missing", "missing/x/y/z", "f/x", "a/missing", "nul\0x", "\ud800", "odd\udcff"]
)
def test_what_is_not_there_is_absent(home, path):
    for _ in range(2):
        with pytest.raises(Absent):
            home.read(path)
        assert not home.exists(path)


@pytest.mark.parametrize(("number", "fine"), [(MAX_LINKS, True), (MAX_LINKS + 1, False)])
def test_forty_links_are_followed(home, root, number, fine):
    for place in range(number - 1):
        link(root, f"l{place}", f"l{place + 1}")
    link(root, f"l{number - 1}", "a")
    if fine:
        assert home.read("l0/f").data == b"a"
    else:
        assert refusal(home, "l0/f") == ("error", "ELOOP")


def test_links_of_earlier_components_count_even_from_memory(home, root):
    half = MAX_LINKS // 2 + 1
    for where, end in (("", "a"), ("a/", "b")):
        for place in range(half - 1):
            link(root, f"{where}l{place}", f"l{place + 1}")
        link(root, f"{where}l{half - 1}", end)
    assert home.read("l0/f").data == b"a"
    assert refusal(home, "l0/l0/f") == ("error", "ELOOP")


def test_a_link_to_itself_is_an_error(home, root):
    link(root, "l", "l")
    assert refusal(home, "l/f") == ("error", "ELOOP")


def test_a_name_that_is_too_long_is_an_error(home):
    assert refusal(home, "n" * 300) == ("error", "ENAMETOOLONG")
    assert refusal(home, f"{'n' * 300}/f") == ("error", "ENAMETOOLONG")
    with pytest.raises(Refused, match="error"):
        home.exists("n" * 300)


def test_paths_of_the_caller_obey_the_same_rule(home):
    assert home.read("./a//b/./f").data == b"b"
    assert home.read("a/b/../f").data == b"a"
    assert refusal(home, "../outside/f") == ("escapes-home", "")
    assert refusal(home, "a/../../outside/f") == ("escapes-home", "")
    assert refusal(home, "/etc/hostname") == ("escapes-home", "")


@pytest.mark.parametrize("path", ["", ".", "a/..", "a/.", "a/b/", "..", "a"])
def test_a_path_of_a_directory_is_not_regular(home, path):
    assert refusal(home, path) == ("not-regular", "")


def test_a_directory_that_was_moved_keeps_its_dots(home, root):
    """What was held stays held: after the move `..` still means the parent that was walked."""
    link(root, "a/b/up", "..")
    assert home.read("a/b/f").data == b"b"
    (root / "a/b").rename(root.parent / "outside/b")
    assert home.read("a/b/up/f").data == b"a"


def test_a_directory_is_remembered_for_one_scan_and_walked_anew_on_reread(home, root):
    assert home.read("a/f").data == b"a"
    (root / "a").rename(root / "old")
    link(root, "a", "../outside")
    assert home.read("a/f").data == b"a"
    with pytest.raises(Refused, match="escapes-home"):
        home.reread("a/f")


def test_more_directories_than_may_be_held(home, root):
    """A scan of very many directories keeps to its descriptors."""
    for place in range(MAX_HELD * 2):
        (root / f"d{place}").mkdir()
        (root / f"d{place}/f").write_text(str(place))
    most = 0
    for place in range(MAX_HELD * 2):
        assert home.read(f"d{place}/f").data == str(place).encode()
        most = max(most, len(os.listdir("/dev/fd")))
    assert most < KEEP + 40


def test_a_path_deeper_than_may_be_held_is_an_error(home, root):
    deep = "/".join(["d"] * (MAX_HELD + 1))
    (root / deep).mkdir(parents=True)
    (root / deep / "f").write_text("x")
    assert refusal(home, f"{deep}/f") == ("error", "EMFILE")
    assert refusal(home, f"./{deep}/f") == ("error", "EMFILE")
    assert home.read("a/b/c/f").data == b"c"
    fine = "/".join(["d"] * (MAX_HELD - KEEP))
    (root / fine / "f").write_text("y")
    assert home.read(f"{fine}/f").data == b"y"


def test_exists_is_true_of_a_link_and_of_a_directory(home, root):
    link(root, "l", "missing")
    assert home.exists("l")
    assert home.exists("a")
    assert home.exists("a/b/f")


def test_exists_does_not_guess_behind_a_link_that_leaves(home, root):
    link(root, "l", "../outside")
    with pytest.raises(Refused, match="escapes-home"):
        home.exists("l/f")


def test_a_name_of_bytes_that_are_no_text_is_a_name(home, root):
    name = os.fsdecode(b"n\xff")
    try:
        (root / name).mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (root / name / "f").write_text("x")
    assert home.read(f"{name}/f").data == b"x"


@needs_root
def test_a_directory_without_rights(shared_tmp, account):
    for name, mode in (("shut", 0o700), ("pass", 0o711)):
        (shared_tmp / name / "d").mkdir(parents=True)
        (shared_tmp / name / "f").write_text("x")
        (shared_tmp / name / "d/f").write_text("y")
        (shared_tmp / name).chmod(mode)
    with account(STRANGER), Home.open(str(shared_tmp), uid=STRANGER) as home:
        for _ in range(2):
            assert refusal(home, "shut/f") == ("unreadable", "")
            assert refusal(home, "shut/d/f") == ("unreadable", "")
        assert home.read("pass/f").data == b"x"
        assert home.read("pass/d/f").data == b"y"
        with pytest.raises(Refused, match="unreadable"):
            home.exists("shut/f")


def test_a_directory_that_the_system_denies_is_told_so(home, monkeypatch):
    """As macOS does for what its privacy protection covers: EPERM, and no second way in is tried."""

    def denied(name, flags, *, dir_fd=None):
        raise PermissionError(errno.EPERM, "CANARY")

    monkeypatch.setattr(os, "open", denied)
    assert refusal(home, "a/f") == ("denied-by-system", "")


class Swap:
    """Turns a component from directory to link and back at each look, through the calls the walk makes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def to_link(self) -> None:
        (self.root / "a").rename(self.root / "aside")
        link(self.root, "a", "aside")

    def to_directory(self) -> None:
        (self.root / "a").unlink()
        (self.root / "aside").rename(self.root / "a")


def test_a_component_that_keeps_turning_is_changed(home, root, monkeypatch):
    """It is a link whenever it is opened as a directory, and a directory whenever it is read as a link."""
    swap = Swap(root)
    swap.to_link()
    lstat = os.lstat

    def turning(name, *, dir_fd=None):
        swap.to_directory()
        found = lstat(name, dir_fd=dir_fd)
        swap.to_link()
        return found

    monkeypatch.setattr(os, "lstat", turning)
    assert refusal(home, "a/f") == ("changed", "")


def test_a_component_that_turned_once_is_walked(home, root, monkeypatch):
    """A link that became a directory before it was read as a link is looked at again."""
    swap = Swap(root)
    swap.to_link()
    readlink = os.readlink

    def turned(name, *, dir_fd=None):
        swap.to_directory()
        return readlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "readlink", turned)
    assert home.read("a/f").data == b"a"


def test_a_component_that_vanished_under_our_hands_is_absent(home, root, monkeypatch):
    link(root, "l", "a")
    lstat = os.lstat

    def gone(name, *, dir_fd=None):
        (root / "l").unlink(missing_ok=True)
        return lstat(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", gone)
    with pytest.raises(Absent):
        home.read("l/f")


def test_a_failing_readlink_is_an_error(home, root, monkeypatch):
    link(root, "l", "a")

    def failing(name, *, dir_fd=None):
        raise OSError(5, "CANARY")

    monkeypatch.setattr(os, "readlink", failing)
    assert refusal(home, "l/f") == ("error", "EIO")


@needs_root
def test_on_the_way_to_a_home_the_link_that_was_judged_is_the_one_that_is_read(root, monkeypatch):
    """A link of root's, swapped for the account's own while it is read, does not lead anywhere."""
    way = root.parent / "way"
    way.symlink_to("home")
    readlink = os.readlink

    def swapped(name, *, dir_fd=None):
        way.rename(root.parent / "kept")
        way.symlink_to("outside")
        return readlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "readlink", swapped)
    with pytest.raises(Refused, match="home-unavailable"):
        Home.open(str(way), uid=ME)


COMPONENT = st.sampled_from(["a", "b", "c", "..", ".", "l0", "l1", "l2", "f", "HOME", "/", "outside", "home"])
TARGET = st.lists(COMPONENT, min_size=1, max_size=6).map("/".join)


@given(targets=st.lists(TARGET, min_size=3, max_size=3), path=st.lists(COMPONENT, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_no_tangle_of_links_leads_outside(tmp_path_factory, targets, path):
    """Whatever is linked to what, only the home's own files are read, as the kernel would reach them."""
    top = tmp_path_factory.mktemp("tangle")
    home = top / "home"
    (home / "a/b/c").mkdir(parents=True)
    (top / "outside").mkdir()
    (top / "outside/f").write_text("CANARY")
    (top / "f").write_text("CANARY")
    for inside in ("f", "a/f", "a/b/f", "a/b/c/f"):
        (home / inside).write_text(inside)
    places = (home, home / "a", home / "a/b")
    for number, (place, target) in enumerate(zip(places, targets, strict=True)):
        (place / f"l{number}").symlink_to(target.replace("HOME", str(home)))
    asked = "/".join(part for part in path if part not in ("HOME", "/")) + "/f"
    before = sorted(os.listdir("/dev/fd"))
    with Home.open(str(home), uid=ME, trusted_links=False) as opened:
        try:
            data = bytes(opened.read(asked).data)
        except (Absent, Refused):
            data = b""
    assert sorted(os.listdir("/dev/fd")) == before
    assert b"CANARY" not in data
    if data:
        assert data == (home / asked).read_bytes()
