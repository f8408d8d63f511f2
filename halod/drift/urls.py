# SPDX-License-Identifier: Apache-2.0
"""How a URL stands to an approved one (design 6, rules 2 and 3; registry.md D).

Only identical canonical strings are equal. What is here tells how near a miss is, for the words and for
`version-drift`; it never approves.
"""

from typing import Final, Literal

from halod.launch.model import UrlParts

Nearness = Literal["differs", "other-path", "other-port"]

_DEFAULT_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}


def compare(url: UrlParts, pin: UrlParts) -> tuple[Nearness, tuple[str, ...]]:
    """Tell how far `url` is from a pin on the same host; "differs" says in what (`URL_DIFFERENCES`).

    "differs" means same host, port and path but for a trailing slash. The default ports of all schemes are
    equal to each other (rule 3 could never see a scheme otherwise), and so are two spellings of one number.
    """
    if not _same_port(url, pin):
        return "other-port", ()
    if url.path.removesuffix("/") != pin.path.removesuffix("/"):
        return "other-path", ()
    found = {
        "scheme": url.scheme != pin.scheme,
        "userinfo": url.userinfo,
        "query": url.query != pin.query,
        "fragment": url.fragment is not None,
        "trailing-slash": url.path != pin.path,
    }
    return "differs", tuple([name for name, differs in found.items() if differs])


def _same_port(url: UrlParts, pin: UrlParts) -> bool:
    return url.port == pin.port or _number(url) == _number(pin)


def _number(parts: UrlParts) -> int | None:
    return parts.port if parts.port is not None else _DEFAULT_PORTS.get(parts.scheme)
