//! No bytes make the readers of profiles, tables of layers, machines and availability panic; a
//! profile that is read can be planned with or says why not.
#![no_main]

use foretrain_plan::varuna::layout::Machines;
use foretrain_plan::varuna::morph::machines;
use foretrain_plan::varuna::plan::{MicroBatches, PlanOptions, plan};
use foretrain_plan::varuna::profile::{Gaps, LayerChoice, Profile, parse, parse_layers};
use foretrain_plan::varuna::schedule::Schedule;
use foretrain_plan::varuna::availability;
use libfuzzer_sys::fuzz_target;

fn planned(profile: &Profile) {
    let machines = Machines { gpus_each: 2, placement: Default::default() };
    let options = PlanOptions {
        gpus: 8,
        batch: 16,
        gpu_memory: None,
        drop_remainder: false,
        machines,
        schedules: Schedule::ALL.to_vec(),
        micro_batches: MicroBatches::Largest,
        stages: vec![1, 2],
        uneven: true,
        gaps: Gaps::Interpolate,
        jitter: None,
    };
    if let Ok(plan) = plan(profile, &options) {
        assert!(plan.ranked.iter().all(|one| one.throughput().is_finite()));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for profile in [parse(text), parse_layers(text, &LayerChoice::default())].into_iter().flatten() {
        planned(&profile);
    }
    if let Ok(rows) = machines::parse(text) {
        machines::slow(&rows, 0.15);
    }
    let options = availability::Options { gpus_per_vm: 4, ..Default::default() };
    if let Ok(trace) = availability::parse(text, &options) {
        assert!(trace.gpu_seconds().is_finite());
        assert!(trace.changes.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
});
