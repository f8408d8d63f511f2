# SPDX-License-Identifier: Apache-2.0
"""Write docs/console-settings.md from the table of keys of halod.console.settings; with `--check`, only compare."""

import sys
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from halod.console.settings.fields import TABLES, Field, Table  # noqa: E402 - the checkout's own package

TARGET = ROOT / "docs" / "console-settings.md"

HEAD = """\
# halo-server.toml: the settings of the console

<!-- Written by tools/gen_console_settings_doc.py from halod/console/settings/fields.py: change that. -->

A console on one machine needs no settings: `halo-server serve` keeps everything in SQLite, listens on
`http://127.0.0.1:8640` and prints a link that signs you in. Everything else is said in one file of TOML, named with
`--config FILE`; `packaging/halo-server.toml` is a commented sample.

Every key is optional, but where it says "needed". Unknown keys are faults, with a did-you-mean; all faults are told at
once, one `file:line: message` a line, and nothing starts with any. Files that the settings name are looked at, too.

```console
$ halo-server serve --config halo-server.toml
halo-server: error: the settings have faults:
halo-server.toml:3: unknown key "publicurl"; did you mean "public_url"?
halo-server.toml:9: oidc: needs public_url: where the provider sends people back to
```

"""

TAIL = """\
## How values are written

* **path**: absolute, without `..`; `~` and variables are not expanded.
* **URL**: `https://`, without user name, password and fragment; `http://` to a loopback host only.
* **duration**: a number of seconds, or text with a unit: `"90s"`, `"15m"`, `"8h"`, `"30d"`.
* A file with a secret holds one line and is closed to other accounts (its group may read it): `chmod 600`.

## Where the database is

The first of these that is given: `--database-url`, `--database-url-file`, `--data-dir`, the variable
`HALO_DATABASE_URL`, `database_url_file`, `database_url`, and then SQLite in the account's own state directory
(`/var/lib/halo-server` for root). A password in `--database-url` can be seen by every account of the machine; the
console warns about it. SQLite is brought to the release's schema by `serve`; PostgreSQL by `halo-server migrate`, or
by `serve --migrate`.

## Under which names, and to whom, it answers

* **Names.** A request is answered under the name in `public_url`, those in `hosts`, and, without `public_url`, the
  address of `listen` (on loopback also `localhost`). Any other `Host` gets 421, so a web page whose name was rebound
  to this machine reaches nothing. `/healthz`, `/readyz` and `/metrics` answer under every name, for orchestrators.
* **TLS.** Beyond loopback the console listens only with `tls_cert` (TLS 1.2 or later), or with `proxies`, which then do
  TLS: without TLS of its own it answers those proxies and this machine, and nobody else.
* **Addresses.** `X-Forwarded-For` is believed from `proxies` only, read from the right up to the first address that is
  none of them. `X-Forwarded-Host`, `X-Forwarded-Proto` and `Forwarded` are never believed.

## Who signs in

* **Without `[oidc]`**, whoever is at the machine: `halo-server serve` prints a link that makes one browser an
  administrator, once, within 15 minutes; `halo-server login-link` prints another. Opening it changes nothing until the
  button is pressed, so that previews in chats do not use it up.
* **With `[oidc]`**, the organisation's provider: authorization code with PKCE (S256). Register
  `PUBLIC_URL/login/oidc/return` as redirect URI, and `PUBLIC_URL/login` as post-logout redirect URI. ID tokens are
  taken with RS, PS and ES signatures and EdDSA, never unsigned or with a shared secret; clocks may differ by a minute.
  The groups come from the ID token, or else from the userinfo endpoint; the highest role of them counts, and a person
  without any gets 403. `halo-server login-link` still works, for the day when the provider does not.
* **Sessions** are cookies (`__Host-halo` by https, `halo` on loopback; HttpOnly, SameSite=Lax because the provider's
  way back and links in chats are cross-site; everything that changes something needs a form token and comes from our
  own pages). They end by `session_idle`, `session_absolute`, signing out, here or everywhere, and when issuer, client
  or groups in the settings change. A role changes with the next sign-in, so when somebody leaves, or has lost a laptop:
  `halo-server sessions end --name NAME` (`--all` for everybody; `sessions list` shows who is signed in).
* **Programs** use tokens: `halo-server token create`.

## What is logged

One line an event on stderr. A request is logged with its method, route (`/devices/{device}`, never the address as
asked), status, time and the client's address, as it is: whoever runs a console has to find who attacks it. Reports,
health checks and static files are logged at level debug, unless they are refused with 401 or 403. No query, token,
cookie, login link or body is in any line.
"""


def main() -> int:
    """Write or compare; gives 1 when the page is not current."""
    page = HEAD + "\n".join(section(name, table) for name, table in TABLES.items()) + "\n" + TAIL
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text(encoding="utf-8") == page else 1
    TARGET.write_text(page, encoding="utf-8")
    return 0


def section(name: str, table: Table) -> str:
    """Write the section of one table."""
    title = f"`[[{name}]]`" if table.many else f"`[{name}]`" if name else "Keys before the first table"
    defaults = {field.name: field.default for field in msgspec.structs.fields(table.kind)}
    rows = [row(key, field, defaults.get(key)) for key, field in table.fields.items()]
    return "\n".join(
        [f"## {title}", "", table.words, "", "| key | value | without it | |", "|---|---|---|---|", *rows, ""]
    )


def row(key: str, field: Field, default: object) -> str:
    """Write one line of a table."""
    without = "needed" if field.must else shown(default)
    return f"| `{key}` | {field.form} | {without} | {field.words} |"


def shown(default: object) -> str:
    """Write a default as TOML does; "none" where nothing is set."""
    if default in ("", ()) or default is None or default is msgspec.NODEFAULT:
        return "none"
    if isinstance(default, tuple):
        return "`[" + ", ".join(f'"{item}"' for item in default) + "]`"
    return f"`{default}`" if isinstance(default, int) else f'`"{default}"`'


if __name__ == "__main__":
    sys.exit(main())
