# SPDX-License-Identifier: Apache-2.0
"""Requests drawn from the OpenAPI document, right and wrong ones, against a console over HTTP: no answer is a 5xx, and each
is one that the document describes.

Every operation has a few dozen requests, always the same ones.
"""

import json
import pathlib
import socket
import threading

import pytest
import requests
import schemathesis
import uvicorn
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from sqlalchemy import update

from halod.console import app
from halod.console.access import Role
from halod.console.ingest.apply import take
from halod.console.security import tokens
from halod.console.store import schema as tables
from tests.console import support_people as people
from tests.console.support_api import hostile_documents
from tests.console.support_reads import _filled

DOCUMENT = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "console-openapi.json").read_text())
EXAMPLES = 8
OUT_OF_REACH = 2**62
"""The number of our own token: nothing that is drawn ends it."""


def _config():
    drawn = GenerationConfig(max_examples=EXAMPLES, deterministic=True, with_security_parameters=False)
    return SchemathesisConfig(projects=ProjectsConfig(default=ProjectConfig(generation=drawn)))


schema = schemathesis.openapi.from_dict(DOCUMENT, config=_config())


@pytest.fixture(scope="module", params=["postgresql"])
def place(request, tmp_path_factory):
    """A console on PostgreSQL, which takes fewer texts than SQLite; gives its address and a credential for each access."""
    filled = _filled(request, tmp_path_factory, "drawn", 60)
    store = next(filled)
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"127.0.0.1:{listening.getsockname()[1]}"
    try:
        console = people.make_console(store, listen=base)
        take(store, hostile_documents(), now=people.NOW)
        credentials = _credentials(console)
        application = app.build(console, jobs=False)
        server = uvicorn.Server(uvicorn.Config(application, log_config=None, lifespan="on", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://{base}", credentials
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()
    finally:
        listening.close()
        next(filled, None)


def _credentials(console):
    now = console.clock.now()
    with console.store.write() as c:
        key = tokens.new_enroll_key(c, name="k", now=now, days=9, by="test")
        device = tokens.issue_device(c, device="d1", install_id="i1", now=now, days=9, by="test")
        admin = tokens.issue_api(c, name="drawn", role=Role.ADMIN, now=now, days=9, by="test")
        for text in (admin, device):
            kept = tables.TOKENS.c.hash == tokens.digest(text)
            c.execute(update(tables.TOKENS).where(kept).values(id=OUT_OF_REACH + (text == admin)))
    people_ = dict.fromkeys(("viewer", "operator", "admin"), admin)
    return {"device": device, "enroll-key": key, "public": ""} | people_


@pytest.fixture(scope="module")
def session():
    with requests.Session() as opened:
        opened.trust_env = False
        yield opened


@schema.parametrize()
def test_any_request(case, place, session):
    base, credentials = place
    token = credentials[case.operation.definition.raw["x-halo-access"]]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    response = case.call(base_url=base, session=session, headers=headers)
    assert response.status_code < 500 or (response.status_code == 503 and "readyz" in case.path)
    case.validate_response(response, headers=headers, excluded_checks=_not_so(case))


def _not_so(case):
    """What is right here though the checks do not know it: a cursor that nobody gave, and a report of an older agent."""
    if "cursor" in case.query:
        return [positive_data_acceptance]
    return [negative_data_rejection] if case.path.endswith("/fleet/report") else []
