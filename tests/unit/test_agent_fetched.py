# SPDX-License-Identifier: Apache-2.0
"""The fetched policy: which one counts, over refusals, outages and restarts, and what is said. No network."""

import base64
import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from halod.agent.fetched import GRACE, FetchedPolicy
from halod.agent.state import State
from halod.errors import EnvironmentFault
from halod.policy.signed import countersign
from tests.support.signing import KEY, NEW_KEY, OTHER, POLICY, STRANGER, envelope, public

NOW = datetime(2026, 11, 30, 16, tzinfo=UTC)
URL = "https://halos.acme.example/CANARYpath"
LAST = "the last good policy goes on: sha256:"


class Clock:
    """A clock that is set by hand, for both kinds of time."""

    def __init__(self):
        self.now = NOW.timestamp()

    def __call__(self):
        return self.now


class Machine:
    """A state directory in which the agent starts again and again."""

    def __init__(self, directory):
        self.directory = directory
        self.clock = Clock()
        self.state = None
        self.policy = None
        self.start()

    def start(self, *, keys=(KEY,), org="", url=URL):
        if self.state is not None:
            self.state.close()
        self.state = State(str(self.directory))
        self.policy = FetchedPolicy(
            url, public(*keys), org, self.state, self.state.signed_policy, wall=self.clock, clock=self.clock
        )
        return self.policy

    def take(self, document, etag='"1"'):
        self.policy.take(document, etag)
        return self.policy.refresh()


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path / "state")
    yield made
    made.state.close()
    for path in (tmp_path / "state").iterdir():
        assert b"CANARY" not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0


def good(version=7, **fields):
    return envelope(version=version, now=NOW, **fields)


def test_before_the_first_answer_there_is_none(machine):
    """An inventory, and the reason."""
    current = machine.policy.refresh()
    assert (current.policy, current.code) == (None, "policy-pending")
    assert machine.policy.refresh() is current
    assert machine.policy.followed().version == 0


def test_a_good_one_counts(machine):
    """Its digest is that of the file that was signed."""
    current = machine.take(good())
    assert (current.code, current.error) == ("", "")
    assert current.policy.entries[0].id == "tools"
    assert machine.policy.refresh() is current
    followed = machine.policy.followed()
    assert (followed.version, followed.issued, followed.asked) == (
        7,
        "2026-11-30T16:00:00Z",
        "2026-11-30T16:00:00Z",
    )
    assert (followed.expires, followed.trouble) == ("2027-02-28T16:00:00Z", "")


def test_it_outlives_a_restart(machine):
    """With its entity tag, the time since which it is in force, and without any server."""
    digest = machine.take(good()).policy.digest
    machine.clock.now += 5000
    policy = machine.start()
    assert (policy.refresh().policy.digest, policy.refresh().code) == (digest, "")
    assert policy.etag == '"1"'
    assert policy.followed().since == "2026-11-30T16:00:00Z"
    policy.unchanged()
    assert policy.refresh().policy.digest == digest
    assert machine.start(url="https://other.acme.example/").etag == ""


def faulty():
    from halod.policy import signed
    from tests.support.signing import payload

    content = msgspec.json.encode(payload("org: acme\nmcp: {servers: [{id: x}]}\n", version=8, now=NOW))
    return signed._sealed(content, [], [KEY])


REFUSED = {
    "policy-malformed": lambda: b"<html>CANARY</html>",
    "policy-unsigned": lambda: envelope(STRANGER, version=8, now=NOW),
    "policy-foreign": lambda: envelope(
        version=8, now=NOW, org="other", policy=POLICY.replace("acme", "other")
    ),
    "policy-older": lambda: good(6),
    "policy-expired": lambda: envelope(version=8, now=NOW - timedelta(days=91)),
    "policy-invalid": faulty,
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused_changes_only_the_words(machine, code):
    """The last good one goes on, also after a restart, and a good one ends the trouble."""
    held = machine.take(good()).policy
    current = machine.take(REFUSED[code](), '"2"')
    assert (current.policy, current.code) == (held, code)
    assert f"; {LAST}{held.digest[7:19]}, in force since 2026-11-30T16:00:00Z" in current.error
    assert "CANARY" not in current.error
    assert machine.policy.followed().trouble
    assert machine.policy.etag == '"2"'
    machine.policy.unchanged()  # the server has nothing better
    assert machine.policy.refresh().code == code
    again = machine.start()
    assert (again.refresh().policy.digest, again.etag) == (held.digest, '"1"')
    assert machine.take(good(9)).code == ""


@pytest.mark.parametrize("code", sorted(REFUSED.keys() - {"policy-older", "policy-foreign"}))
def test_what_is_refused_at_first_leaves_none(machine, code):
    """Without a good one there is an inventory; nothing is believed for want of something better."""
    current = machine.take(REFUSED[code]())
    assert (current.policy, current.code) == (None, code)
    assert current.error.endswith("servers are listed and not judged")
    assert machine.start().refresh().code == "policy-pending"


def test_a_rollback_is_refused_after_a_restart(machine):
    """The version is remembered in the device's file; the cache alone is not asked."""
    machine.take(good(8, policy=OTHER))
    machine.start()
    (machine.directory / "policy.json").unlink()
    machine.start()
    assert machine.take(good(7)).code == "policy-older"
    assert machine.policy.refresh().policy is None
    assert machine.take(good(8, policy=POLICY)).code == "policy-older"
    assert machine.take(good(8, policy=OTHER)).policy.mode == "warn"


def test_an_old_cache_that_was_put_back_does_not_count(machine):
    """Whoever can write the state directory cannot bring an old policy back with it."""
    machine.take(good(7))
    old = (machine.directory / "policy.json").read_bytes()
    machine.take(good(8, policy=OTHER))
    (machine.directory / "policy.json").write_bytes(old)
    policy = machine.start()
    assert (policy.refresh().policy, policy.refresh().code, policy.etag) == (None, "policy-pending", "")


def of_other(version, **fields):
    return envelope(version=version, now=NOW, org="other", policy=POLICY.replace("acme", "other"), **fields)


@pytest.mark.parametrize("forget", [False, True])
def test_another_organisation_and_back_is_no_way_to_an_older_policy(machine, forget):
    """Each has its own newest version, for ever; across restarts, and without the cache."""

    def start(org):
        if forget:
            (machine.directory / "policy.json").unlink(missing_ok=True)
        return machine.start(org=org)

    start("acme")
    assert machine.take(good(9, policy=OTHER)).code == ""
    start("other")
    assert machine.take(of_other(3)).code == ""
    for _ in range(2):
        start("acme")
        assert machine.take(good(8)).code == "policy-older"
        assert machine.take(good(9)).code == "policy-older"
        assert machine.take(good(9, policy=OTHER)).policy.mode == "warn"
        start("other")
        assert machine.take(of_other(2)).code == "policy-older"
        assert machine.take(of_other(3)).policy.org == "other"
    start("third")
    start("acme")
    assert machine.take(good(8)).code == "policy-older"
    assert machine.take(good(10)).code == ""


def test_a_second_key_is_no_way_to_an_older_policy(machine):
    """A version is the organisation's, whichever of its keys signs, and stands for one content."""
    machine.start(keys=[KEY, NEW_KEY])
    assert machine.take(good(8)).code == ""
    assert machine.take(envelope(NEW_KEY, version=7, now=NOW)).code == "policy-older"
    assert machine.take(envelope(NEW_KEY, version=8, now=NOW, policy=OTHER)).code == "policy-older"
    for keys in ([NEW_KEY], [KEY], [KEY, NEW_KEY]):
        machine.start(keys=keys)
        assert machine.take(envelope(*keys, version=7, now=NOW)).code == "policy-older"


@pytest.mark.parametrize("spoil", ["version", "signature", "policy"])
def test_a_cache_that_was_changed_is_verified_anew(machine, spoil):
    """Its payload is signed, so nothing in it can be altered; and what was seen is remembered elsewhere."""
    held = machine.take(good(8)).policy
    path = machine.directory / "policy.json"
    kept = json.loads(path.read_bytes())
    document = json.loads(base64.b64decode(kept["envelope"]))
    content = base64.b64decode(document["payload"])
    changed = {
        "version": content.replace(b'"version":8', b'"version":9'),
        "policy": content.replace(b"ring0", b"ringX"),
        "signature": content,
    }[spoil]
    document["payload"] = base64.b64encode(changed).decode()
    if spoil == "signature":
        document["signatures"][0]["sig"] = base64.b64encode(b"x" * 64).decode()
    kept["envelope"] = base64.b64encode(json.dumps(document).encode()).decode()
    path.write_text(json.dumps(kept))
    assert machine.start().refresh().policy is None
    assert machine.policy.etag == ""
    assert machine.take(good(7)).code == "policy-older"
    assert machine.take(good(8)).policy == held


def test_what_only_the_cache_knew_is_remembered_at_the_start(machine):
    """After the device's file was lost: the cache may be lost next, before anything new was taken."""
    machine.take(good(8))
    (machine.directory / "device.json").write_bytes(b"{")
    assert machine.start().refresh().policy is not None
    (machine.directory / "policy.json").unlink()
    machine.start()
    assert machine.take(good(7)).code == "policy-older"


def test_so_many_organisations_are_remembered(machine):
    """The device's file stays small; it is root who names one."""
    from halod.agent.fetched import _MOST_ORGS

    for number in range(_MOST_ORGS + 3):
        org = f"o{number}"
        machine.start(org=org)
        assert (
            machine.take(envelope(version=2, now=NOW, org=org, policy=POLICY.replace("acme", org))).code == ""
        )
    assert len(machine.state.device.policy_others) == _MOST_ORGS
    machine.start(org="o5")
    assert machine.take(envelope(version=1, now=NOW, org="o5", policy=POLICY.replace("acme", "o5"))).code == (
        "policy-older"
    )


def test_a_lost_device_file_allows_no_rollback_either(machine):
    """As long as the cache is there, its version counts."""
    machine.take(good(8))
    (machine.directory / "device.json").write_bytes(b"{")
    machine.start()
    assert machine.take(good(7)).code == "policy-older"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"null", b"[" * 5000, b'{"envelope":"AAAA","since":0,"source":""}']
)
def test_a_spoilt_cache_is_none(machine, content):
    """It is fetched again."""
    machine.take(good())
    (machine.directory / "policy.json").write_bytes(content)
    assert machine.start().refresh().code == "policy-pending"
    assert machine.take(good()).code == ""


def test_a_cache_that_nobody_pinned_has_signed_is_none(machine):
    """A key that was taken out of the settings counts no more, for what it signed before neither."""
    machine.take(good())
    assert machine.start(keys=[NEW_KEY]).refresh().policy is None
    assert machine.policy.etag == ""


def test_keys_are_changed_without_a_gap(machine):
    """Old, both, new: the same policy all the time, with one more signature."""
    digest = machine.take(good()).policy.digest
    both = countersign(good(), [NEW_KEY])
    for keys, document in (((KEY, NEW_KEY), both), ((NEW_KEY,), both)):
        machine.start(keys=keys)
        assert machine.take(document).policy.digest == digest
        assert machine.policy.refresh().code == ""
    machine.start(keys=[NEW_KEY])
    assert machine.policy.refresh().policy.digest == digest
    assert machine.take(envelope(NEW_KEY, version=8, now=NOW, policy=OTHER)).policy.mode == "warn"


def test_the_first_organisation_stays(machine):
    """Unless the settings name another one, whose versions are its own."""
    machine.take(good(9))
    foreign = envelope(version=1, now=NOW, org="other", policy=POLICY.replace("acme", "other"))
    machine.start()
    assert machine.take(foreign).code == "policy-foreign"
    machine.start(org="other")
    assert machine.policy.refresh().policy is None
    assert machine.take(foreign).policy.org == "other"
    machine.start()
    assert machine.policy.refresh().policy.org == "other"


def test_the_organisation_of_the_settings_counts_from_the_start(machine):
    """Before anything was taken."""
    machine.start(org="other")
    assert machine.take(good()).code == "policy-foreign"


def test_a_policy_that_expires_goes_on(machine):
    """The status says so, until there is a newer one; also after a restart."""
    held = machine.take(good()).policy
    machine.clock.now += 90 * 86400
    current = machine.policy.refresh()
    assert (current.policy, current.code) == (held, "policy-expired")
    assert current.error.startswith(
        "version 7 of the policy expired on 2027-02-28; the last good policy goes on"
    )
    machine.policy.unchanged()
    assert machine.policy.refresh().code == "policy-expired"
    machine.policy.failed("the policy cannot be fetched: because")
    assert (
        "no newer one can be fetched: the policy cannot be fetched: because" in machine.policy.refresh().error
    )
    again = machine.start()
    assert (again.refresh().policy.digest, again.refresh().code) == (held.digest, "policy-expired")
    now = datetime.fromtimestamp(machine.clock.now, UTC)
    assert machine.take(envelope(version=8, now=now)).code == ""


def test_a_clock_that_was_wrong_heals(machine):
    """What was refused as expired is looked at again when the server has nothing else."""
    machine.clock.now += 91 * 86400
    assert machine.take(good()).code == "policy-expired"
    machine.clock.now = NOW.timestamp()
    machine.policy.unchanged()
    assert (machine.policy.refresh().code, machine.policy.refresh().policy.org) == ("", "acme")


def test_an_outage_is_said_after_an_hour(machine):
    """A laptop that wakes up has none; the first failure in a row counts."""
    held = machine.take(good()).policy
    for _ in range(3):
        machine.policy.failed("the policy cannot be fetched: because")
        assert (machine.policy.refresh().code, machine.policy.followed().trouble) == (
            "",
            "the policy cannot be fetched: because",
        )
        machine.clock.now += GRACE / 3
    current = machine.policy.refresh()
    assert (current.policy, current.code) == (held, "policy-unreachable")
    assert current.error.startswith(f"the policy cannot be fetched: because; {LAST}")
    machine.policy.unchanged()
    assert (machine.policy.refresh().code, machine.policy.followed().trouble) == ("", "")


def test_an_outage_without_a_policy_is_said_at_once(machine):
    """Nothing is judged: that cannot wait."""
    machine.policy.failed("the policy cannot be fetched: because")
    assert machine.policy.refresh().code == "policy-unreachable"
    machine.policy.unchanged()
    assert machine.policy.refresh().code == "policy-pending"


def test_an_outage_hides_no_refusal(machine):
    """What a person has to mend is what is said."""
    machine.take(good())
    machine.take(b"rubbish")
    machine.clock.now += 2 * GRACE
    machine.policy.failed("the policy cannot be fetched: because")
    assert machine.policy.refresh().code == "policy-malformed"


def test_what_is_too_large_is_refused(machine):
    """It is not kept, and asked for again without an entity tag."""
    machine.take(good())
    machine.policy.refused("what the server gives is larger than 1 MiB")
    assert (machine.policy.refresh().code, machine.policy.etag) == ("policy-malformed", "")
    machine.policy.unchanged()
    assert machine.policy.refresh().code == "policy-malformed"


class NoStore:
    """A state directory on a disk that refuses."""

    @property
    def device(self):
        raise EnvironmentFault("full")

    def update_device(self, **fields):
        raise EnvironmentFault("full")


def test_a_disk_that_refuses_costs_only_the_memory():
    """The policy counts; an older one is refused as long as the process lives."""
    policy = FetchedPolicy(
        URL, public(KEY), "", NoStore(), "/no/such/directory/policy.json", wall=NOW.timestamp
    )
    policy.take(good(8), "")
    assert policy.refresh().policy is not None
    policy.take(good(7), "")
    assert policy.refresh().code == "policy-older"
