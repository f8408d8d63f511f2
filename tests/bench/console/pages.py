# SPDX-License-Identifier: Apache-2.0
"""Every page and every list of the API, asked for one after the other: first page, a page in the middle, each filter."""

import http.client
import itertools
import json
import re
import time
from urllib.parse import quote, urlencode

from tests.bench.console import fleet

WALK = 200
"""Pages that are turned to get to the middle of a list."""
_DEVICE_FILTERS = {
    "state": ("reporting", "silent", "partly", "limited"), "ring": fleet.RINGS, "unit": ("unit-3", "unit-120"),
    "hostname": ("mbp-0012", "mbp-05", "mbp-"), "digest": (),
}  # fmt: skip
_GROUP_FILTERS = {
    "kind": fleet.KINDS, "harness": fleet.HARNESSES, "ring": fleet.RINGS, "unit": ("unit-3", "unit-120"),
    "server": ("popular-0", "rare-0001", "rare"), "what": (), "order": ("devices", "last-seen"),
}  # fmt: skip
_PAIRS = (
    {"harness": "cursor", "ring": "ring0", "unit": "unit-3"},
    {"harness": "opencode", "unit": "unit-150"},
    {"kind": "denied", "ring": "ring3-ga"},
    {"server": "rare-0", "kind": "unapproved", "harness": "codex"},
)


class Browser:
    """One signed-in browser and one API token; over one connection each."""

    def __init__(self, port, link, token):
        self._port, self._token, self._cookie = port, token, ""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        origin = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"}
        status, headers, body = self.ask(
            "POST", "/login/link", urlencode({"link": link, "next": "/"}), origin
        )
        if status != 303:
            raise RuntimeError(f"signing in: {status} {body[:200]!r}")
        self._cookie = headers["set-cookie"].split(";")[0]

    def ask(self, method, path, body=None, headers=None):
        sent = dict(headers or {})
        if path.startswith(("/api/", "/metrics")):
            sent["Authorization"] = f"Bearer {self._token}"
        elif self._cookie:
            sent["Cookie"] = self._cookie
        self._connection.request(method, path, body, sent)
        answer = self._connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def get(self, path):
        """Give the body; fails when it is not 200."""
        status, _, body = self.ask("GET", path)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body[:200]!r}")
        return body

    def timed(self, paths, rounds):
        """Give the times of `rounds` requests over some addresses, and the largest answer."""
        turn = itertools.cycle(paths)
        times, size = [], 0
        self.get(paths[0])
        for _ in range(max(rounds, len(paths))):
            path = next(turn)
            begun = time.perf_counter()
            body = self.get(path)
            times.append(time.perf_counter() - begun)
            size = max(size, len(body))
        return sorted(times), size


def cases(browser):
    """Give (name, addresses) for everything that is measured."""
    devices = json.loads(browser.get("/api/v1/devices?limit=200"))["rows"]
    groups = json.loads(browser.get("/api/v1/findings/groups?limit=200"))["rows"]
    rare = json.loads(browser.get("/api/v1/findings/groups?server=rare-000&limit=50"))["rows"]
    entries = [f"entry-{number}" for number in (0, 7, 80)]
    chosen = [fleet.device_of(nth) for nth in (5, 1999, 2000, 2500)]
    known = {row["device"] for row in devices}
    chosen = [one for one in chosen if _is(browser, one)] or sorted(known)[:3]
    whats = [row["what"] for row in (*groups[:2], *rare[:2])]
    digests = sorted({row["digest"] for row in devices})[:3]
    yield "/", ["/"]
    yield from _lists(
        browser, "/findings", "/api/v1/findings/groups", {**_GROUP_FILTERS, "what": whats}, _PAIRS
    )
    yield "/findings/{group}", [f"/findings/{row['id']}" for row in (groups[0], groups[1], rare[0])]
    yield from _lists(
        browser, "/devices", "/api/v1/devices", {**_DEVICE_FILTERS, "digest": digests},
        ({"state": "silent", "ring": "ring0"}, {"unit": "unit-3", "state": "partly"}, {"ring": "ring0", "hostname": "mbp-09"}),
    )  # fmt: skip
    yield "/devices/{device}", [f"/devices/{one}" for one in chosen]
    yield from _lists(browser, "/activity", "", {}, ())
    gaps = {"reason": fleet.REASONS, "harness": fleet.HARNESSES}
    yield from _lists(
        browser, "/coverage", "/api/v1/coverage", gaps, ({"reason": "symlink", "harness": "codex"},)
    )
    yield from _lists(browser, "/registry", "/api/v1/registry/usage", {}, ())
    yield "/registry/{entry}", [f"/registry/{one}" for one in entries]
    yield from _lists(
        browser,
        "/audit",
        "/api/v1/audit",
        {"action": ("login", "policy.publish"), "actor": ("person-3",)},
        (),
    )
    for page in ("/enrolments", "/webhooks", "/tokens", "/account"):
        yield page, [page]
    yield from _api(browser, groups, chosen, entries)


def _api(browser, groups, chosen, entries):
    yield "/api/v1/overview", ["/api/v1/overview"]
    found = {
        "group": [str(row["id"]) for row in groups[:2]], "device": chosen, "server": ["popular-003", "rare-000001"],
        "definition": [fleet.version_of(3, 1), fleet.sha256("rare 1")], "harness": fleet.HARNESSES,
        "unit": ["unit-3", "unit-120"], "ring": fleet.RINGS, "kind": fleet.KINDS,
    }  # fmt: skip
    mixed = (
        {"harness": "codex", "ring": "ring3-ga", "kind": "denied", "unit": "unit-90"},
        {"server": "popular-003", "unit": "unit-50"},
    )
    yield from _lists(browser, "", "/api/v1/findings", found, mixed)
    yield "/api/v1/findings/groups/{group}", [f"/api/v1/findings/groups/{row['id']}" for row in groups[:3]]
    for dim in ("kind", "harness", "ring", "unit", "definition", "server"):
        yield from _lists(browser, "", f"/api/v1/prevalence/{dim}", {}, ())
    last = int(json.loads(browser.get("/api/v1/transitions?limit=1"))["rows"][0]["seq"])
    yield (
        "/api/v1/transitions",
        [f"/api/v1/transitions?after={after}" for after in (last, last + 100_000, last + 400_000)],
    )
    yield "/api/v1/transitions limit=200", ["/api/v1/transitions?limit=200"]
    yield "/api/v1/transitions device=", [f"/api/v1/transitions?device={one}" for one in chosen]
    yield "/api/v1/devices/{device}", [f"/api/v1/devices/{one}" for one in chosen]
    yield "/api/v1/devices/{device}/transitions", [f"/api/v1/devices/{one}/transitions" for one in chosen]
    yield "/api/v1/registry/digests", [f"/api/v1/registry/digests?ring={ring}" for ring in ("", *fleet.RINGS)]
    yield (
        "/api/v1/registry/entries/{entry}/devices",
        [f"/api/v1/registry/entries/{one}/devices" for one in entries],
    )
    yield from _lists(browser, "", "/api/v1/tokens", {"kind": ("device", "api"), "device": chosen[:1]}, ())
    for path in ("/api/v1/enrollments", "/api/v1/webhooks/deliveries", "/metrics", "/healthz", "/readyz"):
        yield path, [path]


def _is(browser, device):
    return browser.ask("GET", f"/api/v1/devices/{device}")[0] == 200


def _lists(browser, page, api, filters, mixed):
    """Give the first page, the middle, the largest page, each filter and some together: as a page and in the API."""
    for path, in_page in ((page, True), (api, False)):
        if not path:
            continue
        middle = _middle(browser, path, in_page=in_page)
        yield path, [path]
        if middle:
            yield f"{path} in the middle", [_with(path, {"cursor": middle})]
        if not in_page:
            yield f"{path} limit=200", [_with(path, {"limit": "200"})]
        for name, values in filters.items():
            if values:
                yield f"{path} {name}=", [_with(path, {name: value}) for value in values]
        if mixed:
            yield f"{path} several filters", [_with(path, one) for one in mixed]


def _with(path, parameters):
    return f"{path}?{urlencode(parameters, quote_via=quote)}"


def _middle(browser, path, *, in_page):
    """Turn pages up to WALK, or to the end; give the cursor half way."""
    cursors, cursor = [], ""
    for _ in range(WALK):
        parameters = {"cursor": cursor} if cursor else {}
        body = browser.get(_with(path, parameters if in_page else {**parameters, "limit": "200"}))
        if in_page:
            found = re.findall(rb'[?&;]cursor=([^"&]+)', body)
            cursor = found[-1].decode() if found else ""
        else:
            cursor = str(json.loads(body).get("next") or "")
        if not cursor or cursor in cursors:
            break
        cursors.append(cursor)
    return cursors[-1] if len(cursors) == WALK else cursors[len(cursors) // 2] if cursors else ""
