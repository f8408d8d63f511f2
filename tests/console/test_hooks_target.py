# SPDX-License-Identifier: Apache-2.0
"""Where webhooks may go, their secrets, and signatures as the specification has them."""

import base64
import hmac
import os

import pytest

from halod.console.hooks import target
from halod.console.settings import Hook
from halod.console.settings.kinds import EVENTS
from halod.errors import UsageError
from tests.console.support_ops import SECRET, hook

URL = "https://chat.acme.example/hooks"


def refused(one):
    with pytest.raises(UsageError) as error:
        target.target(one)
    text = f"{error.value.message}; {error.value.advice}"
    assert "CANARY" not in text
    return text


def test_the_signature_is_that_of_the_specification():
    """A vector made by the reference libraries of Standard Webhooks, from their published tests."""
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    body = b'{"test": 2432232314}'
    made = target.sign([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_every_secret_signs():
    """So that a receiver can go from one to the next."""
    keys = [b"a" * 24, b"b" * 32]
    signatures = target.sign(keys, "msg_1", 1, b"x").split(" ")
    wanted = [base64.b64encode(hmac.digest(key, b"msg_1.1.x", "sha256")).decode() for key in keys]
    assert signatures == [f"v1,{one}" for one in wanted]


@pytest.mark.parametrize(
    "url",
    [
        URL, "https://chat.acme.example:8443/a?b=c", "https://10.0.0.7/", "http://127.0.0.1:9/", "http://[::1]/x",
        "http://127.9.9.9/", "https://[2001:db8::1]/",
    ],
)  # fmt: skip
def test_addresses_that_are_taken(url, tmp_path):
    """A private network is the administrator's own choice."""
    assert target.target(hook(tmp_path, url)).hook.url == url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://chat.acme.example/CANARY", "plain http"),
        ("http://localhost/CANARY", "plain http"),
        ("http://10.0.0.7/CANARY", "plain http"),
        ("http://2130706433/CANARY", "plain http"),
        ("http://127.1/CANARY", "plain http"),
        ("https://CANARY:pass@chat.acme.example/", "user name"),
        ("https://chat.acme.example/#CANARY", "fragment"),
        ("https://chat.acme.example/CANARY a", "characters"),
        ("https://chat.acme.example/CANARY\n", "characters"),
        ("https://chät.acme.example/CANARY", "characters"),
        ("ftp://chat.acme.example/CANARY", "begins with https"),
        ("https:///CANARY", "begins with https"),
        ("CANARY", "begins with https"),
        ("", "begins with https"),
        ("https://[CANARY", "malformed"),
        ("https://chat.acme.example:CANARY/", "malformed"),
        ("https://chat.acme.example:99999/CANARY", "malformed"),
    ],
)
def test_addresses_that_are_refused(url, words, tmp_path):
    """And never quoted: an address of a chat is a secret."""
    assert words in refused(hook(tmp_path, url))


@pytest.mark.parametrize(
    "text",
    [
        "", "CANARY", "whsec_CANARY!", "whsec_" + "QUJD" * 5, "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", f"{SECRET}\n" * 5, f"{SECRET}\nwhsec_CANARY", "whsec_\xff",
    ],
)  # fmt: skip
def test_secrets_that_are_none(text, tmp_path):
    """24 to 64 bytes in base64 with the prefix, one to four of them; what is in the file is not in the message."""
    one = hook(tmp_path, URL)
    with open(one.secret_file, "w", encoding="latin-1") as file:
        file.write(text)
    assert "without a secret in it" in refused(one)


def test_a_secret_that_everybody_can_read_is_none(tmp_path):
    one = hook(tmp_path, URL)
    os.chmod(one.secret_file, 0o644)
    assert "everybody can read" in refused(one)
    os.chmod(one.secret_file, 0o440)
    assert len(target.target(one).secrets) == 1


def test_a_secret_that_is_no_file(tmp_path):
    assert "cannot be read" in refused(Hook(name="chat", url=URL, secret_file=str(tmp_path / "missing")))
    assert refused(Hook(name="chat", url=URL, secret_file=str(tmp_path)))
    os.mkfifo(tmp_path / "fifo", 0o600)
    assert "no file" in refused(Hook(name="chat", url=URL, secret_file=str(tmp_path / "fifo")))


def test_two_secrets_are_read(tmp_path):
    other = "whsec_" + base64.b64encode(b"n" * 32).decode()
    found = target.target(hook(tmp_path, URL, secrets=(other, SECRET)))
    assert found.secrets == (b"n" * 32, base64.b64decode(SECRET.removeprefix("whsec_")))
    assert repr(found) == "Target('chat')"


def test_names_events_and_certificates_are_checked(tmp_path):
    """Before anything is sent, with what is wrong."""
    good = hook(tmp_path, URL)
    target.check([good, hook(tmp_path, URL, name="siem-2")])
    cases = [
        ([good, good], 'two webhooks are called "chat"'),
        ([hook(tmp_path, URL, name="Bad Name")], "name is of a-z"),
        ([hook(tmp_path, URL, events=("finding.new", "finding.old"))], "finding.old"),
        ([hook(tmp_path, URL, events=())], "no events"),
        ([hook(tmp_path, URL, ca_file=str(tmp_path / "missing.pem"))], "ca_file"),
        ([hook(tmp_path, URL, ca_file=good.secret_file)], "ca_file"),
    ]
    for hooks, words in cases:
        with pytest.raises(UsageError, match=words):
            target.check(hooks)


def test_the_events_of_the_settings_by_default_are_events():
    assert set(Hook(name="a", url="", secret_file="").events) <= set(EVENTS)
