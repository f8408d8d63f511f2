# SPDX-License-Identifier: Apache-2.0
"""A status as SARIF 2.1.0, for code-scanning pages and other readers of that format.

Source: OASIS SARIF 2.1.0, sections 3.14 to 3.52. Pure: nothing that the status does not have. A file is a URI
relative to the base id HOME, which is never resolved: every account has its own.
"""

from typing import Any, Final
from urllib.parse import quote

from halod.cli import sarif_log
from halod.status import Finding, Skipped, Status

_RULES: Final = (
    (
        "denied",
        "error",
        "Denied MCP server",
        "The definition runs something that the organisation knows to be bad.",
    ),
    ("unapproved", "error", "Unapproved MCP server", "No registry entry approves what the definition runs."),
    (
        "version-drift",
        "warning",
        "MCP server differs from its pin",
        "The definition runs an approved server at another version, or reaches it in another way.",
    ),
    ("inventory", "note", "MCP server", "A definition, listed without judgement."),
    (
        "unread",
        "warning",
        "Not read",
        "A file, entry or account could not be read: nothing is known about it.",
    ),
)


def document(status: Status) -> dict[str, Any]:
    """Give the SARIF log: one run, a result for each finding, inventory row and unread thing.

    `partialFingerprints` keep a result the same while its definition changes: they are made of its identity
    (user, harness, file, scope, server, n-th of that name), as design 8 has it.
    """
    inventory = status.inventory if isinstance(status.inventory, tuple) else ()
    seen: dict[tuple[str, ...], int] = {}
    results = [_finding(row, seen) for row in (*status.mcp_drift, *inventory)]
    results += [_unread(row) for row in status.skipped]
    return sarif_log.log(
        sarif_log.driver("halod", status.halod, _RULES),
        _invocation(status),
        results,
        {
            "originalUriBaseIds": {"HOME": {"description": {"text": "The home of the account."}}},
            "properties": {"mode": status.mode, "ring": status.ring, "units": list(status.units)},
        },
    )


def _invocation(status: Status) -> dict[str, Any]:
    return {"executionSuccessful": not status.skipped, "endTimeUtc": status.time}


def _finding(row: Finding, seen: dict[tuple[str, ...], int]) -> dict[str, Any]:
    kind = row.kind if isinstance(row.kind, str) else "inventory"
    identity = (row.user, row.harness, row.file, row.scope, row.server)
    seen[identity] = number = seen.get(identity, 0) + 1
    detail = row.detail if isinstance(row.detail, str) else f"defined as {row.transport}"
    text = f'"{row.server}" in {row.harness}: {detail}'
    if isinstance(row.fix, str) and row.fix:
        text += f". Fix: {row.fix}"
    result = _result(kind, text, row.file, 0, 0)
    result["partialFingerprints"] = {
        "halodIdentity/v1": "/".join(quote(part, safe="") for part in (*identity, str(number)))
    }
    result["properties"] = {
        "user": row.user,
        "harness": row.harness,
        "server": row.server,
        "scope": row.scope,
        "transport": row.transport,
        "host": row.host if isinstance(row.host, str) else "",
        "definitionSha256": row.definition_sha256,
        "enabled": row.enabled,
        "secretInDefinition": row.secret_in_definition,
    }
    return result


def _unread(row: Skipped) -> dict[str, Any]:
    from halod.cli.table import REASONS

    words, advice = REASONS[row.reason]
    server = row.server if isinstance(row.server, str) else ""
    text = f'entry "{server}": {words}. {advice}' if server else f"{words}. {advice}"
    line = row.line if isinstance(row.line, int) else 0
    column = row.column if isinstance(row.column, int) else 0
    result = _result("unread", text[0].upper() + text[1:], row.file, line, column)
    identity = (row.user, row.harness, row.file, row.reason, server)
    result["partialFingerprints"] = {"halodIdentity/v1": "/".join(quote(part, safe="") for part in identity)}
    result["properties"] = {"user": row.user, "harness": row.harness, "reason": row.reason}
    return result


def _result(rule: str, text: str, file: str, line: int, column: int) -> dict[str, Any]:
    result = sarif_log.result(_RULES, rule, text)
    if file:
        # `~/` is what the base id stands for.
        uri = quote(file.removeprefix("~/"), safe="/")
        result["locations"] = sarif_log.place(uri, "HOME", line, column)
    return result
