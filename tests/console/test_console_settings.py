# SPDX-License-Identifier: Apache-2.0
"""halo-server.toml: what is read, and that every fault is told, at once, where it stands, without a secret."""

import contextlib
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.console.settings import check_listen
from halod.console.settings.fields import TABLES
from halod.console.settings.model import Settings
from halod.console.settings.reading import parse, read
from halod.console.settings.secret import private_line
from halod.errors import UsageError

ROOT = Path(__file__).parents[2]
SAMPLE = (ROOT / "packaging" / "halo-server.toml").read_text(encoding="utf-8")
KEY = "EAWfVlDNL2ESvCZ9DnnZc7N0qWzzMVTKkWQyxJ1xmlk="
OIDC = '[oidc]\nissuer = "https://id.acme.example"\nclient_id = "halo"\n'


def faults(text):
    with pytest.raises(UsageError) as told:
        parse(text.encode(), "x.toml", files=False)
    head, *lines = told.value.message.splitlines()
    assert head == "the settings have faults:"
    return lines


def good(text):
    return parse(text.encode(), "x.toml", files=False)


def test_nothing_is_needed():
    assert good("") == Settings(database_url="")


def test_the_sample_with_every_line_uncommented():
    """Every key stands in the sample, with its default or an example that is valid."""
    lines = [re.sub(r"^# (?=\[|[a-z_0-9]+ = )", "", line) for line in SAMPLE.splitlines()]
    text = "\n".join(line for line in lines if not line.startswith(("tls_", "database_url_file")))
    found = good(text)
    assert found.oidc is not None
    assert len(found.webhooks) == 1
    assert found.session_idle == 8 * 3600
    named = set(re.findall(r"^(?:# )?([a-z_0-9]+) = ", SAMPLE, re.MULTILINE))
    assert named == {key for table in TABLES.values() for key in table.fields}


def test_the_sample_as_it_is():
    """It names the database: the unit's account is not root, whose default that would be."""
    assert good(SAMPLE) == Settings(database_url="sqlite:////var/lib/halo-server/console.db")


def test_defaults_in_the_sample_are_the_defaults():
    lines = [re.sub(r"^# ", "", line) for line in SAMPLE.splitlines()]
    table, wrong = "", []
    for line in lines:
        if header := re.fullmatch(r"\[\[?([a-z]+)\]?\]", line):
            table = header[1]
        found = re.fullmatch(r"([a-z_0-9]+) = (\d+)", line)
        if found and table in ("retention", "limits"):
            defaults = {field.name: field.default for field in msgspec.structs.fields(TABLES[table].kind)}
            if defaults[found[1]] != int(found[2]):
                wrong.append(line)
    assert wrong == []


def test_every_setting_has_a_key():
    """What the model has can be said in the file."""
    for name, table in TABLES.items():
        known = set(table.fields) | ({"oidc", "webhooks", "retention", "limits"} if not name else set())
        assert set(table.kind.__struct_fields__) == known, name


def test_the_page_is_current():
    done = subprocess.run(
        [sys.executable, "tools/gen_console_settings_doc.py", "--check"], cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, "run tools/gen_console_settings_doc.py"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("listne = 1", 'x.toml:1: unknown key "listne"; did you mean "listen"?'),
        ("\n[oidcc]", 'x.toml:2: unknown key "oidcc"; did you mean "oidc"?'),
        ("x = 1", 'x.toml:1: unknown key "x"'),
        ("[limits]\nreports = 1", 'x.toml:2: limits: unknown key "reports"'),
        ("oidc = 1", "x.toml:1: oidc: expected a table ([oidc]), got a number"),
        ("webhook = 1", "x.toml:1: webhook: expected tables ([[webhook]]), got a number"),
        ("[webhook]\nname = 'a'", "x.toml:1: webhook: expected tables ([[webhook]]), got a table"),
        ("[[webhook]]\nname = 'a'", "x.toml:1: webhook: needs url"),
        ("listen = 'x'", "x.toml:1: listen: expected an address and a port, such as 127.0.0.1:8640 or [::1]:8640"),
        ("listen = '::1:80'", "x.toml:1: listen: expected an address and a port, such as 127.0.0.1:8640 or [::1]:8640"),
        ("public_url = 'https://a.example/x'", "x.toml:1: public_url: must be without a path, such as https://halo.acme.example"),
        ("public_url = 'http://a.example'", "x.toml:1: public_url: must be https; http is for a loopback host only"),
        ("public_url = 'https://u:CANARY@a.example'", "x.toml:1: public_url: must not carry a user name or password"),
        ("proxies = ['10.0.0.0/8']", "x.toml:1: proxies: needs public_url: how browsers reach the proxy"),
        ("proxies = ['0.0.0.0/0']", "x.toml:1: proxies: member 1: must not be every address: anybody could then say who they are"),
        ("proxies = 'x'", "x.toml:1: proxies: expected a list, got text"),
        ("hosts = ['https://x']", "x.toml:1: hosts: member 1: expected a host name, with a port if it is not the scheme's own; no https:// before it"),
        ("hosts = ['a', 'a']", "x.toml:1: hosts: has a member twice"),
        ("session_idle = '8 parsecs'", 'x.toml:1: session_idle: expected seconds, or text such as "15m", "8h", "30d"'),
        ("session_idle = 5", "x.toml:1: session_idle: must be from 300 to 604800 seconds"),
        ("session_idle = true", 'x.toml:1: session_idle: expected seconds, or text such as "15m", "8h", "30d"'),
        ("session_idle = '2d'\n", "x.toml:1: session_idle: is longer than session_absolute"),
        ("device_token_days = 0", "x.toml:1: device_token_days: must be from 1 to 3650"),
        ("policy_keys = ['CANARY']", "x.toml:1: policy_keys: member 1: expected an Ed25519 public key: 32 bytes in base64, as halo keygen prints it"),
        ("policy_keys = ['-----BEGIN PRIVATE KEY-----']", "x.toml:1: policy_keys: member 1: this is a private key, which must not be here; give the public one"),
        ("tls_key = '/x'", "x.toml:1: tls_key: needs tls_cert, the certificate it belongs to"),
        ("tls_cert = 'x.pem'", 'x.toml:1: tls_cert: must be an absolute path without ".."'),
        ("tls_cert = '-----BEGIN CERTIFICATE-----'", "x.toml:1: tls_cert: expected the path of a file, not the content of one"),
        ("database_url = 'mysql://x'", "x.toml:1: database_url: expected sqlite:////FILE or postgresql://HOST/NAME"),
        ("database_url = 'postgresql://u:CANARY@h/d'", "x.toml:1: database_url: must not hold a password: put the whole address into a file and name it in database_url_file"),
        ("database_url = 'sqlite:////x'\ndatabase_url_file = '/y'", "x.toml:2: database_url_file: database_url is set too; only one of them can be used"),
        ("log_level = 'verbose'", "x.toml:1: log_level: expected one of debug, info, warning, error"),
        ("log_format = 'jsn'", 'x.toml:1: log_format: expected one of auto, json, plain; did you mean "json"?'),
        (OIDC, "x.toml:1: oidc: needs public_url: where the provider sends people back to"),
        ("[oidc]\nclient_secret = 'CANARY'", 'x.toml:2: oidc: unknown key "client_secret"; no secret stands in the settings: put it into a file, mode 0600, and name that; did you mean "client_secret_file"?'),
        ("public_url = 'http://127.0.0.1:1'\ntls_cert = '/x'", "x.toml:1: public_url: is http, but tls_cert makes the console speak https"),
    ],
)  # fmt: skip
def test_faults_are_told_where_they_stand(text, line):
    told = faults(text)
    assert line in told
    assert not any("CANARY" in one for one in told)


def test_all_faults_are_told_at_once_in_the_order_of_the_file():
    told = faults(f"listne = 1\nsession_idle = 1\n{OIDC}scopes = ['email']\n[retention]\naudit = 'x'\n")
    assert [int(line.split(":")[1]) for line in told] == [1, 2, 3, 3, 6, 8]


def test_webhooks_have_names_of_their_own():
    one = '[[webhook]]\nname = "a"\nurl = "https://x.example/"\nsecret_file = "/x"\n'
    assert faults(one * 2) == ["x.toml:6: webhook.name: another webhook has this name"]
    assert [hook.name for hook in good(one + one.replace('"a"', '"b"')).webhooks] == ["a", "b"]
    told = faults(one + one.replace("https", "ftp"))
    assert told == ["x.toml:7: webhook.url: expected an https URL"]


@pytest.mark.parametrize(
    "data", [b"\xff", b"x = ", b"x = 'CANARY", b"[a]\n[a]", b"x = " + b"[" * 5000, b"x = " + b"9" * 5000]
)
def test_what_is_no_toml(data):
    with pytest.raises(UsageError) as told:
        parse(data, "x.toml")
    assert "CANARY" not in told.value.message
    assert told.value.message.startswith("x.toml: ")


def test_files(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read(str(tmp_path / "none.toml"))
    big = tmp_path / "big.toml"
    big.write_bytes(b"#" * 300_000)
    with pytest.raises(UsageError, match="larger than"):
        read(str(big))
    with pytest.raises(UsageError, match="Is a directory"):
        read(str(tmp_path))


def test_files_that_are_named_are_looked_at(tmp_path):
    secret, key = tmp_path / "secret", tmp_path / "key"
    for file in (secret, key):
        file.write_text("CANARY\n")
        file.chmod(0o644)
    text = f'public_url = "https://halo.acme.example"\ntls_cert = "{tmp_path}/none"\ntls_key = "{key}"\n'
    text += f'{OIDC}client_secret_file = "{secret}"\nviewer_groups = ["x"]\n'
    with pytest.raises(UsageError) as told:
        parse(text.encode(), "x.toml")
    message = told.value.message
    assert "x.toml:2: tls_cert: cannot be read: No such file or directory" in message
    assert f"x.toml:3: tls_key: can be read by every account; chmod 600 {key}" in message
    assert "x.toml:7: oidc.client_secret_file: the file" in message
    assert "CANARY" not in message
    (tmp_path / "none").write_text("x")
    for file in (secret, key):
        file.chmod(0o600)
    assert parse(text.encode(), "x.toml").oidc.client_id == "halo"


@pytest.mark.parametrize(
    ("content", "mode", "word"),
    [
        (b"", 0o600, "one line"),
        (b"\n \n", 0o600, "one line"),
        (b"a\nb", 0o600, "one line"),
        (b"a" * 5000, 0o600, "one line"),
        (b"\xff\xfe", 0o600, "one line"),
        (b"a\x00b", 0o600, "one line"),
        (b"a secret", 0o604, "open to other accounts"),
        (b"a secret", 0o660, "open to other accounts"),
    ],
)
def test_files_with_secrets(tmp_path, content, mode, word):
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(UsageError, match=word) as told:
        private_line(str(file), "the file")
    assert "a secret" not in told.value.message + told.value.advice


def test_a_secret_of_its_group_is_read(tmp_path):
    """As Kubernetes and systemd's LoadCredential mount them."""
    file = tmp_path / "secret"
    file.write_text("  a secret\n")
    file.chmod(0o440)
    assert private_line(str(file), "the file") == "a secret"
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    with pytest.raises(UsageError, match="no regular file"):
        private_line(str(tmp_path / "pipe"), "the file")


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"listen": "0.0.0.0:8640"}, "without TLS"),
        ({"listen": "[::]:8640"}, "without TLS"),
        ({"listen": "192.0.2.1:8640"}, "without TLS"),
        ({"listen": "[::ffff:192.0.2.1]:8640"}, "without TLS"),
        ({"listen": "0.0.0.0:8640", "tls_cert": "/x"}, "needs public_url"),
        ({"listen": "halo.acme.example:8640"}, "no address"),
        ({"listen": "127.0.0.1"}, "no address"),
        ({"listen": "127.0.0.1:99999"}, "no address"),
        ({"listen": ":8640"}, "no address"),
    ],
)
def test_where_it_does_not_listen(values, word):
    with pytest.raises(UsageError, match=word):
        check_listen(Settings(database_url="", **values))


@pytest.mark.parametrize(
    "values",
    [
        {"listen": "127.0.0.1:8640"},
        {"listen": "127.8.9.1:0"},
        {"listen": "[::1]:8640"},
        {"listen": "localhost:8640"},
        {"listen": "192.0.2.1:8640", "tls_cert": "/x"},
        {"listen": "0.0.0.0:8640", "tls_cert": "/x", "public_url": "https://a.example"},
        {"listen": "0.0.0.0:8640", "proxies": ("10.0.0.0/8",), "public_url": "https://a.example"},
    ],
)
def test_where_it_listens(values):
    check_listen(Settings(database_url="", **values))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = sorted(
    {key for table in TABLES.values() for key in table.fields}
    | {"oidc", "webhook", "limits", "retention", "x"}
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_whatever_stands_there_is_settings_or_a_fault(document):
    from halod.console.settings.reading import _Reader

    reader = _Reader("x.toml", "", files=False)
    found = reader.settings(document)
    assert isinstance(found, Settings)
    if not reader.faults:
        assert set(document) <= set(KEYS)


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_whatever_text_is_settings_or_an_error_of_ours(text):
    with contextlib.suppress(UsageError):
        assert isinstance(parse(text.encode("utf-8", "surrogatepass"), "x.toml", files=False), Settings)
