"""Measures what Python adds to the command: an import, and a prediction from files.

    python crates/foretrain-python/scripts/speed.py [TRACES] [--on CLUSTER]

Run it with the package installed. Prints the best of several runs, which other load disturbs least.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp-tiny"


def best(arguments: list[str], runs: int) -> float:
    """The shortest time of a whole command, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def best_call(traces: str, on: str, gpus: str, runs: int) -> float:
    """The shortest call, in a program that has made it before."""
    import foretrain

    times = []
    for _ in range(runs):
        start = time.perf_counter()
        foretrain.predict(traces, on=on, gpus=gpus)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("traces", nargs="?", default=str(EXAMPLE))
    parser.add_argument("--on", default="dgx-a100")
    parser.add_argument("--gpus", default="2,16,128")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--command", help="the command to compare with [default: the wheel's]")
    given = parser.parse_args()
    asked = ["predict", given.traces, "--on", given.on, "--gpus", given.gpus]
    command = [given.command] if given.command else [sys.executable, "-m", "foretrain"]
    program = (
        "import sys, foretrain; foretrain.predict(sys.argv[1], on=sys.argv[2], gpus=sys.argv[3])"
    )
    in_python = [sys.executable, "-c", program, given.traces, given.on, given.gpus]
    bare = best([sys.executable, "-c", "pass"], given.runs)
    imported = best([sys.executable, "-c", "import foretrain"], given.runs)
    by_command, by_python = best([*command, *asked], given.runs), best(in_python, given.runs)
    called = best_call(given.traces, given.on, given.gpus, given.runs)
    print(f"import foretrain            {1e3 * (imported - bare):8.1f} ms beyond the interpreter's")
    print(f"predict by the command      {1e3 * by_command:8.1f} ms")
    print(
        f"predict in Python           {1e3 * by_python:8.1f} ms, start of the interpreter included"
    )
    print(f"ratio                       {by_python / by_command:8.3f}")
    print(f"the call in Python alone    {1e3 * called:8.1f} ms")
    print(f"ratio                       {called / by_command:8.3f}")


if __name__ == "__main__":
    main()
