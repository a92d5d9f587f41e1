//! Collectives flow by flow: network, routes and ends, from a cluster to an answer.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use foretrain_core::{Bytes, Nanos};
use foretrain_cost::CollectiveCall;
use foretrain_cost::congestion::{Concurrent, Conditions, congestion};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Catalogue, Fabric};

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("congestion");
    group.sample_size(10);
    let builtin = |name| Catalogue::builtin().cluster(name).expect("it is built in");
    let dgx = builtin("dgx-h100");
    let mut hosts = builtin("dgx-h100");
    (hosts.node.devices, hosts.node.nics) = (1, 1);
    hosts.fabric = Fabric::fat_tree(12, [1.0, 1.0], Nanos::from_nanos(500));
    for (name, cluster, kind, ranks) in [
        ("all-reduce of 1,024 ranks", &dgx, CollectiveKind::AllReduce, 1024),
        ("all-gather of 1,024 ranks", &dgx, CollectiveKind::AllGather, 1024),
        ("all-to-all of 1,024 ranks", &dgx, CollectiveKind::AllToAll, 1024),
        ("all-reduce of 16,384 ranks", &dgx, CollectiveKind::AllReduce, 16_384),
        ("all-gather of 16,384 ranks", &dgx, CollectiveKind::AllGather, 16_384),
        ("all-to-all of 432 hosts", &hosts, CollectiveKind::AllToAll, 432),
    ] {
        let call = CollectiveCall::new(kind, Bytes::from_gib(1));
        let one = [Concurrent { devices: (0..ranks).collect(), call, start: Nanos::ZERO }];
        let run = || black_box(congestion(cluster, &one, &Conditions::default()).expect("it fits"));
        group.bench_function(name, |b| b.iter(run));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
