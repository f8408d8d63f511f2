# SPDX-License-Identifier: Apache-2.0
"""`halod` as a process: what it imports, how root starts it, and that it ends with its code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.guard import HANG

ROOT = Path(__file__).resolve().parents[2]
MAIN = "import sys; from halod.cli import main; sys.exit(main())"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root is isolated")


def run(*argv, **variables):
    return subprocess.run(
        [sys.executable, *argv],
        capture_output=True,
        check=False,
        cwd="/",
        env={**os.environ, **variables},
        timeout=HANG,
    )


@as_root
def test_root_starts_again_isolated(tmp_path):
    """A variable that would put a file of the caller's before the library is without effect for root."""
    (tmp_path / "argparse.py").write_text("raise SystemExit('CANARYcode ran')\n", encoding="utf-8")
    done = run("-c", MAIN, "scan", "--help", PYTHONPATH=str(tmp_path))
    assert b"usage: halod scan" in done.stdout, done.stderr
    assert b"CANARY" not in done.stdout + done.stderr


@as_root
@pytest.mark.parametrize("variables", [{}, {"PYTHONUNBUFFERED": "1"}, {"PYTHONDEVMODE": "1"}])
def test_a_file_beside_the_script_is_not_imported(tmp_path, variables):
    """Neither the script's folder nor the current one is a place that root's halod imports from."""
    (tmp_path / "argparse.py").write_text("raise SystemExit('CANARYcode ran')\n", encoding="utf-8")
    (tmp_path / "halod-command").write_text(MAIN, encoding="utf-8")
    for argv in ([str(tmp_path / "halod-command")], ["-m", "halod"]):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            [sys.executable, *argv, "scan", "--help"],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={**clean, **variables},
            timeout=HANG,
        )
        assert b"usage: halod scan" in done.stdout, done.stderr
        assert b"CANARY" not in done.stdout + done.stderr


@as_root
def test_root_refuses_what_others_can_write(tmp_path):
    """A policy that everybody can write is not believed by root."""
    policy = tmp_path / "halos.yaml"
    policy.write_text("mcp: {}\n", encoding="utf-8")
    policy.chmod(0o666)
    done = run("-c", MAIN, "scan", "--home", str(tmp_path), "--policy", str(policy))
    assert done.returncode == 2
    assert b"refusing to run as root" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_the_exit_code_and_the_output_of_a_scan_arrive(tmp_path):
    """A scan ends its process at once, and only after everything is written."""
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text("{", encoding="utf-8")
    done = run("-c", MAIN, "scan", "--home", str(tmp_path), "--format", "json")
    assert done.returncode == 3
    assert done.stdout.endswith(b"}\n")


def test_what_a_scan_does_not_import():
    """Neither the agent's libraries nor anything slow is loaded by a scan (design 2)."""
    code = (
        "import sys; from halod.cli import main; main(['scan', '--home', sys.argv[1], '--policy', sys.argv[2]]);"
        "print(*sorted(sys.modules), sep=chr(10), file=sys.stderr)"
    )
    done = run("-c", code, str(ROOT / "packaging/demo-home"), str(ROOT / "packaging/halos.yaml"))
    loaded = {name.partition(".")[0] for name in done.stderr.decode().split()}
    assert "msgspec" in loaded
    unwanted = {
        "asyncio",
        "dataclasses",
        "pathlib",
        "logging",
        "subprocess",
        "inspect",
        "shutil",
        "tempfile",
        "socket",
        "ssl",
    }
    unwanted |= {
        "psutil",
        "httpx",
        "watchdog",
        "structlog",
        "click",
        "rich",
        "cryptography",
        "typing_extensions",
    }
    assert not unwanted & loaded
    assert not any(name.startswith(("halod.agent", "halod.console")) for name in done.stderr.decode().split())


def test_help_imports_no_command():
    """`halod --help` is answered without the libraries of a scan."""
    done = run(
        "-c", "import sys; from halod.cli import main; main(['--help']); print('msgspec' in sys.modules)"
    )
    assert done.stdout.endswith(b"False\n")
