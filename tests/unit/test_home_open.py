# SPDX-License-Identifier: Apache-2.0
"""Opening the home itself: the walk from /, links on the way, and what is held afterwards."""

import gc
import os
import stat
from pathlib import Path

import pytest

from halod.home import Absent, Home, Refused

ME = os.geteuid()
STRANGER = 54321
needs_root = pytest.mark.skipif(ME != 0, reason="only root can give files to another account")


def held() -> set[str]:
    """Give the descriptors of this process."""
    gc.collect()  # what other tests have dropped
    return set(os.listdir("/dev/fd"))


def unavailable(path: Path | str, **settings) -> None:
    """Hold that a home cannot be opened and that nothing stays open."""
    before = held()
    with pytest.raises(Refused) as caught:
        Home.open(str(path), uid=ME, **settings)
    assert (caught.value.reason, caught.value.errno) == ("home-unavailable", "")
    assert held() == before


@pytest.fixture
def place(tmp_path):
    """Give a directory with a home `real/dev` that holds the file `f`."""
    (tmp_path / "real" / "dev").mkdir(parents=True)
    (tmp_path / "real" / "dev" / "f").write_text("x")
    return tmp_path


def reads(path: Path | str, name: str = "f", **settings) -> bool:
    """Say whether a file of a home can be read."""
    with Home.open(str(path), uid=ME, **settings) as home:
        return bool(home.read(name).data)


def test_a_home_is_one_close_on_exec_directory_descriptor(place):
    before = held()
    with Home.open(str(place / "real/dev"), uid=ME) as home:
        assert held() - before <= {str(home.fd)}
        assert stat.S_ISDIR(os.fstat(home.fd).st_mode)
        assert not os.get_inheritable(home.fd)
        assert home.fds == (home.fd,)
        assert os.path.samestat(os.fstat(home.fd), (place / "real/dev").stat())
    assert held() == before


def test_closing_twice_is_no_error(place):
    home = Home.open(str(place / "real/dev"), uid=ME)
    home.close()
    home.close()


@pytest.mark.parametrize("name", ["missing", "real/dev/f", "real/dev/f/g", "nul\0", "\ud800"])
def test_what_is_no_directory_is_unavailable(place, name):
    unavailable(f"{place}/{name}")


def test_a_name_that_is_too_long_is_unavailable(place):
    unavailable(f"{place}/{'n' * 300}")


def test_a_path_that_is_too_deep_is_unavailable(place):
    deep = place
    for _ in range(120):
        deep = deep / "d"
    deep.mkdir(parents=True)
    unavailable(deep)


def test_slashes_and_dots_in_the_path_mean_nothing(place):
    assert reads(f"{place}//real/./dev/")


def test_dots_are_walked_as_directories_not_as_text(place):
    (place / "far" / "deep").mkdir(parents=True)
    (place / "far" / "f").write_text("x")
    (place / "link").symlink_to("far/deep")
    assert reads(f"{place}/link/..", trusted_links=False)
    assert reads(f"/..{place}/real/dev")


def test_a_relative_path_begins_at_the_working_directory(place, monkeypatch):
    monkeypatch.chdir(place)
    assert reads("real/dev")


def test_the_root_directory_can_be_a_home():
    with Home.open("/", uid=ME) as home, pytest.raises(Absent):
        home.read("no-such-file-of-halod")


@needs_root
def test_links_of_root_lead_to_the_home(place):
    (place / "a").symlink_to("b")
    (place / "b").symlink_to(place / "real")
    assert reads(place / "a/dev")


@needs_root
def test_a_link_of_another_account_is_not_followed(place):
    (place / "a").symlink_to("real/dev")
    os.lchown(place / "a", STRANGER, STRANGER)
    unavailable(place / "a")


@needs_root
def test_every_link_of_a_chain_must_be_of_root(place):
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("real/dev")
    os.lchown(place / "b", STRANGER, STRANGER)
    unavailable(place / "a")


@needs_root
def test_the_parent_of_a_links_target_must_be_of_root(place):
    (place / "a").symlink_to("real/dev")
    os.chown(place / "real", STRANGER, STRANGER)
    unavailable(place / "a")
    assert reads(place / "real/dev")


@needs_root
def test_a_named_directory_may_be_reached_through_anybodys_link(place):
    (place / "a").symlink_to("real/dev")
    os.lchown(place / "a", STRANGER, STRANGER)
    assert reads(place / "a", trusted_links=False)


def test_a_named_directory_may_be_reached_through_ones_own_link(place):
    (place / "a").symlink_to("real")
    assert reads(place / "a/dev", trusted_links=False)


def test_a_loop_of_links_is_unavailable(place):
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    unavailable(place / "a", trusted_links=False)


def test_absolute_links_may_use_the_path_as_given_or_the_real_one(place):
    (place / "users").symlink_to("real")
    home = place / "real/dev"
    (home / "d").mkdir()
    (home / "d/f").write_text("x")
    (home / "given").symlink_to(place / "users/dev/d")
    (home / "real").symlink_to(place / "real/dev/d")
    (home / "other").symlink_to(place / "users/../users/dev/d")
    with Home.open(str(place / "users/dev"), uid=ME, trusted_links=False) as opened:
        assert opened.read("given/f").data == b"x"
        assert opened.read("real/f").data == b"x"
        with pytest.raises(Refused, match="escapes-home"):
            opened.read("other/f")


def test_a_path_spelled_with_dots_is_no_prefix_for_absolute_links(place):
    home = place / "real/dev"
    (home / "d").mkdir()
    (home / "d/f").write_text("x")
    (home / "in").symlink_to(home / "d")
    with Home.open(f"{place}/real/../real/dev", uid=ME) as opened:
        assert opened.read("in/f").data == b"x"


@needs_root
def test_an_ancestor_that_may_be_passed_but_not_listed_is_enough(shared_tmp, account):
    home = shared_tmp / "home" / "dev"
    home.mkdir(parents=True)
    (home / "f").write_text("x")
    os.chown(home, STRANGER, STRANGER)
    os.chown(home / "f", STRANGER, STRANGER)
    (shared_tmp / "home").chmod(0o711)
    with account(STRANGER), Home.open(str(home), uid=STRANGER) as opened:
        assert opened.read("f").data == b"x"


@needs_root
def test_an_ancestor_that_may_not_be_passed_makes_it_unavailable(shared_tmp, account):
    home = shared_tmp / "home" / "dev"
    home.mkdir(parents=True)
    (shared_tmp / "home").chmod(0o700)
    with account(STRANGER):
        unavailable(home)


@needs_root
def test_a_home_that_cannot_be_listed_can_still_be_read(shared_tmp, account):
    home = shared_tmp / "home"
    (home / "d").mkdir(parents=True)
    (home / "d/f").write_text("x")
    home.chmod(0o711)
    with account(STRANGER), Home.open(str(home), uid=STRANGER) as opened:
        assert opened.read("d/f").data == b"x"
        assert [(m.path, m.refused) for m in opened.match("*/f")] == [("", "unreadable")]
