//! No bytes make the reader of captures panic, and figures of what it accepts are numbers.
#![no_main]

use foretrain_ingest::capture::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(capture) = parse(bytes) else { return };
    for steps in [&capture.unprofiled, &capture.hooked, &capture.profiled] {
        assert!(steps.spread().is_none_or(|spread| spread.is_finite() && spread >= 0.0));
        assert!(steps.recorder_share().is_none_or(f64::is_finite));
        assert!(steps.median().is_none_or(|step| step.nanos() >= 0));
    }
    assert!(capture.profiler_factor().is_none_or(f64::is_finite));
    assert!(capture.gradient_bytes() <= capture.parameter_bytes());
    assert!(capture.gradients_ready().is_none_or(|(first, last)| first <= last));
});
