"""Forecasts distributed deep-learning training from what you already have."""

# Written by scripts/stubs.py; run that instead of changing this.

import datetime
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import distributed as distributed
from . import plugins as plugins
from ._answer import Answer as Answer
from ._answer import Record as Record
from ._diagnosis import Diagnosis as Diagnosis
from ._diagnosis import diagnose as diagnose
from ._errors import ForetrainError as ForetrainError
from ._errors import UsageError as UsageError
from ._job import Job as Job
from ._job import StepGraph as StepGraph
from ._job import load as load
from ._verbs import ask as ask
from .capture import capture as capture

__version__: str

_Path = str | os.PathLike[str]
_Source = _Path | Job
_Time = str | datetime.timedelta
_Size = str | int

def inspect(
    *traces: _Source,
    strict: bool = False,
    steps: _Time | Iterable[_Time] | None = None,
    ranks: str | int | float | Iterable[str | int | float] | None = None,
    window: str | int | float | None = None,
    no_python: bool = False,
    memory_cap: _Size | None = None,
    threads: int | float | str | None = None,
    collective: str | None = None,
) -> Answer:
    """Show what is in a trace or graph: steps, breakdown, collectives, coverage, warnings; or what a collective benchmark (nccl-tests, rccl-tests) measured"""

def predict(
    *traces: _Source,
    strict: bool = False,
    steps: _Time | Iterable[_Time] | None = None,
    ranks: str | int | float | Iterable[str | int | float] | None = None,
    window: str | int | float | None = None,
    no_python: bool = False,
    memory_cap: _Size | None = None,
    threads: int | float | str | None = None,
    on: _Path,
    gpus: str | int | float | Iterable[str | int | float],
    recorded_on: _Path | None = None,
    step_time: _Time | None = None,
    step_spread: str | int | float | None = None,
    replica_batch: int | float | str | None = None,
    strategy: str | None = None,
    primitives: _Path | None = None,
    bucket_cap_mb: str | int | float | None = None,
    gradient_bytes: _Size | None = None,
    bucket_copies: str | int | float | None = None,
    buffer_bytes: _Size | None = None,
    cores: int | float | str | None = None,
    role: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
    hardware: _Path | Iterable[_Path] | None = None,
    interference: _Source | None = None,
    explain: bool = False,
    costs: str | None = None,
) -> Answer:
    """Predict step time, scaling and breakdown on a cluster at other sizes"""

def whatif(
    *traces: _Source,
    strict: bool = False,
    steps: _Time | Iterable[_Time] | None = None,
    ranks: str | int | float | Iterable[str | int | float] | None = None,
    window: str | int | float | None = None,
    no_python: bool = False,
    memory_cap: _Size | None = None,
    threads: int | float | str | None = None,
    change: str | int | float | Iterable[str | int | float] | None = None,
    sweep: str | int | float | Iterable[str | int | float] | None = None,
    scenarios: _Path | Iterable[_Path] | None = None,
    on: _Path | None = None,
    gpus: int | float | str | None = None,
    recorded_on: _Path | None = None,
    step_time: _Time | None = None,
    replica_batch: int | float | str | None = None,
    gradient_bytes: _Size | None = None,
    role: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
    interference: _Source | None = None,
    primitives: _Path | None = None,
    hardware: _Path | Iterable[_Path] | None = None,
    costs: str | None = None,
) -> Answer:
    """Show what changes to a job would buy: faster kernels, links, hosts, other sizes, and who owns the time that remains"""

def scaling(
    *files: _Path,
    point: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
    unit: str | int | float | None = None,
    ranks: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
    global_batch: int | float | str | None = None,
    ask: str | int | float | Iterable[str | int | float] | None = None,
    ask_accumulation: int | str | Iterable[int | str] | None = None,
    gpus_per_node: int | float | str | None = None,
    gradient_bytes: _Size | None = None,
    parameter_bytes: _Size | None = None,
    parameters: int | float | str | None = None,
    trainable_parameters: int | float | str | None = None,
    dtype: str | None = None,
    gradient_dtype: str | None = None,
    strategy: str | None = None,
    accumulation: int | float | str | None = None,
    batch_per_gpu: int | float | str | None = None,
    sync_every_micro_batch: bool = False,
    nic: str | int | float | None = None,
    same_global_batch: bool = False,
    base_step: _Time | None = None,
) -> Answer:
    """Judge measured scaling without a trace: what limits it, what would help, other sizes"""

def estimate(
    model: _Source,
    /,
    *,
    on: _Path,
    gpus: int | float | str,
    parallel: str | None = None,
    batch: int | float | str | None = None,
    sequence: int | float | str | None = None,
    target_sequence: int | float | str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    lora: str | int | float | None = None,
    expert_imbalance: float | str | None = None,
    software: str | None = None,
    overlap_tensor: bool = False,
    no_overlap_gradients: bool = False,
    attention: str | None = None,
    unbalanced_context: bool = False,
    cuda_graphs: bool = False,
    bucket: _Size | None = None,
    reduce_in: str | None = None,
    kernels: _Path | None = None,
    measured: _Path | None = None,
    price: str | int | float | None = None,
    tokens: int | float | str | None = None,
    explain: bool = False,
    timeline: _Path | None = None,
    graph: _Path | None = None,
    hardware: _Path | Iterable[_Path] | None = None,
) -> Answer:
    """Estimate a parallel layout of a model without a trace: step time, MFU, memory, cost, and where each millisecond goes"""

def plan(
    *subject: _Source,
    on: _Path | Iterable[_Path] | None = None,
    gpus: int | str | Iterable[int | str] | None = None,
    batch: int | float | str | None = None,
    sequence: int | float | str | None = None,
    target_sequence: int | float | str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    lora: str | int | float | None = None,
    expert_imbalance: float | str | None = None,
    software: str | None = None,
    overlap_tensor: bool = False,
    no_overlap_gradients: bool = False,
    attention: str | None = None,
    unbalanced_context: bool = False,
    cuda_graphs: bool = False,
    bucket: _Size | None = None,
    reduce_in: str | None = None,
    pin: str | None = None,
    memory: _Size | None = None,
    schedules: str | Iterable[str] | None = None,
    top: int | float | str | None = None,
    explain: str | None = None,
    tokens: int | float | str | None = None,
    by: _Time | None = None,
    price: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
    kernels: _Path | None = None,
    measured: _Path | None = None,
    strategy: str | Iterable[str] | None = None,
    recorded_on: _Path | None = None,
    step_time: _Time | None = None,
    replica_batch: int | float | str | None = None,
    gradient_bytes: _Size | None = None,
    role: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
    strict: bool = False,
    steps: _Time | Iterable[_Time] | None = None,
    ranks: str | int | float | Iterable[str | int | float] | None = None,
    window: str | int | float | None = None,
    no_python: bool = False,
    memory_cap: _Size | None = None,
    threads: int | float | str | None = None,
    write_scenarios: _Path | None = None,
    scenarios: _Path | None = None,
    shard: str | int | float | None = None,
    merge: _Path | Iterable[_Path] | None = None,
    hardware: _Path | Iterable[_Path] | None = None,
) -> Answer:
    """Find the layout to run: every legal one, ranked, and why the best wins"""

def collectives(
    *,
    on: _Path,
    gpus: int | str | Iterable[int | str] | None = None,
    sizes: str | int | float | Iterable[str | int | float] | None = None,
    collective: str | Iterable[str] | None = None,
    ranks_per_node: int | float | str | None = None,
    stride: int | float | str | None = None,
    compare: _Path | Iterable[_Path] | None = None,
    latency: _Time | Iterable[_Time] | None = None,
    late_links: int | float | str | None = None,
    window: _Size | None = None,
    algorithm: str | None = None,
    degrade: str | int | float | Iterable[str | int | float] | None = None,
    concurrent: int | float | str | None = None,
    scatter: str | int | float | None = None,
    topology: str | int | float | None = None,
    explain: bool = False,
    plot: _Path | None = None,
    hardware: _Path | Iterable[_Path] | None = None,
) -> Answer:
    """Show what collectives cost on a cluster, by size and number of GPUs, beside measurements"""

def models(
    model: _Source | None = None,
    /,
    *,
    sequence: str | int | float | None = None,
) -> Answer:
    """List models known by name, or show one: layers, parameters, work"""

def strategies(
    name: str | None = None,
    /,
) -> Answer:
    """List synchronisation strategies and the passes they are composed of"""

def export(
    *traces: _Source,
    strict: bool = False,
    steps: _Time | Iterable[_Time] | None = None,
    ranks: str | int | float | Iterable[str | int | float] | None = None,
    window: str | int | float | None = None,
    no_python: bool = False,
    memory_cap: _Size | None = None,
    threads: int | float | str | None = None,
    graph: _Path | None = None,
    perfetto: _Path | None = None,
) -> Answer:
    """Write traces or graphs in another form: a step graph, a timeline for Perfetto"""

def validate(
    *,
    data: _Path | None = None,
    set: str | Iterable[str] | None = None,
    extra: _Path | Iterable[_Path] | None = None,
    rows: bool = False,
    write: _Path | None = None,
) -> Answer:
    """Score predictions against measured step times"""

class varuna:
    @staticmethod
    def plan(
        *profile: _Path,
        gpus: int | float | str,
        batch: int | float | str,
        gpu_memory: _Size | None = None,
        gpus_per_vm: int | float | str | None = None,
        scattered: bool = False,
        schedule: str | Iterable[str] | None = None,
        micro_batch: str | int | float | None = None,
        stages: int | str | Iterable[int | str] | None = None,
        uneven: bool = False,
        drop_remainder: bool = False,
        gaps: str | int | float | None = None,
        draws: int | float | str | None = None,
        compute_sigma: _Time | None = None,
        network_sigma: _Time | None = None,
        seed: int | float | str | None = None,
        model: str | None = None,
        gpu: str | None = None,
        tp: int | float | str | None = None,
        activation: _Size | None = None,
    ) -> Answer:
        """Rank all pipelines of a model on so many GPUs, and say why each loses"""

    @staticmethod
    def simulate(
        *profile: _Path,
        gpus: int | float | str | None = None,
        batch: int | float | str | None = None,
        forward: _Time | Iterable[_Time] | None = None,
        backward: _Time | Iterable[_Time] | None = None,
        micro_batches: int | float | str | None = None,
        send: _Time | None = None,
        long_send: _Time | None = None,
        all_reduce: _Time | None = None,
        replicas: int | float | str | None = None,
        timeline: bool = False,
        perfetto: _Path | None = None,
        gpu_memory: _Size | None = None,
        gpus_per_vm: int | float | str | None = None,
        scattered: bool = False,
        schedule: str | Iterable[str] | None = None,
        micro_batch: str | int | float | None = None,
        stages: int | str | Iterable[int | str] | None = None,
        uneven: bool = False,
        drop_remainder: bool = False,
        gaps: str | int | float | None = None,
        draws: int | float | str | None = None,
        compute_sigma: _Time | None = None,
        network_sigma: _Time | None = None,
        seed: int | float | str | None = None,
        model: str | None = None,
        gpu: str | None = None,
        tp: int | float | str | None = None,
        activation: _Size | None = None,
    ) -> Answer:
        """Play schedules of one pipeline, of a profile or of given times"""

    @staticmethod
    def morph(
        *profile: _Path,
        batch: int | float | str,
        availability: _Path,
        gpu_kind: str | None = None,
        until: _Time | None = None,
        machines: _Path | None = None,
        checkpoint_every: _Time | None = None,
        checkpoint: _Time | None = None,
        restart: _Time | None = None,
        preempted_wait: _Time | None = None,
        transient_wait: _Time | None = None,
        notice: _Time | None = None,
        quiet: _Time | None = None,
        slow: str | int | float | None = None,
        price: str | int | float | None = None,
        dedicated_price: str | int | float | None = None,
        dedicated_gpus: int | float | str | None = None,
        gpu_memory: _Size | None = None,
        gpus_per_vm: int | float | str | None = None,
        scattered: bool = False,
        schedule: str | Iterable[str] | None = None,
        micro_batch: str | int | float | None = None,
        stages: int | str | Iterable[int | str] | None = None,
        uneven: bool = False,
        drop_remainder: bool = False,
        gaps: str | int | float | None = None,
        draws: int | float | str | None = None,
        compute_sigma: _Time | None = None,
        network_sigma: _Time | None = None,
        seed: int | float | str | None = None,
        model: str | None = None,
        gpu: str | None = None,
        tp: int | float | str | None = None,
        activation: _Size | None = None,
    ) -> Answer:
        """Follow a trace of how many preemptible GPUs there are, planning anew at each change"""

class fleet:
    @staticmethod
    def audit(
        *tables: _Path,
        schema: str | None = None,
        column: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
    ) -> Answer:
        """Show what tables of jobs, machines and GPU samples hold, leave open and contradict each other in"""

    @staticmethod
    def characterise(
        table: _Path | None = None,
        /,
        *,
        preset: str | None = None,
        schema: str | None = None,
        column: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
        ethernet: str | int | float | None = None,
        pcie: str | int | float | None = None,
        nvlink: str | int | float | None = None,
        tflops: str | int | float | None = None,
        memory_bandwidth: str | int | float | None = None,
        gpu_memory: _Size | None = None,
        gpus_per_server: int | float | str | None = None,
        pcie_sharing: int | float | str | None = None,
        efficiency: str | int | float | Iterable[str | int | float] | None = None,
        traffic_counts: str | int | float | None = None,
    ) -> Answer:
        """Show what jobs spend their steps on, by class, and how long they run and wait"""

    @staticmethod
    def project(
        table: _Path | None = None,
        /,
        *,
        preset: str | None = None,
        schema: str | None = None,
        column: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
        to: str | int | float | Iterable[str | int | float] | None = None,
        overlap: bool = False,
        ethernet: str | int | float | None = None,
        pcie: str | int | float | None = None,
        nvlink: str | int | float | None = None,
        tflops: str | int | float | None = None,
        memory_bandwidth: str | int | float | None = None,
        gpu_memory: _Size | None = None,
        gpus_per_server: int | float | str | None = None,
        pcie_sharing: int | float | str | None = None,
        efficiency: str | int | float | Iterable[str | int | float] | None = None,
        traffic_counts: str | int | float | None = None,
    ) -> Answer:
        """Move jobs to another class of distribution: may they run there, and how much faster?"""

    @staticmethod
    def sweep(
        table: _Path | None = None,
        /,
        *,
        preset: str | None = None,
        schema: str | None = None,
        column: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
        change: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
        software: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
        overlap: bool = False,
        ethernet: str | int | float | None = None,
        pcie: str | int | float | None = None,
        nvlink: str | int | float | None = None,
        tflops: str | int | float | None = None,
        memory_bandwidth: str | int | float | None = None,
        gpu_memory: _Size | None = None,
        gpus_per_server: int | float | str | None = None,
        pcie_sharing: int | float | str | None = None,
        efficiency: str | int | float | Iterable[str | int | float] | None = None,
        traffic_counts: str | int | float | None = None,
    ) -> Answer:
        """Show what other hardware, or faster software, would buy each class"""

    @staticmethod
    def synthesize(
        *,
        jobs: int | float | str | None = None,
        seed: int | float | str | None = None,
    ) -> Answer:
        """Draw a made-up table of jobs with the published shares of a fleet"""

    @staticmethod
    def features(
        *subjects: _Source,
        class_: str | int | float | None = None,
        cnodes: int | float | str | None = None,
        gpus_per_server: int | float | str | None = None,
        batch: int | float | str | None = None,
        sequence: int | float | str | None = None,
        target_sequence: int | float | str | None = None,
        optimizer: str | None = None,
        precision: str | None = None,
        total_steps: int | float | str | None = None,
        name: str | None = None,
        model: str | None = None,
        on: _Path | None = None,
        explain: bool = False,
        append: _Path | None = None,
        hardware: _Path | Iterable[_Path] | None = None,
        strict: bool = False,
        steps: _Time | Iterable[_Time] | None = None,
        ranks: str | int | float | Iterable[str | int | float] | None = None,
        window: str | int | float | None = None,
        no_python: bool = False,
        memory_cap: _Size | None = None,
        threads: int | float | str | None = None,
    ) -> Answer:
        """Make rows of the feature table of jobs at hand: recordings, graphs, models"""

    @staticmethod
    def open(
        table: _Path,
        /,
        *,
        row: str | int | float,
        out: _Path | None = None,
        optimizer: str | None = None,
        precision: str | None = None,
        schema: str | None = None,
        column: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
        ethernet: str | int | float | None = None,
        pcie: str | int | float | None = None,
        nvlink: str | int | float | None = None,
        tflops: str | int | float | None = None,
        memory_bandwidth: str | int | float | None = None,
        gpu_memory: _Size | None = None,
        gpus_per_server: int | float | str | None = None,
        pcie_sharing: int | float | str | None = None,
        efficiency: str | int | float | Iterable[str | int | float] | None = None,
        traffic_counts: str | int | float | None = None,
    ) -> Answer:
        """Make a step of a row that predict, whatif and inspect read"""

    @staticmethod
    def schedule(
        *tables: _Path,
        schema: str | None = None,
        column: str | int | float | Iterable[str | int | float] | Mapping[str, Any] | None = None,
        policy: str | Iterable[str] | None = None,
        on: _Path | None = None,
        hardware: _Path | Iterable[_Path] | None = None,
        nodes: int | float | str | None = None,
        gpus_per_node: int | float | str | None = None,
        machines: _Path | None = None,
        rack: int | float | str | None = None,
        restart: _Time | None = None,
        interval: _Time | None = None,
        sharing: str | int | float | None = None,
        utilisation: str | int | float | None = None,
        utilisation_with: _Path | None = None,
        place: str | None = None,
        elastic: bool = False,
        mtbf: _Time | None = None,
        repair: _Time | None = None,
        checkpoint: _Time | None = None,
        runs: int | float | str | None = None,
        seed: int | float | str | None = None,
        duration_error: str | int | float | None = None,
        until: _Time | None = None,
        plot: _Path | None = None,
        jobs: _Path | None = None,
    ) -> Answer:
        """Play the jobs on a cluster under several schedulers, and compare what comes of it"""

    @staticmethod
    def share(
        *models: _Source,
        classes: int | float | str | None = None,
        dtype: str | None = None,
        rule: str | None = None,
        accuracy: _Path | None = None,
        epochs: int | float | str | None = None,
        epoch_time: _Time | Iterable[_Time] | None = None,
        draws: int | float | str | None = None,
        seed: int | float | str | None = None,
    ) -> Answer:
        """Show which layers models could hold in common, what that saves, and what retraining would keep"""

    @staticmethod
    def edge(
        file: _Path,
        /,
        *,
        memory: _Size | Iterable[_Size] | None = None,
    ) -> Answer:
        """Play a small device that serves models by turns, with and without shared layers"""

    class utilisation:
        @staticmethod
        def train(
            table: _Path,
            /,
            *,
            write: _Path,
            force: bool = False,
            about: str | int | float | None = None,
            licence: str | None = None,
        ) -> Answer:
            """Learn from measured jobs; shows how far off predictions are for families that were left out"""

        @staticmethod
        def predict(
            model: _Source,
            /,
            *,
            batch: int | float | str,
            with_: _Path,
        ) -> Answer:
            """Say what to expect of a model"""

        @staticmethod
        def evaluate(
            table: _Path,
            /,
            *,
            with_: _Path | None = None,
        ) -> Answer:
            """Show how far off predictions are, of a predictor for jobs that it has not seen, or else with families left out"""

class calibrate:
    @staticmethod
    def collectives(
        *logs: _Path,
        on: _Path,
        out: _Path | None = None,
        force: bool = False,
        name: str | None = None,
        collective: str | None = None,
        ranks_per_node: int | float | str | None = None,
        hardware: _Path | Iterable[_Path] | None = None,
    ) -> Answer:
        """Fit the collective model to logs of nccl-tests or rccl-tests from a cluster"""

    @staticmethod
    def primitives(
        *tables: _Path,
        sizes: str | int | float | Iterable[str | int | float] | None = None,
        budget: _Time | None = None,
        raw: _Path | None = None,
        out: _Path | None = None,
        force: bool = False,
    ) -> Answer:
        """Measure on this machine what sending, receiving, summing, copying and compressing gradients costs, or take measured times from tables"""

    @staticmethod
    def interference(
        *traces: _Source,
        pairs: _Path | None = None,
        alone: _Path | None = None,
        source: str | None = None,
        licence: str | None = None,
        out: _Path | None = None,
        force: bool = False,
        hardware: _Path | Iterable[_Path] | None = None,
    ) -> Answer:
        """Fit how computation and communication, or jobs on one device, slow each other down"""

    @staticmethod
    def kernels(
        file: _Path,
        /,
        *,
        device: str | None = None,
        only: str | None = None,
        out: _Path | None = None,
        force: bool = False,
        hardware: _Path | Iterable[_Path] | None = None,
    ) -> Answer:
        """Bring the shipped kernel times in line with a sweep of matrix products or a recording"""

class hardware:
    @staticmethod
    def list(
        what: str | None = None,
        /,
        *,
        hardware: _Path | Iterable[_Path] | None = None,
    ) -> Answer:
        """List devices, node types or clusters"""

    @staticmethod
    def show(
        name: str,
        /,
        *,
        hardware: _Path | Iterable[_Path] | None = None,
    ) -> Answer:
        """Show one entry with the source of every figure"""
