# SPDX-License-Identifier: Apache-2.0
"""All files of one ring and its units, and the manifest that lists them.

Invariants:

1. Equal policies give equal bytes: the manifest has no time and no name of a machine.
2. An entry that `deny` takes back is rendered nowhere.
"""

import hashlib
from datetime import date
from typing import Final

import msgspec

from halod.policy.model import Policy
from halod.policy.rendering import claude_code, codex, copilot, cursor, gemini, opencode
from halod.policy.rendering.denial import is_denied
from halod.policy.rendering.model import SYSTEMS, Rendered, Request, System, pretty
from halod.policy.scope import scope
from halod.policy.warn import Denials

NAME: Final = "manifest.json"
VERSION: Final = 1
_HARNESSES: Final = (claude_code, codex, gemini, copilot, cursor, opencode)


class Listed(msgspec.Struct, frozen=True):
    """One file of a manifest; `sha256` is that of its bytes, in hex."""

    path: str
    owner: str
    mode: str
    sha256: str
    warnings: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True):
    """What a directory written by `halo plan` holds, and of which policy it was made.

    `warnings` has every warning once, also those of harnesses that have no file.
    """

    version: int
    org: str
    ring: str
    units: tuple[str, ...]
    mode: str
    digest: str
    files: tuple[Listed, ...]
    warnings: tuple[str, ...]


class Plan(msgspec.Struct, frozen=True):
    """The files, by path, and their manifest."""

    files: tuple[Rendered, ...]
    manifest: Manifest


def plan(
    policy: Policy,
    ring: str,
    units: tuple[str, ...],
    today: date,
    systems: tuple[System, ...] = SYSTEMS,
) -> Plan:
    """Render what each harness on `ring` and `units` gets on `today` (by UTC).

    Names that the policy does not know match nothing; see `scope.check_device`.
    """
    registry = scope(policy, ring, units, today)
    denials = Denials(registry.deny)
    kept, warnings = [], []
    for entry in registry.entries:
        if is_denied(entry, denials):
            warnings.append(
                f"policy: server {entry.id} is denied too, and deny goes first; it was not rendered"
            )
        else:
            kept.append(entry)
    request = Request(msgspec.structs.replace(registry, entries=tuple(kept)), systems)
    files: list[Rendered] = []
    for harness in _HARNESSES:
        output = harness.render(request)
        files += output.files
        warnings += output.warnings
    files.sort(key=lambda file: file.path)
    return Plan(
        tuple(files),
        Manifest(
            version=VERSION,
            org=policy.org,
            ring=ring,
            units=tuple(sorted(set(units))),
            mode=policy.mode,
            digest=policy.digest,
            files=tuple(map(_listed, files)),
            warnings=tuple(dict.fromkeys(warnings)),
        ),
    )


def encode(manifest: Manifest) -> bytes:
    """Write a manifest as JSON for people and programs."""
    return pretty(manifest)


def decode(data: bytes) -> Manifest | None:
    """Read a manifest; None for what is none of ours."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.version == VERSION else None


def _listed(file: Rendered) -> Listed:
    return Listed(file.path, file.owner, file.mode, hashlib.sha256(file.content).hexdigest(), file.warnings)
