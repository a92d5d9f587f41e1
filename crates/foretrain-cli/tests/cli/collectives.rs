//! What collectives cost.

use std::path::Path;

use serde_json::Value;

use crate::support::{TINY, answer, complaint, misfits, run, text};

const LOG: &str = "crates/foretrain-cli/tests/cli/all_reduce.log";

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(arguments)).expect("JSON")
}

#[test]
fn a_few_counts_are_shown_in_full() {
    let page = answer(&[
        "collectives",
        "--on",
        "aws-p4d",
        "--gpus",
        "8,16",
        "--sizes",
        "1K,1M,64M,1G",
        "--explain",
        "--compare",
        LOG,
    ]);
    insta::assert_snapshot!("collectives_explained", page);
}

#[test]
fn many_counts_stand_side_by_side() {
    let page = answer(&[
        "collectives",
        "--on",
        "dgx-a100-superpod",
        "--gpus",
        "16..4096",
        "--sizes",
        "64K..4G",
        "--collective",
        "all-reduce,all_gather",
    ]);
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    assert!(page.contains("warning: 2048 GPUs left out: "), "{page}");
    insta::assert_snapshot!("collectives_side_by_side", page);
}

#[test]
fn json_fits_its_schema_and_adds_up() {
    let document = document(&[
        "collectives",
        "--on",
        "dgx-h100",
        "--gpus",
        "8..64",
        "--collective",
        "all",
        "--latency",
        "0,300us",
        "--window",
        "1MiB",
        "--compare",
        LOG,
        "--json",
    ]);
    let schema = self::document(&["schema", "collectives"]);
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(document["schema"], "foretrain/collectives/1");
    let sweeps = document["sweeps"].as_array().unwrap();
    assert_eq!(sweeps.len(), 9 * 4 * 2, "operations, counts and latencies");
    for row in sweeps.iter().flat_map(|sweep| sweep["rows"].as_array().unwrap()) {
        let terms = ["launch_ns", "propagation_ns", "transfer_ns", "reduction_ns"];
        let sum: i64 = terms.iter().map(|term| row[term].as_i64().unwrap()).sum();
        let time = row["time"]["value_ns"].as_i64().unwrap();
        assert!((sum - time).abs() <= 4, "terms {sum} ns of {time} ns");
        let bus = &row["busbw_gb_per_s"];
        let [low, value, high] = ["low", "value", "high"].map(|end| bus[end].as_f64().unwrap());
        assert!(low <= value && value <= high, "{bus}");
    }
    let windowed = sweeps.iter().filter(|sweep| sweep["plateau"]["limit"] == "window");
    assert!(windowed.count() > 0, "no sweep is held back by the window");
    let run = &document["comparisons"][0];
    assert_eq!((&run["setting"]["ranks"], &run["asked"]), (&16.into(), &true.into()));
    assert_eq!(run["rows"].as_array().unwrap().len(), 3, "the torn row is lost");
}

/// Logs alone need no counts.
#[test]
fn logs_are_compared_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let plot = directory.path().join("bus.svg");
    let arguments = ["collectives", "--on", "aws-p4d", "--compare", LOG, "--plot", text(&plot)];
    let said = run(&arguments);
    assert_eq!((said.code, said.err.as_str()), (0, &*format!("wrote {}\n", plot.display())));
    assert!(said.out.contains("Predicted against measured times"), "{}", said.out);
    insta::assert_snapshot!("collectives_plot", std::fs::read_to_string(&plot).unwrap());
}

#[test]
fn pictures_are_whole_whatever_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let plot = directory.path().join("bus.svg");
    for (gpus, sizes, kinds) in
        [("8", "1", "all-reduce"), ("2..4096", "1..8G", "all"), ("8,16", "3GB", "all-to-all")]
    {
        let said = run(&[
            "collectives",
            "--on",
            "dgx-h100",
            "--gpus",
            gpus,
            "--sizes",
            sizes,
            "--collective",
            kinds,
            "--plot",
            text(&plot),
        ]);
        assert_eq!(said.code, 0, "{}", said.err);
        let picture = std::fs::read_to_string(&plot).unwrap();
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{gpus} {sizes} {kinds}");
        for element in ["svg", "g", "text", "title", "circle"] {
            let opened = picture.matches(&format!("<{element} ")).count()
                + picture.matches(&format!("<{element}>")).count();
            let closed = picture.matches(&format!("</{element}>")).count();
            assert_eq!(opened, closed, "{element} of {gpus} {sizes} {kinds}");
        }
    }
}

#[test]
fn what_cannot_be_answered_is_said() {
    let ask = |arguments: &[&str]| {
        complaint(&[&["collectives"], arguments].concat(), Path::new("/no/such/directory"))
    };
    let unknown = ask(&["--on", "dgx-b20", "--gpus", "8"]);
    assert!(unknown.contains("did you mean"), "{unknown}");
    let large = ask(&["--on", "perlmutter", "--gpus", "1000000"]);
    assert!(large.contains("perlmutter has 1536 nodes"), "{large}");
    assert!(ask(&["--on", "dgx-a100"]).contains("--gpus"));
    assert!(ask(&["--on", "dgx-a100", "--gpus", "16..8"]).contains("counts backwards"));
    assert!(ask(&["--on", "dgx-a100", "--gpus", "8", "--sizes", "x"]).contains("a number"));
    let uneven = ask(&["--on", "dgx-a100", "--gpus", "8", "--ranks-per-node", "3"]);
    assert!(uneven.contains("divides 8"), "{uneven}");
    let no_log = ask(&["--on", "dgx-a100", "--compare", TINY]);
    assert!(no_log.contains("found no log"), "{no_log}");
    let other = ask(&["--on", "dgx-a100", "--gpus", "8", "--collective", "all-fold"]);
    assert!(other.contains("reduce-scatter"), "{other}");
}
