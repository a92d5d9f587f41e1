//! O01 to O04 and O10: names, numbers and times that are not what they should be.

use foretrain_testkit::events::{Events, operator, thousand};
use serde_json::Value;

use crate::support::{complaint, finding, inspected, run, text, write};

/// "byte N" of a place.
fn byte(place: &str) -> &str {
    place.split(" (").next().unwrap_or(place)
}

#[test]
fn o01_raw_control_characters_are_mended() {
    let home = tempfile::tempdir().unwrap();
    let text_of = |name: &str| thousand(&operator(name, 500)).text("");
    let damaged = write(home.path(), "damaged.json", text_of("a\nb\u{1}c"));
    let clean = write(home.path(), "clean.json", text_of("abc"));
    let (code, answer) = inspected(&damaged);
    assert_eq!((code, &answer["ranks"][0]["events"]), (0, &Value::from(1000)));
    assert_eq!(finding(&answer, "repaired-event").0, 1);
    let (_, place) = finding(&answer, "control-character");
    let place = place.rsplit(": byte").next().map(|rest| format!("byte{rest}")).unwrap();
    assert!(place.contains("(line "), "{place}");
    assert_eq!(
        answer["ranks"][0]["median_step_ns"],
        inspected(&clean).1["ranks"][0]["median_step_ns"]
    );

    let strict = complaint(&["inspect", text(&damaged), "--strict"], home.path());
    assert!(strict.contains(byte(&place)), "{strict} names another place than {place}");
}

#[test]
fn o02_what_cannot_be_mended_costs_one_event() {
    let home = tempfile::tempdir().unwrap();
    let quotes = operator("_x = Lib(\"t\", \"I\")\n(1): <module>", 500);
    let key = operator("a", 500).replace("\"tid\":1", "tid\": 1");
    let bytes = operator("<?>", 500);
    for (name, event) in [("quotes.json", quotes), ("key.json", key), ("bytes.json", bytes)] {
        let mut content = thousand(&event).text("").into_bytes();
        if let Some(at) = content.windows(3).position(|three| three == b"<?>") {
            content[at..at + 3].copy_from_slice(b"\xff\xfe?");
        }
        let (code, answer) = inspected(&write(home.path(), name, content));
        let events = answer["ranks"][0]["events"].as_u64().unwrap();
        let (skipped, place) = finding(&answer, "skipped-event");
        assert_eq!((code, events + skipped), (0, 1000), "{name}");
        assert!(events >= 999, "{name}: {events} kept");
        assert!(skipped == 0 || place.contains("byte "), "{name}: {place}");
        assert!(place.len() < 400, "{name}: the preview is short");
        assert_eq!(answer["warnings"].as_array().unwrap().len(), 0, "{name}");
    }
}

#[test]
fn o02_much_damage_makes_the_answer_incomplete() {
    let home = tempfile::tempdir().unwrap();
    let mut events = Events::default();
    for i in 0..1000 {
        let sound = operator("aten::mm", i);
        events.raw(if i % 50 == 7 { "{\"ph\":\"X\", ]{:}" } else { &sound });
    }
    let path = write(home.path(), "much.json", events.text(""));
    let (code, answer) = inspected(&path);
    assert_eq!((code, finding(&answer, "skipped-event").0), (0, 20));
    assert_eq!(answer["ranks"][0]["events"], 980);
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("warning: more than 1 % of the events were skipped"), "{page}");
}

#[test]
fn o03_numbers_that_are_not_finite_are_not_available() {
    let home = tempfile::tempdir().unwrap();
    let mut events = Events::default();
    events.step(1, 0.0, 100.0);
    for (i, number) in ["inf", "NaN", "-Infinity"].iter().enumerate() {
        let args = format!(
            r#""device":0,"stream":7,"correlation":0,"bytes":200,"memory bandwidth (GB/s)":{number}"#
        );
        events.add("gpu_memcpy", "Memcpy DtoD", &(10 * i).to_string(), "0", 7, &args);
    }
    events.kernel("gemm", 50.0, 20.0, 7, 0, "");
    let path = write(home.path(), "inf.json", events.text(""));
    let (code, answer) = inspected(&path);
    assert_eq!((code, &answer["ranks"][0]["events"]), (0, &Value::from(5)));
    assert_eq!(finding(&answer, "not-finite").0, 3);
    assert_eq!(answer["ranks"][0]["activity"]["copies_ns"], 0);
    // What is written is JSON again: `inspected` has parsed the answer, this is the timeline.
    let timeline = home.path().join("out.json");
    let said = run(&["export", text(&path), "--perfetto", text(&timeline)]);
    assert_eq!(said.code, 0, "{}", said.err);
    let written = std::fs::read_to_string(&timeline).unwrap();
    let parsed: Value = serde_json::from_str(&written).unwrap();
    assert!(parsed["traceEvents"].as_array().unwrap().len() > 4);
}

#[test]
fn o04_short_durations_are_exact_and_negative_ones_set_aside() {
    let home = tempfile::tempdir().unwrap();
    let mut events = Events::default();
    events.step(1, 0.0, 200.0);
    for (ts, dur) in [(100.7, 0.2), (101.0, 0.9), (102.3, 0.4), (103.0, -5.0)] {
        events.kernel("k", ts, dur, 7, 0, "");
    }
    let (code, answer) = inspected(&write(home.path(), "short.json", events.text("")));
    assert_eq!((code, finding(&answer, "negative-duration").0), (0, 1));
    let activity = &answer["ranks"][0]["activity"];
    assert_eq!((&activity["compute_ns"], &activity["busy_ns"]), (&1500.into(), &1500.into()));
}

#[test]
fn o10_epoch_times_are_the_same_as_text_and_as_numbers() {
    let home = tempfile::tempdir().unwrap();
    let answers = ["\"", ""].map(|quote| {
        let mut events = Events::default();
        for at in ["1778640000000000.125", "1778640000000000.625"] {
            let at = format!("{quote}{at}{quote}");
            events.add("kernel", "k", &at, "0.5", 7, r#""stream":7,"device":0"#);
        }
        inspected(&write(home.path(), "epoch.json", events.text(""))).1
    });
    let rank = &answers[0]["ranks"][0];
    // Back to back: no gap, no overlap.
    assert_eq!((&rank["span_ns"], &rank["activity"]["busy_ns"]), (&1000.into(), &1000.into()));
    assert_eq!(answers[0], answers[1]);
}
