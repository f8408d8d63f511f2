# SPDX-License-Identifier: Apache-2.0
"""Which entries apply to which device on which day."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.policy.load import parse
from halod.policy.scope import check_device, scope

POLICY = parse(
    b"""
rings: [team, canary, ga]
units: {eng: {}, pay: {parent: eng}, cards: {parent: pay}, design: {}}
mcp:
  mode: warn
  message: Ask us
  helpURL: https://wiki.acme.example/
  registries: {npm: [https://packages.acme.example/npm/]}
  servers:
    - {id: everywhere, url: https://a.example/1}
    - {id: team, url: https://a.example/2, rings: [team]}
    - {id: pay, url: https://a.example/3, units: [pay]}
    - {id: both, url: https://a.example/4, rings: [ga], units: [design]}
    - {id: waiver, url: https://a.example/5, expires: 2027-06-30}
    - {id: team-waiver, url: https://a.example/6, rings: [team], expires: 2027-06-30}
  deny: [{host: evil.example}]
""",
    "halos.yaml",
)
BEFORE, LAST, AFTER = date(2027, 6, 29), date(2027, 6, 30), date(2027, 7, 1)


def ids(ring: str = "", units: tuple[str, ...] = (), today: date = BEFORE) -> list[str]:
    return [entry.id for entry in scope(POLICY, ring, units, today).entries]


@pytest.mark.parametrize(
    ("ring", "units", "expected"),
    [
        ("", (), ["everywhere", "waiver"]),
        ("canary", (), ["everywhere", "waiver"]),
        ("team", (), ["everywhere", "team", "waiver", "team-waiver"]),
        ("ga", (), ["everywhere", "both", "waiver"]),
        ("", ("pay",), ["everywhere", "pay", "waiver"]),
        ("", ("cards",), ["everywhere", "pay", "waiver"]),
        ("", ("eng",), ["everywhere", "waiver"]),
        ("canary", ("design",), ["everywhere", "both", "waiver"]),
        ("ga", ("cards", "design"), ["everywhere", "pay", "both", "waiver"]),
        ("nosuch", ("nosuch",), ["everywhere", "waiver"]),
    ],
)
def test_an_entry_applies_by_ring_or_unit_or_everywhere(
    ring: str, units: tuple[str, ...], expected: list[str]
):
    assert ids(ring, units) == expected


def test_an_entry_applies_on_its_last_day_and_not_after():
    assert "waiver" in ids(today=LAST)
    assert "waiver" not in ids(today=AFTER)
    assert [entry.id for entry in scope(POLICY, "", [], AFTER).expired] == ["waiver"]
    assert [entry.id for entry in scope(POLICY, "team", [], AFTER).expired] == ["waiver", "team-waiver"]


def test_entries_of_others_are_named_unless_they_have_run_out():
    assert [entry.id for entry in scope(POLICY, "", (), BEFORE).elsewhere] == [
        "team",
        "pay",
        "both",
        "team-waiver",
    ]
    assert [entry.id for entry in scope(POLICY, "", (), AFTER).elsewhere] == ["team", "pay", "both"]


def test_the_rest_of_the_policy_is_handed_on():
    registry = scope(POLICY, "nosuch", (), AFTER)
    assert registry.deny == POLICY.deny
    assert registry.mode == "warn"
    assert registry.message == "Ask us"
    assert registry.help_url == "https://wiki.acme.example/"
    assert registry.mirrors == POLICY.mirrors
    assert registry.digest == POLICY.digest


def test_a_known_device_has_no_problem():
    assert check_device(POLICY, "team", ["eng", "cards"]) == []
    assert check_device(POLICY, "", []) == []


def test_unknown_rings_and_units_are_named_with_a_hint():
    assert check_device(POLICY, "gaa", ["pay", "card", "legal"]) == [
        'unknown ring "gaa"; did you mean "ga"?',
        'unknown unit "card"; did you mean "cards"?',
        'unknown unit "legal"; the policy has units eng, pay, cards, design',
    ]


def test_a_policy_without_rings_and_units_says_so():
    assert check_device(parse(b"org: acme", "p"), "x", ["y"]) == [
        'unknown ring "x"; the policy has no rings',
        'unknown unit "y"; the policy has no units',
    ]


def test_a_long_list_of_rings_is_cut():
    many = parse(("rings: [" + ", ".join(f"ring{n}" for n in range(30)) + "]").encode(), "p")
    (message,) = check_device(many, "zzz", [])
    assert message.endswith("ring18, ring19, …")


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["", "team", "canary", "ga"]),
    st.lists(st.sampled_from(["eng", "pay", "cards", "design"])),
    st.dates(date(2027, 1, 1), date(2027, 12, 31)),
)
def test_every_entry_is_here_elsewhere_or_over(ring: str, units: list[str], today: date):
    registry = scope(POLICY, ring, units, today)
    here, elsewhere, expired = registry.entries, registry.elsewhere, registry.expired
    assert len({entry.id for entry in (*here, *elsewhere, *expired)}) == len(here) + len(elsewhere) + len(
        expired
    )
    over = [entry for entry in POLICY.entries if entry.expires and today > entry.expires]
    assert not set(here) & set(over)
    assert set(here) | set(elsewhere) | set(expired) | set(over) == set(POLICY.entries)
