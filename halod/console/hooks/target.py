# SPDX-License-Identifier: Apache-2.0
"""Where webhooks go: what a `[[webhook]]` of the settings has to be, and the signature of what is sent there.

Invariants:

1. https only, or http to a loopback address. The address is the administrator's own word, so it may lead into a
   private network (docs/webhooks.md); nothing that a device or a caller sends has a part in it.
2. The secret is in a file that not everybody can read, is read anew for each round, and is in no message.
3. The signature is that of Standard Webhooks 1.0 (`v1`, HMAC-SHA256 over `id.timestamp.body`), one for each secret
   in the file, so that a receiver can change from one to the next.
"""

import base64
import binascii
import hmac
import os
import re
import ssl
import stat
from collections.abc import Iterable
from hashlib import sha256
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import msgspec

from halod.console.settings import Hook
from halod.console.settings.kinds import EVENTS
from halod.errors import UsageError

PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = range(24, 65)
_MOST_SECRETS: Final = 4
_FILE_LIMIT: Final = 1024
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook that can be sent to."""

    hook: Hook
    secrets: tuple[bytes, ...]

    def __repr__(self) -> str:
        """Tell the name alone."""
        return f"Target({self.hook.name!r})"


def check(hooks: Iterable[Hook]) -> None:
    """Check every webhook of the settings, its secret and its certificates, before anything is sent.

    Raises:
        UsageError: one cannot be used.
    """
    names = set()
    for hook in hooks:
        if _NAME.fullmatch(hook.name) is None:
            raise UsageError(
                "a webhook's name is of a-z, 0-9, dot, underscore and hyphen, at most 63 of them"
            )
        if hook.name in names:
            raise UsageError(f'two webhooks are called "{hook.name}"')
        names.add(hook.name)
        target(hook)
        tls(hook)


def target(hook: Hook) -> Target:
    """Give what is needed to send to a webhook.

    Raises:
        UsageError: its address, its events or its secret is no good. The message quotes none of them.
    """
    _check_url(hook)
    if unknown := sorted(set(hook.events) - set(EVENTS)):
        raise _wrong(
            hook, f'has an event that there is not: "{unknown[0][:40]}"', "events are " + ", ".join(EVENTS)
        )
    if not hook.events:
        raise _wrong(hook, "has no events", "events are " + ", ".join(EVENTS))
    return Target(hook=hook, secrets=_secrets(hook))


def sign(secrets: Iterable[bytes], identity: str, timestamp: int, body: bytes) -> str:
    """Give the value of `webhook-signature`."""
    content = b"%b.%d.%b" % (identity.encode(), timestamp, body)
    digests = (hmac.digest(secret, content, sha256) for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def tls(hook: Hook) -> ssl.SSLContext:
    """Give the certificates that the receiver's is checked with: the system's, or `ca_file`. Raises UsageError."""
    try:
        return ssl.create_default_context(cafile=hook.ca_file or None)
    except (OSError, ssl.SSLError):
        raise _wrong(hook, "has a ca_file that cannot be read", "it holds certificates in PEM form") from None


def is_loopback(host: str) -> bool:
    """Tell whether a host as written is this machine's own address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _check_url(hook: Hook) -> None:
    try:
        parts = urlsplit(hook.url)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        raise _wrong(hook, "has a malformed url", "https://HOST/PATH") from None
    if not hook.url.isascii() or not hook.url.isprintable() or " " in hook.url:
        raise _wrong(hook, "has characters in its url that a URL cannot hold", "https://HOST/PATH")
    if parts.scheme not in {"https", "http"} or not host:
        raise _wrong(hook, "has no url that begins with https:// and names a host", "https://HOST/PATH")
    if "@" in parts.netloc or "#" in hook.url:
        raise _wrong(hook, "has a user name or a fragment in its url", "the signature says who sends")
    if parts.scheme == "http" and not is_loopback(host):
        raise _wrong(hook, "goes over plain http", "http is for loopback addresses (127.0.0.1, [::1]) only")


def _secrets(hook: Hook) -> tuple[bytes, ...]:
    found = []
    for line in _read(hook).split():
        try:
            secret = base64.b64decode(line.removeprefix(PREFIX), validate=True)
        except (ValueError, binascii.Error):
            secret = b""
        if not line.startswith(PREFIX) or len(secret) not in _SECRET_BYTES:
            raise _wrong(hook, "has a secret_file without a secret in it", _ADVICE)
        found.append(secret)
    if not 1 <= len(found) <= _MOST_SECRETS:
        raise _wrong(hook, "has a secret_file without a secret in it", _ADVICE)
    return tuple(found)


_ADVICE: Final = (
    "it holds whsec_ and the base64 of 24 to 64 random bytes, the next secret after a space;"
    " halo-server webhooks secret makes one"
)


def _read(hook: Hook) -> str:
    try:
        descriptor = os.open(hook.secret_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise _wrong(hook, "has a secret_file that is no file", _ADVICE)
            if mode & 0o007:
                raise _wrong(hook, "has a secret_file that everybody can read", "chmod o= FILE")
            return file.read(_FILE_LIMIT).decode("ascii")
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise _wrong(hook, f"has a secret_file that cannot be read: {reason}", _ADVICE) from None
    except UnicodeDecodeError:
        raise _wrong(hook, "has a secret_file without a secret in it", _ADVICE) from None


def _wrong(hook: Hook, what: str, advice: str) -> UsageError:
    return UsageError(f'the webhook "{hook.name[:63]}" {what}', advice=advice)
