//! What the verbs print. `INSTA_UPDATE=always cargo test -p foretrain-cli` accepts a change.

use crate::support::{TINY, answer, foretrain, job, run, text};
use foretrain_testkit::JobSpec;

#[test]
fn predict_on_the_example() {
    let page = answer(&["predict", TINY, "--on", "dgx-a100", "--gpus", "2,16,128", "--explain"]);
    insta::assert_snapshot!("predict_example", page);
}

#[test]
fn inspect_on_the_example() {
    insta::assert_snapshot!("inspect_example", answer(&["inspect", TINY]));
}

#[test]
fn tables_fit_a_hundred_columns() {
    for arguments in [
        &["predict", TINY, "--on", "dgx-a100", "--gpus", "2,4,8,16,32,64,1024", "--explain"][..],
        &["inspect", TINY],
        &["hardware", "list"],
        &["hardware", "show", "gb200-nvl72"],
        &["models"],
        &["models", "deepseek-v3"],
    ] {
        let page = answer(arguments);
        for line in page.lines() {
            assert!(line.chars().count() <= 100, "{arguments:?}: {line}");
            assert!(!line.contains('\u{1b}'), "{arguments:?}: colour in a pipe");
        }
    }
}

#[test]
fn a_host_bound_job_is_called_so() {
    let job = job(&JobSpec::host_bound());
    let page = answer(&["predict", text(job.path()), "--on", "dgx-a100", "--gpus", "2,64"]);
    assert!(page.contains("warning: host-bound"), "{page}");
    assert!(page.contains("launch-bound"), "{page}");
}

#[test]
fn samples_replace_batches_and_many_sizes_are_thinned_out() {
    let sizes = "2,4,8,16,32,64";
    let page =
        answer(&["predict", TINY, "--on", "dgx-a100", "--gpus", sizes, "--replica-batch", "32"]);
    assert!(page.contains("Samples/s") && !page.contains("Batches/s"), "{page}");
    assert!(page.contains("4 of 6 sizes shown"), "{page}");
}

#[test]
fn the_catalogue_lists_and_shows() {
    let clusters = answer(&["hardware", "list", "clusters"]);
    assert!(clusters.contains("perlmutter") && !clusters.contains("Devices"), "{clusters}");
    let node = answer(&["hardware", "show", "p4d.24xlarge"]);
    assert!(node.starts_with("Node type aws-p4d"), "{node}");
    assert!(node.contains("assumed: a default that no document supports"), "{node}");
    let device = answer(&["hardware", "show", "a100-sxm4-80gb"]);
    assert!(device.contains("peak.bf16") && device.contains("312.0 TFLOP/s"), "{device}");
}

#[test]
fn a_user_s_catalogue_serves_all_verbs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("our.toml");
    std::fs::write(&file, "[nodes.slow]\nbased_on = \"dgx-a100\"\nnics = 1\n").unwrap();
    let file = text(&file);
    let node = answer(&["hardware", "--hardware", file, "show", "slow"]);
    assert!(node.contains("1 x infiniband"), "{node}");
    let predicted = |on: &str| -> f64 {
        let document =
            answer(&["predict", TINY, "--hardware", file, "--on", on, "--gpus", "64", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        document["sizes"][0]["exposed_communication_ns"].as_f64().unwrap()
    };
    assert!(predicted("slow") > 2.0 * predicted("dgx-a100"));
}

#[test]
fn an_answer_goes_to_a_file_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("answer.txt");
    let arguments = ["hardware", "list", "devices"];
    let said = run(&["hardware", "list", "devices", "--out", text(&file)]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), answer(&arguments));
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 1, "a partial file was left behind");
}

#[test]
fn colour_is_asked_for_and_refused() {
    let show = |arguments: &[&str], refuse: bool| {
        let mut command = foretrain(arguments);
        if refuse {
            command.env("NO_COLOR", "1");
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let list = ["hardware", "list", "devices"];
    let always = [&list[..], &["--color", "always"]].concat();
    assert!(show(&always, false).contains('\u{1b}'));
    assert!(!show(&list, true).contains('\u{1b}'));
    // Colour only repeats what words say.
    let plain = show(&always, false).replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert_eq!(plain, show(&list, false));
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let with = |threads: &str| {
        answer(&[
            "predict",
            TINY,
            "--on",
            "dgx-a100",
            "--gpus",
            "8",
            "--json",
            "--threads",
            threads,
        ])
    };
    assert_eq!(with("1"), with("4"));
}

#[test]
fn a_saved_graph_predicts_like_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("step.parquet");
    let said = run(&["export", TINY, "--graph", text(&file)]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert!(said.err.contains("steady step of rank 0"), "{}", said.err);
    let graph = foretrain::graph::StepGraph::load(&file).unwrap();
    assert!(graph.node_count() > 100);
    let said = run(&["predict", text(&file), "--on", "dgx-a100", "--gpus", "8"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("rank 0, step graph"), "{}", said.out);
}

#[test]
fn scores_are_printed_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("validation.md");
    let said = run(&["validate", "--data", "docs", "--extra", TINY, "--write", text(&file)]);
    // The documentation holds nothing to score, the example does.
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let replay = said.out.lines().find(|line| line.starts_with("replay:ddp-tiny")).unwrap();
    assert_eq!(replay.split_whitespace().nth(1), Some("6"), "two ranks of three steps: {replay}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("replay"));
}

#[test]
fn inspect_on_what_nccl_says_and_a_table_of_bandwidths() {
    let log = "crates/foretrain-cli/tests/cli/nccl_debug.log";
    insta::assert_snapshot!("inspect_nccl_debug", answer(&["inspect", log]));
}

#[test]
fn inspect_on_a_benchmark_log() {
    let log = "crates/foretrain-cli/tests/cli/all_reduce.log";
    insta::assert_snapshot!("inspect_benchmark_log", answer(&["inspect", log]));
    let page = answer(&["inspect", log, "--collective", "reduce_scatter"]);
    assert!(page.starts_with("reduce-scatter, ranks not known"), "{page}");
    let refused = run(&["inspect", TINY, "--collective", "all-reduce"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let refused = run(&["predict", log, "--on", "dgx-a100", "--gpus", "8"]);
    assert!(refused.code == 2 && refused.err.contains("foretrain inspect"), "{refused:?}");
}
