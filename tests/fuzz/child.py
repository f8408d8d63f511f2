# SPDX-License-Identifier: Apache-2.0
"""One target in a process of its own.

    python -m tests.fuzz.child TARGET [libFuzzer options and folders]    under atheris, guided by coverage
    python -m tests.fuzz.child TARGET --count N --seed S                 a fixed number, without atheris

With `--count` the exit status is 1 when an input breaks the target; it is written to the folder `--found`.
"""

import argparse
import gc
import hashlib
import random
import sys
import time
from pathlib import Path

LONGEST = 4096
SLOW = 10.0
"""Seconds of processor time that no input may need; most need less than a millisecond."""


def counted(name, count, seed, found):
    """Run `count` mutants of the seeds; gives how many broke the target."""
    from tests.fuzz.mutate import mutate
    from tests.fuzz.targets import TARGETS, seeds

    dice, pool, broken = random.Random(f"{name} {seed}"), seeds(name) or [b""], 0
    gc.freeze()
    for number in range(count):
        drawn = number % 4 == 0 or name == "approval"
        data = dice.randbytes(48) if drawn else mutate(dice, dice.choice(pool), pool, LONGEST)
        start = time.process_time()
        try:
            TARGETS[name](data)
            assert time.process_time() - start < SLOW, "too slow"
        except BaseException as error:
            broken += 1
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            if found:
                Path(found).mkdir(parents=True, exist_ok=True)
                (Path(found) / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
            if isinstance(error, KeyboardInterrupt) or broken >= 20:
                break
    print(f"stat::number_of_executed_units: {number + 1}", file=sys.stderr)
    return broken


def guided(name, options):
    """Hand the process to libFuzzer; it ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["halod"], enable_loader_override=False):
        from tests.fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--found", default="")
    args, options = parser.parse_known_args()
    if args.count:
        return 1 if counted(args.target, args.count, args.seed, args.found) else 0
    return guided(args.target, options)


if __name__ == "__main__":
    sys.exit(main())
