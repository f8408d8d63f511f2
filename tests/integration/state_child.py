# SPDX-License-Identifier: Apache-2.0
"""Commits cycles and delivers reports until somebody kills it: the victim of test_agent_state_faults.

Arguments: state directory, journal, seed, bytes a file may have (0 for no limit). The journal takes a line
`C id...` after each cycle that was kept, `S id...` for each report that "the server" has taken, before the agent
records that it did, and `F code` for each fault.
"""

import os
import random
import resource
import sys

from halod.agent.database import StateFault
from halod.agent.outbox import Limits
from halod.agent.state import State
from tests.support.state import all_seen, finding, status


def main(directory, journal, seed, limit):
    chance = random.Random(seed)
    log = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def tell(kind, words=()):
        os.write(log, " ".join([kind, *words]).encode() + b"\n")

    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    state = State(directory)
    tell("R")
    for _ in range(500):
        rows = [
            finding(server=f"s{at}", sha=chance.choice("0123"), detail="d" * chance.randrange(900))
            for at in range(12)
            if chance.random() < 0.6
        ]
        try:
            tell("C", [one.id for one in state.commit_cycle(status(*rows), all_seen()).transitions])
            while chance.random() < 0.7:
                report = state.next_report(Limits(transitions=chance.choice([1, 3, 64])))
                if report is None:
                    break
                tell("S", report.ids)
                state.delivered(report)
        except StateFault as fault:
            tell("F", [fault.code])
            if int(limit):
                break
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
