//! Strategies that have a name.

/// A named strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its passes.
    pub passes: &'static str,
    /// What it stands for.
    pub about: &'static str,
}

const fn preset(name: &'static str, passes: &'static str, about: &'static str) -> Preset {
    Preset { name, passes, about }
}

/// All of them.
pub(super) const PRESETS: &[Preset] = &[
    preset("ddp", "fuse(25MiB, first=1MiB)", "PyTorch DDP with its default buckets"),
    preset("wfbp", "library", "wait-free back-propagation: every gradient as it is ready"),
    preset("bsp", "fuse(1TiB) | after-backward", "one all-reduce after the backward pass"),
    preset("mg-wfbp", "merge", "MG-WFBP: gradients merged where that hides more than it delays"),
    preset(
        "p3",
        "partition(4MiB) | servers(colocated=true) | priority",
        "P3: sliced, front layers first, through servers on the workers",
    ),
    preset(
        "bytescheduler",
        "partition(4MiB) | ring | priority(credit=16MiB)",
        "ByteScheduler on an all-reduce",
    ),
    preset(
        "byteps",
        "partition(4096000B) | push-pull | priority(credit=16MiB)",
        "BytePS without spare machines",
    ),
    preset("zero-1", "fuse(25MiB) | zero(1)", "ZeRO-1: sharded optimiser states"),
    preset("zero-2", "fuse(25MiB) | zero(2)", "ZeRO-2: and gradients"),
    preset("zero-3", "fuse(25MiB) | zero(3)", "ZeRO-3: and parameters"),
    preset("fsdp", "fuse(100MiB) | fully-shard", "PyTorch FSDP, full shard"),
    preset(
        "hsdp",
        "fuse(100MiB) | fully-shard(hybrid=true)",
        "PyTorch FSDP, sharded within each node and replicated over nodes",
    ),
    preset(
        "async",
        "fuse(25MiB, first=1MiB) | servers(colocated=true) | stale(1)",
        "asynchronous updates, one step stale",
    ),
];
