//! How fast a month of a large cluster is played: 100,000 jobs on 6,000 GPUs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use criterion::{Criterion, criterion_group, criterion_main};
use foretrain_core::stats::normal_from_uniform;
use foretrain_core::{Bytes, Nanos};
use foretrain_cost::interference::ModelFile;
use foretrain_cost::interference::colocation::{JobLoad, Sharing};
use foretrain_fleet::schedule::policy::{Named, Rules};
use foretrain_fleet::schedule::{Cluster, Colocated, GpuKind, Job, Setup, simulate};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const JOBS: u32 = 100_000;
const NODES: u32 = 750;

/// Arrivals at the rate that keeps the cluster about full, sizes and durations as skewed as usual.
fn jobs() -> Vec<Job> {
    let mut random = Pcg64::seed_from_u64(1);
    let mut submit = 0.0;
    let mut work = 0.0;
    let mut jobs: Vec<Job> = (0..JOBS)
        .map(|number| {
            let gpus = [1, 1, 1, 1, 2, 4, 8, 8, 16, 64][random.random_range(0..10)];
            let chance: f64 = random.random();
            let normal = normal_from_uniform(1.0 - chance, random.random());
            let seconds = (7.5 + 1.5 * normal).exp().clamp(60.0, 1e6);
            work += seconds * f64::from(gpus);
            let busy = random.random_range(0.1..1.0);
            let second = Nanos::from_millis(1_000);
            Job {
                load: Some(JobLoad { step: second, busy, launch: second }),
                peak: (1.2_f64 * busy).min(1.0),
                memory: Bytes::from_gib(random.random_range(2..20)),
                ..Job::new(number.to_string(), Nanos::ZERO, gpus, Nanos::from_secs_f64(seconds))
            }
        })
        .collect();
    let mean_gap = work / f64::from(NODES * 8) / f64::from(JOBS);
    for job in &mut jobs {
        let chance: f64 = random.random();
        submit -= mean_gap * (1.0 - chance).ln();
        job.submit = Nanos::from_secs_f64(submit);
    }
    jobs
}

/// What no simulator of events can do without: each job's arrival and end through one queue in the
/// order of time. The figures of policies are to be read as multiples of it.
fn events_alone(jobs: &[Job]) -> Nanos {
    let mut order: Vec<&Job> = jobs.iter().collect();
    order.sort_by_key(|job| job.submit);
    let mut ends: BinaryHeap<Reverse<Nanos>> = BinaryHeap::new();
    for job in order {
        while ends.peek().is_some_and(|Reverse(end)| *end <= job.submit) {
            ends.pop();
        }
        ends.push(Reverse(job.submit + Nanos::from_secs_f64(job.work)));
    }
    let mut last = Nanos::ZERO;
    while let Some(Reverse(end)) = ends.pop() {
        last = end;
    }
    last
}

fn schedule(criterion: &mut Criterion) {
    let kind = GpuKind { memory: Some(Bytes::from_gib(32)), ..GpuKind::named("v100") };
    let cluster = Cluster::uniform(NODES, 8, 32, kind).expect("valid");
    let jobs = jobs();
    let file = ModelFile::pretrained().expect("ships");
    let model = file.colocation.expect("ships").model;
    let interference = Colocated { model, sharing: Sharing::TimeSliced };
    let setup = Setup::new(&cluster, &jobs, &interference);
    let mut group = criterion.benchmark_group("100k-jobs-6000-gpus");
    group.sample_size(10);
    group.bench_function("events alone", |bencher| bencher.iter(|| events_alone(&jobs)));
    let rules = Rules::default();
    for name in ["fifo", "fifo+backfill", "sjf", "horus"] {
        let policy = Named::find(name).expect("known");
        group.bench_function(name, |bencher| {
            bencher.iter(|| simulate(&setup, &mut *policy.make(&rules)).finished);
        });
    }
    group.finish();
}

criterion_group!(benches, schedule);
criterion_main!(benches);
