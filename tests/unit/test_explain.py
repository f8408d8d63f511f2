# SPDX-License-Identifier: Apache-2.0
"""`halod explain`: hash, launch, verdict and reason of one definition (design 5)."""

import json

import pytest

from halod.cli import main

SHA = "93098e84bb3984832b76cd6c573afb9fcfff0a17cf58956f9703e827e3f81a30"
POLICY = """\
org: acme
rings: [ring0, ring1]
units: {payments: {}}
mcp:
  message: Ask in the ai-tools channel
  servers:
    - id: playwright-mcp
      package: {type: npm, identifier: "@playwright/mcp", version: 0.0.82}
    - id: wiki
      url: https://mcp-wiki.internal.acme.example/mcp
    - id: beta
      url: https://beta.internal.acme.example/mcp
      rings: [ring0]
    - id: house
      command: [/opt/acme/bin/house, --stdio]
  deny:
    - {host: mcp.evil.example, reason: steals tokens}
"""


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "halos.yaml"
    path.write_text(POLICY)
    return str(path)


@pytest.fixture
def explain(capsys):
    """Run `halod explain`; give the exit code, stdout and stderr."""

    def run(*words):
        code = main(["explain", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def as_json(explain):
    def run(*words):
        code, out, _ = explain("--format", "json", *words)
        return code, json.loads(out)

    return run


def test_a_command_without_a_policy(as_json):
    """Hash and launch; what does not apply is null; exit 0."""
    code, view = as_json("--", "npx", "-y", "@playwright/mcp@latest")
    assert code == 0
    assert view == {
        "transport": "stdio",
        "definitionSha256": SHA,
        "host": None,
        "launch": {
            "ecosystem": "npm",
            "identifier": "@playwright/mcp",
            "version": None,
            "digest": None,
            "outcome": "identified-unpinned",
            "flags": [],
            "nested": None,
        },
        "canonicalUrl": None,
        "kind": None,
        "id": None,
        "detail": None,
        "fix": None,
    }


def test_a_url_without_a_policy(as_json):
    """Host and canonical form; no launch."""
    code, view = as_json("HTTPS://MCP.Example.com:443/x/../mcp")
    assert code == 0
    assert view["transport"] == "http"
    assert view["host"] == "mcp.example.com"
    assert view["canonicalUrl"] == "https://mcp.example.com/mcp"
    assert view["launch"] is view["kind"] is None
    assert len(view["definitionSha256"]) == 64


def test_a_url_that_has_no_canonical_form(as_json):
    """Null, and the host that a client would connect to."""
    _, view = as_json("https://mcp.example.net\\@wiki.example/mcp")
    assert view["host"] == "mcp.example.net"
    assert view["canonicalUrl"] is None


def test_drift_is_exit_1_with_words(as_json, policy):
    """The example of design 6, for a definition without a name."""
    code, view = as_json("--policy", policy, "--", "npx", "-y", "@playwright/mcp@latest")
    assert code == 1
    assert (view["kind"], view["id"]) == ("version-drift", "playwright-mcp")
    assert view["detail"].endswith(
        "(definition sha256 93098e84bb39); the registry pins npx -y @playwright/mcp@0.0.82"
    )
    assert view["fix"].startswith("change this definition to npx -y @playwright/mcp@0.0.82, or remove it")
    assert view["fix"].endswith(". Ask in the ai-tools channel")


def test_approved_is_exit_0(as_json, policy):
    """With the id; nothing to say or mend."""
    code, view = as_json("--policy", policy, "--", "npx", "-y", "@playwright/mcp@0.0.82")
    assert code == 0
    assert (view["kind"], view["id"], view["detail"], view["fix"]) == (
        "approved",
        "playwright-mcp",
        None,
        None,
    )
    code, view = as_json("--policy", policy, "https://mcp-wiki.internal.acme.example/mcp")
    assert (code, view["id"]) == (0, "wiki")


def test_denied_and_unapproved_have_no_id(as_json, policy):
    """An id is that of the entry it counts under or drifts from."""
    code, view = as_json("--policy", policy, "https://mcp.evil.example/x")
    assert (code, view["kind"], view["id"]) == (1, "denied", None)
    assert "steals tokens" in view["detail"]
    code, view = as_json("--policy", policy, "https://mcp-wiki.internal.acme.example/other")
    assert (code, view["kind"], view["id"]) == (1, "unapproved", None)


def test_ring_and_unit_scope_the_policy(as_json, policy):
    """As in `scan`."""
    url = "https://beta.internal.acme.example/mcp"
    assert as_json("--policy", policy, "--ring", "ring0", url)[1]["id"] == "beta"
    code, view = as_json("--policy", policy, "--ring", "ring1", "--unit", "payments", url)
    assert (code, view["kind"]) == (1, "unapproved")
    assert "for ring ring0, not for this device" in view["detail"]


def test_environment_and_cwd_count(as_json, policy):
    """`--env` may be repeated; the values are never shown."""
    pinned = ["--", "npx", "-y", "@playwright/mcp@0.0.82"]
    code, view = as_json("--policy", policy, "--env", "TOKEN=CANARY=x", *pinned)
    assert code == 0
    code, view = as_json("--policy", policy, "--env", "A=", "--env", "NODE_OPTIONS=CANARY", *pinned)
    assert (code, view["kind"], view["launch"]["flags"]) == (1, "unapproved", ["code-injection"])
    assert "CANARY" not in json.dumps(view)
    code, view = as_json("--policy", policy, "--cwd", "/tmp/x", *pinned)
    assert (code, view["launch"]["flags"]) == (1, ["cwd-override"])


def test_a_command_pin(as_json, policy):
    """Rule 1 through the command line."""
    assert as_json("--policy", policy, "--", "/opt/acme/bin/house", "--stdio")[1]["id"] == "house"


def test_what_is_nested_is_shown_to_the_person_who_typed_it(as_json):
    """A URL, an argument list, or a line for a shell."""
    url = "https://mcp.linear.app/sse"
    assert as_json("--", "npx", "-y", "mcp-remote", url)[1]["launch"]["nested"] == {"url": url}
    wrapped = as_json("--", "env", "A=b", "npx", "-y", "x@1.0.0")[1]["launch"]
    assert wrapped["nested"] == ["npx", "-y", "x@1.0.0"]
    shell = as_json("--", "npx", "-y", "supergateway", "--stdio", "npx -y x")[1]["launch"]
    assert shell["nested"] == {"shell": "npx -y x"}


def test_double_dashes_of_the_command_itself_stay(as_json):
    """Only the first one is ours."""
    words = ["uvx", "mcp-proxy", "--port=8080", "--", "uvx", "mcp-server-fetch"]
    assert as_json("--", *words)[1]["launch"]["nested"] == ["uvx", "mcp-server-fetch"]


def test_the_page_for_a_person(explain, policy):
    """Hash, launch, each flag with its reason, verdict and fix."""
    code, out, err = explain(
        "--policy",
        policy,
        "--",
        "env",
        "X=1",
        "npx",
        "--registry",
        "https://evil.example/",
        "-y",
        "@playwright/mcp@0.0.82",
    )
    text = " ".join(out.split())
    assert code == 1
    assert err == ""
    assert "a stdio command" in text
    assert "npm @playwright/mcp, version 0.0.82" in text
    assert "identified-unsafe: the package is known, but something else" in text
    assert "unsafe registry-override: the package comes from a registry" in text
    assert "for notice wrapper: another program starts it" in text
    assert "verdict unapproved" in text
    assert "runs the approved package with registry-override" in text
    assert "fix change this definition to npx -y @playwright/mcp@0.0.82 without registry-override" in text
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "npx", "-y", "x@latest"], "npm x, no exact version (asks for latest)"),
        (["--", "npx", "-y", "x"], "npm x, no exact version"),
        (
            ["--", "docker", "run", "-i", "--rm", "a/b@sha256:" + "a" * 64],
            "oci docker.io/a/b, image sha256:aaaa",
        ),
        (["--", "house-mcp"], "no package that can be told"),
        (["--", "npx", "x@1.0.0", "--token", "CANARY"], "it visibly carries a credential"),
        (["--", "npx", "-y", "mcp-remote", "https://x.example/"], "carries https://x.example/"),
        (["https://x.example/\\"], "nothing: this URL has no canonical form"),
        (["https://${HOST}/"], "host cannot be told"),
        (["https://x.example/"], "verdict none: no policy was given"),
        (["https:x.example"], "an http URL"),
    ],
)
def test_the_page_says(explain, words, said):
    """One fact each."""
    code, out, _ = explain(*words)
    assert code == 0
    assert said in " ".join(out.split())


def test_the_page_says_approved(explain, policy):
    """And under which id."""
    code, out, _ = explain("--policy", policy, "https://mcp-wiki.internal.acme.example/mcp")
    assert code == 0
    assert "approved as wiki" in out


def test_nothing_that_is_typed_steers_the_terminal(explain):
    """Control and bidi characters are shown escaped."""
    _, out, _ = explain("--", "npx", "-y", "x\x1b[2J\u202e@1.0.0")
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_bytes_that_are_no_utf8_are_read_as_in_a_file(as_json):
    """U+FFFD, as the harness would (design 3)."""
    broken = as_json("--", b"x\xff".decode("utf-8", "surrogateescape"))[1]
    assert broken["definitionSha256"] == as_json("--", "x\ufffd")[1]["definitionSha256"]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--"],
        ["--", ""],
        ["--env", "CANARY", "--", "npx"],
        ["--env", "=CANARY", "--", "npx"],
        ["--env", "A=CANARY", "https://x.example/"],
        ["--cwd", "/CANARY", "https://x.example/"],
        ["--ring", "ring0", "--", "npx"],
        ["--unit", "payments", "--", "npx"],
        ["--policy", "/nonexistent/CANARY.yaml", "--", "npx"],
        ["--format", "xml", "--", "npx"],
        ["npx", "-y", "CANARY"],
    ],
)
def test_wrong_usage_is_exit_2_in_one_line(explain, words):
    """No traceback, nothing on stdout, no value in the message (a file's path is the person's own)."""
    code, out, err = explain(*words)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "CANARY" not in err.replace("/nonexistent/CANARY.yaml", "")


def test_a_ring_that_the_policy_does_not_have_is_said(explain, policy):
    """As in a scan: a wrong ring is a wrong command line, not a verdict."""
    code, _, err = explain("--policy", policy, "--ring", "rng0", "https://beta.internal.acme.example/mcp")
    assert code == 2
    assert "unknown ring" in err
