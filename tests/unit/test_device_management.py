# SPDX-License-Identifier: Apache-2.0
"""What an organisation's device management takes: profiles, scripts, queries. None of its systems is here, so form
and meaning are checked as far as they can be without one.
"""

import json
import os
import pathlib
import plistlib
import sqlite3
import stat
import subprocess

import pytest
import yaml

from halod.settings import load
from tests.support.guard import HANG

ROOT = pathlib.Path(__file__).resolve().parents[2]
MDM = ROOT / "packaging" / "mdm"
PROFILES = sorted(MDM.glob("*.mobileconfig"))
SHELLCHECK = ROOT / ".venv-dist" / "bin" / "shellcheck"
SCRIPTS = sorted(
    [*ROOT.glob("packaging/**/*.sh"), *ROOT.glob("packaging/macos/scripts/*"), ROOT / ".ci" / "run"],
)


def profile(name):
    """Give the one payload of a profile."""
    return plistlib.loads((MDM / f"halod-{name}.mobileconfig").read_bytes())["PayloadContent"][0]


# -- configuration profiles ----------------------------------------------------------------------


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_profile_has_what_every_profile_needs(path):
    outer = plistlib.loads(path.read_bytes())
    assert outer["PayloadType"] == "Configuration"
    assert outer["PayloadScope"] == "System"
    for part in (outer, *outer["PayloadContent"]):
        assert part["PayloadVersion"] == 1
        assert part["PayloadIdentifier"].startswith("dev.halos.halod.")
        assert len(part["PayloadUUID"]) == 36


def test_no_identifier_is_used_twice():
    parts = [part for path in PROFILES for outer in [plistlib.loads(path.read_bytes())]
             for part in (outer, *outer["PayloadContent"])]  # fmt: skip
    for key in ("PayloadUUID", "PayloadIdentifier"):
        assert len({part[key] for part in parts}) == len(parts) == 6


def test_the_settings_profile_is_accepted_as_settings(tmp_path):
    """What macOS makes of the profile is read as managed preferences without a fault."""
    payload = profile("settings")
    assert payload["PayloadType"] == "dev.halos.halod"
    preferences = tmp_path / "managed.plist"
    preferences.write_bytes(plistlib.dumps(payload))
    none = str(tmp_path / "halod.toml")
    pathlib.Path(none).write_text("")
    settings = load(none, platform="darwin", managed=str(preferences))
    assert settings.device.ring == "ring1-canary"
    assert settings.scan.interval == 900
    assert settings.report.enroll_key_file == "/Library/Application Support/halod/enroll.key"


def test_the_login_item_is_the_job():
    payload = profile("login-item")
    assert payload["PayloadType"] == "com.apple.servicemanagement"
    job = plistlib.loads((ROOT / "launchd" / "dev.halos.halod.plist").read_bytes())
    assert [(rule["RuleType"], rule["RuleValue"]) for rule in payload["Rules"]] == [("Label", job["Label"])]
    assert payload["Rules"][0]["TeamIdentifier"] == "TEAMID0000"


def test_the_privacy_permission_is_for_one_signed_program():
    """Full disk access for the program that the job starts, bound to its signature, and nothing else."""
    payload = profile("privacy")
    assert payload["PayloadType"] == "com.apple.TCC.configuration-profile-policy"
    assert list(payload["Services"]) == ["SystemPolicyAllFiles"]
    (entry,) = payload["Services"]["SystemPolicyAllFiles"]
    job = plistlib.loads((ROOT / "launchd" / "dev.halos.halod.plist").read_bytes())
    assert entry["Identifier"] == job["ProgramArguments"][0]
    assert entry["IdentifierType"] == "path"
    assert entry["Authorization"] == "Allow"
    requirement = entry["CodeRequirement"]
    assert 'identifier "dev.halos.halod"' in requirement
    assert 'certificate leaf[subject.OU] = "TEAMID0000"' in requirement
    assert "python" not in requirement.lower()


# -- scripts -------------------------------------------------------------------------------------


@pytest.mark.skipif(not SHELLCHECK.exists(), reason="there is no .venv-dist (make dist-env)")
def test_every_script_passes_shellcheck():
    done = subprocess.run([SHELLCHECK, *SCRIPTS], capture_output=True, text=True, check=False, timeout=HANG)
    assert (done.returncode, done.stdout) == (0, "")
    assert len(SCRIPTS) >= 11


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_is_executable_and_stops_at_faults(path):
    text = path.read_text()
    assert path.stat().st_mode & 0o100
    assert text.startswith("#!")
    assert "\nset -" in text or "packaging/jamf" in str(path)


def test_the_enrolment_key_is_placed_for_root_alone(tmp_path):
    folder = tmp_path / "halod"
    environment = {"PATH": os.environ["PATH"], "HALOD_FOLDER": str(folder), "HALOD_ENROLL_KEY": "CANARYkey"}
    for _ in range(2):
        done = subprocess.run(
            [MDM / "place-secrets.sh"], env=environment, capture_output=True, check=True, timeout=HANG
        )
        assert done.stdout == done.stderr == b""
    key = folder / "enroll.key"
    assert key.read_text() == "CANARYkey\n"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert [path.name for path in folder.iterdir()] == ["enroll.key"]


def test_without_a_key_nothing_is_placed(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HALOD_FOLDER": str(tmp_path / "halod")}
    done = subprocess.run(
        [MDM / "place-secrets.sh"], env=environment, capture_output=True, check=False, timeout=HANG
    )
    assert done.returncode == 1
    assert not (tmp_path / "halod").exists()


# -- queries -------------------------------------------------------------------------------------

STATUS = {
    "time": "2026-11-30T09:15:02Z",
    "halod": "0.1.0",
    "ring": "ring1-canary",
    "mode": "allowlist",
    "mcpDriftTotal": 2,
    "errorCode": "",
    "mcpDrift": [
        {"harness": "cursor", "file": "~/.cursor/mcp.json", "server": "notes", "kind": "unapproved", "user": "dev",
         "detail": "d", "fix": "f"},
        {"harness": "codex", "file": "~/.codex/config.toml", "server": "web", "kind": "denied", "user": "dev",
         "detail": "d", "fix": "f"},
    ],
}  # fmt: skip


def flat(value, parent=""):
    """Give (fullkey, parent, key, value) as the table of Fleet's agent has them."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        full = f"{parent}/{key}" if parent else str(key)
        if isinstance(inner, dict | list):
            yield from flat(inner, full)
        else:
            yield full, parent, str(key), str(inner)


@pytest.fixture
def tables():
    """A database with the columns of the tables that the queries use, for a Linux device."""
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    path = "/var/lib/halod/last-status.json"
    database.execute("CREATE TABLE file (path TEXT, mtime BIGINT)")
    database.execute("INSERT INTO file VALUES (?, CAST(strftime('%s', 'now') AS INTEGER) - 600)", (path,))
    database.execute("CREATE TABLE parse_json (path TEXT, fullkey TEXT, parent TEXT, key TEXT, value TEXT)")
    rows = [(path, *row) for row in flat(json.loads(json.dumps(STATUS)))]
    database.executemany("INSERT INTO parse_json VALUES (?, ?, ?, ?, ?)", rows)
    yield database
    database.close()


def queries():
    documents = yaml.safe_load_all((ROOT / "packaging" / "osquery" / "halod.yml").read_text())
    return {document["spec"]["name"]: document for document in documents}


def test_the_findings_are_a_table(tables):
    rows = [dict(row) for row in tables.execute(queries()["halod_findings"]["spec"]["query"])]
    assert [(row["server"], row["kind"], row["config_file"]) for row in rows] == [
        ("notes", "unapproved", "~/.cursor/mcp.json"),
        ("web", "denied", "~/.codex/config.toml"),
    ]
    assert all(row["account"] == "dev" and row["fix"] == "f" for row in rows)


def test_the_status_is_a_row(tables):
    (row,) = tables.execute(queries()["halod_status"]["spec"]["query"])
    assert tuple(row) == ("2026-11-30T09:15:02Z", "0.1.0", "ring1-canary", "allowlist", "2", "")


def test_the_policy_fails_when_the_status_is_old(tables):
    query = queries()["halod scans this device"]["spec"]["query"]
    assert len(tables.execute(query).fetchall()) == 1
    tables.execute("UPDATE file SET mtime = mtime - 86400")
    assert tables.execute(query).fetchall() == []
