# SPDX-License-Identifier: Apache-2.0
"""Strict YAML: what is refused, where, and what scalars mean."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.policy import yamlpos
from halod.policy.yamlpos import Broken, Items, Node, Pairs, Text, kind, read, shown


def plain(node: Node) -> object:
    """The tree as plain Python values: texts as written."""
    if isinstance(node, Text):
        return node.text
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    if isinstance(node, Pairs):
        return {key.text: plain(value) for key, value in node.pairs}
    return Broken


def problems(data: bytes) -> list[str]:
    return [f"{p.line}:{p.column}: {p.message}" for p in read(data).problems]


def test_positions_start_at_one_and_count_characters():
    root = read("näme: [a, {ü: bé}]\nb:\n  - 'x'\n".encode()).root
    assert isinstance(root, Pairs)
    (first, items), (second, block) = root.pairs
    assert (first.line, first.column) == (1, 1)
    assert (items.line, items.column) == (1, 7)
    assert isinstance(items, Items)
    assert (items.items[1].line, items.items[1].column) == (1, 11)
    assert (second.line, second.column) == (2, 1)
    assert (block.line, block.column) == (3, 3)
    assert plain(root) == {"näme": ["a", {"ü": "bé"}], "b": ["x"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no", "text"),
        ("off", "text"),
        ("Yes", "text"),
        ("22:22", "text"),
        ("2027-06-30", "text"),
        ("1.2.3", "text"),
        ("1_000", "text"),
        ("0b1", "text"),
        ("<", "text"),
        ("", "nothing"),
        ("~", "nothing"),
        ("null", "nothing"),
        ("NULL", "nothing"),
        ("nULL", "text"),
        ("true", "a boolean"),
        ("FALSE", "a boolean"),
        ("tRUE", "text"),
        ("0", "a number"),
        ("-12", "a number"),
        ("0o17", "a number"),
        ("0xBe", "a number"),
        ("1.10", "a number"),
        ("1e3", "a number"),
        (".5", "a number"),
        ("5.", "a number"),
        ("-.inf", "a number"),
        (".NaN", "a number"),
        ('"1.10"', "text"),
        ("'null'", "text"),
        ("[]", "a list"),
        ("{}", "a mapping"),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, expected: str):
    root = read(f"a: {text}\n".encode()).root
    assert isinstance(root, Pairs)
    assert kind(root.pairs[0][1]) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a: &x 1\nb: *x\n", ["1:4: anchors are not allowed", "2:4: aliases are not allowed; write the value out"]),
        (b"a: &x [1]\n", ["1:4: anchors are not allowed"]),
        (b"a: !!str 1\nb: !x {}\n", ["1:4: tags are not allowed", "2:4: tags are not allowed"]),
        (b"a: !!python/object/apply:os.system [CANARY]\n", ["1:4: tags are not allowed"]),
        (b"%TAG ! tag:x,2000:\n---\na: 1\n", ["1:1: tag directives are not allowed"]),
        (b"a: 1\nb: 2\na: 3\n", ['3:1: duplicate key "a", first on line 1']),
        (b"a: 1\n'a': 3\n", ['2:1: duplicate key "a", first on line 1']),
        (b"x:\n  <<: {a: 1}\n", ["2:3: merge keys are not allowed; write the keys out"]),
        (b"? [a]\n: 1\n", ["1:3: a key must be text, got a list"]),
        (b"? {a: 1}\n: 1\n", ["1:3: a key must be text, got a mapping"]),
        (b"? &k a\n: 1\n*k : 2\n", ["1:3: anchors are not allowed", "3:1: aliases are not allowed; write the value out"]),
        (b"a: 1\n---\nb: 2\n", ["2:1: a second document starts here; a policy is one document"]),
        (b"a: 1\nb: \xff\n", ["2:4: the file is not UTF-8 here"]),
        ("ä: \udcff".encode("utf-8", "surrogateescape"), ["1:4: the file is not UTF-8 here"]),
        ("a: 1".encode("utf-16"), ["1:1: the file is not UTF-8 here"]),
        (b"a: 1\r\nb: \x01\rc: \x00", [
            "2:4: the character U+0001 is not allowed; write an escape",
            "3:4: the character U+0000 is not allowed; write an escape",
        ]),
        ("a: x\u202ey".encode(), ["1:5: the character U+202E is not allowed; write an escape"]),
        ("a: x\u2066y".encode(), ["1:5: the character U+2066 is not allowed; write an escape"]),
        ("a: x\u2028y".encode(), ["1:5: the character U+2028 is not allowed; write an escape"]),
        ("a: x\x85y".encode(), ["1:5: the character U+0085 is not allowed; write an escape"]),
        ("\ufeffa: x\ufeffy".encode(), ["1:5: the character U+FEFF is not allowed; write an escape"]),
    ],
)  # fmt: skip
def test_what_is_refused_and_where(data: bytes, expected: list[str]):
    assert problems(data) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: `x`", "1:4: not valid YAML: no value starts with this (a tab? use spaces); quote it"),
        ("a:\n\t- b", "2:1: not valid YAML: no value starts with this (a tab? use spaces); quote it"),
        ("a: b: c", '1:5: not valid YAML: unexpected ":"; quote a text that contains ": "'),
        ("[a", '2:1: not valid YAML: expected "," or "]"'),
        ("{a: 1, b", '2:1: not valid YAML: expected "," or "}"'),
        ("- a\nb: 1", '2:1: not valid YAML: expected a list item that starts with "- "'),
        ("a:\n  - x\n b: 1", "3:2: not valid YAML: expected a key; check the indentation and the quotes"),
        ("a: }", "1:4: not valid YAML: expected a value"),
        ("a: 1\nfoo\n", '3:1: not valid YAML: expected ":" after a key'),
        ("a: 1\nb: 'x\ny\n", "2:4: not valid YAML: the quoted text that starts here never ends"),
        ('a: "\\q"', "1:5: not valid YAML: unknown escape in a double-quoted text"),
        ('a: "\\ud800"', "1:7: not valid YAML: unknown escape in a double-quoted text"),
        ("%YAML 2.0\n---\na: 1", "1:1: not valid YAML: a YAML version other than 1.1 and 1.2"),
        ("%FOO\n---\na: 1", "1:5: not valid YAML: cannot be read from here"),
    ],
)  # fmt: skip
def test_a_syntax_error_is_one_problem_in_our_words(text: str, expected: str):
    document = read(text.encode())
    assert document.root is None
    assert [f"{p.line}:{p.column}: {p.message}" for p in document.problems] == [expected]


def test_faults_before_a_syntax_error_are_reported_with_it():
    assert len(problems(b"a: &x 1\nb: `\n")) == 2


def test_a_fault_of_one_part_leaves_the_rest_of_the_tree():
    root = read(b"a: &x 1\nb: *x\n<<: {c: 1}\nd: [*x, 2]\n").root
    assert root is not None
    assert plain(root) == {"a": "1", "b": Broken, "d": [Broken, "2"]}


def test_a_byte_order_mark_is_dropped_and_moves_no_column():
    document = read(b"\xef\xbb\xbfa: *x")
    assert [(p.line, p.column) for p in document.problems] == [(1, 4)]


def test_nesting_is_allowed_to_the_limit_and_not_beyond():
    deep = b"[" * yamlpos.MAX_DEPTH + b"]" * yamlpos.MAX_DEPTH
    assert problems(deep) == []
    assert problems(b"[" + deep + b"]") == [f"1:{yamlpos.MAX_DEPTH + 1}: nested more than 32 levels deep"]


def test_a_hundred_thousand_brackets_end_at_once():
    assert len(problems(b"[" * 100_000)) == 1


def test_refused_characters_are_named_up_to_a_limit():
    assert len(problems(b"\x00" * 1000)) == yamlpos.MAX_BAD_CHARACTERS


@pytest.mark.parametrize("data", [b"", b"\n \n", b"# only a comment\n", b"---\n...\n"])
def test_an_empty_file_has_no_tree_or_an_empty_one(data: bytes):
    document = read(data)
    assert document.problems == []
    assert document.root is None or kind(document.root) == "nothing"


def test_shown_is_one_printable_line_of_limited_length():
    assert shown('a\nb\u202e"') == '"a\\u000ab\\u202e""'
    assert shown("x" * 100) == '"' + "x" * 59 + '…"'


def test_a_parser_error_without_a_place_is_at_the_start():
    problem = yamlpos._syntax_problem(yaml.MarkedYAMLError(problem="did not find expected key"))
    assert (problem.line, problem.column) == (1, 1)


TREES = st.recursive(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Zl", "Zp"]), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdé<", min_size=1), inner, max_size=4)
    ),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(TREES, st.booleans())
def test_what_a_yaml_writer_writes_is_read_back(tree: object, flow: bool):
    text = yaml.safe_dump(tree, allow_unicode=True, default_flow_style=flow, width=1000)
    document = read(text.encode())
    assert document.problems == [] or "<<" in text
    if document.root is not None and not document.problems:
        assert plain(document.root) == tree


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=200) | st.text("&*!|>%@`'\"{}[],:#-?<~ \n\ta0.\u2028é", max_size=120).map(str.encode)
)
def test_any_bytes_give_a_tree_or_problems(data: bytes):
    document = read(data)
    for problem in document.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert "\n" not in problem.message
