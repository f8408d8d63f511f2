# SPDX-License-Identifier: Apache-2.0
"""What every command of `halo-server` asks first: the settings, and which database.

The database, the first of these that is given: `--database-url`, `--database-url-file`, `--data-dir`, the variable
HALO_DATABASE_URL, `database_url_file` and `database_url` of the settings, and then SQLite in the account's own state
directory.
"""

import argparse
import os
import pwd
import stat
import sys
from typing import Final

import msgspec

from halod.console.settings import Settings
from halod.console.settings.secret import private_line
from halod.console.store.engine import Store
from halod.console.store.migrate import require_current
from halod.errors import EnvironmentFault, UsageError

VARIABLE: Final = "HALO_DATABASE_URL"
DATABASE: Final = "console.db"
_SYSTEM_DIR: Final = "/var/lib/halo-server"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where settings and database are."""
    parser.add_argument("--config", metavar="FILE", help="settings, as in packaging/halo-server.toml")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data-dir", metavar="DIR", help="keep everything in SQLite in this directory")
    where.add_argument(
        "--database-url", metavar="URL", help="postgresql://… or sqlite:////…; other accounts can see it"
    )
    where.add_argument("--database-url-file", metavar="FILE", help="a file with the address, mode 0600")


def settings_of(args: argparse.Namespace, *, make: bool) -> Settings:
    """Give the settings that the options name; `make` says whether a data directory is made. Raises UsageError."""
    from halod.console.settings import load

    settings = load(args.config) if args.config else Settings(database_url="")
    return msgspec.structs.replace(settings, database_url=_database(args, settings, make=make))


def open_store(settings: Settings) -> Store:
    """Open the database of a command that is not `serve` or `migrate`: it has to be there and current.

    Raises:
        UsageError: it is not.
    """
    path = settings.database_url.removeprefix("sqlite:///")
    if path != settings.database_url and not os.path.exists(path):
        raise UsageError(f"there is no database at {path}", advice="name it with --data-dir or --config")
    store = Store.open(settings.database_url)
    try:
        require_current(store)
    except BaseException:
        store.close()
        raise
    return store


def operator() -> str:
    """Give who runs a command, for the audit log."""
    try:
        return f"{pwd.getpwuid(os.getuid()).pw_name} (command line)"
    except KeyError:
        return f"uid {os.getuid()} (command line)"


def _database(args: argparse.Namespace, settings: Settings, *, make: bool) -> str:
    if args.database_url:
        if "@" in args.database_url and ":" in args.database_url.partition("://")[2].rpartition("@")[0]:
            sys.stderr.write(
                "halo-server: warning: the password in --database-url can be seen by every account of this machine;"
                f" use --database-url-file or {VARIABLE}\n"
            )
        return str(args.database_url)
    if args.database_url_file:
        return private_line(args.database_url_file, "the file of --database-url-file")
    if args.data_dir:
        return sqlite_in(args.data_dir, make=make)
    if os.environ.get(VARIABLE):
        return os.environ[VARIABLE]
    if settings.database_url_file:
        return private_line(settings.database_url_file, "database_url_file")
    return settings.database_url or sqlite_in(_own_dir(), make=make)


def sqlite_in(directory: str, *, make: bool) -> str:
    """Give the address of the SQLite database in a directory, the account's alone; `make` it if need be.

    Raises:
        EnvironmentFault: the directory cannot be made, is another account's, or is open to others.
    """
    path = os.path.abspath(directory)
    try:
        if make:
            os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.stat(path)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot use the directory {path}: {os.strerror(error.errno or 0)}",
            advice="name the database with --data-dir or --config",
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise EnvironmentFault(f"{path} is no directory of this account")
    if found.st_mode & 0o022:
        raise EnvironmentFault(f"{path} can be written by other accounts", advice=f"chmod 700 {path}")
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)
    return f"sqlite:///{os.path.join(path, DATABASE)}"


def _own_dir() -> str:
    if os.geteuid() == 0:
        return _SYSTEM_DIR
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "halo-server")
