# SPDX-License-Identifier: Apache-2.0
"""Who could have written what root is about to run."""

import os
import stat
import sys
import tempfile

import pytest

from halod.errors import EnvironmentFault
from halod.roles import trust
from tests.support.roles import in_child

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make files of others")

NOBODY = 12345


@pytest.fixture
def place():
    """A root-owned directory in /tmp, whose ancestors are safe."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        os.chmod(made, 0o755)
        yield made


def put(*parts, mode=0o644, uid=0, gid=0, directory=False):
    path = os.path.join(*parts)
    if directory:
        os.mkdir(path)
    else:
        with open(path, "w") as file:
            file.write("x")
    os.chown(path, uid, gid)
    os.chmod(path, mode)
    return path


def test_what_only_root_can_write_is_no_problem(place):
    assert trust.check([put(place, "token", mode=0o600)]) == []


def test_tmp_is_safe_for_what_root_owns_in_it_and_not_for_the_rest(place):
    assert stat.S_IMODE(os.stat("/tmp").st_mode) == 0o1777
    other = put(place, "shared", mode=0o1777, directory=True)
    theirs = put(other, "x", uid=NOBODY)
    assert trust.check([theirs]) == [f"{theirs} is owned by uid {NOBODY}"]


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "words"),
    [
        (0o644, NOBODY, 0, f"is owned by uid {NOBODY}"),
        (0o664, 0, NOBODY, f"can be written by group {NOBODY}"),
        (0o646, 0, 0, "can be written by everybody"),
    ],
)
def test_a_file_that_others_can_write_is_told(place, mode, uid, gid, words):
    path = put(place, "settings", mode=mode, uid=uid, gid=gid)
    assert trust.check([path]) == [f"{path} {words}"]


def test_roots_group_may_write(place):
    assert trust.check([put(place, "settings", mode=0o664)]) == []


@pytest.mark.parametrize(("mode", "uid"), [(0o755, NOBODY), (0o777, 0)])
def test_an_ancestor_counts_as_much_as_the_file(place, mode, uid):
    directory = put(place, "dir", mode=mode, uid=uid, directory=True)
    file = put(directory, "halod.toml")
    (problem,) = trust.check([file])
    assert problem.startswith(f"{directory} ")


def test_a_sticky_directory_is_no_place_to_load_modules_from(place):
    directory = put(place, "dir", mode=0o1777, directory=True)
    assert trust.check([directory]) == [f"{directory} can be written by everybody"]


def test_every_link_on_the_way_counts(place):
    theirs = put(place, "theirs", uid=NOBODY, mode=0o755, directory=True)
    target = put(place, "python3")
    os.symlink(target, os.path.join(theirs, "hop"))
    os.symlink(os.path.join("theirs", ".", "hop"), os.path.join(place, "python"))
    assert trust.check([os.path.join(place, "python")]) == [f"{theirs} is owned by uid {NOBODY}"]


def test_a_link_out_of_a_safe_place_is_followed(place):
    theirs = put(place, "theirs", uid=NOBODY, mode=0o755, directory=True)
    inner = put(place, "inner", directory=True, mode=0o755)
    os.symlink("../theirs/../theirs/..", os.path.join(inner, "up"))
    assert trust.check([os.path.join(inner, "up")]) == [f"{theirs} is owned by uid {NOBODY}"]
    os.symlink("..", os.path.join(inner, "top"))
    assert trust.check([os.path.join(inner, "top", "inner")]) == []


def test_the_owner_of_a_link_counts_where_others_may_write(place):
    shared = put(place, "shared", mode=0o1777, directory=True)
    link = os.path.join(shared, "link")
    os.symlink(put(place, "target"), link)
    assert trust.check([link]) == []
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert trust.check([link]) == [f"{link} is owned by uid {NOBODY}"]


def test_links_in_a_circle_end(place):
    one, two = os.path.join(place, "one"), os.path.join(place, "two")
    os.symlink(one, two)
    os.symlink(two, one)
    assert trust.check([one]) == [f"{one} has too many links"]


def test_what_is_not_there_is_fine_unless_anybody_could_make_it(place):
    assert trust.check([os.path.join(place, "policy.yaml"), ""]) == []
    shared = put(place, "shared", mode=0o1777, directory=True)
    absent = os.path.join(shared, "policy.yaml")
    assert trust.check([absent]) == [f"{absent} could be created by anybody"]


def test_an_acl_that_lets_others_write_counts(place):
    path = put(place, "settings")
    # Version 2: owner rw, user 12345 rw, group r, mask rw, others r (linux/posix_acl_xattr.h).
    entries = [
        (1, 6, 0xFFFFFFFF),
        (2, 6, NOBODY),
        (4, 4, 0xFFFFFFFF),
        (16, 6, 0xFFFFFFFF),
        (32, 4, 0xFFFFFFFF),
    ]
    acl = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, bits, who in entries
    )
    os.setxattr(path, "system.posix_acl_access", acl)
    assert trust.check([path]) == [f"{path} can be written by those its ACL names"]


def test_the_process_knows_what_it_is_made_of():
    paths = trust.own_paths()
    assert sys.executable in paths
    assert {os.path.abspath(entry) for entry in sys.path} <= set(paths)
    assert any(path.endswith("halod/roles/trust.py") for path in paths)


def test_problems_are_told_once_each_and_in_order(place):
    first = put(place, "a", mode=0o666)
    second = put(place, "b", mode=0o666)
    assert trust.check([second, first, second]) == [
        f"{first} can be written by everybody",
        f"{second} can be written by everybody",
    ]


def test_root_refuses_to_start_and_an_ordinary_user_does_not(place):
    loose = put(place, "halod.toml", mode=0o666)
    also = put(place, "token", mode=0o666)
    with pytest.raises(EnvironmentFault) as raised:
        trust.demand([loose, also])
    assert "refusing to run as root" in raised.value.message
    assert "more)" in raised.value.message
    assert raised.value.advice

    def as_other():
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return trust.demand([loose])

    assert in_child(as_other) is None


def test_root_starts_when_nothing_is_wrong(place, monkeypatch):
    safe = put(place, "python3")
    monkeypatch.setattr(trust, "own_paths", lambda: [safe])
    assert trust.demand([]) is None
    with pytest.raises(EnvironmentFault) as raised:
        trust.demand([put(place, "token", mode=0o606)])
    assert "more)" not in raised.value.message


def test_a_file_that_others_own_is_told_from_an_installation_that_they_own(place):
    """Who names a policy of somebody else's is told to mend that file, not to install halod anew."""
    policy = put(place, "halos.yaml", uid=NOBODY)

    with pytest.raises(EnvironmentFault) as raised:
        trust.demand([policy])

    assert f"halos.yaml is owned by uid {NOBODY}" in raised.value.message
    assert raised.value.advice.startswith("give it to root")
