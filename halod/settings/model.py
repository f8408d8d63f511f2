# SPDX-License-Identifier: Apache-2.0
"""The settings of the service as types: every table and key of `halod.toml`, with its words.

Invariants:

1. The types are the only list of keys: reading, the did-you-mean and docs/settings.md go by them.
2. No value is a secret: tokens and keys stand in files of their own, which are named here.
3. A Settings was checked: paths are absolute, numbers in range, names and URLs of the form that is described.
"""

import posixpath
from typing import Annotated, Final, Literal

import msgspec

from halod.errors import UsageError

Kind = Literal[
    "account",
    "accounts",
    "choice",
    "duration",
    "flag",
    "keys",
    "label",
    "labels",
    "locations",
    "path",
    "roots",
    "size",
    "url",
]
"""How a value is read (`fields`) and how docs/settings.md describes it."""

MIB: Final = 1024 * 1024
INTERVAL: Final = (60, 86_400)
"""Seconds: more often would compete with the watcher, more seldom than daily would hide a change."""
FILE_BYTES: Final = (64 * 1024, 256 * MIB)
"""A worker has 1 GiB of address space, and decoding takes up to three times a file's size."""


def _key(kind: Kind, words: str, default: str = "") -> msgspec.Meta:
    """Describe a key; `default` replaces the field's own where that depends on the system."""
    return msgspec.Meta(description=words, extra={"kind": kind, "default": default})


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables."""


class Device(_Table, frozen=True, kw_only=True):
    """What this device is, and whose homes are scanned on it."""

    ring: Annotated[str, _key("label", "The device's ring, one of the policy's `rings`.")] = ""
    units: Annotated[
        tuple[str, ...], _key("labels", "The units that the device belongs to, of the policy's `units`.")
    ] = ()
    accounts: Annotated[
        Literal["console", "all"] | tuple[str, ...],
        _key(
            "accounts",
            "Whose homes are scanned: `console` is the person at the screen, `all` is every person with a"
            " home; or a list of account names.",
        ),
    ] = "console"
    agent_account: Annotated[
        str,
        _key(
            "account",
            "The account that the networked part of the service runs as. It must exist and must not be root.",
            '`"halod"`; macOS: `"_halod"`',
        ),
    ] = ""


class Policy(_Table, frozen=True, kw_only=True):
    """Where the policy (`halos.yaml`) comes from; without it, scans are inventories."""

    path: Annotated[
        str, _key("path", "A policy file, placed by an administrator. Not together with `url`.")
    ] = ""
    url: Annotated[
        str,
        _key("url", "Where a signed policy is fetched from. Needs `public_keys`. Not together with `path`."),
    ] = ""
    public_keys: Annotated[
        tuple[str, ...],
        _key("keys", "Ed25519 public keys, 32 bytes in base64; a fetched policy is signed by one of them."),
    ] = ()
    org: Annotated[
        str,
        _key(
            "label",
            "The `org` that a fetched policy has to be of.",
            "that of the first one that is taken",
        ),
    ] = ""


class Report(_Table, frozen=True, kw_only=True):
    """Where reports go; without `url` nothing is sent and the status stays on the machine."""

    url: Annotated[str, _key("url", "The endpoint that takes reports, such as that of halo-server.")] = ""
    token_file: Annotated[
        str,
        _key("path", "A file with the bearer token, root's, mode 0600. Not together with `enroll_key_file`."),
    ] = ""
    enroll_key_file: Annotated[
        str,
        _key(
            "path",
            "A file with the enrolment key, root's, mode 0600: exchanged once for a token of this device.",
        ),
    ] = ""
    ca_file: Annotated[
        str, _key("path", "Certificates (PEM) that are trusted instead of the system's, for your own CA.")
    ] = ""
    client_cert: Annotated[
        str, _key("path", "A client certificate (PEM), with its key unless `client_key` is given.")
    ] = ""
    client_key: Annotated[
        str, _key("path", "The key (PEM, without a passphrase) of `client_cert`, root's, mode 0600.")
    ] = ""
    transitions: Annotated[
        bool,
        _key(
            "flag", "Send what opened, changed and was resolved; `false` for a server that does not know it."
        ),
    ] = True


class ExtraLocation(_Table, frozen=True, kw_only=True):
    """One more file of a harness, where an environment variable moved its configuration."""

    harness: Annotated[
        str, msgspec.Meta(description="The tool's id, as `halod harnesses` lists it. Required.")
    ]
    path: Annotated[
        str,
        msgspec.Meta(
            description="The file, from the home on: `~/work/claude/.claude.json`. `*` is one component or a"
            " part of one, `**` any number of directories. Required."
        ),
    ]
    format: Annotated[
        str, msgspec.Meta(description="The file's format; without it, that of the harness's first file.")
    ] = ""
    tables: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description="Where servers stand in it, such as `/mcpServers`; without it, as in the harness's"
            " first file."
        ),
    ] = ()


class Scan(_Table, frozen=True, kw_only=True):
    """When and what is scanned."""

    interval: Annotated[
        int,
        _key(
            "duration",
            "Time from one scan to the next: seconds, or text such as `15m`; from 60 seconds to one day.",
        ),
    ] = 900
    watch: Annotated[bool, _key("flag", "Also scan soon after a watched file changes.")] = True
    max_file_bytes: Annotated[
        int,
        _key(
            "size",
            "Files above this size are not read, and reported as `too-large`: bytes, or text such as"
            " `128 MiB`; from 64 KiB to 256 MiB.",
        ),
    ] = 128 * MIB
    link_roots: Annotated[
        tuple[str, ...],
        _key(
            "roots",
            'Where a link at the end of a path may end: `"~"` (a target of the account\'s own), or a'
            " directory of root's such as `/nix/store`.",
        ),
    ] = ()
    extra_locations: Annotated[
        tuple[ExtraLocation, ...], _key("locations", "More files of the tools, see below.")
    ] = ()
    exclude_accounts: Annotated[tuple[str, ...], _key("labels", "Account names that are never scanned.")] = ()


class Log(_Table, frozen=True, kw_only=True):
    """What the service writes to stderr."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], _key("choice", "The least level that is written.")
    ] = "info"
    format: Annotated[
        Literal["auto", "json", "console"],
        _key("choice", "`auto` is `console` on a terminal and `json` under a service manager."),
    ] = "auto"


class State(_Table, frozen=True, kw_only=True):
    """Where the service keeps what it must not forget."""

    dir: Annotated[
        str,
        _key(
            "path",
            "The directory of the state database; the control socket then lies in `run` below it.",
            '`"/var/lib/halod"`, socket in `/run/halod`; macOS: below `/Library/Application Support/halod`',
        ),
    ] = ""


class Settings(_Table, frozen=True, kw_only=True):
    """Everything that `halod.toml` and managed preferences say, checked and with every default filled in.

    `sources` are the files that were read; `run_dir` is where the control socket lies.
    """

    device: Device = Device()
    policy: Policy = Policy()
    report: Report = Report()
    scan: Scan = Scan()
    log: Log = Log()
    state: State = State()
    sources: tuple[str, ...] = ()
    run_dir: str = ""

    def secret_files(self) -> list[tuple[str, str]]:
        """Give (key, path) of every file that holds a secret: root's, mode 0600."""
        report = self.report
        named = [
            ("report.token_file", report.token_file),
            ("report.enroll_key_file", report.enroll_key_file),
            ("report.client_key", report.client_key or report.client_cert),
        ]
        return [(key, path) for key, path in named if path]

    def trusted_files(self) -> list[str]:
        """Give every path that must be beyond others' reach (design 3): what root demands before it runs.

        Of the state directory, which is the agent's, that is where it lies: root makes it there, and gives it away.
        """
        report = self.report
        paths = (
            *self.sources,
            self.policy.path,
            report.token_file,
            report.enroll_key_file,
            report.ca_file,
            report.client_cert,
            report.client_key,
            posixpath.dirname(self.state.dir),
        )
        return [path for path in dict.fromkeys(paths) if path]


TABLES: Final = ("device", "policy", "report", "scan", "log", "state")
"""The tables of the file, in the order of the documentation; the other fields of Settings are no keys."""


class Places(_Table, frozen=True, kw_only=True):
    """Where things lie on one system."""

    settings: str
    managed: str
    state: str
    run: str
    account: str


_MACOS: Final = "/Library/Application Support/halod"
_LINUX_PLACES: Final = Places(
    settings="/etc/halod/halod.toml", managed="", state="/var/lib/halod", run="/run/halod", account="halod"
)
_MACOS_PLACES: Final = Places(
    settings=f"{_MACOS}/halod.toml",
    managed="/Library/Managed Preferences/dev.halos.halod.plist",
    state=f"{_MACOS}/state",
    run=f"{_MACOS}/run",
    account="_halod",
)


def places(platform: str) -> Places:
    """Give the places of a system, named as in `sys.platform`."""
    return _MACOS_PLACES if platform == "darwin" else _LINUX_PLACES


class Problem(msgspec.Struct, frozen=True, order=True):
    """One fault: the file, the line (from 1; 0 where a file has none, as a property list), what is wrong."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        """Give `file:line: message`."""
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class SettingsError(UsageError):
    """Settings with faults: `problems` has all of them, file by file, in the order of their lines."""

    code = "settings"

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(set(problems))
        lines = self.lines()
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        super().__init__(lines[0] + more, advice="halod check shows every fault" if more else "")

    def lines(self) -> list[str]:
        """Give one line per fault: `file:line: message`."""
        return [str(problem) for problem in self.problems]


def run_below(state: str) -> str:
    """Give the run directory that goes with a state directory of the administrator's own."""
    return posixpath.join(state, "run")
