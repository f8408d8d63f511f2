# SPDX-License-Identifier: Apache-2.0
"""Overview, activity and coverage gaps: the fleet at a glance, what happened, and what nobody could read."""

from collections.abc import Iterable
from typing import Final

import msgspec
from starlette.responses import Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.pages import chart, links
from halod.console.pages.render import render
from halod.console.pages.words import KINDS, REASONS
from halod.console.policy import bundle
from halod.console.store.read import coverage as gaps_of
from halod.console.store.read import findings as findings_of
from halod.console.store.read import overview as overview_of
from halod.console.store.read import transitions as transitions_of

_DAY: Final = 86_400
_NEWEST: Final = 8
_HARNESSES: Final = 10


class Share(msgspec.Struct, frozen=True):
    """A bar: what, how many findings, and of what length each kind's piece is, in hundredths of the longest."""

    value: str
    findings: int
    pieces: tuple[tuple[str, float, float], ...]
    """Kind, where it begins, how long it is."""


def shares(tallies: Iterable[findings_of.Tally], most: int) -> tuple[Share, ...]:
    """Make bars of counts by value and kind: the longest first, at most `most`."""
    by_value: dict[str, dict[str, int]] = {}
    for row in tallies:
        of_value = by_value.setdefault(row.value, {})
        of_value[row.kind] = of_value.get(row.kind, 0) + row.findings
    ranked = sorted(by_value.items(), key=lambda item: (-sum(item[1].values()), item[0]))[:most]
    longest = max((sum(kinds.values()) for _, kinds in ranked), default=0) or 1
    return tuple(_share(value, kinds, longest) for value, kinds in ranked)


def _share(value: str, kinds: dict[str, int], longest: int) -> Share:
    start, pieces = 0.0, []
    for kind in sorted(
        kinds, key=lambda name: (list(KINDS).index(name) if name in KINDS else len(KINDS), name)
    ):
        length = round(100 * kinds[kind] / longest, 2)
        if length:
            pieces.append((kind, round(start, 2), length))
        start += length
    return Share(value, sum(kinds.values()), tuple(pieces))


def overview(call: Call) -> Response:
    """Show the fleet at a glance; without a device, how to connect one."""
    console = call.console
    now, silent_after = console.clock.now(), console.settings.silent_after
    with console.store.read() as c:
        seen = overview_of.overview(c, now=now, silent_after=silent_after)
        if not seen.devices:
            return render(call, "first.html", here="overview", base_url=_base_url(call), seen=seen)
        days = overview_of.trend(c, today=now // _DAY)
        newest = transitions_of.newest(c, limit=_NEWEST)
        policy = bundle.current(c)
    kinds = {row.value: row for row in seen.by_kind}
    return render(
        call,
        "overview.html",
        here="overview",
        seen=seen,
        kinds=kinds,
        trend=chart.trend(days, today=now // _DAY),
        harnesses=shares(seen.by_harness, _HARNESSES),
        newest=newest.rows,
        policy=policy,
        silent_after=silent_after,
    )


def _base_url(call: Call) -> str:
    """Give how devices reach this console: as the settings say, else as this browser did."""
    configured = call.console.settings.public_url
    if configured:
        return configured.rstrip("/")
    url = call.request.url
    return f"{url.scheme}://{url.netloc}"


def activity(call: Call) -> Response:
    """Show what happened, newest first."""
    asked = links.query(call, "cursor")
    with call.console.store.read() as c:
        page = transitions_of.newest(c, cursor=asked["cursor"])
    return render(call, "activity.html", here="activity", page=page, asked=asked)


def coverage(call: Call) -> Response:
    """Show what could not be read and why."""
    asked = links.query(call, "reason", "harness", "cursor")
    with call.console.store.read() as c:
        page = gaps_of.gaps(c, reason=asked["reason"], harness=asked["harness"], cursor=asked["cursor"])
        reasons = gaps_of.reasons(c)
        harnesses = findings_of.prevalence(c, "harness", limit=200).rows
        seen = overview_of.overview(
            c, now=call.console.clock.now(), silent_after=call.console.settings.silent_after
        )
    return render(
        call,
        "coverage.html",
        here="coverage",
        page=page,
        asked=asked,
        reasons=reasons,
        harnesses=sorted({row.value for row in harnesses}),
        known_reasons=REASONS,
        seen=seen,
    )


ROUTES: Final = (
    Route(method="GET", path="/", name="overview", access=Access.VIEWER, endpoint=overview, page=True),
    Route(
        method="GET", path="/activity", name="activity", access=Access.VIEWER, endpoint=activity, page=True
    ),
    Route(
        method="GET", path="/coverage", name="coverage", access=Access.VIEWER, endpoint=coverage, page=True
    ),
)
