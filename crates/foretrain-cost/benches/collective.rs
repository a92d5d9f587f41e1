//! How fast a collective is timed.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foretrain_core::Bytes;
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Catalogue;

const KINDS: [CollectiveKind; 9] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
    CollectiveKind::Gather,
    CollectiveKind::Scatter,
    CollectiveKind::SendRecv,
];
const MACHINES: [&str; 4] = ["dgx-a100", "dgx-h100", "mi300x-8", "aws-p5"];

fn fabric(name: &str, ranks: u32) -> Fabric {
    let cluster = Catalogue::builtin().cluster(name).expect("a catalogue name");
    Fabric::for_group(&cluster, &GroupPlacement::contiguous(ranks)).expect("a group that fits")
}

fn single(c: &mut Criterion) {
    for (name, ranks) in [("dgx-a100", 8), ("dgx-h100", 64), ("dgx-h100", 16_384)] {
        let fabric = fabric(name, ranks);
        let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(100));
        c.bench_function(&format!("all_reduce/{name}/{ranks}"), |b| {
            b.iter(|| collective_time(black_box(&call), black_box(&fabric)));
        });
    }
}

/// Every operation from 1 KiB to 8 GiB on 2 to 4,096 ranks of several machines, one after another.
fn mixed(c: &mut Criterion) {
    let ranks = || (1..=12).map(|doublings| 1 << doublings);
    let fabrics: Vec<Fabric> =
        MACHINES.iter().flat_map(|name| ranks().map(|ranks| fabric(name, ranks))).collect();
    let calls: Vec<CollectiveCall> = KINDS
        .iter()
        .flat_map(|&kind| {
            (10..=33).map(move |size| CollectiveCall::new(kind, Bytes::new(1 << size)))
        })
        .collect();
    let mut group = c.benchmark_group("mixed");
    group.throughput(Throughput::Elements((fabrics.len() * calls.len()) as u64));
    group.bench_function("collective_time", |b| {
        b.iter(|| {
            for fabric in &fabrics {
                for call in &calls {
                    black_box(collective_time(black_box(call), black_box(fabric)));
                }
            }
        });
    });
    group.finish();
}

criterion_group!(all, single, mixed);
criterion_main!(all);
