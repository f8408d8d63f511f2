# SPDX-License-Identifier: Apache-2.0
"""The Launch while it is being found out: what the launcher modules fill in, and how it becomes a verdict.

Order of outcomes (design 5): `unidentifiable` beats everything; a reading that depends on the launcher's
release beats only the flags that such a reading brings itself; `delegate`; then any unsafe flag; then whether
the version is exact.
"""

import re
from urllib.parse import urlsplit

from halod.launch.environment import judge
from halod.launch.model import INFORMATIONAL, Launch, Nested, Outcome
from halod.launch.words import has_variable

COMPARABLE = frozenset({"npm", "pypi", "oci", "nuget"})
_SOURCES = frozenset({"git", "tarball", "wheel-url"})
_TEMPORARY = frozenset({"TMPDIR", "TEMP", "TMP"})
_WEAK = frozenset({"package-flag", "from-flag", "command-line-in-command"})


class Draft:
    """A Launch under construction. Launcher modules set fields and add flags; `finish` draws the conclusion.

    `flags` holds what the command line and `cwd` raise; what the environment raises is added by `finish`.
    `dead` means unidentifiable, `dependent` that releases of the launcher read the line differently.
    """

    __slots__ = (
        "args",
        "bin",
        "cwd",
        "dead",
        "delegate",
        "dependent",
        "digest",
        "ecosystem",
        "env",
        "flags",
        "identifier",
        "mounts",
        "nested",
        "registries",
        "requested",
        "temporary",
        "version",
    )

    def __init__(self, env: list[tuple[str, str | None]], cwd: str) -> None:
        self.env = env
        self.cwd = cwd
        self.ecosystem: str | None = None
        self.identifier: str | None = None
        self.version: str | None = None
        self.requested: str | None = None
        self.digest: str | None = None
        self.flags: set[str] = set()
        self.registries: list[str] = []
        self.mounts: list[tuple[str, str]] = []
        self.bin: str | None = None
        self.args: tuple[str, ...] = ()
        self.nested: Nested | None = None
        self.dead = False
        self.dependent = False
        self.delegate = False
        self.temporary = False

    def kill(self, *flags: str, ecosystem: str | None = None) -> None:
        """Make it unidentifiable, with the reasons; nothing that is known so far is taken back."""
        self.dead = True
        self.flags.update(flags)
        if ecosystem is not None:
            self.ecosystem = ecosystem

    def registry(self, value: str | None) -> None:
        """Note a registry or index that the command line names, as written."""
        self.flags.add("registry-override")
        self.registries.append(value or "")

    def local_copies(self) -> None:
        """Note that this launcher prefers what lies in its working directory (launchers.md 2.4, 3, 5, 7)."""
        if self.cwd:
            self.flags.add("cwd-override")

    def temporary_copies(self) -> None:
        """Note that this launcher runs what lies in the directory for temporary files: bunx takes
        `bunx-UID-PACKAGE@VERSION` below TMPDIR, TEMP or TMP for its own (run with bun 1.2 and 1.3).
        """
        self.temporary = True

    def finish(self) -> Launch:
        """Judge the environment, settle the outcome and give the finished Launch."""
        keys: dict[str, None] = {}
        unsafe: dict[tuple[str, str], None] = {}
        for key, value in self.env:
            keys[key] = None
            flag = judge(key, value)
            if self.temporary and key.upper() in _TEMPORARY:
                flag = "config-override"
            if flag is not None:
                unsafe[flag, key] = None
                if flag == "registry-override":
                    self.registries.append(value or "")
        line_flags = tuple(sorted(self.flags - INFORMATIONAL))
        # SSE_URL is a carrier's payload (launch case bridge-16): unsafe by its key, without a flag of its
        # own.
        self.flags.update(flag for flag, key in unsafe if not (self.delegate and key.upper() == "SSE_URL"))
        outcome = self._outcome()
        return Launch(
            outcome=outcome,
            ecosystem=self.ecosystem,
            identifier=self.identifier,
            version=self.version,
            requested=self.requested,
            digest=self.digest,
            flags=tuple(sorted(self.flags)),
            nested=self.nested,
            bin=self.bin,
            args=self.args,
            env_keys=tuple(keys),
            unsafe_env=tuple(unsafe),
            registries=tuple(self.registries),
            mounts=tuple(self.mounts),
            line_flags=line_flags,
        )

    def _outcome(self) -> Outcome:
        if self.dead or (self.ecosystem is None and not self.delegate):
            return "unidentifiable"
        unsafe = self.flags - INFORMATIONAL
        if self.dependent:
            if unsafe <= _WEAK:
                return "launcher-version-dependent"
            # Only a hash or command pin may approve it, so nothing an entry tolerates may be all there is.
            self.flags.add("version-dependent")
        if self.delegate:
            return "delegate"
        if unsafe or self.dependent or self.ecosystem in _SOURCES:
            return "identified-unsafe"
        pinned = self.digest if self.ecosystem == "oci" else self.version
        return "identified" if pinned and self.ecosystem in COMPARABLE else "identified-unpinned"


_LOOPBACK_V4 = re.compile(r"127\.\d{1,3}\.\d{1,3}\.\d{1,3}")


def describe_url(url: str, flags: set[str]) -> None:
    """Add the informational flags of a carried URL: `plain-http`, `loopback`."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return
    if parts.scheme in {"http", "ws"}:
        flags.add("plain-http")
    if not has_variable(url) and (host in {"localhost", "::1"} or _LOOPBACK_V4.fullmatch(host)):
        flags.add("loopback")
