# SPDX-License-Identifier: Apache-2.0
"""The .deb, from its making to its purge: installed with dpkg into a root of its own, run, upgraded, removed."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from halod import cli
from tests.support import server
from tests.support.root import Root, possible

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-dist" / "bin" / "python"
UNIT = ROOT / "systemd" / "halod.service"
NEXT = "99.1.0"

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("packages"),
    pytest.mark.skipif(not PYTHON.exists(), reason="there is no .venv-dist (make dist-env)"),
    pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg is not installed"),
]


def build(folder, *words):
    """Run the build; its results are in `folder`/dist."""
    where = ["--out", folder / "dist", "--work", folder / "build"]
    command = [str(word) for word in (PYTHON, ROOT / "packaging" / "build.py", *words, *where)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build once: wheel, self-contained build, two versions of the package, and the bill of materials."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder, "python", "bundle", "packages", "sbom", "--packager", "deb")
    build(folder, "packages", "--packager", "deb", "--package-version", NEXT)
    return folder


def packages(built):
    found = {path.name.split("_")[1].split("-")[0]: path for path in (built / "dist").glob("*.deb")}
    return found.pop(NEXT), next(iter(found.values()))


@pytest.fixture
def machine(built, tmp_path):
    """A root of its own with nothing installed in it."""
    reason = possible(tmp_path)
    if reason:
        pytest.skip(reason)
    return Root(tmp_path / "machine", built)


def test_what_is_built(built):
    """Wheel, source and the archive of the self-contained build lie beside the package, with root as owner."""
    names = {re.sub(r"[0-9]+\.[0-9]+\.[0-9]+", "V", path.name) for path in (built / "dist").iterdir()}
    machine = f"linux-{os.uname().machine}"
    assert {"halod-V-py3-none-any.whl", "halod-V.tar.gz", f"halod-V-{machine}.tar.gz"} <= names
    with tarfile.open(next((built / "dist").glob(f"*-{machine}.tar.gz"))) as archive:
        members = archive.getmembers()
    assert {(one.uid, one.gid, one.mtime) for one in members} == {(0, 0, 1790000000)}
    assert not [one.name for one in members if one.mode & 0o022 and not one.issym()]
    assert not [
        one.name for one in members if re.search(r"/(click|rich|pygments|pip|setuptools)(/|$)", one.name)
    ]


def test_the_bill_of_materials_names_what_is_inside(built):
    """Every library of the lock file that is installed, the Python, and each copied library by its hash."""
    document = json.loads(next((built / "dist").glob("*.cdx.json")).read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    parts = {part["name"].lower(): part for part in document["components"]}
    assert {"msgspec", "tomli", "httpx", "cryptography", "cpython"} <= parts.keys()
    assert parts["msgspec"]["purl"] == f"pkg:pypi/msgspec@{parts['msgspec']['version']}"
    inside = built / "build" / "bundle" / "halod" / "_internal"
    ssl = next(inside.glob("libssl*"))
    assert parts[ssl.name.lower()]["hashes"][0]["content"] == hashlib.sha256(ssl.read_bytes()).hexdigest()
    assert document["dependencies"][0]["dependsOn"] == sorted(part["bom-ref"] for part in parts.values())


def test_the_wheel_brings_the_files_of_the_service(built):
    tree = built / "build" / "tree" / "halod" / "data"
    assert (tree / "systemd" / "halod.service").read_text() == UNIT.read_text()
    assert (tree / "launchd" / "dev.halos.halod.plist").exists()


# What dpkg and systemd-sysusers keep for themselves.
BOOKS = re.compile(r"/var/lib/dpkg|/var/cache|/var/log|/etc/(passwd|group|shadow|gshadow|\.pwd\.lock|.*-)$")


def ours(machine):
    return {name for name in machine.changed() if not BOOKS.match(name)}


def test_installing_creates_what_it_should_and_nothing_else(built, machine):
    """Programs, links, unit, preset, account and sample; no settings, no state, nothing enabled."""
    machine.run("dpkg", "-i", packages(built)[1])
    made = ours(machine)
    assert {name for name in made if not name.startswith("/opt/halod")} == {
        "/usr/bin/halod",
        "/usr/bin/halo",
        "/usr/lib/systemd/system/halod.service",
        "/usr/lib/systemd/system-preset/90-halod.preset",
        "/usr/lib/sysusers.d/halod.conf",
        "/etc/halod",
        "/etc/halod/halod.toml.sample",
    } | ({"/opt"} if not os.path.exists("/opt") else set())
    assert (
        machine.run("dpkg-query", "-W", "-f=${Conffiles}", "halod").split()[0]
        == "/etc/halod/halod.toml.sample"
    )
    account = machine.run("getent", "passwd", "halod").split(":")
    assert account[6].strip().endswith("nologin")
    assert 0 < int(account[2]) < 1000
    assert machine.path("/usr/lib/systemd/system/halod.service").read_text() == UNIT.read_text()
    loose = machine.run(
        "find", "/opt/halod", "/usr/bin/halod", "!", "-user", "root", "-o", "-perm", "/022", "!", "-type", "l"
    )
    assert loose == ""


def test_the_installed_programs_run_without_python(built, machine):
    """Started through their links with an empty environment, on a machine whose Python is out of reach."""
    machine.run("dpkg", "-i", packages(built)[1])
    machine.run("sh", "-c", "rm -f /usr/bin/python3*")
    home = built / "home"
    shutil.copytree(ROOT / "packaging" / "demo-home", home, dirs_exist_ok=True)
    policy = built / "halos.yaml"
    shutil.copy(ROOT / "packaging" / "halos.yaml", policy)
    clean = ("env", "-i", "PYTHONPATH=/tmp", "PYTHONHOME=/tmp")
    assert machine.run(*clean, "/usr/bin/halod", "--version").startswith("halod ")
    scan = (
        "/usr/bin/halod",
        "scan",
        "--home",
        home,
        "--policy",
        policy,
        "--ring",
        "ring1-canary",
        "--format",
        "json",
    )
    code = None  # 1 with findings, 3 without: what lies in the demonstration home may change
    status = json.loads(machine.run(*clean, *scan, code=code).partition("\n{")[0])
    assert status["coverage"]["definitions"] > 0
    assert "worker-crashed" not in {row["reason"] for row in status["skipped"]}
    assert "valid" in machine.run(*clean, "/usr/bin/halo", "validate", policy)
    shown = machine.run(*clean, "/opt/halod/halod", "service", "print", "--prefix", "/mnt")
    assert "ExecStart=/opt/halod/halod run" in shown
    machine.run(*clean, "/usr/bin/halod", "service", "install")
    assert not machine.path("/etc/systemd/system/halod.service").exists()  # the package has brought it


def test_an_installation_that_others_can_write_is_refused(built, machine):
    """One library of the self-contained build that is another account's, and root runs nothing of it."""
    machine.run("dpkg", "-i", packages(built)[1])
    library = next((built / "build" / "bundle" / "halod" / "_internal").glob("libssl*")).name
    machine.run("chown", "halod", f"/opt/halod/_internal/{library}")
    for command in (("run", "--once"), ("service", "install")):
        assert "refusing to run as root" in machine.run("/opt/halod/halod", *command, code=2)


SETTINGS = """\
[device]
ring = "ring1-canary"
accounts = ["tester"]
[policy]
path = "/etc/halod/halos.yaml"
[report]
url = "{url}"
token_file = "/etc/halod/token"
"""

CONFIGURE = """
set -e
useradd --create-home --shell /bin/sh tester
mkdir /home/tester/.cursor
echo '{"mcpServers": {"notes": {"url": "https://mcp.example.com/CANARYpath?key=CANARYquery"}}}' > /home/tester/.cursor/mcp.json
chown -R tester: /home/tester
chmod 700 /home/tester
umask 077
printf %s "$TOKEN" > /etc/halod/token
printf %s "$SETTINGS" > /etc/halod/halod.toml
printf %s "$POLICY" > /etc/halod/halos.yaml
echo '# changed here' >> /etc/halod/halod.toml.sample
"""


def as_the_unit(*command):
    """Run a command with the capabilities that the unit leaves, after the steps that it does first."""
    unit = UNIT.read_text()
    before = [line.partition("=+")[2] for line in unit.splitlines() if line.startswith("ExecStartPre=+")]
    left = (
        re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)[1].lower().replace("cap_", "+").split()
    )
    confine = f"exec setpriv --no-new-privs --bounding-set=-all,{','.join(left)} {' '.join(command)}"
    return ("sh", "-c", "; ".join(["set -e", *before, "umask 077", confine]))


@pytest.mark.skipif("run" not in cli.COMMANDS, reason="there is no halod run yet")
def test_the_life_of_a_package(built, machine):
    """Configured, run as the unit would, upgraded with state and settings kept, removed, purged."""
    newer, older = packages(built)
    machine.run("dpkg", "-i", older)
    with server.running() as console:
        policy = (ROOT / "packaging" / "halos.yaml").read_text()
        machine.run(
            "sh",
            "-c",
            CONFIGURE,
            TOKEN=server.TOKEN,
            SETTINGS=SETTINGS.format(url=console.url),
            POLICY=policy,
        )
        once = as_the_unit("/opt/halod/halod", "run", "--once")
        machine.run(*once)
        reports = [json.loads(one["body"]) for one in console.log()]
        assert [row["server"] for row in reports[-1]["mcpDrift"]] == ["notes"]
        assert reports[-1]["coverage"]["accounts"] == 1
        owner = machine.run("getent", "passwd", "halod").split(":")[2]
        state = machine.path("/var/lib/halod")
        assert {str(path.lstat().st_uid) for path in [state, *state.rglob("*")]} == {owner}
        assert not any(path.stat().st_mode & 0o077 for path in [state, *state.rglob("*")])
        before = len(console.transitions())
        settings = machine.path("/etc/halod/halod.toml").read_bytes()

        machine.run("dpkg", "-i", newer)
        assert NEXT in machine.run("dpkg-query", "-W", "-f=${Version}", "halod")
        assert machine.path("/etc/halod/halod.toml").read_bytes() == settings
        assert machine.path("/etc/halod/halod.toml.sample").read_text().endswith("# changed here\n")
        machine.run(*once)
        # A finding that the state did not know would be opened a second time.
        assert len(console.transitions()) == before > 0

    machine.run("dpkg", "-r", "halod")
    assert not (machine.path("/opt/halod")).is_dir()
    assert machine.run("ls", "/usr/bin/halod", code=2)
    assert state.is_dir()
    machine.run("dpkg", "-P", "halod")
    left = {name for name in ours(machine) if "halod" in name and not name.startswith("/etc/halod/")}
    assert left <= {"/etc/halod"}
    assert machine.path("/etc/halod/halod.toml").read_bytes() == settings
