//! Tables as people have them, and what is said of them.

use foretrain_core::Nanos;

use super::{Fault, Field, Job, Kind, Table, TableOptions, TableRead, UnitFrom};

fn open(text: &str, hints: &[&str]) -> Table {
    let columns = hints.iter().map(|hint| hint.parse().unwrap()).collect();
    let options = TableOptions { schema: None, columns };
    Table::from_bytes("t.csv", text.into(), &options).unwrap()
}

fn read_with(text: &str, hints: &[&str]) -> (Vec<Job>, TableRead) {
    let mut jobs = Vec::new();
    let read = open(text, hints).for_each(|job| jobs.push(job.clone()));
    (jobs, read)
}

fn read(text: &str) -> (Vec<Job>, TableRead) {
    read_with(text, &[])
}

fn gpus(jobs: &[Job]) -> Vec<Option<f64>> {
    jobs.iter().map(|job| job.gpus).collect()
}

fn seconds(times: impl Iterator<Item = Option<Nanos>>) -> Vec<Option<f64>> {
    times.map(|time| time.map(Nanos::secs_f64)).collect()
}

fn machines(job: &Job) -> Vec<&str> {
    job.placements.iter().map(|placed| placed.machine.as_str()).collect()
}

const SACCT: &str = "\
JobID,User,State,Submit,Start,End,Elapsed,NGPUS,NodeList
101,ann,COMPLETED,2024-03-01T08:00:00,2024-03-01T08:05:00,2024-03-01T10:05:00,02:00:00,8,node[01-02]
101.batch,,COMPLETED,2024-03-01T08:05:00,2024-03-01T08:05:00,2024-03-01T10:05:00,02:00:00,4,node01
101.extern,,COMPLETED,2024-03-01T08:05:00,2024-03-01T08:05:00,2024-03-01T10:05:00,02:00:00,8,node[01-02]
101.0,,COMPLETED,2024-03-01T08:05:00,2024-03-01T08:05:00,2024-03-01T10:05:00,02:00:00,8,node[01-02]
102,bob,RUNNING,2024-03-01T09:00:00,2024-03-01T09:30:00,Unknown,00:40:00,4,node03
103,cat,PENDING,2024-03-01T09:10:00,Unknown,Unknown,00:00:00,4,None assigned
104_3,dan,COMPLETED,2024-03-01T09:20:00,2024-03-01T09:21:00,2024-03-01T10:21:00,01:00:00,4,\"node[02,04]\"
104_3.0,,COMPLETED,2024-03-01T09:20:00,2024-03-01T09:21:00,2024-03-01T10:21:00,01:00:00,4,node02
105+0,eve,CANCELLED by 7,2024-03-01T09:20:00,2024-03-01T09:21:00,2024-03-01T10:21:00,01:00:00,4,gpu5
";

#[test]
fn steps_of_slurm_are_no_jobs() {
    let (jobs, found) = read(SACCT);
    let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["101", "102", "103", "104_3", "105+0"]);
    assert_eq!((found.rows, found.given, found.faults.count(Fault::StepRow)), (5, 5, 4));
    assert_eq!(machines(&jobs[0]), ["node01", "node02"]);
    assert_eq!((machines(&jobs[2]).len(), machines(&jobs[3])), (0, vec!["node02", "node04"]));
    assert_eq!(found.faults.count(Fault::Unreadable), 0);
}

#[test]
fn what_running_and_waiting_jobs_took_so_far_is_left_out() {
    let (jobs, found) = read(SACCT);
    let runs = seconds(jobs.iter().map(Job::run_time));
    assert_eq!(runs, [Some(7200.0), None, None, Some(3600.0), Some(3600.0)]);
    assert_eq!((jobs[1].duration, found.faults.count(Fault::Unfinished)), (None, 2));
    let (jobs, found) = read("job_id,state,submit_s,start_s,end_s,gpus\na,RUNNING,0,0,60,8\n");
    assert_eq!(jobs[0].run_time(), Some(Nanos::from_secs_f64(60.0)));
    assert_eq!(found.faults.count(Fault::UnfinishedEnd), 1);
}

#[test]
fn ids_that_look_like_steps_are_jobs_elsewhere() {
    let (jobs, _) = read("job_id,submit_s,gpus\n1.0,0,1\n2.0,1,1\n2.1,2,1\n");
    assert_eq!(jobs.len(), 3);
    let (jobs, _) = read("JobID,Submit,Elapsed,NGPUS\n1.0,0,60,1\n2.0,1,60,1\n");
    assert_eq!(jobs.len(), 2, "whole numbers that went through a table of decimals");
    let (jobs, found) = read("job_id,submit_s,gpus\n7,0,1\n7.0,0,1\n7.batch,0,1\n8,0,1\n");
    assert_eq!((jobs.len(), found.faults.count(Fault::StepRow)), (2, 2));
}

#[test]
fn ranges_that_no_cluster_has_are_refused() {
    let (jobs, found) =
        read("job_id,submit_s,machine,gpus\na,0,n[1-999999999],8\nb,0,\"n[1-\",8\n");
    assert_eq!((machines(&jobs[0]).len(), machines(&jobs[1]).len()), (0, 0));
    assert_eq!(found.faults.count(Fault::TooManyMachines), 1);
    assert_eq!(found.faults.count(Fault::Unreadable), 1);
}

#[test]
fn gpus_in_the_words_of_slurm() {
    let text = "JobID|Submit|AllocTRES|ReqTRES|Elapsed|NodeList\n\
        1|2024-03-01T08:00:00|billing=32,cpu=32,gres/gpu:a100=4,gres/gpu=4,node=2|gres/gpu=9|60|n1\n\
        2|2024-03-01T08:00:00|gres/gpu:v100=2,cpu=2|gres/gpu=9|60|n1\n\
        3|2024-03-01T08:00:00|billing=1,cpu=64,mem=8G,node=1|gres/gpu=9|60|n2\n\
        4|2024-03-01T08:00:00||gres/gpu=9|60|n2\n";
    let (jobs, found) = read(text);
    assert_eq!(gpus(&jobs), [Some(4.0), Some(2.0), Some(0.0), None]);
    assert_eq!((jobs[0].gpu_kind.as_str(), jobs[1].gpu_kind.as_str()), ("a100", "v100"));
    assert_eq!((found.faults.count(Fault::NoGpu), found.faults.count(Fault::ColumnTwin)), (1, 1));
    let (jobs, _) = read("JobID,Submit,ReqGRES,Nodes\n1,0,gpu:a100:2,node[1-2]\n");
    assert_eq!((gpus(&jobs), machines(&jobs[0]).len()), (vec![Some(2.0)], 2));
    let (jobs, _) = read_with("id,submit_s,asked\na,0,gpu:2(S:0-1)\n", &["gpus=asked"]);
    assert_eq!(gpus(&jobs), [Some(2.0)]);
    // What each node has is the whole only if their number is known.
    let text = "id,submit_s,tres_per_node,nodes\na,0,gres/gpu:8,4\nb,0,gres/gpu:8,\n";
    let (jobs, found) = read(text);
    assert_eq!((gpus(&jobs), found.faults.count(Fault::GpusPerNode)), (vec![Some(32.0), None], 1));
}

#[test]
fn decimal_commas_are_no_lists() {
    let text = "job_id;submit_time;duration_h;gpus;machine\n\
        a;01.03.2024 08:00;1,5;0,5;n1\nb;01.03.2024 09:00;0,25;2,0;n1\nc;13.03.2024 09:00;2;8,0;n1\n";
    let (jobs, found) = read(text);
    assert_eq!(gpus(&jobs), [Some(0.5), Some(2.0), Some(8.0)]);
    let runs = seconds(jobs.iter().map(|job| job.duration));
    assert_eq!(runs, [Some(5400.0), Some(900.0), Some(7200.0)]);
    assert_eq!(found.faults.count(Fault::DecimalComma), 5);
    assert_eq!(jobs[0].submit, Some(Nanos::from_secs_f64(1_709_280_000.0)));
    // In other tables they are, and where they might be numbers that is said.
    let text = "job_id,submit_s,gpus,machine\na,0,\"0,5\",n1\nb,0,\"2,0\",n1\n";
    let (jobs, found) = read(text);
    assert_eq!((gpus(&jobs), found.faults.count(Fault::ListsOrNumbers)), (vec![Some(2.0); 2], 1));
    let (jobs, _) = read("job_id;submit_s;gpus;machine\na;0;0,1;n1\nb;0;0,1,2,3;n1\n");
    assert_eq!(gpus(&jobs), [Some(2.0), Some(4.0)]);
}

#[test]
fn a_mark_in_place_of_an_end_leaves_the_unit() {
    let row = |job: u32, end: &str| format!("j{job},{},{},{end},8\n", job * 600, job * 600 + 60);
    let rows: String = (0..9).map(|job| row(job, &(job * 600 + 3660).to_string())).collect();
    for mark in ["9999999999", "1e300"] {
        let head = "job_id,submit_time,start_time,end_time,gpus\n";
        let (jobs, found) = read(&format!("{head}{rows}{}", row(9, mark)));
        let runs = seconds(jobs.iter().map(Job::run_time));
        assert_eq!((runs[0], runs[9]), (Some(3600.0), None), "{mark}");
        assert_eq!(found.faults.count(Fault::EndUnknown), 1, "{mark}");
    }
}

#[test]
fn times_tell_the_unit_of_a_duration() {
    let head = "job_id,submit_time,end_time,duration,gpus\n";
    let rows = "a,1709280000000,1709283600000,3600000,8\nb,1709280000000,1709280060000,60000,8\n\
        c,1709280000000,1709280030000,30000,8\n";
    let table = open(&format!("{head}{rows}"), &[]);
    let of = |field: Field| table.bindings().iter().find(|binding| binding.field == field).unwrap();
    let duration = of(Field::Duration);
    assert_eq!((duration.unit.name, duration.unit_from), ("ms", UnitFrom::Times));
    assert!(!duration.is_guess());
    let (jobs, found) = read(&format!("{head}{rows}"));
    assert_eq!(jobs[1].run_time(), Some(Nanos::from_secs_f64(60.0)));
    assert_eq!(found.faults.count(Fault::DurationBeforeSubmit), 0);
    let (_, found) = read(&format!("{head}{rows}d,1709280000000,1709280030000,40000,8\n"));
    assert_eq!(found.faults.count(Fault::DurationBeforeSubmit), 1);
}

#[test]
fn dates_that_are_not_understood_are_said_to_be() {
    let table = |first: &str, second: &str| {
        format!(
            "job_id,submit_time,start_time,gpus,machine\na,{first},{first},8,n1\nb,{second},,8,n1\n"
        )
    };
    let (jobs, found) = read(&table("03/01/2024 08:00", "03/13/2024 08:00"));
    assert_eq!(jobs[0].submit, Some(Nanos::from_secs_f64(1_709_280_000.0)));
    assert_eq!(found.faults.count(Fault::DateOrder), 2, "the second column follows the first");
    let open_ended = table("03/01/2024 08:00", "04/01/2024 08:00");
    assert_eq!(open(&open_ended, &[]).kind(), Kind::Jobs);
    let (jobs, found) = read(&open_ended);
    assert_eq!((jobs[0].submit, found.faults.count(Fault::ColumnUnread)), (None, 2));
    let (jobs, _) = read_with(&open_ended, &["submit=submit_time:dmy"]);
    assert_eq!(jobs[0].submit, Some(Nanos::from_secs_f64(1_704_268_800.0)));
    assert_eq!(open(&table("tomorrow", "soon"), &[]).kind(), Kind::Jobs);
    let text = "job_id,submit_s,duration,gpus\na,0,UNLIMITED,1\nb,0,3600,1\nc,0,long,1\nd,0,x,1\n";
    let (jobs, found) = read(text);
    assert_eq!((jobs[1].duration.is_some(), found.faults.count(Fault::Unreadable)), (true, 3));
}

#[test]
fn shares_above_a_gpu_leave_the_number_unknown() {
    let (jobs, found) = read("name,num_gpu,gpu_milli,creation_time\na,1,460,5\nb,1,1500,6\n");
    assert_eq!(gpus(&jobs), [Some(0.46), None]);
    assert_eq!(found.faults.count(Fault::GpuShareBeyond), 1);
    assert_eq!(found.faults.count(Fault::BusyBeyondFull), 0);
}

#[test]
fn fields_that_contradict_each_other_are_said_to() {
    let head = "job_id,submit_s,start_s,end_s,wait_s,gpus,gpu_time_h,turnaround_s\n";
    let rows = "a,0,3600,7200,60,8,800,7200\nb,0,3600,7200,3600,8,8,60\n";
    let (_, found) = read(&format!("{head}{rows}"));
    for fault in [Fault::WaitConflict, Fault::GpuTimeConflict, Fault::TurnaroundConflict] {
        assert_eq!(found.faults.count(fault), 1, "{fault:?}");
    }
}

#[test]
fn of_two_columns_the_one_with_a_unit_is_read() {
    let text = "job_id,submit_s,duration,duration_s,gpus,num_gpus\na,0,1,3600,8,4\n";
    let (jobs, found) = read(text);
    assert_eq!(jobs[0].duration, Some(Nanos::from_secs_f64(3600.0)));
    assert_eq!((gpus(&jobs), found.faults.count(Fault::ColumnTwin)), (vec![Some(8.0)], 2));
    assert_eq!(open(text, &[]).unused(), ["duration", "num_gpus"]);
    let (jobs, _) = read("job_id,submit_s,num_gpus,gpus\na,0,4,8\n");
    assert_eq!(gpus(&jobs), [Some(4.0)], "the other is no list of GPUs");
}

#[test]
fn titles_of_kubernetes() {
    let text = "name,creationTimestamp,startTime,completionTime,gpus\n\
        a,2024-03-01T08:00:00Z,2024-03-01T08:05:00Z,2024-03-01T10:05:00Z,4\n";
    let (jobs, _) = read(text);
    assert_eq!(jobs[0].wait_time(), Some(Nanos::from_secs_f64(300.0)));
    assert_eq!(jobs[0].run_time(), Some(Nanos::from_secs_f64(7200.0)));
}

#[test]
fn lines_before_the_titles_and_none() {
    let (jobs, found) = read("sep=;\r\njob_id;submit_s;duration_s;gpus\r\na;0;60;8\r\nb;1\r\n");
    assert_eq!((gpus(&jobs), found.faults.count(Fault::SeparatorLine)), (vec![Some(8.0)], 1));
    let text = "j1,2024-03-01 08:00:00,2024-03-01 09:00:00,8\n";
    let error = Table::from_bytes("t", text.into(), &TableOptions::default()).err().unwrap();
    assert!(error.hints().iter().any(|hint| hint.contains("line of titles")), "{error:?}");
}
