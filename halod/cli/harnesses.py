# SPDX-License-Identifier: Apache-2.0
"""`halod harnesses`: which AI tools and files a scan covers, and how sure that is."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halod.harnesses.dialect import Harness

NAME = "harnesses"
HELP = "list the AI tools and files that a scan covers"
DESCRIPTION = """\
List the AI tools whose MCP configs a scan reads, and their files. Every file is looked for on both systems,
since a home can be a backup, a mounted disk, or synced.

confidence: A the vendor's documentation or source, B several independent sources,
            C one source, D not confirmed
role:       user the person's own settings, shared a file that several tools read, plugin what comes with
            a plugin or extension, agent the definition of an agent, legacy where an older release kept
            them, state what is installed or switched off"""
EXAMPLES = """\
examples:
  halod harnesses                    every tool with its files
  halod harnesses cursor codex       two of them
  halod harnesses --format json      the same for a program, each path written out"""

_NOTE = """\
<VSC> is the data folder of VS Code or a relative of it (Code - Insiders, VSCodium, Windsurf, Kiro, ...),
<CODE> the same without those that have a file of their own. --format json writes every path out.
"""
_MORE = "halod harnesses --help explains the letters and words.\n"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("ids", metavar="ID", nargs="*", help="only these tools")
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="what to print (default: table)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the coverage.

    Raises:
        UsageError: there is no tool of a given id.
    """
    from halod.cli.scan import known_harnesses
    from halod.harnesses import HARNESSES

    wanted = known_harnesses(args.ids)
    chosen = [harness for harness in HARNESSES if wanted is None or harness.id in wanted]
    if args.format == "json":
        import msgspec

        sys.stdout.write(msgspec.json.encode([_record(harness) for harness in chosen]).decode() + "\n")
    else:
        sys.stdout.write(_table(chosen))
    return 0


def _confidence(harness: "Harness") -> str:
    """The best of its own files: what is known of a plugin folder says nothing of the main file."""
    own = [place.confidence for place in harness.places if place.role in {"user", "shared"}]
    return min(own or [place.confidence for place in harness.places])


def _record(harness: "Harness") -> dict[str, Any]:
    from halod.harnesses import LOCATIONS

    return {
        "id": harness.id,
        "name": harness.name,
        "aliases": list(harness.aliases),
        "confidence": _confidence(harness),
        "files": [
            {
                "path": location.path,
                "role": location.role,
                "format": location.format,
                "tables": list(location.tables),
                "scope": location.scope,
                "confidence": location.confidence,
            }
            for location in LOCATIONS
            if location.harness == harness.id
        ],
    }


def _table(harnesses: "list[Harness]") -> str:
    from halod.cli.colour import Paint, wanted
    from halod.cli.table import count, grid

    paint = Paint(enabled=wanted(sys.stdout))
    heads = [(harness.id, harness.name, _confidence(harness)) for harness in harnesses]
    summary = grid([("ID", "NAME", "CONFIDENCE"), *heads])
    pages = [summary]
    for harness in harnesses:
        pages.append(f"\n{paint('bold', harness.id)}\n")
        rows: list[tuple[str, ...]] = [
            ("  " + place.path, place.role, place.confidence) for place in harness.places
        ]
        pages.append(grid(rows))
    places = [place for harness in harnesses for place in harness.places]
    patterned = any(place.path.startswith("<") for place in places)
    closing = f"\n{count(len(harnesses), 'tool')}, {count(len(places), 'place')}. {_MORE}"
    return "".join(pages) + closing + (_NOTE if patterned else "")
