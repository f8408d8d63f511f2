# SPDX-License-Identifier: Apache-2.0
"""OpenAPI of what has no `Operation`: what agents ask, health, and routes of other rooms. Pure.

docs/report-api.md says in words what agents rely on; docs/openapi.yaml is that contract for a server of one's own.
"""

from typing import Any, Final

from halod.console.ingest.enroll import BODY as ENROLL_BODY
from halod.console.ingest.wire import DEVICE, MOST_TRANSITIONS
from halod.status import schema as status_schema

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 1024}
_DEVICE: Final = {"type": "string", "pattern": f"^{DEVICE.pattern}$"}
_JSON: Final = "application/json"
RETRY_AFTER: Final = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}}}


def problem(text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- parts of OpenAPI
    """Describe an answer that is a problem document."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": text, "content": content, **more}


def _body(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"required": True, "description": text, "content": {_JSON: {"schema": schema}}}


def _json(text: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- parts of OpenAPI
    return {"description": text, "content": {_JSON: {"schema": schema}}, **more}


def _texts(*names: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(names),
        "properties": {name: {"type": "string"} for name in names},
    }


def _named(name: str, text: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": text,
        "schema": schema or {**_TEXT, "pattern": "^[^\\u0000]*$"},
    }


_NUMBER: Final = {"type": "integer", "minimum": 1, "maximum": 10**18 - 1, "format": "int64"}
_COUNT: Final = {
    "type": "object",
    "required": ["deliveries"],
    "properties": {"deliveries": {"type": "integer", "minimum": 1}},
}
_ENROLMENT: Final = {
    "type": "object",
    "required": ["device", "installId", "hostname", "os", "halod"],
    "properties": {
        "device": {**_DEVICE, "description": "As in a status. Stable, and no secret."},
        "installId": {
            "type": "string",
            "pattern": "^[!-~]{1,128}$",
            "description": "Random; the token is bound to it.",
        },
        "hostname": _TEXT,
        "os": _TEXT,
        "halod": {**_TEXT, "description": "The agent's version."},
        "oldToken": {"type": "string", "maxLength": 4096, "description": "The device's last token."},
    },
}
_PUBLISHED: Final = {
    "type": "object",
    "required": ["org", "version", "digest", "issued", "expires", "servers"],
    "properties": {
        "org": {"type": "string"},
        "version": {"type": "integer"},
        "digest": {"type": "string"},
        "issued": {"type": "string", "format": "date-time"},
        "expires": {"type": "string", "format": "date-time"},
        "servers": {"type": "integer", "minimum": 0},
    },
}
_DELIVERIES: Final = {
    "type": "object",
    "required": ["rows", "next"],
    "properties": {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "created": {"type": "string", "format": "date-time"},
                    "nextTry": {"type": "string", "format": "date-time"},
                    "payload": {"type": "object"},
                },
            },
        },
        "next": {"type": "string"},
    },
}
_STATUS_TEXT: Final = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
_ETAG: Final = {"ETag": {"description": "Of the very bytes.", "schema": {"type": "string"}}}
_REPORT_ANSWERS: Final = {
    "204": {"description": "Taken, durably."},
    "400": problem("No JSON object."),
    "401": {
        "description": "No token, or not one that is valid now. An agent that has enrolled asks for another."
    },
    "403": problem("The token is another device's."),
    "413": problem("More than 64 KiB."),
    "415": problem("Not JSON, or compressed."),
    "422": problem("No status of schemaVersion 1."),
    "429": problem("Later: too often, or too many distinct servers in 30 days.", headers=RETRY_AFTER),
    "503": problem("Later.", headers=RETRY_AFTER),
}

OTHERS: Final[dict[str, dict[str, Any]]] = {
    "report": {
        "summary": "Take the status of one machine",
        "description": "docs/report-api.md is the contract; transitions are dropped when their id is known.",
        "requestBody": _body({"$ref": "#/components/schemas/Status"}, "At most 64 KiB, not compressed."),
        "responses": _REPORT_ANSWERS,
    },
    "enroll": {
        "description": "docs/report-api.md, Enrolment.",
        "requestBody": _body(_ENROLMENT, f"At most {ENROLL_BODY} bytes, not compressed."),
        "responses": {
            "201": _json(
                "The device's token; those that it had before end.",
                {
                    "type": "object",
                    "required": ["token"],
                    "properties": {"token": {"type": "string"}, "expires": {"type": "string"}},
                },
            ),
            "202": {
                "description": "Known, and not shown to be the same: an operator decides.",
                "headers": RETRY_AFTER,
            },
            "400": problem("No JSON object."),
            "401": problem("The enrolment key is not valid."),
            "409": problem("An operator has refused this device."),
            "413": problem(f"More than {ENROLL_BODY} bytes."),
            "415": problem("Not JSON, or compressed."),
            "422": problem("Something that is needed is missing."),
        },
    },
    "policy": {
        "description": "docs/signing.md. Anybody may fetch it: it is no secret, and believed for its signature.",
        "responses": {
            "200": _json("The envelope, as it was published.", {"type": "object"}, headers=_ETAG),
            "304": {"description": "`If-None-Match` names it.", "headers": _ETAG},
            "404": problem("None has been published."),
        },
    },
    "publish-policy": {
        "description": "The envelope that `halo sign` wrote: by a key of `policy_keys`, newer than what is published.",
        "requestBody": _body({"type": "object"}, "At most 1 MiB."),
        "responses": {
            "200": _json("Published.", _PUBLISHED),
            "400": problem("No envelope."),
            "409": problem("No key is pinned, or what is published is newer."),
            "413": problem("More than 1 MiB."),
            "422": problem("The signature, the organisation or the policy does not count."),
        },
    },
    "webhook-deliveries": {
        "parameters": [
            {
                "name": "state",
                "in": "query",
                "description": "Only these.",
                "schema": {"type": "string", "enum": ["", "due", "done", "dead"]},
            },
            {"name": "hook", "in": "query", "description": "Of this webhook.", "schema": {"type": "string"}},
            {"name": "cursor", "in": "query", "schema": {"type": "string"}},
            {
                "name": "limit",
                "in": "query",
                "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
            },
        ],
        "responses": {
            "200": _json("A page.", _DELIVERIES),
            "400": problem("A parameter is not what it may be."),
        },
    },
    **{
        name: {
            "parameters": [_named(*parameter)],
            "responses": {"200": _json("How many.", _COUNT), "404": problem("Nothing dead is kept there.")},
        }
        for name, parameter in (
            ("webhook-retry", ("delivery", "Its number.", _NUMBER)),
            ("webhook-discard", ("delivery", "Its number.", _NUMBER)),
            ("webhook-retry-all", ("hook", "The webhook's name in the settings.")),
            ("webhook-discard-all", ("hook", "The webhook's name in the settings.")),
        )
    },
    "healthz": {"responses": {"200": _json("It does.", _STATUS_TEXT)}},
    "readyz": {
        "responses": {"200": _json("They may.", _STATUS_TEXT), "503": _json("Not now.", _STATUS_TEXT)}
    },
    "metrics": {
        "responses": {
            "200": {
                "description": "Prometheus, text format 0.0.4.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        }
    },
    "openapi": {"responses": {"200": _json("This document.", {"type": "object"})}},
}
"""By the name of the route."""


def status_schemas() -> dict[str, Any]:
    """Give the components of a status, with references that hold within an OpenAPI document.

    Beyond the schema of what agents send: a device's identity stands in addresses, and a report has 64 transitions.
    """
    found: dict[str, Any] = _moved(status_schema()["$defs"])
    found["Status"]["properties"]["device"] |= _DEVICE
    found["Status"]["properties"]["transitions"] |= {"maxItems": MOST_TRANSITIONS}
    found["Transition"]["properties"]["id"] |= {"minLength": 1}
    return found


def _moved(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, dict):
        return {name: _moved(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_moved(one) for one in value]
    return value.replace("#/$defs/", "#/components/schemas/") if isinstance(value, str) else value
