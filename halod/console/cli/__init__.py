# SPDX-License-Identifier: Apache-2.0
"""The command line of `halo-server`: which commands there are, and how every one of them ends.

A command is a module of this package with `run(args) -> exit code` and `add(subparsers)`, which gives its parser or
those of its actions. It is imported when it is the one called, has the options of `common`, and finds what they come
to in `args.settings`.

Exit codes: 0 done; 1 the command's own "no"; 2 wrong usage or settings, or the machine does not let it work; 70 a fault
inside halo-server; 130 interrupted. No traceback reaches a person.
"""

import argparse
import importlib
import os
import sys
from typing import Final, NoReturn

from halod import __version__
from halod.errors import HalodError, UsageError
from halod.status import clean

COMMANDS: Final = {
    "serve": "run the console",
    "login-link": "print a link that signs an administrator in, once",
    "migrate": "bring the database to this release's schema",
    "sessions": "list who is signed in, and sign people out",
    "token": "make, list and revoke tokens of the API and of devices",
    "enroll-key": "make, list and revoke the keys that machines enrol with",
    "publish": "make a signed policy that of the fleet",
    "webhooks": "try webhooks out, and retry or discard what did not arrive",
    "backup": "write a copy of the database while the console runs",
    "prune": "forget now what the settings say is past its time",
}
"""Each command, in the order of the help, with the line that the help shows."""

_EXAMPLES: Final = """\
examples:
  halo-server serve                          one machine: SQLite, http://127.0.0.1:8640, a login link
  halo-server serve --config halo-server.toml
  halo-server enroll-key create --name laptops --ring ring1-canary --days 30

halo-server COMMAND --help tells more."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours: one line, and never a value after an unknown option."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError.

        Raises:
            UsageError: always.
        """
        head, found, rest = message.partition("unrecognized arguments: ")
        if found:
            names = [word.partition("=")[0] for word in rest.split() if word.startswith("-") and word != "-"]
            message = f"{head}unknown option {names[0]}" if names else f"{head}too many arguments"
        raise UsageError(message, advice=f"see {self.prog} --help")


def main(argv: list[str] | None = None) -> int:
    """Run one command and give its exit code; with `argv` None, that of this process."""
    words = sys.argv[1:] if argv is None else argv
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except HalodError as error:
        _say(f"{error.message}; {error.advice}" if error.advice else error.message)
        code = error.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        code = 141
    except Exception as error:  # noqa: BLE001 - the last resort: its type may be shown, its text may not
        code = _last_resort(error)
    return code


def _last_resort(error: Exception) -> int:
    """Say what an unforeseen exception means, and give the exit code."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "halod").partition(".")[0] != "halod":
        _say("the console's libraries are not installed here; install halod[console], and [postgres]")
        return 2
    from halod.console.store.engine import refusal

    if why := refusal(error):
        _say(f"the database cannot be used: {why}")
        return 2
    _say(f"a fault inside halo-server ({type(error).__name__}); please report it with the command you ran")
    return 70


def _dispatch(words: list[str]) -> int:
    from halod.console import logs
    from halod.console.cli import common
    from halod.console.settings.words import nearest

    logs.configure("warning", "plain")  # serve says otherwise; stdout is for what a command was asked

    parser = Parser(
        prog="halo-server",
        description="The console of halod: takes the reports of a fleet, keeps them, shows them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"halo-server {__version__}")
    name = next((word for word in words if not word.startswith("-")), "")
    if name and name not in COMMANDS:
        raise UsageError(
            f"there is no such command{nearest(name, COMMANDS)}", advice="see halo-server --help"
        )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for command, line in COMMANDS.items():
        if command == name:
            module = importlib.import_module(f"halod.console.cli.{name.replace('-', '_')}")
            added = module.add(commands)
            for one in added if isinstance(added, tuple) else (added,):
                common.add_options(one)
        else:
            commands.add_parser(command, help=line, add_help=False)
    args = parser.parse_args(words)
    if not args.command:
        parser.print_help()
        return 0 if not words else 2
    if getattr(args, "action", "") != "secret":  # webhooks secret asks neither settings nor a database
        args.settings = common.settings_of(args, make=name in ("serve", "migrate"))
    code: int = module.run(args)
    return code


def _say(text: str) -> None:
    lines = [clean(line, 1000) for line in text.splitlines()]
    sys.stderr.write("\n".join([f"halo-server: error: {lines[0]}", *lines[1:]]) + "\n")
    sys.stderr.flush()
