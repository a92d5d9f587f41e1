//! Benchmark logs as tools, launchers and people leave them.

mod benchmark_log;

use benchmark_log::{Sweep, figures, info_line, sizes};
use foretrain_core::{Bandwidth, DType, Ledger};
use foretrain_graph::CollectiveKind;
use foretrain_ingest::collective_log::{
    self, Check, CollectiveLog, LogOptions, Row, Run, looks_like,
};
use foretrain_ingest::{FileKind, sniff};

fn read(text: &str) -> (CollectiveLog, Ledger) {
    read_as(text, "log.txt")
}

fn read_as(text: &str, name: &str) -> (CollectiveLog, Ledger) {
    assert!(looks_like(text.as_bytes()), "{text}");
    collective_log::read_bytes(text.as_bytes(), name, &LogOptions::default()).expect("a log")
}

fn only(log: &CollectiveLog) -> &Run {
    assert_eq!(log.runs.len(), 1, "{log:#?}");
    &log.runs[0]
}

/// What all forms of one sweep must agree on; lines and checks are of the form.
fn essence(row: &Row) -> (u64, [Option<[f64; 3]>; 2]) {
    let figures = |timing: &collective_log::Timing| {
        let rate = |rate: Option<Bandwidth>| {
            format!("{:.2}", rate.expect("printed").gb_per_sec()).parse().expect("a number")
        };
        [timing.time.micros_f64(), rate(timing.algbw), rate(timing.busbw)]
    };
    (row.size.get(), [&row.out_of_place, &row.in_place].map(|t| t.as_ref().map(figures)))
}

fn truth() -> Vec<(u64, [Option<[f64; 3]>; 2])> {
    sizes().map(|size| (size, figures(size).map(Some))).collect()
}

#[test]
fn four_forms_of_one_sweep_give_the_same_rows() {
    let new = Sweep::default().text();
    let (lost_size, torn) = benchmark_log::with_launcher_and_debug_output(&new);
    for (form, text) in [
        ("old", Sweep { old: true, ..Sweep::default() }.text()),
        ("new", new),
        ("launcher", torn),
        ("json lines", benchmark_log::json_lines()),
    ] {
        let name = if form == "old" { "all_reduce.log" } else { "log.txt" };
        let (log, ledger) = read_as(&text, name);
        let run = only(&log);
        let lost = u64::from(form == "launcher");
        let mut want = truth();
        want.retain(|(size, _)| lost == 0 || *size != lost_size);
        assert_eq!(run.rows.iter().map(essence).collect::<Vec<_>>(), want, "{form}");
        assert_eq!(want.len() as u64, 21 - lost);
        assert_eq!(ledger.count("row-lost"), lost, "{form}: {ledger:?}");
        let coverage = ledger.coverage("rows").unwrap();
        assert_eq!((coverage.used, coverage.total), (21 - lost, 21), "{form}");
        assert_eq!(run.kind.value, CollectiveKind::AllReduce, "{form}");
        assert_eq!(run.ranks.as_ref().unwrap().value, 8, "{form}");
        assert_eq!(run.dtype, Some(DType::F32), "{form}");
        assert_eq!(run.redop.as_deref(), Some("sum"), "{form}");
        assert_eq!(ledger.count("algbw-disagrees") + ledger.count("busbw-disagrees"), 0, "{form}");
    }
}

#[test]
fn a_torn_row_is_named_by_its_line() {
    let (size, text) = benchmark_log::with_launcher_and_debug_output(&Sweep::default().text());
    let line = 1 + text.lines().position(|l| l.contains(&format!(" {size}  "))).unwrap();
    let (_, ledger) = read(&text);
    let places = &ledger.get("row-lost").unwrap().places;
    assert_eq!(places.len(), 1);
    assert!(places[0].starts_with(&format!("line {line}: ")), "{places:?}");
}

#[test]
fn the_operation_is_asked_for_stated_named_deduced_or_unknown() {
    let text = Sweep { banner: false, ..Sweep::default() }.text();
    let kind = |text: &str, name: &str, kind: Option<CollectiveKind>| {
        let options = LogOptions { kind };
        let (log, ledger) = collective_log::read_bytes(text.as_bytes(), name, &options).unwrap();
        let run = only(&log);
        (run.kind.value, run.kind.how.clone(), run.kind.inferred, ledger.count("kind-unknown"))
    };
    use CollectiveKind as K;
    let stated = Sweep::default().text();
    assert_eq!(kind(&stated, "x", None), (K::AllReduce, "named in the log".into(), false, 0));
    let command = format!("$ mpirun -np 8 ./build/all_reduce_perf -b 1K\n{text}");
    assert_eq!(kind(&command, "x", None), (K::AllReduce, "named in the log".into(), false, 0));
    let named = (K::AllReduce, "file name".into(), true, 0);
    assert_eq!(kind(&text, "runs/p4d_all_reduce_8.log.gz", None), named);
    assert_eq!(kind(&text, "x", None), (K::AllReduce, "shape of the table".into(), true, 0));
    assert_eq!(kind(&text, "x", Some(K::Reduce)).0, K::Reduce);
    let gather = text.replace("  sum ", " none ");
    assert_eq!(kind(&gather, "x", None), (K::Unknown, "not known".into(), true, 1));
}

#[test]
fn ranks_come_from_their_lines_or_the_bandwidths() {
    let (log, ledger) = read(&Sweep::default().text());
    let run = only(&log);
    assert_eq!((run.nodes, run.device.as_deref()), (Some(2), Some("NVIDIA A100-SXM4-40GB")));
    assert!(!run.ranks.as_ref().unwrap().inferred && ledger.count("ranks-from-busbw") == 0);
    let (log, ledger) = read(&Sweep { ranks: false, ..Sweep::default() }.text());
    let run = only(&log);
    let ranks = run.ranks.as_ref().unwrap();
    assert_eq!((ranks.value, ranks.inferred, run.nodes), (8, true, None));
    assert_eq!(ledger.count("ranks-from-busbw"), 1);
    // A list that was cut short is no statement.
    let text = Sweep::default().text();
    let cut: Vec<&str> =
        text.lines().filter(|l| !l.contains("Rank  6") && !l.contains("Rank  7")).collect();
    let (log, ledger) = read(&cut.join("\n"));
    assert_eq!((only(&log).ranks.as_ref().unwrap().value, only(&log).nodes), (8, None));
    assert_eq!(ledger.count("ranks-disagree"), 1);
}

#[test]
fn wrapped_rows_are_put_together_and_windows_line_ends_read() {
    let text = Sweep::default().text();
    for width in [80, 92, 100] {
        let wrapped: Vec<String> = text
            .lines()
            .flat_map(|line| {
                let chars: Vec<char> = line.chars().collect();
                chars.chunks(width).map(|c| c.iter().collect()).collect::<Vec<String>>()
            })
            .collect();
        let (log, ledger) = read(&wrapped.join("\r\n"));
        // Headers are wrapped too, so the columns are taken from the rows.
        let rows: Vec<_> = log.runs.iter().flat_map(|run| &run.rows).map(essence).collect();
        assert_eq!(rows, truth(), "{width}: {ledger:?}");
        assert_eq!(ledger.count("row-wrapped"), 21, "{width}");
    }
}

#[test]
fn prefixes_and_excerpts_change_nothing() {
    let text = Sweep::default().text();
    for prefix in ["[1,0]<stdout>:", "0: ", "node-3: ", "2024-05-01T10:00:00.5Z ", "    ", "> "] {
        let prefixed: Vec<String> = text.lines().map(|line| format!("{prefix}{line}")).collect();
        let (log, ledger) = read(&prefixed.join("\n"));
        assert_eq!(only(&log).rows.iter().map(essence).collect::<Vec<_>>(), truth(), "{prefix}");
        assert_eq!(only(&log).ranks.as_ref().unwrap().value, 8, "{prefix}");
        assert!(ledger.is_empty(), "{prefix}: {ledger:?}");
    }
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" float ")).collect();
    let (log, ledger) = read(&rows[3..9].join("\n"));
    assert_eq!(only(&log).rows.iter().map(essence).collect::<Vec<_>>(), truth()[3..9]);
    assert_eq!(ledger.count("no-header"), 1);
}

#[test]
fn times_of_the_issuing_thread_stay_apart() {
    let times = Sweep::default().text();
    let cpu = times.replace("     time   algbw", "  cputime   algbw");
    assert_ne!(times, cpu);
    let (log, ledger) = read(&format!("{times}{cpu}"));
    assert_eq!(log.runs.iter().map(|run| run.cpu_time).collect::<Vec<_>>(), [false, true]);
    assert_eq!(log.runs[1].rows.iter().map(essence).collect::<Vec<_>>(), truth());
    assert_eq!(ledger.count("cpu-time"), 1);
    let document = benchmark_log::document().replace("{\"time\":", "{\"cpu_time\":");
    let (log, _) = read(&document);
    assert!(only(&log).cpu_time && only(&log).rows.len() == 21);
}

#[test]
fn rows_with_wrong_results_are_read_and_marked() {
    let text = Sweep::default().text();
    let row = text.lines().find(|line| line.contains(" 1048576  ")).expect("a row");
    let wrong = text.replace(row, &format!("{}17", row.strip_suffix('0').expect("a count")));
    let (log, ledger) = read(&wrong);
    let run = only(&log);
    assert_eq!(run.rows.iter().map(essence).collect::<Vec<_>>(), truth());
    let marked: Vec<_> = run
        .rows
        .iter()
        .flat_map(|row| [&row.out_of_place, &row.in_place].map(|t| (row.size.get(), t)))
        .filter(|(_, timing)| timing.is_some_and(|timing| timing.is_wrong()))
        .map(|(size, timing)| (size, timing.expect("a timing").check))
        .collect();
    assert_eq!(marked, [(1 << 20, Check::Wrong(17))]);
    assert_eq!(ledger.count("wrong-results"), 1);
}

#[test]
fn what_a_batch_script_prints_around_its_runs_does_not_matter() {
    let sweep = Sweep { banner: false, ..Sweep::default() }.text();
    let text = format!(
        "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=4\nsbatch: Submitted batch job 4711\n\
         + module load cuda/12.4 nccl\n+ export NCCL_DEBUG=WARN\nMon Nov  4 10:00:00 UTC 2024\n\
         + srun -N 2 --ntasks-per-node=4 ./build/all_reduce_perf -b 1K -e 1G -f 2\n{sweep}\
         + srun -N 2 --ntasks-per-node=4 ./build/alltoall_perf -b 1K -e 1G -f 2\n{}\
         slurmstepd: error: *** JOB 4711 ON gpu-0 CANCELLED AT 2024-11-04T10:10:00 ***\n",
        sweep.replace("     sum      -1", "    none      -1"),
    );
    let (log, ledger) = read(&text);
    let runs: Vec<_> =
        log.runs.iter().map(|run| (run.kind.value, run.rows.len(), run.nodes)).collect();
    use CollectiveKind as K;
    assert_eq!(runs, [(K::AllReduce, 21, Some(2)), (K::AllToAll, 21, Some(2))]);
    assert_eq!(ledger.count("row-lost"), 0, "{ledger:?}");
}

#[test]
fn communicators_of_every_version_tell_ranks_and_nodes() {
    let text = Sweep { ranks: false, ..Sweep::default() }.text();
    let (begin, table) = text.split_at(text.find("#\n#  ").expect("a header"));
    let said =
        "h:1:2 [0] NCCL INFO comm 0x5 rank 0 nRanks 8 nNodes 4 localRanks 2 localRank 0 MNNVL 0\n";
    let (log, _) = read(&format!("{begin}{said}{table}"));
    let run = only(&log);
    let ranks = run.ranks.as_ref().expect("told");
    assert_eq!((ranks.value, ranks.inferred, run.nodes), (8, false, Some(4)));
}

#[test]
fn several_runs_in_one_file_stay_apart() {
    let first = Sweep::default().text();
    let second =
        first.replace("all_reduce_perf", "reduce_scatter_perf").replace("Rank  7", "Rank  8");
    let (log, _) = read(&format!("{first}\n+ srun next\n{second}"));
    let kinds: Vec<_> = log.runs.iter().map(|run| (run.kind.value, run.rows.len())).collect();
    assert_eq!(kinds, [(CollectiveKind::AllReduce, 21), (CollectiveKind::ReduceScatter, 21)]);
    assert!(log.runs[0].lines.1 < log.runs[1].lines.0);
    // Two hosts that measure at the same time, line by line.
    let both: Vec<String> =
        first.lines().flat_map(|l| [format!("a: {l}"), format!("b: {l}")]).collect();
    let (log, ledger) = read(&both.join("\n"));
    assert_eq!(log.runs.iter().map(|run| run.rows.len()).collect::<Vec<_>>(), [21, 21]);
    assert_eq!(ledger.count("rank-repeated"), 0);
}

#[test]
fn disagreeing_figures_are_kept_and_reported() {
    let text = Sweep::default().text();
    let busbw = text.replace("  228.44  399.76 ", "  228.44  199.88 ");
    assert_ne!(text, busbw);
    let (log, ledger) = read(&busbw);
    assert_eq!(only(&log).rows.len(), 21);
    assert_eq!(ledger.count("busbw-disagrees") + ledger.count("ranks-contradict"), 2);
    let binary = benchmark_log::nccom();
    let (log, ledger) = read_as(&binary, "allr.log");
    assert_eq!((only(&log).rows.len(), ledger.count("binary-unit")), (3, 1));
    assert_eq!(ledger.count("algbw-disagrees"), 0);
    let rate = only(&log).rows[2].out_of_place.unwrap().algbw.unwrap().gb_per_sec();
    assert!((rate - 43.69).abs() < 0.01, "{rate}");
}

#[test]
fn documents_of_nccl_tests_are_read_whole_or_salvaged() {
    let text = benchmark_log::document();
    let (log, ledger) = read(&text);
    let run = only(&log);
    assert_eq!(run.rows.iter().map(essence).collect::<Vec<_>>(), truth());
    assert_eq!((run.kind.value, run.ranks.as_ref().unwrap().value), (CollectiveKind::AllReduce, 8));
    assert_eq!(run.rows[0].in_place.unwrap().check, Check::None);
    assert!(ledger.is_empty(), "{ledger:?}");
    let cut = &text[..text.find("\"size\":1048576").unwrap() + 90];
    let (log, ledger) = read(cut);
    assert_eq!(only(&log).rows.iter().map(essence).collect::<Vec<_>>(), truth()[..10]);
    assert_eq!((ledger.count("cut-off"), ledger.count("row-lost")), (1, 1));
}

#[test]
fn a_csv_file_gives_the_same_rows() {
    let (log, ledger) = read(&benchmark_log::csv());
    assert_eq!(only(&log).rows.iter().map(essence).collect::<Vec<_>>(), truth());
    assert_eq!((only(&log).nodes, ledger.is_empty()), (Some(2), true));
    let torn = benchmark_log::csv().replace(",1,4194304,", ",1,4194,304,");
    let (log, ledger) = read(&torn);
    assert_eq!((only(&log).rows.len(), ledger.count("row-lost")), (20, 2));
}

#[test]
fn other_files_are_no_logs() {
    for text in ["", "hello", "a,b,c\n1,2,3\n", "{\"traceEvents\": []}", "size count type\n1 2 3"] {
        assert!(!looks_like(text.as_bytes()), "{text}");
        let error = collective_log::read_bytes(text.as_bytes(), "x", &LogOptions::default());
        assert!(!error.unwrap_err().hints().is_empty(), "{text}");
    }
    assert_eq!(sniff(Sweep::default().text().as_bytes(), "x.log"), FileKind::CollectiveLog);
    assert_eq!(sniff(benchmark_log::document().as_bytes(), "x.json"), FileKind::CollectiveLog);
}

#[test]
fn only_rank_zero_of_repeated_output_is_suspect() {
    // Built without MPI, every process is rank 0 of its own job.
    let text = Sweep::default().text();
    let repeated =
        text.replace("#  Rank  0", "#  Rank  0 Group  0 Pid 1 on b device 0 [0] X\n#  Rank  0");
    let (_, ledger) = read(&repeated);
    assert_eq!(ledger.count("rank-repeated"), 1);
}

#[test]
fn gzip_is_opened_by_its_content() {
    use std::io::Write;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(Sweep::default().text().as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let whole = collective_log::read_bytes(&packed, "x", &LogOptions::default()).unwrap();
    assert_eq!(only(&whole.0).rows.len(), 21);
    let cut = &packed[..packed.len() / 2];
    let (log, ledger) = collective_log::read_bytes(cut, "x", &LogOptions::default()).unwrap();
    assert!(!only(&log).rows.is_empty() && ledger.count("cut-off") == 1, "{ledger:?}");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = looks_like(&bytes);
            let _ = collective_log::read_bytes(&bytes, "x", &LogOptions::default());
        }

        /// However often other output breaks in, no row is read that was not measured, and rows
        /// that nothing touched are all read.
        #[test]
        fn no_row_is_invented(
            cuts in proptest::collection::vec((0.0..1.0_f64, any::<bool>(), any::<bool>()), 1..6),
        ) {
            let mut text = Sweep::default().text();
            for (at, before, after) in &cuts {
                let at = (text.len() as f64 * at) as usize;
                let piece = [if *before { "\n" } else { "" }, info_line(), if *after { "\n" } else { "" }];
                text.insert_str(at, &piece.concat());
            }
            let (log, ledger) = collective_log::read_bytes(text.as_bytes(), "x", &LogOptions::default()).unwrap();
            let truth = truth();
            // A torn header may hide that a row has a second placement; then that is said.
            let half = |row: &(u64, [Option<[f64; 3]>; 2])| {
                ledger.count("half-row") > 0
                    && truth.iter().any(|t| (t.0, t.1[0], None) == (row.0, row.1[0], row.1[1]))
            };
            let rows: Vec<_> = log.runs.iter().flat_map(|run| &run.rows).map(essence).collect();
            for row in &rows {
                prop_assert!(truth.contains(row) || half(row), "{row:?}\n{text}");
            }
            prop_assert!(rows.len() + cuts.len() >= truth.len(), "{} rows\n{text}", rows.len());
        }
    }
}
