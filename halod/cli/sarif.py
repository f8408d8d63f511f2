# SPDX-License-Identifier: Apache-2.0
"""A status as SARIF 2.1.0, for code-scanning pages and other readers of that format.

Source: OASIS SARIF 2.1.0, sections 3.14 to 3.52. Pure: nothing that the status does not have. A file is a URI
relative to the base id HOME, which is never resolved: every account has its own.
"""

from typing import Any, Final
from urllib.parse import quote

from halod.status import Finding, Skipped, Status

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

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
_AT: Final = {rule[0]: index for index, rule in enumerate(_RULES)}


def document(status: Status) -> dict[str, Any]:
    """Give the SARIF log: one run, a result for each finding, inventory row and unread thing.

    `partialFingerprints` keep a result the same while its definition changes: they are made of its identity
    (user, harness, file, scope, server, n-th of that name), as design 8 has it.
    """
    inventory = status.inventory if isinstance(status.inventory, tuple) else ()
    seen: dict[tuple[str, ...], int] = {}
    results = [_finding(row, seen) for row in (*status.mcp_drift, *inventory)]
    results += [_unread(row) for row in status.skipped]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(status)},
                "originalUriBaseIds": {"HOME": {"description": {"text": "The home of the account."}}},
                "columnKind": "unicodeCodePoints",
                "invocations": [_invocation(status)],
                "results": results,
                "properties": {"mode": status.mode, "ring": status.ring, "units": list(status.units)},
            }
        ],
    }


def _driver(status: Status) -> dict[str, Any]:
    return {
        "name": "halod",
        "semanticVersion": status.halod,
        "rules": [
            {
                "id": name,
                "name": "".join(word.capitalize() for word in title.split()),
                "shortDescription": {"text": title},
                "fullDescription": {"text": text},
                "defaultConfiguration": {"level": level},
            }
            for name, level, title, text in _RULES
        ],
    }


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
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": _AT[rule],
        "level": _RULES[_AT[rule]][1],
        "message": {"text": text},
    }
    if file:
        # `~/` is what the base id stands for.
        uri = quote(file.removeprefix("~/"), safe="/")
        location: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "HOME"}}
        if line:
            location["region"] = {"startLine": line, **({"startColumn": column} if column else {})}
        result["locations"] = [{"physicalLocation": location}]
    return result
