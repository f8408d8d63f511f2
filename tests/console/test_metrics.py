# SPDX-License-Identifier: Apache-2.0
"""The text of /metrics is what Prometheus reads, whatever is counted."""

import ast
import math
import pathlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parse

from halod.console.metrics import METRICS, Metrics, Sample

SOURCES = sorted((pathlib.Path(__file__).resolve().parents[2] / "halod" / "console").rglob("*.py"))


def read(text):
    """All samples by name and labels, as Prometheus' own parser understands them."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def test_counters_gauges_and_histograms_are_read_by_prometheus():
    """Every kind of metric arrives with its labels, type and help."""
    metrics = Metrics()
    metrics.add("halo_reports_total", outcome="accepted")
    metrics.add("halo_reports_total", 2, outcome="accepted")
    metrics.set("halo_job_success_timestamp_seconds", 1.5e9, job="prune")
    metrics.gauge("halo_report_queue", lambda: 7)
    metrics.watch("writer", lambda: True)
    for value in (0.0005, 0.004, 99):
        metrics.observe("halo_request_seconds", value, route="policy")

    text = metrics.text([Sample("halo_devices", 12, (("state", "silent"),))])
    found = read(text)

    assert found["halo_reports_total", (("outcome", "accepted"),)] == 3
    assert found["halo_job_success_timestamp_seconds", (("job", "prune"),)] == 1.5e9
    assert found["halo_report_queue", ()] == 7
    assert found["halo_part_alive", (("part", "writer"),)] == 1
    assert found["halo_devices", (("state", "silent"),)] == 12
    buckets = {
        dict(labels)["le"]: value
        for (name, labels), value in found.items()
        if name == "halo_request_seconds_bucket"
    }
    assert (buckets["0.001"], buckets["0.005"], buckets["10"], buckets["+Inf"]) == (1, 2, 2, 3)
    assert found["halo_request_seconds_count", (("route", "policy"),)] == 3
    assert found["halo_request_seconds_sum", (("route", "policy"),)] == pytest.approx(99.0045)
    assert "# TYPE halo_reports_total counter\n" in text
    assert "# HELP halo_devices " in text
    assert {family.type for family in parse(text)} == {"counter", "gauge", "histogram"}


@given(st.text(max_size=40), st.floats())
@settings(max_examples=100)
def test_no_label_and_no_value_breaks_the_text(label, value):
    """Quotes, backslashes, line ends and odd numbers arrive as they are."""
    text = Metrics().text([Sample("halo_devices", value, (("state", label),))])
    if "\r" in label or any(char in label for char in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"):
        assert len(text.split("\n")) == 4  # the parser of Python splits lines at more than line feeds
        return
    (((_, labels), found),) = read(text).items()
    assert dict(labels)["state"] == label
    assert found == value or (math.isnan(found) and math.isnan(value))


def test_an_undeclared_name_or_the_wrong_kind_is_an_error():
    metrics = Metrics()
    with pytest.raises(KeyError):
        metrics.add("halo_nonsense_total")
    with pytest.raises(ValueError):
        metrics.set("halo_reports_total", 1)


def test_every_name_that_the_console_counts_is_declared():
    """Names in the sources, found in their syntax."""
    used = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            first = node.args[0] if isinstance(node, ast.Call) and node.args else None
            if (
                isinstance(first, ast.Constant)
                and isinstance(first.value, str)
                and first.value.startswith("halo_")
            ):
                used.add(first.value)
    assert used <= METRICS.keys()
    assert {"halo_webhook_attempts_total", "halo_policy_requests_total"} <= used


def test_probes_that_fail_cost_their_own_sample_only():
    """A gauge that fails is left out; a part that cannot tell is dead."""
    metrics = Metrics()
    metrics.gauge("halo_report_queue", lambda: 1 / 0)
    metrics.watch("writer", lambda: 1 / 0)
    metrics.watch("jobs", lambda: True)
    found = read(metrics.text())
    assert found == {
        ("halo_part_alive", (("part", "writer"),)): 0,
        ("halo_part_alive", (("part", "jobs"),)): 1,
    }
    assert metrics.dead() == ("writer",)


def test_threads_count_without_losing_anything():
    metrics = Metrics()

    def count():
        for _ in range(500):
            metrics.add("halo_reports_total", outcome="accepted")
            metrics.observe("halo_batch_reports", 3)
            metrics.text()

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.value("halo_reports_total", outcome="accepted") == 1500
    assert metrics.value("halo_batch_reports") == 1500
