# SPDX-License-Identifier: Apache-2.0
"""Rules 0 to 8 (design 6): a definition against the registry of this device.

Invariants:

1. Only rules 1, 2, 4, 6 and 7 approve, and each asks that nothing unsafe is left open. Whatever cannot be
   told falls through to rule 8.
2. Matching is by what runs. The name a user gave a server is compared only to choose the words of a finding.
3. An entry that does not fit here never changes what another entry says; among several that fit, an approval
   goes before drift, drift before a near miss, and the first of the registry before the later ones.
"""

import msgspec

from halod.definition import Definition
from halod.drift.answers import unanswered, unanswered_around, unanswered_beside
from halod.drift.deny import denied
from halod.drift.subject import Identify, Subject
from halod.drift.urls import Nearness, compare
from halod.drift.verdict import SEVERITY, Kind, Note, Verdict
from halod.launch import identify as identify_launch
from halod.launch.model import Launch, UrlParts
from halod.launch.urls import parse_url
from halod.launch.versions import same_version
from halod.policy.model import Entry, Package, Registry

_COMPARABLE = frozenset({"identified", "identified-unpinned", "identified-unsafe", "delegate"})
# Near misses, the most telling first.
_NEARNESS: dict[Nearness, Note] = {"other-path": "other-path", "other-port": "other-port"}


class Ruling(msgspec.Struct, frozen=True):
    """What the rules say about one subject, before it becomes a Verdict."""

    kind: Kind
    entry: Entry | None = None
    note: Note = ""
    flags: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, bool]:
        """The better of two rulings has the smaller rank: the kind, then whether it names an entry."""
        return SEVERITY[self.kind], self.entry is None


class Pins:
    """The entries of a registry, by what they pin."""

    __slots__ = ("by_hash", "by_host", "by_package", "by_url", "mirrors")

    def __init__(self, entries: tuple[Entry, ...], registry: Registry) -> None:
        self.by_hash: dict[str, list[Entry]] = {}
        self.by_package: dict[tuple[str, str], list[Entry]] = {}
        self.by_url: dict[str, list[Entry]] = {}
        self.by_host: dict[str, list[tuple[Entry, UrlParts]]] = {}
        self.mirrors: dict[str, frozenset[str]] = {kind: frozenset(urls) for kind, urls in registry.mirrors}
        for entry in entries:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        if entry.definition_sha256:
            self.by_hash.setdefault(entry.definition_sha256, []).append(entry)
        elif entry.package is not None:
            key = (entry.package.type, entry.package.identifier)
            self.by_package.setdefault(key, []).append(entry)
        elif entry.canonical_url:
            self.by_url.setdefault(entry.canonical_url, []).append(entry)
            parts = parse_url(entry.canonical_url)
            if parts is not None:
                self.by_host.setdefault(parts.host, []).append((entry, parts))


class Judge:
    """The rules, made ready for one registry: make one, then judge many definitions. Judging is pure."""

    __slots__ = ("_here", "_identify", "_past", "_registry", "_wider")

    def __init__(self, registry: Registry, identify: Identify = identify_launch) -> None:
        self._registry = registry
        self._identify = identify
        self._here = Pins(registry.entries, registry)
        self._wider = Pins(registry.entries + registry.elsewhere, registry) if registry.elsewhere else None
        self._past = Pins(registry.entries + registry.expired, registry) if registry.expired else None

    def judge(self, definition: Definition) -> Verdict:
        """Apply rules 0 to 8 to one definition (design 6). Total: every definition gets a verdict."""
        subject = Subject(definition, self._identify)
        outcome = subject.launch.outcome if definition.transport == "stdio" else ""
        hit = denied(subject, self._registry.deny)
        if hit is not None:
            position, note = hit
            return Verdict("denied", str(position), note, (), outcome, subject.host)
        ruling = self._rule(subject)
        entry = ruling.entry.id if ruling.entry is not None else ""
        return Verdict(ruling.kind, entry, ruling.note, ruling.flags, outcome, subject.host)

    def _rule(self, subject: Subject) -> Ruling:
        definition = subject.definition
        if definition.harness == "claude-desktop" and definition.scope == "plugin":
            # What an unpacked extension runs lies beside its manifest and can be anything (design 6).
            return Ruling("unapproved", note="desktop-extension")
        ruling = rule(subject, self._here)
        if ruling.kind == "unapproved" and (ruling.entry is None or ruling.note in _NEARNESS.values()):
            return self._explain(subject, ruling)
        return ruling

    def _explain(self, subject: Subject, ruling: Ruling) -> Ruling:
        """Rule 8: look for what tells a person more than "unapproved". The kind stays."""
        hints: tuple[tuple[Pins | None, Note], ...] = ((self._wider, "other-ring"), (self._past, "expired"))
        for pins, note in hints:
            if pins is not None:
                elsewhere = rule(subject, pins)
                if elsewhere.kind != "unapproved":
                    return Ruling("unapproved", elsewhere.entry, note)
        if ruling.entry is None:
            name = subject.definition.name.casefold()
            for entry in self._registry.entries:
                if entry.id == name:
                    return Ruling("unapproved", entry, "borrowed-id")
        return ruling


def rule(subject: Subject, pins: Pins) -> Ruling:
    """Apply rules 1 to 8 to a subject and to what it carries."""
    by_hash = _by_hash(subject, pins)
    if by_hash is not None and by_hash.kind == "approved":
        return by_hash
    ruling = _http(subject, pins) if subject.definition.transport == "http" else _stdio(subject, pins)
    if by_hash is not None and ruling.kind == "unapproved":
        return by_hash
    return ruling


def _best(rulings: list[Ruling]) -> Ruling | None:
    return min(rulings, key=lambda ruling: ruling.rank) if rulings else None


def _by_hash(subject: Subject, pins: Pins) -> Ruling | None:
    """Rule 1. None when no entry pins this hash."""
    if not pins.by_hash:
        return None
    rulings = []
    for entry in pins.by_hash.get(subject.definition.sha256, ()):
        left = unanswered_around(subject, entry)
        if left:
            rulings.append(Ruling("unapproved", entry, "approved-with-unsafe", left))
        else:
            rulings.append(Ruling("approved", entry))
    return _best(rulings)


def _http(subject: Subject, pins: Pins) -> Ruling:
    """Rules 2, 3 and 8 for a URL."""
    parts = subject.parts
    if parts is None:
        return Ruling("unapproved", note="not-comparable")
    for entry in pins.by_url.get(subject.canonical, ()):
        return _unless_open(subject, Ruling("approved", entry), entry)
    misses: dict[Nearness, tuple[Entry, tuple[str, ...]]] = {}
    for entry, pin in pins.by_host.get(parts.host, ()):
        nearness, differences = compare(parts, pin)
        misses.setdefault(nearness, (entry, differences))
    if "differs" in misses:
        entry, differences = misses["differs"]
        return _unless_open(subject, Ruling("version-drift", entry, "url-differs", differences), entry)
    for near, note in _NEARNESS.items():
        if near in misses:
            return Ruling("unapproved", misses[near][0], note)
    return Ruling("unapproved", note="not-listed" if subject.canonical else "not-comparable")


def _unless_open(subject: Subject, ruling: Ruling, entry: Entry) -> Ruling:
    flags = unanswered_beside(subject.definition, entry, carried=subject.is_carried)
    return Ruling("unapproved", entry, "approved-with-unsafe", flags) if flags else ruling


def _stdio(subject: Subject, pins: Pins) -> Ruling:
    """Rules 4 to 8 for a command."""
    launch = subject.launch
    own = _package(subject, pins)
    if launch.outcome != "delegate":
        return own
    inner = rule(subject.child, pins) if subject.child is not None else Ruling("unapproved")
    return _carried(own, inner)


def _carried(own: Ruling, inner: Ruling) -> Ruling:
    """Rule 7: the worse of the carrier and of what it carries, in the words that help most."""
    if own.kind == "approved" or SEVERITY[inner.kind] > SEVERITY[own.kind]:
        if inner.kind != "unapproved" or inner.entry is not None:
            return inner
        return Ruling("unapproved", note="carries-unapproved")
    if own.note == "approved-with-unsafe" or inner.entry is None or inner.kind == "unapproved":
        return own if own.entry is not None else Ruling("unapproved", note="carries-unapproved")
    note: Note = "bridge-to-approved" if inner.entry.url else "carries-approved"
    return Ruling(own.kind, inner.entry, note)


def _package(subject: Subject, pins: Pins) -> Ruling:
    """Rules 4, 5 and 6: the package against the entries that pin it, unsafe flags against their answers."""
    launch = subject.launch
    entries = pins.by_package.get((launch.ecosystem or "", launch.identifier or ""), ())
    if not entries:
        known = launch.identifier is not None and launch.outcome != "unidentifiable"
        return Ruling("unapproved", note="not-listed" if known else "unidentifiable")
    mirrors = pins.mirrors.get(launch.ecosystem or "", frozenset())
    rulings = [_against(subject, entry, mirrors) for entry in entries]
    return _best(rulings) or Ruling("unapproved")


def _against(subject: Subject, entry: Entry, mirrors: frozenset[str]) -> Ruling:
    launch = subject.launch
    if launch.outcome == "launcher-version-dependent":
        return Ruling("unapproved", entry, "launcher-version")
    if launch.outcome not in _COMPARABLE or entry.package is None:
        return Ruling("unapproved", note="unidentifiable")
    left = unanswered(subject, entry, mirrors)
    if left:
        return Ruling("unapproved", entry, "approved-with-unsafe", left)
    if is_pinned(launch, entry.package):
        return Ruling("approved", entry)
    known = launch.digest if entry.package.type == "oci" else launch.version
    return Ruling("version-drift", entry, "other-version" if known else "unpinned")


def is_pinned(launch: Launch, package: Package) -> bool:
    """Tell whether a launch asks for exactly the version, or for an image the digest, that `package` pins."""
    if package.type == "oci":
        return bool(package.sha256) and launch.digest == f"sha256:{package.sha256}"
    if not package.version or launch.version is None:
        return False
    return same_version(package.type, launch.version, package.version)
