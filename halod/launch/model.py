# SPDX-License-Identifier: Apache-2.0
"""What a stdio definition launches: the answer type of `identify`.

A Launch holds pieces of the user's command line (`identifier` of a local program, `bin`, `args`, `registries`
…), so like a Definition it shows nothing of itself. `drift` reads it; only `outcome` and `flags`, which are
closed vocabularies of ours, go further.
"""

from typing import Literal

import msgspec

Ecosystem = Literal["npm", "pypi", "oci", "nuget"]
Outcome = Literal[
    "identified",
    "identified-unpinned",
    "identified-unsafe",
    "launcher-version-dependent",
    "delegate",
    "unidentifiable",
]

INFORMATIONAL = frozenset(
    {
        "wrapper",
        "shell",
        "windows-shell",
        "absolute-launcher",
        "extras",
        "maybe-local-build",
        "plain-http",
        "loopback",
        "carrier",
        "remote-catalog",
        "name-is-label",
    }
)
"""Flags that inform and never disqualify (design 5). Every other flag is unsafe."""


class Nested(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """What a bridge or wrapper carries: exactly one of a URL, an argv, or a line for a shell."""

    url: str | None = None
    argv: tuple[str, ...] | None = None
    shell: str | None = None

    def __repr__(self) -> str:
        """Give the type's name only (privacy rule, design 8)."""
        return "<Nested>"


class Launch(msgspec.Struct, frozen=True):
    """What a command line makes a launcher run.

    ecosystem   one of the comparable four, another word of `launch_cases.json` ("git", "local", …), or None
    identifier  canonical by the rules of the ecosystem: npm verbatim, PyPI PEP 503, OCI `registry/repository`
                with `docker.io` and `library/` filled in, NuGet case-folded
    version     only when exact by the ecosystem's rules, canonical enough to compare as text
                (PEP 440 normal form; NuGet normal form; npm without `v`, `=` and build metadata)
    requested   the version as the definition spells it when that is not simply `version`, else None
    digest      `sha256:` and 64 hex digits, OCI only
    outcome     see Outcome; `identified` and `identified-unpinned` carry informational flags only
    flags       sorted, closed vocabulary
    nested      what a carrier or wrapper carries
    bin         the program named beside the package (`npx -p P BIN`, `uvx --from P BIN`,
                `pipx run --spec P BIN`)
    args        what follows the package or image: the program's own arguments
    env_keys    every environment key that reaches the program: the entry's, an env wrapper's, the
                image's `-e`
    unsafe_env  (flag, key) for each unsafe key among env_keys, whatever the outcome: what `env` may answer.
                SSE_URL of a bridge is here although `flags` has nothing for it (launch case bridge-16)
    registries  what is named as registry or index, in options or environment, one for each cause of a
                `registry-override` and as written (no URL: ""): a listed mirror answers when all are listed
    mounts      (source, target) of each mount of a container; the target is normalised, and `/` when it
                cannot be told
    line_flags  the unsafe flags that the command line and `cwd` raise, sorted: an entry's `env` list answers
                only flags that are not among them
    """

    outcome: Outcome
    ecosystem: str | None = None
    identifier: str | None = None
    version: str | None = None
    requested: str | None = None
    digest: str | None = None
    flags: tuple[str, ...] = ()
    nested: Nested | None = None
    bin: str | None = None
    args: tuple[str, ...] = ()
    env_keys: tuple[str, ...] = ()
    unsafe_env: tuple[tuple[str, str], ...] = ()
    registries: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    line_flags: tuple[str, ...] = ()

    @property
    def unsafe_flags(self) -> tuple[str, ...]:
        """The flags that disqualify unless a registry entry answers them, sorted."""
        return tuple(flag for flag in self.flags if flag not in INFORMATIONAL)

    def __repr__(self) -> str:
        """Give the type's name only (privacy rule, design 8)."""
        return "<Launch>"


class UrlParts(msgspec.Struct, frozen=True):
    """A URL taken apart by the strict grammar of registry.md part D.

    `host` is lower-case ASCII (A-label), IPv6 in brackets; `port` is None when none or the default is
    written. `path` is normalised, never empty. `query` and `fragment` are None when absent (an empty `?` is
    ""). `comparable` is False when the URL has parts but must have no canonical form (userinfo, a
    variable in query or fragment, plain http beyond loopback, ws): drift is still told from the parts. A
    fragment stays in the canonical form, so that a URL with one equals no pin.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    query: str | None = None
    fragment: str | None = None
    userinfo: bool = False
    comparable: bool = True

    def __repr__(self) -> str:
        """Give the type's name only: path and query are the user's (privacy rule, design 8)."""
        return "<UrlParts>"
