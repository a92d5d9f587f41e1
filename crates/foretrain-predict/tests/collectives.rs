//! Collectives on a cluster, and real logs beside them.

use std::path::PathBuf;

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_ingest::collective_log::{self, CollectiveLog, LogOptions};
use foretrain_predict::collectives::{
    CollectivesAnswer, CollectivesOptions, Layout, NetworkWhatIfs, collectives, latency_share,
};

fn options(ranks: &[u32]) -> CollectivesOptions {
    CollectivesOptions {
        kinds: vec![CollectiveKind::AllReduce],
        ranks: ranks.to_vec(),
        sizes: (10..=33).map(|doublings| Bytes::new(1 << doublings)).collect(),
        layout: Layout::Packed,
        extra_latencies: vec![Nanos::ZERO],
        late_links: None,
        window: None,
        algorithm: None,
        network: NetworkWhatIfs::default(),
    }
}

fn ask(
    cluster: &Cluster,
    options: &CollectivesOptions,
    logs: &[CollectiveLog],
) -> CollectivesAnswer {
    collectives(cluster, Catalogue::builtin(), options, logs).expect("an answer")
}

fn log(text: &str) -> CollectiveLog {
    let read = collective_log::read_bytes(text.as_bytes(), "log", &LogOptions::default());
    read.expect("a log").0
}

/// A log of one all-reduce of 1 GiB in `micros` on `hosts` hosts of eight ranks.
fn run_of(hosts: u32, micros: f64) -> CollectiveLog {
    let ranks = hosts * 8;
    let algbw = f64::from(1 << 30) / micros / 1e3;
    let busbw = algbw * 2.0 * f64::from(ranks - 1) / f64::from(ranks);
    let rank = |rank: u32| {
        let (host, device) = (rank / 8, rank % 8);
        format!("#  Rank {rank} Group 0 Pid 1 on host-{host} device {device} [0x10] NVIDIA A100\n")
    };
    let header = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n# Using devices\n";
    let columns = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    let figures = format!("{micros:.1} {algbw:.2} {busbw:.2} 0");
    let row = format!("1073741824 268435456 float sum -1 {figures} {figures}\n");
    let mut log = log(&[header, &(0..ranks).map(rank).collect::<String>(), columns, &row].concat());
    log.runs[0].kind.value = CollectiveKind::AllReduce;
    log
}

/// Four 100 Gbit/s NICs: two nodes measured 57 GB/s over 50, four cannot.
#[test]
fn two_nodes_above_their_nics_are_explained_and_four_are_not_predicted_so() {
    let cluster = Catalogue::builtin().cluster("aws-p4d").unwrap();
    let nics = cluster.node_bandwidth().gb_per_sec();
    assert_eq!(nics, 50.0);
    let logs = [run_of(2, 35_215.0), run_of(3, 64_782.0), run_of(4, 70_253.0)];
    let answer = ask(&cluster, &options(&[16, 32]), &logs);
    let bus: Vec<f64> = answer
        .comparisons
        .iter()
        .map(|run| run.rows[0].measured_bus_bandwidth.gb_per_sec())
        .collect();
    for (got, want) in bus.iter().zip([57.2, 31.8, 29.6]) {
        assert!((got - want).abs() < 0.1, "{got} {want}");
    }
    let [two, three, four] = &answer.comparisons[..] else { panic!("three runs") };
    assert_eq!((two.setting.nodes, four.setting.nodes), (2, 4));
    assert!(two.notes.iter().any(|note| note.contains("need not be an error")), "{:?}", two.notes);
    for run in [three, four] {
        assert!(run.notes.iter().all(|note| !note.contains("above")), "{:?}", run.notes);
    }
    assert!((two.asked, three.asked, four.asked) == (true, false, true));
    assert!(answer.sweeps[1].plateau.bus_bandwidth.gb_per_sec() <= nics);
}

/// A link of several hundred microseconds halves 4 MiB, and hardly 8 GiB.
#[test]
fn latency_matters_to_small_messages_only() {
    let cluster = Catalogue::builtin().cluster("dgx-a100").unwrap();
    let extra_latencies = vec![Nanos::ZERO, Nanos::from_micros(20), Nanos::from_micros(300)];
    let answer = ask(&cluster, &CollectivesOptions { extra_latencies, ..options(&[32]) }, &[]);
    let [near, far, farthest] = &answer.sweeps[..] else { panic!("three sweeps") };
    let at = |sweep: &foretrain_predict::collectives::Sweep, size: Bytes| {
        let point = sweep.points.iter().find(|point| point.size == size).unwrap();
        (point.predicted.bus_bandwidth.get(), latency_share(&point.predicted.terms))
    };
    let (small, large) = (Bytes::from_mib(4), Bytes::from_gib(8));
    assert!(at(farthest, small).0 < 0.5 * at(near, small).0);
    assert!(at(farthest, small).1 > 0.5, "latency dominates");
    assert!(at(farthest, large).0 > 0.9 * at(near, large).0);
    let from = [near, far, farthest].map(|sweep| sweep.latency_minor_from.unwrap());
    assert!(from.is_sorted() && from[0] < from[2], "{from:?}");
}

#[test]
fn counts_that_do_not_fit_are_left_out_and_named() {
    let cluster = Catalogue::builtin().cluster("dgx-a100-superpod").unwrap();
    let asked = CollectivesOptions {
        kinds: vec![CollectiveKind::AllToAll, CollectiveKind::AllReduce],
        ..options(&[1, 64, 4096])
    };
    let answer = ask(&cluster, &asked, &[]);
    let left_out: Vec<u32> = answer.left_out.iter().map(|left_out| left_out.ranks).collect();
    assert_eq!(left_out, [1, 4096]);
    let kinds: Vec<CollectiveKind> = answer.sweeps.iter().map(|s| s.setting.kind).collect();
    assert_eq!(kinds, asked.kinds, "in the order asked");
    let error = collectives(&cluster, Catalogue::builtin(), &options(&[4096]), &[]).unwrap_err();
    assert!(error.to_string().contains("140 nodes"), "{error}");
}

fn logs() -> Option<PathBuf> {
    let dir = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let dir = dir.join("measured/nccl_logs");
    dir.is_dir().then_some(dir)
}

#[test]
fn real_logs_lose_no_row() {
    let Some(directory) = logs() else {
        println!("skipped: no benchmark logs (set FORETRAIN_DATA)");
        return;
    };
    let paths = collective_log::find(&[directory]).unwrap().expect("logs");
    let logs: Vec<CollectiveLog> = paths
        .iter()
        .map(|path| collective_log::read(path, &LogOptions::default()).unwrap().0)
        .collect();
    let cluster = Catalogue::builtin().cluster("azure-ndv4").unwrap();
    let answer = ask(&cluster, &options(&[16]), &logs);
    let runs: usize = logs.iter().map(|log| log.runs.len()).sum();
    assert_eq!(runs, answer.comparisons.len() + answer.uncompared.len());
    assert!(answer.comparisons.len() > 60, "{} runs", answer.comparisons.len());
    // On the machine of the logs, the model's priors are in the right region.
    let azure = |source: &str| source.contains("echo_azure");
    let ours: Vec<_> = answer.comparisons.iter().filter(|run| azure(&run.source)).collect();
    assert_eq!(ours.len(), 7);
    for run in ours {
        let scores = run.scores.as_ref().expect("rows");
        assert!(scores.median_ape < 40.0, "{}: {scores:?}", run.source);
        assert!(run.notes.iter().all(|note| !note.contains("another machine")), "{:?}", run.notes);
    }
}
