# SPDX-License-Identifier: Apache-2.0
"""Findings as OCSF 1.8.0 Detection Findings (class 2004), with the profile `host`. Pure.

Source of the requirements: the OCSF schema, release 1.8.0 (`events/findings/detection_finding.json` and the
objects named there, github.com/ocsf/ocsf-schema). `tests/console/assets/ocsf-1.8.0.json` holds those that matter
here, and the tests hold every event to them and to the whole compiled schema.

Hostnames, users, rings and units are claims of the device, as everywhere. Nothing here says more than the row does.
"""

import ipaddress
from typing import Any, Final

from halod import __version__
from halod.console.store.read.findings import FindingRow
from halod.status import clean

VERSION: Final = "1.8.0"
_CLASS: Final = 2004
_SEVERITY: Final = {"denied": (4, "High"), "unapproved": (3, "Medium"), "version-drift": (2, "Low")}
_ACTIVITY: Final = {1: "Create", 2: "Update"}
_TITLE: Final = {
    "denied": "MCP server on the deny list",
    "unapproved": "MCP server that nobody approved",
    "version-drift": "MCP server at another version than the registry pins",
}


def event(row: FindingRow) -> dict[str, Any]:
    """Give one finding as an event. Times are milliseconds since 1970, as OCSF has them."""
    activity = 1 if row.last_seen == row.first_seen else 2
    severity_id, severity = _SEVERITY.get(row.kind, (0, "Unknown"))
    found: dict[str, Any] = {
        "activity_id": activity,
        "activity_name": _ACTIVITY[activity],
        "category_uid": 2,
        "category_name": "Findings",
        "class_uid": _CLASS,
        "class_name": "Detection Finding",
        "type_uid": _CLASS * 100 + activity,
        "type_name": f"Detection Finding: {_ACTIVITY[activity]}",
        "time": row.last_seen * 1000,
        "severity_id": severity_id,
        "severity": severity,
        "status_id": 1,
        "status": "New",
        "message": _text(row.detail) or _TITLE.get(row.kind, "MCP server"),
        "metadata": _metadata(row),
        "finding_info": _info(row),
        "device": _device(row),
        "resources": [_resource(row)],
        "evidences": [_evidence(row)],
        "observables": _observables(row),
        "unmapped": {
            "harness": _text(row.harness),
            "scope": _text(row.scope),
            "ring": _text(row.ring),
            "projects": row.projects,
            "enabled": row.enabled,
            "stale": row.stale,
            "secret_in_definition": row.secret,
            "group": row.thing,
        },
    }
    if row.fix:
        found["remediation"] = {"desc": _text(row.fix)}
    return found


def _text(value: str) -> str:
    return clean(value, len(value))


def _metadata(row: FindingRow) -> dict[str, Any]:
    return {
        "version": VERSION,
        "uid": str(row.id),
        "profiles": ["host"],
        "product": {"name": "halod", "vendor_name": "Halos", "version": __version__},
        "log_name": "halo-server",
    }


def _info(row: FindingRow) -> dict[str, Any]:
    return {
        "uid": str(row.id),
        "title": _TITLE.get(row.kind, "MCP server"),
        "desc": _text(row.detail),
        "types": [_text(row.kind)],
        "created_time": row.first_seen * 1000,
        "first_seen_time": row.first_seen * 1000,
        "last_seen_time": row.last_seen * 1000,
        "modified_time": row.last_seen * 1000,
    }


def _device(row: FindingRow) -> dict[str, Any]:
    found = {"uid": _text(row.device), "type_id": 0, "type": "Unknown"}
    if row.hostname:
        found["hostname"] = _text(row.hostname)
    if row.username:
        found["owner"] = {"name": _text(row.username)}
    return found


def _resource(row: FindingRow) -> dict[str, Any]:
    return {
        "uid": _text(row.sha256),
        "name": _text(row.server),
        "type": f"MCP server ({_text(row.transport)})",
    }


def _evidence(row: FindingRow) -> dict[str, Any]:
    found: dict[str, Any] = {
        "data": {"server": _text(row.server), "definition_sha256": _text(row.sha256)},
    }
    path = _text(row.file)
    if path:
        name = path.rpartition("/")[2] or path
        found["file"] = {"name": name, "path": path, "type_id": 1, "type": "Regular File"}
    if row.username:
        found["user"] = {"name": _text(row.username)}
    if row.host:
        found["dst_endpoint"] = _endpoint(_text(row.host))
    return found


def _endpoint(host: str) -> dict[str, Any]:
    """Give a host, `name:port` or `[address]:port`, as an endpoint."""
    name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdecimal() else (host, "", "")
    found: dict[str, Any] = {}
    bare = name.removeprefix("[").removesuffix("]")
    try:
        found["ip"] = str(ipaddress.ip_address(bare))
    except ValueError:
        found["hostname"] = name
    if port and int(port) <= 65535:
        found["port"] = int(port)
    return found


def _observables(row: FindingRow) -> list[dict[str, Any]]:
    found = [
        {
            "name": "evidences[].data.definition_sha256",
            "type_id": 8,
            "type": "Hash",
            "value": _text(row.sha256),
        }
    ]
    if row.hostname:
        found.append({
            "name": "device.hostname", "type_id": 1, "type": "Hostname", "value": _text(row.hostname)
        })  # fmt: skip
    if row.username:
        found.append({
            "name": "device.owner.name", "type_id": 4, "type": "User Name", "value": _text(row.username)
        })  # fmt: skip
    return found
