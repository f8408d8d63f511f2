# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets for the decoders: data or Malformed, never another exception, never a piece of the text."""

from halod.harnesses.database import read_database
from halod.harnesses.dialect import Dialect
from halod.harnesses.formats import Malformed, Number, decode
from halod.harnesses.formats.json_pruned import plan
from halod.harnesses.formats.json_whole import decode_whole

TABLES = ("/mcpServers", "/projects/*/mcpServers", "/servers[]", "/a/b[]")
PLAIN = (str, Number, bool, type(None))


def attempt(read, *args):
    """Run a decoder; give its value, or the position of its Malformed, which must be all that it says."""
    try:
        return read(*args), None
    except Malformed as fault:
        assert fault.__cause__ is None
        assert fault.__context__ is None or isinstance(fault.__context__, Malformed)
        assert all(type(arg) is int and arg >= 0 for arg in fault.args)
        assert set(vars(fault)) <= {"line", "column"}
        return None, (fault.line, fault.column)


def is_plain(value):
    """Say whether a document is of plain data only; iterative, since it may be deep."""
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            if not all(type(key) is str for key in item):
                return False
            todo += item.values()
        elif type(item) is list:
            todo += item
        elif type(item) not in PLAIN:
            return False
    return True


def format_target(word):
    """The target of one format word."""

    def run(data):
        value, fault = attempt(decode, word, bytes(data), TABLES)
        again = attempt(decode, word, bytearray(data), TABLES)
        assert fault == again[1]
        if fault is None:
            assert repr(value) == repr(again[0])
            assert word == "xml" or (is_plain(value) and isinstance(value, (dict, list)))

    return run


def json_pruned(data):
    """The reader of big files agrees with the reader of small ones on what the pointers reach."""
    chosen = plan(TABLES)
    pruned, fault = attempt(chosen.decode, bytearray(data))
    whole, refused = attempt(decode_whole, bytes(data))
    # msgspec looks at skipped parts less closely: what it lets through may be read, never the other way.
    if refused is None and fault is None:
        assert reach(chosen.root, pruned) == reach(chosen.root, whole)
    assert refused is not None or fault is None or depth(whole) > 150


def depth(value):
    deepest, todo = 0, [(value, 1)]
    while todo:
        item, level = todo.pop()
        deepest = max(deepest, level)
        if isinstance(item, (dict, list)):
            todo += [(child, level + 1) for child in (item.values() if isinstance(item, dict) else item)]
    return deepest


def reach(node, value):
    """What a tree of pointers wants of a document."""
    if node.whole:
        return value
    if isinstance(value, dict):
        below = {key: node.star or node.names.get(key) for key in value}
        return {key: reach(child, value[key]) for key, child in below.items() if child}
    if isinstance(value, list):
        return [reach(node.items, item) for item in value] if node.items else []
    return value


def sqlite(data):
    """A database and perhaps its log: two bytes say where one ends, in units of 256 bytes."""
    cut = int.from_bytes(data[:2], "big") * 256
    body = data[2:]
    database, log = (body[:cut], body[cut:]) if cut else (body, None)
    for table in ("installed_apps", "mcp_server_installations"):
        found, _ = attempt(read_database, table, bytearray(database), log, Dialect())
        for slot in found.slots if found is not None else ():
            assert type(slot.name) is str
            assert is_plain(slot.entry)


WORDS = ("json", "jsonc", "json5", "toml", "yaml", "yaml-1.1", "markdown+yaml-frontmatter", "xml")
TARGETS = {word.replace("markdown+yaml-", ""): format_target(word) for word in WORDS}
TARGETS |= {"json-pruned": json_pruned, "sqlite": sqlite}
