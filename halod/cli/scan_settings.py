# SPDX-License-Identifier: Apache-2.0
"""What `halod scan` takes from halod.toml (`--config`), and how it hands its status on (`--send`).

Loaded only for these two options: an ordinary scan reads no settings.
"""

import argparse
from typing import TYPE_CHECKING

import msgspec

from halod.errors import EnvironmentFault
from halod.harnesses.dialect import Location
from halod.roles import trust

if TYPE_CHECKING:
    from halod.status import Status


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say of a scan; `run_dir` is where the agent listens."""

    run_dir: str
    extra: tuple[Location, ...] = ()
    max_file_bytes: int
    link_roots: tuple[str, ...] = ()


def apply(args: argparse.Namespace) -> Chosen:
    """Read the settings; policy, ring and units that no option names are taken from them.

    Raises:
        UsageError: the settings are wrong or cannot be read.
        EnvironmentFault: running as root, others could have written them.
    """
    from halod.settings import load
    from halod.settings.locations import location

    settings = load(args.config)
    trust.demand(settings.sources)
    args.policy = args.policy or settings.policy.path or None
    args.ring = args.ring or settings.device.ring
    args.unit = args.unit or list(settings.device.units)
    return Chosen(
        run_dir=settings.run_dir,
        extra=tuple([location(extra) for extra in settings.scan.extra_locations]),
        max_file_bytes=settings.scan.max_file_bytes,
        link_roots=settings.scan.link_roots,
    )


def send(status: "Status", run_dir: str) -> None:
    """Hand a status, cut to what may be sent, to the running agent. Raises EnvironmentFault: it has not taken it."""
    from halod.agent.asking import ask
    from halod.agent.reply import Refused, Submit, Taken
    from halod.status import shorten

    said = ask(run_dir, Submit(shorten(status)))
    if isinstance(said, Taken):
        return
    if isinstance(said, Refused):
        raise EnvironmentFault(f"the service did not take the status: {said.words}")
    raise EnvironmentFault(
        "the service does not run, so the status was not sent", advice="halod status says more"
    )
