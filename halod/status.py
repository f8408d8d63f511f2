# SPDX-License-Identifier: Apache-2.0
"""The wire model: the only types that leave the machine (design 8), and the rules for every string in them.

This module imports nothing of the package. What is not here does not leave: no path below a project, no
command line, no argument, no environment, no URL beyond its host. Invariants:

1. `server_name` and `clean` are total and idempotent: any text in, text that may leave out, and what is out
   passes unchanged. The reader of a worker's answer relies on it (`assemble`).
2. A name that could hold a secret leaves only as the first 12 hex digits of its sha256.
3. A list of rows has one order, whatever order they were found in.
"""

import hashlib
import math
import re
import unicodedata
from typing import Annotated, Any, Final, Literal

import msgspec

Kind = Literal["denied", "unapproved", "version-drift"]
Scope = Literal["user", "project", "plugin", "agent"]
Transport = Literal["stdio", "http"]
Reason = Literal[
    "escapes-home", "symlink", "changed", "not-regular", "wrong-owner", "hard-linked", "too-large",
    "unreadable", "denied-by-system", "error", "malformed", "malformed-entry", "opaque", "too-many-entries",
    "home-unavailable", "no-account", "worker-crashed", "worker-timeout", "worker-invalid",
]  # fmt: skip
NotCovered = Literal["project-files", "cloud-connectors", "environment-overrides", "plugin-sources"]
Event = Literal["opened", "changed", "resolved"]


Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
Name = Annotated[str, msgspec.Meta(max_length=128)]
Host = Annotated[str, msgspec.Meta(max_length=262)]
Text = Annotated[str, msgspec.Meta(max_length=1024)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """Base of the wire types: camelCase names."""


class Finding(_Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A definition that differs from the registry, or (without `kind`, `detail`, `fix`) an inventory row."""

    harness: Name
    file: Text
    server: Name
    kind: Kind | msgspec.UnsetType = msgspec.UNSET
    transport: Transport
    host: Host | msgspec.UnsetType = msgspec.UNSET
    definition_sha256: Sha256
    detail: Text | msgspec.UnsetType = msgspec.UNSET
    fix: Text | msgspec.UnsetType = msgspec.UNSET
    user: Text
    scope: Scope
    enabled: bool
    secret_in_definition: bool = False
    projects: Count | msgspec.UnsetType = msgspec.UNSET
    stale: bool = False


class Approved(_Wire, frozen=True, kw_only=True):
    """How many definitions of one harness and account an entry approves."""

    harness: Name
    id: Text
    user: Text
    count: Count


class Skipped(_Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A file, entry or account that could not be read, and why. `errno` is a name such as ELOOP."""

    user: Text
    harness: Name = ""
    file: Text = ""
    reason: Reason
    server: Name | msgspec.UnsetType = msgspec.UNSET
    line: Count | msgspec.UnsetType = msgspec.UNSET
    column: Count | msgspec.UnsetType = msgspec.UNSET
    errno: Name | msgspec.UnsetType = msgspec.UNSET


class Coverage(_Wire, frozen=True, kw_only=True):
    """What was looked at. `duration_ms` is wall time; `not_covered` names what no scan of a home can see."""

    accounts: Count
    files: Count
    definitions: Count
    duration_ms: Count
    not_covered: tuple[NotCovered, ...] = ("project-files", "cloud-connectors", "environment-overrides")


class Transition(_Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A finding that opened, changed (`was` is the old hash) or was resolved."""

    id: Text
    time: Text
    event: Event
    finding: Finding
    was: Sha256 | msgspec.UnsetType = msgspec.UNSET


class Status(_Wire, frozen=True, kw_only=True):
    """The status document: one cycle, one machine (design 8)."""

    schema_version: int = 1
    time: Text
    device: Text
    hostname: Text
    os: Text
    halod: Text
    user: Text
    ring: Text
    units: tuple[Text, ...]
    digest: Text
    mode: Literal["allowlist", "warn", "inventory"]
    mcp_drift: tuple[Finding, ...]
    mcp_approved: tuple[Approved, ...]
    inventory: tuple[Finding, ...] | msgspec.UnsetType = msgspec.UNSET
    skipped: tuple[Skipped, ...]
    transitions: tuple[Transition, ...] | msgspec.UnsetType = msgspec.UNSET
    coverage: Coverage
    mcp_drift_total: Count
    truncated: bool = False
    last_error: Text = ""
    error_code: Name = ""


# --- strings -----------------------------------------------------------------------------------------------

NAME_LIMIT: Final = 128
"""Characters of a server name that are reported (design 8)."""
TEXT_LIMIT: Final = 1024
"""Characters of any other string that is reported: room for a `detail` with two pins and a message."""
FILE_LIMIT: Final = 1024
"""Characters of a `file`: a location's fixed text and its parts."""

_CERTAIN: Final = (
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "dckr_pat_"),
    *("xoxb-", "xoxp-", "xoxa-", "xoxe-", "xoxr-", "xoxs-", "xapp-", "AIza", "ya29.", "GOCSPX-", "ATATT3"),
    *("sk-ant-", "sk-proj-", "sk-or-", "sk-svcacct-", "sk_live_", "sk_test_", "pk_live_", "rk_live_"),
    *("whsec_", "gsk_", "shpat_", "shpss_", "dop_v1_", "lin_api_", "figd_", "sntrys_", "sntryu_", "glsa_"),
    *("hvs.", "hvb.", "rubygems_"),
)
# These begin ordinary words too (`npm_search`, `sk-learn`): they count only before text that looks drawn.
_AMBIGUOUS: Final = (
    *("npm_", "pypi-", "hf_", "r8_", "ntn_", "secret_", "SG.", "eyJ", "sk-", "xai-", "pul-", "tfp_"),
    *("AKIA", "ASIA"),
)
KNOWN_TOKEN_PREFIXES: Final = (*_CERTAIN, *_AMBIGUOUS)
"""How well-known credentials begin, as their issuers write them (case counts)."""

_DRAWN: Final = r"(?:(?=[A-Za-z0-9_.=-]{0,64}[0-9A-Z])[A-Za-z0-9_.=-]{10}|[A-Za-z0-9]{20})"
_TOKEN: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, _CERTAIN))}"
    rf"|(?:{'|'.join(map(re.escape, _AMBIGUOUS))}){_DRAWN})"
)
_HOME_PATH: Final = re.compile(
    r"(?:^|[^A-Za-z0-9])(?:~[\w.-]*[/\\]|[/\\](?:[\w.-]+[/\\]){0,4}(?:home|Users|root)(?:[/\\]|$))"
    r"|\$\{?HOME\b|%(?:USERPROFILE|HOMEPATH)%|\$env:(?:USERPROFILE|HOME(?:PATH)?)\b",
    re.IGNORECASE,
)
_MAIL: Final = re.compile(r"[^\s@/:<>()\"',;]@(?:[\w-]+\.)+[^\W\d_][\w-]+")
_RUN: Final = re.compile(r"[A-Za-z0-9_+=-]{20,}")
_HEX_DIGITS: Final = re.compile(r"(?:[0-9A-Fa-f][_-]?){32}")
_DRAWN_BITS: Final = 3.7
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs"})

_LABEL: Final = r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)"
_HOST: Final = re.compile(
    rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9a-f:.]{{2,45}}\])(?::(?P<port>[1-9][0-9]{{0,4}}))?"
)
_HASH: Final = re.compile(r"[0-9a-f]{64}")


def clean(text: str, limit: int = TEXT_LIMIT) -> str:
    """Drop control, format, bidi and surrogate characters, fold white space, keep `limit` characters.

    Idempotent. Nothing is redacted: for text of ours, of the organisation, or a name from the system.
    """
    if not (text.isascii() and text.isprintable()):
        # A tab or a line end is white space before it is a control character.
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or unicodedata.category(char) not in _DROPPED
        )
    return " ".join(text.split())[:limit].rstrip()


def server_name(name: str) -> str:
    """Give the form of a user-chosen name that may leave: itself, shortened, or a piece of its sha256.

    Order (design 8): drop and fold, test, cut to 128 characters. What the cut leaves is tested once more, so
    that the result passes unchanged when it is given in again. A name of which nothing is left is hashed too.
    """
    folded = clean(name, len(name))
    cut = folded[:NAME_LIMIT].rstrip()
    if _may_hold_secret(folded) or (cut != folded and _may_hold_secret(cut)) or (name and not cut):
        return hashed_name(name)
    return cut


def hashed_name(name: str) -> str:
    """Give `sha256:` and the first 12 hex digits of the sha256 of the name's UTF-8 bytes, as written."""
    return "sha256:" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _may_hold_secret(text: str) -> bool:
    return _tells(text) or (not text.isascii() and _tells(_plain(text)))


def _plain(text: str) -> str:
    """Give a text as a person reads it: wide and styled letters plain, marks that change nothing dropped.

    A full-width at-sign makes a mail address to a reader, and an invisible mark goes with a token that is copied.
    """
    plain = unicodedata.normalize("NFKC", text)
    return "".join(char for char in plain if unicodedata.category(char) != "Mn")


def _tells(text: str) -> bool:
    if "://" in text or _HOME_PATH.search(text) is not None or _MAIL.search(text) is not None:
        return True
    return has_token_prefix(text) or has_secret_run(text)


def has_token_prefix(text: str) -> bool:
    """Tell whether something in `text` begins like a well-known credential."""
    return _TOKEN.search(text) is not None


def has_secret_run(text: str) -> bool:
    """Tell whether `text` has a run of 20 or more of `[A-Za-z0-9_+=-]` that looks drawn, not written.

    That is: 32 hex digits in a row (`-` and `_` between them do not count, as in a UUID), or a digit, a lower
    and an upper case letter at 3.7 bits a character or more (Shannon, over the run).
    """
    return any(_looks_drawn(run.group()) for run in _RUN.finditer(text))


def _looks_drawn(run: str) -> bool:
    if _HEX_DIGITS.search(run) is not None:
        return True
    mixed = all(any(low <= char <= high for char in run) for low, high in ("09", "az", "AZ"))
    return mixed and _bits_per_character(run) >= _DRAWN_BITS


def _bits_per_character(text: str) -> float:
    size = len(text)
    counts = (text.count(char) for char in set(text))
    return -sum(count / size * math.log2(count / size) for count in counts)


def is_host(text: str) -> bool:
    """Tell whether `text` is a host that may leave: "", or an A-label name or address, and perhaps a port."""
    if not text:
        return True
    match = _HOST.fullmatch(text)
    if match is None or len(text) > 262:
        return False
    port = match["port"]
    return port is None or int(port) <= 65535


def is_sha256(text: str) -> bool:
    """Tell whether `text` is 64 lower-case hex digits."""
    return _HASH.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Tell whether `text` is what `server_name` gives."""
    return server_name(text) == text


def file_part(part: str) -> str:
    """Redact what a wildcard of a location matched: each component of it passes the rule for server names."""
    return "/".join([_component(text) for text in part.split("/")])


def _component(text: str) -> str:
    shown = server_name(text)
    # A folder may be called "." and an invisible character: what is left must not read as a step in a path.
    return hashed_name(text) if shown in {".", ".."} else shown


def check_file_parts(parts: tuple[str, ...]) -> bool:
    """Tell whether wildcard parts may leave: redacted components, none of them `.` or `..`.

    A part may be empty (`**` that matched nothing); a component of several may not.
    """
    return all(not part or all(_is_component(component) for component in part.split("/")) for part in parts)


def _is_component(text: str) -> bool:
    return text not in {"", ".", ".."} and is_name(text)


# --- rows and documents ------------------------------------------------------------------------------------

SENT_FINDINGS: Final = 256
"""Findings of a report that is sent (design 8)."""
SENT_BYTES: Final = 60 * 1024
"""Bytes of a report that is sent, as JSON (design 8)."""
_SEVERITY: Final = {"denied": 0, "unapproved": 1, "version-drift": 2}

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Status)


def finding_key(row: Finding) -> tuple[str, ...]:
    """Order of findings: user, harness, file, scope, server, hash, then what is left to tell them apart."""
    kind = row.kind if isinstance(row.kind, str) else ""
    host = row.host if isinstance(row.host, str) else ""
    head = (row.user, row.harness, row.file, row.scope, row.server, row.definition_sha256)
    return (*head, kind, row.transport, host, "" if row.enabled else "off")


def skipped_key(row: Skipped) -> tuple[str, str, str, str, str, int]:
    """Order of skipped rows: user, harness, file, server, reason, line."""
    server = row.server if isinstance(row.server, str) else ""
    return (row.user, row.harness, row.file, server, row.reason, row.line if isinstance(row.line, int) else 0)


def approved_key(row: Approved) -> tuple[str, str, str]:
    """Order of approved rows: user, harness, id."""
    return (row.user, row.harness, row.id)


def encode(value: Status | Finding | Skipped | Transition) -> bytes:
    """Encode as JSON: UTF-8, one line, fields in the order of the types."""
    return _ENCODER.encode(value)


def decode(data: bytes) -> Status:
    """Decode a status document; fields of a later version are ignored.

    Raises:
        msgspec.DecodeError: `data` is no status document. Its text may quote the document.
    """
    return _DECODER.decode(data)


def shorten(status: Status, max_findings: int = SENT_FINDINGS, max_bytes: int = SENT_BYTES) -> Status:
    """Cut a status to what may be sent: at most `max_findings` findings, and `max_bytes` of JSON.

    An inventory row counts as a finding. What is kept goes by severity (denied, unapproved, version-drift);
    the order of the rows stays. `truncated` tells that something is missing, `mcp_drift_total` how many
    findings there were. A quarter of the room is held for skipped rows: many findings must not hide that
    something was not read. Transitions are not cut: how many travel is the sender's decision.
    """
    inventory = status.inventory if isinstance(status.inventory, tuple) else ()
    if len(status.mcp_drift) + len(inventory) <= max_findings and len(encode(status)) <= max_bytes:
        return status
    bare = _replace(status, truncated=True, mcp_drift=(), mcp_approved=(), skipped=())
    if inventory:
        bare = _replace(bare, inventory=())
    room = max(max_bytes - len(encode(bare)), 0)
    skipped = _fitting(status.skipped, room // 4)
    room -= _size(skipped)
    drift = _worst(status.mcp_drift, max_findings, room)
    room -= _size(drift)
    listed = _fitting(inventory[: max(max_findings - len(drift), 0)], room)
    room -= _size(listed)
    approved = _fitting(status.mcp_approved, room)
    room -= _size(approved)
    skipped = _fitting(status.skipped, room + _size(skipped))
    short = _replace(bare, mcp_drift=drift, mcp_approved=approved, skipped=skipped)
    return _replace(short, inventory=listed) if inventory else short


def _replace(status: Status, **fields: object) -> Status:
    return msgspec.structs.replace(status, **fields)


def _worst(rows: tuple[Finding, ...], most: int, room: int) -> tuple[Finding, ...]:
    """Keep the gravest rows that fit, in the order in which they stood."""
    ranked = sorted(range(len(rows)), key=lambda at: (_SEVERITY.get(str(rows[at].kind), 3), at))
    kept = _fitting(tuple(rows[at] for at in ranked[:most]), room)
    return tuple(rows[at] for at in sorted(ranked[: len(kept)]))


def _fitting(rows: tuple[Any, ...], room: int) -> tuple[Any, ...]:
    """Give as many of the first rows as fit into `room` bytes of JSON, each with its comma."""
    for count, row in enumerate(rows):
        room -= len(_ENCODER.encode(row)) + 1
        if room < 0:
            return rows[:count]
    return rows


def _size(rows: tuple[Any, ...]) -> int:
    return sum(len(_ENCODER.encode(row)) + 1 for row in rows)


def schema() -> dict[str, Any]:
    """Give the published JSON Schema (2020-12) of the status document."""
    body = msgspec.json.schema(Status)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:halod:status:1",
        "title": "halod status",
        **body,
    }
