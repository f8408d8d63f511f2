# SPDX-License-Identifier: Apache-2.0
"""Whose words the settings of `halo mcp token` are: whoever names the issuer says where people sign in."""

import os

import pytest

from halod.errors import UsageError
from halod.token.settings import load
from tests.support.roles import UID, in_child, public_directory

GOOD = '[auth]\nissuer = "https://login.acme.example"\nclient_id = "halo"\nca_file = "ca.pem"\n'
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def place():
    """A directory like that of the system's settings, with a certificate file."""
    with public_directory() as made:
        for name, text in (("ca.pem", ""), ("halo.toml", GOOD)):
            (made / name).write_text(text, encoding="utf-8")
            (made / name).chmod(0o644)
        yield made


@pytest.mark.skipif(not IS_ROOT, reason="needs root to make files that root alone can write")
def test_what_root_alone_can_write_counts(place):
    assert load(system=str(place / "halo.toml")).ca_file == str(place / "ca.pem")


@pytest.mark.parametrize("name", ["halo.toml", "ca.pem", "."])
def test_what_others_can_write_does_not_count_for_the_system(place, name):
    """The file, the certificates that it names, and the directory in which either could be replaced."""
    (place / name).chmod(0o777)
    with pytest.raises(UsageError, match="the settings are not to be believed"):
        load(system=str(place / "halo.toml"))


def test_a_file_that_another_account_could_put_in_place_is_not_believed(place):
    """Nothing is there yet, and whoever makes it first decides."""
    place.chmod(0o1777)
    with pytest.raises(UsageError, match="not to be believed"):
        load(system=str(place / "absent" / "halo.toml"))


@pytest.mark.skipif(not IS_ROOT, reason="needs root to become another account")
def test_a_file_that_is_named_is_the_callers_affair_unless_that_is_root(place):
    (place / "halo.toml").chmod(0o666)
    with pytest.raises(UsageError, match="not to be believed"):
        load(str(place / "halo.toml"))

    def as_another():
        os.setuid(UID)
        return load(str(place / "halo.toml")).client_id

    assert in_child(as_another) == "halo"
