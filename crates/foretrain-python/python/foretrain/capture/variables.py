"""Environment variables that decide how training performs, without what is private."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_PREFIXES = (
    "NCCL_",
    "RCCL_",
    "TORCH_NCCL_",
    "TORCH_DISTRIBUTED_",
    "GLOO_",
    "UCX_",
    "UCC_",
    "FI_",
    "OMP_",
    "KMP_",
    "MKL_",
    "GOMP_",
    "NVTE_",
    "MIOPEN_",
    "HSA_",
)
_NAMES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUBLAS_WORKSPACE_CONFIG",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "WORLD_SIZE",
    "RANK",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS_PER_NODE",
)
_SECRET = re.compile(
    r"(?:^|_)(?:API|AUTH|CERT|COMM_ID|CRED\w*|JWT|KEYS?|LOGIN|PASS\w*|PRIVATE|SALT|SECRETS?|TOKENS?|USERS?)(?:_|$)"
)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,}|://|@")
# Keys and tokens are long and mix digits or capitals with letters; names of settings do not.
_LONG_WORD = re.compile(r"(?![a-z_-]{24,}(?:[^A-Za-z0-9+/=_-]|$))[A-Za-z0-9+/=_-]{24,}")


def relevant_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables of the allow-list. Instead of a path, an address or what may be a secret stands
    what it is."""
    return {
        name: _shown(value)
        for name, value in sorted(environment.items())
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
    }


def _shown(value: str) -> str:
    if _ADDRESS.search(value):
        return "(an address, withheld)"
    if "/" in value or "\\" in value:
        return "(a path, withheld)"
    if len(value) > 400 or _LONG_WORD.search(value):
        return "(a long word, withheld)"
    return value if value.isprintable() else "(not printable, withheld)"
