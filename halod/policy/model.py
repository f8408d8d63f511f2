# SPDX-License-Identifier: Apache-2.0
"""The policy as checked data: halos.yaml (design 7) after validation.

Everything here is the organisation's own text, not a user's. All values are canonical: comparing them with a
Launch or a canonical URL is plain equality.
"""

from datetime import date
from typing import Literal

import msgspec

Mode = Literal["allowlist", "warn"]
PackageType = Literal["npm", "pypi", "oci", "nuget"]


class Package(msgspec.Struct, frozen=True):
    """A package at one exact version, or an image digest.

    `identifier` and `version` are canonical (see `launch.Launch`); `sha256` is 64 hex digits (oci only);
    `version_text` is the version as written, for the words shown to people; `bin` is the program inside where
    its name differs from the package's.
    """

    type: PackageType
    identifier: str
    version: str = ""
    sha256: str = ""
    bin: str = ""
    version_text: str = ""


class Auth(msgspec.Struct, frozen=True):
    """How the managed client configuration authenticates to a remote server."""

    mode: Literal["none", "oauth", "halos", "clientIDMetadataURL", "enterprise"] = "none"
    client_id: str = ""
    scopes: tuple[str, ...] = ()
    url: str = ""


class Entry(msgspec.Struct, frozen=True):
    """One approved server. Exactly one of `package`, `url`, `command`, `definition_sha256` is set.

    `url` is as written, `canonical_url` what definitions are compared with. `definition_sha256` is also set
    for `command` entries (the hash of that command line). `args` is None (not pinned), "any", or the exact
    list. `env` is None, or the only keys that the definition may set. `rings` and `units` are empty when the
    key is absent (the entry then applies to every device).
    """

    id: str
    package: Package | None = None
    url: str = ""
    canonical_url: str = ""
    command: tuple[str, ...] = ()
    definition_sha256: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    args: tuple[str, ...] | Literal["any"] | None = None
    env: frozenset[str] | None = None
    tolerate: frozenset[str] = frozenset()
    rings: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    tools_allow: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    auth: Auth = Auth()
    owner: str = ""
    reason: str = ""
    expires: date | None = None
    line: int = 0


class Deny(msgspec.Struct, frozen=True):
    """Something known to be bad. Exactly one of the first four is set; a package may name one version."""

    package: Package | None = None
    host: str = ""
    url: str = ""
    definition_sha256: str = ""
    reason: str = ""


class Policy(msgspec.Struct, frozen=True):
    """A whole halos.yaml, as far as `mcp` and its scoping go.

    `units` maps each unit to its parent ("" for a root). `mirrors` maps a package type to the canonical URLs
    that are not a registry override. `digest` is `sha256:` and the hex digest of the file's bytes.
    """

    org: str = ""
    rings: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()
    mode: Mode = "allowlist"
    message: str = ""
    help_url: str = ""
    mirrors: tuple[tuple[PackageType, tuple[str, ...]], ...] = ()
    entries: tuple[Entry, ...] = ()
    deny: tuple[Deny, ...] = ()
    digest: str = ""


class Registry(msgspec.Struct, frozen=True):
    """A policy scoped to one device on one day: what `drift` compares with.

    `entries` apply here. `elsewhere` exist in the policy but not for this device's ring or units; `expired`
    would apply but have run out. Both only make the words better.
    """

    entries: tuple[Entry, ...] = ()
    elsewhere: tuple[Entry, ...] = ()
    expired: tuple[Entry, ...] = ()
    deny: tuple[Deny, ...] = ()
    mode: Mode = "allowlist"
    message: str = ""
    help_url: str = ""
    mirrors: tuple[tuple[PackageType, tuple[str, ...]], ...] = ()
    digest: str = ""


class Problem(msgspec.Struct, frozen=True, order=True):
    """One fault of a policy file; line and column start at 1."""

    line: int
    column: int
    message: str
