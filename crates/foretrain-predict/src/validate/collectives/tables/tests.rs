//! Own fixtures for each table's ways, and the real tables where they are at hand.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::physics::TOO_FAST;
use super::*;

/// The rows of one table from text.
fn rows(table: &str, text: &str) -> Result<Measured> {
    let table = TABLES.iter().find(|known| known.name == table).expect("a table");
    let mut measured = Measured::default();
    measured.add(table, &Sheet::of(text))?;
    Ok(measured)
}

fn only(table: &str, text: &str) -> MeasuredRow {
    let measured = rows(table, text).expect("a table");
    assert_eq!((measured.rows.len(), measured.left_out.len()), (1, 0), "{measured:?}");
    measured.rows[0].clone()
}

fn micros(row: &MeasuredRow) -> f64 {
    row.time.micros_f64()
}

const NCCL: &str = "log_id,collective,gpu,n_nodes,n_ranks,size_bytes,dtype,oop_time_us,ip_time_us,oop_wrong,ip_wrong,flag\n";

#[test]
fn logs_give_the_better_placement_and_what_cannot_be_a_row_is_counted() {
    let text = format!(
        "{NCCL}aws_p4de_2node_x,all_reduce,A100,2,16,1048576,float,90.5,88.25,0,N/A,\n\
         aws_p4d_x,all_gather,A100,2,16,1048576,float,,88.25,0,3,odd\n\
         aws_p4d_x,all_gather,A100,1,1,1048576,float,1,1,0,0,\n\
         aws_p4d_x,all_gather,A100,2,16,0,float,1,1,0,0,\n\
         aws_p4d_x,all_gather,A100,2,16,1048576,float,0.00,,0,0,\n"
    );
    let measured = rows("collectives_nccl_tests", &text).expect("a table");
    let [first, second] = &measured.rows[..] else { panic!("{measured:?}") };
    assert_eq!(
        (micros(first), first.cluster, first.flag.as_deref()),
        (88.25, Some("aws-p4de"), None)
    );
    assert_eq!((first.table, first.nodes), ("collectives_nccl_tests", 2));
    assert_eq!((first.dtype, second.cluster), (Some(DType::F32), Some("aws-p4d")));
    assert_eq!(second.flag.as_deref(), Some("odd; the tool found wrong results"));
    assert_eq!(measured.left_out.values().sum::<usize>(), 3);
}

#[test]
fn a_rack_is_one_node() {
    let text =
        format!("{NCCL}coreweave_gb200_x,all_reduce,GB200,360,1440,1073741824,float,9000,,0,0,\n");
    let row = only("collectives_nccl_tests", &text);
    assert_eq!((row.nodes, row.ranks, row.cluster), (20, 1440, Some("gb200-nvl72")));
}

#[test]
fn sizes_of_parts_become_sizes_of_the_whole() {
    let head = "system,gpu,collective,n_ranks,library,dtype,size_bytes,time_us\n";
    let read = |row: &str| only("collectives_aiconfigurator_nccl", &format!("{head}{row}\n"));
    let part = read("b60,B60,all_gather,4,oneccl 2021,half,1024,50");
    assert_eq!((part.bytes.get(), part.cluster), (4096, None));
    assert_eq!(read("b60,B60,all_reduce,4,oneccl 2021,half,1024,50").bytes.get(), 1024);
    let whole = read("h100_sxm,H100,all_gather,8,nccl 2.27.3,half,1024,50");
    assert_eq!((whole.bytes.get(), whole.library.as_deref()), (1024, Some("nccl 2.27.3")));
    assert!(read("l40s,L40S,all_gather,8,nccl 2,half,1024,50").flag.is_some());
    let head = "system,gpu,collective,n_nodes,n_ranks,dtype,bytes_of_tensor_arg,time_us\n";
    let read = |row: &str| only("collectives_perlmutter_vista", &format!("{head}{row}\n"));
    let gathered = read("Vista (GH200),GH200,all_gather,8,8,fp16,268435456,90000");
    assert_eq!((gathered.bytes.get(), gathered.nodes), (8 * 268_435_456, 8));
    assert_eq!((gathered.cluster, gathered.flag), (Some("vista-gh200"), None));
    let sent = read("Perlmutter (A100),A100,sendrecv,2,2,fp16,268435456,90000");
    assert_eq!((sent.kind, sent.cluster), (CollectiveKind::Send, Some("perlmutter")));
    assert!(sent.flag.expect("flagged").contains("TCP"));
}

#[test]
fn what_no_machine_can_reach_is_flagged_and_kept() {
    let head = "system,gpu,collective,n_nodes,n_ranks,dtype,bytes_of_tensor_arg,time_us\n";
    // 2 GB to each of 8 nodes through 50 GB/s take 38 ms.
    for (time, impossible) in [(117.0, true), (30_000.0, true), (39_000.0, false)] {
        let row = format!("{head}Vista (GH200),GH200,all_gather,8,8,fp16,268435456,{time}\n");
        let row = only("collectives_perlmutter_vista", &row);
        assert_eq!(row.flag.as_deref() == Some(TOO_FAST), impossible, "{time} us: {row:?}");
    }
}

#[test]
fn profiles_name_machines_only_where_the_nodes_are_known() {
    let head = "system,collective,size_bytes,num_workers,devices_per_node,median_ms,flag\n";
    let read = |row: &str| only("collectives_vidur", &format!("{head}{row}\n"));
    let one = read("a100_dgx,all_reduce,2048,4,4,0.061,");
    assert_eq!((one.nodes, one.cluster, micros(&one)), (1, Some("dgx-a100"), 61.0));
    let two = read("a100_dgx,send_recv,2048,2,1,0.024,");
    assert_eq!((two.nodes, two.cluster, two.kind), (2, None, CollectiveKind::Send));
    assert_eq!(
        read("a40_pairwise_nvlink,send_recv,2048,2,2,0.024,bad").flag.as_deref(),
        Some("bad")
    );
    let text = "system,gpu,collective,n_ranks,size_bytes,dtype,oop_time_us,ip_time_us\n\
        lab,V100,all_reduce,3,1048576,float,73.41,75\n";
    let row = only("collectives_vtrain_allreduce_lut", text);
    assert_eq!((row.cluster, micros(&row)), (Some("dgx-1-v100"), 73.41));
}

#[test]
fn quoted_rows_take_times_from_bandwidths_where_there_are_none() {
    let text = "system,gpu,n_nodes,n_ranks,collective,variant,size_bytes,oop_time_us,oop_busbw_GBps,ip_time_us,notes,flag\n\
        2 nodes,X,2,16,all_reduce,before,33554432,,62.9,,,\n";
    let row = only("collectives_issue_excerpts", text);
    // 33.55 MB times 1.875 over 62.9 GB/s.
    assert!((micros(&row) - 1000.2).abs() < 0.5, "{row:?}");
    let peak = text.replace("33554432", "");
    let measured = rows("collectives_issue_excerpts", &peak).expect("a table");
    assert_eq!(measured.left_out.keys().map(|(_, why)| *why).collect::<Vec<_>>(), [NO_SIZE]);
}

#[test]
fn only_collectives_of_gpus_are_taken_from_the_small_tables() {
    let head = "system,accelerator,n_nodes,n_ranks,collective,variant,size_bytes,time_us,tool\n";
    let read =
        |row: &str| rows("collectives_misc_small", &format!("{head}{row}\n")).expect("a table");
    let b300 = "\"1x 8xB300 SXM6 node, NVLink5\",B300,1,8,all_reduce,NCCL default,1024,29.87,x";
    let row = &read(b300).rows[0];
    assert_eq!((row.cluster, row.flag.as_deref()), (Some("dgx-b300"), None));
    let forced = b300.replace("NCCL default", "1 channel forced");
    assert!(read(&forced).rows[0].flag.is_some());
    for other in ["x,NeuronCore,1,8,all_reduce,,1024,5,x", "x,H800,1,8,moe_combine,,1024,5,x"] {
        assert_eq!(read(other).rows.len(), 0, "{other}");
    }
    let head = "device,n_ranks,collective,precision,size_bytes,time_ms,algorithm\n";
    let read = |row: &str| {
        rows("collectives_deepbench_allreduce", &format!("{head}{row}\n")).expect("a table")
    };
    assert_eq!(read("IA_KNL7250,2,all_reduce,Float,400000,0.09,x").rows.len(), 0);
    let row = &read("NV_P100,16,all_reduce,Float,400000,0.09,NCCL").rows[0];
    assert_eq!((row.nodes, row.gpu.as_str(), row.flag.is_some()), (2, "P100", true));
}

#[test]
fn damaged_tables_are_refused_with_their_line() {
    let bad = format!("{NCCL}aws_p4d_x,all_reduce,A100,2,16,many,float,90.5,88.25,0,0,\n");
    let error = rows("collectives_nccl_tests", &bad).expect_err("no number");
    assert_eq!(error.place(), Some("line 2"));
    assert!(rows("collectives_nccl_tests", "a,b\n1,2\n").is_err());
    assert!(read(Path::new("/nowhere/at/all")).is_err());
}

fn data() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let root = std::env::var_os("FORETRAIN_DATA").map_or_else(|| default.into(), PathBuf::from);
    let measured = root.join("measured");
    if measured.is_dir() {
        return Some(measured);
    }
    println!("skipped: no validation data at {}", measured.display());
    None
}

/// Rows of each collected table, and those of them that are measured collectives of GPUs.
const COUNTS: [(&str, usize, usize); 9] = [
    ("collectives_nccl_tests", 1_460, 1_394),
    ("collectives_aiconfigurator_nccl", 14_643, 14_643),
    ("collectives_stas00", 106, 104),
    ("collectives_vidur", 26_364, 26_364),
    ("collectives_vtrain_allreduce_lut", 14_336, 14_336),
    ("collectives_perlmutter_vista", 37_831, 37_831),
    ("collectives_issue_excerpts", 110, 102),
    ("collectives_misc_small", 328, 162),
    ("collectives_deepbench_allreduce", 203, 168),
];

#[test]
fn the_collected_tables_are_read_whole() {
    let Some(directory) = data() else { return };
    let measured = read(&directory).expect("the data as its README says");
    for (table, all, want) in COUNTS {
        let rows = measured.rows.iter().filter(|row| row.table == table).count();
        let left_out: usize =
            measured.left_out.iter().filter(|((of, _), _)| *of == table).map(|(_, n)| n).sum();
        assert_eq!((rows + left_out, rows), (all, want), "{table}: {:?}", measured.left_out);
    }
    assert!(measured.rows.iter().all(|row| row.ranks >= 2 && row.time > Nanos::ZERO));
    print_summary(&measured);
}

/// A size that counts the wrong buffer shows as a bandwidth that no wire has. Two sources are
/// beyond the wires by themselves: an excerpt whose bandwidths contradict its times, and gatherings
/// of Vista, which come down to the 118 us of an empty call as sizes grow: some or all of their
/// repetitions failed or were not waited for.
#[test]
fn no_other_row_is_faster_than_the_wires() {
    let Some(directory) = data() else { return };
    let measured = read(&directory).expect("the data as its README says");
    let mut too_fast: BTreeMap<(&str, CollectiveKind, u32), usize> = BTreeMap::new();
    for row in &measured.rows {
        if row.flag.as_ref().is_some_and(|flag| flag.contains(TOO_FAST)) {
            *too_fast.entry((row.system.as_str(), row.kind, row.ranks)).or_default() += 1;
        }
    }
    let got: Vec<_> =
        too_fast.into_iter().map(|((of, kind, n), rows)| (of, kind, n, rows)).collect();
    use CollectiveKind as K;
    let vista = "Vista (GH200-120GB)";
    let want = [
        (vista, K::AllGather, 2, 9),
        (vista, K::AllGather, 4, 178),
        (vista, K::AllGather, 8, 195),
        ("azure_gb300_72ranks_allreduce_excerpt", K::AllReduce, 72, 1),
    ];
    assert_eq!(got, want);
    let known = measured.rows.iter().filter(|row| row.cluster.is_some()).count();
    println!("{known} of {} rows are of a machine in the catalogue", measured.rows.len());
    assert!(known > 70_000, "{known}");
}

fn print_summary(measured: &Measured) {
    let mut groups: BTreeMap<_, Vec<&MeasuredRow>> = BTreeMap::new();
    for row in &measured.rows {
        let is_log = row.table == "collectives_nccl_tests";
        let system = if is_log { "(logs)" } else { row.system.as_str() };
        groups.entry((row.table, system, row.cluster)).or_default().push(row);
    }
    for ((table, system, cluster), rows) in groups {
        let set = |of: fn(&MeasuredRow) -> String| {
            let all: BTreeSet<String> = rows.iter().map(|row| of(row)).collect();
            all.into_iter().collect::<Vec<_>>().join(" ")
        };
        let (kinds, ranks) = (set(|r| r.kind.to_string()), set(|r| format!("{:4}", r.ranks)));
        let nodes = set(|row| format!("{:3}", row.nodes));
        let flagged = rows.iter().filter(|row| row.flag.is_some()).count();
        let sizes = rows.iter().map(|row| row.bytes);
        let smallest = sizes.clone().min().unwrap_or(Bytes::ZERO);
        let largest = sizes.max().unwrap_or(Bytes::ZERO);
        println!(
            "{table} | {system} | {} | {kinds} | ranks {ranks} | nodes {nodes} | {} rows, {flagged} flagged | {smallest} to {largest}",
            cluster.unwrap_or("-"),
            rows.len(),
        );
    }
    for ((table, why), count) in &measured.left_out {
        println!("left out of {table}: {count} ({why})");
    }
}
