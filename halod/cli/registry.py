# SPDX-License-Identifier: Apache-2.0
"""The registry that a command's --policy, --ring and --unit name."""

from datetime import UTC, datetime

from halod.errors import UsageError
from halod.policy.load import load
from halod.policy.model import Policy, Registry
from halod.policy.scope import check_device, scope


def registry(path: str, ring: str, units: list[str]) -> tuple[Policy, Registry]:
    """Load a policy and scope it to one device, today in UTC.

    Raises UsageError when the policy is wrong, or knows no such ring or unit.
    """
    policy = load(path)
    problems = check_device(policy, ring, units)
    if problems:
        known = problems[0].endswith("?")  # it names what was meant
        raise UsageError(
            problems[0], advice="" if known else "give --ring and --unit as the policy names them"
        )
    return policy, scope(policy, ring, units, datetime.now(UTC).date())
