# SPDX-License-Identifier: Apache-2.0
"""JSON5, TOML, YAML, front matter and XML: right values for each rule of each format."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.harnesses.formats import Malformed, Number, decode, yamlish


def read(word: str, text: str | bytes) -> object:
    return decode(word, text.encode() if isinstance(text, str) else text, ("/",))


def where(word: str, text: str | bytes) -> tuple[int, int]:
    with pytest.raises(Malformed) as error:
        read(word, text)
    return error.value.line, error.value.column


# --- JSON5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{$a_1: 'x', \\u0061b: 2, 'c d': 3, Infinity: 4, é: 5}", {"$a_1": "x", "ab": "2", "c d": "3", "Infinity": "4", "é": "5"}),
        ("[0x1F, +1, -.5, 5., 1e3, Infinity, -NaN, 0]", ["0x1F", "+1", "-.5", "5.", "1e3", "Infinity", "-NaN", "0"]),
        ("['\\'\\x41\\u0041\\a\\0\\v', \"'\",]", ["'AAa\0\v", "'"]),
        ("['a\\\nb\\\r\nc\\\u2028d']", ["abcd"]),
        ("['\\ud83d\\ude00', '\\ud83d', '\t\u2028']", ["\U0001f600", "\ud83d", "\t\u2028"]),
        ("/*a*/{a:1,//b\na:2,}\ufeff\u00a0", {"a": "2"}),
        ("{a: true, b: false, c: null}", {"a": True, "b": False, "c": None}),
        ("{a: '//', b: '/*'}", {"a": "//", "b": "/*"}),
        ("// c\u2028{a:1}", {"a": "1"}),
        ("{a:[],b:{}}", {"a": [], "b": {}}),
        ("// it's \\\n{a: 'x\\'y', \"b\\\\\": '\\\\', c: '\\\"//'}", {"a": "x'y", "b\\": "\\", "c": '"//'}),
        ("{a: 1 /* ' \\*/, // \\\\\r\n b: \"'/*\"}", {"a": "1", "b": "'/*"}),
        ("// \\\r\n{/***//* \\' */a /*:*/ : /**/'1'}", {"a": "1"}),
        ("['a\\\r\\\n\\\\\\\nb', '\\\\']", ["a\\b", "\\"]),
        ("/* x */ // y\n" * 1500 + "{a\\u0062c\\u0064$: 1}", {"abcd$": "1"}),
    ],
)  # fmt: skip
def test_json5_values(text, value):
    assert read("json5", text) == value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{a:01}", (1, 4)),
        ("{a:1 b:2}", (1, 6)),
        ("{a:'x\ny'}", (1, 4)),
        ("{a:'\\1'}", (1, 5)),
        ("{a:'\\01'}", (1, 5)),
        ("{a:'\\xg'}", (1, 5)),
        ("{a:'\\u12'}", (1, 5)),
        ("{\n  a: undefined}", (2, 6)),
        ("{1a: 1}", (1, 2)),
        ("{1: 1}", (1, 2)),
        ("{a}", (1, 3)),
        ("{a:1", (1, 5)),
        ("{a:1}}", (1, 6)),
        ("['a',,]", (1, 6)),
        ("['a' /* x", (1, 6)),
        ("{a:+ 1}", (1, 4)),
        ("{a:0x}", (1, 4)),
        ("{a:1.2.3}", (1, 4)),
        ("{'a':]}", (1, 6)),
        ("{a: \\'x'}", (1, 5)),
        ("{a: \\\n1}", (1, 5)),
        ("{a: '\0'} /", (1, 10)),
        ("['a\\'", (1, 2)),
        ("{a: 1} /* x */ /* y", (1, 16)),
    ],
)
def test_json5_refuses_what_its_grammar_does_not_have(text, place):
    assert where("json5", text) == place


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=4), x),
        max_leaves=8,
    )
)
@settings(max_examples=150, deadline=None)
def test_json5_reads_json_the_same_by_its_own_grammar(value):
    text = json.dumps([value])
    assert read("json5", text[:-1] + ",+0]")[:-1] == [value]


@pytest.mark.parametrize(
    "junk",
    [
        "/*" * 200_000,
        "/*" + "* " * 200_000,
        "['" + "\\" * 400_001,
        "['" + "\\'" * 200_000,
        "['" + "\\\r\n" * 150_000,
        "{" + "\\u0061" * 100_000,
        "{" + "a" * 400_000,
        "[1." + "1" * 400_000 + "x",
        "[" + " " * 400_000 + "?",
        "[" + "/**/ " * 100_000 + "/",
    ],
)
def test_hostile_json5_ends(junk):
    """Quadratic matching of any of these would take minutes; the suite's time limit would end it."""
    where("json5", junk)


# --- TOML


def test_toml_values():
    found = read(
        "toml",
        'a = 0.50\nb = 1e3\nc = 12\nd = 0x1F\ne = true\nf = "x"\ng = 1979-05-27T07:32:00Z\nh = 07:32:00\n'
        "i = [1, 'two', {three = 3.0}]\nj = inf\n[mcp_servers.'a b'.env]\nK = 'v'\n[[l]]\n[[l]]\nx=1",
    )
    assert found == {
        "a": "0.50", "b": "1e3", "c": "12", "d": "31", "e": True, "f": "x", "g": "1979-05-27 07:32:00+00:00",
        "h": "07:32:00", "i": ["1", "two", {"three": "3.0"}], "j": "inf",
        "mcp_servers": {"a b": {"env": {"K": "v"}}}, "l": [{}, {"x": "1"}],
    }  # fmt: skip
    assert type(found["c"]) is type(found["a"]) is Number
    assert type(found["g"]) is str


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[a]\nx = 1\n[a]\ny = 2\n", (3, 3)),
        ("a = 1\na = 2\n", (2, 6)),
        ("\r\nb = nope\r\n", (2, 5)),
        (b"a = 1\nb = '\xc3\xa9\xff'", (2, 7)),
        (b"\xef\xbb\xbfa = 'x\xff'", (1, 7)),
        ("a = 1" + "0" * 5000, (0, 0)),
        ("a = 0x" + "f" * 5000, (0, 0)),
    ],
)
def test_toml_malformed(text, place):
    assert where("toml", text) == place


def test_toml_accepts_crlf_and_toml_1_1():
    assert read("toml", b'a = "x"\r\n[t]\r\nb = {c = 1,\r\n d = "\\e",}\r\n') == {
        "a": "x",
        "t": {"b": {"c": "1", "d": "\x1b"}},
    }


# --- YAML

PLAIN = [
    # text, YAML 1.2, YAML 1.1
    ("off", "off", False), ("no", "no", False), ("On", "On", True), ("YES", "YES", True), ("y", "y", "y"),
    ("true", True, True), ("False", False, False), ("tRue", "tRue", "tRue"),
    ("null", None, None), ("~", None, None), ("", None, None), ("nUll", "nUll", "nUll"),
    ("22:22", "22:22", Number("1342")), ("-1:30", "-1:30", Number("-90")), ("1:30.5", "1:30.5", Number("90.5")),
    ("010", Number("010"), Number("8")), ("0o17", Number("0o17"), "0o17"), ("08", Number("08"), "08"),
    ("0x1F", Number("0x1F"), Number("31")), ("0b11", "0b11", Number("3")), ("-0b11", "-0b11", Number("-3")),
    ("1_000", "1_000", Number("1000")), ("1_0.5", "1_0.5", Number("10.5")), ("0b_", "0b_", "0b_"),
    ("12", Number("12"), Number("12")), ("-0", Number("-0"), Number("-0")), ("+5", Number("+5"), Number("+5")),
    ("0.50", Number("0.50"), Number("0.50")), ("5.", Number("5."), Number("5.")), (".5", Number(".5"), Number(".5")),
    ("1e3", Number("1e3"), "1e3"), ("1.5e+3", Number("1.5e+3"), Number("1.5e+3")),
    (".inf", Number(".inf"), Number(".inf")), ("-.INF", Number("-.INF"), Number("-.INF")),
    (".NaN", Number(".NaN"), Number(".NaN")), ("2026-01-01", "2026-01-01", "2026-01-01"),
    ("1.2.3", "1.2.3", "1.2.3"), ("=", "=", "="), ("'12'", "12", "12"), ('"off"', "off", "off"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "new", "old"), PLAIN, ids=[row[0] or "empty" for row in PLAIN])
def test_yaml_scalars_by_version(text, new, old):
    for word, expected in (("yaml", new), ("yaml-1.1", old)):
        found = read(word, f"a: {text}")["a"]
        assert found == expected
        assert type(found) is type(expected)


def test_yaml_1_1_agrees_with_pyyaml_on_every_scalar_above():
    for text, _, old in PLAIN:
        try:
            theirs = yaml.safe_load(f"a: {text}")["a"]
        except (ValueError, yaml.YAMLError):
            continue
        if isinstance(old, Number):
            spelled = old.lower().replace(".inf", "inf").replace(".nan", "nan")
            assert repr(float(theirs)).lstrip("-") == repr(float(spelled)).lstrip("-")
        else:
            assert str(theirs) == str(old)


def test_yaml_number_too_long_to_tell_stays_as_written():
    text = "1:" + "59:" * 500 + "1"
    assert read("yaml-1.1", f"a: {text}") == {"a": text}


def test_yaml_keys_are_text_and_the_last_of_duplicates_counts():
    assert read("yaml", "1: a\ntrue: b\n~: c\nx: {y: 1, y: 2}\nx: {y: 3}\n'<<': d\n") == {
        "1": "a", "true": "b", "~": "c", "x": {"y": "3"}, "<<": "d",
    }  # fmt: skip


@pytest.mark.parametrize("word", ["yaml", "yaml-1.1"])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: &x 1", (1, 4)),
        ("a: 1\nb: *x", (2, 4)),
        ("a: &x [1]\nb: [*x, *x]", (1, 4)),
        ("a: !!python/object:os.system 1", (1, 4)),
        ("a: !local {}", (1, 4)),
        ("a: ! x", (1, 4)),
        ("&k a: 1", (1, 1)),
        ("<<: {a: 1}", (1, 1)),
        ("? [a]\n: 1", (1, 3)),
        ("{a: 1}: 2", (1, 1)),
        ("a: 1\n---\nb: 2", (2, 1)),
        ("just text", (1, 1)),
        ("a: b: c", (1, 5)),
        ("a:\n\t- b", (2, 1)),
        (b"a: \xff", (1, 4)),
        (b"\xef\xbb\xbf# \xc3\xa9\na: \xff", (2, 4)),
        ("a: \x01", (0, 0)),
    ],
)
def test_yaml_refuses(word, text, place):
    assert where(word, text) == place


@pytest.mark.parametrize("text", ["", "# only\n", "---\n", "~", "null", "---\n...\n"])
def test_yaml_without_content_is_empty(text):
    assert read("yaml", text) == {}


def test_yaml_documents_with_marks_directives_and_crlf():
    assert read("yaml", "%YAML 1.2\r\n---\r\na: |\r\n  x\r\n  y\r\nb: >-\r\n  p\r\n  q\r\n...\r\n") == {
        "a": "x\ny\n",
        "b": "p q",
    }


def test_yaml_top_level_list_is_read():
    assert read("yaml", "- name: a\n- [b, [c]]\n") == [{"name": "a"}, ["b", ["c"]]]


@pytest.mark.parametrize(
    "text", ["a: [1, {b: c}]\nd:\n- e\n-\n", "a: *x", "a: b: c", "x", "a: \x01", "[" * 1500]
)
def test_the_slow_parser_reads_the_same(text, monkeypatch):
    """PyYAML without libyaml takes its own parser."""

    def outcome() -> object:
        try:
            return read("yaml", text)
        except Malformed:
            return Malformed

    fast = outcome()
    monkeypatch.setattr(yamlish, "_PARSER", yaml.SafeLoader)
    assert outcome() == fast


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=6),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=4), x),
        max_leaves=8,
    )
)
@settings(max_examples=150, deadline=None)
def test_yaml_reads_what_pyyaml_writes(value):
    text = yaml.safe_dump([value])
    if "&id" in text:
        return
    found = read("yaml-1.1", text)[0]
    assert keyed(found) == keyed(value)


def keyed(value: object) -> object:
    return {str(k): keyed(v) for k, v in value.items()} if isinstance(value, dict) else value


# --- front matter


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("---\nname: x\n---\nbody: [", {"name": "x"}),
        ("---\r\nname: x\r\n---\r\nbody", {"name": "x"}),
        ("--- \nname: x\n---", {"name": "x"}),
        ("---\nname: x\n...\nbody", {"name": "x"}),
        ("---\n---\nbody", {}),
        ("\ufeff---\na: 1\n---\n", {"a": "1"}),
        ("# Title\n---\na: 1\n---\n", {}),
        ("\n---\na: 1\n---\n", {}),
        ("----\na: 1\n----\n", {}),
        ("---a: 1\n---\n", {}),
        ("---\na: 1\n", {"a": "1"}),
        ("---\na: 1\n\n# Heading\n\nprose: with: [colons\n", {}),
        ("---\na: x --- y\nb: '---'\n---\n", {"a": "x --- y", "b": "---"}),
        ("---\na: off\n---\n", {"a": "off"}),
        ("---yaml\na: 1\n---\n", {"a": "1"}),
        ("--- YML\r\na: 1\r\n---\r\n", {"a": "1"}),
        ("---json\n{}\n---\n", {}),
    ],
)
def test_front_matter(text, value):
    assert read("markdown+yaml-frontmatter", text) == value


def test_front_matter_with_a_description_that_is_not_yaml():
    text = (
        '---\nname: helper\ndescription: Use this: when "x" isn\'t done\ntools: *\n'
        "mcpServers:\n  - lab:\n      command: npx\n      args: [a, 'b: c']\n---\nbody"
    )
    assert read("markdown+yaml-frontmatter", text) == {
        "name": "helper",
        "description": 'Use this: when "x" isn\'t done',
        "tools": "*",
        "mcpServers": [{"lab": {"command": "npx", "args": ["a", "b: c"]}}],
    }


def test_front_matter_error_counts_lines_of_the_file():
    assert where("markdown+yaml-frontmatter", "---\na: 1\nb: [c\n---\n") == (4, 1)


# --- XML


def test_xml_tree():
    found = read(
        "xml",
        '<?xml version="1.0"?><!-- c -->\n<application><component name="M&amp;M">a<b/>c<![CDATA[<]]></component></application>',
    )
    assert found == {
        "tag": "application",
        "attributes": {},
        "text": "",
        "children": [
            {
                "tag": "component",
                "attributes": {"name": "M&M"},
                "text": "ac<",
                "children": [{"tag": "b", "attributes": {}, "children": [], "text": ""}],
            }
        ],
    }


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("<a>\n<b></a>", (2, 6)),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', (1, 13)),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', (1, 11)),
        ("<!DOCTYPE a><a/>", (1, 11)),
        ("<a>&nbsp;</a>", (1, 4)),
        ("<a/><b/>", (1, 5)),
        ("text", (1, 1)),
        (b"<a>\xff</a>", (1, 4)),
        ("<a b='1' b='2'/>", (1, 10)),
    ],
)
def test_xml_refuses(text, place):
    line, column = where("xml", text)
    assert line == place[0]
    if "DOCTYPE" not in str(text):
        assert column == place[1]


def test_xml_ignores_the_declared_encoding():
    assert read("xml", "<?xml version='1.0' encoding='rot13'?><a>é</a>")["text"] == "é"


@pytest.mark.parametrize("table", ["mcpServers:", "mcp_servers:", "mcp-servers :", "  mcpServers:"])
def test_front_matter_that_is_not_closed_and_names_servers_is_not_clean(table):
    """Readers differ in what closes a block: one that holds servers and does not parse is told."""
    with pytest.raises(Malformed):
        decode(
            "markdown+yaml-frontmatter",
            f"---\na: 1\n{table}\n  - x: {{command: CANARY}}\n----\nbody\n".encode(),
            ("/",),
        )
