# SPDX-License-Identifier: Apache-2.0
"""What `halod check` holds a served policy against: what this machine has seen of its organisation."""

import pytest

from halod.agent.devicefile import Device, DeviceFile, PolicyVersion
from halod.agent.policytrial import judge
from tests.support.signing import KEY, envelope, public

DEVICE = Device(
    install_id="x",
    policy_org="acme",
    policy_version=9,
    policy_sha256="y",
    policy_others=(PolicyVersion(org="other", version=3, sha256="z"),),
)


def tried(wanted, device=DEVICE, **fields):
    theirs = fields.get("org", "acme")
    policy = f"org: {theirs}\nrings: [r]\nmcp: {{}}\n"
    return judge(public(KEY), wanted, device, "r", [])(envelope(policy=policy, **fields)).code


@pytest.mark.parametrize(
    ("org", "fields", "code"),
    [
        ("acme", {"version": 8}, "policy-older"),
        ("", {"version": 8}, "policy-older"),
        ("", {"version": 10}, ""),
        ("", {"version": 99, "org": "other"}, "policy-foreign"),
        ("other", {"version": 2, "org": "other"}, "policy-older"),
        ("other", {"version": 4, "org": "other"}, ""),
        ("third", {"version": 1, "org": "third"}, ""),
    ],
)
def test_each_organisation_has_its_own_newest_version(org, fields, code):
    """That of policy.org, or of the last policy that was taken."""
    assert tried(org, **fields) == code


def test_a_machine_that_has_seen_none_takes_the_first(tmp_path):
    """No device's file, or one that does not decode: neither is made nor moved by a look at it."""
    assert DeviceFile(str(tmp_path)).peek() is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "device.json").write_bytes(b"{")
    assert DeviceFile(str(tmp_path)).peek() is None
    assert (tmp_path / "device.json").read_bytes() == b"{"
    assert tried("", None, version=1) == ""
