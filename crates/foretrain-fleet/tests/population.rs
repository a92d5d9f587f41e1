//! The made-up population has the published shares. Intervals are the figures of the study give or
//! take what ten thousands of draws vary by and the rounding of what was published.

use std::ops::RangeInclusive;

use foretrain_core::{Ledger, Nanos};
use foretrain_fleet::jobs::{Class, Table, TableOptions};
use foretrain_fleet::pai::characterise::{Characterisation, Characteriser, Method, Profile};
use foretrain_fleet::pai::project::{Projection, Projector};
use foretrain_fleet::pai::sweep::{Sweep, Sweeper, usual_grid};
use foretrain_fleet::pai::synthetic::Population;
use foretrain_fleet::pai::{Hardware, Overlap, Resource};

fn table() -> Table {
    let text = Population { jobs: 60_000, seed: 2019 }.csv();
    Table::from_bytes("synthetic.csv", text.into_bytes(), &TableOptions::default())
        .expect("a table")
}

fn within(what: &str, value: f64, interval: RangeInclusive<f64>) {
    assert!(interval.contains(&value), "{what}: {value} is not in {interval:?}");
}

fn characterised() -> Characterisation {
    let mut all = Characteriser::new(Method::PAI_2019);
    let read = table().for_each(|job| all.add(job));
    let mut ledger = Ledger::new();
    read.record(&mut ledger);
    let answer = all.finish(&mut ledger);
    assert!(ledger.is_empty(), "{:?}", ledger.findings().collect::<Vec<_>>());
    assert_eq!(answer.rows.synthetic, 60_000);
    answer
}

fn of(answer: &Characterisation, class: Class) -> &Profile {
    answer.classes.iter().find(|profile| profile.class == Some(class)).expect("drawn")
}

#[test]
fn shares_of_the_population() {
    let answer = characterised();
    let all = answer.all.as_ref().unwrap();
    let ps = of(&answer, Class::PsWorker);
    within("PS/Worker jobs", ps.jobs as f64 / all.jobs as f64, 0.28..=0.30);
    within("PS/Worker cNodes", ps.cnodes as f64 / all.cnodes as f64, 0.78..=0.84);
    within("communication, by cNode", all.by_cnode.shares[3], 0.60..=0.64);
    assert!(all.by_job.shares[3] < all.by_cnode.shares[3], "larger jobs communicate more");
    let [input, flops, memory, traffic] = ps.by_job.shares;
    within("PS/Worker input", input, 0.025..=0.035);
    within("PS/Worker computation", flops + memory, 0.33..=0.37);
    within("PS/Worker traffic", traffic, 0.60..=0.64);
    within("PS/Worker jobs above 80 %", ps.by_job.above[2], 0.40..=0.60);
    let one = of(&answer, Class::OneWorkerOneGpu);
    within("1w1g input", one.by_job.shares[0], 0.09..=0.11);
    within("1w1g jobs with half of it input", one.by_job.input_above_half, 0.045..=0.06);
    for profile in &answer.classes {
        let [_, flops, memory, _] = profile.by_job.shares;
        assert!(memory > flops, "{:?}", profile.class);
    }
    let reduced: u64 = [Class::AllReduceLocal, Class::AllReduceCluster]
        .map(|class| of(&answer, class).jobs)
        .iter()
        .sum();
    within("all-reduce jobs", reduced as f64 / all.jobs as f64, 0.0..=0.01);
}

#[test]
fn parameter_server_jobs_gain_on_one_server() {
    let hardware = Hardware { pcie_sharing: 8, ..Hardware::pai_2019() };
    let method = Method { hardware, ..Method::PAI_2019 };
    let mut all = Projector::new(method, Overlap::None, vec![Class::AllReduceLocal]);
    table().for_each(|job| all.add(job));
    let answer = all.finish(&mut Ledger::new());
    let is_ps = |projection: &&Projection| projection.from == Class::PsWorker;
    let ps = answer.projections.iter().find(is_ps).unwrap();
    let gain = |jobs: u64| jobs as f64 / ps.jobs.total as f64;
    within("PS/Worker jobs that gain", gain(ps.overall.jobs), 0.57..=0.63);
    assert!(ps.single.jobs > ps.overall.jobs, "some only gain for want of replicas");
}

fn swept() -> Sweep {
    let grid = usual_grid(&Method::PAI_2019);
    let mut all = Sweeper::new(Method::PAI_2019, Overlap::None, grid);
    table().for_each(|job| all.add(job));
    all.finish(&mut Ledger::new())
}

#[test]
fn classes_are_sensitive_to_what_was_published() {
    let answer = swept();
    let class = |class: Class| answer.classes.iter().find(|c| c.class == Some(class)).unwrap();
    let fast = answer.changes.iter().position(|c| c.name == "Ethernet 100 Gbit/s").unwrap();
    within("PS/Worker at 100 Gbit/s", class(Class::PsWorker).effects[fast].mean, 1.6..=1.8);
    assert_eq!(class(Class::OneWorkerOneGpu).most_sensitive(), Resource::Memory);
    assert_eq!(class(Class::OneWorkerManyGpus).most_sensitive(), Resource::Pcie);
    assert_eq!(class(Class::PsWorker).most_sensitive(), Resource::Ethernet);
}

/// A step is what the parts add up to, whatever the class.
#[test]
fn parts_of_every_step_add_up() {
    let mut jobs = 0;
    table().for_each(|job| {
        let hardware = Hardware::pai_2019();
        let counts = Method::PAI_2019.traffic;
        let work = foretrain_fleet::pai::Work::of(job, &hardware, counts).unwrap();
        let step = foretrain_fleet::pai::Step::of(&work, &hardware);
        let sum: Nanos = Resource::ALL.map(|resource| step.on(resource)).into_iter().sum();
        assert_eq!(sum, step.total(Overlap::None));
        assert!(step.total(Overlap::Ideal) <= sum);
        jobs += 1;
    });
    assert_eq!(jobs, 60_000);
}
