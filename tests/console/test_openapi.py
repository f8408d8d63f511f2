# SPDX-License-Identifier: Apache-2.0
"""docs/console-openapi.json is what the code says, valid, and says everything that can be asked."""

import json
import pathlib

import pytest
from openapi_spec_validator import validate

from halod.console import api, app
from halod.console.access import Access, Role
from halod.console.api import openapi
from halod.console.settings import Settings
from tests.console import support_people as people
from tests.console.support_api import Program

PATH = pathlib.Path(__file__).parents[2] / "docs" / "console-openapi.json"
METHODS = {"get", "put", "post", "delete"}


@pytest.fixture(scope="module")
def document():
    return json.loads(PATH.read_text(encoding="utf-8"))


def test_the_document_is_current():
    """Write it anew with: python -m halod.console.api > docs/console-openapi.json"""
    assert PATH.read_text(encoding="utf-8") == openapi.text(api.DESCRIBED, api.OPERATIONS)


def test_the_document_is_openapi(document):
    assert document["openapi"] == "3.1.0"
    validate(document)


def test_every_address_of_the_api_is_described(document):
    described = {
        (method.upper(), path)
        for path, one in document["paths"].items()
        for method in one
        if method in METHODS
    }
    served = {
        (route.method, route.path)
        for route in app.table(Settings(database_url=""))
        if route.path.startswith("/api/") or route.summary
    }
    assert described == served | set(app.RAW)


def test_what_is_described_is_what_is_asked_for(document):
    """Access, path parameters and operation ids agree with the table."""
    routes = {(route.method, route.path): route for route in app.table(Settings(database_url=""))}
    seen = set()
    for path, operations in document["paths"].items():
        for method, one in operations.items():
            route = routes.get((method.upper(), path))
            access = route.access if route else app.RAW[method.upper(), path]
            assert one["x-halo-access"] == access.value
            assert (one["security"] == []) == (access is Access.PUBLIC)
            in_path = {
                parameter["name"] for parameter in one.get("parameters", ()) if parameter["in"] == "path"
            }
            assert in_path == {part[1:-1] for part in path.split("/") if part.startswith("{")}
            assert one["operationId"] not in seen
            seen.add(one["operationId"])
            assert one["summary"]


def test_the_document_names_no_secret_and_no_hash(document):
    for row in document["components"]["schemas"].values():
        assert not {"hash", "token", "secret", "csrf"} & set(row.get("properties", ()))


def test_it_is_served_to_who_may_look(sqlite_url, document):
    with people.sqlite_console(sqlite_url) as console:
        assert Program(console, Role.VIEWER).get("/openapi.json").json() == document
        assert people.client(console).get("/api/v1/openapi.json").status_code == 401
