//! Whole runs of other strategies than data parallelism, where the data is at hand.

use std::path::{Path, PathBuf};

use foretrain_hardware::Catalogue;
use foretrain_ingest::{ReadOptions, read_trace};
use foretrain_predict::{PredictOptions, Recording, predict};
use foretrain_rewrite::BucketCaps;

fn traces() -> Option<PathBuf> {
    let dir = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let dir = dir.join("lab/traces");
    dir.is_dir().then_some(dir)
}

fn run(dir: &Path, name: &str) -> Vec<Recording> {
    (0..2)
        .map(|rank| {
            let path = dir.join(format!("{name}_r{rank}.noet.pt.trace.json.gz"));
            let (trace, _) = read_trace(&path, &ReadOptions::default()).expect("readable");
            Recording::analyse(trace, None)
        })
        .collect()
}

/// At the recorded size, on the recorded network, nothing changes: all ranks simulated together
/// must come back to the step that was recorded.
#[test]
fn sharded_and_pipeline_runs_come_back_to_their_own_step() {
    let Some(dir) = traces() else {
        println!("skipped: no lab traces (set FORETRAIN_DATA)");
        return;
    };
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("dgx-a100").expect("known");
    for name in [
        "fsdp1_gpt_w2_c1_bw200",
        "fsdp2_gpt_w2_c1_bw200",
        "fsdp2_gpt_w2_c1_bw0",
        "pp_gpt_1f1b_m4_w2_c1_bw50",
        "pp_gpt_1f1b_m8_w2_c1_bw0",
        "pp_gpt_gpipe_m4_w2_c1_bw200",
    ] {
        let options = PredictOptions {
            recorded_on: Some(cluster.clone()),
            unprofiled_step: None,
            gpus: vec![2],
            replica_batch: None,
            buckets: BucketCaps::default(),
            gradient_bytes: None,
            roles: Vec::new(),
            interference: None,
        };
        let recordings = run(&dir, name);
        let prediction = predict(&recordings, &cluster, catalogue, &options).expect("predicts");
        let recorded = &prediction.recorded;
        assert_eq!(recorded.simulated_ranks, [0, 1], "{name}: {:?}", prediction.warnings);
        let size = &prediction.sizes[0];
        let ratio = size.step_time.value.millis_f64() / recorded.step_time.millis_f64();
        assert!((ratio - 1.0).abs() < 0.06, "{name}: {ratio:.3} of {}", recorded.step_time);
        assert_eq!(size.breakdown.total(), size.step_time.value, "{name}");
    }
}
