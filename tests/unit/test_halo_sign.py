# SPDX-License-Identifier: Apache-2.0
"""`halo keygen` and `halo sign` as a person and a program see them."""

import base64
import io
import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from halod.cli import halo, signing_key
from halod.policy.signed import Seen, read_payload, verify
from tests.support.signing import POLICY


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "halos.yaml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def key(here, capsys):
    assert halo.main(["keygen"]) == 0
    return base64.b64decode(capsys.readouterr().out)


def signed(path="halos.yaml.signed"):
    with open(path, "rb") as file:
        return file.read()


def error(capsys, *words):
    """What `halo` says that is wrong; nothing is on stdout."""
    assert halo.main(list(words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "PRIVATE" not in err
    return err.removeprefix("halo: error: ").rstrip("\n")


# --- keygen -------------------------------------------------------------------------------------------------


def test_keygen_writes_a_private_file_and_prints_the_public_half(here, capsys):
    """44 characters for halod.toml, alone on stdout; the file is PEM and nobody else's."""
    assert halo.main(["keygen", "--out", "my.key"]) == 0
    out, err = capsys.readouterr()
    assert err == "my.key: a private key, mode 0600; its public half is\n"
    assert len(base64.b64decode(out)) == 32
    assert (here / "my.key").stat().st_mode & 0o777 == 0o600
    assert (here / "my.key").read_text().startswith("-----BEGIN PRIVATE KEY-----\n")
    assert halo.main(["keygen", "--public", "my.key"]) == 0
    assert capsys.readouterr().out == out


def test_keys_differ(key, capsys):
    assert halo.main(["keygen", "--out", "other.key"]) == 0
    assert base64.b64decode(capsys.readouterr().out) != key


def test_keygen_never_overwrites(key, here, capsys):
    """Neither a file nor what a link points to."""
    before = (here / "halos.key").read_bytes()
    assert "is there already" in error(capsys, "keygen")
    assert (here / "halos.key").read_bytes() == before
    (here / "link").symlink_to(here / "elsewhere")
    assert "is there already" in error(capsys, "keygen", "--out", "link")
    assert not (here / "elsewhere").exists()
    assert error(capsys, "keygen", "--out", "no/such/x").startswith("cannot write no/such/x: No such file")


# --- sign ---------------------------------------------------------------------------------------------------


def test_a_signed_policy_is_one_line_on_stdout(key, here, capsys):
    """And a file that an agent with the key takes."""
    assert halo.main(["sign", "--key", "halos.key", "--version", "7", "--expires", "2126-06-30"]) == 0
    out, err = capsys.readouterr()
    got = verify(signed(), [key], org="acme", seen=Seen(), now=time.time())
    assert out == (f"halos.yaml.signed: acme, version 7, expires 2126-07-01T00:00:00Z, {got.policy.digest}\n")
    assert err == ""
    assert sorted(os.listdir()) == ["halos.key", "halos.yaml", "halos.yaml.signed"]


def test_without_options_it_is_good_for_90_days_and_newer_than_anything(key):
    """The version is the time, then one more each time."""
    assert halo.main(["sign", "--key", "halos.key"]) == 0
    first = read_payload(signed())
    assert first.expires - first.issued == timedelta(days=90)
    assert first.version == int(first.issued.timestamp())
    assert abs(datetime.now(UTC) - first.issued) < timedelta(minutes=1)
    assert halo.main(["sign", "--key", "halos.key"]) == 0
    assert read_payload(signed()).version == first.version + 1


@pytest.mark.parametrize(
    ("words", "span"), [("12h", timedelta(hours=12)), ("30d", timedelta(days=30)), ("8w", timedelta(weeks=8))]
)
def test_expires_as_a_span(key, words, span):
    assert halo.main(["sign", "--key", "halos.key", "--expires", words]) == 0
    content = read_payload(signed())
    assert content.expires - content.issued == span


def test_expires_as_a_time(key):
    assert halo.main(["sign", "--key", "halos.key", "--expires", "2126-06-30T12:00:00Z"]) == 0
    assert read_payload(signed()).expires == datetime(2126, 6, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "90",
        "d",
        "0d",
        "-1d",
        "99999w1",
        "2126-13-01",
        "2126-02-30",
        "9999-12-31",
        "soon",
        "2126-06-30T12:00:00",
    ],
)
def test_expires_as_anything_else_is_refused(key, words, capsys):
    assert error(capsys, "sign", "--key", "halos.key", f"--expires={words}").startswith(
        "--expires: expected a span"
    )
    assert not os.path.exists("halos.yaml.signed")


def test_an_expiry_that_is_over_is_refused(key, capsys):
    assert error(capsys, "sign", "--key", "halos.key", "--expires", "2026-01-01").startswith(
        "--expires: that time is over"
    )


@pytest.mark.parametrize("words", ["0", "-1", "1.5", "x", "٣", str(2**53), "1" * 400])
def test_a_version_is_a_whole_number(key, words, capsys):
    assert "whole number" in error(capsys, "sign", "--key", "halos.key", f"--version={words}")


def test_versions_only_grow(key, here, capsys):
    """Compared with the file that would be replaced, of the same organisation."""
    assert halo.main(["sign", "--key", "halos.key", "--version", "7"]) == 0
    capsys.readouterr()
    before = signed()
    for number in ("6", "7"):
        said = error(capsys, "sign", "--key", "halos.key", "--version", number)
        assert said.endswith("leave --version out, or use 8")
    assert signed() == before
    (here / "halos.yaml").write_text(POLICY.replace("acme", "other"))
    assert halo.main(["sign", "--key", "halos.key", "--version", "1"]) == 0


def test_a_file_that_is_no_signed_policy_is_not_replaced(key, here, capsys):
    (here / "halos.yaml.signed").write_text("something else")
    assert error(capsys, "sign", "--key", "halos.key").startswith("halos.yaml.signed is there, and is none: ")
    assert (here / "halos.yaml.signed").read_text() == "something else"


def test_keys_are_changed_with_two_signatures(key, capsys):
    """At once, or one after the other by two people."""
    assert halo.main(["keygen", "--out", "new.key"]) == 0
    new = base64.b64decode(capsys.readouterr().out)
    assert halo.main(["sign", "--key", "halos.key", "--key", "new.key", "--out", "both"]) == 0
    assert halo.main(["sign", "--key", "halos.key"]) == 0
    before = read_payload(signed())
    assert halo.main(["sign", "--add", "--key", "new.key", "halos.yaml.signed"]) == 0
    assert read_payload(signed()) == before
    for path in ("both", "halos.yaml.signed"):
        for one in (key, new):
            assert verify(signed(path), [one], org="acme", seen=Seen(), now=time.time())
    capsys.readouterr()
    assert error(capsys, "sign", "--key", "new.key", "--key", "new.key") == "the same key is given twice"
    said = error(capsys, "sign", "--add", "--version", "9", "--key", "new.key", "halos.yaml.signed")
    assert said.startswith("--add leaves the version as it is")
    said = error(capsys, "sign", "--add", "--expires", "9d", "--key", "new.key", "halos.yaml.signed")
    assert said.startswith("--add leaves the expiry as it is")
    assert "no signed policy" in error(capsys, "sign", "--add", "--key", "new.key", "halos.yaml")


def test_a_pipe_goes_in_and_out(key, capsys, monkeypatch):
    """The envelope alone is on stdout, the line on stderr."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(POLICY.encode())))
    assert halo.main(["sign", "--key", "halos.key", "-"]) == 0
    out, err = capsys.readouterr()
    assert verify(out.encode(), [key], org="acme", seen=Seen(), now=time.time()).policy.org == "acme"
    assert err.startswith("signed: acme, version ")


def test_what_is_not_valid_is_not_signed(key, here, capsys):
    """A fault with its place; a policy that is for nobody."""
    (here / "halos.yaml").write_text("org: acme\nmcp: {servers: [{id: x}]}\n")
    assert error(capsys, "sign", "--key", "halos.key").startswith("halos.yaml:2:")
    (here / "halos.yaml").write_text("mcp: {servers: []}\n")
    assert error(capsys, "sign", "--key", "halos.key") == (
        "halos.yaml names no org, and a signed policy is for one organisation; add a line such as org: acme"
    )
    assert error(capsys, "sign", "--key", "halos.key", "none.yaml").startswith(
        "cannot read the policy none.yaml"
    )
    assert not os.path.exists("halos.yaml.signed")


def test_a_policy_that_no_agent_would_fetch_is_not_signed(key, here, capsys):
    (here / "halos.yaml").write_text(POLICY + "# " + "x" * 1_000_000 + "\n")
    assert error(capsys, "sign", "--key", "halos.key").startswith("the signed policy is larger than 1 MiB")


def test_an_output_that_cannot_be_written_is_said(key, here, capsys):
    """Nothing is left beside it."""
    assert error(capsys, "sign", "--key", "halos.key", "--out", "no/x").startswith(
        "cannot write no/x: No such file"
    )
    (here / "folder").mkdir()
    assert "folder" in error(capsys, "sign", "--key", "halos.key", "--out", "folder")
    os.mkfifo(here / "pipe")
    for path in ("pipe", "/dev/null", "halos.yaml", "halos.key"):
        said = error(capsys, "sign", "--key", "halos.key", "--out", path)
        assert said.startswith(f"{path} is there, and is n")
    assert sorted(os.listdir()) == ["folder", "halos.key", "halos.yaml", "pipe"]
    assert (here / "halos.yaml").read_text() == POLICY


# --- keys that cannot be used -------------------------------------------------------------------------------


def pem(key, encryption=None):
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        encryption or serialization.NoEncryption(),
    )


def place(path, data, mode=0o600):
    path.write_bytes(data)
    path.chmod(mode)


def test_a_key_that_others_can_read_is_refused(key, here, capsys):
    os.chmod("halos.key", 0o640)
    assert error(capsys, "sign", "--key", "halos.key") == (
        "others can read the key halos.key; chmod 0600 halos.key"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "holds no Ed25519 private key"),
        (b"CANARY", "holds no Ed25519 private key"),
        (b"-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n", "holds no Ed25519 private key"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "holds no Ed25519 private key"),
        (
            pem(ec.generate_private_key(ec.SECP256R1()), serialization.BestAvailableEncryption(b"x")),
            "is encrypted",
        ),
    ],
    ids=["empty", "text", "broken", "other kind", "encrypted"],
)
def test_a_file_that_is_no_key_is_refused(here, data, words, capsys):
    """Nothing of it is shown."""
    place(here / "bad.key", data)
    said = error(capsys, "sign", "--key", "bad.key")
    assert words in said
    assert "CANARY" not in said


def test_a_key_that_is_no_file_is_refused(here, capsys):
    """Not waited for either."""
    assert error(capsys, "sign", "--key", "none.key").startswith("cannot read the key none.key: No such file")
    os.mkfifo(here / "pipe", 0o600)
    assert error(capsys, "sign", "--key", "pipe").startswith("the key pipe is no regular file")
    (here / "folder").mkdir(mode=0o700)
    assert "folder" in error(capsys, "sign", "--key", "folder")


def test_standard_streams_carry_no_private_key(here, capsys):
    """Neither out nor in, and no file of the name - is made."""
    assert "never to standard output" in error(capsys, "keygen", "--out", "-")
    assert "never from standard input" in error(capsys, "sign", "--key", "-")
    assert "never from standard input" in error(capsys, "keygen", "--public", "-")
    assert sorted(os.listdir()) == ["halos.yaml"]


def test_keys_of_openssl_fit(here):
    """PKCS #8 as `openssl genpkey -algorithm ed25519` writes it; the key is RFC 8032's first example."""
    seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    der = bytes.fromhex("302e020100300506032b657004220420" + seed)
    begin, end = (f"-----{word} PRIVATE KEY-----\n" for word in ("BEGIN", "END"))
    place(here / "a.key", f"{begin}{base64.b64encode(der).decode()}\n{end}".encode())
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert base64.b64decode(signing_key.public_text(signing_key.read("a.key"))) == public
