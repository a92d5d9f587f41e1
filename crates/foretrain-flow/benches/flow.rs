//! All pairs of a k-ary fat tree at once, with up-links by destination and by hash.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foretrain_core::Bandwidth;
use foretrain_flow::{Flow, Flows, simulate};

const K: usize = 12;
const HALF: usize = K / 2;
const HOSTS: usize = K * HALF * HALF;

/// Links: host up, host down, edge up, edge down, aggregation up and down, each as many as hosts.
fn link(kind: usize, at: usize) -> (u32, f64) {
    ((kind * HOSTS + at) as u32, 1.0)
}

fn all_to_all(choose: impl Fn(usize, usize) -> (usize, usize)) -> Flows {
    let mut flows = Flows::new();
    let mut path = Vec::new();
    for from in 0..HOSTS {
        for to in (0..HOSTS).filter(|&to| to != from) {
            let (up, core) = choose(from, to);
            path.clear();
            path.push(link(0, from));
            if from / HALF != to / HALF {
                path.push(link(2, from / HALF * HALF + up));
                let pod = HALF * HALF;
                if from / pod != to / pod {
                    path.push(link(4, from / pod * pod + up * HALF + core));
                    path.push(link(5, to / pod * pod + up * HALF + core));
                }
                path.push(link(3, to / HALF * HALF + up));
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
    let capacities = vec![Bandwidth::from_gb_per_sec(25.0); 6 * HOSTS];
    let by_destination = |_, to| (to % HALF, to / HALF % HALF);
    let by_hash = |from, to| (hash(from, to) % HALF, hash(from, to) / HALF % HALF);
    let mut group = c.benchmark_group("all-to-all of 432 hosts");
    group.sample_size(10);
    group.throughput(Throughput::Elements((HOSTS * (HOSTS - 1)) as u64));
    group.bench_function("paths", |b| b.iter(|| black_box(all_to_all(by_destination))));
    for (name, flows, precision) in [
        ("by destination", all_to_all(by_destination), 0.0),
        ("by hash, to a hundredth", all_to_all(by_hash), 1e-2),
    ] {
        let name =
            format!("{name}, {} settlings", simulate(&capacities, &flows, precision).settlings);
        let run = || black_box(simulate(&capacities, &flows, precision));
        group.bench_function(name, |b| b.iter(run));
    }
    group.finish();
}

criterion_group!(benches, flow);
criterion_main!(benches);
