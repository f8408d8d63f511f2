# SPDX-License-Identifier: Apache-2.0
"""Lines of keys in TOML, against texts whose lines are plain to see."""

import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.settings.locate import line_of, locate


def test_headers_and_keys_have_their_lines():
    text = '# note\n[device]\nring = "a" # = not a key\n\n[report]\nurl = "https://x.example/#[table]"\n'
    assert locate(text) == {("device",): 2, ("device", "ring"): 3, ("report",): 5, ("report", "url"): 6}


def test_dotted_keys_and_headers():
    lines = locate('device.ring = "a"\nscan . "interval" = 1\n[log.inner]\na.b.c = 1\n')
    assert lines[("device",)] == lines[("device", "ring")] == 1
    assert lines[("scan", "interval")] == 2
    assert lines[("log", "inner", "a", "b", "c")] == 4


def test_quoted_keys():
    lines = locate(
        '["de.vice"]\n\'a = b\' = 1\n"q\\"\\u00e9\\x41\\U0001F600\\n" = 2\n[ \'x\' . "y" ]\n"" = 3\n'
    )
    assert lines[("de.vice",)] == 1
    assert lines[("de.vice", "a = b")] == 2
    assert lines[("de.vice", 'q"éA\U0001f600\n')] == 3
    assert lines[("x", "y", "")] == 5


def test_arrays_of_tables_are_numbered():
    text = "[[s.e]]\na = 1\n[[s.e]]\na = 2\n[s.e.sub]\nb = 3\n[[s.e.list]]\nc = 1\n[[s.e.list]]\nc = 2\n"
    lines = locate(text)
    assert lines[("s", "e", 0, "a")] == 2
    assert lines[("s", "e", 1, "a")] == 4
    assert lines[("s", "e", 1, "sub", "b")] == 6
    assert lines[("s", "e", 1, "list", 1, "c")] == 10


def test_multi_line_strings_hide_what_looks_like_keys():
    text = 'a = """\n[b]\nc = 1 \\""" x\n"""""\nd = \'\'\'\n[e]\nf = \'\' 1\n\'\'\'\'\'\ng = 1\n'
    assert tomli.loads(text)["g"] == 1
    assert locate(text) == {("a",): 1, ("d",): 5, ("g",): 9}


def test_arrays_and_inline_tables_over_several_lines():
    text = 'a = [ # one ]\n  "x]",\n  [1,\n   2],\n]\nb = { c = 1, d.e = [ 2 ], # }\n  f = "}" }\ng = 1979-05-27 07:32:00\n'
    lines = locate(text)
    assert (lines[("a", 0)], lines[("a", 1)], lines[("a", 1, 1)]) == (2, 3, 4)
    assert (lines[("b", "c")], lines[("b", "d", "e", 0)], lines[("b", "f")]) == (6, 6, 7)
    assert lines[("g",)] == 8


def test_the_nearest_thing_around_gives_the_line():
    lines = {("a",): 3}
    assert line_of(lines, ("a", "b", 0)) == 3
    assert line_of(lines, ("x",)) == 1


def test_a_text_that_is_no_toml_keeps_what_was_found():
    assert locate("a = 1\nb = }\nc = 3\n") == {("a",): 1, ("b",): 2}
    for text in (
        "=",
        "[",
        "[a",
        "a",
        'a = "',
        "a = [1 2",
        "a = {b = 1 c = 2",
        "[[a]\n",
        "a = " + "[" * 50_000,
    ):
        locate(text)


_keys = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=6)
_values = st.recursive(
    st.integers(-9, 9) | st.booleans() | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)


def written(value) -> str:
    """Write a value as TOML on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return (
            '"' + "".join(c if c.isalnum() or c in " #[]{}=,.'" else f"\\U{ord(c):08x}" for c in value) + '"'
        )
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    return "{" + ", ".join(f"{written(key)} = {written(item)}" for key, item in value.items()) + "}"


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(_keys, st.dictionaries(_keys, _values, max_size=4), max_size=4))
def test_every_key_of_any_document_is_found_on_its_line(document):
    """Each table's header and each of its keys stand on the line where they were written."""
    text, expected = "", {}
    for name, table in document.items():
        text += f"[{written(name)}]\n"
        expected[(name,)] = text.count("\n")
        for key, value in table.items():
            text += f"{written(key)} = {written(value)} # x\n"
            expected[(name, key)] = text.count("\n")
    assert tomli.loads(text) == document
    found = locate(text)
    assert {path: found.get(path) for path in expected} == expected


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab.=[]{}\"'#\\\n, 1"), max_size=60))
def test_any_text_ends(text):
    """Whatever the text is, the walk ends and every line is one of the text's."""
    assert all(1 <= line <= text.count("\n") + 1 for line in locate(text).values())
