# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 document of the whole API, made of the route table and the types of the rows.

`python -m halod.console.api > docs/console-openapi.json` writes the one that is checked in; a test holds it
to this. A route with a summary and no description here cannot be built.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from halod.console.access import Access, Route
from halod.console.api.describe import OTHERS, RETRY_AFTER, problem, status_schemas
from halod.console.api.operation import Operation

_SECURITY: Final[dict[Access, list[dict[str, list[str]]]]] = {
    Access.PUBLIC: [],
    Access.DEVICE: [{"deviceToken": []}],
    Access.ENROLL_KEY: [{"enrolmentKey": []}],
}
_PERSON: Final[list[dict[str, list[str]]]] = [{"apiToken": []}, {"session": []}]
_SCHEMES: Final = {
    "apiToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "Of a program: `halo-server token create`.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-halo",
        "description": "Of somebody who is signed in (`halo` by http). A change carries `X-CSRF-Token` as well.",
    },
    "deviceToken": {"type": "http", "scheme": "bearer", "description": "Of a device, by enrolment."},
    "enrolmentKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "The organisation's: `halo-server enroll-key create`.",
    },
}
_PROBLEM: Final = {
    "type": "object",
    "description": "RFC 9457.",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
_REF: Final = "#/components/schemas/{name}"
_BUSY: Final = "Anything else: too often (429), busy (503), a fault of the console (500)."


def document(routes: Iterable[Route], operations: Iterable[Operation]) -> dict[str, Any]:
    """Describe every route that has a summary.

    Raises:
        KeyError: one has neither an operation nor a description.
    """
    ours = {f"/api/v1{one.path} {one.method}": one for one in operations}
    paths: dict[str, dict[str, Any]] = {}
    for route in sorted(routes, key=lambda one: (one.path, one.method)):
        if not route.summary:
            continue
        one = ours.get(f"{route.path} {route.method}")
        described = _operation(one) if one is not None else OTHERS[route.name]
        paths.setdefault(route.path, {})[route.method.lower()] = _whole(route, described)
    rows = sorted({one.row for one in ours.values() if one.row is not None}, key=lambda row: row.__name__)
    _, schemas = msgspec.json.schema_components(rows, ref_template=_REF)
    schemas = {name: _as_written(one) for name, one in schemas.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "halo-server",
            "version": "1",
            "summary": "The console of a fleet of halod agents.",
            "description": _ABOUT,
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**status_schemas(), **schemas, "Problem": _PROBLEM}.items())),
            "securitySchemes": _SCHEMES,
        },
    }


def _as_written(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    """Give a schema of a row as `wire` writes it: times and days are numbers here and texts there."""
    if isinstance(value, list):
        return [_as_written(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: _as_written(one) for name, one in value.items()}
    if found.get("type") == "integer" and found.get("format") in {"date", "date-time"}:
        found["type"] = "string"
    return found


_ABOUT: Final = """\
Names are camelCase, times RFC 3339 in UTC. Lists come in pages: `rows` and `next`, which goes into `cursor` of the
next call and is "" at the end. `hostname`, `user`, `ring`, `units` and `digest` of a device are its own claims.
An unknown parameter is an error. Errors are problem documents (RFC 9457) and repeat nothing of what was sent.
"""


def _whole(route: Route, described: dict[str, Any]) -> dict[str, Any]:
    answers = {**described["responses"]}
    if route.access not in (Access.PUBLIC, Access.DEVICE, Access.ENROLL_KEY):
        answers.setdefault("401", problem("No session and no API token that is valid."))
        answers.setdefault("403", problem(f"Not the role {route.access.value}."))
    answers["default"] = problem(_BUSY, headers=RETRY_AFTER)
    return {
        "operationId": route.name,
        "summary": route.summary,
        **described,
        "x-halo-access": route.access.value,
        "security": _SECURITY.get(route.access, _PERSON),
        "responses": dict(sorted(answers.items())),
    }


def _operation(one: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"description": one.about} if one.about else {}
    if one.parameters:
        found["parameters"] = [
            {
                "name": parameter.name,
                "in": "path" if parameter.in_path else "query",
                "required": parameter.in_path,
                "description": parameter.text,
                "schema": parameter.schema(),
            }
            for parameter in one.parameters
        ]
    answers: dict[str, Any] = {_code(one): _answer(one), "400": problem("A parameter is not what it may be.")}
    if "{" in one.path:
        answers["404"] = problem("There is no such thing.")
    if one.method != "GET":
        answers["409"] = problem("It has been done before.")
    return {**found, "responses": answers}


def _code(one: Operation) -> str:
    return "200" if one.row is not None or one.media else "204"


def _answer(one: Operation) -> dict[str, Any]:
    if one.media:
        attachment = {"Content-Disposition": {"schema": {"type": "string"}}}
        content = {one.media.partition(";")[0]: {"schema": {"type": "string"}}}
        return {"description": "The file, streamed.", "headers": attachment, "content": content}
    if one.row is None:
        return {"description": "Done."}
    row = {"$ref": _REF.format(name=one.row.__name__)}
    if not one.listed:
        return {"description": "It.", "content": {"application/json": {"schema": row}}}
    following = one.schema or {"type": "string", "description": 'Of the next page; "" on the last.'}
    page = {
        "type": "object",
        "required": ["rows", "next"],
        "properties": {"rows": {"type": "array", "items": row}, "next": following},
    }
    return {"description": "A page.", "content": {"application/json": {"schema": page}}}


def text(routes: Iterable[Route], operations: Iterable[Operation]) -> str:
    """Give the document as it is checked in."""
    encoded = msgspec.json.format(msgspec.json.encode(document(routes, operations)), indent=2)
    return re.sub(r"\s+\Z", "", encoded.decode()) + "\n"
