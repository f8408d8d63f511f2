# SPDX-License-Identifier: Apache-2.0
"""Signing in with a real provider: Django and django-oauth-toolkit, in a process of their own."""

import html
import json
import re
import subprocess
import sys
import urllib.parse

import httpx
import pytest
from sqlalchemy import select

from halod.console.security import sessions
from halod.console.settings import Oidc
from halod.console.store.schema import AUDIT, SESSIONS
from tests.console import support_people as people
from tests.console.test_oidc import HOME, RETURN, Clock, begin, come_back, is_refused, session_of
from tests.server import django_provider as real

pytestmark = pytest.mark.xdist_group("provider")


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    directory = tmp_path_factory.mktemp("provider")
    command = [sys.executable, "-m", "tests.server.django_provider", str(directory), HOME + RETURN]
    errors = directory / "errors"
    with (
        errors.open("w") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        line = process.stdout.readline()
        assert line, errors.read_text()
        yield json.loads(line)["issuer"]
        process.terminate()
        process.wait(30)


@pytest.fixture
def console(sqlite_url, issuer, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(real.SECRET)
    secret.chmod(0o600)
    oidc = Oidc(
        issuer=issuer,
        client_id=real.CLIENT,
        client_secret_file=str(secret),
        viewer_groups=("staff",),
        operator_groups=("helpdesk",),
        admin_groups=("platform",),
    )
    with people.sqlite_console(sqlite_url, clock=Clock(), public_url=HOME, oidc=oidc) as made:
        yield made


def agree(location, name):
    """Do at the provider what a person does in a browser; gives the query that comes back."""
    with httpx.Client(follow_redirects=True, timeout=30) as browser:
        page = browser.get(location)
        token = html.unescape(re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1])
        form = {"username": name, "password": real.PASSWORD, "csrfmiddlewaretoken": token}
        answer = browser.post(page.url, data=form, follow_redirects=False)
        while answer.is_redirect and not answer.headers["location"].startswith(HOME):
            answer = browser.get(
                urllib.parse.urljoin(str(answer.url), answer.headers["location"]), follow_redirects=False
            )
    address, _, query = answer.headers["location"].partition("?")
    assert address == HOME + RETURN
    return dict(urllib.parse.parse_qsl(query))


@pytest.mark.parametrize(("name", "role"), [("vera", "viewer"), ("otto", "operator"), ("ada", "admin")])
def test_a_person_signs_in_with_the_role_of_their_groups(console, name, role):
    client = people.client(console, base=HOME)
    location, journey = begin(client)
    answer = come_back(client, journey, agree(location, name))
    assert (answer.status_code, answer.headers["location"]) == (303, "/devices")
    with console.store.read() as c:
        row = c.execute(select(SESSIONS)).mappings().one()
        line = c.execute(select(AUDIT)).mappings().one()
    assert (row["role"], row["name"], line["actor"]) == (role, name, name)
    assert row["provider"] == sessions.providers(console.settings)[-1]
    page = client.get("/audit", headers=people.cookie(session_of(answer), https=True))
    assert page.status_code == (200 if role == "admin" else 403)


def test_a_person_in_no_group_of_ours_does_not(console):
    client = people.client(console, base=HOME)
    location, journey = begin(client)
    assert is_refused(come_back(client, journey, agree(location, "nobody")))


def test_a_code_works_once_and_for_its_own_journey(console):
    client = people.client(console, base=HOME)
    location, journey = begin(client)
    query = agree(location, "vera")
    other_location, other = begin(client)
    mine = agree(other_location, "vera")
    assert is_refused(come_back(client, other, {**mine, "code": query["code"]})), (
        "the verifier is another one"
    )
    assert come_back(client, journey, query).status_code in (303, 403)
    assert is_refused(come_back(client, journey, query), 400)


def test_the_providers_session_is_ended_there(console, issuer):
    page = people.client(console, base=HOME).get("/login?left").text.replace("&amp;", "&")
    assert f"{issuer}/logout/?client_id=halo" in page
