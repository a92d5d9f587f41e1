//! Writes the repository's example: two ranks of a small transformer, and the truth about them.
//!
//! `cargo run -p foretrain-testkit --example make_example [DIR]` (default: `examples/ddp-tiny`).

use std::path::PathBuf;

use foretrain_testkit::{ClockSpec, JobSpec, Model, write_dir};

const README: &str = "\
# ddp-tiny: a generated example

Nothing here was measured. `cargo run -p foretrain-testkit --example make_example` simulated a small
transformer on two ranks with `DistributedDataParallel`, and wrote what PyTorch's profiler would have
written (`rank0.json.gz`, `rank1.json.gz`: three steps each, PyTorch 2.4's format) and what really
happened (`truth.json`: step times, who owns them, every all-reduce, the offset of each rank's clock).

The second rank's clock runs 1.7 ms ahead, so the traces must be aligned before they are compared.
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ddp-tiny");
    let dir = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| default.to_owned()));
    let clocks = vec![ClockSpec::default(), ClockSpec { offset_ns: 1_700_000, drift_ppm: 3.0 }];
    let model = Model::Transformer { layers: 2, hidden: 768, sequence: 128, vocabulary: 8_000 };
    let spec = JobSpec { clocks, model, ..JobSpec::tiny_ddp() };
    write_dir(&spec, &dir, true)?;
    std::fs::write(dir.join("README.md"), README)?;
    Ok(())
}
