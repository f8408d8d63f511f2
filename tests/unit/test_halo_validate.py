# SPDX-License-Identifier: Apache-2.0
"""`halo` and `halo validate` as a person and a program see them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from halod import __version__
from halod.cli import halo, halo_validate

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "tests" / "assets" / "policies"
BAD = str(ASSETS / "everything-wrong.yaml")
GOOD = str(ASSETS / "full.yaml")


def test_a_valid_policy_is_one_line_on_stdout_and_exit_0(capsys):
    assert halo.main(["validate", str(ROOT / "packaging" / "halos.yaml")]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("halos.yaml: valid, 8 servers, 2 denied\n")
    assert err == ""


def test_faults_are_lines_on_stderr_and_exit_2(capsys):
    assert halo.main(["validate", BAD]) == 2
    out, err = capsys.readouterr()
    expected = (ASSETS / "everything-wrong.txt").read_text(encoding="utf-8").splitlines()
    assert err.splitlines() == [*(f"{BAD}:{line}" for line in expected), f"{BAD}: {len(expected)} faults"]
    assert out == ""
    assert "CANARY" not in err


def test_the_file_is_halos_yaml_here_unless_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert halo.main(["validate"]) == 2
    expected = (
        "halo: error: cannot read the policy halos.yaml: No such file or directory; "
        "check the path and that this account may read it\n"
    )
    assert capsys.readouterr().err == expected
    (tmp_path / "halos.yaml").write_text("org: 5\n", encoding="utf-8")
    assert halo.main(["validate"]) == 2
    assert capsys.readouterr().err == (
        "halos.yaml:1:6: org: expected text (put it in quotes), got a number\nhalos.yaml: 1 fault\n"
    )


def test_warnings_do_not_make_a_policy_invalid(tmp_path, capsys):
    path = tmp_path / "p.yaml"
    path.write_text("ring: [a]\nmcp:\n  servers: [{id: x, command: [/opt/x]}]\n", encoding="utf-8")
    assert halo.main(["validate", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == f'{path}:1:1: warning: "ring" is left alone; did you mean "rings"?\n'
    assert out == f"{path}: valid, 1 server, 0 denied, 1 warning\n"


@pytest.mark.parametrize("repository", [False, True])
def test_a_slip_that_may_be_why_there_are_faults_is_told_beside_them(tmp_path, capsys, repository):
    """With `ring` for `rings` no ring is known: the fault alone would send its reader to the wrong line."""
    path = tmp_path / "halos.yaml"
    path.write_text(
        "ring: [a]\nmcp:\n  servers: [{id: x, command: [/opt/x], rings: [a]}]\n", encoding="utf-8"
    )
    assert halo.main(["validate", str(tmp_path if repository else path)]) == 2
    assert capsys.readouterr().err == (
        f'{path}:3:48: unknown ring "a"\n'
        f'{path}:1:1: warning: "ring" is left alone; did you mean "rings"?\n'
        f"{tmp_path if repository else path}: 1 fault\n"
    )


def test_json_of_an_invalid_policy_is_alone_on_stdout(capsys):
    assert halo.main(["validate", "--format", "json", BAD]) == 2
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == ""
    assert report["valid"] is False
    assert report["file"] == BAD
    assert report["problems"][0] == {"line": 3, "column": 23, "message": 'rings: "ring0" is listed twice'}
    assert len(report["problems"]) == len(
        (ASSETS / "everything-wrong.txt").read_text(encoding="utf-8").splitlines()
    )
    assert (report["digest"], report["servers"], report["denied"], report["warnings"]) == ("", 0, 0, [])


def test_json_of_a_valid_policy(capsys):
    assert halo.main(["validate", GOOD, "--format=json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["valid"] is True
    assert report["problems"] == []
    assert (report["servers"], report["denied"]) == (6, 2)
    assert report["digest"].startswith("sha256:")


def test_a_dash_reads_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"rings: 5\n")))
    assert halo.main(["validate", "-"]) == 2
    assert capsys.readouterr().err.startswith(
        "<stdin>:1:8: rings: expected a list of ring names, got a number\n"
    )


def test_the_example_of_the_help_is_true(tmp_path, monkeypatch, capsys):
    lines = [line[2:] for line in halo_validate.EXAMPLES.splitlines()]
    first, command = lines.index("$ cat halos.yaml"), lines.index("$ halo validate")
    (tmp_path / "halos.yaml").write_text("\n".join(lines[first + 1 : command]) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert halo.main(["validate"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == lines[command + 1 : command + 1 + len(said)]


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_lists_the_commands(words, capsys):
    assert halo.main(words) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in halo.COMMANDS)


def test_no_command_shows_the_help_on_stderr(capsys):
    assert halo.main([]) == 2
    assert "usage: halo COMMAND" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    assert halo.main(["--version"]) == 0
    assert capsys.readouterr().out == f"halo {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["valdate"], "there is no command of this name; did you mean validate?"),
        (["--frob"], "there is no option of this name; halo --help lists the commands"),
        (["validate", "--frob=CANARY"], "unknown option --frob; see halo validate --help"),
        (["validate", "--format", "xml"], "see halo validate --help"),
        (["validate", "a", "b"], "too many arguments; see halo validate --help"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(words, said, capsys):
    assert halo.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err
    assert "CANARY" not in err


def test_validate_help_teaches_with_an_example(capsys):
    assert halo.main(["validate", "--help"]) == 0
    assert "$ halo validate" in capsys.readouterr().out


def test_as_a_process_it_says_the_same(tmp_path):
    code = "import sys; from halod.cli.halo import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "validate", os.fsencode(str(tmp_path)) + b"/\xff.yaml"],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"halo: error: cannot read the policy ")
    assert b"Traceback" not in done.stderr
