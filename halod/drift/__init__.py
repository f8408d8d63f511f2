# SPDX-License-Identifier: Apache-2.0
"""Definitions against the policy (design 6): the only room that knows both sides.

A worker calls `judge` or `judge_worse` and sends the Verdict; the other side makes `detail` and `fix` of it
with `words`. Pure, no I/O.
"""

from halod.definition import Definition
from halod.drift.flags import FLAGS
from halod.drift.rules import Judge
from halod.drift.subject import Identify
from halod.drift.verdict import NOTES, SEVERITY, Kind, Note, Verdict
from halod.drift.words import words
from halod.harnesses.model import Found
from halod.launch import identify as identify_launch
from halod.policy.model import Registry

__all__ = [
    "FLAGS",
    "NOTES",
    "SEVERITY",
    "Judge",
    "Kind",
    "Note",
    "Verdict",
    "judge",
    "judge_worse",
    "words",
]


def judge(definition: Definition, registry: Registry, identify: Identify = identify_launch) -> Verdict:
    """Judge one definition. For many, make one `Judge` and call its method: it sorts the registry once."""
    return Judge(registry, identify).judge(definition)


def judge_worse(found: Found, registry: Registry | Judge) -> tuple[Definition, Verdict]:
    """Judge both halves of an entry and give the worse with its verdict; equally bad: the command (design 4).

    Anything else would let an approved half hide the other. An entry of one half is simply judged.
    """
    judge_one = registry if isinstance(registry, Judge) else Judge(registry)
    verdict = judge_one.judge(found.definition)
    if found.other is None:
        return found.definition, verdict
    halves = [(found.definition, verdict), (found.other, judge_one.judge(found.other))]
    return max(halves, key=lambda half: (SEVERITY[half[1].kind], half[0].transport == "stdio"))
