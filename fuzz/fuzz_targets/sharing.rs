//! Any text is a table of outcomes or a device, or an error; outcomes are planned with, and a device
//! is played to its end.
#![no_main]

use foretrain_core::{DType, Nanos};
use foretrain_fleet::sharing::edge::{Memory, compare, parse, simulate};
use foretrain_fleet::sharing::oracle::Table;
use foretrain_fleet::sharing::{ModelLayers, PlanOptions, Rule, Workload, plan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(mut table) = Table::parse(text, 10, 0) {
        let model = |name: &str| {
            let model = foretrain_workload::named(name).expect("in the library");
            ModelLayers::of(&model, DType::F32)
        };
        let models = ["resnet-18", "resnet-34", "alexnet"].map(model).to_vec();
        let workload = Workload::new(models, Rule::default()).expect("three models");
        let epoch_times = vec![Nanos::from_millis(35_000); 3];
        let made = plan(&workload, &PlanOptions { epochs: 10, epoch_times }, &mut table);
        assert!(made.saved() <= workload.most_saved());
        assert!(made.steps.iter().all(|step| step.epochs <= 10));
    }
    let Ok(mut edge) = parse(text) else { return };
    edge.frames = edge.frames.min(50);
    let batches: Vec<u32> = edge.models.iter().map(|model| model.runs[0].batch).collect();
    if let Ok(Some(outcome)) = simulate(&edge, edge.memory(Memory::Level(0.5)), &batches) {
        assert!(outcome.served.iter().all(|one| one.processed + one.skipped == edge.frames));
        assert!((0.0..=1.0).contains(&outcome.loading) && outcome.time < Nanos::MAX);
    }
    let choices: usize = edge.models.iter().map(|model| model.runs.len()).product();
    if choices <= 64 {
        for compared in compare(&edge, &[Memory::Level(0.0), Memory::Unlimited]).expect("few") {
            assert!(compared.best.is_none_or(|best| best.too_large < best.tried));
        }
    }
});
