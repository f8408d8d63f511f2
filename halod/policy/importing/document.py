# SPDX-License-Identifier: Apache-2.0
"""The shapes of a server.json, old and new, and what is wrong with one (registry.md A to C).

Invariants:

1. `read` gives a Server or raises ImportRefused: no document makes it raise anything else.
2. What the publisher wrote and what the registry wrote are kept apart: the status is read from the envelope's
   `_meta`, never from the one inside `server`, and never from `server.status`.
3. A fault of one package or endpoint is that one's: it is listed with it, and the others can still be chosen.
"""

import re
from typing import Final, NoReturn, cast

from halod.policy.importing import parts
from halod.policy.importing.model import ImportRefused, Server, Status, Wanted
from halod.policy.importing.source import is_name
from halod.policy.importing.strictjson import parse
from halod.policy.yamlpos import shown

NEWEST: Final = "2025-12-11"
OLDEST: Final = "2025-09-16"
"""The first shape with names in camelCase."""
OFFICIAL_KEY: Final = "io.modelcontextprotocol.registry/official"
MAX_ITEMS: Final = 100
"""Packages, endpoints, or servers of a list: a registry's page has no more."""

_SCHEMA: Final = re.compile(
    r"https://static\.modelcontextprotocol\.io/schemas/([0-9]{4}-[0-9]{2}-[0-9]{2}|draft)/server\.schema\.json#?"
)
_MOMENT: Final = re.compile(r"[0-9TZ:.+-]{10,40}")
_OLD_NAMES: Final = frozenset({
    "version_detail", "registry_type", "registry_name", "registry_base_url", "file_sha256", "runtime_hint",
    "runtime_arguments", "package_arguments", "environment_variables", "transport_type",
})  # fmt: skip

Object = dict[str, object]


def read(data: bytes, wanted: Wanted | None = None) -> Server:
    """Read one document: an envelope, a list of them, or a bare server.json.

    `wanted` chooses from a list, and what comes out is that name, byte for byte, and that version.

    Raises:
        ImportRefused: it is none of these, has a fault, or is another server.
    """
    value = parse(data)
    if not isinstance(value, dict):
        _refuse("is not a JSON object")
    notes: list[str] = []
    if "servers" in value:
        value = _one_of(value, wanted, notes)
    meta: object = None
    bare = "server" not in value
    if not bare:
        meta = value.get("_meta")
        value = value["server"]
        if not isinstance(value, dict):
            _refuse("has a server that is not an object")
    server = _server(value, meta, notes)
    if wanted is not None:
        _check_wanted(server, wanted)
    return server


def _refuse(what: str, advice: str = "") -> NoReturn:
    raise ImportRefused(f"the document {what}", advice=advice)


def _one_of(value: Object, wanted: Wanted | None, notes: list[str]) -> Object:
    """Take the one item of a list, or the one that is wanted."""
    items = value["servers"]
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        _refuse(f"has servers that are no list of at most {MAX_ITEMS}")
    found = [item for item in items if isinstance(item, dict)]
    metadata = value.get("metadata")
    more = isinstance(metadata, dict) and bool(metadata.get("nextCursor") or metadata.get("next_cursor"))
    if wanted is not None:
        found = [item for item in found if _is_wanted(item, wanted)]
    if len(found) == 1 and (wanted is not None or len(items) == 1):
        if more:
            notes.append("the list has further pages, which were not looked at")
        return found[0]
    rows = tuple(f"  {name} {version}" for name, version in map(_title, found))
    if found:
        raise ImportRefused(
            f"the document lists {len(found)} servers",
            advice="choose one with --server NAME@VERSION",
            rows=rows,
        )
    _refuse("lists no such server" if wanted is not None else "lists no server")


def _title(item: Object) -> tuple[str, str]:
    inside = item.get("server")
    server = inside if isinstance(inside, dict) else item
    name, version = server.get("name"), server.get("version")
    return (
        name[:200] if isinstance(name, str) else "(no name)",
        version[:255] if isinstance(version, str) else "(no version)",
    )


def _is_wanted(item: Object, wanted: Wanted) -> bool:
    name, version = _title(item)
    return name == wanted.name and wanted.version in {"", version}


def _check_wanted(server: Server, wanted: Wanted) -> None:
    if server.name != wanted.name:
        _refuse(f"is about another server, {shown(server.name)}")
    if wanted.version and server.version != wanted.version:
        _refuse(f"is about another version, {shown(server.version)}")


def _server(value: Object, meta: object, notes: list[str]) -> Server:
    schema = _schema(value, notes)
    _refuse_snake_case(value)
    if not isinstance(value.get("name"), str) or "version" not in value:
        _refuse("is no server.json: it has no name and version")
    name, version = _text(value, "name", 200), _text(value, "version", 255)
    if not is_name(name):
        _refuse(f"has a name that is none, {shown(name)}", "a name is NAMESPACE/NAME")
    if not version or parts.is_template(version):
        _refuse(f"has a version that is none, {shown(version)}", "the files of a repository hold templates")
    status, message, published = _official(meta)
    return Server(
        name=name,
        version=version,
        schema=schema,
        packages=tuple(
            parts.candidate(number, item, schema) for number, item in enumerate(_items(value, "packages"), 1)
        ),
        remotes=tuple(parts.remote(number, item) for number, item in enumerate(_items(value, "remotes"), 1)),
        status=status,
        status_message=message,
        published=published,
        notes=tuple(notes),
    )


def _schema(value: Object, notes: list[str]) -> str:
    text = value.get("$schema")
    if text is None:
        return ""
    match = _SCHEMA.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        notes.append("the document names a $schema that is not one of server.json")
        return ""
    if match[1] < OLDEST:
        _refuse_old()
    if match[1] > NEWEST:
        notes.append(f"the document has the shape {match[1]}; this release knows those up to {NEWEST}")
    return match[1]


def _refuse_old() -> NoReturn:
    _refuse(
        "has the shape of 2025-07-09, with names such as registry_type",
        f"a version published since {OLDEST} has the names of today: import that one",
    )


def _refuse_snake_case(value: Object) -> None:
    objects = [value]
    for key in ("packages", "remotes"):
        items = value.get(key)
        objects += (
            [item for item in items[:MAX_ITEMS] if isinstance(item, dict)] if isinstance(items, list) else []
        )
    if any(not _OLD_NAMES.isdisjoint(one) for one in objects):
        _refuse_old()


def _text(value: Object, key: str, limit: int) -> str:
    text = value.get(key, "")
    if not isinstance(text, str) or len(text) > limit:
        _refuse(f"has a {key} that is no text of at most {limit} characters")
    return text


def _items(value: Object, key: str) -> list[object]:
    items = value.get(key)
    if items is None:
        return []
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        _refuse(f"has {key} that are no list of at most {MAX_ITEMS}")
    return items


def _official(meta: object) -> tuple[Status, str, str]:
    """Read what the registry says of a version: its status, a message, when it was published."""
    if meta is not None and not isinstance(meta, dict):
        _refuse("has a _meta that is not an object")
    official = (meta or {}).get(OFFICIAL_KEY)
    if official is None:
        return "", "", ""
    if not isinstance(official, dict):
        _refuse("has a registry's _meta that is not an object")
    status = official.get("status")
    if not isinstance(status, str) or status not in {"active", "deprecated", "deleted"}:
        said = shown(status) if isinstance(status, str) else "nothing"
        _refuse(f"has a status that is unknown, {said}", "expected active, deprecated or deleted")
    message, published = official.get("statusMessage"), official.get("publishedAt")
    return (
        cast("Status", status),
        message[:500] if isinstance(message, str) else "",
        published if isinstance(published, str) and _MOMENT.fullmatch(published) else "",
    )
