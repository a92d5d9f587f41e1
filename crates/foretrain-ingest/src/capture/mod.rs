//! Reading the capture files that `foretrain.capture` writes beside traces (see `docs/capture.md`).
//!
//! Keys that are not known are passed over, as later versions may add some; what is known must be
//! of the right type and a figure that can be, as a slip would otherwise become a forecast.

mod file;
mod numbers;

use std::path::Path;
use std::sync::Arc;

use foretrain_core::{Bytes, InputError, Result};
use foretrain_trace::Capture;

use crate::source::{open, read_up_to};
use file::File;

/// The newest version that is read.
const VERSION: u64 = 1;
/// Text beyond this is no capture: one of a model with 100,000 parameters takes a fifth of it.
const MOST_BYTES: usize = 64 << 20;

/// Reads a capture file, plain or packed.
///
/// # Errors
/// If it cannot be read, is too large or of another version, or a value is missing, of the wrong
/// type or no plausible figure; with the file and the key.
pub fn read(path: &Path) -> Result<Capture> {
    let mut text = open(path, false, &Arc::default())?;
    let text = read_up_to(&mut text, MOST_BYTES + 1);
    let mut capture = parse(&text).map_err(|error| error.in_file(path))?;
    capture.path = path.display().to_string();
    Ok(capture)
}

/// As [`read`], of text at hand.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &[u8]) -> Result<Capture> {
    if text.len() > MOST_BYTES {
        let most = Bytes::new(MOST_BYTES as u64);
        return Err(InputError::new(format!("more than {most}: no capture is as large"))
            .hint("captures are written by foretrain.capture"));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let file: File = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let refusal = InputError::new(format!("no usable capture: {}", error.inner()));
        let refusal = refusal.hint(
            "the recorder writes whole files: was this one edited, or broken off while copied?",
        );
        // The whole document is no place.
        match error.path().iter().next() {
            Some(_) => refusal.at(error.path().to_string()),
            None => refusal,
        }
    })?;
    reader.end().map_err(|error| {
        InputError::new(format!("something follows the capture: {error}"))
            .hint("keep one capture per file")
    })?;
    if file.version() != VERSION {
        let message =
            format!("version {} of the format is not known, only {VERSION}", file.version());
        return Err(InputError::new(message)
            .at("foretrain_capture")
            .hint("read it with the Foretrain that recorded it, or a later one"));
    }
    file.capture()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: &str = r#"{
        "foretrain_capture": 1, "rank": 1, "world_size": 2, "later": {"a": [1, null]},
        "missing": ["profile: 0 of 3 steps"],
        "steps": {"unprofiled": {"wall_ns": [30, 10, 20], "input_wait_ns": [1, 1, 1]}},
        "replica_batch": {"samples": 32.0, "source": "batches"},
        "gradients": {"clock": "host", "ready_ns": [9, null], "forward_end_ns": 5},
        "model": {"class": "Net", "parameters": [
            {"name": "w", "shape": [2], "dtype": "float32", "bytes": 8, "requires_grad": true},
            {"name": "b", "shape": [1], "dtype": "float32", "bytes": 4, "requires_grad": false}],
            "buffers": {"count": 1, "bytes": 8}},
        "optimizers": [{"class": "Adam", "state_bytes": {"exp_avg": 8, "step": 4}}],
        "parallel": {"kind": "ddp", "ddp": {"bucket_cap_bytes": 26214400,
            "bucket_cap_is_default": true, "buckets": [{"bytes": 8, "parameters": [0]}],
            "gradient_as_bucket_view": false, "broadcast_buffers": true,
            "communication_hooks": []}},
        "environment": {"machine": {"cpu": "c", "usable_cores": 2, "quota_cores": 0.5},
            "versions": {"torch": "2.9"}, "devices": {"type": "cpu", "count": 0, "names": []},
            "threads": {"intra_op": 1}},
        "notes": [{"about": "topology", "message": "no tool"}]}"#;

    #[test]
    fn a_capture_is_read() {
        let capture = parse(SMALL.as_bytes()).unwrap();
        assert_eq!((capture.rank, capture.world_size), (1, 2));
        assert_eq!(capture.unprofiled.median().unwrap().nanos(), 20);
        assert_eq!(capture.gradient_bytes().get(), 8);
        assert_eq!(capture.parameters[0].ready.unwrap().nanos(), 9);
        assert_eq!(capture.parameters[1].ready, None);
        assert_eq!(capture.optimizer_state.get(), 12);
        assert_eq!(capture.environment.quota_cores, Some(0.5));
        assert_eq!(capture.notes, ["topology: no tool"]);
        let foretrain_trace::capture::CapturedLayout::Ddp(ddp) = &capture.layout else { panic!() };
        assert!(ddp.cap_is_default && ddp.broadcast_buffers);
        assert_eq!(ddp.buckets, [Bytes::new(8)]);
    }

    #[test]
    fn little_is_needed() {
        let capture = parse(br#"{"foretrain_capture": 1, "rank": 0, "world_size": 1}"#).unwrap();
        assert_eq!(capture, Capture { world_size: 1, ..Capture::default() });
    }

    #[test]
    fn slips_are_named_by_their_key() {
        for (from, to, says) in [
            ("\"foretrain_capture\": 1", "\"foretrain_capture\": 2", "version 2"),
            ("\"foretrain_capture\": 1,", "", "missing field `foretrain_capture`"),
            ("\"rank\": 1", "\"rank\": -1", "(at rank)"),
            ("\"rank\": 1", "\"rank\": 2", "rank 2 of 2 (at rank)"),
            ("[30, 10, 20]", "[30, \"10\", 20]", "(at steps.unprofiled.wall_ns[1])"),
            ("[30, 10, 20]", "[30, -10, 20]", "(at steps.unprofiled.wall_ns[1])"),
            ("[30, 10, 20]", "[30, 1e30, 20]", "(at steps.unprofiled.wall_ns[1])"),
            ("[30, 10, 20]", "[30, 999999999999999999, 20]", "at most"),
            ("\"samples\": 32.0", "\"samples\": 0", "(at replica_batch.samples)"),
            ("\"samples\": 32.0", "\"samples\": null", "(at replica_batch.samples)"),
            ("\"quota_cores\": 0.5", "\"quota_cores\": -1", "(at environment.machine.quota_cores)"),
            ("\"bytes\": 8, \"req", "\"bytes\": true, \"req", "(at model.parameters[0].bytes)"),
            ("[9, null]", "[9]", "1 times for 2 parameters (at gradients.ready_ns)"),
            ("\"notes\": [", "\"notes\": [3, ", "(at notes[0])"),
        ] {
            assert!(SMALL.contains(from), "{from}");
            let error = parse(SMALL.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{to}: {error}");
        }
        let twice = format!("{SMALL} {SMALL}");
        assert!(parse(twice.as_bytes()).unwrap_err().to_string().contains("follows"));
    }

    #[test]
    fn files_that_are_too_large_are_refused() {
        let mut text = SMALL.as_bytes().to_vec();
        text.resize(MOST_BYTES + 1, b' ');
        assert!(parse(&text).unwrap_err().to_string().contains("no capture is as large"));
        text.truncate(MOST_BYTES);
        parse(&text).unwrap();
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0..SMALL.len(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut text = SMALL.as_bytes().to_vec();
            text[at] = byte;
            if cut { text.truncate(at); }
            if let Ok(capture) = parse(&text) {
                let _ = (capture.unprofiled.spread(), capture.profiler_factor());
                prop_assert!(capture.gradient_bytes() <= capture.parameter_bytes());
            }
        }

        #[test]
        fn figures_are_kept(times in prop::collection::vec(0_u64..1 << 50, 0..40)) {
            let text = SMALL.replacen("[30, 10, 20]", &format!("{times:?}"), 1);
            let capture = parse(text.as_bytes()).unwrap();
            let read: Vec<u64> =
                capture.unprofiled.wall.iter().map(|time| time.nanos() as u64).collect();
            prop_assert_eq!(read, times);
        }
    }
}
