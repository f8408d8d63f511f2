# SPDX-License-Identifier: Apache-2.0
"""`halod status`: what the running service did last, and what is wrong, in words (design 9).

Asks the agent on its control socket. When nobody answers, the last-status file is shown to those who may read
it. Exit codes: 0 all is well, 1 something is wrong, 2 the service does not run.
"""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from halod.errors import EnvironmentFault

if TYPE_CHECKING:
    from halod.agent.reply import Reply
    from halod.settings import Settings
    from halod.status import Status

NAME = "status"
HELP = "show what the service did last and what is wrong"
DESCRIPTION = """\
Show the running service: the last scan, the last delivery, the sandbox, who is watched, and what is wrong, in
words. Root sees every account, anybody else the state of the service and their own rows."""
EXAMPLES = """\
examples:
  halod status                     how the service is
  halod status --format json       the same as a document
  sudo halod status --format jamf-ea
                                   one line for an extension attribute of Jamf

exit codes:
  0  all is well    1  something is wrong, and is named    2  the service does not run"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options (design 10)."""
    parser.add_argument(
        "--format", choices=("table", "json", "jamf-ea"), default="table", help="what to print"
    )
    parser.add_argument("--config", metavar="FILE", help="the settings, instead of those of this machine")


def run(args: argparse.Namespace) -> int:
    """Ask and print; give the exit code.

    Raises:
        EnvironmentFault: the service does not run and has left no status that the caller may read.
    """
    from halod.agent.asking import ask
    from halod.agent.reply import Ask

    run_dir, state_dir = places(args.config)
    said = ask(run_dir, Ask())
    if said is None:
        return _without_service(state_dir, args.format)
    from halod.agent.reply import Refused, Reply

    if isinstance(said, Refused):
        raise EnvironmentFault(f"the service refused: {said.words}")
    if not isinstance(said, Reply):
        raise EnvironmentFault("the service gave another answer than was asked for")
    if args.format == "json":
        _print_json(said)
    elif args.format == "jamf-ea":
        sys.stdout.write(extension_attribute(said.status, said.problems))
    else:
        from halod.cli.status_words import render

        sys.stdout.write(render(said))
    return 1 if said.problems else 0


def places(config: str | None) -> tuple[str, str]:
    """Give the run and the state directory: of the settings if they can be read, else the system's own."""
    settings = _settings(config)
    if settings is not None:
        return settings.run_dir, settings.state.dir
    from halod.settings.model import places as of_system

    own = of_system(sys.platform)
    return own.run, own.state


def _settings(config: str | None) -> "Settings | None":
    from halod.errors import UsageError
    from halod.settings import load

    try:
        return load(config)
    except UsageError:
        if config is not None:
            raise
        return None  # the service may run with settings that it read before they were spoilt


def _without_service(state_dir: str, form: str) -> int:
    """Show the last status of a service that does not run."""
    from halod.agent.laststatus import read
    from halod.status import decode

    why = "the service does not run"
    try:
        data = read(state_dir)
        status = None if data is None else decode(data)
    except (OSError, ValueError):
        status = None
    if form == "jamf-ea":
        sys.stdout.write(extension_attribute(status, (why,)))
        return 2
    if status is None:
        raise EnvironmentFault(
            f"{why}, or this account may not ask it", advice="sudo halod check says what is wrong"
        )
    if form == "json":
        import msgspec

        _write(msgspec.json.encode({"reply": "stopped", "problems": [why], "status": status}))
        return 2
    from halod.cli.status_words import render_stopped

    sys.stdout.write(render_stopped(status))
    return 2


def _print_json(reply: "Reply") -> None:
    import msgspec

    _write(msgspec.json.encode(reply))


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def extension_attribute(status: "Status | None", problems: tuple[str, ...]) -> str:
    """Give the one line that Jamf takes from a script: a word, and counts for its searches."""
    if status is None:
        return "<result>unknown</result>\n"
    if status.mode == "inventory":
        word = "inventory"
    elif status.mcp_drift_total:
        word = "drift"
    else:
        word = "incomplete" if status.skipped or status.error_code else "clean"
    age = _age_hours(status.time)
    fields = f"findings={status.mcp_drift_total} skipped={len(status.skipped)} problems={len(problems)}"
    return f"<result>{word} {fields} age_hours={age}</result>\n"


def _age_hours(text: str) -> int:
    """Give the whole hours since a time of a status; -1 when it is none."""
    from calendar import timegm

    try:
        return max(0, int(time.time() - timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))) // 3600)
    except ValueError:
        return -1
