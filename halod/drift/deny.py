# SPDX-License-Identifier: Apache-2.0
"""Rule 0: what a definition runs, its host or its hash is known to be bad (design 6).

Denying is generous where approving is strict: a denied package is denied in whatever way it is launched, as
soon as its identity is known at all, and what a bridge or wrapper carries counts like the definition itself.
A host is compared as a whole (sub-domains are other hosts), on any port unless the deny entry names one.
"""

from collections.abc import Iterator

from halod.drift.subject import Subject
from halod.drift.verdict import Note
from halod.launch.model import Launch, UrlParts
from halod.launch.urls import parse_url, whatwg_host
from halod.launch.versions import same_version
from halod.policy.model import Deny, Package


def denied(subject: Subject, deny: tuple[Deny, ...]) -> tuple[int, Note] | None:
    """Give the position of the first deny entry that fits, and what fits; None when nothing does."""
    if not deny:
        return None
    layers = list(_layers(subject))
    for position, entry in enumerate(deny):
        for layer in layers:
            note = _fits(layer, entry)
            if note:
                return position, note
    return None


def _layers(subject: Subject) -> Iterator[Subject]:
    layer: Subject | None = subject
    while layer is not None:
        yield layer
        layer = layer.child


def _fits(layer: Subject, entry: Deny) -> Note:
    if entry.package is not None:
        return "denied-package" if _is_package(layer.launch, entry.package) else ""
    if entry.definition_sha256:
        return "denied-hash" if layer.definition.sha256 == entry.definition_sha256.lower() else ""
    for url in _urls(layer):
        if entry.host and _same_host(whatwg_host(url), entry.host):
            return "denied-host"
        if entry.url and _same_resource(url, entry.url):
            return "denied-url"
    return ""


def _urls(layer: Subject) -> Iterator[str]:
    """The URL of an http definition, or the one that a launcher fetches its program from."""
    if layer.definition.transport == "http":
        yield layer.definition.url
    elif layer.launch.identifier and "://" in layer.launch.identifier:
        yield layer.launch.identifier.removeprefix("git+")


def _is_package(launch: Launch, package: Package) -> bool:
    if launch.ecosystem != package.type or launch.identifier != package.identifier:
        return False
    if not package.version and not package.sha256:
        return True
    if package.sha256 and launch.digest == f"sha256:{package.sha256}":
        return True
    if not package.version:
        return False
    if package.type == "oci":  # an image's version is its tag, which a launch tells as what was asked for
        return launch.requested in {package.version, package.version_text or package.version}
    return launch.version is not None and same_version(package.type, launch.version, package.version)


def _same_host(host: str, entry: str) -> bool:
    if not host:
        return False
    name, port = _split_port(host)
    entry_name, entry_port = _split_port(entry.lower())
    return name == entry_name and entry_port in {"", port}


def _split_port(host: str) -> tuple[str, str]:
    """Split host and port; a trailing dot, which names the same host, is dropped."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdecimal() or (":" in name and not name.endswith("]")):
        name, port = host, ""
    return name.removesuffix("."), port


def _same_resource(url: str, entry: str) -> bool:
    """Userinfo and fragment do not change what is asked for, so they hide nothing here."""
    if url == entry:
        return True
    ours, theirs = parse_url(url), parse_url(entry)
    return ours is not None and theirs is not None and _resource(ours) == _resource(theirs)


def _resource(parts: UrlParts) -> tuple[str, str, int | None, str, str | None]:
    return parts.scheme, parts.host, parts.port, parts.path, parts.query
