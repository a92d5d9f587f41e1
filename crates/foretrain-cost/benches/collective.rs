//! How fast a collective is timed.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use foretrain_core::Bytes;
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Catalogue;

fn benches(c: &mut Criterion) {
    let catalogue = Catalogue::builtin();
    for (name, ranks) in [("dgx-a100", 8), ("dgx-h100", 64), ("dgx-h100", 16_384)] {
        let cluster = catalogue.cluster(name).expect("a catalogue name");
        let group = GroupPlacement::contiguous(ranks);
        let fabric = Fabric::for_group(&cluster, &group).expect("a group that fits");
        let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(100));
        c.bench_function(&format!("all_reduce/{name}/{ranks}"), |b| {
            b.iter(|| collective_time(black_box(&call), black_box(&fabric)));
        });
    }
}

criterion_group!(all, benches);
criterion_main!(all);
