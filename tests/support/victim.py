# SPDX-License-Identifier: Apache-2.0
"""An agent's state and delivery that is killed again and again: `python -m tests.support.victim URL DIR ROUNDS SEED`.

The process imports everything once and forks a child for each round, so that 200 rounds fit into a test. A
child opens the state, commits cycles whose findings change, and delivers in its thread; after a random time
it is killed with SIGKILL. The last child is not killed: it delivers what is left and ends.

Each child notes in DIR/committed.txt the transitions that a commit has given back, which is the witness that
is independent of the state's own numbers.
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
from tests.support.server import TOKEN
from tests.support.state import all_seen, finding, status

TLS = tls_context()


def start(url, directory, drawn):
    state = State(directory)
    wake = threading.Event()
    courier = Courier(
        state,
        Client(url, TLS, total=5.0),
        Setup(url=url, token=TOKEN),
        say=lambda event, **fields: None,
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


def child(url, directory, seed, witness):
    drawn = random.Random(seed)
    state, _, wake, _ = start(url, directory, drawn)
    while True:
        cycle(state, drawn, witness)
        wake.set()
        time.sleep(drawn.random() * 0.01)


def last(url, directory, witness):
    drawn = random.Random(0)
    state, courier, wake, thread = start(url, directory, drawn)
    cycle(state, drawn, witness)
    wake.set()
    deadline = time.monotonic() + 60
    while (state.summary().waiting or state.next_report() is not None) and time.monotonic() < deadline:
        time.sleep(0.02)
    courier.stop()
    thread.join(5)
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


def main():
    url, directory, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    drawn = random.Random(seed)
    witness = os.open(
        os.path.join(directory, "committed.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
    )
    state = os.path.join(directory, "state")
    for number in range(rounds):
        pid = in_child(child, url, state, f"{seed}-{number}", witness)
        time.sleep(drawn.uniform(0.002, 0.16))
        os.kill(pid, signal.SIGKILL)
        _, ended = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(ended):
            sys.exit("a child ended before it was killed")
    _, ended = os.waitpid(in_child(last, url, state, witness), 0)
    sys.exit(os.waitstatus_to_exitcode(ended))


if __name__ == "__main__":
    main()
