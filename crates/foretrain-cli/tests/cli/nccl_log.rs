//! Logs in the form of nccl-tests, made for a case.

use std::path::{Path, PathBuf};

use crate::support::write;

/// One run of an all-reduce or all-gather.
pub(crate) struct Log<'a> {
    /// Of the file, after `DIR/` and before `.log`; names the operation too.
    pub(crate) name: &'a str,
    pub(crate) ranks: u32,
    pub(crate) per_node: u32,
    pub(crate) device: &'a str,
    /// Bytes and microseconds.
    pub(crate) rows: Vec<(u64, f64)>,
}

pub(crate) const GIB: u64 = 1 << 30;

impl Log<'_> {
    fn factor(&self) -> f64 {
        factor(self.name.contains("all_reduce"), self.ranks)
    }

    pub(crate) fn write(&self, directory: &Path) -> PathBuf {
        let mut text = String::from(
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n",
        );
        for rank in 0..self.ranks {
            let (node, local) = (rank / self.per_node, rank % self.per_node);
            let (pid, bus, device) = (1000 + rank, 16 + local, self.device);
            text += &format!(
                "#  Rank {rank:2} Group  0 Pid {pid:6} on     node-{node} device {local:2} [0x{bus:02x}] {device}\n"
            );
        }
        text += "#\n#                                                              out-of-place                       in-place          \n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n";
        let redop = if self.name.contains("all_reduce") { "sum" } else { "none" };
        for &(bytes, us) in &self.rows {
            let algbw = bytes as f64 / us / 1e3;
            let figures = format!("{us:9.1} {algbw:7.2} {:7.2}      0", algbw * self.factor());
            let count = bytes / 4;
            text +=
                &format!("{bytes:12} {count:13}     float {redop:>7}      -1{figures}{figures}\n");
        }
        text += "# Out of bounds values : 0 OK\n#\n";
        write(directory, &format!("{}.log", self.name), text)
    }
}

/// Bus bandwidth over algorithm bandwidth.
fn factor(all_reduce: bool, ranks: u32) -> f64 {
    f64::from(if all_reduce { 2 } else { 1 }) * f64::from(ranks - 1) / f64::from(ranks)
}

/// Rows at a bus bandwidth in GB/s.
pub(crate) fn at(all_reduce: bool, ranks: u32, bus: f64, sizes: &[u64]) -> Vec<(u64, f64)> {
    let time = |bytes: u64| bytes as f64 * factor(all_reduce, ranks) / bus / 1e3;
    sizes.iter().map(|&bytes| (bytes, time(bytes))).collect()
}
