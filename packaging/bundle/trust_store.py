# SPDX-License-Identifier: Apache-2.0
"""Runs first in the self-contained build: say where this system keeps its certificate authorities.

The OpenSSL of the build looks where the machine it was built on kept them. An administrator's own SSL_CERT_FILE
or SSL_CERT_DIR goes before.
"""

import os

_KEPT_AT = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS, BSD
)

if not os.environ.get("SSL_CERT_FILE") and not os.environ.get("SSL_CERT_DIR"):
    for _path in _KEPT_AT:
        if os.path.exists(_path):
            os.environ["SSL_CERT_FILE"] = _path
            break
