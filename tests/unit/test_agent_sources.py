# SPDX-License-Identifier: Apache-2.0
"""Which policy counts: new, broken, unreadable, gone, back again, over a restart; and one agent's lock."""

import os
from datetime import UTC, datetime

import pytest

from halod.agent.lock import FILE_NAME, Lock
from halod.agent.sources import FilePolicy, NoPolicy
from halod.errors import EnvironmentFault

NOON = 1796040000.0  # 2026-11-30T12:00:00Z
GOOD = b"mcp: {servers: [{id: one, url: 'https://mcp.acme.example/one'}]}\n"
OTHER = b"mcp: {mode: warn, servers: []}\n"
BAD = b"mcp: {servers: [{id: x}]}\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "halos.yaml"


def put(path, data):
    beside = path.with_suffix(".new")
    beside.write_bytes(data)
    beside.rename(path)


def source(path, initial=None):
    return FilePolicy(str(path), initial, str(path.parent / "policy.yaml"))


def test_a_policy_is_read_when_it_changed(path):
    """The same object while the file is the same; a new one when it is not."""
    put(path, GOOD)
    policy = source(path)
    first = policy.refresh()
    assert (len(first.policy.entries), first.code) == (1, "")
    assert policy.refresh() is first
    put(path, OTHER)
    assert policy.refresh().policy.mode == "warn"


def test_what_root_read_counts_first(path):
    """The agent need not be able to read the file itself."""
    put(path, OTHER)
    assert source(path, GOOD).refresh().policy.entries[0].id == "one"


@pytest.mark.parametrize(("spoil", "code"), [(BAD, "policy-invalid"), (None, "policy-unreadable")])
def test_the_last_good_one_is_kept(path, spoil, code):
    """A fault changes the words only; when it is mended they go."""
    put(path, GOOD)
    policy = source(path)
    good = policy.refresh().policy
    if spoil is None:
        path.unlink()
    else:
        put(path, spoil)
    current = policy.refresh()
    assert (current.policy, current.code) == (good, code)
    assert f"the last good policy goes on: {good.digest[:19]}, in force since 2026-" in current.error.replace(
        datetime.now(UTC).strftime("since %Y-"), "since 2026-"
    )
    assert policy.refresh() is current
    put(path, GOOD)
    assert policy.refresh().code == ""


def test_the_last_good_one_outlives_a_restart(path):
    """It lies beside the state, whole, with its digest."""
    put(path, GOOD)
    digest = source(path).refresh().policy.digest
    put(path, BAD)
    os.utime(path.parent / "policy.yaml", (NOON, NOON))
    current = source(path, BAD).refresh()
    assert current.policy.digest == digest
    assert current.error.endswith(f"goes on: {digest[:19]}, in force since 2026-11-30T12:00:00Z")
    (path.parent / "policy.yaml").write_bytes(b"rubbish: [")
    current = source(path, BAD).refresh()
    assert (current.policy, current.code) == (None, "policy-invalid")
    assert current.error.endswith("servers are listed and not judged")


def test_a_policy_is_in_force_since_it_was_first_taken(path):
    """Reading the same one again, at a restart, does not make it younger."""
    put(path, GOOD)
    source(path).refresh()
    os.utime(path.parent / "policy.yaml", (NOON, NOON))
    policy = source(path)
    policy.refresh()
    put(path, BAD)
    assert "in force since 2026-11-30T12:00:00Z" in policy.refresh().error


def test_a_state_that_cannot_be_written_costs_only_the_copy(path):
    """The policy counts all the same."""
    put(path, GOOD)
    assert FilePolicy(str(path), None, "/no/such/directory/policy.yaml").refresh().policy is not None


def test_no_policy_is_an_inventory():
    """Nothing configured, nothing wrong; or the reason why there is none."""
    assert NoPolicy().refresh().policy is None
    assert NoPolicy("because", "code").refresh().code == "code"


def test_one_holds_the_lock(tmp_path):
    """A second one is refused while the first lives, and served afterwards."""
    one, two = Lock(str(tmp_path)), Lock(str(tmp_path))
    one.take()
    assert one.holds()
    with pytest.raises(EnvironmentFault, match="another halod"):
        two.take(0.1)
    one.release()
    two.take()
    assert not one.holds()
    two.release()


def test_a_lock_that_was_taken_away_does_not_count(tmp_path):
    """A file that was removed or replaced is no lock any more."""
    lock = Lock(str(tmp_path))
    lock.take()
    os.unlink(tmp_path / FILE_NAME)
    assert not lock.holds()
    other = Lock(str(tmp_path))
    other.take()
    assert other.holds()
    assert not lock.holds()
    lock.release()
    other.release()


def test_a_directory_that_cannot_be_used_is_said(tmp_path):
    """Neither a missing directory nor a link in the place of the file is followed."""
    with pytest.raises(EnvironmentFault):
        Lock(str(tmp_path / "none")).take()
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFault):
        Lock(str(tmp_path)).take()
    assert not (tmp_path / "elsewhere").exists()
