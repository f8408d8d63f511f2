# SPDX-License-Identifier: Apache-2.0
"""Programs of the machine beside a package: never a program of the package, whatever an entry tolerates."""

import pytest

from halod.drift import judge
from halod.launch.runners import is_runner
from halod.policy.model import Entry, Package
from tests.support.drift import registry, stdio

NPM = Package(type="npm", identifier="@acme/tools", version="1.2.0", version_text="1.2.0")
PYPI = Package(type="pypi", identifier="acme-git", version="2.0", version_text="2.0")
TOLERANT = registry(
    Entry(id="npm", package=NPM, tolerate=frozenset({"package-flag"})),
    Entry(id="pypi", package=PYPI, tolerate=frozenset({"from-flag"})),
)


@pytest.mark.parametrize(
    "program",
    ["sh", "BASH", "bash.exe", "python3.12", "Python", "node20", "perl5.36", "pip3", "/bin/sh", "./x", "..\\x", "R",
     "osascript", "go", "clang/../sh"],
)  # fmt: skip
def test_a_runner_beside_a_package(program):
    """With the flag tolerated, the launcher would run it from PATH or by its path (each form was run)."""
    assert is_runner(program)
    lines = (
        ["npx", "-y", "-p", "@acme/tools@1.2.0", program, "-c", "x"],
        ["npm", "exec", "--package=@acme/tools@1.2.0", "--", program],
        ["yarn", "dlx", "-p", "@acme/tools@1.2.0", program],
        ["uvx", "--from", "acme-git==2.0", program, "-c", "x"],
        ["pipx", "run", "--spec", "acme-git==2.0", program],
    )
    for line in lines:
        assert judge(stdio(*line), TOLERANT).kind == "unapproved", line


@pytest.mark.parametrize(
    "program", ["github-mcp", "ed25519", "go2", "r2", "nodejs-mcp", "sh-mcp", "python-lsp", "x.py"]
)
def test_a_program_of_a_package(program):
    """A name that only begins like a runner is none."""
    assert not is_runner(program)
    assert judge(stdio("npx", "-y", "-p", "@acme/tools@1.2.0", program), TOLERANT).kind == "approved"
    assert judge(stdio("uvx", "--from", "acme-git==2.0", program), TOLERANT).kind == "approved"
