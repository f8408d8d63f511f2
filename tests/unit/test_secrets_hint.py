# SPDX-License-Identifier: Apache-2.0
"""`secretInDefinition`: does a definition visibly carry a credential (design 8)?"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.secrets_hint import secret_in_definition, secret_in_header
from tests.support.drift import http, stdio

GHP = "ghp_" + "CANARY0123456789abcdef"


@pytest.mark.parametrize(
    "args",
    [
        ["--token", "CANARY"],
        ["--token=CANARY"],
        ["-token", "CANARY"],
        ["--github-token", "CANARY"],
        ["--api-key", "CANARY"],
        ["--api_key=CANARY"],
        ["--apiKey", "CANARY"],
        ["--apikey", "CANARY"],
        ["--x.secret", "CANARY"],
        ["--clientSecret=CANARY"],
        ["--password", "CANARY"],
        ["--authtoken", "CANARY"],
        ["--key", "CANARY"],
        ["--access-key", "CANARY"],
        ["--oauth2Bearer", "CANARY"],
        ["--connection-string", "CANARY"],
        ["run", "-e", "GRAFANA_TOKEN=CANARY", "img"],
        ["API_KEY=CANARY", "npx"],
        ["--header", "Authorization: Bearer CANARY"],
        ["--header", "Authorization:Bearer CANARY"],
        ["--header", "X-Api-Key: CANARY"],
        ["--header=Authorization: Basic CANARYCANARY"],
        ["-H", "X-Key", "CANARY", "https://x.example/"],
        ["--headers", "Authorization", "CANARY"],
        ["say", "bearer CANARY now"],
        ["https://user:CANARY@db.example/x"],
        ["https://CANARY@db.example/x"],
        ["postgresql://u:CANARY@db.example/x"],
        ["--dsn", "CANARY"],
        ["https://x.example/sse?key=CANARY"],
        ["https://x.example/sse?a=b&access_token=CANARY"],
        ["https://x.example/sse?a=b;sig=CANARY"],
        ["https://x.example/sse#x?apiKey=CANARY"],
        [GHP],
        ["--x", "a" + "," + GHP],
        ["xoxb-1234-CANARY"],
        ["-----BEGIN RSA PRIVATE KEY-----CANARY"],
        ["--token", "Bearer CANARY"],
        ["--token", "${PREFIX}CANARY"],
    ],
)
def test_a_visible_credential_is_told(args):
    """In any usual way of writing one."""
    assert secret_in_definition(stdio("npx", *args))


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["-y", "@playwright/mcp@latest"],
        ["--token"],
        ["--token", "--verbose"],
        ["--token", ""],
        ["--token", "${TOKEN}"],
        ["--token=${input:token}"],
        ["--token", "$TOKEN"],
        ["--token", "{env:TOKEN}"],
        ["--token", "%TOKEN%"],
        ["--token", "<your-token>"],
        ["--token", "Bearer ${TOKEN}"],
        ["--token", "$(cat x)"],
        ["--token", "true"],
        ["--token-file", "x"],
        ["--password-file=/run/secrets/x"],
        ["--key", "/etc/tls/key.pem"],
        ["--max-token", "1000"],
        ["--max-tokens", "1000"],
        ["--no-token", "x"],
        ["--token-endpoint", "https://x.example/"],
        ["--sort-key", "name"],
        ["--public-key", "x"],
        ["--primary_key=id"],
        ["--keyboard", "x"],
        ["--header", "Authorization:${AUTH}"],
        ["--header", "Accept: text/plain"],
        ["--header", "Authorization: Bearer ${TOKEN}"],
        ["-H", "X-Trace", "on"],
        ["-H"],
        ["-e", "GRAFANA_TOKEN", "img"],
        ["https://x.example/mcp"],
        ["https://x.example/mcp?page=2&sort=key"],
        ["https://x.example/mcp?token=${TOKEN}"],
        ["https://${USER}:${PASS}@x.example/"],
        ["https://user:@x.example/"],
        ["git+ssh://git@git.example/x.git"],
        ["https://x.example/@scope/name"],
        ["mail@x.example"],
        ["the bearer", "of news"],
        ["sk-learn-mcp"],
        ["npm_search"],
    ],
)
def test_what_is_no_credential_is_not_told(args):
    """Names without values, references to variables, files, and words that only look alike."""
    assert not secret_in_definition(stdio("npx", *args))


def test_the_command_is_looked_at_too():
    """A whole line in `command`."""
    assert secret_in_definition(stdio(f"npx -y x {GHP}"))
    assert secret_in_definition(stdio("npx -y mcp-remote https://u:CANARY@x.example/"))


def test_a_url_is_looked_at_as_a_url():
    """Userinfo, queries and known prefixes; a path is not guessed at."""
    assert secret_in_definition(http("https://u:CANARY@x.example/"))
    assert secret_in_definition(http("https://x.example/?token=CANARY"))
    assert secret_in_definition(http(f"https://x.example/{GHP}/mcp"))
    assert not secret_in_definition(http("https://x.example/CANARY/mcp"))
    assert not secret_in_definition(http("https://${HOST}/mcp?token=${TOKEN}"))


def test_environment_is_not_in_the_hash_and_not_looked_at():
    """`secretInDefinition` is about arguments and URL."""
    assert not secret_in_definition(stdio("npx", "x", env=[("TOKEN", GHP)]))


@pytest.mark.parametrize(
    "text",
    ["://" * 400_000, "?a=" * 400_000, "-" * 1_000_000, "bearer " * 150_000, "${" * 500_000, "a:" * 500_000,
     "A=" * 500_000, "?key" * 300_000, "x" * 1_000_000, "aA" * 500_000, "sk-" * 300_000, "-----BEGIN " * 90_000],
)  # fmt: skip
def test_hostile_text_costs_little_time(text):
    """Linear, and bounded by TEXT_LIMIT."""
    started = time.process_time()
    secret_in_definition(stdio("npx", text, "--token", text))
    secret_in_definition(http(text))
    secret_in_definition(stdio(*["--" + text[:1000]] * 3000))
    assert time.process_time() - started < 5


def test_only_so_much_is_looked_at():
    """What stands behind half a megabyte is not found; a hint, not a scanner."""
    assert not secret_in_definition(stdio("npx", "x " * 300_000, GHP))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=40))
def test_any_text_is_answered(args, url):
    """Total."""
    assert secret_in_definition(stdio("x", *args)) in {True, False}
    assert secret_in_definition(http(url)) in {True, False}


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("Authorization", "CANARY", True),
        ("authorization", "Bearer CANARY", True),
        ("X-Api-Key", "CANARY", True),
        ("X-Org", GHP, True),
        ("X-Org", "Basic CANARYCANARY==", True),
        ("X-Org", "acme", False),
        ("Authorization", "Bearer ${TOKEN}", False),
        ("Authorization", "", False),
        ("Accept", "application/json", False),
    ],
)
def test_headers(name, value, secret):
    """By the name of the header, or by a value that tells itself."""
    assert secret_in_header(name, value) is secret
