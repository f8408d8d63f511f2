# SPDX-License-Identifier: Apache-2.0
"""halo-server.toml: what a console is told (`model`), how it is read (`reading`), where it may listen (`listen`)."""

from halod.console.settings.listen import check_listen, is_loopback, split_listen
from halod.console.settings.model import DAY, Hook, Limits, Oidc, Retention, Settings

__all__ = [
    "DAY",
    "Hook",
    "Limits",
    "Oidc",
    "Retention",
    "Settings",
    "check_listen",
    "is_loopback",
    "load",
    "split_listen",
]


def load(path: str) -> Settings:
    """Read and check a file of settings.

    Raises:
        UsageError: it cannot be read, or has faults: all of them, one a line.
    """
    from halod.console.settings.reading import read

    return read(path)
