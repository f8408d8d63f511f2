# SPDX-License-Identifier: Apache-2.0
"""Who an API token stands for, asked with every request that carries one."""

import threading
from typing import Final

from sqlalchemy import update

from halod.console.access import Actor
from halod.console.call import Console
from halod.console.security import tokens
from halod.console.store.schema import TOKENS

_DAY: Final = 86_400


class ApiTokens:
    """Finds tokens; that one is used is noted once a day by each replica."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._noted: dict[str, int] = {}

    def find(self, text: str) -> Actor | None:
        """Give the actor of a token that is valid, None for every other text."""
        now, store = self._console.clock.now(), self._console.store
        with store.read() as connection:
            actor = tokens.find_api(connection, text, now)
        if actor is None:
            return None
        kept, day = tokens.digest(text), now // _DAY
        with self._lock:
            noted = self._noted.get(kept) == day
            self._noted[kept] = day
        if not noted:
            with store.write() as connection:
                connection.execute(update(TOKENS).where(TOKENS.c.hash == kept).values(used=now))
        return actor
