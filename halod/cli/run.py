# SPDX-License-Identifier: Apache-2.0
"""`halod run`: the service. This process is the supervisor; everything else is a child of it.

It loads neither the settings' reader nor a network, watcher or log library: the agent does, after the fork.
"""

import argparse
import os
import sys

NAME = "run"
HELP = "scan at intervals and when configs change, and report: the service"
DESCRIPTION = """\
Run as a service: scan the homes that the settings name, at intervals and soon after a config changes, and
report what differs from the registry. Service managers start this (halod service install).

As root, the networked part runs as an account of its own and each home is read with its owner's rights."""
EXAMPLES = """\
examples:
  sudo halod run                               with the settings of this machine, until Ctrl-C
  sudo halod run --once                        one cycle, one try to deliver
  halod run --once --config halod.toml         as yourself, with state.dir set to a directory of yours

signals: SIGHUP reads settings, secrets and policy again; SIGTERM and SIGINT end within two seconds.

exit codes:
  0  ended as asked; with --once: scanned, and delivered if there is an endpoint
  1  the service, the scan or the delivery failed
  2  wrong usage, settings, or a machine that is not ready; halod check says more"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options (design 10)."""
    parser.add_argument("--once", action="store_true", help="one cycle, delivery tried once, then the end")
    parser.add_argument("--config", metavar="FILE", help="the settings, instead of those of this machine")


def run(args: argparse.Namespace) -> int:
    """Serve; give the exit code.

    Raises:
        EnvironmentFault: root may not run this installation, or not with these settings.
    """
    config = os.path.abspath(args.config) if args.config is not None else None
    from halod.roles import trust

    trust.demand([config] if config is not None else [])
    from halod.roles import pidfile, watcher
    from halod.roles.notify import Notifier
    from halod.roles.service import Service

    notifier = Notifier()
    watchdog = notifier.watchdog
    once: bool = args.once

    def entry(descriptor: int, supervisor: int) -> int:
        from halod.agent.main import main

        return main(descriptor, supervisor, config=config, once=once, watchdog=watchdog)

    sys.stdout.flush()
    with pidfile.held("" if once else pidfile.wanted()):
        return Service(entry, watcher.load, notifier=notifier).run()
