# SPDX-License-Identifier: Apache-2.0
"""What TLS trusts and shows: the organisation's own CA and a client certificate.

Made before the agent drops its rights: the client key is root's. It therefore needs nothing but the standard
library. Certificates and host names are always verified; there is no switch that turns this off.
"""

import ssl
from typing import NoReturn

from halod.errors import UsageError


def tls_context(ca_file: str = "", client_cert: str = "", client_key: str = "") -> ssl.SSLContext:
    """Make the context of a connection to the console: TLS 1.2 or later, certificate and host name checked.

    With `ca_file` (PEM) only its certificates are trusted, without it those of the system. `client_cert`
    (PEM, with its chain) and `client_key` (PEM, may be in the same file) are shown to a server that asks.

    Raises:
        UsageError: a file cannot be read, holds no certificate, or the key is encrypted or another one's.
    """
    context = _trusting(ca_file)
    if client_cert:
        _show(context, client_cert, client_key)
    elif client_key:
        raise UsageError("report.client_key is set without report.client_cert")
    return context


def _trusting(ca_file: str) -> ssl.SSLContext:
    if ca_file:
        try:
            return ssl.create_default_context(cafile=ca_file)
        except (OSError, ValueError):
            raise UsageError(
                "report.ca_file cannot be read or holds no certificate",
                advice="it must be a PEM file with one or more CA certificates",
            ) from None
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or paths.capath):
        # A Python that was built elsewhere (a self-contained build) may look where this system keeps nothing.
        import certifi

        context.load_verify_locations(cafile=certifi.where())
    return context


def _show(context: ssl.SSLContext, client_cert: str, client_key: str) -> None:
    try:
        context.load_cert_chain(client_cert, client_key or None, password=_no_password)
    except (OSError, ValueError):
        raise UsageError(
            "report.client_cert and report.client_key cannot be used together",
            advice="both must be PEM, belong together, and the key may not be encrypted",
        ) from None


def _no_password() -> NoReturn:
    """Refuse an encrypted key: OpenSSL would otherwise ask for its password at the terminal."""
    raise ValueError("the key is encrypted")
