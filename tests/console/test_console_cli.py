# SPDX-License-Identifier: Apache-2.0
"""The commands of halo-server: what they do, how they refuse, and that no traceback and no secret is printed."""

import os
import re
import secrets

import pytest
from sqlalchemy import make_url, select, text

from halod.console import cli
from halod.console.access import Role
from halod.console.cli import common
from halod.console.clock import SystemClock
from halod.console.security import login, tokens
from halod.console.store.engine import Store
from halod.console.store.schema import AUDIT, ENROLL_KEYS, TOKENS

CANARY = "CANARY-password-of-a-database"


@pytest.fixture
def data(tmp_path, capsys):
    """A data directory with a migrated database."""
    directory = tmp_path / "data"
    assert cli.main(["migrate", "--data-dir", str(directory)]) == 0
    capsys.readouterr()
    return directory


@pytest.fixture
def halo(data, capsys):
    """Run a command on it; gives its exit code, stdout and stderr."""

    def run(*words, where=("--data-dir", str(data))):
        code = cli.main([*words, *where])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


@pytest.fixture
def store(data):
    opened = Store.open(f"sqlite:///{data}/console.db")
    yield opened
    opened.close()


def lines_of(store):
    with store.read() as c:
        return [dict(row) for row in c.execute(select(AUDIT)).mappings()]


# --- tokens and keys ---------------------------------------------------------------------------------------


def test_a_token_is_printed_once_and_works(halo, store):
    code, out, err = halo("token", "create", "--name", "prometheus", "--role", "viewer", "--days", "7")
    assert (code, err) == (0, "")
    text = out.strip()
    assert re.fullmatch(r"hla_[A-Za-z0-9_-]{43}", text)
    with store.read() as c:
        actor = tokens.find_api(c, text, SystemClock().now())
        kept = repr(c.execute(select(TOKENS)).all())
    assert (actor.name, actor.role) == ("prometheus", Role.VIEWER)
    assert text not in kept + repr(lines_of(store))
    line = lines_of(store)[-1]
    assert (line["action"], line["target"], line["actor_kind"]) == ("token.create", "prometheus", "command")
    assert line["actor"].endswith("(command line)")
    code, out, _ = halo("token", "list")
    assert re.search(r"^1 +api +valid +prometheus +viewer", out, re.MULTILINE)
    assert text not in out
    assert halo("token", "revoke", "1")[:2] == (0, "1 revoked\n")
    assert halo("token", "revoke", "1")[0] == 1
    assert "revoked" in halo("token", "list", "--kind", "api")[1]
    assert [line["action"] for line in lines_of(store)] == ["token.create", "token.revoke"]
    with store.read() as c:
        assert tokens.find_api(c, text, SystemClock().now()) is None


def test_all_tokens_of_a_device_are_revoked_at_once(halo, store):
    now = SystemClock().now()
    with store.write() as c:
        for device in ("d1", "d1", "d2"):
            tokens.issue_device(c, device=device, install_id="i", now=now, days=30, by="test")
    assert halo("token", "revoke", "--device", "d1")[:2] == (0, "2 revoked\n")
    assert halo("token", "revoke", "--device", "d1")[0] == 1
    out = halo("token", "list", "--device", "d2")[1]
    assert re.search(r"^3 +device +valid +d2", out, re.MULTILINE)
    assert "d1" not in out


def test_lists_are_whole(halo, store):
    now = SystemClock().now()
    with store.write() as c:
        for number in range(450):
            tokens.issue_api(c, name=f"n{number}", role=Role.VIEWER, now=now, days=1, by="test")
            tokens.new_enroll_key(c, name=f"k{number}", now=now, days=1, by="test")
    assert len(halo("token", "list")[1].splitlines()) == 451
    assert len(halo("enroll-key", "list")[1].splitlines()) == 451


def test_enrolment_keys(halo, store):
    words = ("--name", "laptops", "--ring", "ring1", "--unit", "b", "--unit", "a", "--uses", "5")
    code, out, _ = halo("enroll-key", "create", *words)
    assert code == 0
    with store.read() as c:
        key = tokens.find_enroll_key(c, out.strip(), SystemClock().now())
        kept = repr(c.execute(select(ENROLL_KEYS)).all())
    assert (key.ring, key.units, key.max_uses) == ("ring1", ("a", "b"), 5)
    assert out.strip() not in kept + repr(lines_of(store))
    assert re.search(r"^1 +valid +laptops +ring1 +a,b +0/5", halo("enroll-key", "list")[1], re.MULTILINE)
    assert halo("enroll-key", "revoke", "1")[:2] == (0, "1 revoked\n")
    assert halo("enroll-key", "revoke", "1")[0] == 1
    assert halo("enroll-key", "revoke", "7")[0] == 1
    assert [line["action"] for line in lines_of(store)] == ["enroll-key.create", "enroll-key.revoke"]


def test_empty_lists_say_so(halo):
    assert halo("token", "list")[1] == "there are no tokens\n"
    assert halo("enroll-key", "list")[1] == "there are no enrolment keys\n"


def test_what_a_database_holds_cannot_drive_a_terminal(halo, store):
    with store.write() as c:
        token = tokens.issue_api(c, name="x", role=Role.VIEWER, now=SystemClock().now(), days=1, by="y")
        c.execute(TOKENS.update().values(name="\x1b[31m\u202eevil\n2  api", created_by="\x07"))
    out = halo("token", "list")[1]
    assert token
    assert not set("\x1b\u202e\x07") & set(out)
    assert len(out.splitlines()) == 2


# --- links -------------------------------------------------------------------------------------------------


def test_a_link_of_the_command_signs_in(halo, store):
    from halod.console.cli.place import note_address

    with store.write() as c:
        note_address(c, "http://127.0.0.1:4711")
    code, out, _ = halo("login-link")
    assert code == 0
    base, _, token = out.strip().partition("/login?link=")
    assert base == "http://127.0.0.1:4711"
    with store.write() as c:
        assert login.use_link(c, token, now=SystemClock().now())
    assert [line["action"] for line in lines_of(store)] == ["login-link.create"]
    assert token not in repr(lines_of(store))


# --- how it refuses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serv"], 'there is no such command; did you mean "serve"?'),
        (["token"], "the following arguments are required: ACTION"),
        (["token", "create"], "the following arguments are required: --name, --role"),
        (["token", "create", "--name", "x", "--role", "root"], "invalid choice"),
        (["token", "create", "--name", "a\nb", "--role", "admin"], "expected one line"),
        (["token", "create", "--name", "x", "--role", "admin", "--days", "0"], "from 1 to 3650"),
        (["token", "revoke", "x"], "expected the number that list shows"),
        (["token", "revoke"], "required"),
        (["enroll-key", "create", "--name", "x", "--uses", "-1"], "expected"),
        (["serve", "--no-such", "CANARY"], "unknown option --no-such"),
        (["serve", "CANARY"], "too many arguments"),
        (["migrate", "--data-dir", "a", "--database-url", "CANARY"], "not allowed with"),
        (["migrate", "--database-url", "mysql://u:CANARY@h/d"], "SQLite or PostgreSQL"),
        (["migrate", "--database-url", "CANARY"], "not one"),
        (["serve", "--config", "/no/such/file"], "cannot read the settings"),
        (["migrate", "--database-url-file", "/no/such/file"], "No such file"),
        (["--nonsense"], "unknown option"),
    ],
)
def test_wrong_usage_is_one_clear_line(capsys, words, said):
    assert cli.main(words) == 2
    err = capsys.readouterr().err
    lines = [line for line in err.splitlines() if "warning" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("halo-server: error: ")
    assert said in lines[0]
    assert "CANARY" not in err


def test_help(capsys):
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert command in out
        assert cli.main([command, "--help"]) == 0
        assert "usage: halo-server " + command in capsys.readouterr().out
    assert cli.main(["--version"]) == 0


def test_a_command_on_nothing_makes_nothing(tmp_path, capsys):
    assert cli.main(["token", "list", "--data-dir", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir(0o700)
    assert cli.main(["token", "list", "--data-dir", str(tmp_path / "empty")]) == 2
    assert os.listdir(tmp_path / "empty") == []
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_password_in_the_arguments_is_warned_about_and_not_repeated(capsys):
    assert cli.main(["token", "list", "--database-url", "postgresql://u:CANARY@127.0.0.1:1/d"]) == 2
    err = capsys.readouterr().err
    assert "can be seen by every account" in err
    assert "CANARY" not in err


# --- where the database is -----------------------------------------------------------------------------------


def args_of(**given):
    import argparse

    given = {"config": None, "data_dir": None, "database_url": None, "database_url_file": None, **given}
    return argparse.Namespace(**given)


def test_the_order_of_places(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid)
    file = tmp_path / "url"
    file.write_text("postgresql://from-the-file/x\n")
    file.chmod(0o600)
    config = tmp_path / "c.toml"
    config.write_text('database_url = "postgresql://from-settings/x"\n')

    def place(**given):
        return common.settings_of(args_of(**given), make=False).database_url

    (tmp_path / "d").mkdir(0o700)
    monkeypatch.setenv(common.VARIABLE, "postgresql://from-the-variable/x")
    assert place(database_url="postgresql://from-the-option/x").startswith("postgresql://from-the-option")
    assert place(database_url_file=str(file)) == "postgresql://from-the-file/x"
    assert place(data_dir=str(tmp_path / "d")) == f"sqlite:///{tmp_path}/d/console.db"
    assert place(config=str(config)) == "postgresql://from-the-variable/x"
    monkeypatch.delenv(common.VARIABLE)
    assert place(config=str(config)) == "postgresql://from-settings/x"
    config.write_text(f'database_url_file = "{file}"\n')
    assert place(config=str(config)) == "postgresql://from-the-file/x"


def test_a_data_directory_is_this_accounts_own(tmp_path, capsys):
    made = tmp_path / "a" / "b"
    assert cli.main(["migrate", "--data-dir", str(made)]) == 0
    assert made.stat().st_mode & 0o777 == 0o700
    made.chmod(0o755)
    assert cli.main(["migrate", "--data-dir", str(made)]) == 0
    assert made.stat().st_mode & 0o777 == 0o700
    made.chmod(0o777)
    capsys.readouterr()
    assert cli.main(["migrate", "--data-dir", str(made)]) == 2
    assert f"chmod 700 {made}" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    assert cli.main(["migrate", "--data-dir", str(tmp_path / "file")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- what is missing ---------------------------------------------------------------------------------------


def test_without_the_libraries_of_the_console_it_says_what_to_install(monkeypatch, capsys):
    """The environment of an endpoint has the command, but not what it needs."""
    monkeypatch.setattr(
        cli.importlib,
        "import_module",
        lambda _: (_ for _ in ()).throw(ModuleNotFoundError(name="sqlalchemy.exc")),
    )
    assert cli.main(["token", "list"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "install halod[console]" in line


def test_a_missing_module_of_our_own_is_a_fault(monkeypatch, capsys):
    monkeypatch.setattr(
        cli.importlib,
        "import_module",
        lambda _: (_ for _ in ()).throw(ModuleNotFoundError(name="halod.gone")),
    )
    assert cli.main(["token", "list"]) == 70
    assert "a fault inside halo-server (ModuleNotFoundError)" in capsys.readouterr().err


def test_a_secret_for_a_webhook_needs_no_database(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(common, "_own_dir", lambda: str(tmp_path / "nowhere"))
    assert cli.main(["webhooks", "secret"]) == 0
    said = capsys.readouterr()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=\n", said.out)
    assert said.err == ""


def test_a_directory_that_is_not_there_is_named_with_what_to_do(capsys, tmp_path):
    assert cli.main(["token", "list", "--data-dir", str(tmp_path / "nowhere")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("No such file or directory; name the database with --data-dir or --config")


# --- what the database refuses -----------------------------------------------------------------------------


def test_postgresql_says_why_it_cannot_be_opened(empty_postgres, capsys, tmp_path):
    url = make_url(empty_postgres)
    cases = {
        url.set(database="no_such_database"): "the server has no such database or account",
        url.set(username="no_such_account"): "the server",
        make_url("postgresql://halo@127.0.0.1:1/halo"): "nobody answers at its address",
        make_url(f"postgresql://halo@/halo?host={tmp_path}"): "there is no server at that socket",
    }
    for wrong, words in cases.items():
        text = wrong.set(password=CANARY).render_as_string(hide_password=False)
        monkey = tmp_path / "url"
        monkey.write_text(text)
        monkey.chmod(0o600)
        assert cli.main(["token", "list", "--database-url-file", str(monkey)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"halo-server: error: the database cannot be opened: {words}")
        assert CANARY not in line


def test_a_file_that_is_no_database_is_called_that(capsys, tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "console.db").write_text("not a database, but long enough to have a header\n" * 9)
    assert cli.main(["token", "list", "--data-dir", str(data)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "halo-server: error: the database cannot be opened: the file is no SQLite database"


def test_tables_of_another_account_are_no_fault_of_ours(postgres_url, capsys, tmp_path):
    """What a restore by an administrator leaves, when it did not take the console's account."""
    account = f"halo_{secrets.token_hex(4)}"
    store = Store.open(postgres_url)
    file = tmp_path / "url"
    file.touch(mode=0o600)
    try:
        with store.write() as c:
            c.execute(text(f"CREATE ROLE {account} LOGIN PASSWORD '{CANARY}'"))
        file.write_text(
            make_url(postgres_url)
            .set(username=account, password=CANARY)
            .render_as_string(hide_password=False)
        )
        for words in (["token", "list"], ["migrate"]):
            assert cli.main([*words, "--database-url-file", str(file)]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert "its account lacks a right there; every table has to be its own" in line
    finally:
        with store.write() as c:
            c.execute(text(f"DROP ROLE IF EXISTS {account}"))
        store.close()
