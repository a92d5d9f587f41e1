//! All pairs of a k-ary fat tree at once: 432 hosts with up-links by destination, where all flows end
//! together, and 128 hosts with up-links by hash, where nearly every flow ends at a time of its own.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foretrain_core::Bandwidth;
use foretrain_flow::{Flow, Flows, simulate};

/// Hosts of a fat tree of switches with `2 * half` ports.
const fn hosts(half: usize) -> usize {
    2 * half * half * half
}

fn all_to_all(half: usize, choose: impl Fn(usize, usize) -> usize) -> Flows {
    let hosts = hosts(half);
    // Host up, host down, edge up, edge down, aggregation up and down: each as many as hosts.
    let link = |kind: usize, at: usize| ((kind * hosts + at) as u32, 1.0);
    let mut flows = Flows::new();
    let mut path = Vec::new();
    for from in 0..hosts {
        for to in (0..hosts).filter(|&to| to != from) {
            let (up, core) = (choose(from, to) % half, choose(from, to) / half % half);
            path.clear();
            path.push(link(0, from));
            if from / half != to / half {
                path.push(link(2, from / half * half + up));
                let pod = half * half;
                if from / pod != to / pod {
                    path.push(link(4, from / pod * pod + up * half + core));
                    path.push(link(5, to / pod * pod + up * half + core));
                }
                path.push(link(3, to / half * half + up));
            }
            path.push(link(1, to));
            flows.push(Flow::new(1e6), &path);
        }
    }
    flows
}

fn hash(from: usize, to: usize) -> usize {
    let mut mixed = (from as u64) << 32 | to as u64;
    for _ in 0..2 {
        mixed = (mixed ^ mixed >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (mixed >> 40) as usize
}

fn flow(c: &mut Criterion) {
    let mut group = c.benchmark_group("all-to-all");
    group.sample_size(10);
    let by_destination = |_, to| to;
    group.bench_function("432 hosts, paths", |b| {
        b.iter(|| black_box(all_to_all(6, by_destination)));
    });
    for (name, half, flows, precision) in [
        ("432 hosts by destination", 6, all_to_all(6, by_destination), 0.0),
        ("128 hosts by hash, to a hundredth", 4, all_to_all(4, hash), 1e-2),
    ] {
        let capacities = vec![Bandwidth::from_gb_per_sec(25.0); 6 * hosts(half)];
        group.throughput(Throughput::Elements(flows.len() as u64));
        let run = || black_box(simulate(&capacities, &flows, precision));
        group.bench_function(name, |b| b.iter(run));
    }
    group.finish();
}

criterion_group!(benches, flow);
criterion_main!(benches);
