//! Tables that scripts print with titles and units of their own.

use foretrain_core::{DType, Ledger, Nanos};
use foretrain_graph::CollectiveKind;
use foretrain_ingest::collective_log::{self, CollectiveLog, LogOptions, looks_like};

fn read_as(text: &str, name: &str) -> (CollectiveLog, Ledger) {
    assert!(looks_like(text.as_bytes()), "{text}");
    collective_log::read_bytes(text.as_bytes(), name, &LogOptions::default()).expect("a log")
}

fn read(text: &str) -> (CollectiveLog, Ledger) {
    read_as(text, "log.txt")
}

/// Sizes in bytes and times in microseconds.
fn times(log: &CollectiveLog) -> Vec<(u64, f64)> {
    let rows = log.runs.iter().flat_map(|run| &run.rows);
    rows.map(|row| (row.size.get(), row.out_of_place.expect("a time").time.micros_f64())).collect()
}

fn near(got: &[(u64, f64)], want: &[(u64, f64)]) {
    assert_eq!(got.len(), want.len(), "{got:?}");
    for ((size, time), (want_size, want_time)) in got.iter().zip(want) {
        assert_eq!(size, want_size);
        assert!((time / want_time - 1.0).abs() < 0.01, "{size}: {time} us, want {want_time}");
    }
}

#[test]
fn bandwidths_without_times_give_times_within_their_rounding() {
    let text = "The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):\n\n\
        | payload |    busbw   |    algbw   |\n\
        | ------: | ---------: | ---------: |\n\
        |    32KB |   1.75GBps |   1.00GBps |\n\
        |     1MB |  70.00GBps |  40.00GBps |\n\
        |    16GB | 350.00GBps | 200.00GBps |\n";
    let want = [(32 << 10, 32.768), (1 << 20, 26.2144), (16 << 30, 85_899.3)];
    for prefix in ["", "[rank0]: ", "2024-05-01T10:00:00.5Z "] {
        let prefixed: Vec<String> = text.lines().map(|line| format!("{prefix}{line}")).collect();
        let (log, ledger) = read(&prefixed.join("\n"));
        near(&times(&log), &want);
        let run = &log.runs[0];
        assert!(run.time_inferred);
        assert_eq!(run.kind.value, CollectiveKind::AllReduce);
        assert_eq!(run.ranks.as_ref().map(|ranks| ranks.value), Some(8));
        assert_eq!((ledger.count("time-from-bandwidth"), ledger.count("size-unit")), (1, 1));
        assert_eq!(ledger.count("row-lost") + ledger.count("algbw-disagrees"), 0, "{ledger:?}");
        assert_eq!(ledger.coverage("rows").map(|rows| (rows.used, rows.total)), Some((3, 3)));
    }
}

#[test]
fn a_bus_bandwidth_alone_needs_operation_and_ranks() {
    let table = "payload | busbw\n1MiB | 70GB/s\n2MiB | 140 GB/s\n";
    let said = format!("---- Performance of all_reduce on 8 devices ----\n{table}");
    near(&times(&read(&said).0), &[(1 << 20, 26.2144), (2 << 20, 26.2144)]);
    let (log, ledger) = read(table);
    assert_eq!((log.runs.len(), ledger.count("row-lost")), (0, 2));
    assert_eq!(ledger.coverage("rows").map(|rows| (rows.used, rows.total)), Some((0, 2)));
}

#[test]
fn units_behind_numbers_and_in_titles_are_one() {
    // 4 MiB in 172.352 us among 4 ranks: 24.336 GB/s, times 1.5.
    let title = "---- Performance of all_reduce on 4 devices --------------\n\
        Size (Bytes)         Description               Duration             Throughput (Gbps)    BusBW (Gbps)        \n\
        ----------------------------------------------------------------------------------------------------\n";
    let row = "4.0 MB               1048576x4                 172.352 us           389.37               292.03\n";
    let raw = "4194304              1048576x4                 172.352              389.37               292.03\n";
    let titled = "size (MB)  latency (ms)  BusBW (Gbps)\n4  0.172352  292.03\n";
    for text in [format!("{title}{row}"), format!("{title}{raw}")] {
        let (log, ledger) = read(&text);
        near(&times(&log), &[(4 << 20, 172.352)]);
        assert_eq!(log.runs[0].ranks.as_ref().map(|ranks| ranks.value), Some(4));
        assert!(!log.runs[0].time_inferred);
        assert_eq!(ledger.count("busbw-disagrees"), 0, "{ledger:?}");
    }
    let (log, _) = read(&format!("all_reduce over 4 ranks\n{titled}"));
    near(&times(&log), &[(4 << 20, 172.352)]);
}

#[test]
fn what_a_kilobyte_is_follows_from_the_bandwidths() {
    for (algbw, want) in [("1.000", 512_000), ("1.024", 524_288)] {
        let text = format!("size | time | algbw\n512KB | 512us | {algbw} GB/s\n");
        let (log, ledger) = read(&text);
        near(&times(&log), &[(want, 512.0)]);
        assert_eq!(ledger.get("size-unit").map(|note| note.message.contains("told")), Some(true));
    }
}

#[test]
fn units_that_nothing_tells_are_refused() {
    // Bits or bytes, and of what time?
    for text in [
        "all_reduce over 8 ranks\nsize_bytes,busbw_gbps\n1048576,70\n",
        "all_reduce over 8 ranks\nop,bytes,time\nall_reduce,1048576,26.2\n",
    ] {
        let (log, ledger) = read(text);
        assert_eq!((log.runs.len(), ledger.count("row-lost")), (0, 1), "{text}");
    }
    // The figures together do tell.
    let (log, ledger) = read("size_bytes,time,algbw_gbps\n1048576,26.2144,40\n8388608,30,279.62\n");
    near(&times(&log), &[(1 << 20, 26.2144), (8 << 20, 30.0)]);
    assert_eq!(ledger.count("unit-from-figures"), 1);
}

#[test]
fn sizes_of_parts_are_told_by_the_bandwidths() {
    // 1 MiB from each of 8 ranks in 100 us.
    let text = "all_gather over 8 ranks\nsize_bytes,time_us,busbw_GBps\n1048576,100,73.40\n";
    let (log, ledger) = read(text);
    near(&times(&log), &[(8 << 20, 100.0)]);
    assert_eq!(ledger.count("size-per-rank"), 1);
    let whole = text.replace("73.40", "9.18");
    near(&times(&read(&whole).0), &[(1 << 20, 100.0)]);
}

#[test]
fn a_simple_table_names_operations_and_ranks_itself() {
    let text = "collective,world_size,bytes,dtype,time_us\n\
        all_reduce,8,1024,float32,12.5\n\
        all_reduce,8,2048,float32,13.5\n\
        all_gather,8,2048,float32,9.5\n\
        all_gather,16,2048,float32,\n\
        all_gather,16,4096,float32,19.5\n";
    let (log, ledger) = read(text);
    let runs: Vec<_> = log
        .runs
        .iter()
        .map(|run| (run.kind.value, run.ranks.as_ref().map(|ranks| ranks.value), run.rows.len()))
        .collect();
    use CollectiveKind as K;
    assert_eq!(
        runs,
        [(K::AllReduce, Some(8), 2), (K::AllGather, Some(8), 1), (K::AllGather, Some(16), 1)]
    );
    assert!(log.runs.iter().all(|run| run.dtype == Some(DType::F32)));
    let lost = ledger.get("row-lost").expect("one row has no time");
    assert!(lost.places[0].starts_with("line 5: "), "{lost:?}");
}

#[test]
fn a_table_that_begins_again_is_another_sweep() {
    let text = "collective,ranks,size_bytes,time_us,busbw_GBps\n\
        all_reduce,8,1024,10,0.18\nall_reduce,8,2048,11,0.33\n\
        all_reduce,8,1024,20,0.09\nall_reduce,8,2048,21,0.17\n";
    let (log, _) = read(text);
    assert_eq!(log.runs.iter().map(|run| run.lines).collect::<Vec<_>>(), [(2, 3), (4, 5)]);
    // From large to small is one sweep.
    let titles = "size_bytes,time_us,algbw_GBps\n";
    let empty = collective_log::read_bytes(titles.as_bytes(), "x", &LogOptions::default());
    assert!(empty.is_err(), "titles alone are no table");
    let down = "size_bytes,time_us,algbw_GBps\n4096,12,0.34\n2048,11,0.19\n1024,10,0.10\n";
    assert_eq!(read(down).0.runs.len(), 1);
}

#[test]
fn torn_rows_are_reported_and_other_lines_passed_over() {
    let text = "| payload | busbw | algbw |\n|---:|---:|---:|\n\
        |  1MB | 70.00GBps | 40.00GBps |\n\
        |  2MB | 80.00GBps | host:1:2 [0] NCCL INFO Using network IB\n\
        some other line\n\
        |  4MB | fast | 60.00GBps |\n\
        |  8MB | 105.00GBps | 60.00GBps |\n";
    let (log, ledger) = read_as(text, "all_reduce.log");
    assert_eq!(log.runs[0].rows.iter().map(|row| row.line).collect::<Vec<_>>(), [3, 7]);
    assert_eq!(ledger.count("row-lost"), 2, "{ledger:?}");
    assert_eq!(log.nccl.network.name.as_deref(), Some("IB"));
    assert_eq!(log.runs[0].kind.how, "file name");
}

#[test]
fn a_row_cut_after_its_size_is_lost_and_said_so() {
    let text = "payload(MB) | time(ms) | busbw(GB/s)\n1.0 | 0.11 | 16.7\n64 | \n256 | 2.1 | 223\n";
    let (log, ledger) = read_as(text, "all_reduce.log");
    assert_eq!(log.runs[0].rows.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(ledger.count("row-lost"), 1, "{ledger:?}");
}

#[test]
fn other_tables_are_no_sweeps() {
    for text in [
        "| name | size | time |\n| a.bin | 12MB | 3 |\n",
        "step, loss, time\n1, 2.0, 3\n",
        "The size of buffers, the busbw and so on are explained elsewhere, see there.\n",
    ] {
        assert!(!looks_like(text.as_bytes()), "{text}");
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_table_panics_or_invents_a_size(
            titles in proptest::sample::subsequence(
                vec!["size (MB)", "payload", "time", "latency (ms)", "algbw", "BusBW (Gbps)", "busbw_gbps", "ranks", "op", "Description"], 2..7),
            cells in proptest::collection::vec("[0-9]{1,19}(\\.[0-9]{1,3})?( ?(KB|MiB|us|ms|GBps|x4))?|all_gather|", 0..40),
            gap in prop::sample::select(vec![" | ", ",", "   "]),
        ) {
            let mut text = titles.join(gap);
            for row in cells.chunks(titles.len()) {
                text.push('\n');
                text.push_str(&row.join(gap));
            }
            if let Ok((log, ledger)) = collective_log::read_bytes(text.as_bytes(), "x", &LogOptions::default()) {
                let rows = log.runs.iter().map(|run| run.rows.len()).sum::<usize>() as u64;
                let lines = text.lines().count() as u64 - 1;
                prop_assert!(rows <= lines);
                for row in log.runs.iter().flat_map(|run| &run.rows) {
                    prop_assert!(row.size.get() > 0 && row.line >= 2);
                }
                if let Some(coverage) = ledger.coverage("rows") {
                    prop_assert_eq!(coverage.used, rows);
                    prop_assert!(coverage.total <= lines);
                }
            }
        }
    }
}

/// What `capture comm` writes: subsets of equal size on one node and on several are runs of their own.
#[test]
fn sweeps_of_captures_tell_nodes_and_messages() {
    let (log, ledger) = read(
        "# foretrain capture comm: gloo on cpu, 4 processes, 2 machine(s)\n\
         world,bytes,time_us,op,p10_us,p90_us,barriered_us,n,nodes,cpu_us\n\
         4,4096,400.5,all_reduce,390,480,420,50,2,90\n\
         4,16384,500,all_reduce,490,580,520,50,2,95\n\
         # all_reduce of 64 KiB and more on 4 ranks: no time left\n\
         2,4096,40,all_reduce,39,48,42,50,1,9\n\
         2,4096,20,sendrecv,19,28,22,50,1,5\n\
         2,4096,300,all_reduce,290,380,320,50,2,80\n\
         2,4096,150,send,140,180,160,50,2,40\n",
    );
    let runs: Vec<_> = log
        .runs
        .iter()
        .map(|run| (run.kind.value, run.ranks.as_ref().map(|r| r.value), run.nodes, run.rows.len()))
        .collect();
    use CollectiveKind as K;
    assert_eq!(
        runs,
        [
            (K::AllReduce, Some(4), Some(2), 2),
            (K::AllReduce, Some(2), Some(1), 1),
            (K::SendRecv, Some(2), Some(1), 1),
            (K::AllReduce, Some(2), Some(2), 1),
            (K::Send, Some(2), Some(2), 1),
        ]
    );
    let rows = ledger.coverage("rows").expect("counted");
    assert_eq!((rows.used, rows.total), (6, 6));
    let processor = |run: usize| log.runs[run].rows[0].processor;
    assert_eq!(
        (processor(0), processor(2)),
        (Some(Nanos::from_micros(90)), Some(Nanos::from_micros(5)))
    );
    // A cell that is no time costs its own figure only.
    let (log, _) =
        read("world,bytes,time_us,op,cpu_us\n2,4096,40,all_reduce,?\n2,8192,50,all_reduce,7\n");
    let times: Vec<_> = log.runs[0].rows.iter().map(|row| row.processor).collect();
    assert_eq!(times, [None, Some(Nanos::from_micros(7))]);
}
