# SPDX-License-Identifier: Apache-2.0
"""How a command ends: one line, an exit code, and no text of a fault."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from halod import cli
from halod.cli import errors
from halod.errors import EnvironmentFault, HalodError, UsageError

ROOT = Path(__file__).resolve().parents[2]


def ends(command, words=()):
    return errors.guard(command, list(words), process=False)


def raising(error):
    def command(_words):
        raise error

    return command


def test_an_exit_code_is_passed_on(capsys):
    """A command that ends well says nothing here."""
    assert ends(len, "ab") == 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [HalodError, UsageError, EnvironmentFault])
def test_an_error_of_ours_is_one_line(capsys, kind):
    """What, where and what to do stand on one line; the code is the error's."""
    assert ends(raising(kind("halos.yaml:3:1: unknown\nkey", advice="see\x1b[31m the page"))) == 2
    assert capsys.readouterr().err == "halod: error: halos.yaml:3:1: unknown key; see[31m the page\n"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("CANARYvalue"),
        RecursionError("CANARYdeep"),
        OSError(2, "CANARYos", "CANARYfile"),
        MemoryError(),
    ],
)
def test_a_fault_shows_its_type_only(capsys, monkeypatch, error):
    """The text of an unforeseen exception may quote a user's file: it stays inside, whatever HALOD_DEBUG says."""
    monkeypatch.setenv("HALOD_DEBUG", "1")
    assert ends(raising(error)) == 70
    out, err = capsys.readouterr()
    assert type(error).__name__ in err
    assert "CANARY" not in out + err
    assert "Traceback" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("end", "code"), [(SystemExit(), 0), (SystemExit(3), 3), (SystemExit("CANARY"), 2)])
def test_system_exit(capsys, end, code):
    """Argparse ends by SystemExit: its number counts, its text is not shown."""
    assert ends(raising(end)) == code
    assert "CANARY" not in "".join(capsys.readouterr())


def test_interrupted_and_closed():
    """Ctrl-C and a reader that went away end as shells expect, without a word."""
    assert ends(raising(KeyboardInterrupt())) == 130
    assert ends(raising(BrokenPipeError())) == 141


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["scan", "--tokne=CANARYx"], "unknown option --tokne"),
        (["scan", "CANARYword"], "too many arguments"),
        (["scan", "--format", "xml"], "--format"),
        (["scan", "--home"], "--home"),
        (["scan", "--home", "x", "--all-users"], "not allowed with"),
        (["scann"], "did you mean scan?"),
        (["CANARYcommand"], "no command of this name"),
        (["--tokne=CANARY"], "no option of this name"),
    ],
)
def test_wrong_usage(capsys, words, says):
    """Exit 2, one line that says what to do, and no value that was typed after an unknown option."""
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("halod: error: ")
    assert says in err
    assert err.count("\n") == 1
    assert "CANARY" not in err


def test_help_and_version(capsys):
    """The help names every command and the exit codes; without a command it goes to stderr."""
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in cli.COMMANDS)
    assert "examples:" in text
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("halod ")
    assert cli.main([]) == 2
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_explains_itself(capsys, name):
    """`--help` of each command has examples and exits 0."""
    assert cli.main([name, "--help"]) == 0
    assert "halod " + name in capsys.readouterr().out


def test_a_closed_pipe_is_quiet():
    """`halod --help | true` says nothing on stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "halod", "--help"],
            cwd=ROOT,
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 141


def test_an_output_that_cannot_show_a_character_does_not_fail(tmp_path):
    """A terminal without the character gets it escaped."""
    code = "import sys; from halod.cli import errors; sys.exit(errors.guard(lambda w: print('\\u8d44') or 0, [], process=True))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stdout) == (0, b"\\u8d44\n")


def test_nothing_is_said_when_stderr_is_closed(monkeypatch):
    """An error that cannot be told still ends with its code."""

    class Closed:
        def write(self, _text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    assert ends(raising(UsageError("x"))) == 2


@pytest.mark.parametrize("closed", [(1,), (0, 1), (0, 1, 2)])
def test_a_closed_stdout_is_an_error_and_no_finding(closed):
    """Exit code 1 means findings: a scan that could not print says 2, in one line."""
    redirect = " ".join(f"{number}>&-" for number in closed)
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m halod scan --format json {redirect}', sys.executable],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    said = done.stderr.decode()
    assert said.startswith("halod: error: stdout is closed") if 2 not in closed else not said
    assert said.count("\n") <= 1


def test_closed_stdin_and_stderr_cost_nothing(tmp_path):
    """Pipes of workers do not take the numbers of closed streams."""
    done = subprocess.run(
        [
            "sh",
            "-c",
            'exec "$0" -m halod scan --home "$1" --format json 0<&- 2>&-',
            sys.executable,
            str(tmp_path),
        ],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["skipped"] == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full is Linux's")
@pytest.mark.parametrize("words", [["--help"], ["scan", "--format", "json", "--home", "."]])
def test_a_full_disk_is_told(words):
    """What could not be written is no fault of halod's, and no finding."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "halod", *words],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"halod: error: the output could not be written (ENOSPC)\n"
