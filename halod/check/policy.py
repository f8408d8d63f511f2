# SPDX-License-Identifier: Apache-2.0
"""Whether the policy is valid, and knows the device's ring and units."""

from collections.abc import Sequence

from halod.check.files import AS_ROOT, is_out_of_reach
from halod.check.model import Check, count, fault, ok, warning
from halod.errors import UsageError
from halod.policy.load import PolicyError, load
from halod.policy.scope import check_device
from halod.settings import Settings

_MOST_LINES = 20


def policy(settings: Settings) -> list[Check]:
    """Check the policy that the settings name; one that is fetched is `network`'s."""
    if settings.policy.path:
        return _file(settings)
    if settings.policy.url:
        keys = count(len(settings.policy.public_keys), "key")
        return [ok("policy", f"the policy is fetched, and counts when it is signed by one of {keys}")]
    return [
        warning(
            "policy",
            "there is no policy: every scan is an inventory and nothing is judged",
            "set policy.path or policy.url",
        )
    ]


def _file(settings: Settings) -> list[Check]:
    try:
        loaded = load(settings.policy.path)
    except PolicyError as error:
        lines = error.lines()
        checks = [fault("policy.path", line) for line in lines[:_MOST_LINES]]
        if len(lines) > _MOST_LINES:
            checks.append(
                fault("policy.path", f"and {len(lines) - _MOST_LINES} more", "halo validate shows all")
            )
        return checks
    except UsageError as error:
        if is_out_of_reach(settings.policy.path):
            return [warning("policy.path", "the policy cannot be read by this account", AS_ROOT)]
        return [fault("policy.path", error.message, error.advice)]
    checks = [ok("policy.path", f"valid, {count(len(loaded.entries), 'server')}, {loaded.digest[:19]}")]
    if settings.policy.public_keys:
        checks.append(
            warning(
                "policy.public_keys",
                "a policy from policy.path is believed for its owner and mode; signatures are checked of"
                " fetched ones",
                "remove the keys, or fetch the policy with policy.url",
            )
        )
    known = settings.device
    return [*checks, *device(settings, check_device(loaded, known.ring, known.units), loaded.rings)]


def device(settings: Settings, problems: Sequence[str], rings: Sequence[str]) -> list[Check]:
    """Say whether a policy with these rings knows the device: `problems` are those of its ring and units."""
    if problems:
        return [fault("device", problem, "use the policy's names in [device]") for problem in problems]
    if rings and not settings.device.ring:
        return [
            warning(
                "device.ring",
                "the device is in no ring: only what is approved for every device or its units is approved on it",
                f"set device.ring to one of {', '.join(rings[:10])}",
            )
        ]
    return [ok("device", "the policy knows the device's ring and units")]
