//! Calibrating the primitives of a machine: from a table, and by measuring this one.

use std::net::TcpListener;
use std::path::Path;

use foretrain::cost::Primitives;
use foretrain::cost::primitives::Scheme;
use foretrain::predict::primitives::read;
use serde_json::Value;

use crate::support::{answer, complaint, misfits, run, text, write};

const TABLE: &str = "crates/foretrain-cli/tests/cli/primitives.csv";

fn calibrate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["calibrate", "primitives"], more].concat()
}

fn json(more: &[&str]) -> Value {
    let document: Value = serde_json::from_str(&answer(&calibrate(more))).expect("JSON");
    let schema = answer(&["schema", "calibrate-primitives"]);
    let schema = serde_json::from_str(&schema).expect("JSON");
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    document
}

#[test]
fn a_page_and_a_file_of_a_table() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("primitives.toml");
    let page = answer(&calibrate(&[TABLE]));
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    insta::assert_snapshot!("calibrate_primitives", page);
    answer(&calibrate(&[TABLE, "-o", text(&file)]));
    insta::assert_snapshot!("primitives_file", std::fs::read_to_string(&file).unwrap());
    let primitives = read(&file).unwrap();
    // 0.16 ns per byte after 9 us were made up.
    assert!((primitives.send.ns_per_byte / 0.16 - 1.0).abs() < 0.05, "{:?}", primitives.send);
    assert!((primitives.send.offset_ns / 9_000.0 - 1.0).abs() < 0.1, "{:?}", primitives.send);
    assert!(primitives.codec(Scheme::TopK).is_ok() && primitives.codec(Scheme::OneBit).is_err());
}

#[test]
fn json_fits_its_schema() {
    let document = json(&[TABLE, "--json"]);
    assert_eq!(document["schema"], "foretrain/calibrate-primitives/1");
    let lines = document["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 7, "{lines:#?}");
    let copy = lines.iter().find(|line| line["operation"] == "copy").unwrap();
    let rate = copy["gb_per_s"].as_f64().unwrap();
    assert!((rate * 0.07 - 1.0).abs() < 0.1, "one slow time bends nothing: {rate} GB/s");
    let places: Vec<&Value> = document["ledger"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] == "dropped")
        .map(|finding| &finding["places"][0])
        .collect();
    assert_eq!(places, ["line 21: \"1 MiB\"", "line 31: \"\"", "line 10: no primitive \"push\""],);
}

#[test]
fn files_are_kept_and_slips_are_said() {
    let home = tempfile::tempdir().unwrap();
    let said = |more: &[&str]| complaint(&calibrate(more), home.path());
    let file = write(home.path(), "mine.toml", "mine");
    assert!(said(&[TABLE, "-o", text(&file)]).contains("--force"));
    assert!(said(&["--budget", "1ms", "--raw", text(&file)]).contains("--force"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    answer(&calibrate(&[TABLE, "-o", text(&file), "--force"]));
    assert!(read(&file).is_ok());
    assert!(said(&["no.csv"]).contains("no.csv"));
    let wrong = write(home.path(), "wrong.csv", "operation,bytes\nsend,3\n");
    let error = said(&[text(&wrong)]);
    assert!(error.contains("line 1 of DIR/wrong.csv") && error.contains("time_us"), "{error}");
    let single = write(home.path(), "single.csv", "operation,bytes,time_ns\nsend,3,3\n");
    assert!(said(&[text(&single)]).contains("two sizes"));
    assert!(said(&["--sizes", "64K"]).contains("two sizes"));
    assert!(said(&["--sizes", "1K,8G"]).contains("1.000 GiB"));
    assert!(said(&[TABLE, "--sizes", "1K"]).contains("cannot be used with"));
    assert!(said(&["--budget", "10"]).contains("no unit"));
}

/// Speed differs from machine to machine and with its load, so only what must hold on any is asked.
#[test]
fn this_machine_is_measured() {
    let home = tempfile::tempdir().unwrap();
    let (file, raw) = (home.path().join("own.toml"), home.path().join("raw.csv"));
    let kept = ["-o", text(&file), "--raw", text(&raw), "--json"];
    let sizes = ["--sizes", "1K,64K,4M", "--budget", "300ms"];
    let document = json(&[&sizes[..], &kept].concat());
    let lines = document["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 5 + 2 * Scheme::ALL.len(), "every primitive has a line");
    for line in lines {
        let times: Vec<f64> = line["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| point["median_us"].as_f64().unwrap())
            .collect();
        assert_eq!(times.len(), 3, "{line}");
        assert!(line["ns_per_byte"].as_f64().unwrap() > 0.0, "{line}");
        assert!(times[0] > 0.0 && times[2] > times[1] && times[2] > 3.0 * times[0], "{line}");
        // No processor moves a TB/s from memory by one thread.
        assert!(times[2] > 4.0, "{line}");
    }
    let primitives = read(&file).unwrap();
    assert!(primitives.source.starts_with("measured on "), "{}", primitives.source);
    same_from_its_times(&raw, home.path(), &primitives);
}

/// The table of all times gives the same lines again.
fn same_from_its_times(raw: &Path, home: &Path, primitives: &Primitives) {
    let again = home.join("again.toml");
    answer(&calibrate(&[text(raw), "-o", text(&again)]));
    let again = Primitives {
        source: primitives.source.clone(),
        ..read(&again).expect("a file that was written")
    };
    assert_eq!(&again, primitives);
}

#[test]
fn a_second_process_without_a_first_one_ends() {
    // A port that nobody listens on any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let said = run(&["measurement-peer", &port.to_string(), "1"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("of no use alone"), "{}", said.err);
}
