"""How the model is spread over processes: DDP's buckets, FSDP's units, process groups."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

from .model import parameters_of, plain_name
from .notes import Notes


def describe_parallel(model: Any, notes: Notes) -> dict[str, Any]:
    """The layout of the model's replicas and every process group that this process knows."""
    described: dict[str, Any] = {"kind": "none"}
    if model is not None:
        indices = {id(p): index for index, (_, p) in enumerate(parameters_of(model))}
        # HSDP may combine both, so each is looked for; the inner one names the kind.
        ddp = notes.attempt("parallel", lambda: _ddp(model, indices))
        if ddp is not None:
            described = {"kind": "ddp", "ddp": ddp}
        for kind, describe in (("fsdp1", _fsdp1), ("fsdp2", _fsdp2)):
            units = notes.attempt("parallel", partial(describe, model, indices))
            if units:
                described |= {"kind": kind, "units": units}
    groups = notes.attempt("process groups", process_groups)
    if groups:
        described["process_groups"] = groups
        if described["kind"] == "none" and model is not None:
            notes.add(
                "parallel",
                "there are process groups, but the model is no DDP and no FSDP module; "
                "if it is wrapped, pass the wrapped one",
            )
    return described


def find_ddp(model: Any) -> Any | None:
    """The DistributedDataParallel that the model is, holds, or is held by."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    for module in model.modules():
        if isinstance(module, DistributedDataParallel):
            return module
    if not (dist.is_available() and dist.is_initialized()):
        return None
    # Training libraries keep the wrapper to themselves. Types are compared and not objects asked:
    # `isinstance` runs code of lazy objects and proxies.
    for thing in gc.get_objects():
        if issubclass(type(thing), DistributedDataParallel) and thing.module is model:
            return thing
    return None


def _ddp(model: Any, indices: dict[int, int]) -> dict[str, Any] | None:
    import torch.distributed as dist

    module = find_ddp(model)
    if module is None:
        return None
    told = module._get_ddp_logging_data()
    cap = int(getattr(module, "bucket_bytes_cap", told.get("bucket_cap_bytes", 0)))
    hooks = [getattr(hook[0], "__qualname__", str(hook[0])) for hook in _hooks(module)]
    # The reducer numbers the parameters that it reduces; the capture numbers all of the model.
    ignored = set(getattr(module, "parameters_to_ignore", ()))
    reduced = [
        indices.get(id(parameter))
        for name, parameter in module.module.named_parameters()
        if parameter.requires_grad and name not in ignored
    ]
    return {
        "bucket_cap_bytes": cap,
        "bucket_cap_is_default": bool(getattr(module, "bucket_bytes_cap_default", False)),
        "rebuilt": bool(told.get("has_rebuilt_buckets", 0)),
        "buckets": _buckets(told, reduced),
        "gradient_as_bucket_view": bool(module.gradient_as_bucket_view),
        "broadcast_buffers": bool(module.broadcast_buffers),
        "find_unused_parameters": bool(module.find_unused_parameters),
        "static_graph": bool(getattr(module, "static_graph", False)),
        "communication_hooks": hooks,
        "world_size": int(dist.get_world_size(module.process_group)),
    }


def _hooks(module: Any) -> list[Any]:
    hooks = getattr(module, "_comm_hooks", None)
    return list(hooks) if hooks else []


def _buckets(told: dict[str, Any], reduced: list[int | None]) -> list[dict[str, Any]]:
    """Buckets in the order in which they are launched, with their parameters where told."""
    sizes = _numbers(told.get("rebuilt_bucket_sizes", "")) or _numbers(told.get("bucket_sizes", ""))
    members = [
        _numbers(bucket.replace(" ", ","))
        for bucket in str(told.get("rebuilt_per_bucket_param_indices", "")).split(",")
        if bucket.strip()
    ]
    buckets: list[dict[str, Any]] = []
    for index, size in enumerate(sizes):
        bucket: dict[str, Any] = {"bytes": size}
        if len(members) == len(sizes):
            places = [reduced[i] if i < len(reduced) else None for i in members[index]]
            if None not in places:
                bucket["parameters"] = places
        buckets.append(bucket)
    return buckets


def _numbers(text: Any) -> list[int]:
    return [int(part) for part in str(text).split(",") if part.strip().isdigit()]


def _fsdp1(model: Any, indices: dict[int, int]) -> list[dict[str, Any]]:
    from torch.distributed.fsdp import FullyShardedDataParallel

    units = []
    for name, module in model.named_modules():
        if not isinstance(module, FullyShardedDataParallel):
            continue
        handle = getattr(module, "_handle", None)
        if handle is None:
            continue
        flat = handle.flat_param
        own = getattr(flat, "_params", None) or [flat]
        names, shapes = list(flat._fqns), [list(map(int, shape)) for shape in flat._shapes]
        units.append(
            {
                "module": plain_name(name + ".").removesuffix("."),
                "parameters": [indices[id(p)] for p in own if id(p) in indices],
                "parameter_names": names,
                "parameter_shapes": shapes,
                "bytes": sum(map(int, flat._numels)) * flat.element_size(),
                "dtype": str(flat.dtype).removeprefix("torch."),
                "sharding": module.sharding_strategy.name,
                "mixed_precision": _precision(module.mixed_precision),
                "ranks": int(module.world_size),
            }
        )
    return units


def _fsdp2(model: Any, indices: dict[int, int]) -> list[dict[str, Any]]:
    units = []
    for name, module in model.named_modules():
        if not hasattr(module, "_get_fsdp_state"):
            continue
        state = module._get_fsdp_state()
        groups = getattr(state, "_fsdp_param_groups", None)
        if groups is None:
            groups = [getattr(state, "_fsdp_param_group", None)]
        policy = getattr(state, "_mp_policy", None)
        for group in groups:
            if group is not None:
                units.append(_fsdp2_unit(plain_name(name), group, policy, indices))
    return units


def _fsdp2_unit(name: str, group: Any, policy: Any, indices: dict[int, int]) -> dict[str, Any]:
    parameters = [held.sharded_param for held in group.fsdp_params]
    mesh = group.mesh_info
    after_forward = group.post_forward_mesh_info
    if after_forward is None:
        reshard = "never"
    else:
        reshard = "whole" if after_forward is mesh else "in part"
    return {
        "module": name,
        "parameters": [indices[id(p)] for p in parameters if id(p) in indices],
        "bytes": sum(int(p.numel()) * int(p.element_size()) for p in parameters),
        "sharding": "HYBRID" if hasattr(mesh, "replicate_mesh_size") else "FULL",
        "reshard_after_forward": reshard,
        "mixed_precision": _precision(policy),
        "ranks": int(getattr(mesh, "shard_mesh_size", 1)),
        "replicas": int(getattr(mesh, "replicate_mesh_size", 1)),
    }


def _precision(policy: Any) -> dict[str, str]:
    if policy is None:
        return {}
    kinds = ("param_dtype", "reduce_dtype", "buffer_dtype", "output_dtype")
    values = {kind: getattr(policy, kind, None) for kind in kinds}
    return {kind: str(v).removeprefix("torch.") for kind, v in values.items() if v is not None}


def process_groups() -> list[dict[str, Any]]:
    """Name, purpose, backend and ranks of the process groups that this process belongs to."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return []
    from torch.distributed import distributed_c10d as c10d

    described = []
    for group, name in c10d._world.pg_names.items():
        ranks = sorted(c10d._world.pg_group_ranks.get(group, {}))
        if not ranks:
            continue
        described.append(
            {
                "name": str(name),
                "purpose": str(getattr(group, "group_desc", "") or ""),
                "backend": str(dist.get_backend(group)),
                "size": len(ranks),
                "ranks": compact(ranks),
            }
        )
    return described


def compact(numbers: list[int]) -> str:
    """Ascending numbers as ranges: `0-3,8` for 0, 1, 2, 3 and 8."""
    parts: list[str] = []
    start = last = None
    for number in [*numbers, None]:
        if last is not None and number == last + 1:
            last = number
            continue
        if start is not None:
            parts.append(str(start) if start == last else f"{start}-{last}")
        start = last = number
    return ",".join(parts)
