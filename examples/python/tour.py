"""A tour of the library on the small recorded job in this repository.

    python examples/python/tour.py

The notebook of the same name is this program, executed.
"""

# %% [markdown]
# # Foretrain in ten cells
#
# The job is the small example of the repository: two ranks on A100s, generated, not measured.

# %%
import os
from pathlib import Path

import foretrain
from foretrain import plugins

ROOT = next(
    one for one in [Path.cwd(), *Path.cwd().parents] if (one / "examples/ddp-tiny").is_dir()
)
os.chdir(ROOT)
job = foretrain.load("examples/ddp-tiny")
job

# %% [markdown]
# ## How long is a step elsewhere?

# %%
answer = foretrain.predict(job, on="dgx-a100", gpus=[2, 16, 128])
answer

# %%
columns = ["gpus", "step_time.value_ns", "step_time.low_ns", "step_time.high_ns", "efficiency"]
answer.to_pandas()[columns]

# %% [markdown]
# ## Who owns the time, and what would help?

# %%
diagnosis = foretrain.diagnose(job)
diagnosis.to_pandas()[["label", "outcome.step_time.value_ns", "saving_share"]].head(5)

# %%
foretrain.whatif(job, change=["bandwidth x2", 'kernel("*gemm*") x0.8'])

# %% [markdown]
# ## The step as a graph
#
# Tables go to polars, pandas or pyarrow without a copy; a changed graph can be asked like the job.

# %%
graph = job.graph()
graph.to_pandas().groupby("kind", observed=True)["work_ns"].sum().sort_values()

# %%
graph.scale('kernel("*gemm*")', 0.5)
graph.save("target/faster.parquet") if Path("target").is_dir() else None
graph

# %% [markdown]
# ## A pass of one's own


# %%
@plugins.rewrite_pass(stage="fuse", parameters={"part": 0.5})
def freeze(draft, part):
    """Leaves out the gradients of the front layers."""
    whole, seen, kept = sum(one.bytes for one in draft.exchanges), 0, []
    for one in draft.exchanges:
        seen += one.bytes
        if seen <= whole * (1 - part):
            kept.append(one)
    draft.note(f"{part:.0%} of the gradient bytes are frozen")
    draft.exchanges = kept


for strategy in ("ddp", "freeze(0.5) | fuse(25MiB)", "fuse(25MiB) | compress(half)"):
    step = foretrain.predict(job, on="dgx-a100", gpus=128, strategy=strategy).sizes[0].step_time
    print(f"{strategy:30} {step.value_ns / 1e6:6.2f} ms")

# %% [markdown]
# ## Without a trace

# %%
plan = foretrain.plan("llama-3-8b", on="dgx-h100", gpus=64, batch=512)
plan.to_pandas("places.ranked").head(5)
