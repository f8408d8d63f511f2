# SPDX-License-Identifier: Apache-2.0
"""A definition as the rules look at it: what it launches, and what that carries in turn.

Invariants:

1. A Subject is built from one half of a definition, or from what a bridge or wrapper carries. What a carrier
   carries inherits the definition's environment, cwd and features: they reach the inner program too.
2. Depth is bounded: below DEPTH levels nothing more is looked at, and what is not looked at is not approved.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from halod.definition import Definition
from halod.launch import identify
from halod.launch.model import Launch, Nested, UrlParts
from halod.launch.urls import canonical_url, parse_url, whatwg_host

Identify = Callable[[str, Sequence[str], Sequence[tuple[str, str]], str], Launch]

DEPTH: Final = 4
"""Carriers inside carriers that are looked at."""

# A carrier that loads an environment halod cannot see, or is started elsewhere, hands that to what it starts.
_INHERITED: Final = frozenset({"env-injection", "cwd-override"})
_NOTHING: Final = Launch(outcome="unidentifiable")


class Subject:
    """One half of a definition, or what a carrier carries.

    For http `url`, `parts`, `canonical` and `host` count, for stdio `launch`; the others are empty.
    """

    __slots__ = (
        "_child",
        "_depth",
        "_identify",
        "canonical",
        "definition",
        "host",
        "injected",
        "launch",
        "outer_keys",
        "parts",
    )

    definition: Definition
    launch: Launch
    outer_keys: frozenset[str]
    """The environment keys that stand beside the command line, not in it."""
    injected: frozenset[str]
    """Flags of a carrier that reach what it carries, and that no key of `unsafe_env` tells."""
    parts: UrlParts | None
    canonical: str
    host: str

    def __init__(
        self,
        definition: Definition,
        identify: Identify = identify,
        *,
        carrier: "Subject | None" = None,
    ) -> None:
        self.definition = definition
        self.launch = _NOTHING
        self.parts = None
        self.canonical = self.host = ""
        self._identify = identify
        self._depth: int = 0
        self._child: Subject | bool | None = False
        self.outer_keys = frozenset([key for key, _value in definition.env])
        self.injected = frozenset()
        if carrier is not None:
            self._depth = carrier._depth + 1  # noqa: SLF001 - its own class
            self.outer_keys |= carrier.env_keys
            self.injected = carrier.injected | _INHERITED.intersection(carrier.launch.flags)
        if definition.transport == "http":
            self.parts = parse_url(definition.url)
            self.canonical = (canonical_url(self.parts) or "") if self.parts is not None else ""
            self.host = whatwg_host(definition.url)
        else:
            found = identify(definition.command, definition.args, definition.env, definition.cwd)
            self.launch = found if carrier is None else _inherit(found, carrier.launch)

    @property
    def env_keys(self) -> frozenset[str]:
        """Every environment key that reaches the program."""
        return self.outer_keys.union(self.launch.env_keys)

    @property
    def is_carried(self) -> bool:
        """Whether this is what a carrier carries, not a definition itself."""
        return self._depth > 0

    @property
    def child(self) -> "Subject | None":
        """What a carrier or wrapper carries; None when nothing, or when it is too deep or cannot be read."""
        if isinstance(self._child, bool):
            nested = self.launch.nested
            self._child = None if nested is None or self._depth >= DEPTH else self._carried(nested)
        return self._child

    def _carried(self, nested: Nested) -> "Subject | None":
        if nested.url is not None:
            return Subject(self._inner(url=nested.url), self._identify, carrier=self)
        if nested.argv:
            inner = self._inner(command=nested.argv[0], args=nested.argv[1:])
            return Subject(inner, self._identify, carrier=self)
        if nested.shell is not None:
            # The line goes through a shell. `identify` looks through one that is one simple command.
            return Subject(self._inner(command="sh", args=("-c", nested.shell)), self._identify, carrier=self)
        return None

    def _inner(self, *, url: str = "", command: str = "", args: tuple[str, ...] = ()) -> Definition:
        outer = self.definition
        return Definition(
            harness=outer.harness,
            file=outer.file,
            name=outer.name,
            scope=outer.scope,
            transport="http" if url else "stdio",
            command=command,
            args=args,
            url=url,
            env=outer.env,
            cwd=outer.cwd,
            features=outer.features,
            enabled=outer.enabled,
        )

    def __repr__(self) -> str:
        """Give the type's name only (privacy rule, design 8)."""
        return "<Subject>"


def _inherit(inner: Launch, carrier: Launch) -> Launch:
    """Add to `inner` the environment that reaches it through its carrier: keys, and what is unsafe."""
    injected = _INHERITED.intersection(carrier.flags)
    by_keys = {flag for flag, _key in carrier.unsafe_env}
    return msgspec.structs.replace(
        inner,
        flags=tuple(sorted({*inner.flags, *injected, *by_keys})),
        env_keys=tuple(dict.fromkeys((*inner.env_keys, *carrier.env_keys))),
        unsafe_env=tuple(dict.fromkeys((*inner.unsafe_env, *carrier.unsafe_env))),
        registries=(*inner.registries, *carrier.registries),
        line_flags=tuple(sorted({*inner.line_flags, *injected})),
    )
