# SPDX-License-Identifier: Apache-2.0
"""Private keys of the person who signs policies: files in PEM (PKCS #8), theirs alone. For `halo`.

What stands in a key's file reaches no message.
"""

import base64
import os
import stat

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from halod.errors import UsageError
from halod.policy.signed import public_bytes

_MOST = 16 * 1024


def make(path: str) -> Ed25519PrivateKey:
    """Make a key and write it to a new file, mode 0600.

    Raises UsageError when the file is there already or cannot be written, or standard output is meant.
    """
    if path == "-":
        raise UsageError(
            "a private key goes into a file, never to standard output", advice="name it with --out"
        )
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(
            f"{path} is there already, and a key that was overwritten signs nothing any more",
            advice="name another file with --out",
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {_why(error)}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        os.unlink(path)
        raise UsageError(f"cannot write {path}: {_why(error)}") from None
    return key


def read(path: str) -> Ed25519PrivateKey:
    """Read a key.

    Raises UsageError when the file cannot be read, is no regular file, others can read it, or it holds no plain
    Ed25519 key.
    """
    if path == "-":
        raise UsageError(
            "a private key is read from a file, never from standard input", advice="halo keygen makes one"
        )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            regular = stat.S_ISREG(found.st_mode)
            data = file.read(_MOST) if regular else b""
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read the key {path}: {_why(error)}", advice="halo keygen makes one"
        ) from None
    if not regular:
        raise UsageError(
            f"the key {path} is no regular file", advice="a key lies in a file that is its owner's alone"
        )
    if found.st_mode & 0o077:
        raise UsageError(f"others can read the key {path}", advice=f"chmod 0600 {path}")
    try:
        key = serialization.load_pem_private_key(data, None)
    except TypeError:
        raise UsageError(
            f"the key {path} is encrypted", advice="decrypt it first: openssl pkey -in KEY -out PLAIN"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            f"{path} holds no Ed25519 private key in PEM", advice="halo keygen makes one"
        ) from None
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """Give the public half as policy.public_keys takes it: 32 bytes in base64."""
    return base64.b64encode(public_bytes(key)).decode()


def _why(error: OSError | ValueError) -> str:
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else "no path"
