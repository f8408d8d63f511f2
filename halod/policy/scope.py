# SPDX-License-Identifier: Apache-2.0
"""Which part of a policy applies to one device on one day (design 7).

Invariants:

1. An entry applies when the device's ring is among its rings, or one of the device's units is among its units
   or below one of them; with neither key it applies everywhere. Rings and units are alternatives.
2. An entry applies on the day `expires` names and on none after it.
3. `deny` applies to every device.
"""

from datetime import date

from halod.policy.model import Entry, Policy, Registry


def scope(policy: Policy, ring: str, units: tuple[str, ...] | list[str], today: date) -> Registry:
    """Scope `policy` to a device. `ring` may be empty and `units` too: then only unscoped entries apply.

    `today` is the day by UTC. Names that the policy does not know match nothing; see `check_device`.
    """
    return _scoped(policy, ring, _with_parents(policy, units), today)


def scope_in_doubt(policy: Policy, ring: str, units: tuple[str, ...] | list[str], today: date) -> Registry:
    """Scope `policy` to a device whose ring or units it does not know: what may apply to it does.

    An entry for other rings counts as one for this device when its ring is not known, and so with units: of
    what such a registry still does not know, it is certain that it is approved nowhere the device can be.
    """
    known = frozenset(name for name, _ in policy.units)
    return _scoped(
        policy,
        ring,
        _with_parents(policy, units),
        today,
        any_ring=bool(ring) and ring not in policy.rings,
        any_unit=not known.issuperset(units),
    )


def _scoped(
    policy: Policy,
    ring: str,
    lineage: frozenset[str],
    today: date,
    *,
    any_ring: bool = False,
    any_unit: bool = False,
) -> Registry:
    here, elsewhere, expired = [], [], []
    for entry in policy.entries:
        over = entry.expires is not None and today > entry.expires
        doubtful = (any_ring and entry.rings) or (any_unit and entry.units)
        if not (doubtful or _reaches(entry, ring, lineage)):
            if not over:
                elsewhere.append(entry)
        elif over:
            expired.append(entry)
        else:
            here.append(entry)
    return Registry(
        entries=tuple(here),
        elsewhere=tuple(elsewhere),
        expired=tuple(expired),
        deny=policy.deny,
        mode=policy.mode,
        message=policy.message,
        help_url=policy.help_url,
        mirrors=policy.mirrors,
        digest=policy.digest,
    )


def check_device(policy: Policy, ring: str, units: tuple[str, ...] | list[str]) -> list[str]:
    """Name what a device claims and the policy does not know: one message each, empty when all is known."""
    problems = []
    if ring and ring not in policy.rings:
        problems.append(_unknown("ring", ring, policy.rings))
    names = tuple(name for name, _ in policy.units)
    problems.extend(_unknown("unit", unit, names) for unit in units if unit not in names)
    return problems


def _unknown(thing: str, name: str, known: tuple[str, ...]) -> str:
    from halod.policy.check import nearest  # pays for difflib only here
    from halod.policy.yamlpos import shown

    near = nearest(name, known)
    if near:
        return f"unknown {thing} {shown(name)}; did you mean {shown(near)}?"
    listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f"unknown {thing} {shown(name)}; the policy has " + (
        f"{thing}s {listed}" if known else f"no {thing}s"
    )


def _with_parents(policy: Policy, units: tuple[str, ...] | list[str]) -> frozenset[str]:
    """Give the device's units and every unit above them; a checked policy's parents make no cycle."""
    parents = dict(policy.units)
    lineage: set[str] = set()
    for unit in units:
        current = unit
        while current and current not in lineage:
            lineage.add(current)
            current = parents.get(current, "")
    return frozenset(lineage)


def _reaches(entry: Entry, ring: str, lineage: frozenset[str]) -> bool:
    if not entry.rings and not entry.units:
        return True
    return ring in entry.rings or not lineage.isdisjoint(entry.units)
