//! User cases end to end: the smallest input that shows a known trouble, and the exact answer.
#![expect(clippy::unwrap_used, reason = "tests")]

use foretrain_core::{Ledger, Nanos};
use foretrain_graph::{CollectiveKind, Job, NodeKind};
use foretrain_ingest::{ReadOptions, read_trace_bytes};
use foretrain_predict::Recording;
use foretrain_predict::inspect::{DeviceActivity, Inspection, RankRelation, inspect};
use foretrain_sim::{SimOptions, simulate};
use foretrain_testkit::events::{Events, operator, own_clocks, rank, repetitions, thousand};
use foretrain_trace::collectives::CollectiveOp;
use foretrain_trace::steps::StepSource;

trait Analyse {
    fn analyse(&self, head: &str) -> (Recording, Ledger);
}

impl Analyse for Events {
    fn analyse(&self, head: &str) -> (Recording, Ledger) {
        analyse(&self.text(head))
    }
}

fn analyse(text: &str) -> (Recording, Ledger) {
    let (trace, ledger) =
        read_trace_bytes(text.as_bytes(), "case.json", &ReadOptions::default()).unwrap();
    (Recording::analyse(trace, None), ledger)
}

fn inspect_one(case: &(Recording, Ledger)) -> Inspection {
    inspect(std::slice::from_ref(&case.0), &case.1)
}

fn micros(us: i64) -> Nanos {
    Nanos::from_micros(us)
}

/// O01: control characters written raw inside a name.
#[test]
fn raw_control_characters_are_mended() {
    let text = |name: &str| thousand(&operator(name, 500)).text("");
    let (damaged, ledger) = analyse(&text("a\nb\u{1}c"));
    let (clean, _) = analyse(&text("abc"));
    assert_eq!((damaged.trace.len(), ledger.count("repaired-event")), (1000, 1));
    assert!(ledger.get("control-character").unwrap().places[0].starts_with("byte "));
    assert_eq!(damaged.step_times(), clean.step_times());
    let strict = ReadOptions { strict: true, ..ReadOptions::default() };
    assert!(read_trace_bytes(text("a\nb\u{1}c").as_bytes(), "case.json", &strict).is_err());
}

/// O04: kernels shorter than a microsecond, and a negative duration.
#[test]
fn short_durations_are_exact_and_negative_ones_are_set_aside() {
    let mut events = Events::default();
    for (ts, dur) in [(100.7, 0.2), (101.0, 0.9), (102.3, 0.4), (103.0, -5.0)] {
        events.kernel("k", ts, dur, 7, 0, "");
    }
    let (found, ledger) = events.analyse("");
    let durations: Vec<i64> = found.trace.duration.iter().map(|d| d.nanos()).collect();
    assert_eq!(durations, [200, 900, 400]);
    assert_eq!(ledger.count("negative-duration"), 1);
}

/// O06: steps are found by repetition where nothing marks them.
#[test]
fn repeated_kernels_make_steps() {
    let (found, _) = repetitions(3).analyse("");
    assert_eq!(found.steps.source, StepSource::Pattern);
    assert!(found.steps.source.describe().contains("inferred boundaries"));
    assert_eq!(found.steps.steps.len(), 3);
    for time in found.step_times() {
        assert!((time.millis_f64() - 10.0).abs() < 0.2, "{time}");
    }
}

/// O06, second variant.
#[test]
fn one_repetition_is_one_step_without_spread() {
    let (found, _) = repetitions(1).analyse("");
    assert_eq!(found.steps.source, StepSource::WholeWindow);
    assert_eq!(found.steps.steps.len(), 1);
    assert_eq!(found.ledger.count("one-step"), 1);
}

/// O07: kernels of every generation of names.
#[test]
fn communication_is_recognised_by_name() {
    let names = [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
        "ncclDevKernel_SendRecv(ncclDevComm*)",
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
        "fooComm_AllReduce",
    ];
    let mut events = Events::default();
    for (i, name) in names.iter().enumerate() {
        events.kernel(name, i as f64 * 10_000.0, 10_000.0, 7, 0, "");
    }
    let (found, _) = events.analyse(&rank(0, 2));
    let kinds: Vec<CollectiveKind> = found.collectives.ops.iter().map(|op| op.kind).collect();
    use CollectiveKind::{AllGather, AllReduce, SendRecv};
    assert_eq!(kinds, [AllReduce, AllReduce, SendRecv, AllGather]);
    let time: Nanos = found.collectives.ops.iter().map(CollectiveOp::duration).sum();
    assert_eq!(time, Nanos::from_millis(40));
    assert_eq!(found.collectives.unclassified.len(), 1);
}

/// O08: an operation without size is kept, and totals say so.
#[test]
fn unknown_sizes_stay_unknown() {
    let mut events = Events::default();
    let known = r#","Collective name":"allgather","In msg nelems":1024,"Out msg nelems":4096,"dtype":"Float","Group size":4,"Process Group Name":"0""#;
    events.kernel("ncclDevKernel_AllGather_RING_LL(x)", 0.0, 100.0, 20, 0, known);
    events.kernel("ncclDevKernel_AllGather_RING_LL(x)", 200.0, 100.0, 20, 0, "");
    let case = events.analyse(&rank(0, 4));
    let found = &inspect_one(&case).ranks[0].communication;
    assert_eq!(
        found.coverage_text(),
        "bytes known for 1 of 2 operations (50.0 % of communication time)"
    );
    assert!(found.rows.iter().any(|row| row.bytes.is_none() && row.bus_bandwidth.is_none()));
}

/// O10: epoch times as text or as numbers.
#[test]
fn epoch_times_keep_their_fractions() {
    for quote in ["\"", ""] {
        let mut events = Events::default();
        for at in ["1778640000000000.125", "1778640000000000.625"] {
            let at = format!("{quote}{at}{quote}");
            events.add("kernel", "k", &at, "0.5", 7, r#""stream":7,"device":0"#);
        }
        let (found, _) = events.analyse("");
        assert_eq!(found.trace.start[1] - found.trace.end(0), Nanos::ZERO);
        assert_eq!(found.trace.duration[0].nanos(), 500);
        assert_eq!(found.trace.meta.base_nanos, 1_778_640_000_000_000_125);
    }
}

/// O11: stamps of another clock, and launches without kernels.
#[test]
fn kernels_before_their_launch_are_rejected() {
    let mut events = Events::default();
    events.step(1, 0.0, 6000.0);
    for i in 1..=50_u32 {
        let at = f64::from(i) * 100.0;
        events.launch("cudaLaunchKernel", at, 5.0, u64::from(i));
        if i <= 47 {
            let shift = if i <= 3 { -1e11 } else { 0.0 };
            events.kernel("k", at + 10.0 + shift, 50.0, 7, u64::from(i), "");
        }
    }
    let case = events.analyse("");
    let found = &case.0;
    assert_eq!(found.ledger.count("kernel-before-launch"), 3);
    assert_eq!(found.ledger.count("launch-without-kernel"), 3);
    let coverage = found.ledger.coverage("launch pairs").unwrap();
    assert_eq!((coverage.used, coverage.total), (44, 50));
    assert!((coverage.share() - 0.88).abs() < 1e-12);
    assert!(found.steps.steps[0].incomplete);
    assert_eq!(inspect_one(&case).ranks[0].span, micros(6000));
}

fn one_graph_launch() -> (Recording, Ledger) {
    let mut events = Events::default();
    events.launch("cudaGraphLaunch", 0.0, 1.0, 7);
    for i in 0..100 {
        events.kernel("k", f64::from(i) * 99.0, 98.0, 7, 7, r#","graph id":1"#);
    }
    events.analyse("")
}

/// O12: one graph launch and its kernels. 9800 of 9899 us are 98.999 %.
#[test]
fn kernels_of_a_graph_hang_on_its_launch() {
    let case = one_graph_launch();
    let report = inspect_one(&case);
    let DeviceActivity::Measured(device) = report.ranks[0].device_activity else { panic!() };
    assert_eq!((device.busy, device.window), (micros(9800), micros(9899)));
    assert!((device.busy_share() - 9800.0 / 9899.0).abs() < 1e-12);
    let rows: Vec<u32> = case.0.index.device_rows().collect();
    assert_eq!(rows.len(), 100);
    assert!(rows.iter().all(|&row| case.0.index.launch[row as usize] == 0));
}

/// O12: the same kernels decide the step time of the replay.
#[test]
fn kernels_of_a_graph_are_on_the_critical_path() {
    let job = Job::uniform(one_graph_launch().0.graphs[0].clone(), 1);
    let timeline = simulate(&job, &SimOptions::iterations(1)).unwrap();
    let path = timeline.critical_path(&job, 0, 0).unwrap();
    let graph = &job.classes[0].graph;
    let kernels = path.iter().filter(|task| graph.kind(task.node) == NodeKind::Kernel).count();
    assert_eq!(kernels, 100);
}

/// O12, second variant.
#[test]
fn a_graph_launch_without_kernels_tells_no_idle_time() {
    let mut events = Events::default();
    events.launch("cudaGraphLaunch", 0.0, 1.0, 7);
    events.launch("cudaDeviceSynchronize", 1.0, 9000.0, 8);
    let report = inspect_one(&events.analyse(""));
    assert_eq!(report.ranks[0].device_activity, DeviceActivity::NotMeasurable);
    assert!(report.warnings.iter().any(|w| w.contains("idle not measurable")));
}

/// O37: two streams that overlap.
#[test]
fn busy_time_is_a_union() {
    let mut events = Events::default();
    events.step(1, 0.0, 2_008_600.0);
    events.kernel("gemm", 0.0, 1_626_100.0, 7, 0, "");
    events.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 1_350_800.0, 627_500.0, 20, 0, "");
    let report = inspect_one(&events.analyse(&rank(0, 2)));
    let DeviceActivity::Measured(device) = report.ranks[0].device_activity else { panic!() };
    assert_eq!(device.busy, micros(1_978_300));
    assert_eq!(device.overlap, micros(275_300));
    assert_eq!(device.exposed_communication, micros(352_200));
    assert_eq!(format!("{:.1}", device.busy_share() * 100.0), "98.5");
}

/// O40: strays far away in time.
#[test]
fn strays_do_not_stretch_the_span() {
    let mut events = Events::default();
    let base = 1_669_329_643_000_000_i64;
    for i in 0..100 {
        let at = (base + i * 10_000).to_string();
        events.add("kernel", "k", &at, "10000", 7, r#""stream":7,"device":0"#);
    }
    events.add("cpu_op", "stray", "0", "1", 1, "");
    events.add("cpu_op", "stray", &(base + 315_360_000_000_000).to_string(), "1", 1, "");
    let report = inspect_one(&events.analyse(""));
    assert_eq!(report.ranks[0].span, Nanos::from_millis(1000));
    assert_eq!(report.ranks[0].span_text(), "1.000 s (2 outliers ignored)");
}

/// O16: four ranks with clocks of their own.
#[test]
fn clocks_are_aligned_on_collective_ends() {
    let recordings: Vec<Recording> = (0..4).map(|r| own_clocks(r).analyse(&rank(r, 4)).0).collect();
    let report = inspect(&recordings, &Ledger::new());
    let Some(RankRelation::Together(found)) = report.relation else { panic!("not aligned") };
    assert_eq!(found.matched, 20);
    let of = |rank: u32| found.ranks.iter().find(|r| r.rank == rank).unwrap();
    assert!((of(2).clock_offset.millis_f64() - 11_560.0).abs() < 0.1, "{found:?}");
    assert!((of(3).clock_drift_ppm - 20.0).abs() < 2.0, "{found:?}");
    assert!(found.ranks.iter().all(|r| r.rank == r.straggler.rank), "{found:?}");
    let late = found.ranks[0].straggler;
    assert_eq!((late.rank, late.times_last, late.is_claimed), (1, 20, true));
    assert!((late.lateness.millis_f64() - 1.6).abs() < 0.1);
    let alone =
        inspect(&[recordings[0].clone(), repetitions(3).analyse(&rank(1, 4)).0], &Ledger::new());
    assert!(matches!(alone.relation, Some(RankRelation::CannotMerge(_))));
}
