//! Coordinator and ranks together, the ranks as processes of a small program.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use foretrain_core::{Bytes, Result};

use super::*;
use crate::link::PeerProgram;

/// This test program itself, run so that it does nothing but `be_a_rank`.
fn program() -> PeerProgram {
    PeerProgram {
        program: "/bin/sh".into(),
        arguments: vec![
            "-c".into(),
            "FORETRAIN_RANK=\"$1 $2 $3\" exec \"$0\" --exact ring::tests::be_a_rank".into(),
            std::env::current_exe().unwrap().display().to_string(),
        ],
    }
}

/// No test, but what the processes of the tests run.
#[test]
fn be_a_rank() {
    let Ok(asked) = std::env::var("FORETRAIN_RANK") else { return };
    let words: Vec<&str> = asked.split(' ').collect();
    let token = words[1].parse().unwrap();
    assert!(std::env::var_os("FORETRAIN_DOOMED").is_none(), "as was asked for");
    join_ring(words[0].parse().unwrap(), token, words[2].parse().unwrap()).unwrap();
}

fn options(ranks: &[u32], sizes: &[u64]) -> RingOptions {
    RingOptions {
        ranks: ranks.to_vec(),
        sizes: sizes.iter().copied().map(Bytes::new).collect(),
        operations: RingOperation::ALL.to_vec(),
        budget: Duration::from_millis(600),
        machines: None,
    }
}

fn measured(options: &RingOptions) -> Result<Vec<RingPoint>> {
    let mut points = Vec::new();
    let mut keep = |point: &RingPoint| {
        points.push(*point);
        Ok(())
    };
    measure_ring(options, &program(), &mut keep, &mut |_| {})?;
    Ok(points)
}

#[test]
fn every_operation_is_measured_at_every_number_of_ranks() {
    let points = measured(&options(&[2, 3], &[12_288, 49_152])).unwrap();
    for ranks in [2, 3] {
        let of = |point: &&RingPoint| point.ranks == ranks;
        let operations = if ranks == 2 { 5 } else { 4 };
        let sizes: Vec<u64> = points.iter().filter(of).map(|point| point.bytes.get()).collect();
        assert!(sizes.len() >= operations && sizes.len() <= 2 * operations, "{points:?}");
    }
    for point in &points {
        let [usual, low, high] = point.back_to_back;
        assert!(Nanos::ZERO < low && low <= usual && usual <= high, "{point:?}");
        assert!(point.calls >= 3 && point.nodes == 1 && point.bytes.get() >= 12_288, "{point:?}");
    }
}

#[test]
fn another_machine_takes_part() {
    // A port that is free now will be in a moment, too.
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = free.local_addr().unwrap();
    drop(free);
    let helper = thread::spawn(move || help_ring(address, &program()));
    let asked = RingOptions {
        operations: vec![RingOperation::AllReduce],
        machines: Some((address, 2)),
        ..options(&[2, 4], &[4_096])
    };
    let points = measured(&asked).unwrap();
    // Four ranks are two on each machine, and the first two are on one.
    let nodes: Vec<(u32, u32)> = points.iter().map(|point| (point.ranks, point.nodes)).collect();
    assert_eq!(nodes, [(4, 2), (2, 1)]);
    helper.join().unwrap().unwrap();
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    for (asked, word) in [
        (options(&[1], &[4_096]), "2 to 1,024 ranks"),
        (options(&[], &[4_096]), "2 to 1,024 ranks"),
        (options(&[2], &[]), "nothing to measure"),
        (options(&[2], &[1 << 40]), "more than is measured"),
        (
            RingOptions {
                machines: Some((SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 2)),
                ..options(&[3], &[4_096])
            },
            "evenly",
        ),
    ] {
        let error = measured(&asked).unwrap_err();
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn ranks_that_end_early_are_an_error_and_no_hang() {
    let mut doomed = program();
    doomed.arguments[1] = format!("FORETRAIN_DOOMED=1 {}", doomed.arguments[1]);
    let error = measure_ring(&options(&[2], &[4_096]), &doomed, &mut |_| Ok(()), &mut |_| {});
    let error = error.unwrap_err();
    assert!(error.message().contains("ended before it connected"), "{error}");
}
