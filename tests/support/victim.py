# SPDX-License-Identifier: Apache-2.0
"""An agent's state and delivery that is killed again and again: `python -m tests.support.victim URL DIR ROUNDS SEED`.

The process imports everything once and forks a child for each round, so that 200 rounds fit into a test. A
child opens the state, commits cycles whose findings change, and delivers in its thread; after a random time
it is killed with SIGKILL. The last child is not killed: it delivers what is left and ends.

Each child notes in DIR/committed.txt the transitions that a commit has given back, which is the witness that
is independent of the state's own numbers, and in DIR/accepted.txt each report that was accepted. On a busy machine a
child gets little done before it is killed: there are more rounds than ROUNDS then, and longer ones, until as many
transitions as ROUNDS and a quarter as many reports are noted, or LATEST seconds are over.
"""

import os
import random
import signal
import sys
import threading
import time

from halod.agent.backoff import Backoff
from halod.agent.delivery import Courier, Setup
from halod.agent.http import Client
from halod.agent.state import State
from halod.agent.tls import tls_context
from tests.support.guard import HANG, until
from tests.support.server import TOKEN
from tests.support.state import all_seen, finding, status

TLS = tls_context()


LONGEST = 0.16  # seconds that a child has at most, while the machine is quick enough
LATEST = 2 * HANG


def start(url, directory, drawn, accepted=-1):
    state = State(directory)
    wake = threading.Event()
    courier = Courier(
        state,
        Client(url, TLS, total=HANG),
        Setup(url=url, token=os.environ.get("VICTIM_TOKEN", TOKEN)),
        say=lambda event, **_: event == "report-accepted" and accepted >= 0 and os.write(accepted, b"\n"),
        backoff=Backoff(drawn.random, base=0.004, cap=0.03),
        wake=wake,
    )
    thread = threading.Thread(target=courier.run)
    thread.start()
    return state, courier, wake, thread


def cycle(state, drawn, witness):
    """Commit a cycle with some of twelve servers, each in one of four versions."""
    names = [f"s{n:02}" for n in range(12) if drawn.random() < 0.5]
    rows = [finding(name, drawn.choice("0123")) for name in names]
    done = state.commit_cycle(status(*rows), all_seen())
    os.write(witness, "".join(f"{one.id}\n" for one in done.transitions).encode())


def child(url, directory, seed, witness, accepted):
    drawn = random.Random(seed)
    state, _, wake, _ = start(url, directory, drawn, accepted)
    while True:
        cycle(state, drawn, witness)
        wake.set()
        time.sleep(drawn.random() * 0.01)


def last(url, directory, witness):
    drawn = random.Random(0)
    state, courier, wake, thread = start(url, directory, drawn)
    cycle(state, drawn, witness)
    wake.set()
    until(lambda: not state.summary().waiting and state.next_report() is None, "delivered", step=0.02)
    courier.stop()
    thread.join(HANG)
    state.close()


def in_child(work, *arguments):
    pid = os.fork()
    if pid == 0:
        try:
            work(*arguments)
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def notes(directory, name):
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(os.path.join(directory, name), flags, 0o600)


def lines(descriptor):
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).count(b"\n")


def main():
    url, directory, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    drawn = random.Random(seed)
    witness, accepted = notes(directory, "committed.txt"), notes(directory, "accepted.txt")
    state = os.path.join(directory, "state")
    deadline = time.monotonic() + LATEST
    number, longest = 0, LONGEST
    while number < rounds or lines(witness) <= rounds or lines(accepted) <= rounds // 4:
        if number >= rounds:
            longest = min(longest * 1.1, 2.0)
            if time.monotonic() > deadline:
                break
        pid = in_child(child, url, state, f"{seed}-{number}", witness, accepted)
        time.sleep(drawn.uniform(0.002, longest))
        os.kill(pid, signal.SIGKILL)
        _, ended = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(ended):
            sys.exit("a child ended before it was killed")
        number += 1
    _, ended = os.waitpid(in_child(last, url, state, witness), 0)
    sys.exit(os.waitstatus_to_exitcode(ended))


if __name__ == "__main__":
    main()
