# SPDX-License-Identifier: Apache-2.0
"""What is allowed in a policy and yet hardly meant: warnings for the person who edits it.

Invariants:

1. A warning never changes what a policy does; only `halo validate` computes them, so an agent does not pay.
2. They are taken of a policy without faults, so every lookup here finds what it expects; `slips` alone, which may
   be why there are faults, are taken of any.
"""

from collections.abc import Iterable, Iterator
from datetime import date

from halod.launch.urls import parse_url
from halod.launch.versions import same_version
from halod.policy.check import Fields, key_node, nearest
from halod.policy.load import MCP_KEYS, OWN_KEYS
from halod.policy.model import Deny, Entry, Package, Policy, Problem
from halod.policy.yamlpos import Items, Node, Pairs, Text, shown
from halod.secrets_hint import secret_in_url, secret_in_words

_URL_ONLY = ("headers", "auth")
_STDIO_ONLY = ("args", "env", "tolerate")
_SHARED_DIRECTORIES = ("/tmp/", "/var/tmp/", "/dev/shm/", "/private/tmp/")  # noqa: S108 - named to warn of them
_DECISIVE = frozenset({
    "BASH_ENV", "CLASSPATH", "DOCKER_HOST", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "ENV",
    "GIT_SSH_COMMAND", "HOME", "JAVA_TOOL_OPTIONS", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "NODE_OPTIONS", "NODE_PATH", "PATH", "PERL5LIB", "PERL5OPT", "PYTHONHOME", "PYTHONPATH",
    "PYTHONSTARTUP", "RUBYLIB", "RUBYOPT",
})  # fmt: skip
"""Variables whose value alone decides what code runs."""
_MISTAKABLE_LENGTH = 3


def warnings(policy: Policy, root: Node, today: date) -> list[Problem]:
    """Find what the author should look at again, in file order. `root` is the tree `policy` was read from."""
    fields = _fields(root)
    found = slips(root)
    mcp = fields.get("mcp")
    if not policy.entries:
        where = mcp if mcp is not None else root
        found.append(_at(key_node(root, "mcp") if mcp is not None else where, "approves no server"))
    if mcp is None:
        return sorted(found)
    nodes = _items(_fields(mcp).get("servers"))
    denials = Denials(policy.deny)
    for entry, node in zip(policy.entries, nodes, strict=True):
        found.extend(_of_entry(entry, node, today))
        if denials.take_back(entry):
            found.append(_at(node, f"server {shown(entry.id)} is also denied, and deny goes first"))
    for deny, node in zip(policy.deny, _items(_fields(mcp).get("deny")), strict=True):
        package = deny.package
        if package is not None and package.type == "oci" and package.version and not package.sha256:
            found.append(
                _at(key_node(node, "package"), "denies this tag only; the image's other names are not denied")
            )
    return sorted(found)


def slips(root: Node) -> list[Problem]:
    """Name top-level keys that are left alone and look like a slip of one that is not: `ring` leaves no ring known."""
    found = []
    present = _fields(root)
    absent = tuple(key for key in OWN_KEYS if key not in present)
    for key in root.pairs if isinstance(root, Pairs) else ():
        name = key[0].text
        if name in OWN_KEYS:
            continue
        if name in MCP_KEYS:
            found.append(_at(key[0], f"{shown(name)} is left alone here; did you mean mcp.{name}?"))
            continue
        near = nearest(name, absent, 0.65) if len(name) >= _MISTAKABLE_LENGTH and absent else None
        if near:
            found.append(_at(key[0], f"{shown(name)} is left alone; did you mean {shown(near)}?"))
    return found


def _of_entry(entry: Entry, node: Node, today: date) -> list[Problem]:
    found = []
    name = f"server {shown(entry.id)}"
    if entry.expires is not None and today > entry.expires:
        found.append(
            _at(key_node(node, "expires"), f"{name} expired on {entry.expires}; it approves nothing")
        )
    what, useless = _without_effect(entry)
    found.extend(
        _at(key_node(node, key), f"{name}: {key} does nothing for a {what}")
        for key in useless
        if key in _fields(node)
    )
    if entry.tools_allow == ():
        found.append(_at(key_node(node, "tools"), f"{name}: tools.allow is empty, so no tool is allowed"))
    found.extend(
        _at(key_node(node, "env"), f"{name}: whoever sets {key} decides what runs, whatever the pin says")
        for key in sorted((entry.env or frozenset()) & _DECISIVE)
    )
    if entry.command and entry.command[0].startswith(_SHARED_DIRECTORIES):
        found.append(
            _at(key_node(node, "command"), f"{name}: any user can replace a program in this directory")
        )
    found.extend(_credentials(entry, node, name))
    found.extend(_of_package(entry, node, name))
    return found


def _credentials(entry: Entry, node: Node, name: str) -> list[Problem]:
    """Find what visibly carries a credential: many read a policy, and it stays in the repository's history."""
    args = entry.args if isinstance(entry.args, tuple) else ()
    visible = {
        "url": secret_in_url(entry.url),
        "command": secret_in_words(entry.command),
        "args": secret_in_words(args),
    }
    said = "carries a credential in clear text; have it replaced, and refer to the new one by a variable"
    return [_at(key_node(node, key), f"{name}: {key} {said}") for key, found in visible.items() if found]


def _without_effect(entry: Entry) -> tuple[str, tuple[str, ...]]:
    """Name the kind of pin and the keys that say nothing beside it."""
    if entry.url:
        return "url", _STDIO_ONLY
    if entry.package:
        return "package", _URL_ONLY
    return ("command", (*_URL_ONLY, "args")) if entry.command else ("definitionSha256", ("args",))


def _of_package(entry: Entry, node: Node, name: str) -> list[Problem]:
    written = _fields(_fields(node).get("package")).get("identifier")
    if entry.package is None or entry.package.type != "oci" or not isinstance(written, Text):
        return []
    canonical = entry.package.identifier
    if written.text.lower() == canonical:
        return []
    return [_at(written, f"{name}: the image's registry is not written; it is taken as {canonical}")]


class Denials:
    """`deny` by what it denies: thousands of items cost each of thousands of servers one look."""

    def __init__(self, deny: Iterable[Deny]) -> None:
        self._packages: dict[tuple[str, str], list[Package]] = {}
        self._others: set[tuple[str, str]] = set()
        for one in deny:
            if one.package is not None:
                key = (one.package.type, one.package.identifier)
                self._packages.setdefault(key, []).append(one.package)
            elif one.definition_sha256:
                self._others.add(("definition", one.definition_sha256))
            else:
                self._others.add(("url", one.url) if one.url else ("host", one.host))

    def take_back(self, entry: Entry) -> bool:
        """Whether an item takes back what an entry approves."""
        package = entry.package
        if package is not None:
            listed = self._packages.get((package.type, package.identifier), ())
            if any(_denies_package(one, package) for one in listed):
                return True
        return not self._others.isdisjoint(_names(entry))


def _names(entry: Entry) -> Iterator[tuple[str, str]]:
    """Give the words by which an item other than of a package would deny an entry."""
    yield "definition", entry.definition_sha256
    if entry.url:
        yield "url", entry.canonical_url
        parts = parse_url(entry.url)
        if parts is not None:
            yield "host", parts.host
            yield "host", f"{parts.host}:{parts.port or 443}"


def _denies_package(denied: Package, package: Package) -> bool:
    """Whether an item of the same package denies this version or image of it."""
    if not denied.version and not denied.sha256:
        return True
    same = bool(denied.version) and same_version(denied.type, denied.version, package.version)
    return same or (bool(denied.sha256) and denied.sha256 == package.sha256)


def _fields(node: Node | None) -> Fields:
    return {key.text: value for key, value in node.pairs} if isinstance(node, Pairs) else {}


def _items(node: Node | None) -> list[Node]:
    return node.items if isinstance(node, Items) else []


def _at(node: Node, message: str) -> Problem:
    return Problem(node.line, node.column, message)
