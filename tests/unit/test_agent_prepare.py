# SPDX-License-Identifier: Apache-2.0
"""What the agent does as root before it gives that up: directories, in places where others could interfere."""

import os
import stat

import pytest

from halod.agent import prepare
from halod.errors import EnvironmentFault
from tests.support.roles import GID, UID, public_directory

IS_ROOT = os.geteuid() == 0
IDS = prepare.Ids(UID, GID, ()) if IS_ROOT else None


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("wanted", [0o700, 0o755])
def test_a_directory_is_made_and_given_to_the_agent(wanted):
    """It has the mode that was asked for, whatever the umask, and is the agent's; a second time is the same."""
    with public_directory() as directory:
        path = str(directory / "below" / "state")
        before = os.umask(0o077)
        try:
            prepare.own_directory(path, wanted, IDS)
            prepare.own_directory(path, wanted, IDS)
        finally:
            os.umask(before)
        assert mode(path) == wanted
        assert os.stat(path).st_uid == (UID if IS_ROOT else os.geteuid())


def test_a_link_in_the_place_of_a_directory_just_made_changes_nothing_elsewhere(monkeypatch):
    """The agent owns the directory above and swaps: what the link points to keeps its mode and owner."""
    with public_directory() as directory:
        secret = directory / "secret"
        secret.write_text("x")
        secret.chmod(0o600)
        path = directory / "run"
        real = os.mkdir

        def swapped(name, *args, **options):
            real(name, *args, **options)
            if name == str(path):
                path.rmdir()
                path.symlink_to(secret)

        monkeypatch.setattr(os, "mkdir", swapped)
        with pytest.raises(EnvironmentFault):
            prepare.own_directory(str(path), 0o755, IDS)
        assert mode(secret) == 0o600
        assert os.stat(secret).st_uid == os.geteuid()


def test_a_directory_of_others_with_something_in_it_is_not_given_away():
    """A slip in the settings gives away no directory of root's, and no link is followed to one."""
    if not IS_ROOT:
        pytest.skip("only root gives directories away")
    with public_directory() as directory:
        full = directory / "full"
        full.mkdir()
        (full / "file").touch()
        link = directory / "link"
        (directory / "empty").mkdir()
        link.symlink_to(directory / "empty")
        for path in (full, link):
            with pytest.raises(EnvironmentFault):
                prepare.own_directory(str(path), 0o700, IDS)
        assert os.stat(full).st_uid == os.stat(directory / "empty").st_uid == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root demands anything")
def test_root_makes_no_state_directory_where_another_account_could_swap_it():
    """The directory above state.dir must be beyond others' reach, as files are."""
    with public_directory() as directory:
        (directory / "mine").mkdir()
        os.chown(directory / "mine", UID, GID)
        settings = directory / "halod.toml"
        settings.write_text(f'[device]\nagent_account = "nobody"\n[state]\ndir = "{directory}/mine/state"\n')
        settings.chmod(0o600)
        with pytest.raises(EnvironmentFault, match="mine is owned by uid"):
            prepare.prepare(str(settings))
        assert not (directory / "mine" / "state").exists()
