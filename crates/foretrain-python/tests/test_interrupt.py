"""Ctrl-C is heard while the engine works, and other threads run on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import foretrain

# Many plans: seconds of work.
LONG = """
import foretrain, time
print("ready", flush=True)
try:
    foretrain.plan("llama-3.1-405b", on=["dgx-h100", "dgx-a100"], gpus=[4096, 8192, 16384, 32768],
                   batch=16384, schedules=["all"])
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("done", flush=True)
"""


def test_an_interrupt_ends_a_call() -> None:
    program = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline().strip() == "ready"
        time.sleep(0.3)
        sent = time.monotonic()
        program.send_signal(signal.SIGINT)
        said = program.stdout.readline().strip()
        took = time.monotonic() - sent
    finally:
        program.kill()
        program.wait()
    # A machine that has planned all within 0.3 s has not been interrupted.
    assert said in ("interrupted", "done")
    assert took < 5.0


# What a function of the user's does meanwhile.
ASKED = """
import foretrain, os, signal, sys, threading, time
job = foretrain.load(sys.argv[1])
asked = threading.Event()
@foretrain.plugins.rewrite_pass()
def slow(draft):
    asked.set()
    while True:
        time.sleep(0.01)
def interrupt():
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    foretrain.predict(job, on="dgx-a100", gpus=64, strategy="slow")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_a_function_too(examples) -> None:
    program = [sys.executable, "-c", ASKED, str(examples / "ddp-tiny")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    # The interpreter also ends well, though a thread of the engine was in it.
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


# A child that is forked while a function runs, and ends as programs do.
FORKED = """
import foretrain, os, sys
job = foretrain.load(sys.argv[1])
@foretrain.plugins.rewrite_pass()
def forks(draft):
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
foretrain.predict(job, on="dgx-a100", gpus=64, strategy="forks")
print("done")
"""


def test_a_forked_child_ends(examples) -> None:
    program = [sys.executable, "-W", "ignore", "-c", FORKED, str(examples / "ddp-tiny")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert "done" in done.stdout, done.stderr


def test_other_threads_run_meanwhile(job) -> None:
    count, stop = 0, threading.Event()

    def spin() -> None:
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        foretrain.plan("llama-3-70b", on="dgx-h100", gpus=[512, 1024], batch=1024)
        during = count
    finally:
        stop.set()
        thread.join()
    assert during > 5


def test_calls_from_several_threads(job) -> None:
    answers: list[object] = []

    def ask() -> None:
        answers.append(foretrain.predict(job, on="dgx-a100", gpus=[2, 16]).to_dict())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4 and all(answer == answers[0] for answer in answers)
