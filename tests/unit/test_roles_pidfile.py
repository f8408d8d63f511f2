# SPDX-License-Identifier: Apache-2.0
"""The process id for log rotation: where, while, and only one's own."""

import os
import pathlib
import stat

import pytest

from halod.roles import pidfile
from tests.support.roles import in_child


def test_it_is_there_while_the_service_runs(tmp_path):
    """One line with the process id, readable by all; gone afterwards, and nothing else left."""
    path = tmp_path / "halod.pid"
    path.write_text("99999999\n")  # of a run that was killed
    with pidfile.held(str(path)):
        assert path.read_text() == f"{os.getpid()}\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == []


def test_what_stands_in_its_place_is_not_written_through(tmp_path):
    """A link is replaced, its target is left alone."""
    target = tmp_path / "target"
    target.write_text("x")
    path = tmp_path / "halod.pid"
    path.symlink_to(target)
    with pidfile.held(str(path)):
        assert not path.is_symlink()
    assert target.read_text() == "x"


def test_another_ones_file_stays(tmp_path):
    """A second service that took the place keeps its file."""
    path = tmp_path / "halod.pid"
    with pidfile.held(str(path)):
        path.write_text("1\n")
    assert path.read_text() == "1\n"


def test_a_place_that_cannot_be_written_is_no_fault():
    """The service runs without."""
    with pidfile.held("/no/such/directory/halod.pid"):
        pass


def test_only_macos_and_root_have_one(tmp_path):
    """Rotation by launchd looks where it is written; elsewhere nothing is."""
    conf = pathlib.Path(__file__).parents[2] / "launchd" / "dev.halos.halod.conf"
    (line,) = [line for line in conf.read_text().splitlines() if not line.startswith("#")]
    assert line.split()[-2] == pidfile.PATH
    assert pidfile.wanted("linux") == ""
    with pidfile.held(""):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another account")
def test_a_service_of_ones_own_has_none():
    """The directory is root's."""

    def other():
        os.setresuid(12345, 12345, 12345)
        return pidfile.wanted("darwin")

    assert (pidfile.wanted("darwin"), in_child(other)) == (pidfile.PATH, "")
