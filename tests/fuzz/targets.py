# SPDX-License-Identifier: Apache-2.0
"""Every fuzz target by name, with its seeds. A target takes bytes and raises when an invariant does not hold."""

from pathlib import Path

from tests.fuzz import approval, documents, formats, homes, texts

HERE = Path(__file__).resolve().parent
TARGETS = {**formats.TARGETS, **homes.TARGETS, **texts.TARGETS, **approval.TARGETS, **documents.TARGETS}


def seeds(name):
    """The small inputs a target starts from, its corpus and every input that was ever found to break it."""
    folders = (HERE / "corpus" / name, HERE / "regressions" / name)
    return [path.read_bytes() for folder in folders for path in sorted(folder.glob("*"))]


def regressions():
    """(target, file) of every found input."""
    return [(path.parent.name, path) for path in sorted((HERE / "regressions").glob("*/*"))]
