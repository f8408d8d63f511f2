# SPDX-License-Identifier: Apache-2.0
"""Servers that a plugin's manifest brings: inline, or in a file of the plugin that the manifest names.

A manifest may point anywhere; only a path that stays inside the plugin's own folder is read, through the same
anchor as all else. What lies elsewhere is not followed and is named in `not_covered` (design 4).
"""

import posixpath

from halod.harnesses.scan import Scan, Source

PLUGIN_SOURCES = "plugin-sources"
_ROOTS = ("${CLAUDE_PLUGIN_ROOT}/", "${PLUGIN_ROOT}/")
BUNDLES = (".mcpb", ".dxt")


def inside(text: str) -> str | None:
    """Give a manifest's path relative to the plugin's folder, or None when it does not stay inside."""
    for root in _ROOTS:
        text = text.removeprefix(root)
    if (
        not text
        or text.startswith(("/", "~"))
        or "$" in text
        or "://" in text
        or "\0" in text
        or "\\" in text
    ):
        return None
    path = posixpath.normpath(text)
    return None if path in {".", ".."} or path.startswith("../") else path


def folder(source: Source) -> str:
    """Give the folder of a plugin: the path through the last wildcard of its location."""
    pattern = source.location.path[2:].split("/")
    last = max(index for index, component in enumerate(pattern) if "*" in component)
    return "/".join(source.path.split("/")[: last + 1])


def named(scan: Scan, source: Source, root: str, parts: tuple[str, ...], text: str) -> Source | None:
    """Give the file that a manifest's `text` names in a plugin's folder `root`; None for one not to read.

    Its location is the file's own where it has one, else that of all files of the plugin.
    """
    path = inside(text)
    if path is None or not root:
        return None
    for number, location in enumerate(scan.locations):
        if location.harness != source.location.harness or location.role != "plugin":
            continue
        pattern = location.path[2:]
        base = "/".join(pattern.split("/")[: root.count("/") + 1])
        if len(parts) != base.count("*") or not _fits(root, base):
            continue
        if pattern == f"{base}/{path}":
            return Source(number, location, f"{root}/{path}", parts)
        if location.place.pointed and pattern == f"{base}/**":
            return Source(number, location, f"{root}/{path}", (*parts, path))
    return None


def _fits(root: str, base: str) -> bool:
    components = zip(root.split("/"), base.split("/"), strict=True)
    return all(wild in ("*", given) for given, wild in components)
