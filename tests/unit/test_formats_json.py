# SPDX-License-Identifier: Apache-2.0
"""JSON files of every spelling: what is read, what is refused, and that both ways of reading agree."""

import base64
import json
import random
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.harnesses.formats import PRUNE_BYTES, Malformed, Number, decode
from halod.harnesses.formats.blanker import blank
from halod.harnesses.formats.json_pruned import plan
from halod.harnesses.formats.json_whole import TOLERANT_BYTES
from tests.support.guard import HANG

WORDS = ["json", "jsonc", "json-with-comments", "json-with-comments-no-trailing-commas", "json5"]
CLAUDE = ("/mcpServers", "/projects/*/mcpServers", "/projects/*/disabledMcpServers")


def whole(data: bytes) -> object:
    return decode("json", data, ("/mcpServers",))


def pruned(data: bytes, pointers: tuple[str, ...] = CLAUDE) -> object:
    """Read by the way of big files, whatever the size."""
    return plan(pointers).decode(bytearray(data))


BOTH = pytest.mark.parametrize("read", [whole, pruned], ids=["whole", "pruned"])


def place(error: pytest.ExceptionInfo[Malformed]) -> tuple[int, int]:
    return error.value.line, error.value.column


@BOTH
def test_numbers_keep_their_spelling_and_booleans_stay(read):
    found = read(b'{"mcpServers":{"a":{"args":[0.50,1e3,-0,1E+2,true,false,null,"1"]}}}')
    args = found["mcpServers"]["a"]["args"]
    assert args == ["0.50", "1e3", "-0", "1E+2", True, False, None, "1"]
    assert [type(arg) for arg in args] == [Number] * 4 + [bool, bool, type(None), str]


@BOTH
def test_last_of_duplicate_keys_counts_at_every_level(read):
    found = read(
        b'{"mcpServers":{"decoy":{}},"projects":{"/p":{"mcpServers":1},"/p":{"mcpServers":{"n":2}}},'
        b'"mcpServers":{"a":{"command":"first"},"a":{"command":"x","command":"last"}}}'
    )
    assert found == {
        "mcpServers": {"a": {"command": "last"}},
        "projects": {"/p": {"mcpServers": {"n": "2"}}},
    }


@BOTH
def test_last_duplicate_replaces_and_is_not_merged(read):
    found = read(b'{"projects":{"/a":{"mcpServers":{"x":1}}},"projects":{"/b":{"mcpServers":{}}}}')
    assert found == {"projects": {"/b": {"mcpServers": {}}}}


@BOTH
def test_key_spelled_with_escapes_is_the_same_key(read):
    assert read(b'{"mcp\\u0053ervers":{"a":1}}') == {"mcpServers": {"a": "1"}}


@BOTH
def test_lone_surrogates_are_kept_where_wanted_and_harmless_elsewhere(read):
    found = read(
        b'{"mcpServers":{"a\\ud800":{"args":["\\ud83d","\\ud83d\\ude00","\\\\ud83d","\\uDE00\\uD83D"]}},'
        b'"projects":{"/x\\udfff":{"mcpServers":{"\\\\\\ud83d":1},"h":0}}}'
    )
    assert found["mcpServers"] == {"a\ud800": {"args": ["\ud83d", "\U0001f600", "\\ud83d", "\ude00\ud83d"]}}
    assert found["projects"]["/x\udfff"]["mcpServers"] == {"\\\ud83d": "1"}


def test_lone_surrogate_in_unwanted_history_costs_nothing():
    data = b'{"history":["cut \\ud83d"],"t\\ud83d":1,"mcpServers":{"a":{"command":"x"}}}'
    assert pruned(data) == {"mcpServers": {"a": {"command": "x"}}}


def test_lone_surrogates_stay_exact_beside_every_marker_byte():
    text = b"\x7f`^~|$%@"
    data = b'{"h":"\\ud83d","mcpServers":{"a":"\\ud83d' + text + b'"},"projects":{}}'
    assert pruned(data)["mcpServers"] == {"a": "\ud83d" + text.decode()}
    assert pruned(data.replace(b"@", b""))["mcpServers"] == {"a": "\ud83d" + text.decode()[:-1]}


@BOTH
@pytest.mark.parametrize("text", [r"\ud8x0", r"\ud83", r"\\\uD", r"\ud83d\ud8 3d"])
@pytest.mark.parametrize("pad", [0, 1 << 20])
def test_what_only_begins_like_a_surrogate_is_malformed(read, text, pad):
    """Also in a part that is skipped, as in Node."""
    data = b'{"h":"' + b"x" * pad + b"\\ud83d" + text.encode() + b'","mcpServers":{"a":1}}'
    with pytest.raises(Malformed):
        read(data)


def test_lone_surrogates_are_found_across_the_chunks_of_a_big_buffer():
    filler = b"\\\\" * (1 << 19) + b"u" + b"\\\\\\ud83d" * 200_000
    data = b'{"mcpServers":{"a":"\\udc00\\\\ud83d"},"h":"' + filler + b'"}'
    assert pruned(data) == {"mcpServers": {"a": "\udc00\\ud83d"}}


@BOTH
def test_invalid_utf8_becomes_replacement_characters_as_in_node(read):
    found = read(
        b'{"x\xff":"\xf0\x9f","mcpServers":{"a\xc3":"\xe2\x82(\xed\xa0\x80"},"projects":{"/\xff":null}}'
    )
    assert found["mcpServers"] == {"a\ufffd": "\ufffd(\ufffd\ufffd\ufffd"}
    assert found["projects"] == {"/\ufffd": None}


@BOTH
@pytest.mark.parametrize("word", ["", "\ufeff"])
def test_byte_order_mark_is_dropped(read, word):
    assert read(word.encode() + b'{"mcpServers":{}}') == {"mcpServers": {}}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("data", [b"", b" \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"null", b"// only\n"])
def test_blank_and_null_files_are_empty(word, data):
    assert decode(word, data, CLAUDE) == {}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("data", [b"1", b'"CANARYtop"', b"true", b"{", b'{"a":1}}', b'{"a":1} x', b'{"a" 1}'])
def test_scalar_top_and_broken_text_are_malformed(word, data):
    with pytest.raises(Malformed) as error:
        decode(word, data, CLAUDE)
    assert error.value.line == 1
    assert error.value.column >= 1


@BOTH
@pytest.mark.parametrize(
    "bad", [b"NaN", b"-Infinity", b"01", b"+1", b".5", b"1.", b'"\x01"', b'"\n"', b'"\\q"', b"'a'"]
)
def test_what_json_parse_refuses_is_malformed(read, bad):
    with pytest.raises(Malformed):
        read(b'{"mcpServers":{"a":' + bad + b"}}")


@BOTH
def test_comments_and_trailing_commas_are_accepted(read):
    found = read(b'// c "\n{/* [ */"mcpServers":{"a//b":{"args":["/*x*/","y",/**/],},},} // end')
    assert found == {"mcpServers": {"a//b": {"args": ["/*x*/", "y"]}}}


@BOTH
@pytest.mark.parametrize(
    "bad", [b'{"a":1,,}', b"[1,,]", b'{"a":1} /* open', b"/", b'{"a":1} /', b'{"a":1}//\r2']
)
def test_other_leniencies_are_not(read, bad):
    with pytest.raises(Malformed):
        read(bad)


def test_line_comment_ends_at_a_carriage_return():
    assert whole(b'{// c\r"mcpServers":{"a":1}}') == {"mcpServers": {"a": "1"}}


def test_comments_are_accepted_up_to_16_mib_and_strict_json_beyond():
    start = b'{"mcpServers":{"a":1},"h":"'
    room = TOLERANT_BYTES - len(start)
    data = start + b"x" * (room - 5) + b'"}//c'
    assert len(data) == TOLERANT_BYTES
    assert decode("json", data, CLAUDE) == {"mcpServers": {"a": "1"}}
    with pytest.raises(Malformed):
        decode("json", data + b" ", CLAUDE)
    assert decode("json", data[:-3] + b"      ", CLAUDE) == {"mcpServers": {"a": "1"}}


@BOTH
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_200_is_read_and_more_than_1000_is_malformed(read, opening):
    closing = {"[": "]", '{"a":': "}"}[opening]

    def nested(levels: int) -> bytes:
        inside = opening * levels + "1" + closing * levels
        return f'{{"mcpServers":{{"a":{inside}}},"h":{inside}}}'.encode()

    value = read(nested(196))["mcpServers"]["a"]
    for _ in range(196):
        value = value[0] if isinstance(value, list) else value["a"]
    assert value == "1"
    for levels in (20_000, 1_000_000):
        with pytest.raises(Malformed):
            read(nested(levels))
        with pytest.raises(Malformed):
            read(opening.encode() * levels)


@BOTH
def test_integer_of_any_length_is_text(read):
    digits = "7" * 5000
    found = read(f'{{"h":{digits},"mcpServers":{{"a":{digits},"b":1e{digits}}}}}'.encode())
    assert found["mcpServers"] == {"a": digits, "b": "1e" + digits}


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b'{\n "a": tru\n}', (2, 7)),
        (b'{\n "\xc3\xa4": "\xe2\x82\xac", x\n}', (2, 12)),
        (b'\xef\xbb\xbf{"a":x}', (1, 6)),
        (b'// c\n{\n/* \n */ "a": x}', (4, 10)),
        (b'{"a":1}\n /* open', (2, 2)),
    ],
)
def test_position_of_an_error_in_characters(data, where):
    for read in (whole, pruned):
        with pytest.raises(Malformed) as error:
            read(data)
        assert place(error) == where


def test_big_broken_file_that_is_wanted_whole_is_malformed():
    with pytest.raises(Malformed) as error:
        decode("json", b'{"a":x' + b" " * TOLERANT_BYTES, ("/",))
    assert place(error) == (1, 6)


def test_position_in_a_big_file():
    lines = (
        b'{"mcpServers":{},\n"h":"' + b"x" * PRUNE_BYTES + b'",\n"caf\xc3\xa9": oops}' + b" " * TOLERANT_BYTES
    )
    with pytest.raises(Malformed) as error:
        decode("json", bytearray(lines), CLAUDE)
    assert place(error) == (3, 9)
    with pytest.raises(Malformed) as error:
        decode("json", b"\xef\xbb\xbf" + b'{"a":x' + lines, CLAUDE)
    assert place(error) == (1, 6)
    with pytest.raises(Malformed) as error:
        decode("json", b'{"mcpServers":{"a":"' + b"x" * TOLERANT_BYTES, CLAUDE)
    assert error.value.line == 1
    with pytest.raises(Malformed) as error:
        decode("json", b'{"projects":{"/\xff":null},"a":"' + b"x" * TOLERANT_BYTES, CLAUDE)
    assert error.value.line == 1


@pytest.mark.parametrize(
    ("pointers", "data", "expected"),
    [
        (("/mcp/servers",), b'{"mcp":{"servers":{"a":1},"x":2},"y":3}', {"mcp": {"servers": {"a": "1"}}}),
        (("/mcp.servers", "/amp.mcpServers"), b'{"mcp.servers":{"a":1},"amp.mcpServers":[]}', {"mcp.servers": {"a": "1"}, "amp.mcpServers": []}),
        (("/plugins/[]/mcpServers",), b'{"plugins":[{"mcpServers":{},"n":1},3,null,{"n":1},[]]}', {"plugins": [{"mcpServers": {}}, "3", None, {}, []]}),
        (("/plugins/[]/mcpServers", "/plugins/[]/name"), b'{"plugins":[{"name":"p","x":1}]}', {"plugins": [{"name": "p"}]}),
        (("/mcpServers[]",), b'{"mcpServers":[{"name":"a"},1],"x":0}', {"mcpServers": [{"name": "a"}, "1"]}),
        (("/mcpServers[]", "/mcpServers/x"), b'{"mcpServers":{"x":1,"y":2}}', {"mcpServers": {"x": "1"}}),
        (("/[]",), b'[{"name":"a"}]', [{"name": "a"}]),
        (("/",), b'{"a":{"b":1}}', {"a": {"b": "1"}}),
        (("/a/b", "/a"), b'{"a":{"c":1},"d":1}', {"a": {"c": "1"}}),
        (("/a", "/a/b"), b'{"a":{"c":1},"d":1}', {"a": {"c": "1"}}),
        (("/a/*/x", "/a/k/y"), b'{"a":{"k":{"y":1,"z":2}},"b":1}', {"a": {"k": {"y": "1", "z": "2"}}}),
        (("/a", "component[X]"), b'{"a":1,"b":2}', {"a": "1"}),
        ((), b'{"a":1,"b":2}', {"a": "1", "b": "2"}),
        (("/a[]", "/b[]"), b'{"a":[1],"b":{"c":1}}', {"a": ["1"], "b": {}}),
        (CLAUDE, b'{"projects":null}', {"projects": None}),
        (CLAUDE, b'{"projects":[1],"mcpServers":"s"}', {"projects": [], "mcpServers": "s"}),
        (CLAUDE, b'{"projects":{"/a":[1],"/b":"s","/c":{"mcpServers":[2],"h":0}}}', {"projects": {"/a": [], "/b": "s", "/c": {"mcpServers": ["2"]}}}),
        (CLAUDE, b'{"projects":{"/a":7,"/\\ud83d":{"disabledMcpServers":null,"h":0}}}', {"projects": {"/a": "7", "/\ud83d": {"disabledMcpServers": None}}}),
        (CLAUDE, b"[]", []),
        (CLAUDE, b" 3 ", "3"),
        (("/a/b/c",), b'{"a":{"b":{"c":1,"d":2}},"e":[]}', {"a": {"b": {"c": "1"}}}),
        (("/a/b/c",), b'{"a":{"b":[],"d":{"x":1}}}', {"a": {"b": []}}),
    ],
)  # fmt: skip
def test_pointers_reach_what_they_say_and_nothing_else(pointers, data, expected):
    chosen = plan(pointers)
    read = whole if chosen.root.whole else lambda data: pruned(data, pointers)
    assert read(data) == expected


def test_big_files_are_pruned_and_small_ones_are_not():
    small = b'{"mcpServers":{},"projects":{},"x":"y"}'
    assert decode("json", small, CLAUDE) == {"mcpServers": {}, "projects": {}, "x": "y"}
    big = small[:-1] + b',"h":"' + b"z" * PRUNE_BYTES + b'"}'
    assert decode("json", bytearray(big), CLAUDE[:1], CLAUDE[1:]) == {"mcpServers": {}, "projects": {}}
    assert set(decode("json", big, ("/mcpServers", "/"))) == {"mcpServers", "projects", "x", "h"}


@BOTH
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"a\\" // "', "a\\"),
        (rb'"a\"//b" // c', 'a"//b'),
        (rb'"a\\\"/*b" /* \" */', 'a\\"/*b'),
        (rb'"\\\\\\\"," // \\"', '\\\\\\",'),
        (b'// "\\\n"/*" /* " */ // ,"*\\\r\n', "/*"),
        (b'/***//*/ */"a"/* \n * // x\n **/ // \\', "a"),
        (rb'["/*\"", ",]\\" , /* ] */ ]', ['/*"', ",]\\"]),
        (b'["https://x.example/",\t// one\n\t// two\n\n/* three */]', ["https://x.example/"]),
    ],
)
def test_escapes_quotes_and_comments_do_not_hide_each_other(read, text, value):
    assert read(b'{"mcpServers":' + text + b"\n}") == {"mcpServers": value}


@pytest.mark.parametrize("gap", [b"", b"\n \t"])
def test_a_thousand_comments_in_a_row(gap):
    """More than the matcher takes in one step, with what only looks like one behind them."""
    assert whole(b'{"mcpServers":' + (gap + b"/* \" */// '\n") * 1500 + b'"/*"}') == {"mcpServers": "/*"}


@pytest.mark.parametrize(
    "junk",
    [
        b"/*" * 200_000,
        b'"/*"' * 100_000,
        b'"' * 500_000,
        b'"\\"' * 100_000,
        b'"' + b"\\" * 500_000,
        b'"' + b'\\"' * 250_000,
        b'"",' * 100_000 + b"/*" + b"*" * 400_000,
        b"/*" + b"* " * 200_000,
        b"/**/ " * 100_000,
        b"," * 400_000,
        b", " * 200_000,
        b"," + b" " * 400_000,
    ],
)
def test_hostile_comments_end(junk):
    """Quadratic matching of any of these would take minutes; the suite's time limit would end it."""
    with pytest.raises(Malformed):
        whole(b"[" + junk)


# --- properties

texts = st.text(st.sampled_from('a"\\/*,]}\n\ud83d\ude00\x7f é'), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
claude = st.fixed_dictionaries(
    {},
    optional={
        "mcpServers": values,
        "history": values,
        "projects": values | st.dictionaries(
            texts,
            values | st.fixed_dictionaries({}, optional={"mcpServers": values, "disabledMcpServers": values, "h": values}),
            max_size=3,
        ),
    },
)  # fmt: skip


def reach(document: object) -> object:
    """What the pointers of CLAUDE reach, the plain way."""
    if not isinstance(document, dict):
        return [] if isinstance(document, list) else document
    found = {key: document[key] for key in ("mcpServers", "projects") if key in document}
    projects = found.get("projects")
    if isinstance(projects, list):
        found["projects"] = []
    if isinstance(projects, dict):
        found["projects"] = {
            path: {key: record[key] for key in ("mcpServers", "disabledMcpServers") if key in record}
            if isinstance(record, dict)
            else ([] if isinstance(record, list) else record)
            for path, record in projects.items()
        }
    return found


@given(claude, st.booleans())
@settings(max_examples=300, deadline=None)
def test_pruned_reading_equals_whole_reading_of_the_same_pointers(document, ascii_only):
    data = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert pruned(data) == reach(whole(data))


@given(values, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_comments_and_commas_at_every_gap_change_nothing(value, rng):
    def gap() -> str:
        return rng.choice(["", " ", "/* ]}, */", "// x,]\n", "/**/", "\n"])

    def write(item: object) -> str:
        if isinstance(item, list) and item:
            return (
                "[" + ",".join(gap() + write(i) + gap() for i in item) + rng.choice(["", ","]) + gap() + "]"
            )
        if isinstance(item, dict) and item:
            pairs = (gap() + json.dumps(k) + gap() + ":" + gap() + write(v) + gap() for k, v in item.items())
            return "{" + ",".join(pairs) + rng.choice(["", ","]) + gap() + "}"
        return json.dumps(item)

    text = f'{{"mcpServers":{write(value)}}}'.encode()
    plain = f'{{"mcpServers":{json.dumps(value)}}}'.encode()
    out = blank(text)
    assert len(out) == len(text)
    assert out.count(b"\n") == text.count(b"\n")
    assert whole(text) == whole(plain)


SEEDS = [
    b'{"mcpServers":{"a":{"command":"npx","args":["-y",0.5,1e3,true,null]}},"projects":{"/p":{"mcpServers":{}}}}',
    b'// c\n{"mcpServers":{"\\ud83d\\ude00":"\\ud83d \xc3\xa9\xff"},/* x */"projects":{"/a\\ud83d":{"disabledMcpServers":["x",]}},}',
    b'\xef\xbb\xbf{"a":[[{"b":[]}]],"mcpServers":[1,-0,1E+2,"\\u0041\\n\\\\"],"projects":[{}]}',
]
PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"/", b"*", b"//", b"\\ud83d", b"\xff", b"\0", b"1", b"e", b" ", b"\n", b"\x7f", b"NaN", b'"mcpServers"']  # fmt: skip


def mutate(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(out) + 1)
        out[at : at + rng.randrange(3)] = rng.choice(PIECES)
    return bytes(out)


@given(st.sampled_from(SEEDS) | st.binary(max_size=60), st.randoms(use_true_random=False))
@settings(max_examples=600, deadline=None)
def test_any_bytes_give_data_or_malformed_and_both_ways_agree(seed, rng):
    data = mutate(rng, seed)
    results = []
    for read in (whole, pruned):
        try:
            value = read(data)
        except Malformed:
            value = "no"
        results.append({} if value is None else reach(value) if isinstance(value, dict | list) else "no")
    assert results[0] == results[1]


NODE = """
const lines = require('fs').readFileSync(0, 'utf8').trim().split('\\n');
for (const line of lines) {
  let text = Buffer.from(line, 'base64').toString('utf8');
  if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
  let out = 'refused';
  try { out = JSON.stringify(JSON.parse(text)); } catch {}
  console.log(out);
}
"""


def as_doubles(value: object) -> object:
    """Read every number as JavaScript does; what does not fit a double is null in its JSON."""
    if isinstance(value, Number):
        number = float(value)
        return None if number in (float("inf"), float("-inf")) else number
    if isinstance(value, dict):
        return {key: as_doubles(item) for key, item in value.items()}
    return [as_doubles(item) for item in value] if isinstance(value, list) else value


def test_agrees_with_node_on_mutated_files():
    """Where Node's JSON.parse reads a file, we read the same; where it does not, we do only for comments and commas."""
    node = shutil.which("node")
    if not node:
        pytest.skip("node is not installed")
    rng = random.Random(20261130)
    cases = [mutate(rng, rng.choice(SEEDS)) for _ in range(4000)]
    fed = "\n".join(base64.b64encode(case).decode() for case in cases)
    answer = subprocess.run(
        [node, "-e", NODE], input=fed, capture_output=True, text=True, timeout=HANG, check=True
    )
    accepted = 0
    for case, line in zip(cases, answer.stdout.splitlines(), strict=True):
        try:
            ours: object = as_doubles(whole(case))
        except Malformed:
            ours = Malformed
        if line == "refused":
            assert ours is Malformed or blank(case) != case or not case.removeprefix(b"\xef\xbb\xbf").strip()
            continue
        theirs = json.loads(line, parse_int=float)
        if isinstance(theirs, dict | list):
            accepted += 1
            assert ours == theirs, case
    assert accepted > 500
