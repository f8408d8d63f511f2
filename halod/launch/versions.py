# SPDX-License-Identifier: Apache-2.0
"""Names and exact versions of the four comparable ecosystems (launchers.md 2.2, 4, 6, 7).

Invariants:

1. A text is exact, or None: ranges, tags, `latest`, wildcards and anything unusual are None.
2. All grammars are ASCII. A look-alike character is never folded into an ASCII one.
"""

import re

import msgspec

_NPM_NAME = re.compile(r"(?:@[a-zA-Z0-9~*!'()][a-zA-Z0-9._~*!'()-]*/)?[a-zA-Z0-9~*!'()][a-zA-Z0-9._~*!'()-]*")
_NPM_VERSION = re.compile(
    r"(0|[1-9][0-9]{0,15})\.(0|[1-9][0-9]{0,15})\.(0|[1-9][0-9]{0,15})"
    r"(-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_NPM_MAX = 2**53 - 1
_BLANKS = " \t\r\n\f\v"
_PYPI_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PEP440 = re.compile(
    r"v?(?:(?P<epoch>[0-9]{1,9})!)?(?P<release>[0-9]{1,18}(?:\.[0-9]{1,18}){0,15})"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_n>[0-9]{0,18}))?"
    r"(?:-(?P<post_implicit>[0-9]{1,18})|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>[0-9]{0,18}))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_n>[0-9]{0,18}))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_PRE = {"alpha": "a", "a": "a", "beta": "b", "b": "b", "c": "rc", "rc": "rc", "pre": "rc", "preview": "rc"}
_NUGET_NAME = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
_NUGET_VERSION = re.compile(
    r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_OCI_HOST = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
    r"|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
)
_OCI_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*")
_OCI_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_TEXT = 512


class Reference(msgspec.Struct, frozen=True):
    """An image reference: `name` is `registry/repository`; `short` when the text names no registry."""

    name: str
    tag: str | None
    digest: str | None
    short: bool
    single: bool


def npm_version(text: str) -> str | None:
    """Give an exact npm version without blanks, `=`, `v` and build metadata; None when it is not exact.

    npm also runs loose forms (`01.0.0`, `1.0.0foo`); they count as unpinned (launchers.md 2.2).
    """
    if len(text) > _MAX_TEXT:
        return None
    bare = text.strip(_BLANKS).removeprefix("=").removeprefix("v")
    match = _NPM_VERSION.fullmatch(bare)
    if match is None or len(bare) > 256 or any(int(part) > _NPM_MAX for part in match.group(1, 2, 3)):
        return None
    return bare.partition("+")[0]


def npm_name(text: str) -> str | None:
    """Give `text` when it is an npm package name, as written: npm names have case."""
    return text if len(text) <= 214 and _NPM_NAME.fullmatch(text) else None


def pypi_name(text: str) -> str | None:
    """Give a PyPI name in PEP 503 form: lower case, runs of `-_.` as one `-`."""
    if len(text) > _MAX_TEXT or _PYPI_NAME.fullmatch(text) is None:
        return None
    return re.sub(r"[-_.]+", "-", text).lower()


def pypi_version(text: str) -> str | None:
    """Give a PEP 440 version in normal form (`1.0-ALPHA.1` is `1.0a1`); None when `text` is not one.

    Trailing zeros of the release stay as written; `same_version` ignores them.
    """
    if len(text) > _MAX_TEXT or not text.isascii():
        return None
    match = _PEP440.fullmatch(text.lower())
    if match is None:
        return None
    epoch = int(match["epoch"] or 0)
    out = f"{epoch}!" if epoch else ""
    out += ".".join(str(int(part)) for part in match["release"].split("."))
    if match["pre"]:
        out += f"{_PRE[match['pre']]}{int(match['pre_n'] or 0)}"
    if match["post_implicit"] or match["post"]:
        out += f".post{int(match['post_implicit'] or match['post_n'] or 0)}"
    if match["dev"]:
        out += f".dev{int(match['dev_n'] or 0)}"
    if match["local"]:
        parts = re.split(r"[-_.]", match["local"])
        out += "+" + ".".join(str(int(part)) if part.isdigit() else part for part in parts)
    return out


def nuget_version(text: str) -> str | None:
    """Give a NuGet version in normal form: three parts, a fourth unless 0, label lower-case, no metadata."""
    if len(text) > _MAX_TEXT:
        return None
    match = _NUGET_VERSION.fullmatch(text)
    if match is None:
        return None
    numbers = [int(part or 0) for part in match.group(1, 2, 3, 4)]
    if not numbers[3]:
        numbers.pop()
    label = match[5]
    return ".".join(map(str, numbers)) + (f"-{label.lower()}" if label else "")


def reference(text: str) -> Reference | None:
    """Read an image reference by the rules of distribution/reference; None when it is not one.

    The digest decides and the tag is decoration beside it. Only sha256 digests are read.
    """
    if len(text) > _MAX_TEXT:
        return None
    name, at, digest = text.partition("@")
    if at and _SHA256.fullmatch(digest) is None:
        return None
    slash, colon = name.rfind("/"), name.rfind(":")
    tag = None
    if colon > slash:
        name, tag = name[:colon], name[colon + 1 :]
        if _OCI_TAG.fullmatch(tag) is None:
            return None
    first, has_path, rest = name.partition("/")
    short = not has_path or not (
        "." in first or ":" in first or first == "localhost" or first.lower() != first
    )
    host, path = ("docker.io", name) if short else (first, rest)
    if _OCI_HOST.fullmatch(host) is None or _OCI_PATH.fullmatch(path) is None:
        return None
    if host == "index.docker.io":
        host = "docker.io"
    single = host == "docker.io" and "/" not in path
    full = f"{host}/library/{path}" if single else f"{host}/{path}"
    if len(full) > 255:
        return None
    return Reference(name=full, tag=tag, digest=digest or None, short=short, single=single)


def exact_version(ecosystem: str, text: str) -> str | None:
    """Give an exact version in the form that a Launch has, or None for a range, a tag or nonsense.

    For `oci` the version is the tag, a label only: the digest is the pin.
    """
    if ecosystem == "npm":
        return npm_version(text)
    if ecosystem == "pypi":
        return pypi_version(text)
    if ecosystem == "nuget":
        return nuget_version(text)
    if ecosystem == "oci":
        return text if _OCI_TAG.fullmatch(text) else None
    return None


def canonical_identifier(ecosystem: str, text: str) -> str | None:
    """Give a package name or image in the form that a Launch has; None when it is not one.

    An `oci` identifier carries neither tag nor digest here.
    """
    if ecosystem == "npm":
        return npm_name(text)
    if ecosystem == "pypi":
        return pypi_name(text)
    if ecosystem == "nuget":
        return text.lower() if len(text) <= 100 and _NUGET_NAME.fullmatch(text) else None
    if ecosystem == "oci":
        image = reference(text)
        return image.name if image is not None and image.tag is None and image.digest is None else None
    return None


def same_version(ecosystem: str, left: str, right: str) -> bool:
    """Tell whether two exact versions are one: as text, and for PyPI without trailing zeros of the release.

    A local version (`1.2.0+x`) is another version than 1.2.0.
    """
    if left == right:
        return True
    return ecosystem == "pypi" and _without_zeros(left) == _without_zeros(right)


def _without_zeros(version: str) -> str:
    match = re.match(r"(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*", version)
    if match is None:
        return version
    return re.sub(r"(?:\.0+)+$", "", match[0]) + version[match.end() :]
