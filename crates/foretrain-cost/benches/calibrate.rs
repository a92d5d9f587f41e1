//! How fast a benchmark's log is fitted.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use foretrain_core::Bytes;
use foretrain_cost::{
    CollectiveCall, Fabric, GroupPlacement, Observation, calibrate, collective_time,
};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Catalogue;

/// A sweep of all-reduce over 25 sizes that takes 1.2 times what the model says.
fn log(name: &str, ranks: u32) -> Vec<Observation> {
    let cluster = Catalogue::builtin().cluster(name).expect("a catalogue name");
    let fabric = Fabric::for_group(&cluster, &GroupPlacement::contiguous(ranks)).expect("fits");
    let row = |size: u32| {
        let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::new(1 << size));
        let time = collective_time(&call, &fabric).time.value.scale(1.2);
        Observation::new(call, fabric.clone(), time).expect("a time")
    };
    (8..33).map(row).collect()
}

fn fit(c: &mut Criterion) {
    for (name, ranks) in [("dgx-a100", 8), ("dgx-a100", 16), ("dgx-h100", 64)] {
        let rows = log(name, ranks);
        c.bench_function(&format!("calibrate/{name}/{ranks}"), |b| {
            b.iter(|| calibrate::calibrate(black_box(&rows), Vec::new()).expect("rows"));
        });
    }
}

criterion_group!(all, fit);
criterion_main!(all);
