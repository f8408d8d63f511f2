# SPDX-License-Identifier: Apache-2.0
"""What the door for HTTP decides without a connection: words for faults, proxies, tokens."""

import errno
import socket
import ssl

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.agent import http
from halod.agent.bounded import NotLoopback, TooMuch
from halod.agent.faults import WORDS, Fault, kind_of
from halod.agent.http import is_loopback
from halod.settings.secret import is_token


def caused(outer, inner):
    outer.__cause__ = inner
    return outer


def verification(code):
    error = ssl.SSLCertVerificationError("CANARY")
    error.verify_code = code
    return error


def alert(reason):
    error = ssl.SSLError("CANARY")
    error.reason = reason
    return error


CASES = [
    (caused(httpcore.ConnectError(), socket.gaierror(socket.EAI_NONAME, "CANARY")), "dns"),
    (UnicodeError("label too long"), "dns"),
    (caused(httpcore.ConnectError(), ConnectionRefusedError()), "connection-refused"),
    (caused(httpcore.ConnectError(), OSError(errno.ENETUNREACH, "")), "unreachable"),
    (caused(httpcore.ConnectError(), OSError(errno.EHOSTUNREACH, "")), "unreachable"),
    (httpcore.ConnectError("CANARY"), "unreachable"),
    (caused(httpcore.ConnectTimeout(), TimeoutError()), "timeout"),
    (httpcore.ReadTimeout("deadline"), "timeout"),
    (httpcore.PoolTimeout(), "timeout"),
    (caused(httpcore.ReadError(), ConnectionResetError()), "closed"),
    (caused(httpcore.WriteError(), BrokenPipeError()), "closed"),
    (httpcore.ReadError("CANARY"), "closed"),
    (httpcore.RemoteProtocolError("Server disconnected without sending a response."), "closed"),
    (httpcore.RemoteProtocolError("illegal status line CANARY"), "protocol"),
    (httpcore.ProxyError("407 CANARY"), "proxy"),
    (NotLoopback(), "plain-http"),
    (TooMuch(), "protocol"),
    (ValueError("CANARY"), "protocol"),
    *[(caused(httpcore.ConnectError(), verification(code)), "tls-expired") for code in (9, 10)],
    *[(caused(httpcore.ConnectError(), verification(code)), "tls-hostname") for code in (62, 64)],
    *[
        (caused(httpcore.ConnectError(), verification(code)), "tls-unknown-ca")
        for code in (2, 18, 19, 20, 21)
    ],
    (verification(23), "tls-other"),
    (ssl.SSLEOFError(), "closed"),
    (ssl.SSLZeroReturnError(), "closed"),
    (alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "tls-client-certificate"),
    (alert("TLSV1_ALERT_UNKNOWN_CA"), "tls-client-certificate"),
    (alert("WRONG_VERSION_NUMBER"), "tls-other"),
    (alert(None), "tls-other"),
]


@pytest.mark.parametrize(("error", "kind"), CASES)
def test_the_word_for_an_error(error, kind):
    """The cause decides, wherever in the chain it is."""
    assert kind_of(error) == kind
    outer = RuntimeError("CANARY")
    outer.__context__ = error
    assert kind_of(outer) == kind


def test_a_chain_that_goes_round():
    """Exceptions may refer to each other."""
    one, two = ValueError(), ValueError()
    one.__context__, two.__context__ = two, one
    assert kind_of(one) == "protocol"


def test_there_are_words_for_each():
    """A person reads a sentence, and never a piece of a URL."""
    assert {kind for _, kind in CASES} <= set(WORDS)
    assert all(words and words[0].islower() and not words.endswith(".") for words in WORDS.values())
    assert (str(Fault("redirect", 302)), Fault("redirect", 302).status) == ("redirect", 302)


@pytest.mark.parametrize(
    ("no_proxy", "excepted"),
    [
        ("", False),
        ("*", True),
        ("console.acme.example", True),
        ("CONSOLE.acme.example", True),
        ("acme.example", True),
        (".acme.example", True),
        ("*.acme.example", True),
        ("other.example, acme.example", True),
        ("me.example", False),
        ("console.acme.example:443", True),
        ("console.acme.example:8443", False),
        ("example", True),
        ("10.0.0.0/8", False),
        (",,", False),
        (".", False),
    ],
)
def test_no_proxy(monkeypatch, no_proxy, excepted):
    """NO_PROXY names hosts and what is below them."""
    _environment(monkeypatch, HTTPS_PROXY="http://proxy.acme.example:3128", NO_PROXY=no_proxy)
    expected = None if excepted else "http://proxy.acme.example:3128"
    assert http._proxy_for("console.acme.example", None) == expected


@pytest.mark.parametrize(
    ("host", "port", "no_proxy", "excepted"),
    [
        ("10.1.2.3", None, "10.0.0.0/8", True),
        ("10.1.2.3", None, "10.1.2.3", True),
        ("11.1.2.3", None, "10.0.0.0/8", False),
        ("10.1.2.3", None, "10.0.0.0/99", False),
        ("fd00::1", None, "fd00::/8", True),
        ("fd00::1", None, "fd00::1", True),
        ("10.1.2.3", 8443, "10.1.2.3:8443", True),
        ("10.1.2.3", 8443, "10.1.2.3:443", False),
    ],
)
def test_no_proxy_of_addresses(monkeypatch, host, port, no_proxy, excepted):
    """Addresses and networks, too."""
    _environment(monkeypatch, HTTPS_PROXY="http://proxy.acme.example:3128", NO_PROXY=no_proxy)
    assert (http._proxy_for(host, port) is None) == excepted


def _environment(monkeypatch, **variables):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_an_http_proxy_is_for_http(monkeypatch):
    """Reports go by https: HTTP_PROXY says nothing about them."""
    _environment(monkeypatch, HTTP_PROXY="http://proxy.acme.example:3128")
    assert http._proxy_for("console.acme.example", None) is None


def test_tokens():
    """Visible ASCII, not endless: nothing that could break out of a header."""
    assert is_token("a-b.c_d~e+f/g==")
    for bad in ("", "a b", "a\r\nX: y", "ä", "\x7f", "a" * 4097):
        assert not is_token(bad)


@given(st.text())
def test_loopback_of_any_text(host):
    """A host as text is judged without a look-up."""
    assert is_loopback(host) in {True, False}
