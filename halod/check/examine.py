# SPDX-License-Identifier: Apache-2.0
"""Everything that `halod check` looks at, in the order in which it would have to be mended."""

import os
import sys

from halod.check import files, machine, network, policy
from halod.check.model import Check, fault, ok, warning
from halod.errors import UsageError
from halod.roles import trust
from halod.settings import Settings, SettingsError, load


def examine(config: str | None, *, canary: bool = False, platform: str = sys.platform) -> list[Check]:
    """Look at the installation, the settings and all that they name, the machine and the endpoints.

    Nothing is changed. Running as root, nothing is sent while others could have written the settings, as a
    token would go where they say. `canary` also sends a test finding.
    """
    root = os.geteuid() == 0
    checks = _installation(root=root)
    try:
        settings = load(config, platform=platform)
    except SettingsError as error:
        return [*checks, *(fault("settings", line) for line in error.lines()), machine.sandbox()]
    except UsageError as error:
        return [*checks, fault("settings", error.message, error.advice), machine.sandbox()]
    checks.append(ok("settings", f"{' and '.join(settings.sources)}: valid"))
    owned = (
        files.ownership("ownership", settings.trusted_files(), "the settings and what they name")
        if root
        else []
    )
    checks += owned
    checks += files.secrets(settings, root=root)
    checks += policy.policy(settings)
    checks += machine.accounts(settings, root=root)
    checks += machine.state(settings, root=root)
    checks.append(machine.sandbox())
    if any(check.verdict == "fault" for check in owned):
        return [*checks, warning("report.url", "not tried: others could have written where it leads")]
    checks += network.endpoints(settings, root=root)
    if canary:
        checks.append(_canary(settings, checks))
    return checks


def _installation(*, root: bool) -> list[Check]:
    if root:
        return files.ownership("installation", trust.own_paths(), "what halod is made of")
    return [
        warning(
            "rights",
            "not running as root: who could write the installation and the settings was not checked",
            "run halod check as root to check what the service checks when it starts",
        )
    ]


def _canary(settings: Settings, checks: list[Check]) -> Check:
    if any(check.verdict == "fault" for check in checks):
        return warning("canary", "not sent: mend the faults first")
    return network.canary(settings)
