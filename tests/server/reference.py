# SPDX-License-Identifier: Apache-2.0
"""The reference for anyone's own endpoint: docs/report-api.md as a small program, standard library only.

`Console.handle` takes one request and gives status, headers and body; it knows no socket. State is in memory:
an endpoint of your own keeps in a database what is an attribute here, and commits it before it answers.
"""

import hashlib
import hmac
import json
import re
import secrets
import threading

REPORT = "/api/v1/fleet/report"
ENROL = "/api/v1/enroll"
POLICY = "/api/v1/policy"
MOST_BYTES = 64 * 1024
MOST_TRANSITIONS = 64
TEXTS = ("time", "device", "hostname", "os", "halod", "user", "ring", "digest")
EVENTS = {"opened", "changed", "resolved"}
TRANSPORTS = {"stdio", "http"}
SCOPES = {"user", "project", "plugin", "agent"}
MODES = {"allowlist", "warn", "inventory"}
SHA256 = re.compile(r"[0-9a-f]{64}")


class Console:
    """Takes reports and enrols devices. Threads may call `handle` at the same time."""

    def __init__(self, tokens=(), enrol_key=""):
        """`tokens` are valid for any device; those that enrolment gives out are bound to theirs."""
        self._lock = threading.Lock()
        self._tokens = dict.fromkeys(tokens, "")
        self._enrol_key = enrol_key
        self._expired = {}
        self._installs = {}
        self._accepted = set()
        self._rejected = set()
        self._seen = {}
        self.policy = b""
        """The signed policy (docs/signing.md), as `halo sign` wrote it; b"": there is none."""
        self.transitions = []
        """What happened, in order, each once: (device, transition)."""
        self.newest = {}
        """The last status of each device, without its transitions."""

    # What an operator does

    def accept(self, device):
        """Let a device that waits enrol anew."""
        with self._lock:
            self._rejected.discard(device)
            self._accepted.add(device)

    def reject(self, device):
        """Refuse a device that waits."""
        with self._lock:
            self._rejected.add(device)

    def revoke(self, token):
        """End a token for good: it proves nothing any more."""
        with self._lock:
            self._tokens.pop(token, None)

    def expire(self, token):
        """End a token by age: no report is taken with it, but it still proves who its device is."""
        with self._lock:
            self._expired[token] = self._tokens.pop(token)

    # What a device asks

    def handle(self, method, path, headers, body):
        """Answer one request; `headers` maps names in lower case. Gives (status, headers, body)."""
        with self._lock:
            if path == POLICY and method == "GET":
                return self._policy(headers)
            if path not in {REPORT, ENROL}:
                return problem(404)
            if method != "POST":
                return 405, {"Allow": "POST"}, b""
            if len(body) > MOST_BYTES:
                return problem(413)
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return problem(415)
            answer = self._report if path == REPORT else self._enrol
            return answer(_bearer(headers), body)

    def _policy(self, headers):
        if not self.policy:
            return problem(404)
        etag = f'"{hashlib.sha256(self.policy).hexdigest()}"'
        if headers.get("if-none-match") == etag:
            return 304, {"ETag": etag}, b""
        return 200, {"ETag": etag, "Content-Type": "application/json"}, self.policy

    def _report(self, token, body):
        known = _find(self._tokens, token)
        if known is None:
            error = ' error="invalid_token"' if token else ""
            return 401, {"WWW-Authenticate": "Bearer" + error}, b""
        status = _decode(body)
        if status is None:
            return problem(400)
        if not is_status(status):
            return problem(422)
        device = status["device"]
        if self._tokens[known] not in {"", device}:
            return problem(403)
        self._take(device, status)
        return 204, {}, b""

    def _take(self, device, status):
        seen = self._seen.setdefault(device, set())
        for one in status.pop("transitions", ()):
            if one["id"] not in seen:
                seen.add(one["id"])
                self.transitions.append((device, one))
        before = self.newest.get(device)
        if status.get("truncated") and before is not None:
            # What a shortened report leaves out is not resolved: it stays as it was known.
            rows = {identity(row): row for row in before["mcpDrift"] + status["mcpDrift"]}
            status = {**status, "mcpDrift": list(rows.values())}
        self.newest[device] = status

    def _enrol(self, key, body):
        if not self._enrol_key or not hmac.compare_digest(key.encode(), self._enrol_key.encode()):
            return 401, {"WWW-Authenticate": "Bearer"}, b""
        asked = _decode(body)
        if asked is None:
            return problem(400)
        if not all(
            _is_text(asked.get(name), 1) for name in ("device", "installId", "hostname", "os", "halod")
        ):
            return problem(422)
        device, install = asked["device"], asked["installId"]
        if device in self._rejected:
            return problem(409)
        if device in self._installs and device not in self._accepted:
            proofs = {**self._tokens, **self._expired}
            old = _find(proofs, str(asked.get("oldToken", "")))
            if old is None or proofs[old] != device or self._installs[device] != install:
                return 202, {"Retry-After": "60"}, b""
        return self._grant(device, install)

    def _grant(self, device, install):
        self._accepted.discard(device)
        self._installs[device] = install
        for tokens in (self._tokens, self._expired):
            for ended in [token for token, bound in tokens.items() if bound == device]:
                del tokens[ended]
        token = secrets.token_urlsafe(32)
        self._tokens[token] = device
        return 201, {"Content-Type": "application/json"}, json.dumps({"token": token}).encode()


def problem(status):
    """Answer with an error that says nothing but its number: details belong into the server's log."""
    return status, {"Content-Type": "application/problem+json"}, json.dumps({"status": status}).encode()


def is_status(status):
    """Tell whether a document is a status: fields that are needed are there, and of their kind.

    Fields that are not known are left alone: a later halod may send more.
    """
    return (
        status.get("schemaVersion") == 1
        and all(_is_text(status.get(name)) for name in TEXTS)
        and bool(status["device"])
        and status.get("mode") in MODES
        and _all(status.get("units"), _is_text)
        and _all(status.get("mcpDrift"), is_finding)
        and _all(status.get("mcpApproved"), lambda row: isinstance(row, dict))
        and _all(status.get("skipped"), lambda row: isinstance(row, dict))
        and isinstance(status.get("coverage"), dict)
        and _is_count(status.get("mcpDriftTotal"))
        and _all(status.get("transitions", []), _is_transition)
        and len(status.get("transitions", [])) <= MOST_TRANSITIONS
    )


def identity(row):
    """Give what makes a finding the same one in two reports."""
    return tuple(row[name] for name in ("user", "harness", "file", "scope", "server"))


def is_finding(row):
    """Tell whether a document is a finding."""
    return (
        isinstance(row, dict)
        and all(_is_text(row.get(name)) for name in ("harness", "file", "server", "user"))
        and row.get("transport") in TRANSPORTS
        and row.get("scope") in SCOPES
        and isinstance(row.get("enabled"), bool)
        and isinstance(row.get("definitionSha256"), str)
        and SHA256.fullmatch(row["definitionSha256"]) is not None
    )


def _is_transition(row):
    return (
        isinstance(row, dict)
        and _is_text(row.get("id"), 1)
        and _is_text(row.get("time"))
        and row.get("event") in EVENTS
        and is_finding(row.get("finding"))
    )


def _is_text(value, least=0):
    return isinstance(value, str) and least <= len(value) <= 1024


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _all(rows, test):
    return isinstance(rows, list) and all(test(row) for row in rows)


def _decode(body):
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _bearer(headers):
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _find(tokens, given):
    """Find a token without telling by the time it takes how much of it was right."""
    found = None
    for token in tokens:
        if hmac.compare_digest(token.encode(), given.encode("utf-8", "replace")):
            found = token
    return found
