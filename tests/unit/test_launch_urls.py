# SPDX-License-Identifier: Apache-2.0
"""URLs: the canonical form, what is refused, and the host a WHATWG client connects to."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.launch.hosts import ipv6, punycode_decode, punycode_encode, whatwg_ipv4
from halod.launch.urls import canonical_url, parse_url, whatwg_host


def canonical(url):
    parts = parse_url(url)
    return canonical_url(parts) if parts is not None else None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h", "https://h/"),
        ("HTTPS://H:443/", "https://h/"),
        ("https://h:/", "https://h/"),
        ("https://h:0443/", "https://h/"),
        ("https://h:8443/", "https://h:8443/"),
        ("https://h:0/", "https://h:0/"),
        ("https://h/%6D%7e%2d/%2f%3b", "https://h/m~-/%2F%3B"),
        ("https://h/a/./b/../c", "https://h/a/c"),
        ("https://h/../..", "https://h/"),
        ("https://h/a/..", "https://h/"),
        ("https://h/a/.", "https://h/a/"),
        ("https://h//a//", "https://h//a//"),
        ("https://h/a%2Eb", "https://h/a.b"),
        ("https://h/%e3%81%82%e3", "https://h/%E3%81%82%E3"),
        ("https://h?", "https://h/?"),
        ("https://h?a=%6d&b=%2f", "https://h/?a=m&b=%2F"),
        ("https://h#", "https://h/#"),
        ("https://h/x#f", "https://h/x#f"),
        ("https://h./", "https://h./"),
        ("https://h_1-/", "https://h_1-/"),
        ("https://B\u00dccher.example/", "https://xn--bcher-kva.example/"),
        ("https://stra\u00dfe.de", "https://xn--strae-oqa.de/"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"),
        ("https://\u65e5\u672c.example/", "https://xn--wgv71a.example/"),
        ("https://[2001:DB8:0:0::10]:443/", "https://[2001:db8::10]/"),
        ("https://[::ffff:1.2.3.4]/", "https://[::ffff:102:304]/"),
        ("https://192.0.2.1/", "https://192.0.2.1/"),
        ("http://localhost:8931/sse", "http://localhost:8931/sse"),
        ("http://127.0.0.1:80/", "http://127.0.0.1/"),
        ("http://[::1]/", "http://[::1]/"),
    ],
)
def test_canonical(url, expected):
    """Safe normalisations only, and a canonical URL is its own canonical form."""
    assert canonical(url) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "not a url",
        "h/mcp",
        "//h/mcp",
        "https:h/",
        "https:/h/",
        "https:///h/",
        "https://",
        "https:///",
        "https://?x",
        "https://:443/",
        "https://@/",
        "ftp://h/",
        "file:///x",
        "javascript:x",
        "https://h\\@evil/",
        "https://h\\/",
        "https://h/a\\b",
        "https://a@b@h/",
        "https://us er@h/",
        " https://h/",
        "https://h/ ",
        "https://h/\n",
        "\ufeffhttps://h/",
        "https://ex\tample/",
        "https://ex\nample/",
        "https://h/a\tb",
        "https://h/a b",
        "https://h/\u00e9",
        "https://h/%",
        "https://h/%zz",
        "https://h/%2",
        "https://h/%2e",
        "https://h/%2e%2e/x",
        "https://h/%2E./x",
        "https://h/.%2e",
        "https://h%70/",
        "https://h:99999/",
        "https://h:8a/",
        "https://h:1234567890/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://256.1.1.1/",
        "https://127.0.0.1./",
        "https://h.0x1/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://[1::2::3]/",
        "https://[1:2:3:4:5:6:7:8:9]/",
        "https://[::12345]/",
        "https://[::1.2.3]/",
        "https://[]/",
        "https://.h/",
        "https://a..b/",
        "https://" + "a" * 64 + "/",
        "https://" + "a." * 130 + "a/",
        "https://\uff45xample/",
        "https://ex\u00adample/",
        "https://a\u3002b/",
        "https://bu\u0308cher/",
        "https://a\u200db/",
        "https://\u05d0/",
        "https://\u212a/",
        "https://\u0130/",
        "https://\u1e9e/",
        "https://\u13a0/",
        "https://xn--/",
        "https://xn--zca--/",
        "https://xn--a/",
        "https://${H}/",
        "https://{env:H}/",
        "https://<host>/",
        "https://h/${X}",
        "https://h/{x}",
        "https://h/<x>",
        "https://h/$X",
        "https://h/`x`",
        "https://h/a|b",
        "https://h/\ud800",
        "https://h/" + "a" * 40000,
    ],
)
def test_no_parts(url):
    """What parsers read differently has no parts, so it is never equal to, or near, anything."""
    assert parse_url(url) is None


@pytest.mark.parametrize(
    ("url", "scheme", "port"),
    [
        ("https://u:p%40w@h/mcp", "https", None),
        ("http://h/mcp", "http", None),
        ("http://h:8080/mcp", "http", 8080),
        ("http://127.0.0.1.example/mcp", "http", None),
        ("ws://h/mcp", "ws", None),
        ("wss://h:443/mcp", "wss", None),
        ("https://h/mcp?k=${KEY}", "https", None),
        ("https://h/mcp?k={env:KEY}", "https", None),
        ("https://h/mcp?k=$KEY", "https", None),
        ("https://h/mcp?k=<key>", "https", None),
        ("https://h/mcp?k=a b", "https", None),
        ("https://h/mcp?k=%zz", "https", None),
        ("https://h/mcp?k=\u00e9", "https", None),
        ("https://h/mcp#${X}", "https", None),
    ],
)
def test_parts_without_a_canonical_form(url, scheme, port):
    """Drift can be told from the parts, and nothing is approved."""
    parts = parse_url(url)

    assert parts is not None
    assert (parts.scheme, parts.port, parts.path, parts.comparable) == (scheme, port, "/mcp", False)
    assert canonical_url(parts) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://h/mcp", "https://h/mcp/"),
        ("https://h/mcp", "https://h/MCP"),
        ("https://h/mcp", "https://h./mcp"),
        ("https://h/mcp", "https://www.h/mcp"),
        ("https://h/mcp", "https://h:8443/mcp"),
        ("https://h/mcp", "https://h/mcp?"),
        ("https://h/mcp", "https://h/mcp#"),
        ("https://h//mcp", "https://h/mcp"),
        ("https://h/a%2Fb", "https://h/a/b"),
        ("https://h/a%3Bb", "https://h/a;b"),
        ("https://h/?a=1&b=2", "https://h/?b=2&a=1"),
        ("https://h/?a=+", "https://h/?a=%20"),
        ("http://localhost/", "http://127.0.0.1/"),
        ("http://localhost/", "https://localhost/"),
        ("https://a.example/", "https://\u0430.example/"),
    ],
)
def test_different_urls_stay_different(one, other):
    """None of these may be taken for the other."""
    assert canonical(one) is not None
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://h/x", "h"),
        ("https://H:443", "h"),
        ("http://h:443", "h:443"),
        ("http://h:80", "h"),
        ("https://h:", "h"),
        ("https://h:00443", "h"),
        ("wss://h:8443/x", "h:8443"),
        ("https:h", "h"),
        ("https:\\\\h\\x", "h"),
        ("https:///h/x", "h"),
        (" \thttps://h\n/x ", "h"),
        ("https://exam\nple.com", "example.com"),
        ("https://evil.example\\@good.example/", "evil.example"),
        ("https://u:p@h/", "h"),
        ("https://good@evil@h:1/", "h:1"),
        ("https://${USER}:${PW}@h/", "h"),
        ("https://exam%70le.com", "example.com"),
        ("https://%e3%81%82.example", "xn--l8j.example"),
        ("https://\uff45xample\u3002com", "example.com"),
        ("https://b\u00fccher", "xn--bcher-kva"),
        ("https://stra\u00dfe", "xn--strae-oqa"),
        ("https://ex\u00adample", "example"),
        ("https://\u05d0.example", "xn--4db.example"),
        ("https://0x7f.1", "127.0.0.1"),
        ("https://2130706433", "127.0.0.1"),
        ("https://0177.0.0.1:8080", "127.0.0.1:8080"),
        ("https://127.0.0.1.", "127.0.0.1"),
        ("http://[0:0::1]:3000", "[::1]:3000"),
        ("https://[::FFFF:1.2.3.4]", "[::ffff:102:304]"),
        ("https://xn--bcher-kva", "xn--bcher-kva"),
        ("https://h?x", "h"),
        ("https://h#x", "h"),
    ],
)
def test_whatwg_host(url, host):
    """The host that Node and Electron connect to."""
    assert whatwg_host(url) == host


@pytest.mark.parametrize(
    "url",
    [
        "",
        "not a url",
        "h/x",
        "ftp://h/",
        "file:///x",
        "https://",
        "https://@",
        "https://:80",
        "https://${H}/",
        "https://${H:-a/b}/",
        "https://${H:-u@h}/x",
        "https://{env:H}/",
        "https://$H/",
        "https://%H%/",
        "https://<h>/",
        "https://${A}.example/",
        "https://h:${P}/",
        "https://h:x/",
        "https://h:65536/",
        "https://h:123456789/",
        "https://a b/",
        "https://a|b/",
        "https://a%00b/",
        "https://a%2fb/",
        "https://a%zz/",
        "https://1.2.3.4.5/",
        "https://256.256.256.256/",
        "https://a.09/",
        "https://[::1/",
        "https://[::1]x/",
        "https://[fe80::1%25eth0]/",
        "https://xn--a/",
        "https://a\u200db/",
        "https://\u0300a/",
        "https://\u05d0a/",
        "https://a\ufffd/",
        "https://\ue000/",
        "https://" + "\u00e9" * 600,
        "https://" + "\u00e9" * 300,
        "https://" + "a" * 40000,
    ],
)
def test_whatwg_host_that_cannot_be_told(url):
    """A variable, an error, or what only a newer table could tell is "", never a guess."""
    assert whatwg_host(url) == ""


TEXTS = st.text(max_size=40) | st.lists(
    st.sampled_from(
        [
            "https:",
            "http:",
            "//",
            "/",
            "\\",
            "@",
            ":",
            "443",
            "[",
            "]",
            "::1",
            "%2e",
            "%",
            "a",
            ".",
            "?",
            "#",
            "\t",
            "\u00e9",
            "\u00df",
            "\u3002",
            "xn--",
            "1",
            "0x7f",
            "${",
            "}",
            "..",
            "b.example",
            " ",
        ]
    ),
    max_size=12,
).map("".join)


@given(TEXTS)
@settings(max_examples=400)
def test_any_text(url):
    """Nothing raises; a canonical URL is stable, ASCII, and names the host a client would connect to."""
    host, parts = whatwg_host(url), parse_url(url)

    assert host.isascii()
    if parts is not None:
        port = "" if parts.port is None else f":{parts.port}"
        assert host in {f"{parts.host}{port}", ""}
        found = canonical_url(parts)
        if found is not None:
            assert found.isascii()
            assert canonical(found) == found
            assert urlsplit(found).path == parts.path


@given(st.text(min_size=1, max_size=30))
def test_punycode_is_the_codec_s(text):
    """Our Punycode is Python's, which is not imported at run time."""
    if any("A" <= char <= "Z" or "\ud800" <= char <= "\udfff" for char in text):
        return
    encoded = text.encode("punycode").decode()

    assert punycode_encode(text) == encoded
    if not text.isascii():
        assert punycode_decode(encoded) == text


@given(st.text("abcz019-", max_size=20))
def test_punycode_decoding_never_raises(text):
    """Malformed Punycode is None."""
    decoded = punycode_decode(text)

    assert decoded is None or isinstance(decoded, str)


def test_limits_of_hosts():
    """Oversized pieces are refused before any work."""
    assert punycode_encode("\u00e9" * 300) is None
    assert punycode_decode("a" * 300) is None
    assert punycode_decode("99999999") is None
    assert ipv6("1:" * 40) is None
    assert whatwg_ipv4("0" * 70) is None
    assert whatwg_ipv4("1..2") is None
    assert whatwg_ipv4("0x") == "0.0.0.0"
    assert ipv6("0:1:0:0:1:0:0:0") == "0:1:0:0:1::"
    assert ipv6("1:2:3:4:5:6:7:8") == "1:2:3:4:5:6:7:8"
    assert ipv6("1:2:3:4:5:6:7") is None
    assert ipv6("1:2:3:4:5:6:7::8") is None
