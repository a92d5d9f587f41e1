"""What a model and its optimiser are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

# Wrappers put their own names into those of parameters.
_WRAPPERS = re.compile(
    r"(?:^|(?<=\.))(?:_fsdp_wrapped_module|_checkpoint_wrapped_module|_orig_mod)\."
)


def parameters_of(model: Any) -> list[tuple[str, Any]]:
    """Parameters in the model's order, each once; their places in this list are their indices."""
    return [(plain_name(name), parameter) for name, parameter in model.named_parameters()]


def is_sharded(parameter: Any) -> bool:
    """Whether a rank holds a part of the parameter only, by FSDP's second version."""
    return hasattr(parameter, "_local_tensor")


def flat_parameters(model: Any) -> list[Any]:
    """The parameters that FSDP's first version laid out one behind the other, unit by unit."""
    handles = (getattr(module, "_handle", None) for module in model.modules())
    flat = (getattr(handle, "flat_param", None) for handle in handles)
    return [parameter for parameter in flat if hasattr(parameter, "_shapes")]


def _whole_shapes(model: Any) -> dict[int, list[int]]:
    """Shapes of what a rank sees a shard of, by the shard's identity."""
    shapes: dict[int, list[int]] = {}
    for flat in flat_parameters(model):
        shapes[id(flat)] = [sum(map(int, flat._numels))]
        for parameter, shape in zip(flat._params or (), flat._shapes, strict=False):
            shapes[id(parameter)] = [int(size) for size in shape]
    return shapes


def plain_name(name: str) -> str:
    """A parameter's name without what wrappers added, but with DDP's `module.`."""
    return _WRAPPERS.sub("", name)


def describe_model(model: Any) -> dict[str, Any]:
    """Parameters and buffers: names, shapes, bytes, and which parameters are shared."""
    first: dict[int, int] = {}
    described = []
    whole = _whole_shapes(model)
    for index, (name, parameter) in enumerate(parameters_of(model)):
        first[id(parameter)] = index
        described.append(_parameter(name, parameter, whole.get(id(parameter))))
    for name, parameter in model.named_parameters(remove_duplicate=False):
        entry = described[first[id(parameter)]]
        if plain_name(name) != entry["name"]:
            entry.setdefault("also", []).append(plain_name(name))
    buffers = [(plain_name(name), buffer) for name, buffer in model.named_buffers()]
    return {
        "class": _class_name(_innermost(model)),
        "compiled": _is_compiled(model),
        "parameters": described,
        "buffers": {
            "count": len(buffers),
            "bytes": sum(_bytes(buffer) for _, buffer in buffers),
            "dtypes": sorted({_dtype(buffer) for _, buffer in buffers}),
        },
    }


def _parameter(name: str, parameter: Any, whole: list[int] | None) -> dict[str, Any]:
    shape = [int(size) for size in parameter.shape] if whole is None else whole
    entry: dict[str, Any] = {
        "name": name,
        "shape": shape,
        "dtype": _dtype(parameter),
        "bytes": math.prod(shape) * int(parameter.element_size()),
        "requires_grad": bool(parameter.requires_grad),
    }
    if whole is not None:
        entry["local_bytes"] = _bytes(parameter)
    local = getattr(parameter, "_local_tensor", None)
    if local is not None:
        entry["local_bytes"] = _bytes(local)
        entry["placements"] = [str(placement) for placement in parameter.placements]
    return entry


def describe_optimizers(optimizers: Iterable[Any]) -> list[dict[str, Any]]:
    """Name, settings that change its kernels, and bytes of state by kind."""
    return [_optimizer(bare_optimizer(optimizer)) for optimizer in optimizers]


def _optimizer(optimizer: Any) -> dict[str, Any]:
    state_bytes: dict[str, int] = {}
    for state in getattr(optimizer, "state", {}).values():
        if not isinstance(state, dict):
            continue
        for kind, value in state.items():
            if hasattr(value, "element_size"):
                held = getattr(value, "_local_tensor", value)
                state_bytes[str(kind)] = state_bytes.get(str(kind), 0) + _bytes(held)
    groups = getattr(optimizer, "param_groups", [])
    switches: dict[str, bool | None] = {}
    for switch in ("foreach", "fused", "capturable", "amsgrad", "nesterov"):
        values = [group[switch] for group in groups if switch in group]
        if values and (values[0] is None or isinstance(values[0], bool)):
            switches[switch] = values[0]
    return {
        "class": _class_name(optimizer),
        "parameter_groups": len(groups),
        "parameters": sum(len(group.get("params", ())) for group in groups),
        "state_bytes": state_bytes,
        "switches": switches,
    }


def bare_optimizer(optimizer: Any) -> Any:
    """The optimiser inside wrappers of training libraries."""
    for _ in range(4):
        inner = getattr(optimizer, "optimizer", None)
        if inner is None or not hasattr(inner, "param_groups"):
            break
        optimizer = inner
    return optimizer


def _innermost(model: Any) -> Any:
    for _ in range(8):
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in (
            "DistributedDataParallel",
            "FullyShardedDataParallel",
        ):
            inner = model.module
        if inner is None:
            break
        model = inner
    return model


def _is_compiled(model: Any) -> bool:
    return any(
        hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
        for module in model.modules()
    )


def _class_name(thing: Any) -> str:
    return type(thing).__qualname__


def _bytes(tensor: Any) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
