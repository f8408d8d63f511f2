# SPDX-License-Identifier: Apache-2.0
"""`detail` and `fix` of a finding (design 6): what is wrong and what to do, for the person at the machine.

Invariants:

1. Built only from the registry, the transport, flag names, the first 12 hex digits of the hash, the server
   name as reported, and words of ours. No Definition and no Launch is known here.
2. Total: a verdict from another process may name an entry that this registry does not have. The words are
   then the general ones for its kind.
3. The organisation's message and help URL stand at the end of every fix.
"""

from collections.abc import Callable, Iterable
from typing import Final

from halod.definition import Transport
from halod.drift.flags import FLAGS
from halod.drift.verdict import URL_DIFFERENCES, Verdict
from halod.policy.model import Entry, Package, Registry

_PROVIDED: Final = "(the managed config already provides it)"
_SAFE_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")
_DIFFERENCES: Final = {
    "scheme": "another scheme",
    "userinfo": "credentials in the URL",
    "query": "another query",
    "fragment": "a fragment",
    "trailing-slash": "a trailing slash more or less",
}


def words(
    verdict: Verdict, *, server: str, transport: Transport, sha256: str, registry: Registry
) -> tuple[str, str]:
    """Give (detail, fix) for a verdict; two empty strings for an approved one.

    `server` is the name as reported, that is redacted already; `registry` the one that was judged with.
    """
    if verdict.kind == "approved":
        return "", ""
    case = _Case(verdict, server, transport, registry)
    detail, fix = case.denied() if verdict.kind == "denied" else case.differing()
    what = "a stdio command" if transport == "stdio" else "an http URL"
    return f"defined as {what} (definition sha256 {sha256[:12]}); {detail}", fix + _asking(registry)


def pin(entry: Entry) -> str:
    """Give what `entry` pins as a person would write it: a command line, or the URL as in the registry."""
    if entry.package is not None:
        command = _package(entry.package)
        arguments = entry.args if isinstance(entry.args, tuple) else ()
        return " ".join([command, *map(_quote, arguments)])
    if entry.url:
        return entry.url
    if entry.command:
        return " ".join(map(_quote, entry.command))
    return f"the definition with sha256 {entry.definition_sha256[:12]}"


def _pinned(entry: Entry) -> str:
    return f"the registry pins {pin(entry)}"


def _package(package: Package) -> str:
    name, version = package.identifier, package.version_text or package.version
    if package.type == "oci":
        return f"docker run -i --rm {name}@sha256:{package.sha256}"
    if package.type == "nuget":
        return f"dnx {name}@{version} --yes"
    if package.type == "pypi":
        return f"uvx --from {name}=={version} {package.bin}" if package.bin else f"uvx {name}@{version}"
    return f"npx -y -p {name}@{version} {package.bin}" if package.bin else f"npx -y {name}@{version}"


def _quote(word: str) -> str:
    """Quote a word for a POSIX shell, as shlex does (not imported: what a worker loads is kept small)."""
    if word and _SAFE_WORD.issuperset(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _asking(registry: Registry) -> str:
    if registry.message and registry.help_url:
        return f". {registry.message}: {registry.help_url}"
    text = registry.message or registry.help_url
    return f". {text}" if text else ""


def _listing(items: Iterable[str]) -> str:
    found = list(items)
    return found[0] if len(found) == 1 else ", ".join(found[:-1]) + " and " + found[-1] if found else ""


class _Case:
    """One verdict with what its words need."""

    def __init__(self, verdict: Verdict, server: str, transport: Transport, registry: Registry) -> None:
        self.verdict = verdict
        self.name = f'"{server}"' if server else "this definition"
        self.transport = transport
        self.registry = registry
        self.entry = self.find(verdict.entry)
        self.flags = [flag for flag in verdict.flags if flag in FLAGS]

    def find(self, entry_id: str) -> Entry | None:
        registry = self.registry
        for entry in registry.entries + registry.elsewhere + registry.expired:
            if entry.id == entry_id:
                return entry
        return None

    def denied(self) -> tuple[str, str]:
        """Rule 0. `entry` is the position in the deny list; its reason is the organisation's text."""
        reasons = {str(at): deny.reason for at, deny in enumerate(self.registry.deny)}
        reason = reasons.get(self.verdict.entry, "")
        what = {
            "denied-package": "what it runs",
            "denied-host": "the host it leads to",
            "denied-url": "the URL it leads to",
        }.get(self.verdict.note, "this definition")
        because = f": {reason}" if reason else ""
        return (
            f"{what} is on the deny list{because}",
            f"remove {self.name} now{because}; tell whoever looks after security that it was there",
        )

    def differing(self) -> tuple[str, str]:
        tell = _ABOUT.get(self.verdict.note)
        if self.entry is not None and tell is not None:
            return tell(self, self.entry)
        return self.unlisted()

    def version(self, entry: Entry) -> tuple[str, str]:
        return _pinned(entry), self.change(entry)

    def launcher(self, entry: Entry) -> tuple[str, str]:
        return (
            f"which package it runs depends on the launcher's release; {_pinned(entry)}",
            self.change(entry),
        )

    def change(self, entry: Entry, without: str = "") -> str:
        """The fix for what an approved entry replaces."""
        if self.transport == "stdio" and entry.url:
            return f"configure {entry.id} directly over http ({entry.url}), or remove {self.name} {_PROVIDED}"
        if not (entry.package or entry.url or entry.command):
            return f"take {without or 'what differs'} out of {self.name}, or remove it {_PROVIDED}"
        tail = f" without {without}" if without else ""
        return f"change {self.name} to {pin(entry)}{tail}, or remove it {_PROVIDED}"

    def elsewhere_on_host(self, entry: Entry) -> tuple[str, str]:
        part = "path" if self.verdict.note == "other-path" else "port"
        detail = f"another {part} on the host of {entry.id}, and a host has many tenants; {_pinned(entry)}"
        return detail, self.if_meant(entry)

    def borrowed(self, entry: Entry) -> tuple[str, str]:
        detail = f"it has the name of the approved {entry.id} and is something else; {_pinned(entry)}"
        return detail, self.if_meant(entry)

    def if_meant(self, entry: Entry) -> str:
        return (
            f"change {self.name} to {pin(entry)} if that is what is meant,"
            " otherwise remove it or have it approved"
        )

    def url_differs(self, entry: Entry) -> tuple[str, str]:
        found = [_DIFFERENCES[name] for name in URL_DIFFERENCES if name in self.flags]
        differing = f"with {_listing(found)}" if found else "in another spelling"
        bridge = "a bridge to " if self.transport == "stdio" else ""
        return f"{bridge}the approved URL of {entry.id} {differing}; {_pinned(entry)}", self.change(entry)

    def unsafe(self, entry: Entry) -> tuple[str, str]:
        flags = _listing(self.flags) or "something unsafe"
        if entry.package is not None:
            does = "runs the approved package"
        elif entry.url:
            does = "uses the approved URL"
        else:
            does = "runs the approved command"
        return f"{does} with {flags}; {_pinned(entry)}", self.change(entry, without=flags)

    def carrier(self, entry: Entry) -> tuple[str, str]:
        drift = self.verdict.kind == "version-drift"
        how = "at another version than the registry pins" if drift else "that the registry does not approve"
        if entry.url:
            return f"a bridge {how}, leading to the approved {entry.id} ({entry.url})", self.change(entry)
        return f"started by a program {how}; what it starts is the approved {entry.id}", self.change(entry)

    def other_ring(self, entry: Entry) -> tuple[str, str]:
        places = []
        if entry.rings:
            places.append(f"{'ring' if len(entry.rings) == 1 else 'rings'} {_listing(entry.rings)}")
        if entry.units:
            places.append(f"{'unit' if len(entry.units) == 1 else 'units'} {_listing(entry.units)}")
        where = " and ".join(places) or "other devices"
        return (
            f"approved as {entry.id} for {where}, not for this device",
            f"remove {self.name}, or ask to have {entry.id} approved for this device too",
        )

    def expired(self, entry: Entry) -> tuple[str, str]:
        day = f" on {entry.expires.isoformat()}" if entry.expires is not None else ""
        owner = f" by {entry.owner}" if entry.owner else ""
        return (
            f"the approval as {entry.id} ended{day}",
            f"remove {self.name}, or have {entry.id} approved again{owner}",
        )

    def unlisted(self) -> tuple[str, str]:
        """The words of rule 8, and of a verdict about an entry that this registry does not have."""
        if self.verdict.kind == "version-drift":
            return (
                "the registry pins it otherwise",
                f"change {self.name} to what the registry pins, or remove it {_PROVIDED}",
            )
        ask = f"remove {self.name}, use an approved server in its place, or have it approved"
        match self.verdict.note:
            case "desktop-extension":
                return (
                    "a desktop extension: what it runs lies on this machine, where no pin can be checked",
                    f"uninstall the extension {self.name} and use an approved server in its place",
                )
            case "not-comparable":
                return (
                    "its URL holds a variable, or is written so that clients read it differently",
                    f"write the approved URL out in full, or {ask}",
                )
            case "unidentifiable":
                return (
                    "which package it runs cannot be told from the command line",
                    f"start an approved package at its pinned version, or {ask} as a command or by its hash",
                )
            case "carries-unapproved" | "bridge-to-approved" | "carries-approved":
                return ("a bridge or carrier, and what it leads to is not approved", ask)
        thing = "package" if self.transport == "stdio" else "URL"
        return f"the registry has no such {thing}", ask


_ABOUT: Final[dict[str, Callable[[_Case, Entry], tuple[str, str]]]] = {
    "unpinned": _Case.version,
    "other-version": _Case.version,
    "url-differs": _Case.url_differs,
    "approved-with-unsafe": _Case.unsafe,
    "launcher-version": _Case.launcher,
    "bridge-to-approved": _Case.carrier,
    "carries-approved": _Case.carrier,
    "other-ring": _Case.other_ring,
    "expired": _Case.expired,
    "other-path": _Case.elsewhere_on_host,
    "other-port": _Case.elsewhere_on_host,
    "borrowed-id": _Case.borrowed,
}
"""How a note about an entry is told."""
