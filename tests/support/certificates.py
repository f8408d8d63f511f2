# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests: an authority, and what it signs. Written as PEM files, keys included."""

import datetime as dt
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def pem_key(key, password=None):
    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)


class Authority:
    """A certificate authority; `file` holds its certificate."""

    def __init__(self, directory, name="acme-ca"):
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        usage = x509.KeyUsage(*[False] * 5, True, True, *[False] * 2)
        built = (
            self._builder(self._subject, self._key, NOW - DAY, NOW + DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = directory / f"{name}.pem"
        self.file.write_bytes(built.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject, key, start, end):
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )

    def issue(self, name, *, host="", address="", start=NOW - DAY, end=NOW + DAY, password=None):
        """Sign a certificate; gives the path of a PEM file with it and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(host)] if host else []
        names += [x509.IPAddress(ipaddress.ip_address(address))] if address else []
        builder = self._builder(_name(name), key, start, end).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        built = builder.sign(self._key, hashes.SHA256())
        file = self._directory / f"{name}.pem"
        file.write_bytes(built.public_bytes(serialization.Encoding.PEM) + pem_key(key, password))
        return file
