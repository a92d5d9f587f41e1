//! Traces that are not quite JSON: what is mended, what is skipped, what is said about it.

mod common;

use common::{document, gzip, kernel, op, read};
use foretrain_ingest::{ReadOptions, read_trace_bytes};
use foretrain_trace::Category;

fn thousand() -> Vec<String> {
    (0..1000).map(|i| op(&format!("op{i}"), i * 10, 5)).collect()
}

fn strict() -> ReadOptions {
    ReadOptions { strict: true, ..ReadOptions::default() }
}

/// Reads a thousand events of which number 500 is replaced, plain and packed.
fn with_event_500(event: &[u8]) -> (foretrain_trace::Trace, foretrain_core::Ledger, Vec<u8>) {
    let mut events = thousand();
    events[500] = "@@".into();
    let text = document(&events);
    let at = text.windows(2).position(|w| w == b"@@").expect("stands there");
    let bytes = [&text[..at], event, &text[at + 2..]].concat();
    let (trace, ledger) = read(&bytes);
    let (packed, packed_ledger) = read(&gzip(&bytes));
    assert_eq!((packed.len(), &packed_ledger), (trace.len(), &ledger));
    (trace, ledger, bytes)
}

#[test]
fn raw_control_characters_are_kept_and_reported_with_their_place() {
    let bad = op("a\nb\u{1}c", 5000, 5);
    let (trace, ledger, bytes) = with_event_500(bad.as_bytes());
    assert_eq!(trace.len(), 1000);
    assert_eq!(trace.name_of(500), "a\nb\u{1}c");
    assert_eq!(ledger.count("repaired-event"), 1);
    let at = bytes.windows(3).position(|w| w == b"a\nb").unwrap() + 1;
    let finding = ledger.get("control-character").unwrap();
    assert!(finding.places[0].starts_with(&format!("byte {at} (line 502): ")), "{finding}");

    let error = read_trace_bytes(&bytes, "trace.json", &strict()).unwrap_err();
    assert_eq!(error.place(), Some(format!("byte {at} (line 502)").as_str()));

    let clean = read(&document(&thousand())).0;
    assert_eq!((clean.start, clean.duration), (trace.start, trace.duration));
}

#[test]
fn every_control_character_is_survived() {
    for byte in 0..0x20_u8 {
        let (trace, ledger, _) =
            with_event_500(op(&format!("x{}y", byte as char), 5000, 5).as_bytes());
        assert_eq!((trace.len(), ledger.count("repaired-event")), (1000, 1), "{byte:#x}");
    }
}

#[test]
fn source_text_in_a_name_costs_at_most_its_event() {
    for name in [
        "_x = Lib(\"t\", \"I\")\n(1): <module>",
        "one \" quote",
        "ends in a quote\"",
        "\"starts with one",
        "a \"key\": \"value\" in it",
        "braces }, { and \"quotes\"",
        "back\\slash \\x and \"",
    ] {
        let (trace, ledger, bytes) = with_event_500(op(name, 5000, 5).as_bytes());
        assert!(trace.len() >= 999, "{name}: {}", trace.len());
        assert_eq!(ledger.count("repaired-event") + ledger.count("skipped-event"), 1, "{name}");
        assert_eq!(trace.len() as u64, 1000 - ledger.count("skipped-event"), "{name}");
        assert_eq!(trace.name_of(trace.len() - 1), "op999", "{name}");
        assert!(ledger.get("incomplete").is_none());
        let error = read_trace_bytes(&bytes, "trace.json", &strict()).unwrap_err();
        assert!(error.place().is_some_and(|place| place.contains("(line 50")), "{error}");
    }
}

#[test]
fn quotes_missing_from_keys_are_put_back() {
    let bad = r#"{"ph":"X","cat":"cpu_op","name":"op500","pid":9, tid": 9 ,"ts":5000,"dur":5}"#;
    let (trace, ledger, _) = with_event_500(bad.as_bytes());
    assert_eq!((trace.len(), ledger.count("missing-key-quote")), (1000, 1));
    assert_eq!(trace.track[500], trace.track[499]);
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    let bad = [op("a<>b", 5000, 5).replace("<>b", "").as_bytes(), b""].concat();
    let at = bad.windows(8).position(|w| w == b"\"name\":\"").unwrap() + 9;
    let bad = [&bad[..at], b"\xff\xfe", &bad[at..]].concat();
    let (trace, ledger, _) = with_event_500(&bad);
    assert_eq!((trace.len(), ledger.count("bad-utf8")), (1000, 1));
    assert_eq!(trace.name_of(500), "a\u{fffd}\u{fffd}");
}

#[test]
fn an_event_beyond_repair_is_skipped_with_a_preview() {
    let long = format!("{{\"ph\":\"X\",\"name\" \"{}\",]", "n".repeat(300));
    let (trace, ledger, bytes) = with_event_500(long.as_bytes());
    assert_eq!((trace.len(), ledger.count("skipped-event")), (999, 1));
    let place = &ledger.get("skipped-event").unwrap().places[0];
    let at = bytes.windows(8).position(|w| w == b"\"name\" \"").unwrap() + 7;
    assert!(place.starts_with(&format!("byte {at} (line 502): {{\"ph\":\"X\",")), "{place}");
    assert!(place.split_once(": ").unwrap().1.len() <= 160, "{place}");
    let coverage = ledger.coverage("events").unwrap();
    assert_eq!((coverage.used, coverage.total), (999, 1000));
}

#[test]
fn more_than_a_hundredth_lost_is_called_incomplete() {
    let mut events = thousand();
    for i in 0..11 {
        events[i * 90] = "{\"ph\" oops}".into();
    }
    let (trace, ledger) = read(&document(&events));
    assert_eq!((trace.len(), ledger.count("skipped-event")), (989, 11));
    assert_eq!(ledger.count("incomplete"), 1);
}

#[test]
fn truncated_files_give_what_they_hold() {
    let whole = document(&thousand());
    for end in [whole.len() - 3, whole.len() - 20, whole.len() / 2] {
        let (trace, ledger) = read(&whole[..end]);
        assert!(trace.meta.truncated && ledger.count("truncated") == 1);
        assert!(trace.len() >= end * 1000 / whole.len() - 2, "{} of {end}", trace.len());
        let packed = gzip(&whole);
        let (broken, ledger) = read(&packed[..packed.len() * 3 / 4]);
        assert!(broken.meta.truncated && !broken.is_empty() && ledger.count("truncated") == 1);
    }
    let array = format!("[{}, ", thousand().join(", "));
    let (trace, ledger) = read(array.as_bytes());
    assert_eq!((trace.len(), ledger.count("truncated")), (1000, 1));
    assert!(read_trace_bytes(array.as_bytes(), "t.json", &strict()).is_err());
}

#[test]
fn a_stream_that_breaks_at_its_very_end_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rank0.json.gz");
    let mut packed = gzip(&document(&thousand()));
    let checksum = packed.len() - 8;
    packed[checksum] ^= 0xff;
    std::fs::write(&path, &packed).unwrap();
    for threads in [1, 2] {
        let options = ReadOptions { threads, ..ReadOptions::default() };
        let (trace, ledger) = foretrain_ingest::read_trace(&path, &options).unwrap();
        assert_eq!((trace.len(), ledger.count("truncated")), (1000, 1), "{threads} threads");
    }
}

#[test]
fn bare_infinities_are_not_available() {
    for word in ["inf", "-inf", "nan", "NaN", "Infinity", "-Infinity"] {
        let copy = |rate: &str| {
            format!(
                r#"{{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":1,"dur":0,"args":{{"bytes":200,"memory bandwidth (GB/s)":{rate},"stream":7}}}}"#
            )
        };
        let (trace, ledger) = read(&document(&[copy("2.5"), copy(word), op("a", 1, 2)]));
        assert_eq!((trace.len(), ledger.count("not-finite")), (3, 1), "{word}");
        let rates: Vec<_> = trace.copy_args.iter().map(|c| (c.bytes, c.bandwidth_gb_s)).collect();
        assert_eq!(rates, [(Some(200), Some(2.5)), (Some(200), None)], "{word}");
        // As an event's own time it costs the event, not the file.
        let bad = op("bad", word, 1);
        let (trace, ledger) = read(&document(&[bad, op("a", 1, 2)]));
        assert_eq!((trace.len(), ledger.count("no-time")), (1, 1), "{word}");
    }
}

#[test]
fn negative_durations_are_set_aside_and_short_ones_are_exact() {
    let events = [
        kernel("a", "100.7", "0.2", ""),
        kernel("b", "101.0", "0.9", ""),
        kernel("c", "102.3", "0.4", ""),
        kernel("d", "103.0", "-5", ""),
    ];
    let (trace, ledger) = read(&document(&events));
    let durations: Vec<i64> = trace.duration.iter().map(|d| d.nanos()).collect();
    assert_eq!(durations, [200, 900, 400]);
    assert_eq!(ledger.count("negative-duration"), 1);
    assert!(ledger.get("negative-duration").unwrap().places[0].contains("\"d\""));
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = format!(
        r#"{{"ph":"X","cat":"cpu_op","name":"deep","ts":1,"dur":1,"args":{{"x":{}1{}}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let long = op(&"n".repeat(1 << 20), 2, 1);
    let shapes = format!(
        r#"{{"ph":"X","cat":"cpu_op","name":"s","ts":3,"dur":1,"args":{{"Input Dims":[{}[1]]}}}}"#,
        "[1],".repeat(100_000)
    );
    let (trace, ledger) = read(&document(&[op("a", 0, 1), deep, long, shapes, op("z", 4, 1)]));
    assert_eq!((trace.len(), ledger.count("skipped-event")), (4, 1));
    assert_eq!(trace.name_of(1).len(), 16 << 10);
    assert_eq!((ledger.count("long-name"), ledger.count("long-argument")), (1, 1));
}

#[test]
fn missing_fields_are_survived() {
    let text = br#"{"schemaVersion":1,"traceEvents":[{},[],1,"x",null,{"ph":"X"},{"ph":"X","ts":1},
      {"ph":"X","ts":1e300,"dur":1},{"ph":"X","ts":true,"dur":1},{"ph":7,"ts":1},
      {"ph":"X","cat":"kernel","ts":1,"dur":1e300},{"ph":"s","ts":1},{"ph":"E","ts":1}]}"#;
    let (trace, ledger) = read(text);
    assert_eq!(trace.len(), 2);
    assert_eq!(trace.category, [Category::Other, Category::Kernel]);
    assert_eq!(ledger.count("not-an-event"), 4);
    assert_eq!(ledger.count("no-time"), 2);
    assert_eq!(ledger.count("time-out-of-range"), 1);
}
