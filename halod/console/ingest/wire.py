# SPDX-License-Identifier: Apache-2.0
"""Reads what devices send: lenient towards later and earlier agents, strict towards everything that would be kept.

Every text is a claim and hostile. What is read here has the types that follow (fields that are not known are
dropped, a missing optional one has its default, the words of a later agent are kept as text); what `report` gives has
also passed the rules of `halod.status`, so it holds no control, format or surrogate character and nothing too long.
"""

import hashlib
import re
from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec

from halod import status as rules
from halod.console.store.report import Approved, Finding, Report, Skipped, Transition
from halod.status import is_host, is_sha256

MOST_BYTES: Final = 64 * 1024
MOST_TRANSITIONS: Final = 64
MOST_UNITS: Final = 8
"""Units of a device that are kept: findings are counted under each."""
WORD: Final = 64
NAME: Final = 128
FILE_BYTES: Final = 640
"""UTF-8 bytes of a file that are kept: with every other part of a finding's identity they fit into one index row."""
DEVICE: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~:=@+-]{1,128}")
"""What a device's identity is made of: it stands in addresses."""
_PLAIN_ID: Final = re.compile(r"[!-~]{1,128}")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Text = Annotated[str, msgspec.Meta(max_length=1024)]


class Malformed(Exception):
    """The body is no JSON object: 400."""


class NotAStatus(Exception):
    """The document is not one that this console takes: 422."""


class _Finding(msgspec.Struct, rename="camel", kw_only=True):
    harness: Text
    file: Text
    server: Text
    kind: Text = "unapproved"
    transport: Text = ""
    host: str = ""
    definition_sha256: str = ""
    detail: Text = ""
    fix: Text = ""
    user: Text = ""
    scope: Text = ""
    enabled: bool = True
    secret_in_definition: bool = False
    projects: Count = 0
    stale: bool = False


class _Approved(msgspec.Struct, rename="camel", kw_only=True):
    harness: Text = ""
    id: Text
    user: Text = ""
    count: Count = 1


class _Skipped(msgspec.Struct, rename="camel", kw_only=True):
    user: Text = ""
    harness: Text = ""
    file: Text = ""
    reason: Text
    server: Text = ""
    line: Count = 0
    column: Count = 0
    errno: Text = ""


class _Coverage(msgspec.Struct, rename="camel", kw_only=True):
    # durationMs differs every time: it is not read
    accounts: Count = 0
    files: Count = 0
    definitions: Count = 0
    not_covered: tuple[Text, ...] = ()


class _Transition(msgspec.Struct, rename="camel", kw_only=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    time: Text = ""
    event: Text
    finding: _Finding
    was: str = ""


class _Status(msgspec.Struct, rename="camel", kw_only=True):
    """Demanded are the fields of an old Halos report that say something, and nothing else."""

    schema_version: Literal[1] = 1
    time: Text
    hostname: Text
    user: Text
    ring: Text
    digest: Text
    mcp_drift: tuple[_Finding, ...]
    last_error: Text = ""
    error_code: Text = ""
    device: Text = ""
    os: Text = ""
    halod: Text = ""
    units: tuple[Text, ...] = ()
    mode: Text = ""
    mcp_approved: tuple[_Approved, ...] = ()
    skipped: tuple[_Skipped, ...] = ()
    transitions: Annotated[tuple[_Transition, ...], msgspec.Meta(max_length=MOST_TRANSITIONS)] = ()
    coverage: _Coverage | msgspec.UnsetType = msgspec.UNSET
    mcp_drift_total: Count | msgspec.UnsetType = msgspec.UNSET
    truncated: bool = False


class Enrolment(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What a machine asks with, as it was sent but for lengths."""

    device: str
    install_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    hostname: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    os: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    halod: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    old_token: Annotated[str, msgspec.Meta(max_length=4096)] = ""


# A fleet says the same words again and again; what is kept is bounded (17 and 19 MiB, if every text is the worst).
clean: Final = lru_cache(2048)(rules.clean)
server_name: Final = lru_cache(4096)(rules.server_name)

_STATUS: Final = msgspec.json.Decoder(_Status)
_ENROLMENT: Final = msgspec.json.Decoder(Enrolment)
_ENCODER: Final = msgspec.json.Encoder()
_VERSION: Final = b"1\0"
"""Of the rules by which a document becomes rows: another one makes every next report a change."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was read, not yet cleaned. `device` "" when it names none."""

    device: str
    content: str
    transitions: int
    status: _Status


def read(body: bytes) -> Document:
    """Read a report.

    Raises:
        Malformed: it is no JSON object.
        NotAStatus: it is none that is taken. Neither says what is in it.
    """
    try:
        status = _STATUS.decode(body)
    except msgspec.ValidationError:
        # Told apart from what is no object at all, which the decoder does not.
        raise (NotAStatus if body.lstrip()[:1] == b"{" else Malformed) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Malformed from None
    if status.device and DEVICE.fullmatch(status.device) is None:
        raise NotAStatus
    time, transitions = status.time, status.transitions
    status.time, status.transitions = "", ()
    content = hashlib.sha256(_VERSION + _ENCODER.encode(status)).hexdigest()
    status.time, status.transitions = time, transitions
    return Document(device=status.device, content=content, transitions=len(transitions), status=status)


def read_enrolment(body: bytes) -> Enrolment:
    """Read what a machine asks for a token with; errors as those of `read`."""
    try:
        asked = _ENROLMENT.decode(body)
    except msgspec.ValidationError:
        raise (NotAStatus if body.lstrip()[:1] == b"{" else Malformed) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Malformed from None
    if DEVICE.fullmatch(asked.device) is None or _PLAIN_ID.fullmatch(asked.install_id) is None:
        raise NotAStatus
    return asked


def report(document: Document, device: str) -> Report:
    """Clean a document that is taken for `device`. Total: nothing that was read is refused here."""
    status = document.status
    coverage = status.coverage
    seen = coverage if isinstance(coverage, _Coverage) else _Coverage()
    findings = tuple(_finding(row) for row in status.mcp_drift)
    total = status.mcp_drift_total
    return Report(
        device=device,
        hostname=clean(status.hostname, NAME * 2),
        os=clean(status.os, WORD),
        halod=clean(status.halod, WORD),
        username=clean(status.user, NAME),
        ring=clean(status.ring, NAME),
        units=tuple(sorted({unit for one in status.units if (unit := clean(one, NAME))}))[:MOST_UNITS],
        digest=clean(status.digest, NAME),
        mode=clean(status.mode, WORD),
        claimed_time=clean(status.time, WORD),
        content=document.content,
        findings=findings,
        approved=_approved(status),
        skipped=tuple(_skipped(row) for row in status.skipped),
        transitions=tuple(_transition(one) for one in status.transitions),
        accounts=seen.accounts,
        files=seen.files,
        definitions=seen.definitions,
        not_covered=tuple(sorted({clean(one, WORD) for one in seen.not_covered} - {""}))[:16],
        drift_total=max(total, len(findings)) if isinstance(total, int) else len(findings),
        truncated=status.truncated,
        last_error=clean(status.last_error),
        error_code=clean(status.error_code, NAME),
        looked=isinstance(coverage, _Coverage),
    )


def _finding(row: _Finding) -> Finding:
    return Finding(
        username=clean(row.user, NAME),
        harness=clean(row.harness, NAME),
        file=_file(row.file),
        scope=clean(row.scope, WORD),
        server=server_name(row.server),
        kind=clean(row.kind, WORD) or "unapproved",
        transport=clean(row.transport, WORD),
        host=row.host if is_host(row.host) else "",
        sha256=row.definition_sha256 if is_sha256(row.definition_sha256) else "",
        detail=clean(row.detail),
        fix=clean(row.fix),
        projects=row.projects,
        enabled=row.enabled,
        secret=row.secret_in_definition,
        stale=row.stale,
    )


def _approved(status: _Status) -> tuple[Approved, ...]:
    counts: dict[tuple[str, str, str], int] = {}
    for row in status.mcp_approved:
        key = (clean(row.harness, NAME), clean(row.user, NAME), clean(row.id, NAME))
        counts[key] = min(counts.get(key, 0) + row.count, 2**31 - 1)
    return tuple(
        Approved(harness=harness, username=username, entry=entry, count=count)
        for (harness, username, entry), count in counts.items()
    )


def _skipped(row: _Skipped) -> Skipped:
    return Skipped(
        username=clean(row.user, NAME),
        harness=clean(row.harness, NAME),
        file=_file(row.file),
        reason=clean(row.reason, WORD),
        server=server_name(row.server),
        errno=clean(row.errno, WORD),
        line=row.line,
        column=row.column,
    )


def _transition(one: _Transition) -> Transition:
    return Transition(
        tid=_transition_id(one.id),
        claimed_time=clean(one.time, WORD),
        event=clean(one.event, WORD),
        was=one.was if is_sha256(one.was) else "",
        finding=_finding(one.finding),
    )


def _file(text: str) -> str:
    """Give a file as it is shown; one too long for an index row of PostgreSQL (2,704 bytes) ends in its hash."""
    shown = clean(text)
    data = shown.encode()
    if len(data) <= FILE_BYTES:
        return shown
    digest = hashlib.sha256(data).hexdigest()[:16]
    return data[: FILE_BYTES - 20].decode(errors="ignore") + "…" + digest


def _transition_id(text: str) -> str:
    """Give an id as text that two different ids never share: long or odd ones by their hash."""
    if _PLAIN_ID.fullmatch(text) and not text.startswith("sha256:"):
        return text
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
