//! What a calibration keeps, and what it says is odd.

use foretrain_core::{Bandwidth, Bytes};
use foretrain_hardware::{Catalogue, Cluster};

use super::*;
use crate::collective::{GroupPlacement, collective_time, host_time};

const KIND: CollectiveKind = CollectiveKind::AllGather;

fn cluster() -> Cluster {
    Catalogue::builtin().cluster("dgx-a100").unwrap()
}

fn fabric(ranks: u32) -> Fabric {
    Fabric::for_group(&cluster(), &GroupPlacement::contiguous(ranks)).unwrap()
}

fn sizes() -> impl Iterator<Item = u64> {
    (12..31).map(|log| 1 << log)
}

/// Rows of the model itself, each time multiplied.
fn modelled(ranks: u32, factor: impl Fn(u64) -> f64) -> Vec<Observation> {
    let fabric = fabric(ranks);
    let row = |size: u64| {
        let call = CollectiveCall::new(KIND, Bytes::new(size));
        let time = collective_time(&call, &fabric).time.value.scale(factor(size));
        Observation::new(call, fabric.clone(), time).unwrap()
    };
    sizes().map(row).collect()
}

fn found(observations: &[Observation]) -> (Calibration, Report) {
    calibrate(observations, vec!["a.log".into()]).unwrap()
}

#[test]
fn the_model_fits_itself() {
    let (calibration, report) = found(&modelled(16, |_| 1.0));
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.typical_residual < 0.01, "{}", report.typical_residual);
    assert_eq!(report.residuals.len(), sizes().count());
    assert_eq!(report.constants.len(), calibration.constants.len());
    for fitted in &report.constants {
        let off = (fitted.value / fitted.prior).ln().abs();
        assert!(off < 0.1, "{fitted:?}");
        assert!(fitted.spread <= fitted.prior_spread, "{fitted:?}");
    }
}

#[test]
fn one_size_off_is_kept_out() {
    let (calibration, report) =
        found(&modelled(16, |size| if size == 1 << 22 { 3.0 } else { 1.0 }));
    let out: Vec<u64> =
        report.residuals.iter().filter(|row| !row.kept).map(|row| row.bytes.get()).collect();
    assert_eq!(out, [1 << 22]);
    assert!(
        matches!(report.findings[..], [Finding::Outlier { ranks: 16, .. }]),
        "{:?}",
        report.findings
    );
    assert!(!calibration.measured[0].sizes.contains(&Bytes::new(1 << 22)));
}

/// A step that stays is a switch of algorithms, not a slip of the benchmark.
#[test]
fn a_step_is_no_outlier() {
    let (_, report) = found(&modelled(16, |size| if size >= 1 << 22 { 1.3 } else { 1.0 }));
    assert!(report.residuals.iter().all(|row| row.kept), "{:?}", report.findings);
}

#[test]
fn an_odd_number_of_nodes_is_kept_for_itself() {
    let rows: Vec<Observation> = [(16, 1.0), (24, 2.0), (32, 1.0)]
        .into_iter()
        .flat_map(|(ranks, factor)| modelled(ranks, move |_| factor))
        .collect();
    let (calibration, report) = found(&rows);
    let odd: Vec<(u32, bool)> =
        calibration.measured.iter().map(|sweep| (sweep.ranks, sweep.odd)).collect();
    assert_eq!(odd, [(16, false), (24, true), (32, false)]);
    assert_eq!(calibration.measured[1].sizes.len(), sizes().count());
    assert!(report.residuals.iter().all(|row| row.kept == (row.ranks != 24)));
    // A fall to an odd number of nodes is said once.
    assert!(
        matches!(report.findings[..], [Finding::OddCount { nodes: 3, .. }]),
        "{:?}",
        report.findings
    );
    let own = Cluster { collectives: Some(calibration.into()), ..cluster() };
    let ratio = |ranks| {
        let call = CollectiveCall::new(KIND, Bytes::from_mib(256));
        let fabric = |cluster| Fabric::for_group(cluster, &GroupPlacement::contiguous(ranks));
        let time =
            |cluster| collective_time(&call, &fabric(cluster).unwrap()).time.value.secs_f64();
        time(&own) / time(&cluster())
    };
    for (ranks, right) in [(16, 1.0), (24, 2.0), (32, 1.0), (48, 1.0)] {
        assert!((ratio(ranks) / right - 1.0).abs() < 0.05, "{ranks}: {}", ratio(ranks));
    }
}

#[test]
fn a_fall_from_some_nodes_to_more_is_said() {
    let rows: Vec<Observation> = [(24, 1.0), (32, 1.6)]
        .into_iter()
        .flat_map(|(ranks, factor)| modelled(ranks, move |_| factor))
        .collect();
    let (_, report) = found(&rows);
    let falls: Vec<&Finding> =
        report.findings.iter().filter(|f| matches!(f, Finding::Drop { .. })).collect();
    let [Finding::Drop { nodes, bytes, before, after, .. }] = falls[..] else {
        panic!("{:?}", report.findings)
    };
    assert_eq!((*nodes, bytes.get()), ((3, 4), 1 << 30));
    let lost = after.get() / before.get();
    assert!((lost * 1.6 - 1.0).abs() < 0.05 && *before > Bandwidth::ZERO, "{lost}");
}

#[test]
fn constants_without_rows_are_not_told() {
    let (_, report) = found(&modelled(16, |_| 1.1));
    let told = |name: &str| {
        let fitted = report.constants.iter().find(|f| f.constant.name() == name);
        fitted.is_some_and(Fitted::is_told)
    };
    assert!(told("simple_net_share"));
    // An all-gather tells nothing of trees.
    assert!(!told("tree_net_ratio"));
}

/// The median of each size's rows that tell it, and on processors alone.
#[test]
fn processor_times_are_kept_by_size() {
    let call = |size| CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_kib(size));
    let row = |fabric: &Fabric, size, us: Option<i64>| {
        let seen = Observation::new(call(size), fabric.clone(), Nanos::from_micros(500)).unwrap();
        seen.with_processor(us.map(Nanos::from_micros))
    };
    let host = Fabric {
        ranks: 2,
        nodes: 2,
        library: Library::Gloo,
        ..Fabric::for_group(&cluster(), &GroupPlacement::contiguous(16)).unwrap()
    };
    let times = [(4, Some(90)), (4, Some(110)), (4, None), (64, None), (256, Some(400))];
    let rows = |fabric: &Fabric| times.map(|(size, us)| row(fabric, size, us));
    let (calibration, _) = found(&rows(&host));
    let [kept] = &calibration.processors[..] else { panic!("{:?}", calibration.processors) };
    assert_eq!((kept.ranks, kept.nodes), (2, 2));
    assert_eq!(kept.sizes, [Bytes::from_kib(4), Bytes::from_kib(256)]);
    assert_eq!(kept.times_us, [100.0, 400.0]);
    let there = host.clone().calibrated_by(&calibration).unwrap();
    assert_eq!(host_time(&call(256), &there), Nanos::from_micros(400));
    assert!(host_time(&call(256), &host) < Nanos::from_micros(300));
    let (calibration, _) = found(&rows(&fabric(16)));
    assert!(calibration.processors.is_empty(), "devices move and sum");
}
