//! Tables that contradict each other.

use super::*;
use crate::jobs::TableOptions;

const TIMED: &str = "job_id,submit_time,start_time,end_time,gpus,machine";

/// Jobs of ten hours of the first of March.
fn jobs(rows: &[&str]) -> String {
    let row = |(number, row): (usize, &&str)| {
        format!("j{number},2024-03-01 00:00:00,2024-03-01 00:00:00,2024-03-01 10:00:00,{row}\n")
    };
    format!("{TIMED}\n{}", rows.iter().enumerate().map(row).collect::<String>())
}

fn found(tables: &[&str]) -> Audit {
    let open = |(number, text): (usize, &&str)| {
        let name = format!("t{number}.csv");
        Table::from_bytes(&name, text.as_bytes().to_vec(), &TableOptions::default())
            .expect("a table")
    };
    audit(tables.iter().enumerate().map(open).collect())
}

fn machines(rows: &[(&str, &str)]) -> String {
    let row = |(name, gpus): &(&str, &str)| format!("{name},{gpus}\n");
    format!("machine,gpus\n{}", rows.iter().map(row).collect::<String>())
}

fn gpus(audit: &Audit) -> f64 {
    audit.machines.capacity.expect("a capacity").gpus
}

/// GPU 0 is a GPU, and no mean of its machine.
#[test]
fn only_unnamed_values_are_means_of_machines() {
    let (jobs, list) = (jobs(&["1,n1"]), machines(&[("n1", "8")]));
    let mut long = "timestamp,node,gpu,util\n".to_owned();
    for gpu in 0..8 {
        long += &format!("2024-03-01 01:00:00,n1,{gpu},{}\n", if gpu == 0 { 90 } else { 0 });
    }
    let gap = found(&[&jobs, &list, &long]).gap.expect("both are there");
    assert_eq!((gap.compared, gap.busy, gap.unexplained, gap.mean_busy), (8, 1.0, 0.0, 1.0));
    let one = "time,node,gpu0\n2024-03-01 01:00:00,n1,90\n";
    let gap = found(&[&jobs, &list, one]).gap.expect("both are there");
    assert_eq!((gap.compared, gap.busy, gap.unexplained), (1, 1.0, 0.0));
    let mean = "time,node,gpu_util\n2024-03-01 01:00:00,n1,50\n";
    let gap = found(&[&jobs, &list, mean]).gap.expect("both are there");
    assert_eq!((gap.compared, gap.busy, gap.unexplained), (8, 4.0, 3.0));
    // A log of one machine that does not name it is held against all jobs.
    let unnamed = "time,gpu0,gpu1\n2024-03-01 01:00:00,90,0\n";
    let gap = found(&[&jobs, &list, unnamed]).gap.expect("both are there");
    assert_eq!((gap.busy, gap.unexplained, gap.by_machine), (1.0, 0.0, false));
}

#[test]
fn jobs_at_once_and_over_machines_are_held_against_the_list() {
    let list: Vec<String> = (1..=8).map(|number| format!("n{number}")).collect();
    let list = machines(&list.iter().map(|name| (name.as_str(), "4")).collect::<Vec<_>>());
    let jobs = jobs(&["3,n1", "3,n1", "16,\"n2,n3\""]);
    let all = found(&[&jobs, &list]);
    let conflict = &all.machines.conflicts[0];
    assert_eq!((conflict.jobs, conflict.at_once, conflict.taken), (Some(3), Some(6), 6));
    let group = &all.machines.groups[0];
    assert_eq!((group.named().as_str(), group.job, group.have), ("n2 + n3", 16, 8));
    assert_eq!(gpus(&all), 6.0 + 16.0 + 20.0);
    assert_eq!(all.ledger.count("machines-held-beyond"), 1);
    let alone = found(&[&jobs]);
    assert_eq!((gpus(&alone), alone.machines.counted), (22.0, 3));
    assert_eq!(alone.ledger.count("more-gpus-held-than-there-are"), 0);
}

#[test]
fn gpus_that_are_named_are_held_against_their_number() {
    let row = "a,2024-03-01 00:00:00,2024-03-01 00:00:00,2024-03-01 10:00:00,8,n1,\"0,1,2,3\"";
    let all = found(&[&format!("{TIMED},gpu_ids\n{row}\n")]);
    assert_eq!((all.ledger.count("gpus-and-names-differ"), gpus(&all)), (1, 8.0));
}

/// Jobs that still run hold GPUs; of others without an end only their start is known.
#[test]
fn running_jobs_are_in_the_peak_and_not_in_what_was_held() {
    let head = "job_id,submit_time,start_time,end_time,gpus,status\n";
    let done = "d,2024-03-01 00:00:00,2024-03-01 01:00:00,2024-03-01 10:00:00,4,COMPLETED\n";
    let open = |status: &str| {
        let row = |id| format!("{id},2024-03-01 00:00:00,2024-03-01 00:00:00,,8,{status}\n");
        ["a", "b", "c"].map(row).concat()
    };
    let running = found(&[&format!("{head}{}{done}", open("RUNNING"))]);
    assert_eq!((running.machines.peak, running.machines.open_ended), (28.0, 3));
    let allocated = running.allocated.expect("a span");
    assert!((allocated.share - 4.0 / 28.0).abs() < 1e-9 && allocated.open_ended == 3);
    let failed = found(&[&format!("{head}{}{done}", open("FAILED"))]);
    assert_eq!(failed.machines.peak, 24.0);
}

#[test]
fn machines_of_unknown_size_add_nothing_in_silence() {
    let list = machines(&[("n1", "8"), ("n1", "8"), ("n2", "2.5"), ("", "8"), ("n3", "1e12")]);
    let all = found(&[&list]);
    assert_eq!((gpus(&all), all.machines.counted, all.machines.count), (18.0, 3, 4));
    for code in ["part-of-gpu-in-machine", "machine-without-name", "machine-of-unknown-gpus"] {
        assert_eq!(all.ledger.count(code), 1, "{code}");
    }
}

#[test]
fn every_column_is_followed_over_the_days() {
    let row = |day: u32, duration: &str| format!("{day},2024-03-{day:02} 00:00:00,{duration},1,\n");
    let mut text = "job_id,submit_time,duration_s,gpus,user\n".to_owned();
    for day in 1..=6 {
        text += &row(day, if day < 3 { "60" } else { "" });
    }
    let table = &found(&[&text]).tables[0];
    let of = |field: Field| {
        let rows = |period: &Period| period.filled.iter().find(|of| of.0 == field).map(|of| of.1);
        table.periods.iter().map(rows).collect::<Vec<_>>()
    };
    assert_eq!(of(Field::Duration), [Some(2), Some(0)]);
    assert_eq!(of(Field::User), [Some(0), Some(0)], "a column without any value");
    assert_eq!(of(Field::Queue), [None, None], "a column that the table has not");
    assert_eq!(table.days[5].filled.len(), 5);
}

#[test]
fn arrivals_are_known_by_values() {
    let arrivals = |cells: [&str; 3]| {
        let rows = cells.map(|cell| format!("{cell},60,1\n")).concat();
        let all = found(&[&format!("submit_time,duration_s,gpus\n{rows}")]);
        (all.tables[0].arrivals, all.tables[0].submitted.used)
    };
    assert_eq!(arrivals(["", "", ""]), (Some(Arrivals::SpansOnly), 0));
    assert_eq!(arrivals(["", "2024-03-01 00:00:00", ""]), (Some(Arrivals::Submitted), 1));
}

#[test]
fn tables_that_overlap_are_said_to() {
    let jobs = jobs(&["4,n1", "4,n2"]);
    let all = found(&[&jobs, &jobs]);
    assert_eq!(all.ledger.count("row-in-two-tables"), 2);
    assert_eq!(all.tables[1].duplicates.elsewhere, 2);
    // What is there twice is no evidence of more GPUs in a machine.
    assert_eq!(all.machines.peak, 16.0);
    assert_eq!(all.machines.conflict_count, 0);
}

#[test]
fn clocks_that_may_differ_are_said_with_the_verdict() {
    let zoned = jobs(&["1,n1"]).replace(":00,", ":00+08:00,");
    let samples = "time,node,gpu0,gpu1\n2024-03-01 01:00:00,n1,90,90\n";
    let all = found(&[&zoned, samples]);
    let gap = all.gap.expect("both are there");
    assert!(gap.clocks_differ && gap.incomplete());
    assert_eq!(all.ledger.count("clocks-may-differ"), 1);
    let same = found(&[&jobs(&["1,n1"]), samples]).gap.expect("both are there");
    assert!(!same.clocks_differ);
}

#[test]
fn names_in_another_form_are_said() {
    let jobs = jobs(&["8,n1.cluster.local", "8,N2", "8,n3"]);
    let all = found(&[&jobs, &machines(&[("n1", "8"), ("n2", "8"), ("n3", "8")])]);
    assert_eq!((all.machines.alike, all.machines.missing_count), (2, 2));
    assert_eq!(all.ledger.count("machine-name-in-another-form"), 2);
}

#[test]
fn slices_count_as_their_part() {
    let row = "a,2024-03-01 00:00:00,2024-03-01 00:00:00,2024-03-01 10:00:00,7,n1,MIG-1g.5gb";
    let all = found(&[&format!("{TIMED},gpu_type\n{row}\n")]);
    assert_eq!((all.machines.peak, gpus(&all)), (1.0, 1.0));
    assert_eq!(all.ledger.count("slices-of-gpus"), 1);
}
