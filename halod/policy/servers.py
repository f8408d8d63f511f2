# SPDX-License-Identifier: Apache-2.0
"""`mcp.servers` and `mcp.deny`: each item becomes an Entry or a Deny, or says what is wrong with it.

Invariants:

1. An Entry pins exactly one thing; ids are unique; its rings and units exist.
2. Nothing in a policy is a secret, so nothing that may be one passes: header values are `${VAR}` references,
   `env` lists names, and neither is quoted when it is wrong.
3. An empty list where a list limits something is an error: it reads as "nothing" and might act as "no limit".
"""

import re
from datetime import date
from typing import Literal, cast

from halod.definition import stdio_sha256
from halod.policy.check import Checker, Fields, alternatives, key_node
from halod.policy.commands import read_arguments, read_command
from halod.policy.endpoints import read_denied_url, read_host, read_link, read_url
from halod.policy.model import Auth, Deny, Entry, Package
from halod.policy.packages import BASE_IMAGES, read_denied, read_pin
from halod.policy.yamlpos import Broken, Items, Node, Pairs, Text, kind, shown
from halod.secrets_hint import secret_in_header

PINS = ("package", "url", "command", "definitionSha256")
ENTRY_KEYS = (
    "id", *PINS, "headers", "args", "env", "tolerate", "rings", "units", "tools", "auth", "owner", "reason",
    "expires",
)  # fmt: skip
DENIED = ("package", "host", "url", "definitionSha256")
DENY_KEYS = (*DENIED, "reason")
TOLERABLE = (
    "host-mount", "privileged", "host-network", "env-injection", "path-override", "cwd-override", "from-flag",
    "package-flag",
)  # fmt: skip
AUTH_MODES = ("none", "oauth", "halos", "clientIDMetadataURL", "enterprise")
_AUTH_KEYS = {"clientID": ("oauth",), "scopes": ("oauth",), "url": ("clientIDMetadataURL", "enterprise")}

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Scopes:
    """The names an entry may refer to, and the ids taken so far."""

    def __init__(self, rings: tuple[str, ...], units: tuple[str, ...]) -> None:
        self.rings = dict.fromkeys(rings)
        self.units = dict.fromkeys(units)
        self.ids: dict[str, int] = {}


def read_entry(c: Checker, node: Node, scopes: Scopes) -> Entry | None:
    """Read one item of `mcp.servers`; None only when it has a problem."""
    fields = c.mapping(node, "server", ENTRY_KEYS)
    if fields is None:
        return None
    before = len(c.problems)
    entry_id = _read_id(c, node, fields, scopes)
    _exactly_one(c, node, fields, PINS, "a server")
    package, (url, canonical), command, sha256 = _read_pins(c, fields)
    allow, deny = _read_tools(c, fields)
    entry = Entry(
        id=entry_id or "",
        package=package,
        url=url,
        canonical_url=canonical,
        command=command,
        definition_sha256=stdio_sha256(command[0], command[1:]) if command else sha256,
        headers=_read_headers(c, fields),
        args=_read_args(c, fields, package),
        env=_read_env(c, fields),
        tolerate=_read_tolerate(c, fields),
        rings=_read_scope(c, fields, "rings", scopes.rings),
        units=_read_scope(c, fields, "units", scopes.units),
        tools_allow=allow,
        tools_deny=deny,
        auth=_read_auth(c, fields),
        owner=_optional_text(c, fields, "owner"),
        reason=_optional_text(c, fields, "reason"),
        expires=_read_date(c, fields["expires"]) if "expires" in fields else None,
        line=node.line,
    )
    return entry if len(c.problems) == before else None


def read_deny(c: Checker, node: Node) -> Deny | None:
    """Read one item of `mcp.deny`; None only when it has a problem."""
    fields = c.mapping(node, "deny", DENY_KEYS)
    if fields is None:
        return None
    before = len(c.problems)
    _exactly_one(c, node, fields, DENIED, "a deny item")
    deny = Deny(
        package=read_denied(c, fields["package"]) if "package" in fields else None,
        host=(read_host(c, fields["host"]) if "host" in fields else None) or "",
        url=(read_denied_url(c, fields["url"]) if "url" in fields else None) or "",
        definition_sha256=_read_hash(c, fields),
        reason=_optional_text(c, fields, "reason"),
    )
    return deny if len(c.problems) == before else None


def _read_id(c: Checker, node: Node, fields: Fields, scopes: Scopes) -> str | None:
    if "id" not in fields:
        c.add(node, "server: needs an id")
        return None
    field = fields["id"]
    text = c.text(field, "id")
    if text is None:
        return None
    if not _ID.fullmatch(text):
        c.add(field, f"id: {shown(text)} must match ^[a-z0-9][a-z0-9._-]{{0,62}}$")
        return None
    if text in scopes.ids:
        c.add(field, f"id: {shown(text)} is taken by the server on line {scopes.ids[text]}")
        return None
    scopes.ids[text] = node.line
    return text


def _exactly_one(c: Checker, node: Node, fields: Fields, names: tuple[str, ...], what: str) -> None:
    present = [name for name in names if name in fields]
    if not present:
        c.add(node, f"{what} needs exactly one of {alternatives(names)}; this one has none")
    elif len(present) > 1:
        second = max((key_node(node, name) for name in present), key=lambda key: (key.line, key.column))
        c.add(
            second, f"{what} needs exactly one of {alternatives(names)}; this one has {' and '.join(present)}"
        )


def _read_pins(c: Checker, fields: Fields) -> tuple[Package | None, tuple[str, str], tuple[str, ...], str]:
    package = read_pin(c, fields["package"]) if "package" in fields else None
    url = read_url(c, fields["url"]) if "url" in fields else None
    command = read_command(c, fields["command"]) if "command" in fields else None
    return package, url or ("", ""), command or (), _read_hash(c, fields)


def _read_hash(c: Checker, fields: Fields) -> str:
    field = fields.get("definitionSha256")
    return (c.sha256(field, "definitionSha256") or "") if field is not None else ""


def _optional_text(c: Checker, fields: Fields, name: str) -> str:
    return (c.text(fields[name], name) or "") if name in fields else ""


def _read_headers(c: Checker, fields: Fields) -> tuple[tuple[str, str], ...]:
    node = fields.get("headers")
    if node is None:
        return ()
    if not isinstance(node, Pairs):
        c.expected(node, "headers", "a mapping of header names to ${VAR} references")
        return ()
    headers: dict[str, tuple[str, str]] = {}
    for key, value in node.pairs:
        if not _HEADER.fullmatch(key.text):
            c.add(key, f"headers: {shown(key.text)} is not a header name")
        elif key.text.lower() in headers:
            c.add(key, f"headers: {shown(key.text)} is there in another case; header names ignore case")
        elif not isinstance(value, Text) or kind(value) != "text":
            c.expected(value, f"headers: {key.text}", "a ${VAR} reference")
        elif not _REFERENCE.fullmatch(value.text):
            why = "no value stands in a policy"
            if secret_in_header(key.text, value.text):
                why = (
                    "this is a credential in clear text: have it replaced, and keep the new one in a variable"
                )
            c.add(value, f"headers: {key.text}: expected a ${{VAR}} reference alone; {why}")
        else:
            headers[key.text.lower()] = (key.text, value.text)
    return tuple(headers.values())


def _read_args(
    c: Checker, fields: Fields, package: Package | None
) -> tuple[str, ...] | Literal["any"] | None:
    node = fields.get("args")
    if node is None:
        return None
    if not isinstance(node, Text):
        return read_arguments(c, node, "args")
    if node.text != "any":
        c.expected(node, "args", '"any" or a list') if kind(node) != "text" else c.add(
            node, f'args: expected "any" or a list, got {shown(node.text)}'
        )
        return None
    if package is not None and package.type == "oci" and package.identifier in BASE_IMAGES:
        c.add(node, "args: this image runs whatever its arguments say; list them exactly")
        return None
    return "any"


def _read_env(c: Checker, fields: Fields) -> frozenset[str] | None:
    node = fields.get("env")
    if node is None:
        return None
    names = c.words(node, "env", "variable names")
    if names is None:
        return None
    for name, where in names:
        if "=" in name:
            c.add(where, "env: expected a variable's name alone; no value stands in a policy")
        elif not _ENV_NAME.fullmatch(name):
            c.add(where, f"env: {shown(name)} is not the name of a variable")
    return frozenset(name for name, _ in names)


def _read_tolerate(c: Checker, fields: Fields) -> frozenset[str]:
    node = fields.get("tolerate")
    if node is None:
        return frozenset()
    good = set()
    for flag, where in c.words(node, "tolerate", "flags") or ():
        if flag in TOLERABLE:
            good.add(flag)
        else:
            hint = c.did_you_mean(flag, TOLERABLE, 0.8)
            c.add(
                where,
                f"tolerate: {shown(flag)} cannot be tolerated{hint or '; only ' + alternatives(TOLERABLE)}",
            )
    return frozenset(good)


def _read_scope(c: Checker, fields: Fields, name: str, known: dict[str, None]) -> tuple[str, ...]:
    node = fields.get(name)
    if node is None:
        return ()
    words = c.words(node, name, name)
    if isinstance(node, Items) and not node.items:
        c.add(node, f"{name}: an empty list reaches no device; leave the key out to reach every device")
    return c.known(words or (), known, name[:-1])


def _read_tools(c: Checker, fields: Fields) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    node = fields.get("tools")
    lists = c.mapping(node, "tools", ("allow", "deny")) if node is not None else None
    if not lists:
        return None, ()
    allow = c.words(lists["allow"], "tools.allow", "tool names") if "allow" in lists else None
    deny = (c.words(lists["deny"], "tools.deny", "tool names") if "deny" in lists else None) or []
    allowed = {name for name, _ in allow or ()}
    for name, where in deny:
        if name in allowed:
            c.add(where, f"tools: {shown(name)} is both allowed and denied")
    return None if allow is None else tuple(name for name, _ in allow), tuple(name for name, _ in deny)


def _read_auth(c: Checker, fields: Fields) -> Auth:
    node = fields.get("auth")
    auth = c.mapping(node, "auth", ("mode", *_AUTH_KEYS)) if node is not None else None
    if node is None or auth is None:
        return Auth()
    if "mode" not in auth:
        c.add(node, f"auth: needs a mode: {alternatives(AUTH_MODES)}")
        return Auth()
    mode = c.choice(auth["mode"], "auth.mode", AUTH_MODES)
    for name, modes in _AUTH_KEYS.items():
        if name in auth and mode is not None and mode not in modes:
            c.add(key_node(node, name), f"auth: {name} applies to mode {alternatives(modes)}, not {mode}")
    scopes = c.words(auth["scopes"], "auth.scopes", "scopes") if "scopes" in auth else None
    return Auth(
        mode=cast("Literal['none', 'oauth', 'halos', 'clientIDMetadataURL', 'enterprise']", mode or "none"),
        client_id=(c.text(auth["clientID"], "auth.clientID") if "clientID" in auth else None) or "",
        scopes=tuple(word for word, _ in scopes or ()),
        url=(read_link(c, auth["url"], "auth.url") if "url" in auth else None) or "",
    )


def _read_date(c: Checker, node: Node) -> date | None:
    """Read a day, plain or quoted; the entry still applies on it."""
    if isinstance(node, Broken):
        return None
    if not isinstance(node, Text) or kind(node) != "text":
        c.expected(node, "expires", "a date such as 2027-06-30")
        return None
    if _DATE.fullmatch(node.text):
        try:
            return date.fromisoformat(node.text)
        except ValueError:
            c.add(node, f"expires: there is no day {node.text}")
            return None
    c.add(node, f"expires: expected a date such as 2027-06-30, got {shown(node.text)}")
    return None
