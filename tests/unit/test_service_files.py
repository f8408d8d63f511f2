# SPDX-License-Identifier: Apache-2.0
"""The unit, the job and their neighbours, and what `halod service` makes of them."""

import os
import pathlib
import plistlib
import re
import shutil
import stat
import subprocess
import sys

import msgspec
import pytest

from halod.cli import main
from halod.errors import EnvironmentFault
from halod.service import apply, door, files
from halod.service.plan import Command, File, Plan, Situation, plan
from tests.support.guard import HANG

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNIT = ROOT / "systemd" / "halod.service"
JOB = ROOT / "launchd" / "dev.halos.halod.plist"
SOURCES = files.read_sources()
PACKAGED = files.Program(("/opt/halod/halod", "run"), ("/opt/halod",))
VENV = files.Program(
    ("/srv/halod env/bin/python", "-I", "-m", "halod", "run"),
    ("/srv/halod env", "/usr", "/usr/bin", "/opt/py"),
)
LINUX = Situation(system="linux", configured=True, account_exists=True)
MACOS = Situation(system="darwin", configured=True, account="_halod", account_exists=True, free_id=301)

analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (.ci/run installs it)"
)


def directives(text):
    """Give the directives of a unit, in order."""
    lines = [line for line in text.splitlines() if line and line[0] not in "#["]
    return [tuple(line.split("=", 1)) for line in lines]


def words(commands):
    return [" ".join(command.words) for command in commands]


# -- systemd -------------------------------------------------------------------------------------


@analyze
def test_the_unit_is_as_closed_as_a_reader_of_homes_can_be():
    """Systemd's own analysis gives an exposure of at most 2.3."""
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=23", str(UNIT)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    exposure = re.search(r"exposure level for halod.service: ([0-9.]+)", done.stdout)
    assert 0 < float(exposure[1]) <= 2.3


@analyze
@pytest.mark.parametrize("program", [PACKAGED, VENV], ids=["packaged", "venv"])
def test_the_unit_is_valid(program, tmp_path):
    """Systemd understands every line, apart from the program, which is not installed here."""
    unit = tmp_path / "halod.service"
    text = files.unit_for(program, SOURCES.unit)
    unit.write_text(re.sub(r'^ExecStart=("[^"]*"|\S+)', "ExecStart=/bin/true", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], check=False, capture_output=True, text=True, timeout=HANG
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_supervisor_keeps_three_capabilities():
    """What a change of ids and the end of a worker need, and nothing else."""
    unit = dict(directives(UNIT.read_text()))
    assert unit["CapabilityBoundingSet"] == "CAP_SETUID CAP_SETGID CAP_KILL"
    assert unit["AmbientCapabilities"] == ""
    assert "User" not in unit


def test_systemd_leaves_the_agents_directories_alone():
    """Without User= systemd would give a StateDirectory= back to root at each start and reload (systemd.exec(5))."""
    text = UNIT.read_text()
    unit = directives(text)
    assert not [key for key, _ in unit if key.endswith("Directory")]
    made = [value.split()[-1] for key, value in unit if key == "ExecStartPre"]
    assert made == ["/var/lib/halod", "/run/halod"]
    assert dict(unit)["ReadWritePaths"] == " ".join(f"-{path}" for path in made)


def test_the_unit_waits_for_settings():
    unit = dict(directives(UNIT.read_text()))
    assert unit["ConditionPathExists"] == "/etc/halod/halod.toml"
    assert "disable halod.service" in (ROOT / "packaging/systemd-preset/90-halod.preset").read_text()


def test_the_system_call_filter_names_what_confines_a_worker():
    filters = " ".join(value for key, value in directives(UNIT.read_text()) if key == "SystemCallFilter")
    for call in ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "setresuid",
                 "setresgid", "setgroups", "capset", "prlimit64"):  # fmt: skip
        assert call in filters.split()


def test_every_open_directive_has_its_reason():
    """What the analysis wants closed and the unit leaves open is named in a comment."""
    comments = " ".join(line for line in UNIT.read_text().splitlines() if line.startswith("#"))
    for name in (
        "User=",
        "PrivateUsers=",
        "PrivateNetwork=",
        "IPAddressDeny=",
        "CAP_CHOWN",
        "CAP_DAC_READ_SEARCH",
    ):
        assert name in comments


def test_a_virtual_environment_is_named_by_its_absolute_path_and_isolated():
    text = files.unit_for(VENV, SOURCES.unit)
    unit = dict(directives(text))
    assert unit["ExecStart"] == '"/srv/halod env/bin/python" -I -m halod run'
    assert unit["ExecPaths"] == '/usr "/srv/halod env" /opt/py -/lib -/lib64'
    differing = set(directives(text)) ^ set(directives(SOURCES.unit))
    assert {key for key, _ in differing} == {"ExecStart", "ExecPaths"}


def test_the_packages_unit_is_the_file_as_it_is():
    assert files.unit_for(PACKAGED, SOURCES.unit) == UNIT.read_text()


# -- launchd -------------------------------------------------------------------------------------

# The keys of launchd.plist(5) that are used, with the types it gives them.
DOCUMENTED = {
    "Label": str,
    "ProgramArguments": list,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "AbandonProcessGroup": bool,
    "ProcessType": str,
    "LowPriorityIO": bool,
    "Nice": int,
    "Umask": int,
    "WorkingDirectory": str,
    "HardResourceLimits": dict,
    "SoftResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}


def test_the_job_has_documented_keys_only():
    job = plistlib.loads(JOB.read_bytes())
    assert {key: type(value) for key, value in job.items()} == DOCUMENTED
    assert job["KeepAlive"].keys() <= {"SuccessfulExit", "Crashed", "PathState", "OtherJobEnabled"}
    limits = {"Core", "CPU", "Data", "FileSize", "MemoryLock", "NumberOfFiles", "NumberOfProcesses", "Stack"}
    assert job["HardResourceLimits"].keys() <= limits


def test_the_job_is_a_quiet_one_that_is_kept_alive():
    job = plistlib.loads(JOB.read_bytes())
    assert job["Label"] == files.LABEL == JOB.stem
    assert job["ProcessType"] == "Background"
    assert job["LowPriorityIO"] is True
    assert job["Umask"] == 0o077  # property lists have no octal numbers
    assert job["HardResourceLimits"]["Core"] == 0
    assert job["ThrottleInterval"] >= 10
    assert "EnvironmentVariables" not in job
    assert "UserName" not in job
    assert job["ProgramArguments"] == ["/opt/halod/halod", "run"]


def test_the_job_waits_for_settings():
    """Launchd starts it when the file or managed preferences are there, and goes by nothing else."""
    paths = plistlib.loads(JOB.read_bytes())["KeepAlive"]["PathState"]
    assert paths == {
        "/Library/Application Support/halod/halod.toml": True,
        "/Library/Managed Preferences/dev.halos.halod.plist": True,
    }


def test_the_log_is_turned_over():
    """The file that launchd writes is the one that newsyslog turns over, with a size and a count."""
    log = plistlib.loads(JOB.read_bytes())["StandardErrorPath"]
    lines = [line for line in SOURCES.rotation.splitlines() if line and not line.startswith("#")]
    name, owner, mode, count, size, when, flags, pid_file, number = lines[0].split()
    assert len(lines) == 1
    assert (name, owner, mode, when, flags, number) == (log, "root:wheel", "640", "*", "J", "15")
    assert 1 <= int(count) <= 10
    assert 0 < int(size) <= 10_240
    assert pid_file.startswith("/var/run/")


def test_the_job_of_a_virtual_environment():
    job = plistlib.loads(files.job_for(VENV, SOURCES.job).encode())
    assert job["ProgramArguments"] == list(VENV.command)
    packaged = plistlib.loads(files.job_for(PACKAGED, SOURCES.job).encode())
    assert {**job, "ProgramArguments": 0} == {**packaged, "ProgramArguments": 0}


# -- this installation ---------------------------------------------------------------------------


def test_this_installation_is_started_isolated():
    program = files.this_program()
    assert program.command == (os.path.abspath(sys.executable), "-I", "-m", "halod", "run")
    assert sys.base_prefix in program.directories


def test_the_command_of_a_virtual_environment_works():
    """What the unit would start is there: the same words with another command."""
    command = [*files.this_program().command[:-1], "--version"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=HANG, env={}, cwd="/")
    assert (done.returncode, done.stdout.split()[0]) == (0, "halod")


def test_a_frozen_build_is_its_own_program(monkeypatch, tmp_path):
    real = tmp_path / "halod"
    real.touch()
    link = tmp_path / "link"
    link.symlink_to(real)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(link))
    assert files.this_program() == files.Program((str(real), "run"), (str(tmp_path),))


@pytest.mark.parametrize(
    "path", ["/a\n/python", '/a"/python', "/a%n/python", "/a$x/python", "/a<b>/python", "/ä/p"]
)
def test_a_path_that_a_unit_cannot_hold_is_refused(path, monkeypatch):
    monkeypatch.setattr(sys, "executable", path)
    with pytest.raises(EnvironmentFault):
        files.this_program()


# -- the plan ------------------------------------------------------------------------------------


def test_installing_on_linux():
    made = plan("install", VENV, SOURCES, msgspec.structs.replace(LINUX, account_exists=False))
    assert [file.path for file in made.files] == [
        "/etc/systemd/system/halod.service",
        "/etc/sysusers.d/halod.conf",
    ]
    assert words(made.after) == [
        "systemd-sysusers halod.conf",
        "systemctl daemon-reload",
        "systemctl enable halod.service",
        "systemctl restart halod.service",
    ]
    assert made.notes == ()


def test_the_package_brings_its_own_files():
    """Installed as a package, nothing is written beside it: its unit is only enabled."""
    made = plan("install", PACKAGED, SOURCES, LINUX)
    assert made.files == ()
    assert "systemctl enable halod.service" in words(made.after)
    removed = plan("uninstall", PACKAGED, SOURCES, LINUX)
    assert removed.removals == ("/etc/systemd/system/halod.service",)


def test_without_a_service_manager_it_is_said():
    made = plan("install", VENV, SOURCES, msgspec.structs.replace(LINUX, manager=False, configured=False))
    assert made.after == ()
    assert "systemd does not run here" in made.notes[0]
    assert "/etc/halod/halod.toml" in made.notes[1]


def test_removing_on_linux_keeps_settings_and_state():
    made = plan("uninstall", VENV, SOURCES, LINUX)
    assert words(made.before) == ["systemctl disable --now halod.service"]
    assert made.removals == ("/etc/systemd/system/halod.service", "/etc/sysusers.d/halod.conf")
    assert made.files == ()
    assert "kept" in made.notes[0]


def test_installing_on_macos():
    made = plan("install", VENV, SOURCES, MACOS)
    assert [file.path for file in made.files] == [
        "/Library/LaunchDaemons/dev.halos.halod.plist",
        "/etc/newsyslog.d/dev.halos.halod.conf",
    ]
    assert words(made.after) == [
        "launchctl bootout system/dev.halos.halod",
        "launchctl enable system/dev.halos.halod",
        "launchctl bootstrap system /Library/LaunchDaemons/dev.halos.halod.plist",
    ]
    assert made.after[0].may_fail
    assert made.before == ()


def test_the_account_on_macos_is_made_once():
    """Group and user get the free number, no password that matches anything, and no shell."""
    made = plan("install", VENV, SOURCES, msgspec.structs.replace(MACOS, account_exists=False))
    lines = words(made.before)
    assert "dscl . -create /Groups/_halod PrimaryGroupID 301" in lines
    assert "dscl . -create /Users/_halod UniqueID 301" in lines
    assert "dscl . -create /Users/_halod UserShell /usr/bin/false" in lines
    assert "dscl . -create /Users/_halod Password *" in lines


def test_removing_on_macos():
    made = plan("uninstall", VENV, SOURCES, MACOS)
    assert words(made.before) == ["launchctl bootout system/dev.halos.halod"]
    assert made.before[0].may_fail
    assert len(made.removals) == 2


@pytest.mark.parametrize("here", [LINUX, MACOS], ids=["linux", "macos"])
def test_below_a_prefix_nothing_is_run(here):
    image = msgspec.structs.replace(here, prefix="/mnt/image", account_exists=False)
    for action in ("install", "uninstall"):
        made = plan(action, PACKAGED, SOURCES, image)
        assert made.before == made.after == ()
        paths = [file.path for file in made.files] + list(made.removals)
        assert paths
        assert all(path.startswith("/mnt/image/") for path in paths)


# -- carrying it out -----------------------------------------------------------------------------


def test_a_plan_is_carried_out_in_order_and_again_changes_nothing(tmp_path):
    target = tmp_path / "etc" / "halod.service"
    made = Plan(
        before=(Command(("first",), may_fail=True),),
        files=(File(str(target), "text\n"),),
        removals=(str(tmp_path / "old"),),
        after=(Command(("last", "word")),),
    )
    (tmp_path / "old").touch()
    ran = []

    def run(given):
        ran.append((given, target.exists()))
        return "no such job" if given == ("first",) else ""

    assert list(apply.carry_out(made, run)) == [
        "nothing to do: first",
        f"wrote: {target}",
        f"removed: {tmp_path / 'old'}",
        "ran: last word",
    ]
    assert ran == [(("first",), False), (("last", "word"), True)]
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    inode = target.stat().st_ino
    assert list(apply.carry_out(made, run))[1:3] == [f"unchanged: {target}", f"not there: {tmp_path / 'old'}"]
    assert target.stat().st_ino == inode
    assert [path.name for path in target.parent.iterdir()] == ["halod.service"]


def test_a_file_with_other_content_or_mode_is_replaced(tmp_path):
    target = tmp_path / "unit"
    for content, mode in (("other", 0o644), ("right", 0o666)):
        target.write_text(content)
        target.chmod(mode)
        assert list(apply.carry_out(Plan(files=(File(str(target), "right"),)))) == [f"wrote: {target}"]
        assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("right", 0o644)


def test_what_stands_in_the_way_is_refused(tmp_path):
    """A link in the place of a file is neither followed nor replaced."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    target = tmp_path / "unit"
    target.symlink_to(elsewhere)
    with pytest.raises(EnvironmentFault, match="something other"):
        list(apply.carry_out(Plan(files=(File(str(target), "text"),))))
    assert elsewhere.read_text() == "mine"


def test_a_directory_cannot_be_removed(tmp_path):
    with pytest.raises(EnvironmentFault, match="cannot remove"):
        list(apply.carry_out(Plan(removals=(str(tmp_path),))))


def test_nothing_is_left_beside_a_file_that_cannot_be_put_in_place(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "refused")

    monkeypatch.setattr(apply.os, "replace", refuse)
    with pytest.raises(EnvironmentFault, match="refused"):
        list(apply.carry_out(Plan(files=(File(str(tmp_path / "unit"), "text"),))))
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_fails_ends_it():
    made = Plan(after=(Command(("systemctl", "enable")), Command(("never",))))
    with pytest.raises(EnvironmentFault, match="systemctl enable failed: broken"):
        list(
            apply.carry_out(
                made, lambda given: "broken" if given[0] == "systemctl" else pytest.fail("went on")
            )
        )


# -- the door to programs ------------------------------------------------------------------------


def program(tmp_path, text):
    path = tmp_path / "tool"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return (str(tmp_path),)


def test_programs_get_an_environment_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("CANARY", "CANARY")
    where = program(
        tmp_path, 'test -z "$CANARY$LD_PRELOAD" && test "$PATH" = /usr/bin:/bin:/usr/sbin:/sbin && ! read x'
    )
    assert door.run(("tool",), where) == ""


def test_what_a_program_says_is_told(tmp_path):
    assert door.run(("tool",), program(tmp_path, "echo one >&2; echo two >&2; exit 3")) == "two"
    assert door.run(("tool",), program(tmp_path, "exit 3")) == "exit code 3"


def test_a_program_is_not_looked_for_in_path(tmp_path, monkeypatch):
    where = program(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", where[0])
    with pytest.raises(EnvironmentFault, match="not installed"):
        door.run(("tool",))


def test_a_program_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(door, "_SECONDS", 0.2)
    with pytest.raises(EnvironmentFault, match="did not come to an end"):
        door.run(("tool",), program(tmp_path, "exec sleep 60"))


# -- the command ---------------------------------------------------------------------------------


def test_print_changes_nothing_and_shows_everything(capsys, tmp_path):
    assert main(["service", "print", "--prefix", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert f"# would write: {tmp_path}/etc/systemd/system/halod.service" in said.out
    assert "CapabilityBoundingSet" in said.out
    assert list(tmp_path.iterdir()) == []


def test_print_names_the_programs_that_install_runs(capsys):
    main(["service", "print"])
    assert "# would run: " in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="the paths of Linux")
def test_install_and_uninstall_below_a_prefix(capsys, tmp_path):
    unit = tmp_path / "etc/systemd/system/halod.service"
    for word in ("wrote", "unchanged"):
        assert main(["service", "install", "--prefix", str(tmp_path)]) == 0
        assert f"{word}: {unit}" in capsys.readouterr().out
    assert f"ExecStart={os.path.abspath(sys.executable)} -I -m halod run" in unit.read_text()
    assert main(["service", "uninstall", "--prefix", str(tmp_path)]) == 0
    assert not unit.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the paths of Linux")
@pytest.mark.parametrize("link", ["etc", "etc/systemd", "etc/systemd/system", "etc/sysusers.d"])
@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_a_link_of_an_image_leads_nowhere_else(capsys, tmp_path, link, action):
    """Nothing outside the prefix is written, made or removed, and nothing inside before that is known."""
    image, machine = tmp_path / "image", tmp_path / "machine"
    for name in ("systemd/system", "sysusers.d"):
        (machine / name).mkdir(parents=True)
    unit = machine / "systemd" / "system" / "halod.service"
    others = [unit, machine / "halod.service", machine / "halod.conf"]
    for path in others:
        path.write_text("the machine's own")
    place = image / link
    place.parent.mkdir(parents=True)
    place.symlink_to(machine)
    assert main(["service", action, "--prefix", str(image)]) == 2
    assert "a link leads there" in capsys.readouterr().err
    assert [path.read_text() for path in others] == ["the machine's own"] * 3
    assert sorted(path.name for path in image.rglob("*.service")) == []


def test_a_link_inside_an_image_is_followed(capsys, tmp_path):
    """What stays below the prefix is an image's own affair."""
    (tmp_path / "usr" / "etc").mkdir(parents=True)
    (tmp_path / "etc").symlink_to("usr/etc")
    assert main(["service", "uninstall", "--prefix", str(tmp_path)]) == 0
    capsys.readouterr()


def test_a_prefix_that_is_not_there(capsys, tmp_path):
    assert main(["service", "install", "--prefix", str(tmp_path / "none")]) == 2
    assert "--prefix" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is at risk")
def test_install_refuses_what_others_can_write(capsys, tmp_path, monkeypatch):
    """Nothing is written when the interpreter lies where another account could replace it."""
    tools = tmp_path / "tools"
    tools.mkdir()
    tools.chmod(0o777)
    python = tools / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    target = tmp_path / "image"
    target.mkdir()
    assert main(["service", "install", "--prefix", str(target)]) == 2
    assert "refusing" in capsys.readouterr().err
    assert list(target.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may install")
def test_only_root_installs(capsys):
    assert main(["service", "install"]) == 2
    assert "root" in capsys.readouterr().err
