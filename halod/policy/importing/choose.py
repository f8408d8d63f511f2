# SPDX-License-Identifier: Apache-2.0
"""What of a server becomes the pin: one package, or one endpoint, and what may not be pinned (registry.md C).

Invariants:

1. Nothing is chosen because it stands first: where several could be meant, all are listed and nothing is pinned.
2. A pin that comes out passed the reader of policies; what it refuses is refused here with its words.
3. An image is pinned by its digest only, and two digests that differ are a fault, not a choice.
"""

import re
from hashlib import sha256 as _sha256
from typing import Final

import msgspec

from halod.launch.urls import canonical_url, parse_url
from halod.launch.versions import canonical_identifier, reference
from halod.policy.importing import entry, naming
from halod.policy.importing.model import Candidate, ImportRefused, Remote, Server
from halod.policy.importing.naming import STREAMABLE, SUPPORTED
from halod.policy.importing.parts import is_template
from halod.policy.wildcards import fills
from halod.policy.yamlpos import shown

KNOWN_ONLY: Final = ("mcpb", "cargo", "go")
"""Types that the registry has and a policy cannot pin yet."""

# The bases that a document may name, each by the sha256 of its URL without a slash at the end: the public registry of
# each type, two spellings of NuGet's.
PUBLIC_BASES: Final = {
    "npm": {"036b43b16792c643378e95923ed2f4cc78e800de141b764aeea70d47580396df"},
    "pypi": {"b4c93a4591f5e6ddfc66b8a35a37ab125d5d352002bffbc5e9293a87fe06a8ca"},
    "nuget": {
        "670c1461c29885f9aa22c281d8b7da90845b38e4ae9265d9d62137bea582f46f",
        "d63b5c53b226459c28f82c9210351684e8b2ddd4f7e7c6066180c73e6c81458f",
    },
}
_SHA256: Final = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")


class Pin(msgspec.Struct, frozen=True):
    """What is pinned: the fields of an entry after its id, and the part of the document that they are of."""

    fields: dict[str, str | dict[str, str]]
    candidate: Candidate | None = None
    remote: Remote | None = None
    notes: tuple[str, ...] = ()


def admit(server: Server, *, by_name: bool, allow_deprecated: bool) -> list[str]:
    """Decide by the registry's status whether a version is imported; give what is to be said of it.

    Raises:
        ImportRefused: it is deleted, deprecated without `allow_deprecated`, or was asked for by name from a
            registry that does not tell.
    """
    if server.status == "deleted":
        raise ImportRefused("the registry has deleted this version")
    if server.status == "deprecated":
        why = f": {server.status_message}" if server.status_message else ""
        if not allow_deprecated:
            raise ImportRefused(
                f"this version is deprecated{why}", advice="--allow-deprecated imports it all the same"
            )
        return [f"warning: this version is deprecated{why}"]
    if not server.status and by_name:
        raise ImportRefused(
            "the registry does not tell the status of this version",
            advice="save the document and import the file",
        )
    return (
        []
        if server.status
        else ["not verified: the status; the document is not a registry's answer that tells it"]
    )


def choose_package(server: Server, which: str = "", sha256: str = "") -> Pin:
    """Choose a package: the one that `which` names (`naming.fitting`), else the only one there is.

    Raises:
        ImportRefused: none or several fit, or the one that fits cannot be pinned.
    """
    kind = "" if naming.is_number(which) else which.partition("=")[0]
    if kind in KNOWN_ONLY:
        raise ImportRefused(
            f"{kind} packages cannot be pinned yet", advice=f"choose one of {', '.join(SUPPORTED)}"
        )
    fit = naming.fitting(server.packages, which)
    if not fit:
        raise _none(server, which, kind)
    if len(fit) > 1:
        raise ImportRefused(
            f"there are {len(fit)} packages to choose from",
            advice="choose one with the --package that stands beside it",
            rows=rows(server),
        )
    chosen = fit[0]
    if chosen.type not in SUPPORTED:
        raise ImportRefused(
            f"package {chosen.number} is of the type {shown(chosen.type)}, which cannot be pinned yet",
            advice=f"choose one of {', '.join(SUPPORTED)}",
        )
    if chosen.fault:
        raise ImportRefused(f"package {chosen.number} cannot be pinned: {chosen.fault}")
    return _image(chosen, sha256) if chosen.type == "oci" else _versioned(chosen, sha256)


def choose_remote(server: Server, which: str = "") -> Pin:
    """Choose an endpoint: by number, by its URL, by a URL that fills in its template, or the only one there is.

    Raises:
        ImportRefused: none or several fit, or its URL cannot be pinned.
    """
    speaking = [one for one in server.remotes if one.type == STREAMABLE]
    if not speaking:
        raise ImportRefused("the server has no streamable-http endpoint", rows=rows(server))
    url = ""
    if naming.is_number(which):
        fit = [one for one in server.remotes if str(one.number) == which]
    elif which:
        url = _plain_url(which, "the URL of --remote")
        fit = [one for one in speaking if _same_url(one.url, url)] or [
            one for one in speaking if fills(one.url, url)
        ]
    else:
        fit = speaking
    if len(fit) != 1:
        what = f"there are {len(fit)} endpoints to choose from" if fit else "the server has no such endpoint"
        raise ImportRefused(
            what, advice="choose one with the --remote that stands beside it, or its URL", rows=rows(server)
        )
    chosen = fit[0]
    if chosen.fault or chosen.type != STREAMABLE:
        fault = chosen.fault or f"it speaks {shown(chosen.type)}, and only {STREAMABLE} can be pinned"
        raise ImportRefused(f"endpoint {chosen.number} cannot be pinned: {fault}")
    return _endpoint(chosen, url)


def rows(server: Server) -> tuple[str, ...]:
    """List everything that the document offers, one line each, with the option that chooses it where one can."""
    options = {**naming.options(server.packages), **naming.remote_options(server.remotes)}
    return tuple(f"  {row(one)}  {options.get(one, '')}".rstrip() for one in offers(server))


def offers(server: Server) -> tuple[Candidate | Remote, ...]:
    """Give everything that the document offers, in its order."""
    return server.packages + server.remotes


def row(one: Candidate | Remote) -> str:
    """Say in one line what a package or endpoint is, and why it cannot be pinned."""
    flaw = f" (refused: {one.fault})" if one.fault else ""
    if isinstance(one, Remote):
        return f"endpoint {one.number}: {shown(one.type)} {shown(one.url, 200)}{flaw}"
    version = f" {shown(one.version)}" if one.version else ""
    note = "" if one.type in SUPPORTED else " (cannot be pinned yet)"
    if one.type in PUBLIC_BASES and one.base and not _is_public(one.type, one.base):
        note = " (of another registryBaseUrl than the public one)"
    return f"package {one.number}: {shown(one.type)} {shown(one.identifier, 200)}{version}{note}{flaw}"


def digest(text: str) -> str:
    """Read --sha256: 64 hex digits in either case, with or without `sha256:`.

    Raises:
        ImportRefused: it is something else.
    """
    match = _SHA256.fullmatch(text)
    if match is None:
        raise ImportRefused("--sha256 expects 64 hex digits, with or without sha256: in front")
    return match[1].lower()


def _none(server: Server, which: str, kind: str) -> ImportRefused:
    listed = rows(server)
    if kind and kind not in SUPPORTED:
        return ImportRefused(
            f"there is no package type {shown(kind)}", advice=f"one of {', '.join(SUPPORTED)}"
        )
    if which:
        return ImportRefused("the server has no such package", rows=listed)
    if server.packages:
        kinds = ", ".join(
            sorted({one.type if one.type in KNOWN_ONLY else "unknown" for one in server.packages})
        )
        return ImportRefused(f"packages of these types cannot be pinned yet: {kinds}", rows=listed)
    advice = "--remote pins an endpoint" if server.remotes else ""
    return ImportRefused("the server has no package", advice=advice, rows=listed)


def _versioned(one: Candidate, sha256: str) -> Pin:
    """Pin an npm, PyPI or NuGet package by its exact version."""
    if sha256:
        raise ImportRefused(f"--sha256 is for images; nothing could check it for {one.type}")
    if one.base and not _is_public(one.type, one.base):
        raise ImportRefused(
            f"package {one.number} cannot be pinned: its registryBaseUrl is not the public one of {one.type}",
            advice="a mirror belongs into mcp.registries of the policy",
        )
    if not one.version:
        raise ImportRefused(f"package {one.number} cannot be pinned: it has no version")
    name = canonical_identifier(one.type, one.identifier)
    fields = {"type": one.type, "identifier": name or one.identifier, "version": one.version}
    _check(one, fields)
    notes = [f"not verified: what is published as {one.type} {shown(one.version)} has no hash in the entry"]
    if one.sha256:
        notes.append("not in the entry: fileSha256; nothing on a machine could check it")
    return Pin({"package": fields}, candidate=one, notes=tuple(notes))


def _is_public(kind: str, base: str) -> bool:
    return _sha256(base.rstrip("/").encode("utf-8", "surrogatepass")).hexdigest() in PUBLIC_BASES[kind]


def _image(one: Candidate, given: str) -> Pin:
    """Pin an image by its digest: that of the document, the given one, or both when they are one."""
    image = reference(one.identifier)
    if image is None:
        raise ImportRefused(f"package {one.number} cannot be pinned: {shown(one.identifier)} is not an image")
    own = (image.digest or "").removeprefix("sha256:")
    asked = digest(given) if given else ""
    if own and asked and own != asked:
        raise ImportRefused("--sha256 is not the digest that the document names")
    if not (own or asked):
        raise ImportRefused(
            f"package {one.number} names an image by a tag, which can move: {shown(one.identifier, 200)}",
            advice=f"docker buildx imagetools inspect {one.identifier} shows its digest; give it with --sha256",
        )
    fields = {"type": "oci", "identifier": image.name, "sha256": own or asked}
    named = f"{image.name}@sha256:{(own or asked)[:12]}…"
    notes = [
        f"note: configs must name the image as {named}; the digest of one platform is another than the index's",
        "not verified: that the registry has an image of this digest, and whether it is an index's or a platform's",
    ]
    if image.tag is not None:
        labelled = {"type": "oci", "identifier": image.name, "version": image.tag, "sha256": own or asked}
        if entry.problems({"id": "x", "package": labelled}):
            notes.append(f"not in the entry: the tag {shown(image.tag)}, which is not that of one version")
        else:
            fields = labelled
    _check(one, fields)
    if one.sha256:
        notes.append("not in the entry: fileSha256; it is not the digest of an image")
    return Pin({"package": fields}, candidate=one, notes=tuple(notes))


def _check(one: Candidate, fields: dict[str, str]) -> None:
    found = entry.problems({"id": "x", "package": fields})
    if found:
        raise ImportRefused(f"package {one.number} cannot be pinned: {found[0].message}")


def _plain_url(text: str, what: str) -> str:
    parts = parse_url(text)
    canonical = canonical_url(parts) if parts is not None else None
    if parts is None or canonical is None or parts.scheme != "https" or parts.fragment is not None:
        raise ImportRefused(f"{what} cannot be pinned: it must be a plain https URL without variables")
    return canonical


def _same_url(text: str, canonical: str) -> bool:
    parts = parse_url(text)
    return parts is not None and canonical_url(parts) == canonical


def _endpoint(one: Remote, given: str) -> Pin:
    url = given
    if not url:
        if is_template(one.url):
            raise ImportRefused(
                f"endpoint {one.number} has variables in its URL",
                advice="give the URL in full with --remote URL",
            )
        url = _plain_url(one.url, f"the URL of endpoint {one.number}")
    found = entry.problems({"id": "x", "url": url})
    if found:
        raise ImportRefused(f"endpoint {one.number} cannot be pinned: {found[0].message}")
    notes = [
        "not verified: what answers at this URL; a URL is its owner's word, and may answer otherwise tomorrow"
    ]
    if not one.url.isascii():
        notes.append(
            f"warning: endpoint {one.number} is written with other letters than ASCII, which can look like them:"
            f" {shown(one.url, 200)} is {url}"
        )
    if "?" in url:
        notes.append(
            "warning: the URL has a query; if that holds a key, everybody who reads the policy sees it"
        )
    return Pin({"url": url}, remote=one, notes=tuple(notes))
