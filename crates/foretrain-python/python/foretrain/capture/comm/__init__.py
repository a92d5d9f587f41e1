"""Measures the communication that training would do, on the machine and library that it would use.

Run it as a program on every rank, under ``torchrun`` or another launcher, or alone::

    python -m foretrain.capture.comm --nproc 2 --out bundle
    foretrain calibrate collectives bundle/comm.csv --on CLUSTER -o my-cluster.toml

It writes ``comm.csv`` (collectives), ``primitives.csv`` (copies, sums, encoding) and
``interference.csv`` (what computing and communication do to each other). See docs/capture-comm.md.
"""

from .group import OPERATIONS, SweepError, Unsupported
from .sweep import Plan, sweep

__all__ = ["OPERATIONS", "Plan", "SweepError", "Unsupported", "sweep"]
