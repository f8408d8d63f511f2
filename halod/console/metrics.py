# SPDX-License-Identifier: Apache-2.0
"""What `/metrics` shows: counters of this process, kept by hand in one place (Prometheus text format 0.0.4)."""

import threading
from collections import Counter


class Metrics:
    """Counts by name and labels; threads may add at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def add(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a counter; `name` as in `halo_reports_total`."""
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += by  # type: ignore[assignment]
