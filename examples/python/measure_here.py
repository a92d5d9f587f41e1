"""Records a small training on this machine, predicts it on two processes, and compares.

    python examples/python/measure_here.py

Needs PyTorch. The notebook of the same name is this program, executed on a virtual machine of two
cores; examples/ground_truth does the same with care, over many configurations.
"""

# %% [markdown]
# # Record, predict, compare, on one machine
#
# A small perceptron is recorded in one process, the machine's collectives are measured between two,
# and the step of two processes under DDP is predicted. Then it is measured.

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
# Three lines in the training: `with foretrain.capture(...)`, and `step()` after each step.

# %%
python(TOY, "capture", "bundle")
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
foretrain.calibrate.collectives(
    "bundle/comm.csv", on="process", hardware="machine.toml", out="here.toml"
)

# %% [markdown]
# ## Predict two processes

# %%
answer = foretrain.predict(
    job, on="here.toml", hardware="machine.toml", gpus=2, bucket_cap_mb=1, cores=1
)
answer

# %% [markdown]
# ## And measure them

# %%
steps = sorted(float(python(TOY, "time", "2")) for _ in range(5))
predicted, measured = answer.sizes[0].step_time.value_ns / 1e6, steps[2]
print(f"predicted {predicted:.1f} ms, measured {measured:.1f} ms ({predicted / measured - 1:+.1%})")
print("five runs:", ", ".join(f"{step:.1f}" for step in steps), "ms")
