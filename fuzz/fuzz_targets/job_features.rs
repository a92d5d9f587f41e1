//! No table of jobs makes what looks at their steps panic: shares and gains are numbers, and a row
//! that opens is a step that can be replayed.
#![no_main]

use foretrain_core::Ledger;
use foretrain_fleet::jobs::{Class, Table, TableOptions};
use foretrain_fleet::pai::Overlap;
use foretrain_fleet::pai::characterise::{Characteriser, Method};
use foretrain_fleet::pai::project::Projector;
use foretrain_fleet::pai::sweep::{Sweeper, usual_grid};
use foretrain_plan::{Optimiser, Precision};
use foretrain_predict::jobs::open::{Terms, open};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(table) = Table::from_bytes("table", bytes.to_vec(), &TableOptions::default()) else {
        return;
    };
    let method = Method::PAI_2019;
    let mut jobs = Vec::new();
    table.for_each(|job| {
        if jobs.len() < 20 {
            jobs.push(job.clone());
        }
    });
    let mut all = Characteriser::new(method);
    let mut moved = Projector::new(method, Overlap::None, Class::ALL.to_vec());
    let mut sweep = Sweeper::new(method, Overlap::Ideal, usual_grid(&method));
    for job in &jobs {
        all.add(job);
        moved.add(job);
        sweep.add(job);
    }
    let ledger = &mut Ledger::new();
    let found = all.finish(ledger);
    for profile in &found.classes {
        for weighted in [&profile.by_job, &profile.by_cnode] {
            assert!(weighted.shares.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share)));
        }
        assert!(profile.ideal_overlap.is_finite());
    }
    moved.finish(ledger);
    sweep.finish(ledger);
    let terms = Terms {
        hardware: method.hardware,
        traffic_counts: method.traffic,
        optimiser: Optimiser::Adam,
        precision: Precision::BF16,
    };
    for job in &jobs {
        if let Ok(opened) = open(job, "table", &terms) {
            opened.graph.validate().expect("a graph that can be replayed");
            assert!(opened.scale.is_none_or(f64::is_finite));
        }
    }
});
