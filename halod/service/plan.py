# SPDX-License-Identifier: Apache-2.0
"""What installing or removing the service does, as data. Pure: nothing is looked at and nothing happens here.

Invariants:

1. Installing twice gives the same plan, and its second run changes nothing: files are compared before they are
   written, and the programs that are run are repeatable.
2. Settings, policy, token and state are never among the files: neither written nor removed.
3. With another prefix than `/` (an image, a package root) files are all there is: nothing is run.
"""

import posixpath
from typing import Final, Literal

import msgspec

from halod.service.files import LABEL, PACKAGED, UNIT, Program, Sources, job_for, unit_for

Action = Literal["install", "uninstall"]
System = Literal["linux", "darwin"]

_PACKAGED_UNIT: Final = f"/usr/lib/systemd/system/{UNIT}"
_UNIT_PATH: Final = f"/etc/systemd/system/{UNIT}"
_SYSUSERS_PATH: Final = "/etc/sysusers.d/halod.conf"
_JOB_PATH: Final = f"/Library/LaunchDaemons/{LABEL}.plist"
_ROTATION_PATH: Final = f"/etc/newsyslog.d/{LABEL}.conf"
_JOB: Final = f"system/{LABEL}"


class File(msgspec.Struct, frozen=True):
    """A file that is to be there, root's, mode 0644, its directory made if need be."""

    path: str
    text: str


class Command(msgspec.Struct, frozen=True):
    """A program that is run. `may_fail`: its failure means that there was nothing to do."""

    words: tuple[str, ...]
    may_fail: bool = False


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan depends on.

    `configured`: the settings are there. `account`: the agent's account is there. `free_id`: a uid and gid that
    nobody has (macOS). `manager`: the service manager runs here, which it does not in most containers.
    """

    system: System
    prefix: str = "/"
    configured: bool = False
    account: str = "halod"
    account_exists: bool = False
    free_id: int = 0
    manager: bool = True


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """First `before`, then files, then removals, then `after`; `notes` are for the person who asked.

    Files and removals lie below `prefix`, also when the links of an image have been followed.
    """

    before: tuple[Command, ...] = ()
    files: tuple[File, ...] = ()
    removals: tuple[str, ...] = ()
    after: tuple[Command, ...] = ()
    notes: tuple[str, ...] = ()
    prefix: str = "/"


def plan(action: Action, program: Program, sources: Sources, here: Situation) -> Plan:
    """Say what an action does."""
    made = _MAKERS[here.system, action](program, sources, here)
    if here.prefix == "/":
        return made
    return Plan(
        files=tuple(File(_below(here.prefix, file.path), file.text) for file in made.files),
        removals=tuple(_below(here.prefix, path) for path in made.removals),
        notes=("only files were looked after: nothing is enabled or started below another prefix than /",),
        prefix=here.prefix,
    )


def _below(prefix: str, path: str) -> str:
    return posixpath.join(prefix, path.lstrip("/"))


def _linux_install(program: Program, sources: Sources, here: Situation) -> Plan:
    notes: list[str] = []
    files: tuple[File, ...] = ()
    if program.packaged and here.prefix == "/":
        notes.append(f"the package has installed {_PACKAGED_UNIT}")
    else:
        files = (File(_UNIT_PATH, unit_for(program, sources.unit)), File(_SYSUSERS_PATH, sources.sysusers))
    after: list[Command] = []
    if not here.account_exists:
        after.append(Command(("systemd-sysusers", "halod.conf")))
    if here.manager:
        after += [
            Command(("systemctl", "daemon-reload")),
            Command(("systemctl", "enable", UNIT)),
            # Also what starts it; without settings, its condition keeps it from starting.
            Command(("systemctl", "restart", UNIT)),
        ]
    else:
        notes.append("systemd does not run here: enable halod.service where it does")
    notes += _waiting(here, "/etc/halod/halod.toml", f"systemctl start {UNIT}")
    return Plan(files=files, after=tuple(after), notes=tuple(notes))


def _linux_uninstall(program: Program, _sources: Sources, here: Situation) -> Plan:
    before: list[Command] = []
    after: list[Command] = []
    if here.manager:
        before.append(Command(("systemctl", "disable", "--now", UNIT), may_fail=True))
        after.append(Command(("systemctl", "daemon-reload")))
    kept = "settings, state in /var/lib/halod and the account halod are kept"
    packaged = program.packaged and here.prefix == "/"
    notes = (f"{kept}; the package's own files go with the package",) if packaged else (kept,)
    removals = (_UNIT_PATH,) if packaged else (_UNIT_PATH, _SYSUSERS_PATH)
    return Plan(before=tuple(before), removals=removals, after=tuple(after), notes=notes)


def _macos_install(program: Program, sources: Sources, here: Situation) -> Plan:
    files = (File(_JOB_PATH, job_for(program, sources.job)), File(_ROTATION_PATH, sources.rotation))
    before = () if here.account_exists else _role_account(here.account, here.free_id)
    after = (
        Command(("launchctl", "bootout", _JOB), may_fail=True),
        Command(("launchctl", "enable", _JOB)),
        Command(("launchctl", "bootstrap", "system", _JOB_PATH)),
    )
    settings = "/Library/Application Support/halod/halod.toml"
    notes = _waiting(here, settings, f"launchctl kickstart {_JOB}")
    return Plan(before=before, files=files, after=after, notes=tuple(notes))


def _macos_uninstall(_program: Program, _sources: Sources, _here: Situation) -> Plan:
    return Plan(
        before=(Command(("launchctl", "bootout", _JOB), may_fail=True),),
        removals=(_JOB_PATH, _ROTATION_PATH),
        notes=("settings, state in /Library/Application Support/halod and the account are kept",),
    )


def _role_account(name: str, number: int) -> tuple[Command, ...]:
    """Make a group and an account that nobody can log in to, hidden from the login window (dscl(1))."""
    group, user = f"/Groups/{name}", f"/Users/{name}"
    values = (
        (group, "PrimaryGroupID", str(number)),
        (group, "RealName", "halod agent"),
        (group, "Password", "*"),
        (user, "UniqueID", str(number)),
        (user, "PrimaryGroupID", str(number)),
        (user, "RealName", "halod agent"),
        (user, "Password", "*"),
        (user, "NFSHomeDirectory", "/var/empty"),
        (user, "UserShell", "/usr/bin/false"),
        (user, "IsHidden", "1"),
    )
    return tuple(Command(("dscl", ".", "-create", record, key, value)) for record, key, value in values)


def _waiting(here: Situation, settings: str, start: str) -> list[str]:
    if here.configured:
        return []
    return [f"there are no settings yet: write {settings}, run halod check, then {start}"]


_MAKERS: Final = {
    ("linux", "install"): _linux_install,
    ("linux", "uninstall"): _linux_uninstall,
    ("darwin", "install"): _macos_install,
    ("darwin", "uninstall"): _macos_uninstall,
}


def looked_at(program: Program, sources: Sources) -> list[str]:
    """Give what must be beyond others' reach before root is told to start it (design 3)."""
    package = [PACKAGED] if program.packaged else []
    return [program.command[0], *program.directories, *sources.paths, *package]
