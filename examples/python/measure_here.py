"""Records a small training on this machine, predicts it on two processes, and compares.

    python examples/python/measure_here.py

Needs PyTorch. The notebook of the same name is this program, executed on a virtual machine of two
cores; examples/ground_truth does the same with care, over many configurations.
"""

# %% [markdown]
# # Record, predict, compare, on one machine
#
# A small perceptron trains in two processes that have nothing to do with each other, and one of them
# is recorded: a neighbour takes caches and memory bandwidth, and is there later too. The machine's
# collectives are measured between two processes, and the step of one training on two processes is
# predicted. Then it is measured.

# %%
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import foretrain

ROOT = next(one for one in [Path.cwd(), *Path.cwd().parents] if (one / "examples/python").is_dir())
os.chdir(tempfile.mkdtemp())
TOY = str(ROOT / "examples/python/toy.py")


def python(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


# %% [markdown]
# ## Record one process
#
# Three lines in the training: `with foretrain.capture(...)`, and `step()` after each step. It runs
# under DDP, in a group of one, so the recorded step holds what DDP does besides communicating.

# %%
python(TOY, "capture", "2", "bundle")
job = foretrain.load("bundle")
foretrain.inspect(job)

# %% [markdown]
# ## Measure collectives between two processes
#
# `comm.csv` goes into the same directory; `calibrate` makes a cluster of it.

# %%
sizes = ["--ops", "all_reduce,broadcast", "--sizes", "4K..4M", "--budget", "20s"]
python(
    "-m", "foretrain.capture.comm", "--nproc", "2", "--tables", "comm", *sizes, "--out", "bundle"
)
Path("machine.toml").write_text("""
[devices.core]
kind = "cpu"
vendor = "other"
memory = "8 GiB"
memory_bandwidth = "10 GB/s"
peak = { f32 = "50 GFLOP/s" }
source = "a core of this machine"

[nodes.process]
device = "core"
devices = 1
nics = 1
nic = "ethernet"
nic_bandwidth = "10 Gbit/s"
source = "a process of this machine, over its loopback device"
""")
foretrain.calibrate.collectives("bundle", on="process", hardware="machine.toml", out="here.toml")

# %% [markdown]
# ## Predict two processes
#
# Each has one core, on which Gloo's thread takes time from computing: `cores=1`.

# %%
answer = foretrain.predict(job, on="here.toml", hardware="machine.toml", gpus=2, cores=1)
answer

# %% [markdown]
# ## And measure them

# %%
steps = sorted(float(python(TOY, "time", "2")) for _ in range(5))
predicted, measured = answer.sizes[0].step_time.value_ns / 1e6, steps[2]
print(f"predicted {predicted:.1f} ms, measured {measured:.1f} ms ({predicted / measured - 1:+.1%})")
print("five runs:", ", ".join(f"{step:.1f}" for step in steps), "ms")

# %% [markdown]
# The interval is the forecast's own say on how far off it may be. On a virtual machine the same
# step takes a tenth or a quarter longer in some minutes than in others, and what communication
# does to the caches of a core that computes is not in the forecast: expect it to be short rather
# than long. `examples/ground_truth` repeats everything and takes medians.
