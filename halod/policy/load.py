# SPDX-License-Identifier: Apache-2.0
"""halos.yaml from bytes or a path to a checked Policy.

Invariants:

1. `parse` gives a Policy without a fault or raises PolicyError with every fault there is, in file order.
2. Keys beside `org`, `rings`, `units` and `mcp` belong to others and are left alone; inside `mcp` and in the
   units every key is known or is an error.
3. `load` is the only function here that touches a file, and reads MAX_BYTES of it at most.
"""

import errno
import os
from hashlib import sha256
from typing import cast

from halod.errors import UsageError
from halod.policy.check import Checker, Fields, optional_items
from halod.policy.endpoints import read_link, read_url
from halod.policy.model import Deny, Entry, Mode, PackageType, Policy, Problem
from halod.policy.packages import PACKAGE_TYPES
from halod.policy.servers import Scopes, read_deny, read_entry
from halod.policy.units import Units, read_units
from halod.policy.yamlpos import Node, Pairs, is_null, read

MAX_BYTES = 4 * 1024 * 1024
"""A policy of 10,000 servers is below 2 MiB."""
MODES = ("allowlist", "warn")
MCP_KEYS = ("mode", "message", "helpURL", "registries", "servers", "deny")
OWN_KEYS = ("org", "rings", "units", "mcp")


class PolicyError(UsageError):
    """A policy with faults: `problems` has all in file order, `name` is the file as the user named it."""

    code = "policy"

    def __init__(self, name: str, problems: list[Problem]) -> None:
        self.name = name
        self.problems = sorted(set(problems))
        lines = self.lines()
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        super().__init__(lines[0] + more, advice="halo validate shows every fault" if more else "")

    def lines(self) -> list[str]:
        """Give one line per fault: `file:line:column: message`."""
        return [f"{self.name}:{p.line}:{p.column}: {p.message}" for p in self.problems]


def load(path: str) -> Policy:
    """Read and check the policy file at `path`.

    Raises UsageError when the file cannot be read, PolicyError when it has faults.
    """
    return parse(read_file(path), path)


def parse(data: bytes, name: str) -> Policy:
    """Check the bytes of a policy; `name` is what messages call it. Raises PolicyError with all faults."""
    policy, _, problems = examine(data)
    if policy is None:
        raise PolicyError(name, problems)
    return policy


def examine(
    data: bytes, rings: tuple[str, ...] | None = None
) -> tuple[Policy | None, Node | None, list[Problem]]:
    """Check the bytes of a policy: the policy (None when it has faults), its tree, the faults.

    `rings` are those that Ring documents beside the policy define (`halod.policy.repository`); a ring that the
    file lists is then one of them. With None the file's own list counts, as it does for an agent.
    """
    if len(data) > MAX_BYTES:
        return None, None, [Problem(1, 1, f"larger than {MAX_BYTES // 1024 // 1024} MiB; this is no policy")]
    document = read(data)
    root, c = document.root, Checker(document.problems)
    if root is None:
        if not c.problems:
            c.problems.append(
                Problem(1, 1, "the file is empty; a policy is a mapping with org, rings, units and mcp")
            )
        return None, None, c.problems
    if not isinstance(root, Pairs):
        c.expected(root, "policy", "a mapping with org, rings, units and mcp")
        return None, None, c.problems
    policy = _read_policy(c, root, "sha256:" + sha256(data).hexdigest(), rings)
    return (None if c.problems else policy), root, c.problems


def read_file(path: str) -> bytes:
    """Read a policy's bytes, one more than MAX_BYTES at most. Raises UsageError when that fails."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise UsageError(
            f"the policy {path} is a directory", advice="name the file, such as halos.yaml in it"
        ) from None
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else errno.EINVAL
        raise UsageError(
            f"cannot read the policy {path}: {os.strerror(number or errno.EIO)}",
            advice="check the path and that this account may read it",
        ) from None


def _read_policy(c: Checker, root: Pairs, digest: str, defined: tuple[str, ...] | None) -> Policy:
    fields: Fields = {key.text: value for key, value in root.pairs}
    rings = _read_rings(c, fields, defined)
    units = read_units(c, fields["units"]) if "units" in fields else Units()
    scopes = Scopes(rings, units.names)
    mcp: Fields = {}
    if "mcp" in fields and not is_null(fields["mcp"]):
        mcp = c.mapping(fields["mcp"], "mcp", MCP_KEYS) or {}
    entries: list[Entry] = []
    for node in optional_items(c, mcp, "servers", "servers"):
        entry = read_entry(c, node, scopes)
        if entry is not None:
            entries.append(entry)
    deny: list[Deny] = []
    for node in optional_items(c, mcp, "deny", "deny items"):
        item = read_deny(c, node)
        if item is not None:
            deny.append(item)
    return Policy(
        org=(c.text(fields["org"], "org", limit=128) if "org" in fields else None) or "",
        rings=rings,
        units=units.parents,
        mode=cast("Mode", (c.choice(mcp["mode"], "mode", MODES) if "mode" in mcp else None) or "allowlist"),
        message=(c.text(mcp["message"], "message") if "message" in mcp else None) or "",
        help_url=(read_link(c, mcp["helpURL"], "helpURL") if "helpURL" in mcp else None) or "",
        mirrors=_read_mirrors(c, mcp),
        entries=tuple(entries),
        deny=tuple(deny),
        digest=digest,
    )


def _read_rings(c: Checker, fields: Fields, defined: tuple[str, ...] | None) -> tuple[str, ...]:
    node = fields.get("rings")
    listed = [] if node is None or is_null(node) else c.words(node, "rings", "ring names", limit=64) or []
    if defined is None:
        return tuple(name for name, _ in listed)
    c.known(listed, dict.fromkeys(defined), "ring")
    return defined


def _read_mirrors(c: Checker, mcp: Fields) -> tuple[tuple[PackageType, tuple[str, ...]], ...]:
    node = mcp.get("registries")
    if node is None or is_null(node):
        return ()
    lists = c.mapping(node, "registries", PACKAGE_TYPES) or {}
    mirrors = []
    for kind_of, value in lists.items():
        what = f"registries.{kind_of}"
        items = [] if is_null(value) else c.items(value, what, "https URLs") or []
        urls = [read_url(c, item, what) for item in items]
        mirrors.append((cast("PackageType", kind_of), tuple(url[1] for url in urls if url is not None)))
    return tuple(mirrors)
