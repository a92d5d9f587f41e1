//! O11 and O12: launches and their kernels.

use foretrain_testkit::events::Events;

use crate::support::{finding, inspected, run, text, write};

#[test]
fn o11_kernels_of_another_clock_are_rejected() {
    let home = tempfile::tempdir().unwrap();
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
    let path = write(home.path(), "clock.json", events.text(""));
    let (code, answer) = inspected(&path);
    assert_eq!(code, 0);
    assert_eq!(finding(&answer, "kernel-before-launch").0, 3);
    assert_eq!(finding(&answer, "launch-without-kernel").0, 3);
    let coverage = answer["ledger"]["coverage"].as_array().unwrap();
    let pairs = coverage.iter().find(|line| line["what"] == "launch pairs").unwrap();
    assert_eq!((&pairs["used"], &pairs["total"]), (&44.into(), &50.into()));
    let found = &answer["ranks"][0];
    assert_eq!(
        (&found["span_ns"], &found["steps"][0]["incomplete"]),
        (&6_000_000.into(), &true.into())
    );
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("88.0 %") && page.contains("(incomplete)"), "{page}");
}

#[test]
fn o12_kernels_of_a_graph_launch_are_busy_time() {
    let home = tempfile::tempdir().unwrap();
    let mut events = Events::default();
    events.launch("cudaGraphLaunch", 0.0, 1.0, 7);
    for i in 0..100 {
        events.kernel("k", f64::from(i) * 99.0, 98.0, 7, 7, r#","graph id":1"#);
    }
    let path = write(home.path(), "graph.json", events.text(""));
    let (code, answer) = inspected(&path);
    let activity = &answer["ranks"][0]["activity"];
    assert_eq!((code, &activity["busy_ns"]), (0, &9_800_000.into()));
    assert_eq!(activity["window_ns"], 9_899_000);
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("99.0 %"), "{page}");
}

#[test]
fn o12_a_graph_launch_without_kernels_tells_no_idle_time() {
    let home = tempfile::tempdir().unwrap();
    let mut events = Events::default();
    events.launch("cudaGraphLaunch", 0.0, 1.0, 7);
    events.launch("cudaDeviceSynchronize", 1.0, 9000.0, 8);
    let path = write(home.path(), "missing.json", events.text(""));
    let (_, answer) = inspected(&path);
    assert_eq!(answer["ranks"][0]["device_activity"], "not-measurable");
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("graph launch without kernel records, idle not measurable"), "{page}");
}
