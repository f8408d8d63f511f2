# SPDX-License-Identifier: Apache-2.0
"""What a rendered command line makes its launcher do is the entry's package with the entry's arguments, or it is told."""

import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.definition import Definition, FileRef
from halod.drift import judge
from halod.policy.load import examine
from halod.policy.rendering import manifest
from halod.policy.scope import scope

TODAY = date(2026, 11, 30)
NAMES = {
    "npm": ["@acme/notes-mcp", "notes", "a.tgz", "b.tar.gz", "npm", "x.git"],
    "pypi": ["acme-tools", "python", "python3", "pip", "uv", "a.b"],
    "nuget": ["Acme.Mcp", "a_b", "x.nupkg"],
    "oci": ["ghcr.io/acme/notes", "docker.io/library/node"],
}
WORDS = [
    "--source",
    "--add-source",
    "https://packages.evil.example/",
    "--yes",
    "--",
    "-",
    "@a.rsp",
    "-v",
    "q",
    "a",
]


def of_package(package, **keys):
    """Give the policy that approves one package."""
    entry = {"id": "x", "package": package, **keys}
    policy, _, problems = examine(json.dumps({"mcp": {"servers": [entry]}}).encode())
    assert problems == []
    return policy


def opencode(policy):
    """Give the servers that OpenCode gets, and the warnings of all tools."""
    made = manifest.plan(policy, "", (), TODAY, ("linux",))
    content = next(file.content for file in made.files if file.path.endswith("/opencode.json"))
    return json.loads(content)["mcp"], made.manifest.warnings


def test_arguments_of_a_nuget_tool_are_the_tools_and_not_those_of_dnx():
    """Behind the package dnx takes `--add-source URL` for itself, until `--` (launchers.md 7)."""
    package = {"type": "nuget", "identifier": "Acme.Mcp", "version": "1.2.3"}
    words = ["--add-source", "https://packages.evil.example/"]
    servers, _ = opencode(of_package(package, args=words))
    assert servers["x"]["command"] == ["dnx", "acme.mcp@1.2.3", "--yes", "--", *words]
    plain, _ = opencode(of_package(package, args="any"))
    assert plain["x"]["command"] == ["dnx", "acme.mcp@1.2.3", "--yes"]


@pytest.mark.parametrize(
    ("package", "args"),
    [
        ({"type": "nuget", "identifier": "Acme.Mcp", "version": "1.2.3"}, ["@more.rsp"]),
        ({"type": "pypi", "identifier": "python", "version": "3.11"}, ["-c", "x"]),
        ({"type": "npm", "identifier": "a.tgz", "version": "1.0.0"}, []),
    ],
)
def test_what_its_launcher_takes_for_something_else_is_rendered_for_no_tool(package, args):
    """A response file, an interpreter, a file: the entry says another thing, so the line is told and left out."""
    policy = of_package(package, args=args)
    made = manifest.plan(policy, "", (), TODAY, ("linux",))
    everything = b"".join(file.content for file in made.files).decode()
    assert package["identifier"].lower() + "@" not in everything
    told = {one.partition(":")[0] for one in made.manifest.warnings if ": server x (its launcher " in one}
    assert told == {"claude-code", "codex", "gemini-cli", "copilot-cli", "vscode", "opencode"}


@st.composite
def packages(draw):
    kind = draw(st.sampled_from(sorted(NAMES)))
    package = {"type": kind, "identifier": draw(st.sampled_from(NAMES[kind]))}
    if kind == "oci":
        package["sha256"] = "a" * 64
    else:
        package["version"] = draw(
            st.sampled_from(["1.2.3", "1.2.3-rc.1"] if kind != "pypi" else ["1.2", "3.11"])
        )
        if program := draw(st.sampled_from(["", "", "notes", "x", "a@b"])):
            package["bin"] = program
    keys = {"args": draw(st.lists(st.sampled_from(WORDS), max_size=3))}
    if draw(st.booleans()):
        keys["env"] = draw(st.lists(st.sampled_from(["A", "PATH", "NODE_OPTIONS"]), max_size=2, unique=True))
    return package, keys


@settings(max_examples=150, deadline=None)
@given(packages())
def test_what_is_rendered_is_never_a_finding(made):
    """A scan approves every command line that a plan gives, and what it would not approve is not rendered."""
    package, keys = made
    policy = of_package(package, **keys)
    servers, warnings = opencode(policy)
    if "x" not in servers:
        assert any(one.startswith("opencode: server x (") for one in warnings)
        return
    command, *args = servers["x"]["command"]
    definition = Definition(
        harness="opencode",
        file=FileRef(0),
        name="x",
        scope="user",
        transport="stdio",
        command=command,
        args=args,
    )
    assert judge(definition, scope(policy, "", (), TODAY)).kind == "approved"
