# SPDX-License-Identifier: Apache-2.0
"""What this process counts of itself, and the text that Prometheus reads (exposition format 0.0.4).

Kept by hand in one place, without a library: a dozen names are counted here. Invariants:

1. Every name is declared in `METRICS` with its kind and its help; an undeclared name is an error of ours.
2. Labels are route names, outcomes and names out of the settings. Nothing that a device or a caller sends is a
   label, so the number of series is bounded.
3. Threads may count at the same time. A probe (`gauge`, `watch`) is asked when somebody looks, outside the lock;
   one that fails gives no sample, or counts as dead.
"""

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)

Labels = tuple[tuple[str, str], ...]


class Metric(msgspec.Struct, frozen=True):
    """One declared metric. `buckets` are the upper bounds of a histogram, ascending."""

    kind: Literal["counter", "gauge", "histogram"]
    help: str
    buckets: tuple[float, ...] = ()


class Sample(msgspec.Struct, frozen=True):
    """One value of a gauge that is read elsewhere, such as in the database."""

    name: str
    value: float
    labels: Labels = ()


METRICS: Final[dict[str, Metric]] = {
    # of this process
    "halo_build_info": Metric("gauge", "Version of the console; the value is always 1."),
    "halo_reports_total": Metric("counter", "Reports of devices by outcome."),
    "halo_enrollments_total": Metric("counter", "Requests for a device token by outcome."),
    "halo_report_queue": Metric("gauge", "Reports that wait to be committed."),
    "halo_batch_reports": Metric("histogram", "Reports that were committed together.", _SIZES),
    "halo_batch_seconds": Metric("histogram", "Seconds of a transaction that committed reports.", _SECONDS),
    "halo_request_seconds": Metric("histogram", "Seconds of a request by route.", _SECONDS),
    "halo_requests_total": Metric("counter", "Requests by route and status."),
    "halo_limited_total": Metric("counter", "Requests that were refused by a rate limit."),
    "halo_logins_total": Metric("counter", "Sign-ins by way and outcome."),
    "halo_policy_requests_total": Metric("counter", "Questions for the signed policy by status."),
    "halo_webhook_attempts_total": Metric("counter", "Webhooks that were sent, by hook and outcome."),
    "halo_job_runs_total": Metric("counter", "Runs of background jobs by outcome."),
    "halo_job_seconds": Metric("histogram", "Seconds of a background job.", _SECONDS),
    "halo_job_success_timestamp_seconds": Metric("gauge", "When a job of this process last ended well."),
    "halo_database_connections": Metric("gauge", "Connections to the database by state."),
    "halo_part_alive": Metric("gauge", "Whether a part that has to run does run."),
    # of the fleet: the same from every replica
    "halo_devices": Metric("gauge", "Devices that have ever reported and are not forgotten, by state."),
    "halo_findings": Metric("gauge", "Findings by kind."),
    "halo_enrollments_waiting": Metric("gauge", "Devices that wait for an operator."),
    "halo_policy_version": Metric("gauge", "Version of the published policy."),
    "halo_policy_expires_timestamp_seconds": Metric("gauge", "When the published policy expires."),
    "halo_webhook_deliveries": Metric("gauge", "Webhooks that are kept, by hook and state."),
    "halo_webhook_oldest_seconds": Metric("gauge", "Age of the oldest webhook that is due, by hook."),
}


class _Histogram:
    __slots__ = ("counts", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.sum = 0.0


class Metrics:
    """Counts by name and labels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], _Histogram] = {}
        self._gauges: list[tuple[str, Labels, Callable[[], float]]] = []
        self._parts: dict[str, Callable[[], bool]] = {}

    def add(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a counter; `name` as in `halo_reports_total`."""
        key = _key(name, "counter", labels)
        with self._lock:
            self._values[key] = self._values.get(key, 0) + by

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        key = _key(name, "gauge", labels)
        with self._lock:
            self._values[key] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Put a value into a histogram."""
        key = _key(name, "histogram", labels)
        bounds = METRICS[name].buckets
        with self._lock:
            histogram = self._histograms.get(key)
            if histogram is None:
                histogram = self._histograms[key] = _Histogram(len(bounds))
            histogram.counts[bisect_left(bounds, value)] += 1
            histogram.sum += value

    def gauge(self, name: str, probe: Callable[[], float], **labels: str) -> None:
        """Ask `probe` for a gauge whenever somebody looks; it must be quick and may come from any thread."""
        _, at = _key(name, "gauge", labels)
        with self._lock:
            self._gauges.append((name, at, probe))

    def watch(self, part: str, alive: Callable[[], bool]) -> None:
        """Name a part that has to run, such as a thread: without it the console is not ready (`dead`)."""
        with self._lock:
            self._parts[part] = alive

    def dead(self) -> tuple[str, ...]:
        """Give the parts that do not run, sorted."""
        return tuple(sorted(part for part, alive in self._watched() if not alive))

    def value(self, name: str, **labels: str) -> float:
        """Give a counter or a gauge that was set; 0 when there is none. For a histogram, how many values it took."""
        key = (name, tuple(sorted(labels.items())))
        with self._lock:
            if key in self._histograms:
                return sum(self._histograms[key].counts)
            return self._values.get(key, 0)

    def text(self, samples: Iterable[Sample] = ()) -> str:
        """Give everything as Prometheus reads it, with `samples` of the caller's."""
        found = [*self._samples(), *samples]
        with self._lock:
            histograms = {
                key: (list(histogram.counts), histogram.sum) for key, histogram in self._histograms.items()
            }
        lines: list[str] = []
        for name, metric in METRICS.items():
            rows = sorted((sample.labels, sample.value) for sample in found if sample.name == name)
            taken = sorted((labels, taken) for (known, labels), taken in histograms.items() if known == name)
            if not rows and not taken:
                continue
            lines += [f"# HELP {name} {_escaped(metric.help)}", f"# TYPE {name} {metric.kind}"]
            lines += [f"{name}{_braces(labels)} {_number(value)}" for labels, value in rows]
            for labels, (counts, total) in taken:
                lines += _histogram(name, labels, metric.buckets, counts, total)
        return "\n".join(lines) + "\n"

    def _samples(self) -> list[Sample]:
        with self._lock:
            values = [Sample(name, value, labels) for (name, labels), value in self._values.items()]
            gauges = list(self._gauges)
        for name, labels, probe in gauges:
            try:
                values.append(Sample(name, probe(), labels))
            except Exception:  # noqa: BLE001, S112 - a probe that fails costs its own sample only
                continue
        values += [Sample("halo_part_alive", alive, (("part", part),)) for part, alive in self._watched()]
        return values

    def _watched(self) -> list[tuple[str, bool]]:
        with self._lock:
            parts = list(self._parts.items())
        return [(part, _alive(probe)) for part, probe in parts]


def _alive(probe: Callable[[], bool]) -> bool:
    try:
        return probe()
    except Exception:  # noqa: BLE001 - a part that cannot tell is no part that runs
        return False


def _key(name: str, kind: str, labels: dict[str, str]) -> tuple[str, Labels]:
    if METRICS[name].kind != kind:
        raise ValueError(f"{name} is a {METRICS[name].kind}")
    return name, tuple(sorted(labels.items()))


def _histogram(
    name: str, labels: Labels, bounds: tuple[float, ...], counts: list[int], total: float
) -> list[str]:
    lines = []
    below = 0
    for bound, count in zip((*bounds, math.inf), counts, strict=True):
        below += count
        lines.append(f"{name}_bucket{_braces((*labels, ('le', _number(bound))))} {below}")
    return [*lines, f"{name}_sum{_braces(labels)} {_number(total)}", f"{name}_count{_braces(labels)} {below}"]


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value, quoted=True)}"' for key, value in labels) + "}"


def _escaped(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
