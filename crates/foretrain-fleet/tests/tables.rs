//! Whatever a table holds: no panic, and every row is handed on or counted.

use foretrain_core::{Ledger, Nanos};
use foretrain_fleet::audit::audit;
use foretrain_fleet::jobs::{Fault, Job, Kind, SCHEMAS, Table, TableOptions, TableRead};
use foretrain_fleet::pai::Hardware;
use foretrain_fleet::pai::characterise::{Characteriser, Method};
use proptest::prelude::*;

fn read(text: &str) -> (Vec<Job>, TableRead) {
    let table = Table::from_bytes("t.csv", text.into(), &TableOptions::default()).expect("a table");
    let mut jobs = Vec::new();
    let read = table.for_each(|job| jobs.push(job.clone()));
    (jobs, read)
}

/// Cells as they occur in real tables, and some that should not.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("NaN".to_owned()),
        Just("-1".to_owned()),
        Just("0".to_owned()),
        "[0-9]{1,20}",
        "-?[0-9]{1,9}\\.[0-9]{1,6}",
        "[0-9]e[0-9]{1,3}",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9]( PDT|\\+08:00)?",
        "[a-z\"',; \u{e9}]{0,8}",
    ]
}

const TITLES: [&str; 12] = [
    "job_id",
    "submit_time",
    "start_time",
    "end_time",
    "duration",
    "queue",
    "gpus",
    "machine",
    "state",
    "gpu_util",
    "mem",
    "class",
];

proptest! {
    #[test]
    fn nothing_is_lost(rows in prop::collection::vec(prop::collection::vec(cell(), 12), 0..40)) {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        writer.write_record(TITLES).unwrap();
        for (index, row) in rows.iter().enumerate() {
            // Every ninth row is torn.
            let cells = if index % 9 == 8 { 5 } else { 12 };
            writer.write_record(&row[..cells]).unwrap();
        }
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        // Columns whose cells cannot be what their titles say may leave no table of jobs.
        let Ok(table) = Table::from_bytes("t.csv", text.clone().into(), &TableOptions::default())
        else { return Ok(()) };
        let kind = table.kind();
        prop_assume!(kind != Kind::Samples);
        let mut given = 0;
        let read = table.for_each(|job| {
            given += 1;
            for span in [job.duration, job.wait, job.run_time(), job.wait_time()] {
                assert!(span.is_none_or(|span| span >= Nanos::ZERO), "{job:?}");
            }
            assert!(job.utilisation.is_none_or(|busy| (0.0..=1.0).contains(&busy)), "{job:?}");
            assert!(job.gpus.is_none_or(|gpus| gpus.is_finite() && gpus >= 0.0), "{job:?}");
        });
        let steps = read.faults.count(Fault::StepRow);
        prop_assert_eq!(read.rows + steps, rows.len() as u64);
        prop_assert_eq!(read.given, given);
        let lost = read.faults.count(Fault::RaggedRow) + read.faults.count(Fault::BrokenRow);
        prop_assert_eq!(read.given + lost, read.rows);

        let table = Table::from_bytes("t.csv", text.into(), &TableOptions::default()).unwrap();
        let found = audit(vec![table]);
        prop_assert!(found.allocated.is_none_or(|held| (0.0..=1.0).contains(&held.share)));
        let days: u64 = found.tables[0].days.iter().map(|day| day.rows).sum();
        prop_assert_eq!(days + found.tables[0].undated, read.given);
    }

    #[test]
    fn no_text_is_too_much(text in ".{0,300}", schema in 0..SCHEMAS.len()) {
        for schema in [None, Some(SCHEMAS[schema])] {
            let options = TableOptions { schema, columns: Vec::new() };
            if let Ok(table) = Table::from_bytes("t", text.clone().into(), &options) {
                let _ = audit(vec![table]);
            }
        }
    }

    #[test]
    fn shares_are_numbers(cells in prop::collection::vec(cell(), 60)) {
        let mut text = "class,cnodes,flops,memory_access_bytes,input_bytes,weight_traffic_bytes\n".to_owned();
        for row in cells.chunks(5) {
            let row: Vec<String> = row.iter().map(|cell| cell.replace(['"', ',', '\''], "")).collect();
            text += &format!("PS/Worker,{}\n", row.join(","));
        }
        let table = Table::from_bytes("t", text.into(), &TableOptions::default()).unwrap();
        let mut all = Characteriser::new(Method { hardware: Hardware::pai_2019(), ..Method::PAI_2019 });
        let rows = table.for_each(|job| all.add(job)).given;
        let mut ledger = Ledger::new();
        let found = all.finish(&mut ledger);
        let refused: u64 = ledger.findings().filter(|f| f.message.contains("not timed")).map(|f| f.count).sum();
        let timed = found.rows.timed;
        prop_assert_eq!(timed.total, rows);
        let without = ledger.count("no-features");
        prop_assert_eq!(timed.used + refused + without, rows);
        for profile in &found.classes {
            let sum: f64 = profile.by_job.shares.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{:?}", profile);
        }
    }
}

#[test]
fn sources_without_titles_are_known_by_their_first_row() {
    let rows = [
        ("job,inst,user,Terminated,4550879.0,4551416.0", "alibaba-2020-job", Kind::Jobs),
        (
            "job,tensorflow,1.0,Terminated,1.0,2.0,600.0,29.0,50.0,MISC",
            "alibaba-2020-task",
            Kind::Parts,
        ),
        ("job,worker,i1,w1,inst,Failed,1.0,2.0,m1", "alibaba-2020-instance", Kind::Parts),
        ("m1,V100,96.0,512.0,8.0", "alibaba-2020-machine", Kind::Machines),
        ("LM (batch size 10)\tpython\t--steps\t1\t8601\t6.0\t2", "gavel", Kind::Jobs),
    ];
    for (row, schema, kind) in rows {
        let table = Table::from_bytes("t", row.into(), &TableOptions::default()).unwrap();
        assert_eq!((table.schema().name, table.kind()), (schema, kind));
        let mut seen = Vec::new();
        table.for_each(|job| seen.push(job.clone()));
        assert_eq!(seen.len(), 1, "the first row is a row: {row}");
    }
}

#[test]
fn parts_of_gpus_and_of_titles() {
    let (jobs, _) = read("name,num_gpu,gpu_milli,creation_time\na,1,460,5\nb,8,1000,6\n");
    assert_eq!([jobs[0].gpus, jobs[1].gpus], [Some(0.46), Some(8.0)]);
    let row = "job,tf,4.0,Terminated,1.0,2.0,600.0,29.0,50.0,MISC";
    assert_eq!(read(row).0[0].gpus, Some(2.0), "four instances with half a GPU each");
    let row = "ResNet-18 (batch size 256)\tpython\tdir\t-n\t1\t3948\t2\t1\t-1.000000\t7";
    let (jobs, _) = read(row);
    let job = &jobs[0];
    assert_eq!((job.model.as_str(), job.batch, job.gpus), ("ResNet-18", Some(256.0), Some(2.0)));
    assert_eq!(job.submit, Some(Nanos::from_secs_f64(7.0)));
}

/// Cells of megabytes are read in no time and little memory, and no product of columns is a number of
/// GPUs that nobody has.
#[test]
fn cells_beyond_measure_are_read_and_bounded() {
    let machines: Vec<String> = (0..200_000).map(|number| format!("m{number}")).collect();
    let text = format!("job_id,gpus,machine,duration\na,8,{},60\n", machines.join(";"));
    let (jobs, _) = read(&text);
    assert_eq!(jobs[0].placements.len(), machines.len());
    let ranges: Vec<String> =
        (0..50_000).map(|number| format!("{number}000-{number}255")).collect();
    let text = format!("job_id,duration,machine,devices\na,60,m,{}\n", ranges.join(";"));
    let (jobs, _) = read(&text);
    assert!(jobs[0].placements[0].gpus.is_some_and(|gpus| gpus < 1_000), "{:?}", jobs[0].gpus);
    let (jobs, read) = read("job,tf,1e9,Terminated,1.0,2.0,600.0,29.0,100.0,MISC");
    assert_eq!((jobs[0].gpus, read.faults.count(Fault::ImpossibleGpus)), (None, 1));
}

#[test]
fn a_duration_that_holds_the_wait_is_told_from_others() {
    let head =
        "job_id,user,node_num,gpu_num,type,state,submit_time,start_time,end_time,duration,queue\n";
    let row = |duration: u32| {
        format!(
            "{head}a,u,8,64,Other,FAILED,2023-05-17 11:00:00+00:00,2023-05-17 11:01:40+00:00,\
             2023-05-17 11:10:00+00:00,{duration},100\n"
        )
    };
    for (duration, fault) in [
        (600, Some(Fault::DurationHoldsWait)),
        (500, None),
        (500_000, Some(Fault::DurationUnit)),
        (77, Some(Fault::DurationConflict)),
    ] {
        let (jobs, read) = read(&row(duration));
        assert_eq!(jobs[0].run_time(), Some(Nanos::from_secs_f64(500.0)));
        for other in [Fault::DurationHoldsWait, Fault::DurationUnit, Fault::DurationConflict] {
            let count = u64::from(Some(other) == fault);
            assert_eq!(read.faults.count(other), count, "{duration}: {other:?}");
        }
    }
}

/// Times relative to the first submission begin at 0, however large the others are; dates do not.
#[test]
fn zero_is_a_time_unless_the_others_are_dates() {
    let submits = |text: &str| read(text).0.iter().map(|job| job.submit).collect::<Vec<_>>();
    let seconds = |seconds: f64| Some(Nanos::from_secs_f64(seconds));
    let table = "id,submit,gpus\na,0,1\nb,150000000,1\nc,300000000,1\n";
    assert_eq!(submits(table), [0.0, 150_000.0, 300_000.0].map(seconds), "3.5 days, not 9.5 years");
    let table = "id,submit_s,gpus\na,0,1\nb,150000000,1\n";
    assert_eq!(submits(table), [0.0, 150_000_000.0].map(seconds), "as the title says");
    for (factor, unit) in [(1.0, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns")] {
        let at = |seconds: f64| format!("{:.0}", seconds * factor);
        let table =
            format!("id,submit,gpus\na,0,1\nb,{},1\nc,{},1\n", at(1.6e9), at(1_600_000_010.0));
        let expected = [None, seconds(1.6e9), seconds(1_600_000_010.0)];
        assert_eq!(submits(&table), expected, "dates in {unit}");
        assert_eq!(read(&table).1.faults.count(Fault::SubmitUnknown), 1);
    }
}

#[test]
fn lengths_of_time_may_say_their_units() {
    let (jobs, read) = read("id,duration,gpus\na,1h,1\nb,1h30m,1\nc,90 s,1\nd,0 days 00:01:00,1\n");
    let seconds: Vec<f64> =
        jobs.iter().filter_map(|job| job.duration).map(Nanos::secs_f64).collect();
    assert_eq!(seconds, [3600.0, 5400.0, 90.0, 60.0]);
    assert_eq!(read.faults.count(Fault::Unreadable), 0);
}

/// A packed table that ends early must not look whole.
#[test]
fn a_torn_archive_is_said_to_be_torn() {
    use std::io::Write;
    let text: String = (0..20_000).map(|n| format!("job-{n},{},{}\n", n * 7, n % 8)).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(format!("job_id,submit_s,gpus\n{text}").as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.csv.gz");
    for (length, whole) in [(packed.len(), true), (packed.len() / 2, false)] {
        std::fs::write(&path, &packed[..length]).unwrap();
        let found = audit(vec![Table::open(&path, &TableOptions::default()).unwrap()]);
        let table = &found.tables[0];
        assert_eq!((table.rows.used == table.rows.total, table.cut_short), (whole, !whole));
        assert_eq!(found.ledger.count("cut-short"), u64::from(!whole));
    }
}

/// An archive whose checksum is wrong holds other rows than were written.
#[test]
fn a_damaged_archive_is_said_to_be_damaged() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(b"job_id,submit_s,duration_s,gpus\na,0,200,1\nb,1,300,1\n").unwrap();
    let mut packed = packed.finish().unwrap();
    let at = packed.windows(3).position(|bytes| bytes == b"200").unwrap();
    packed[at] = b'9';
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.csv.gz");
    std::fs::write(&path, packed).unwrap();
    let found = audit(vec![Table::open(&path, &TableOptions::default()).unwrap()]);
    assert!(found.tables[0].cut_short);
    assert_eq!(found.ledger.count("cut-short"), 1);
}

#[test]
fn json_that_ends_between_objects_or_holds_other_text_is_said_to() {
    let object = |n: u32| format!("{{\"job_id\":\"{n}\",\"submit_s\":{n},\"gpus\":1}}");
    let found = |text: String| {
        let (jobs, read) = read(&text);
        (jobs.len(), read.cut.is_some(), read.faults.count(Fault::BrokenRow))
    };
    let three = (1..4).map(object).collect::<Vec<_>>();
    assert_eq!(found(format!("[{}]", three.join(","))), (3, false, 0));
    assert_eq!(found(format!("[{}", three.join(","))), (3, true, 0));
    assert_eq!(found(format!("[{},", three.join(",\n"))), (3, true, 0));
    assert_eq!(found(three.join("\n")), (3, false, 0));
    assert_eq!(found(format!("{}\noops {}\n", three[0], three[1])), (2, false, 1));
    assert_eq!(found(format!("{}\n\"lost\"\n{}\nend", three[0], three[1])), (2, false, 2));
}

/// One that is never closed swallows the rows after it.
#[test]
fn a_quote_that_is_not_closed_is_said_to_be() {
    let cut = |text: &str| read(text).1.cut;
    let titles = "job_id,submit_s,gpus,user\n";
    let open = format!("{titles}a,1,8,u\nb,2,\"8,u\nc,3,8,u\n");
    assert!(cut(&open).is_some_and(|why| why.contains("line 3")), "{:?}", cut(&open));
    for closed in ["a,1,8,\"two\nlines\"\n", "a,1,8,5\" disk\n", "a,1,8,\"a \"\"b\"\"\nc\"\n"] {
        assert_eq!(cut(&format!("{titles}{closed}")), None, "{closed}");
    }
}

/// As Python writes numbers that are none.
#[test]
fn words_for_no_number_cost_a_json_object_their_values_only() {
    let (jobs, read) = read(
        "{\"job_id\":\"a NaN\",\"submit_s\":1,\"gpus\":NaN,\"duration_s\":-Infinity}\n\
         {\"job_id\":\"b\",\"submit_s\":2,\"gpus\":8,\"duration_s\":60}\n\
         {\"job_id\":\"c\",\"submit_s\":Nan,\"gpus\":8,\"duration_s\":60}\n",
    );
    let found: Vec<_> = jobs.iter().map(|job| (job.id.as_str(), job.gpus)).collect();
    assert_eq!(found, [("a NaN", None), ("b", Some(8.0))]);
    assert_eq!((read.faults.count(Fault::Unreadable), read.faults.count(Fault::BrokenRow)), (1, 1));
    assert_eq!((read.rows, read.given), (3, 2));
}

/// Between attempts a job holds nothing.
#[test]
fn attempts_hold_gpus_for_as_long_as_they_ran() {
    let attempt = |start: &str, end: &str, machine: &str, gpus: &str| {
        format!(
            "{{\"start_time\":{start},\"end_time\":{end},\"detail\":[{{\"ip\":\"{machine}\",\"gpus\":[{gpus}]}}]}}"
        )
    };
    let log = |attempts: &[String]| {
        format!(
            "[{{\"status\":\"Pass\",\"vc\":\"v\",\"jobid\":\"a\",\"attempts\":[{}],\"submitted_time\":\"2017-10-01 00:00:00\",\"user\":\"u\"}}]",
            attempts.join(",")
        )
    };
    let job = |attempts: &[String]| {
        let (mut jobs, read) = read(&log(attempts));
        (jobs.remove(0), read.faults.count(Fault::AttemptEndUnknown))
    };
    let time = |day: u32, hour: u32| format!("\"2017-10-{day:02} {hour:02}:00:00\"");
    let first = attempt(&time(1, 0), &time(1, 1), "m1", "\"gpu0\",\"gpu1\"");
    let last = attempt(&time(3, 0), &time(3, 1), "m2", "\"gpu0\",\"gpu1\",\"gpu2\",\"gpu3\"");
    let (twice, faults) = job(&[first.clone(), last.clone()]);
    assert_eq!((twice.run_time(), faults), (Some(Nanos::from_millis(7_200_000)), 0));
    assert_eq!(twice.gpu_seconds(), Some(6.0 * 3600.0));
    let held: Vec<_> =
        twice.holdings().map(|held| (held.gpus, &*held.placements[0].machine)).collect();
    assert_eq!(held, [(2.0, "m1"), (4.0, "m2")]);
    // The first of them held more than its machine is said to have.
    let table = |name: &str, text: String| {
        Table::from_bytes(name, text.into(), &TableOptions::default()).expect("a table")
    };
    let machines = "machine,gpus\nm1,1\nm2,8\n".to_owned();
    let jobs = log(&[first.clone(), last.clone()]);
    let found = audit(vec![table("jobs.json", jobs), table("machines.csv", machines)]);
    let conflicts: Vec<_> =
        found.machines.conflicts.iter().map(|c| (&*c.machine, c.jobs, c.taken)).collect();
    assert_eq!(conflicts, [("m1", Some(2), 2)]);
    let share = found.allocated.expect("known").share;
    assert!((share - 6.0 / (10.0 * 49.0)).abs() < 1e-9, "{share}");
    let (once, _) = job(std::slice::from_ref(&last));
    assert_eq!((once.attempts.len(), once.gpu_seconds()), (0, Some(4.0 * 3600.0)));
    let open = attempt(&time(1, 0), "null", "m1", "\"gpu0\"");
    let (lost, faults) = job(&[open, last]);
    assert_eq!((lost.gpu_seconds(), faults, lost.holdings().count()), (Some(4.0 * 3600.0), 1, 1));
    let going = attempt(&time(3, 0), "\"None\"", "m2", "\"gpu0\"");
    let (going, faults) = job(&[first, going]);
    assert_eq!((going.gpu_seconds(), faults), (None, 0));
    assert_eq!(going.holdings().map(|held| held.end.is_some()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn hints_take_units_of_titles_and_are_given_once() {
    let open = |hints: &[&str]| {
        let text = "name,queued_ms,ran,gpus\na,5000,1,1\nb,6000,2,1\n";
        let columns = hints.iter().map(|hint| hint.parse().unwrap()).collect();
        Table::from_bytes("t.csv", text.into(), &TableOptions { schema: None, columns })
    };
    let mut jobs = Vec::new();
    open(&["submit=queued_ms", "duration=ran:d"]).unwrap().for_each(|job| jobs.push(job.clone()));
    assert_eq!(jobs[1].submit, Some(Nanos::from_millis(6000)));
    assert_eq!(jobs[1].duration, Some(Nanos::from_secs_f64(172_800.0)));
    let error = open(&["submit=queued_ms", "submit=ran"]).err().unwrap();
    assert!(error.message().contains("two columns"), "{error}");
}

/// What a user says of one table's columns is no error for another.
#[test]
fn hints_go_for_the_tables_that_have_their_columns() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let paths = [
        write("jobs.csv", "job_id,queued,duration_s,gpus\na,1700000000,60,1\n"),
        write("log.csv", "time,node,gpu,util\n1700000000,n1,0,0.5\n"),
    ];
    let open = |hints: &[&str]| {
        let columns = hints.iter().map(|hint| hint.parse().unwrap()).collect();
        Table::open_all(&paths, &TableOptions { schema: None, columns })
    };
    let mut tables = open(&["submit=queued:s", "utilisation=util:%"]).unwrap();
    let (log, jobs) = (tables.pop().unwrap(), tables.pop().unwrap());
    assert_eq!((jobs.kind(), log.kind()), (Kind::Jobs, Kind::Samples));
    let mut busy = Vec::new();
    log.for_each_sample(false, |sample| busy.extend(sample.busy.iter().copied()));
    assert_eq!(busy, [Some(0.005)]);
    let error = open(&["submit=when"]).err().unwrap();
    assert!(error.message().contains("no table has a column"), "{error}");
}

#[test]
fn the_feature_table_may_have_arrivals() {
    let (jobs, _) = read("class,flops,memory_access_bytes,submit_s\n1w1g,1e9,1e6,7\n");
    assert_eq!(jobs[0].submit, Some(Nanos::from_secs_f64(7.0)));
}

#[test]
fn times_in_another_unit_keep_their_precision() {
    let row = |n: u32, at: &str| format!("{n},{at},1\n");
    let text = format!(
        "id,submit,gpus\n{}{}{}",
        row(1, "1700000000"),
        row(2, "1700000060"),
        row(3, "1700000100000")
    );
    let submits: Vec<_> = read(&text).0.iter().filter_map(|job| job.submit).collect();
    assert_eq!(submits[2] - submits[0], Nanos::from_secs_f64(100.0));
    let pair = format!("id,submit,gpus\n{}{}", row(1, "1700000000"), row(2, "1700000100000"));
    let submits: Vec<_> = read(&pair).0.iter().filter_map(|job| job.submit).collect();
    assert_eq!(submits[1] - submits[0], Nanos::from_secs_f64(100.0));
}

/// Every table of the data set that is one of jobs or machines is read whole.
#[test]
fn tables_of_the_data_set() {
    let given = std::env::var_os("FORETRAIN_DATA").map(std::path::PathBuf::from);
    let beside = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let fleet = given.unwrap_or(beside).join("fleet");
    if !fleet.is_dir() {
        eprintln!("skipped: no data set; name it in FORETRAIN_DATA");
        return;
    }
    let tables = [
        ("jobs_unified.csv.gz", "unified", 171_169),
        ("microsoft__elasticflow-traces/raw/cluster10.csv", "itp", 260),
        ("SymbioticLab__Tiresias/simulator/60_job.csv", "tiresias", 60),
        ("Rivendile__Muri/cluster_exp/trace-data/cluster_trace.csv", "muri", 400),
        ("Rivendile__Muri/cluster_exp/results/Muri-L/job.csv.gz", "muri-result", 400),
        ("petuum__adaptdl/simulator/workloads/workload-6.csv", "pollux", 160),
        ("petuum__adaptdl/simulator/traces/philly.csv.gz", "philly-summary", 82_247),
        ("stanford-futuredata__gavel/scheduler/traces/msr/seed=0/23dbec.trace", "gavel", 9),
        (
            "stanford-futuredata__gavel/scheduler/traces/physical_cluster/debug.trace",
            "gavel-physical",
            14,
        ),
        (
            "alibaba__clusterdata/cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv.gz",
            "alibaba-2023-pod",
            8_152,
        ),
        (
            "alibaba__clusterdata/cluster-trace-gpu-v2023/csv/openb_node_list_all_node.csv",
            "alibaba-2023-node",
            1_523,
        ),
    ];
    for (path, schema, rows) in tables {
        let table = Table::open(&fleet.join(path), &TableOptions::default()).unwrap();
        assert_eq!(table.schema().name, schema, "{path}");
        let read = table.for_each(|_| ());
        assert_eq!((read.rows, read.given), (rows, rows), "{path}");
        assert_eq!(read.faults.count(Fault::Unreadable), 0, "{path}");
    }
}

/// A list of four billion flags in six bytes would keep a decoder busy for minutes.
#[test]
fn parquet_whose_footer_lies_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.parquet");
    let footer = [0xf9, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    let mut file = b"PAR1".to_vec();
    file.extend(footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    std::fs::write(&path, file).unwrap();
    let error = Table::open(&path, &TableOptions::default()).err().unwrap();
    assert!(error.message().contains("footer contradicts itself"), "{error}");
}
