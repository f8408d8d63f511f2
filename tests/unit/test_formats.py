# SPDX-License-Identifier: Apache-2.0
"""The promises of every decoder: data or Malformed, never another exception, never a piece of the text."""

import subprocess
import sys
import traceback

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from halod.harnesses.formats import Malformed, Number, TooLarge, decode, prepare
from halod.harnesses.formats.base import position
from tests.support.guard import HANG

TABLES = ("/mcpServers", "/projects/*/mcpServers")
GOOD = {
    "json": b'{"mcpServers":{"a":{"command":"x","args":[0.50]}}}',
    "jsonc": b'{/**/"mcpServers":{"a":{"command":"x","args":[0.50,]}}}',
    "json-with-comments": b'{"mcpServers":{"a":{"command":"x","args":[0.50]}}} //',
    "json-with-comments-no-trailing-commas": b'{"mcpServers":{"a":{"command":"x","args":[0.50]}}}',
    "json5": b"{mcpServers:{a:{command:'x',args:[0.50,]}}}",
    "toml": b'[mcpServers.a]\ncommand = "x"\nargs = [0.50]\n',
    "yaml": b"mcpServers:\n  a:\n    command: x\n    args: [0.50]\n",
    "yaml-1.1": b"mcpServers: {a: {command: x, args: [0.50]}}\n",
    "markdown+yaml-frontmatter": b"---\nmcpServers: {a: {command: x, args: [0.50]}}\n---\n# Text\n",
}
BROKEN = {
    "json": [b'{"CANARYkey" "CANARYvalue"}', b'{"a":CANARYword}', b'{"CANARYkey":"CANARY\x01"}', b'["CANARYopen'],
    "json5": [b"{CANARYkey CANARYvalue}", b"{a:CANARYword}", b"{a:'CANARY\\1'}", b"{'CANARYkey:1}"],
    "toml": [b"CANARYkey = CANARYvalue", b"[CANARYt]\n[CANARYt]\n", b"a = 'CANARY", b"CANARYk = 1\nCANARYk = 2\n", b"a = 'CANARY\xff'"],
    "yaml": [b"CANARYkey: CANARY: value", b"a: *CANARYalias", b"a: &CANARYanchor 1", b"a: !CANARYtag 1", b'"CANARYopen', b"CANARYscalar", b"a: CANARY\xff", b"%CANARY\n---\n", b"CANARY: \x01"],
    "yaml-1.1": [b"{CANARYkey: [CANARY}"],
    "markdown+yaml-frontmatter": [b"---\nCANARY: [CANARY\n---\n", b"---\nCANARYscalar\n---\n"],
    "xml": [b"<CANARYtag>CANARYtext</CANARYother>", b"<a CANARYname='CANARYvalue'", b"<!DOCTYPE CANARY><a/>", b"<a>&CANARYentity;</a>"],
}  # fmt: skip


@pytest.mark.parametrize("word", GOOD)
def test_every_format_gives_the_same_plain_data(word):
    found = decode(word, GOOD[word], TABLES)
    assert found == {"mcpServers": {"a": {"command": "x", "args": ["0.50"]}}}
    assert type(found["mcpServers"]["a"]["args"][0]) is Number


@pytest.mark.parametrize("word", [*GOOD, "xml"])
@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_blank_file_is_empty_in_every_format(word, data):
    assert decode(word, data, TABLES) == {}


@pytest.mark.parametrize("word", GOOD)
def test_byte_order_mark_is_dropped_in_every_format(word):
    assert decode(word, b"\xef\xbb\xbf" + GOOD[word], TABLES) == decode(word, GOOD[word], TABLES)


@pytest.mark.parametrize(("word", "data"), [(word, data) for word, many in BROKEN.items() for data in many])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_no_piece_of_the_text_is_in_an_error(word, data, kind):
    with pytest.raises(Malformed) as error:
        decode(word, kind(data), TABLES)
    fault = error.value
    assert fault.__context__ is None
    assert fault.__cause__ is None
    assert all(isinstance(arg, int) for arg in fault.args)
    shown = "".join(traceback.format_exception(fault)) + repr(fault) + str(fault) + repr(vars(fault))
    assert "CANARY" not in shown
    assert "Malformed" in shown


@pytest.mark.parametrize("word", [*GOOD, "xml"])
def test_depth_is_malformed_and_not_a_crash(word):
    opening, closing = {"xml": (b"<a>", b"</a>"), "toml": (b"x=" + b"[" * 9, b"]")}.get(word, (b"[", b"]"))
    start = b"---\n" if word.startswith("markdown") else b""
    end = b"\n---\n" if word.startswith("markdown") else b""
    for levels in (1_200, 20_000, 300_000):
        with pytest.raises(Malformed):
            decode(word, start + opening * levels + closing * levels + end, TABLES)


@pytest.mark.parametrize("word", [*GOOD, "xml"])
def test_200_levels_are_read(word):
    lists = "[" * 198 + "1" + "]" * 198
    start, end = {
        "toml": ("a = ", ""),
        "markdown+yaml-frontmatter": ("---\na: ", "\n---\n"),
        "xml": ("", ""),
    }.get(word, ('{"a": ', "}"))
    text = "<a>" * 200 + "</a>" * 200 if word == "xml" else start + lists + end
    found = decode(word, text.encode(), ("/",))
    value, depth = (found["children"], 1) if word == "xml" else (found["a"], 1)
    while isinstance(value, list) and value:
        value = value[0]["children"] if word == "xml" else value[0]
        depth += 1
    assert depth in {199, 200}


@pytest.mark.parametrize(
    ("word", "data"),
    [
        ("toml", b"a=1\n" * (1 << 20) + b"#"),
        ("yaml", b"- 1\n" * (1 << 20) + b"#"),
        ("yaml-1.1", b"- 1\n" * (1 << 20) + b"#"),
        ("json5", b"[" + b"'',,," * (1 << 20)),
        ("xml", b"<a>" + b"b" * (2 << 20) + b"</a>"),
    ],
)
def test_slow_decoders_have_a_size_limit(word, data):
    with pytest.raises(TooLarge):
        decode(word, data, TABLES)


def test_json5_of_any_size_up_to_16_mib_is_read_when_it_is_json_with_comments():
    data = b'{"mcpServers":{},/* c */"h":"' + b"x" * (5 << 20) + b'"}'
    assert decode("json5", data, TABLES)["mcpServers"] == {}


def test_memory_that_runs_out_is_one_malformed_file(monkeypatch):
    """A decoder under a memory limit fails for this file and the scan goes on."""
    monkeypatch.setattr(
        "halod.harnesses.formats.decode_whole", lambda _data: (_ for _ in ()).throw(MemoryError)
    )
    with pytest.raises(Malformed) as error:
        decode("json", b"{}", TABLES)
    assert error.value.__context__ is None


def test_unknown_format_is_a_fault_of_the_caller():
    with pytest.raises(KeyError):
        decode("ini", b"", TABLES)


def test_prepare_makes_the_types_that_decode_uses():
    from halod.harnesses.formats.json_pruned import plan

    prepare(TABLES, ("/x",))
    before = plan.cache_info().misses
    assert decode("json", b'{"x":1,"h":"' + b"x" * 300_000 + b'"}', TABLES, ("/x",)) == {"x": "1"}
    assert plan.cache_info().misses == before


@pytest.mark.parametrize(
    ("data", "offset", "expected"),
    [
        (b"", 0, (1, 1)),
        (b"ab\ncd", 4, (2, 2)),
        (b"ab\ncd", 99, (2, 3)),
        (b"ab\ncd", -1, (1, 1)),
        ("é€𝄞x".encode(), 9, (1, 4)),
        (b"x" * 200_000 + "é".encode() * 50_000, 300_000, (1, 250_001)),
    ],
)
def test_position_counts_characters(data, offset, expected):
    assert position(data, offset) == expected


def test_malformed_says_where():
    assert str(Malformed(3, 5)) == "line 3, column 5"
    assert str(Malformed()) == "at an unknown position"
    assert repr(TooLarge(3, 5)) == "TooLarge(3, 5)"


AFTER = r"""
import sys
from halod.harnesses.formats import Malformed, decode, sqlite
taken = set(sys.modules)
class Closed:
    def find_spec(self, name, path=None, target=None):
        raise RuntimeError("import of " + name)
sys.meta_path[:] = [Closed()]
tables = ("/mcpServers", "/projects/*/mcpServers", "/plugins/[]/x")
pad = b"x" * 300000
good = [
    ("json", b'{"a":"\\ud83d","mcpServers":{"b":1.5}}'),
    ("json", b'{"a":"\ud83d' + pad + b'","projects":{"/\xff\ud83d":{"mcpServers":{}}},"plugins":[{"x":1}]}'),
    ("jsonc", b'{"projects":[1],/**/"a":"' + pad + b'"}'),
    ("json5", b"{a:'\\ud83d\\ude00',b:0x1F}"),
    ("toml", b"a = 1979-05-27T07:32:00+01:00\nb = 0.5\nc = 07:32:00"),
    ("yaml", "a: [1, é, 'x']".encode()),
    ("yaml-1.1", b"a: [22:22, off, 2026-01-01]"),
    ("markdown+yaml-frontmatter", b"---\na: b: c\n---\n"),
    ("xml", "<a b='é'>x</a>".encode()),
    ("xml", "<a/>".encode("utf-16")),
]
for word, data in good:
    assert decode(word, bytearray(data), tables)
for word in dict(good):
    for data in (b"\xff{", b"[" * 2000, b"<?xml version='1.0' encoding='koi8-r'?><a>", b"%", b"{'\\1'}"):
        try:
            decode(word, data, tables)
        except Malformed:
            pass
try:
    sqlite.open_database(b"SQLite format 3" + bytes(600))
except Malformed:
    pass
assert sqlite.rows(sqlite.open_database(b""), "SELECT 1") == [(1,)]
assert set(sys.modules) == taken, set(sys.modules) - taken
"""


def test_nothing_is_imported_after_the_fork():
    """A confined worker cannot read the library: decoding any format must need no further module."""
    done = subprocess.run(
        [sys.executable, "-c", AFTER], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr


TOKENS = [
    "{", "}", "[", "]", ":", ",", "\n", "  ", "- ", "a", "b: ", "'", '"', "\\", "#", "/*", "//", "*/", "---\n", "...",
    "=", "[[", "]]", ".", "1", "0x", "_", "e", "+", "-", "&a ", "*a", "!!str ", "<<: ", "? ", "| \n", "> \n", "%",
    "<", ">", "</", "/>", "<a>", "</a>", "&lt;", "&#0;", "&#x10ffff;", "<!--", "-->", "<?x", "?>", "<![CDATA[", "]]>",
    "\ufeff", "\u2028", "\0", "\x07", "é", "\U0001f600", "NaN", "null", "22:22", "1979-05-27", "07:32:00", "\t", "\r",
    "\\u0041", "\\ud83d", "\\x41", "'''", '"""', "~", "on", "0b1", "0o7", ".inf", "1:30.5",
]  # fmt: skip


def check_plain(value: object) -> None:
    """Walk a result without recursion and look at every kind in it."""
    stack = [value]
    while stack:
        item = stack.pop()
        assert item is None or type(item) in {dict, list, str, Number, bool}
        if isinstance(item, dict):
            assert all(isinstance(key, str) for key in item)
            stack += item.values()
        elif isinstance(item, list):
            stack += item


@pytest.mark.parametrize("word", [*GOOD, "xml"])
def test_any_content_gives_plain_data_or_malformed(word):
    @given(
        st.lists(st.sampled_from(TOKENS), max_size=25).map("".join).map(str.encode) | st.binary(max_size=80)
    )
    @settings(max_examples=250, deadline=None)
    @example(b"a: 1:" + b"59:" * 3000 + b"1")
    @example(b"a: 0b" + b"1" * 20_000)
    @example(b"a = " + b"9" * 20_000)
    @example(b"a = 0x" + b"f" * 20_000)
    @example(b"\xff\xfe{\0}\0")
    @example(b"<?xml version='1.0' encoding='rot13'?><a/>")
    def check(data: bytes) -> None:
        start = b"---\n" if word.startswith("markdown") else b""
        try:
            value = decode(word, start + data, TABLES)
        except Malformed:
            return
        check_plain(value)

    check()
