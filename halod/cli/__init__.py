# SPDX-License-Identifier: Apache-2.0
"""The command line of `halod`: which commands there are, and how every one of them ends.

A command is a module of this package with NAME, HELP, `configure(parser)` and `run(args) -> exit code`; it is
imported when it is the one called, so that `scan` does not pay for `run`. Invariants:

1. No traceback reaches a person: an error of ours is printed as one line, anything else by its type only (its
   text may quote a user's file).
2. As root, halod runs isolated from the environment and refuses an installation that others can write.
"""

import os
import sys

COMMANDS = {
    "scan": "read MCP configs, compare them with the registry, print what differs",
    "explain": "show what one definition would launch and how it is judged",
    "check": "say in words what is wrong with settings, files, policy and endpoints",
    "run": "scan at intervals and when configs change, and report: the service",
    "status": "show what the service did last and what is wrong",
    "harnesses": "list the AI tools and files that a scan covers",
    "service": "install or remove the machine service, or show what that would do",
}
"""Each command, in the order of the help, with the line that the help shows."""

_DESCRIPTION = "Which MCP servers are really configured on this machine, and which of them nobody approved."
_EXAMPLES = """\
examples:
  halod scan                                    list the MCP servers of your own account
  halod scan --policy halos.yaml --ring canary  compare them with the approved registry
  halod explain -- npx -y some-server@1.2.3     what would this run, and is it approved?
  halod harnesses                               which tools and files are covered

halod COMMAND --help tells more. Exit codes of scan: 0 nothing found, 1 findings,
2 wrong usage, settings or policy, 3 no finding but something could not be read."""


_HARMLESS = (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONNOUSERSITE",
    "PYTHONSAFEPATH",
    "PYTHONUNBUFFERED",
)
"""Variables that have no say in what code is imported."""
_AGAIN = "import sys; from halod.cli import main; sys.exit(main())"


def main(argv: list[str] | None = None) -> int:
    """Run one command and give its exit code; with `argv` None, that of this process.

    Exit codes: the command's own; 2 for an error of ours; 70 for a fault inside halod; 130 when interrupted.
    """
    process = argv is None
    if process:
        _isolate()
    words = sys.argv[1:] if argv is None else argv
    from halod.cli import errors

    code = errors.guard(_dispatch, words, process=process)
    if process and words[:1] == ["scan"]:
        errors.leave(code)
    return code


def _isolate() -> None:
    """As root, be as if started with `-I`: nothing of the caller's surroundings decides what code is imported.

    `-I` ignores PYTHON variables, the user's own site-packages and the script's folder. When only the last one
    is there, dropping it is the same and saves a start; otherwise halod starts again with `-I`, unless that
    would lose the package (a source tree named by PYTHONPATH: `roles.trust` judges that one).
    """
    if os.geteuid() != 0 or sys.flags.isolated or getattr(sys, "frozen", False) or not sys.executable:
        return
    own = "" if sys.flags.safe_path else _script_folder()
    variables = [name for name in os.environ if name.startswith("PYTHON") and name not in _HARMLESS]
    site = sys.modules.get("site")
    if own is not None and not variables and getattr(site, "USER_SITE", None) not in sys.path:
        if not sys.flags.safe_path:
            del sys.path[0]
        sys.dont_write_bytecode = False  # `-I` would not have read the variable either
        return
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    dropped = [] if sys.flags.safe_path else sys.path[:1]
    dropped += os.environ.get("PYTHONPATH", "").split(os.pathsep) if "PYTHONPATH" in os.environ else []
    if root in set(sys.path) - set(dropped) - {os.path.abspath(path) for path in dropped}:
        os.execv(sys.executable, [sys.executable, "-I", "-c", _AGAIN, *sys.argv[1:]])  # noqa: S606 - itself


def _script_folder() -> str | None:
    """Give the first entry of `sys.path` when it is what `-I` leaves out: the script's folder, or the current one."""
    first = sys.path[0] if sys.path else None
    try:
        candidates = ("", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0])))
    except OSError:  # the current folder is gone
        return None
    return first if first in candidates else None


def _dispatch(words: list[str]) -> int:
    import importlib

    from halod.cli.errors import Formatter, Parser

    name = words[0] if words else ""
    if name not in COMMANDS:
        return _no_command(words)
    module = importlib.import_module(f"halod.cli.{name}")
    parser = Parser(
        prog=f"halod {name}",
        description=getattr(module, "DESCRIPTION", module.HELP),
        epilog=getattr(module, "EXAMPLES", None),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    code: int = module.run(parser.parse_args(words[1:]))
    return code


def _no_command(words: list[str]) -> int:
    """Answer `--help`, `--version`, and what is no command."""
    from halod import __version__
    from halod.errors import UsageError

    first = words[0] if words else ""
    if first in {"--version", "-V", "version"}:
        sys.stdout.write(f"halod {__version__}\n")
        return 0
    if first in {"--help", "-h", "help"}:
        sys.stdout.write(_help())
        return 0
    if not first:
        sys.stderr.write(_help())
        return 2
    from difflib import get_close_matches

    close = get_close_matches(first, COMMANDS, n=1)
    what = "option" if first.startswith("-") else "command"
    advice = f"did you mean {close[0]}?" if close else "halod --help lists the commands"
    raise UsageError(f"there is no {what} of this name", advice=advice)


def _help() -> str:
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    usage = "usage: halod COMMAND [OPTION]...\n       halod --help | --version"
    return f"{usage}\n\n{_DESCRIPTION}\n\ncommands:\n{rows}\n\n{_EXAMPLES}\n"
