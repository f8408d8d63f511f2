# SPDX-License-Identifier: Apache-2.0
"""`packages[]` and `remotes[]` of a server.json: each item read by itself, with its own fault.

Total: whatever an item is, a Candidate or Remote comes out, and one that cannot be relied on has a `fault`.
"""

import re
from typing import Final

from halod.launch.words import has_placeholder
from halod.policy.importing.model import Argument, Candidate, Remote, Variable
from halod.status import has_token_prefix

MAX_TEXT: Final = 2048
"""Characters of an identifier, a URL or one word of an argument."""
MAX_ARGUMENTS: Final = 200
"""Arguments, variables or headers of one item."""

_ANGLES: Final = re.compile(r"<<.*?>>|<[^<>]*>")
_HOST_ALONE: Final = re.compile(r"https://([A-Za-z0-9.-]+(?::[0-9]{1,5})?)/?")
_LAST_OCI_WITH_VERSION: Final = "2025-09-29"
"""Later shapes have the tag in the identifier (registry.md B)."""


class _ItemFault(Exception):
    """Something of one item is not as it must be."""


def is_template(text: str) -> bool:
    """Tell whether a text is still to be filled in: `${VERSION}`, `<<Version>>`, `{version}`."""
    return has_placeholder(text) or _ANGLES.search(text) is not None


def candidate(number: int, item: object, schema: str) -> Candidate:
    """Read one of `packages`; `schema` is the date of the document's shape."""
    kind = identifier = ""
    try:
        fields = _object(item)
        kind = _text(fields, "registryType")
        identifier = _text(fields, "identifier")
        version, base = _text(fields, "version"), _text(fields, "registryBaseUrl")
        _need(kind and identifier, "it has no registryType and identifier")
        _need(not is_template(identifier + version), "it holds a template that is not filled in")
        if kind == "oci":
            identifier, version, base = _image(identifier, version, base, schema)
        return Candidate(
            number=number,
            type=kind,
            identifier=identifier,
            version=version,
            base=base,
            sha256=_text(fields, "fileSha256"),
            hint=_text(fields, "runtimeHint"),
            runtime=_arguments(fields, "runtimeArguments"),
            arguments=_arguments(fields, "packageArguments"),
            environment=_variables(fields, "environmentVariables"),
        )
    except _ItemFault as fault:
        return Candidate(number=number, type=kind, identifier=identifier, fault=str(fault))


def remote(number: int, item: object) -> Remote:
    """Read one of `remotes`."""
    kind = url = ""
    try:
        fields = _object(item)
        kind = _text(fields, "type")
        url = _text(fields, "url")
        _need(kind and url, "it has no type and url")
        return Remote(number=number, type=kind, url=url, headers=_variables(fields, "headers"))
    except _ItemFault as fault:
        return Remote(number=number, type=kind, url=url, fault=str(fault))


def _image(identifier: str, version: str, base: str, schema: str) -> tuple[str, str, str]:
    """Write an image reference of before 2025-10-11 as one: host, name and tag stood in three places."""
    if not version and not base:
        return identifier, "", ""
    if schema > _LAST_OCI_WITH_VERSION:
        raise _ItemFault("it is an image with a version or registryBaseUrl beside its identifier")
    if base:
        host = _HOST_ALONE.fullmatch(base)
        if host is None:
            raise _ItemFault("its registryBaseUrl is not that of a host")
        if not identifier.startswith(f"{host[1]}/"):
            identifier = f"{host[1]}/{identifier}"
    name, at, digest = identifier.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if version and tag and tag != version:
        raise _ItemFault("its version is not the tag of its identifier")
    if version and not tag:
        name = f"{name}:{version}"
    return f"{name}{at}{digest}", "", ""


def _need(condition: object, fault: str) -> None:
    if not condition:
        raise _ItemFault(fault)


def _object(item: object) -> dict[str, object]:
    if not isinstance(item, dict):
        raise _ItemFault("it is not an object")
    return item


def _text(fields: dict[str, object], key: str) -> str:
    text = fields.get(key)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise _ItemFault(f"its {key} is no text of at most {MAX_TEXT} characters")
    return text


def _list(fields: dict[str, object], key: str) -> list[dict[str, object]]:
    items = fields.get(key)
    if items is None:
        return []
    if not isinstance(items, list) or len(items) > MAX_ARGUMENTS:
        raise _ItemFault(f"its {key} are no list of at most {MAX_ARGUMENTS}")
    return [_object(item) for item in items]


def _arguments(fields: dict[str, object], key: str) -> tuple[Argument, ...]:
    return tuple(_argument(item) for item in _list(fields, key))


def _argument(item: dict[str, object]) -> Argument:
    """Give an argument's words: a name and its value are two, as clients write them."""
    name = _text(item, "name") if item.get("type") == "named" else ""
    value = _text(item, "value") or _text(item, "default")
    secret = item.get("isSecret") is True or has_token_prefix(value)
    if not value and not name:
        value = f"<{_text(item, 'valueHint') or 'value'}>"
    words = [name] if name else []
    if value:
        words.append("<secret>" if secret else value)
    return Argument(tuple(words), secret)


def _variables(fields: dict[str, object], key: str) -> tuple[Variable, ...]:
    return tuple(
        Variable(
            name=_text(item, "name"),
            required=item.get("isRequired") is True,
            secret=item.get("isSecret") is True,
            fixed=bool(item.get("value")),
        )
        for item in _list(fields, key)
    )
