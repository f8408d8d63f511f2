# SPDX-License-Identifier: Apache-2.0
"""`halo mcp registry import` as a person and a program see it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from halod.cli import halo
from halod.launch import identify
from halod.policy.importing import arguments
from halod.policy.load import parse
from tests.support.registry import HTTP, NUGET, OTHER, PYPI, fed, npm, oci, server


def told(document, *words, capsys):
    """What an import of a document says on stderr."""
    with fed(json.dumps(document).encode()) as (out, err):
        assert halo.main(["mcp", "registry", "import", *words, "-"]) == 0, err.getvalue()
    assert len(parse(f"mcp:\n  servers:\n{out.getvalue()}".encode(), "x").entries) == 1
    return err.getvalue()


def argument(name, value=None, **more):
    kind = "positional" if name is None else "named"
    return {
        key: text
        for key, text in {"type": kind, "name": name, "value": value, **more}.items()
        if text is not None
    }


def test_what_the_entry_does_not_carry(capsys):
    """Arguments, variables and headers are named; what they are set to is not, where it may be a secret."""
    one = npm(
        fileSha256=OTHER,
        runtimeArguments=[argument("--registry", "https://evil.example/")],
        packageArguments=[
            argument(None, "serve"),
            argument(None, "ghp_CANARY0123456789abcdefghij"),
            argument("--token", "CANARYtoken", isSecret=True),
            argument(None, valueHint="dir"),
        ],
        environmentVariables=[
            {"name": "API_KEY", "isRequired": True, "isSecret": True, "value": "CANARYkey"},
            {"name": "NODE_OPTIONS"},
        ],
    )
    err = told(server(one, remotes=[HTTP]), capsys=capsys)
    assert "runtime arguments: --registry https://evil.example/\n" in err
    assert "package arguments: serve <secret> --token <secret> <dir>\n" in err
    assert "variable API_KEY (required, secret, with a value)\n" in err
    assert "would not be approved: registry-override" in err
    assert "variable NODE_OPTIONS changes what runs (code-injection)" in err
    assert "fileSha256" in err
    assert 'not in the entry: endpoint 1: "streamable-http"' in err
    assert "CANARY" not in err


def test_a_document_whose_arguments_run_another_image(capsys):
    """As one of the best known servers has them: `--rm true` and an image of its own."""
    given = oci(
        runtimeArguments=[
            argument(None, "run"),
            argument("-i", "true"),
            argument(None, "ghcr.io/acme/other"),
        ],
        packageArguments=[argument(None, "stdio")],
    )
    err = told(server(given), capsys=capsys)
    assert "the launcher may run something else than what is pinned" in err
    assert "an image takes no arguments unless" in err
    plain = told(server(oci(runtimeArguments=[argument("--rm")])), capsys=capsys)
    assert "something else" not in plain


def test_a_hint_that_is_no_launcher_of_the_type(capsys):
    """It is said, and nothing is concluded from it."""
    assert "runtimeHint python" in told(server({**PYPI, "runtimeHint": "python"}), capsys=capsys)
    assert "warning" not in told(server({**NUGET}), capsys=capsys)


def test_runs_another_is_told_when_in_doubt():
    """A version that floats or a line that cannot be read is not the pin."""
    pin = {"type": "npm", "identifier": "a", "version": "1.0.0"}
    assert arguments.runs_another(identify("npx", ["a@latest"]), pin)
    assert arguments.runs_another(identify("npx", ["--unknown", "x"]), pin)
    assert arguments.runs_another(identify("npx", ["-y", "a@2.0.0", "a@1.0.0"]), pin)
    assert not arguments.runs_another(identify("npx", ["-y", "a@1.0.0"]), pin)


def test_headers_and_other_packages_of_an_endpoint(capsys):
    """Named beside the pin."""
    given = {**HTTP, "headers": [{"name": "X-Key", "isSecret": True, "value": "CANARYkey"}]}
    err = told(server(npm(), remotes=[given]), "--remote", capsys=capsys)
    assert "header X-Key (secret, with a value)" in err
    assert 'not in the entry: package 1: "npm" "@acme/notes-mcp" "1.0.26"' in err
    assert "CANARY" not in err


# --- usage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a server, a URL or a file"),
        (["--remote"], "name a server, a URL or a file"),
        (["--remote", "--package", "npm", "a.b/c"], "--remote goes with neither"),
        (["--server", "x", "x.json"], "--server expects NAME"),
        (["--server", "a.b/c", "a.b/c"], "--server is for a URL or a file"),
        (["nowhere.json"], "cannot read nowhere.json: No such file or directory"),
        (["notes"], "a server of a registry is NAMESPACE/NAME"),
        (["a.b/c@"], "is not a version"),
        (["--format", "toml", "a.b/c"], "see halo mcp registry import --help"),
    ],
)
def test_wrong_usage(words, said, capsys):
    """One line, exit 2, nothing on stdout."""
    assert halo.main(["mcp", "registry", "import", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["mcp"], ["mcp", "registry"], ["mcp", "registry", "export"], ["mcp", "x"]])
def test_there_is_one_command_below_mcp(words, capsys):
    """Anything else is said to be none."""
    assert halo.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_help_is_that_of_the_command(capsys):
    """Also at the end of three words."""
    assert halo.main(["mcp", "registry", "import", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: halo mcp registry import")


@pytest.mark.parametrize(
    "order",
    [["--remote", "FILE"], ["FILE", "--remote"], ["--remote", "1", "FILE"], ["FILE", "--remote", "1"]],
)
def test_remote_may_stand_before_the_file(order, tmp_path, capsys):
    """The word after it is the file when there is no other word."""
    path = tmp_path / "server.json"
    path.write_text(json.dumps(server(remotes=[HTTP])), encoding="utf-8")
    words = [str(path) if word == "FILE" else word for word in order]
    assert halo.main(["mcp", "registry", "import", *words]) == 0
    assert "url: https://mcp.acme.example/mcp" in capsys.readouterr().out


def test_as_json_it_is_one_object(tmp_path, capsys):
    """For programs."""
    path = tmp_path / "server.json"
    path.write_text(json.dumps(server(npm())), encoding="utf-8")
    assert halo.main(["mcp", "registry", "import", "--format", "json", str(path)]) == 0
    package = {"type": "npm", "identifier": "@acme/notes-mcp", "version": "1.0.26"}
    assert json.loads(capsys.readouterr().out) == {"id": "notes-mcp", "package": package}


def test_nothing_is_loaded_for_a_file_that_only_the_network_needs():
    """A file is imported without httpx."""
    code = (
        "import sys; from halod.cli.halo import main; main(['mcp', 'registry', 'import', '-']); "
        "print([name for name in ('httpx', 'httpcore', 'halod.policy.importing.fetch') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(server(npm())),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.endswith("[]\n")


def test_the_page_shows_a_real_run(tmp_path, monkeypatch):
    """What docs/import.md prints for a document is what the command prints, but for the day."""
    page = (Path(__file__).parents[2] / "docs" / "import.md").read_text(encoding="utf-8")
    image = oci(identifier="ghcr.io/acme/notes-mcp:1.0.26")
    package = npm(environmentVariables=[{"name": "NOTES_TOKEN", "isRequired": True, "isSecret": True}])
    endpoint = {"type": "streamable-http", "url": "https://mcp.acme.example/notes"}
    (tmp_path / "server.json").write_text(json.dumps(server(package, image, remotes=[endpoint])))
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```console\n(\$ halo mcp registry import server\.json\n.*?)```", page, re.DOTALL)[1]
    shown = re.split(r"^\$ halo (.*)\n", block, flags=re.MULTILINE)[1:]
    assert len(shown) == 4
    for command, text in zip(shown[::2], shown[1::2], strict=True):
        with fed(b"") as (out, err):
            halo.main(command.split())
        assert (
            re.sub(r"on [0-9-]{10}$", "on 2026-11-30", err.getvalue() + out.getvalue(), flags=re.MULTILINE)
            == text
        )
