//! No tables of machines and jobs make the scheduling simulator panic or hang, and GPU-time is
//! neither made nor lost.
#![no_main]

use std::sync::Arc;

use foretrain_core::{Ledger, Nanos};
use foretrain_fleet::jobs::{MachineList, Table, TableOptions};
use foretrain_fleet::schedule::policy::{POLICIES, Rules};
use foretrain_fleet::schedule::{
    ConstantSlowdown, Costs, Exchange, Failures, Intake, Interference, Interleaved, Phase, Setup,
    cluster_of, simulate,
};
use foretrain_hardware::Catalogue;
use libfuzzer_sys::fuzz_target;

/// More takes long and shows no more.
const MOST_JOBS: usize = 50;
const MOST_GPUS: u32 = 1_000;

// The table of machines, a line of dashes, and the table of jobs.
fuzz_target!(|input: (u8, u8, &[u8])| {
    let (policy, switches, bytes) = input;
    let switch = |number: u8| switches & (1 << number) != 0;
    let Some(at) = bytes.windows(4).position(|window| window == b"\n--\n") else { return };
    let open = |name: &str, bytes: &[u8]| {
        Table::from_bytes(name, bytes.to_vec(), &TableOptions::default())
    };
    let (Ok(nodes), Ok(rows)) = (open("nodes", &bytes[..at]), open("jobs", &bytes[at + 4..]))
    else {
        return;
    };
    let catalogue = Catalogue::builtin();
    let mut machines = MachineList::default();
    nodes.for_each(|row| machines.add(row));
    let Ok(cluster) = cluster_of(&machines, 2, catalogue, &mut Ledger::new()) else { return };
    if cluster.gpus() > MOST_GPUS {
        return;
    }
    let links = catalogue.cluster("dgx-a100").expect("in the catalogue");
    let exchange = switch(0).then(|| Arc::new(Exchange::new(links)));
    let mut intake = Intake::new(&cluster).on(exchange, switch(1));
    rows.for_each(|row| intake.add(row));
    let Ok((mut jobs, _)) = intake.finish() else { return };
    jobs.truncate(MOST_JOBS);
    let policy = &POLICIES[usize::from(policy) % POLICIES.len()];
    let alone = ConstantSlowdown(1.5);
    let interference: &dyn Interference = if policy.interleaves { &Interleaved } else { &alone };
    let seconds = |value: i64| Nanos::from_millis(value * 1_000);
    let failures = switch(2).then(|| Failures {
        every: seconds(50_000),
        repair: seconds(1_000),
        checkpoint_every: if switch(3) { seconds(600) } else { Nanos::ZERO },
    });
    let costs = if switch(4) {
        Costs { start: seconds(20), restart: seconds(30), relaunch_all: switch(5) }
    } else {
        Costs::default()
    };
    let until = Some(seconds(1_000_000)).filter(|_| !switch(6));
    let setup = Setup { costs, failures, until, ..Setup::new(&cluster, &jobs, interference) };
    let rules = Rules { interval: seconds(3_600), restart: costs.restart, ..Rules::default() };
    let run = simulate(&setup, &mut *policy.make(&rules));
    assert_eq!(run.finished + run.impossible + run.unfinished, jobs.len());
    for (job, state) in jobs.iter().zip(&run.jobs) {
        assert_eq!(state.phase == Phase::Done, state.finish.is_some());
        assert!(state.service.is_finite() && state.waited >= Nanos::ZERO);
        assert!(state.first_start.is_none_or(|start| start >= job.submit));
    }
    let whole = f64::from(run.gpus) * run.makespan.secs_f64();
    let parts = run.totals.busy + run.totals.idle + run.totals.down;
    assert!((parts - whole).abs() <= 1e-6 * whole + 1e-3, "{parts} of {whole} GPU-seconds");
    assert!(run.totals.utilised.is_finite() && run.totals.energy.is_finite());
});
