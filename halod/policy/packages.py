# SPDX-License-Identifier: Apache-2.0
"""Package pins of a policy: type, identifier, exact version, image digest, program.

Invariants:

1. A Package that comes out of here names one thing: an exact version by the ecosystem's own rules, or an
   image digest. Its identifier and version are canonical, so that comparing them is plain equality.
2. What cannot be checked on a machine (the sha256 of an npm package) is refused rather than ignored.
"""

import re
from typing import cast

from halod.launch.runners import is_runner
from halod.launch.versions import canonical_identifier, exact_version
from halod.policy.check import Checker, Fields
from halod.policy.model import Package, PackageType
from halod.policy.yamlpos import Node, shown

PACKAGE_TYPES: tuple[PackageType, ...] = ("npm", "pypi", "oci", "nuget")
PIN_KEYS = ("type", "identifier", "version", "sha256", "bin")
DENY_KEYS = ("type", "identifier", "version", "sha256")

_LIBRARY = (
    "alpine", "amazoncorretto", "bash", "busybox", "debian", "docker", "eclipse-temurin", "fedora",
    "golang", "node", "openjdk", "perl", "php", "python", "ruby", "rust", "ubuntu",
)  # fmt: skip
BASE_IMAGES = frozenset(
    [
        "docker.io/astral/uv",
        "docker.io/denoland/deno",
        "docker.io/oven/bun",
        "ghcr.io/astral-sh/uv",
        *(f"docker.io/library/{name}" for name in _LIBRARY),
    ]
)
"""Images whose arguments are a command line of the caller's choice."""

_MOVING = frozenset({"*", "canary", "latest", "next", "stable"})
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_FLOATING_TAG = re.compile(r"(?:[^0-9]*|(?:.*[.])?[xX](?:[.-].*)?)")
_PARTIAL = re.compile(r"v?[0-9]+(?:\.[0-9]+)?")
_PREFIX = re.compile(r"(?:[=]{1,3}|[vV])\s*(?=[0-9])")
_PROGRAM = re.compile(r"[A-Za-z0-9@_][A-Za-z0-9@._+-]{0,127}")
_A = {"npm": "an npm", "pypi": "a pypi", "oci": "an oci", "nuget": "a nuget"}


def read_pin(c: Checker, node: Node) -> Package | None:
    """Read the package of an approved server: pinned, or a problem."""
    fields = c.mapping(node, "package", PIN_KEYS)
    if fields is None:
        return None
    kind = _type(c, node, fields)
    identifier = _identifier(c, node, fields, kind)
    version = version_text = sha256 = program = None
    if "version" in fields:
        version_text = c.literal(fields["version"], "version")
        version = version_text and _version(c, fields["version"], kind, version_text)
    elif kind is not None and kind != "oci":
        c.add(node, f"package: {_A[kind]} package needs an exact version")
    if "sha256" in fields:
        sha256 = _digest(c, fields["sha256"], kind)
    elif kind == "oci":
        c.add(node, "package: an oci package needs sha256, the image's digest: a tag can move")
    if "bin" in fields:
        program = _program(c, fields["bin"], kind)
    if kind is None or identifier is None:
        return None
    return Package(
        type=kind,
        identifier=identifier,
        version=version or "",
        sha256=sha256 or "",
        bin=program or "",
        version_text=version_text or "",
    )


def read_denied(c: Checker, node: Node) -> Package | None:
    """Read the package of a `deny` item: without a version every version is denied."""
    fields = c.mapping(node, "package", DENY_KEYS)
    if fields is None:
        return None
    kind = _type(c, node, fields)
    identifier = _identifier(c, node, fields, kind)
    version = version_text = sha256 = None
    if "version" in fields:
        version_text = c.literal(fields["version"], "version")
        version = version_text and _version(c, fields["version"], kind, version_text)
    if "sha256" in fields:
        sha256 = _digest(c, fields["sha256"], kind)
    if kind is None or identifier is None:
        return None
    return Package(
        type=kind,
        identifier=identifier,
        version=version or "",
        sha256=sha256 or "",
        version_text=version_text or "",
    )


def _type(c: Checker, node: Node, fields: Fields) -> PackageType | None:
    if "type" not in fields:
        c.add(node, "package: needs a type: npm, pypi, oci or nuget")
        return None
    return cast("PackageType | None", c.choice(fields["type"], "type", PACKAGE_TYPES))


def _identifier(c: Checker, node: Node, fields: Fields, kind: PackageType | None) -> str | None:
    if "identifier" not in fields:
        c.add(node, "package: needs an identifier, the package's name")
        return None
    field = fields["identifier"]
    text = c.text(field, "identifier")
    if text is None or kind is None:
        return text
    stray = _stray_version(kind, text)
    if stray:
        c.add(field, f"identifier: {shown(text)} holds {stray}")
        return None
    canonical = canonical_identifier(kind, text)
    if canonical is None:
        c.add(field, f"identifier: {shown(text)} is not {_name_of(kind)}")
    return canonical


def _stray_version(kind: PackageType, text: str) -> str:
    """Say what stands behind the name that belongs in a key of its own, or nothing."""
    if kind == "oci":
        if "@" in text:
            return "a digest; it belongs in sha256"
        if ":" in text.rsplit("/", 1)[-1]:
            return "a tag; it belongs in version"
        return ""
    behind = text[1:]  # an npm scope begins with @
    if "@" in behind or "==" in behind:
        return "a version; it belongs in version"
    return "an extra; leave it out" if kind == "pypi" and "[" in text else ""


def _name_of(kind: PackageType) -> str:
    if kind == "oci":
        return "an image name such as docker.io/acme/notes-mcp"
    return f"the name of {_A[kind]} package"


def _version(c: Checker, node: Node, kind: PackageType | None, text: str) -> str | None:
    """Make a version canonical, or say what is not exact about it."""
    if kind is None:
        return None
    fault = _version_fault(kind, text)
    if fault:
        c.add(node, f"version: {fault}")
        return None
    return text if kind == "oci" else exact_version(kind, text)


def _version_fault(kind: PackageType, text: str) -> str:
    said = shown(text)
    prefix = _PREFIX.match(text)
    if text.lower() in _MOVING:
        return f"{said} is not a version but moves; write the exact one"
    if kind == "oci":
        fixed = _TAG.fullmatch(text) and not _FLOATING_TAG.fullmatch(text)
        return "" if fixed else f"{said} is not the tag of one version, such as 1.2.0"
    if prefix:
        return f"write {said} without the {shown(prefix[0].strip())}"
    if exact_version(kind, text) is not None:
        return ""
    if kind == "npm" and _PARTIAL.fullmatch(text):
        return f"for npm {said} is a range; write all three numbers, such as 1.2.0"
    return f"{said} is not an exact {kind} version, such as 1.2.0"


def _digest(c: Checker, node: Node, kind: PackageType | None) -> str | None:
    sha256 = c.sha256(node, "sha256")
    if kind is not None and kind != "oci":
        c.add(node, f"sha256: applies to oci packages only; nothing on a machine could check it for {kind}")
        return None
    return sha256


def _program(c: Checker, node: Node, kind: PackageType | None) -> str | None:
    text = c.text(node, "bin")
    if text is None:
        return None
    if kind == "oci":
        c.add(node, "bin: does not apply to an image; see args")
    elif not _PROGRAM.fullmatch(text):
        c.add(node, f"bin: {shown(text)} is not the name of a program")
    elif is_runner(text):
        c.add(node, f"bin: {shown(text)} runs whatever its arguments say; name the package's own program")
    else:
        return text
    return None
