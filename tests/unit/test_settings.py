# SPDX-License-Identifier: Apache-2.0
"""halod.toml: what is accepted, and every fault with its line, all at once."""

import contextlib
import os
import plistlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.errors import UsageError
from halod.harnesses.table import LOCATIONS
from halod.settings import ExtraLocation, SettingsError, load, parse
from halod.settings.fields import Reader
from halod.settings.locations import FORMATS, location
from halod.settings.model import TABLES
from halod.settings.reading import _TYPES, MAX_BYTES, _check_together, _merge, build
from halod.settings.values import Source

KEY = "EAWfVlDNL2ESvCZ9DnnZc7N0qWzzMVTKkWQyxJ1xmlk="
FULL = f"""
[device]
ring = "ring1-canary"
units = ["payments", "engineering"]
accounts = ["dev", "ops"]
agent_account = "halo-agent"
[policy]
url = "https://halos.acme.example/policy"
public_keys = ["{KEY}"]
[report]
url = "http://127.0.0.1:8080/api/v1/fleet/report"
token_file = "/etc/halod/token"
ca_file = "/etc/halod/ca.pem"
client_cert = "/etc/halod/./client.pem"
client_key = "/etc/halod/client.key"
transitions = false
[scan]
interval = "15m"
watch = false
max_file_bytes = "64 MiB"
link_roots = ["~", "/nix/store/"]
exclude_accounts = ["kiosk"]
[[scan.extra_locations]]
harness = "claude-code"
path = "~/work/claude/.claude.json"
[[scan.extra_locations]]
harness = "cursor"
path = "~/profiles/**/mcp*.json"
format = "jsonc"
tables = ["/mcpServers", "/projects/*/mcpServers", "/x[]", "/[]", "/x/[]/y", "/"]
[log]
level = "warning"
format = "json"
[state]
dir = "/srv/halod"
"""


def faults(text, **more) -> list[str]:
    """Give the faults of a text as `line: message`."""
    with pytest.raises(SettingsError) as raised:
        parse(text.encode() if isinstance(text, str) else text, "/etc/halod/halod.toml", **more)
    return [line.removeprefix("/etc/halod/halod.toml:") for line in raised.value.lines()]


def test_every_key_is_read():
    got = parse(FULL.encode(), "/etc/halod/halod.toml", platform="linux")
    assert got.device.ring == "ring1-canary"
    assert got.device.units == ("payments", "engineering")
    assert got.device.accounts == ("dev", "ops")
    assert got.device.agent_account == "halo-agent"
    assert (got.policy.path, got.policy.public_keys) == ("", (KEY,))
    assert got.report.url == "http://127.0.0.1:8080/api/v1/fleet/report"
    assert got.report.client_cert == "/etc/halod/client.pem"
    assert not got.report.transitions
    assert (got.scan.interval, got.scan.watch) == (900, False)
    assert got.scan.max_file_bytes == 64 * 1024 * 1024
    assert got.scan.link_roots == ("~", "/nix/store")
    assert got.scan.extra_locations[0] == ExtraLocation(
        harness="claude-code", path="~/work/claude/.claude.json"
    )
    assert got.scan.extra_locations[1].tables[1] == "/projects/*/mcpServers"
    assert (got.log.level, got.log.format) == ("warning", "json")
    assert (got.state.dir, got.run_dir) == ("/srv/halod", "/srv/halod/run")
    assert got.sources == ("/etc/halod/halod.toml",)


@pytest.mark.parametrize(
    ("platform", "account", "state", "run"),
    [
        ("linux", "halod", "/var/lib/halod", "/run/halod"),
        (
            "darwin",
            "_halod",
            "/Library/Application Support/halod/state",
            "/Library/Application Support/halod/run",
        ),
    ],
)
def test_an_empty_file_gives_the_defaults_of_the_system(platform, account, state, run):
    got = parse(b"\xef\xbb\xbf", "/x", platform=platform)
    assert (got.device.accounts, got.device.agent_account) == ("console", account)
    assert (got.scan.interval, got.scan.watch, got.scan.max_file_bytes) == (900, True, 128 * 1024 * 1024)
    assert (got.report.url, got.report.transitions) == ("", True)
    assert (got.log.level, got.log.format) == ("info", "auto")
    assert (got.state.dir, got.run_dir) == (state, run)


def test_every_fault_is_told_at_once_with_its_line():
    text = (
        "[device]\nacounts = 'all'\nring = 3\n[polcy]\n[policy]\npath = '/p'\nurl = 'https://x.example/'\n"
        "[scan]\n'interval' = 59\n"
    )
    assert faults(text) == [
        '2: device: unknown key "acounts"; did you mean "accounts"?',
        "3: device.ring: expected text, got a number",
        '4: unknown table "polcy"; did you mean "policy"?',
        "7: policy.url: needs policy.public_keys: a fetched policy counts only when it is signed",
        "7: policy.url: policy.path is set too; only one of them can be used",
        "9: scan.interval: must be from 60 seconds to one day (86400 seconds)",
    ]


def test_the_error_is_one_line_that_says_how_many_more_there_are():
    with pytest.raises(SettingsError) as raised:
        parse(b"a = 1\nb = 2\n", "/x")
    assert isinstance(raised.value, UsageError)
    assert (
        raised.value.message
        == '/x:1: unknown key "a"; every key stands in a table; there are device, policy, report, scan, log, state (and 1 more)'
    )
    assert raised.value.advice
    assert (raised.value.exit_code, raised.value.code) == (2, "settings")
    with pytest.raises(SettingsError) as one:
        parse(b"[zzzzz]", "/x")
    assert one.value.message == (
        '/x:1: unknown table "zzzzz"; there are device, policy, report, scan, log, state'
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("device.ring = ''", "must not be empty"),
        ("device.ring = ' a'", "blank"),
        ("device.ring = 'a\u202eb'", "control"),
        ("device.ring = '" + "a" * 65 + "'", "longer than 64"),
        ("device.units = 'a'", "expected a list of names, got text"),
        ("device.units = ['a', 'a']", '"a" is listed twice'),
        ("device.units = ['a', true]", "expected text, got true or false"),
        ("device.accounts = 'consol'", 'did you mean "console"?'),
        ("device.accounts = 1.5", "got a number with a fraction"),
        ("device.accounts = []", "the list is empty"),
        ("device.agent_account = 'root'", "must not be root"),
        ("device.agent_account = 'a:b'", "expected the name of an account"),
        ("device = 1", "expected a table ([device]), got a number"),
        ("[[device]]", "expected a table ([device]), got a list"),
        ("policy.path = 'halos.yaml'", "must be an absolute path"),
        ("policy.path = '~/halos.yaml'", "is not expanded"),
        ("policy.path = '/etc/../halos.yaml'", 'must not hold ".."'),
        ("policy.path = {}", "expected text, got a table"),
        ("policy.public_keys = ['abc']", "32 bytes in base64"),
        ("policy.public_keys = ['-----BEGIN PRIVATE KEY-----']", "this is a private key"),
        (f"policy.public_keys = ['{'A' * 43}=']", "anybody could sign for this key"),
        ("policy.public_keys = [1]", "expected text"),
        ("report.url = 'http://halos.acme.example/'", "must be https; http is for a loopback host only"),
        ("report.url = 'ftp://halos.acme.example/'", "expected an https URL"),
        ("report.url = 'wss://halos.acme.example/'", "expected an https URL"),
        ("report.url = 'halos.acme.example'", "expected an https URL"),
        ("report.url = 'https://halos.acme.example/#x'", "fragment"),
        ("report.token_file = '/t'", "needs report.url"),
        ("report.enroll_key_file = '/t'", "needs report.url"),
        ("report.client_key = '/t'", "needs report.client_cert"),
        ("report.transitions = 'yes'", "expected true or false, got text"),
        ("scan.interval = true", 'expected seconds, or text such as "15m", got true or false'),
        ("scan.interval = '15 minutes'", "expected seconds"),
        ("scan.interval = 86401", "one day"),
        ("scan.interval = '25h'", "one day"),
        ("scan.max_file_bytes = 1", "must be from 64 KiB to 256 MiB"),
        ("scan.max_file_bytes = '1 GiB'", "expected bytes"),
        ("scan.max_file_bytes = '257 MiB'", "256 MiB"),
        ("scan.link_roots = ['nix/store']", 'expected "~" or an absolute directory'),
        ("scan.link_roots = ['/']", "must not be /"),
        ("scan.link_roots = ['//.']", "must not be /"),
        ("scan.link_roots = ['/a/../b']", "absolute directory"),
        ("scan.link_roots = [2]", "expected text"),
        ("scan.extra_locations = {}", "expected a list of tables"),
        ("scan.extra_locations = ['x']", "expected a table with harness and path, got text"),
        ("log.level = 'warn'", 'did you mean "warning"?'),
        ("log.level = 3", 'expected one of "debug", "info", "warning", "error"; got a number'),
        ("log.format = 1979-05-27", "got a date or other value"),
        ("device.units = [" + "'a'," * 1001 + "]", "more than 1000 members"),
    ],
)
def test_a_wrong_value_is_told(line, words):
    (fault,) = faults(line)
    assert fault.startswith("1: ")
    assert words in fault


def test_both_a_token_and_an_enrolment_key_are_one_too_many():
    text = "[report]\nurl = 'https://x.example/r'\ntoken_file = '/t'\nenroll_key_file = '/k'\n"
    assert faults(text) == [
        "4: report.enroll_key_file: report.token_file is set too; only one of them can be used"
    ]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("harness = 'claude-cod'\npath = '~/x'", 'no harness "claude-cod"; did you mean "claude-code"?'),
        ("harness = 'zzz'\npath = '~/x'", "halod harnesses lists the ids"),
        ("harness = ''\npath = '~/x'", "must not be empty"),
        ("path = '~/x'", "harness is missing"),
        ("harness = 'cursor'", "path is missing"),
        ("harness = 'cursor'\npath = '/home/x'", "a path from the home on"),
        ("harness = 'cursor'\npath = '~'", "a path from the home on"),
        ("harness = 'cursor'\npath = '~/../x'", "must not hold an empty component"),
        ("harness = 'cursor'\npath = '~/{a,b}'", "only * and **"),
        ("harness = 'cursor'\npath = '~/a**/b'", "** stands for directories"),
        ("harness = 'cursor'\npath = '~/a/**'", "** stands for directories"),
        ("harness = 'cursor'\npath = 1", "expected text"),
        ("harness = 'cursor'\npath = '~/x'\nformat = 'jso'", 'did you mean "json"?'),
        ("harness = 'cursor'\npath = '~/x'\ntables = ['mcp']", "expected a table such as"),
        ("harness = 'cursor'\npath = '~/x'\ntabels = ['/mcp']", 'did you mean "tables"?'),
    ],
)
def test_a_wrong_additional_location_is_told_where_it_stands(entry, words):
    (fault,) = faults(
        "\n[[scan.extra_locations]]\nharness = 'codex'\npath = '~/y'\n[[scan.extra_locations]]\n" + entry
    )
    assert 5 <= int(fault.partition(":")[0]) <= 8
    assert fault.partition(": ")[2].startswith("scan.extra_locations")
    assert words in fault


def test_an_additional_location_is_read_like_the_first_one_of_its_harness():
    first = next(item for item in LOCATIONS if item.harness == "codex")
    plain = location(ExtraLocation(harness="codex", path="~/elsewhere/config.toml"))
    assert (plain.format, plain.tables, plain.dialect) == (first.format, first.tables, first.dialect)
    assert (plain.path, plain.folder, plain.place.path) == (
        "~/elsewhere/config.toml",
        "elsewhere",
        plain.path,
    )
    own = location(ExtraLocation(harness="codex", path="~/c.json", format="json", tables=("/s",)))
    assert (own.format, own.tables, own.place.tables, own.place.format) == ("json", ("/s",), ("/s",), "json")


def test_every_format_has_a_decoder():
    from halod.harnesses.formats import decode

    for form in FORMATS:
        assert decode(form, b"", ("/mcpServers",)) == {}


@pytest.mark.parametrize("key", ["token", "Token", "auth_token", "enroll_key", "password", "client_secret"])
@pytest.mark.parametrize("source", ["file", "preferences"])
def test_a_secret_in_the_settings_is_refused_and_not_repeated(key, source):
    canary = "CANARY-secret"
    file = ("/x", f"[report]\n{key} = '{canary}'".encode()) if source == "file" else None
    preferences = None if file else ("/p", plistlib.dumps({"report": {key: canary}}))
    with pytest.raises(SettingsError) as raised:
        build(file, preferences, Reader(platform="darwin", root=True))
    (line,) = raised.value.lines()
    assert "no secret stands in the settings" in line
    assert "_file" in line
    assert canary not in line


@pytest.mark.parametrize(
    "text",
    [
        "report.url = 'https://dev:CANARY@halos.acme.example/'",
        "report.url = 'https://CANARY@halos.acme.example/?a=@'",
        "report.url = 'https://halos.acme.example/ CANARY'",
        "report.token_file = 'CANARY'\nreport.url = 'https://x.example/'",
        "policy.public_keys = ['CANARY']",
        "report.token_file = '''-----BEGIN PRIVATE KEY-----\nCANARY'''",
        "policy.path = '-----BEGIN PRIVATE KEY----- CANARY'",
        "device.ring = 'CANARY' x",
        "report.token_file = CANARY",
        "scan.interval = 'CANARY'",
        "log.level = 'CANARY'",
    ],
)
def test_a_value_is_not_quoted(text):
    assert not any("CANARY" in fault for fault in faults(text))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[device]\nring = \n", "2: is no valid TOML: "),
        (b"[device]\nring = 'a'\nring = 'b'\n", "no valid TOML"),
        (b"[device]\r\n[device]\r\n", "2: is no valid TOML"),
        (b"a = 1\nb = '\xff'\n", "2: is not UTF-8"),
        (b"#" * (MAX_BYTES + 1), "1: larger than 256 KiB"),
        (b"a = " + b"[" * 20_000, "nested too deeply"),
        (b"a = " + b"9" * 5_000, "number without end"),
    ],
)
def test_what_is_no_toml_is_told(data, words):
    (fault,) = faults(data)
    assert words in fault


def test_a_relative_path_begins_at_the_file_unless_root_reads_it():
    text = b"policy.path = './halos.yaml'\n"
    got = parse(text, "/srv/etc/halod.toml", root=False)
    assert got.policy.path == "/srv/etc/halos.yaml"
    with pytest.raises(SettingsError):
        parse(text, "/srv/etc/halod.toml", root=True)
    with pytest.raises(SettingsError):
        parse(text, "halod.toml", root=False)


def test_the_files_that_count_are_named():
    got = parse(FULL.encode(), "/etc/halod/halod.toml")
    assert got.trusted_files() == [
        "/etc/halod/halod.toml",
        "/etc/halod/token",
        "/etc/halod/ca.pem",
        "/etc/halod/client.pem",
        "/etc/halod/client.key",
        "/srv",
    ]
    assert got.secret_files() == [
        ("report.token_file", "/etc/halod/token"),
        ("report.client_key", "/etc/halod/client.key"),
    ]


# --- managed preferences -----------------------------------------------------------------------------------


def merged(file, preferences, form=plistlib.FMT_XML):
    return build(
        ("/halod.toml", file.encode()) if file is not None else None,
        ("/dev.halos.halod.plist", plistlib.dumps(preferences, fmt=form)),
        Reader(platform="darwin", root=True),
    )


@pytest.mark.parametrize("form", [plistlib.FMT_XML, plistlib.FMT_BINARY])
def test_managed_preferences_go_before_the_file_key_by_key(form):
    got = merged(
        "[device]\nring = 'a'\nunits = ['x']\n[scan]\nwatch = false\n",
        {"device": {"ring": "b"}, "scan": {"interval": 600}, "PayloadUUID": "1"},
        form,
    )
    assert (got.device.ring, got.device.units) == ("b", ("x",))
    assert (got.scan.interval, got.scan.watch) == (600, False)
    assert got.sources == ("/halod.toml", "/dev.halos.halod.plist")


def test_managed_preferences_suffice():
    assert merged(None, {"device": {"ring": "b"}}).sources == ("/dev.halos.halod.plist",)


def test_a_managed_one_of_a_pair_replaces_the_other():
    got = merged("policy.path = '/p'", {"policy": {"url": "https://x.example/p", "public_keys": [KEY]}})
    assert (got.policy.path, got.policy.url) == ("", "https://x.example/p")


def test_faults_of_both_are_told():
    with pytest.raises(SettingsError) as raised:
        merged("[device]\nrin = 'a'\n", {"scan": {"interval": 1}, "device": {"units": b"x"}, "report": 2})
    assert raised.value.lines() == [
        "/dev.halos.halod.plist: device.units: expected a list of names, got a date or other value",
        "/dev.halos.halod.plist: report: expected a table ([report]), got a number",
        "/dev.halos.halod.plist: scan.interval: must be from 60 seconds to one day (86400 seconds)",
        '/halod.toml:2: device: unknown key "rin"; did you mean "ring"?',
    ]


@pytest.mark.parametrize(
    "data", [b"", b"CANARY", b"bplist00CANARY", b"<plist><CANARY/></plist>", b"x" * 300_000]
)
def test_preferences_that_are_no_property_list_are_told(data):
    with pytest.raises(SettingsError) as raised:
        build(None, ("/p", data), Reader(platform="darwin", root=True))
    assert raised.value.lines() == ["/p: is no property list with a dictionary of tables"]
    with pytest.raises(SettingsError):
        build(None, ("/p", plistlib.dumps(["a"])), Reader(platform="darwin", root=True))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_any_property_list_ends_in_settings_or_faults(data):
    for start in (b"bplist00", b"<?xml version='1.0'?><plist>", b""):
        with contextlib.suppress(SettingsError):
            build(None, ("/p", start + data), Reader(platform="darwin", root=True))


# --- files -------------------------------------------------------------------------------------------------


def test_a_file_is_loaded(tmp_path):
    file = tmp_path / "halod.toml"
    file.write_text("device.ring = 'a'")
    got = load(str(file))
    assert (got.device.ring, got.sources) == ("a", (str(file),))


def test_a_relative_name_on_the_command_line_is_made_absolute(tmp_path, monkeypatch):
    (tmp_path / "halod.toml").write_text("policy.path = 'p'")
    monkeypatch.chdir(tmp_path)
    assert load("halod.toml", root=False).policy.path == os.path.join(os.getcwd(), "p")


def test_a_missing_file_is_told_with_what_to_do(tmp_path):
    with pytest.raises(UsageError) as raised:
        load(str(tmp_path / "none.toml"), platform="linux")
    assert "there are no settings at" in raised.value.message
    assert "sample" in raised.value.advice


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_told(tmp_path, make):
    path = str(tmp_path / "halod.toml")
    make(path)
    with pytest.raises(UsageError) as raised:
        load(path)
    assert "halod.toml" in raised.value.message


def test_a_name_that_no_file_can_have_is_told():
    with pytest.raises(UsageError, match="cannot read"):
        load("/x\0y")


def test_managed_preferences_are_found_at_their_place(tmp_path):
    preferences = tmp_path / "p.plist"
    preferences.write_bytes(plistlib.dumps({"device": {"ring": "m"}}))
    file = tmp_path / "halod.toml"
    file.write_text("device.ring = 'a'")
    assert load(str(file), platform="darwin", managed=str(preferences)).device.ring == "m"
    assert load(str(file), platform="darwin", managed=str(tmp_path / "none")).device.ring == "a"
    assert load(str(file), platform="linux").device.ring == "a"


_names = st.sampled_from([*TABLES, "x", "ring", "url", "interval", "extra_locations", "path", "public_keys"])
_any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_names, st.dictionaries(_names, _any, max_size=5) | _any, max_size=5))
def test_any_document_is_settings_or_faults(document):
    """No value of any type in any place costs more than a fault with words."""
    reader = Reader(platform="linux", root=True)
    tables = {table: {} for table in TABLES}
    _merge(tables, Source("/x"), document, reader)
    for table in TABLES:
        reader.table(_TYPES[table], tables[table])
    _check_together(tables, reader)
    assert all(problem.message for problem in reader.problems)
