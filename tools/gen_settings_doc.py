# SPDX-License-Identifier: Apache-2.0
"""Write docs/settings.md from the types of halod.settings; with `--check`, only compare."""

import sys
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from halod.settings import locations, model  # noqa: E402 - the checkout's own package
from halod.settings.values import Described, described  # noqa: E402

TARGET = ROOT / "docs" / "settings.md"

HEAD = """\
# halod.toml: the settings

<!-- Written by tools/gen_settings_doc.py from halod/settings/model.py: change those. -->

The settings of the service, in TOML: what this device is, where its policy comes from and where reports go.
`halod check` reads them and everything they name, and says in words what is wrong; `packaging/halod.toml` is a
commented sample.

| system | file |
|---|---|
| Linux | `{linux}` |
| macOS | `{macos}` |
| both | another one with `--config FILE` |

Every table and key is optional; an empty file is valid. Unknown ones are faults, with a did-you-mean. All faults are
told at once, one `file:line: message` a line, and the service does not start with any: it never uses a part of its
settings.

```console
$ halod check --config /etc/halod/halod.toml
fault     settings: /etc/halod/halod.toml:3: device: unknown key "acounts"; did you mean "accounts"?
fault     settings: /etc/halod/halod.toml:7: report.url: must be https; http is for a loopback host only
```

The file, what it names, and every directory on the way to these must be writable by root alone: running as root, the
service refuses to start otherwise. Secrets stand in files of their own (root's, mode 0600); the settings themselves
may be read by everybody. SIGHUP (`systemctl reload halod`) reads everything anew.
"""

TAIL = """\
## How values are written

* **path**: absolute, without `..`; `~` and variables are not expanded. Not running as root, a relative path begins at
  the directory of the settings file.
* **URL**: `https://`, without user name, password and fragment; `http://` to a loopback host only.
* **duration**: a number of seconds, or text with a unit: `"90s"`, `"15m"`, `"6h"`, `"1d"`.
* **size**: a number of bytes, or text with a unit: `"512 KiB"`, `"64 MiB"`.
* Text is one line without control characters, at most 64 characters where it is a name.

## Managed preferences (macOS)

A device management server can set the same keys in the preference domain `dev.halos.halod`, which the system lays
down as `{managed}`: one dictionary for each table, with the keys of this page.

```xml
<key>report</key>
<dict>
  <key>url</key>
  <string>https://halos.acme.example/api/v1/fleet/report</string>
  <key>enroll_key_file</key>
  <string>/Library/Application Support/halod/enroll.key</string>
</dict>
```

Precedence, key by key: managed preferences, then the file, then the defaults. A list is replaced whole. A managed
`policy.path` or `policy.url` replaces either of the file, and so does a managed `report.token_file` or
`report.enroll_key_file`. With managed preferences the file may be missing. Every account can read managed
preferences, so a secret in them (`token`, `enroll_key` and the like) is a fault; the path of a secret's file is none.
"""


def main() -> int:
    """Exit 1 when `--check` finds that the file is not what would be written."""
    text = document()
    if "--check" in sys.argv[1:]:
        current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        if not current:
            print(f"{TARGET.name} is not current: run tools/gen_settings_doc.py", file=sys.stderr)
        return 0 if current else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


def document() -> str:
    """Give the whole page."""
    linux, macos = model.places("linux"), model.places("darwin")
    parts = [HEAD.format(linux=linux.settings, macos=macos.settings)]
    parts += [table(name) for name in model.TABLES]
    parts.append(extra_locations())
    parts.append(TAIL.format(managed=macos.managed))
    return "\n".join(parts)


def table(name: str) -> str:
    """Describe one table."""
    kind = type(getattr(model.Settings(), name))
    defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
    rows = [
        f"| `{key}` | {form(said)} | {said.default or shown(defaults[key])} | {said.words} |"
        for key, said in described(kind).items()
    ]
    summary = (kind.__doc__ or "").splitlines()[0]
    return "\n".join(
        [f"## `[{name}]`", "", summary, "", "| key | value | without it | |", "|---|---|---|---|", *rows, ""]
    )


def extra_locations() -> str:
    """Describe the members of scan.extra_locations."""
    rows = [f"| `{key}` | {said.words} |" for key, said in described(model.ExtraLocation).items()]
    summary = (model.ExtraLocation.__doc__ or "").splitlines()[0]
    return "\n".join(
        [
            "### `[[scan.extra_locations]]`",
            "",
            f"{summary} Formats: {', '.join(f'`{word}`' for word in locations.FORMATS)}.",
            "",
            "| key | |",
            "|---|---|",
            *rows,
            "",
        ]
    )


FORMS = {
    "account": "account name",
    "accounts": '`"console"`, `"all"`, list of names',
    "duration": "duration",
    "flag": "`true`, `false`",
    "keys": "list of keys",
    "label": "text",
    "labels": "list of texts",
    "locations": "list of tables",
    "path": "path",
    "roots": "list of paths",
    "size": "size",
    "url": "URL",
}


def form(said: Described) -> str:
    """Say how a value is written."""
    if said.kind == "choice":
        return ", ".join(f'`"{word}"`' for word in said.choices)
    return FORMS[said.kind]


def shown(default: object) -> str:
    """Write a default as TOML does; "none" where nothing is set."""
    if default in ("", ()):
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, int):
        mebibytes = f" ({default // model.MIB} MiB)" if default >= model.MIB else ""
        return f"`{default}`{mebibytes}"
    return f'`"{default}"`'


if __name__ == "__main__":
    sys.exit(main())
