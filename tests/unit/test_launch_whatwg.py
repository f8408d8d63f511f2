# SPDX-License-Identifier: Apache-2.0
"""The host of `whatwg_host` and of `parse_url` against Node's own URL parser, where Node is at hand."""

import json
import random
import re
import shutil
import subprocess
import unicodedata

import pytest

from halod.launch.urls import canonical_url, parse_url, whatwg_host
from tests.support.guard import HANG

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: nothing to compare with")

PROGRAM = """
const urls = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const seen = urls.map((text) => {
  try { const url = new URL(text); return [url.protocol, url.host, url.pathname, url.href]; }
  catch (error) { return null; }
});
console.log(JSON.stringify(seen));
"""
PIECES = [
    "https://",
    "http://",
    "HTTPS:",
    "https:/",
    "https:\\\\",
    "wss://",
    "/",
    "\\",
    "//",
    "@",
    "user",
    "u:p@",
    "example",
    ".",
    "com",
    "127.1",
    "0x7f.1",
    "2130706433",
    "1.2.3.4",
    "0177.0.0.1",
    "256.1.1.1",
    "[::1]",
    "[2001:DB8::10]",
    "[::ffff:1.2.3.4]",
    "[1::2::3]",
    "[::1",
    "]",
    ":443",
    ":80",
    ":8443",
    ":0443",
    ":",
    ":99999",
    ":0",
    "\t",
    "\n",
    " ",
    "\x00",
    "%70",
    "%2e",
    "%zz",
    "%",
    "%E3%81%82",
    "\u00e9",
    "\u00df",
    "\u00dc",
    "xn--mnchen-3ya",
    "xn--",
    "xn--a",
    "\u3002",
    "\uff0e",
    "\u00ad",
    "\u200b",
    "\ufeff",
    "\uff45",
    "\u0663",
    "\u05d0",
    "\u0430",
    "\u65e5\u672c",
    "a_b",
    "-",
    "?q",
    "#f",
    "/mcp",
    "/a/../b",
    "/./",
    "/%2e%2e/",
    "/%6d",
    "~",
    "|",
    "^",
    "`",
    '"',
    "'",
    "<",
    ">",
    "*",
    "!",
    "&",
    ";",
    "x" * 63,
]


def ask_node(urls):
    done = subprocess.run(
        [NODE, "-e", PROGRAM],
        input=json.dumps(urls),
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    return json.loads(done.stdout)


def normal(text):
    """Bring escapes to the form of RFC 3986: a client sends them as written, the meaning is the same."""

    def one(match):
        char = chr(int(match[0][1:], 16))
        return char if re.fullmatch("[A-Za-z0-9._~-]", char) else match[0].upper()

    return re.sub("%[0-9A-Fa-f]{2}", one, text)


def test_generated_urls_have_node_s_host():
    """On thousands of odd URLs the host is Node's or "", and what has parts has Node's host and path."""
    dice = random.Random(20261130)
    urls = [
        "https://" * (dice.random() < 0.6) + "".join(dice.choices(PIECES, k=dice.randint(1, 6)))
        for _ in range(6000)
    ]
    told = parsed = 0
    for url, seen in zip(urls, ask_node(urls), strict=True):
        theirs = seen[1] if seen and seen[0] in {"http:", "https:", "ws:", "wss:"} else ""
        own, parts = whatwg_host(url), parse_url(url)
        assert own in {theirs, ""}, ascii(url)
        told += bool(own)
        if parts is not None:
            parsed += 1
            assert seen is not None, ascii(url)
            assert parts.host + ("" if parts.port is None else f":{parts.port}") == theirs, ascii(url)
            assert parts.path == normal(seen[2]), ascii(url)
    assert told > 500
    assert parsed > 100


def test_equal_canonical_urls_are_one_url_to_node():
    """Spellings with one canonical form are one URL to a client."""
    dice = random.Random(7)
    parts = ["/", "a", ".", "..", "%6D", "m", "%2F", ":443", "?", "x", "#", "B.example", "b.EXAMPLE"]
    urls = ["https://b.example" + "".join(dice.choices(parts, k=dice.randint(0, 5))) for _ in range(3000)]
    seen = {}
    for url, theirs in zip(urls, ask_node(urls), strict=True):
        found = parse_url(url)
        canonical = canonical_url(found) if found is not None else None
        if canonical is not None:
            assert seen.setdefault(canonical, normal(theirs[3])) == normal(theirs[3]), ascii(url)
    assert len(seen) > 100


def test_every_code_point_in_a_host():
    """For each character the A-label is Node's or "", and the strict grammar never differs at all."""
    points = [point for point in range(0x80, 0x110000) if not 0xD800 <= point < 0xE000]
    points = [point for point in points if point < 0x3400 or point % 97 == 0 or 0xF900 <= point < 0x11000]
    urls = [f"https://a{chr(point)}b.example/" for point in points]
    told = plain = 0
    for url, seen in zip(urls, ask_node(urls), strict=True):
        own, parts = whatwg_host(url), parse_url(url)
        newer = unicodedata.category(url[9]) == "Cn"
        assert own in {(seen or ["", ""])[1], ""} or newer, ascii(url)
        told += bool(own)
        if parts is not None:
            plain += 1
            assert seen is not None, ascii(url)
            assert parts.host == seen[1], ascii(url)
    assert told > 5000
    assert plain > 1000
