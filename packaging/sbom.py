# SPDX-License-Identifier: Apache-2.0
"""Write the CycloneDX bill of materials of a self-contained build.

The libraries are those of requirements/base.txt, with the hashes by which they are installed; to these come halod
itself, the Python that is inside, and every shared library of the system's that was copied in, by its sha256: what a
scanner that only reads a list of Python packages would never see. A library that the build does not contain (another
system's) is left out.
"""

import hashlib
import json
import platform
import re
import sqlite3
import ssl
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from importlib.metadata import distribution
from os import environ
from pathlib import Path
from zlib import ZLIB_RUNTIME_VERSION

ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+_-]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def main(application: Path, target: Path) -> int:
    """Write the document and say how many components it has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    libraries = [one for one in _libraries() if _installed(one["name"])]
    for library in libraries:
        library["licenses"] = _licenses(library["name"])
    itself = {
        "type": "application",
        "bom-ref": "halod",
        "name": "halod",
        "version": project["version"],
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
    }
    parts = [*libraries, _python(), *_shared(application)]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself, "timestamp": _time()},
        "components": sorted(parts, key=lambda part: (part["type"], part["name"])),
        "dependencies": [{"ref": "halod", "dependsOn": sorted(part["bom-ref"] for part in parts)}],
    }
    text = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}"
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{target.name}: {len(parts)} components")
    return 0


def _libraries() -> list[dict]:
    """Read the locked requirements: names, versions, and the hashes of the files that may be installed."""
    parts: list[dict] = []
    for line in (ROOT / "requirements" / "base.txt").read_text(encoding="utf-8").splitlines():
        pinned = _PIN.match(line)
        if pinned:
            name, version = pinned[1], pinned[2]
            parts.append(
                {
                    "type": "library",
                    "bom-ref": f"pypi:{name}",
                    "name": name,
                    "version": version,
                    "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
                    "properties": [],
                }
            )
        found = _HASH.search(line)
        if found:
            # Not `hashes`: these are of the files that pip accepts, one for each system, not of one component.
            parts[-1]["properties"].append({"name": "halod:acceptedFile:sha256", "value": found[1]})
    return parts


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except ModuleNotFoundError:
        return False
    return True


def _licenses(name: str) -> list[dict]:
    """Give what a library's own metadata say: an expression (PEP 639), or the older free text."""
    known = distribution(name).metadata
    if known.get("License-Expression"):
        return [{"expression": known["License-Expression"]}]
    named = [line.rsplit(" :: ", 1)[-1] for line in known.get_all("Classifier", []) if "License ::" in line]
    return [{"license": {"name": text}} for text in named[:1]]


def _python() -> dict:
    version = platform.python_version()
    return {
        "type": "framework",
        "bom-ref": "cpython",
        "name": "cpython",
        "version": version,
        "cpe": f"cpe:2.3:a:python:python:{version}:*:*:*:*:*:*:*",
        "licenses": [{"license": {"id": "Python-2.0"}}],
    }


def _shared(application: Path) -> list[dict]:
    """Describe the system's libraries in the build; the versions of those that tell theirs."""
    openssl = ssl.OPENSSL_VERSION.split()[1]
    told = {
        "libssl": openssl,
        "libcrypto": openssl,
        "libsqlite3": sqlite3.sqlite_version,
        "libz": ZLIB_RUNTIME_VERSION,
    }
    parts = []
    for path in sorted((application / "_internal").iterdir()):
        stem = path.name.partition(".")[0]
        if not path.is_file() or not stem.startswith("lib") or stem.startswith("libpython"):
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        part = {
            "type": "library",
            "bom-ref": f"file:{path.name}",
            "name": path.name,
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        if stem in told:
            part["version"] = told[stem]
        parts.append(part)
    return parts


def _time() -> str:
    return datetime.fromtimestamp(int(environ["SOURCE_DATE_EPOCH"]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
