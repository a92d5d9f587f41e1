//! Pipelines planned from micro-benchmarks: pages, schemas, files, errors.

use serde_json::Value;

use crate::support::{answer, complaint, misfits, run, text, write};

const PROFILE: &str = "examples/varuna/profile.toml";
const PLAN: [&str; 9] =
    ["varuna", "plan", PROFILE, "--gpus", "32", "--batch", "256", "--gpu-memory", "16GB"];
/// Four stages of 10 and 20 ms on one machine, and the times of messages and the all-reduce.
const FOUR: [&str; 16] = [
    "varuna",
    "simulate",
    "--stages=4",
    "--forward=10ms",
    "--backward=20ms",
    "--micro-batches=8",
    "--send=1ms",
    "--long-send=5ms",
    "--all-reduce=50ms",
    "--schedule",
    "varuna,gpipe,1f1b,1f1b-recompute",
    "--draws=50",
    "--compute-sigma=2ms",
    "--network-sigma=10ms",
    "--seed=7",
    "--timeline",
];
const MORPH: [&str; 15] = [
    "varuna",
    "morph",
    PROFILE,
    "--batch",
    "256",
    "--gpu-memory",
    "16GB",
    "--availability",
    "examples/varuna/availability.csv",
    "--machines",
    "examples/varuna/machines.csv",
    "--price",
    "0.9",
    "--dedicated-price",
    "3.06",
];

#[test]
fn pages() {
    let uneven = [&PLAN[..], &["--uneven", "--stages=4,5,8", "--schedule=varuna,1f1b"]].concat();
    for (name, arguments) in [
        ("varuna_plan", &PLAN[..]),
        ("varuna_plan_uneven", &uneven),
        ("varuna_simulate", &FOUR),
        ("varuna_morph", &MORPH),
    ] {
        let page = answer(arguments);
        let widest = page.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{page}");
        insta::assert_snapshot!(name, page);
    }
}

#[test]
fn json_fits_its_schema() {
    for (name, arguments) in
        [("varuna-plan", &PLAN[..]), ("varuna-simulate", &FOUR), ("varuna-morph", &MORPH)]
    {
        let schema: Value = serde_json::from_str(&answer(&["schema", name])).unwrap();
        let document: Value =
            serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).unwrap();
        let found = misfits(&document, &schema, &schema, "$");
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!(document["schema"], format!("foretrain/{name}/1"));
    }
}

#[test]
fn given_times_and_a_profile_give_the_same_pipeline() {
    let step = |arguments: &[&str]| {
        let text = answer(&[arguments, &["--json"]].concat());
        let document: Value = serde_json::from_str(&text).unwrap();
        document["schedules"][0]["step_ns"].as_i64().unwrap()
    };
    assert_eq!(step(&FOUR), 476_000_000);
    let home = tempfile::tempdir().unwrap();
    let profile = "{\"varuna_profile\": 1, \"cut_point\": [{\"name\": \"block\", \"repeat\": 4, \"at\": [\
        {\"micro_batch\": 1, \"forward\": \"10ms\", \"backward\": \"20ms\", \"activation\": 1000}]}], \
        \"message\": [{\"bytes\": 1000, \"send\": \"1ms\"}]}";
    let profile = write(home.path(), "profile.json", profile);
    let arguments = ["varuna", "simulate", text(&profile), "--gpus=4", "--batch=8", "--stages=4"];
    assert_eq!(step(&arguments), 426_000_000, "one replica reduces nothing");
}

#[test]
fn timelines_are_written_for_perfetto() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("pipeline.json");
    let said = run(&[&FOUR[..], &["--perfetto", text(&path)]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.starts_with("wrote "), "{}", said.err);
    let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let slices = document["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X");
    // Forward, backward and, on three, four, no and three stages, recompute.
    assert_eq!(slices.count(), 8 * (4 * 8 + 3 + 4 + 3));
}

#[test]
fn tables_of_layers_take_their_network_from_a_profile() {
    let home = tempfile::tempdir().unwrap();
    let heads = "model,gpu,micro_batch,tp,layer_index,fwd_s,bwd_s\n";
    let rows: String = (0..6).map(|layer| format!("a,x,1,1,{layer},0.01,0.02\n")).collect();
    let layers = write(home.path(), "layers.csv", format!("{heads}{rows}"));
    let network = "varuna_profile = 1\n[network]\nsend = { latency = \"1ms\", bandwidth = \"100GB/s\" }\n\
        all_reduce = { latency = \"1ms\", bandwidth = \"1GB/s\" }\ngradients = \"100MB\"\n";
    let network = write(home.path(), "network.toml", network);
    let common = ["--gpus=8", "--batch=64", "--json", "--gpus-per-vm=8"];
    let plan = ["varuna", "plan", text(&layers), text(&network), "--activation=1MB"];
    let document: Value = serde_json::from_str(&answer(&[&plan[..], &common].concat())).unwrap();
    assert_eq!(document["model"], "a");
    assert_eq!(document["ranked"].as_array().unwrap().len(), 4);
    // Without the network only a single GPU's pipeline is known, and that has eight replicas.
    let said = complaint(&["varuna", "plan", text(&layers), "--gpus=8", "--batch=64"], home.path());
    assert!(said.contains("lacks the all-reduce of 1 stages in rings of 8"), "{said}");
}

#[test]
fn errors_name_the_place_and_a_way_on() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let slip = write(
        home,
        "slip.toml",
        "varuna_profile = 1\n[[cut_point]]\nname = \"a\"\nat = [{ micro_batch = 1, foward = \"1ms\" }]\n",
    );
    let version = write(home, "version.toml", "varuna_profile = 9\n");
    let trace = write(home, "trace.csv", "time,gpus\n0,8\n60,many\n");
    let of = |arguments: &[&str]| complaint(&[&["varuna"], arguments].concat(), home);
    let plan = |file: &str| of(&["plan", file, "--gpus=8", "--batch=64"]);
    let pages = [
        plan("nowhere.toml"),
        plan(text(&slip)),
        plan(text(&version)),
        of(&["plan", PROFILE, "--gpus=8", "--batch=64", "--gpu-memory=1GB"]),
        of(&["plan", PROFILE, "--gpus=8", "--batch=64", "--stages=99"]),
        of(&["plan", PROFILE, "--gpus=8", "--batch=3", "--stages=1"]),
        of(&["plan", PROFILE, "--gpus=8", "--batch=64", "--micro-batch=3"]),
        of(&["simulate", "--stages=3", "--forward=1ms,2ms", "--backward=1ms", "--micro-batches=2"]),
        of(&[
            "simulate",
            "--stages=9",
            "--forward=1ms",
            "--backward=1ms",
            "--micro-batches=4000000000",
        ]),
        of(&["morph", PROFILE, "--batch=64", "--availability", text(&trace)]),
        of(&["plan", PROFILE, "--gpus=0", "--batch=64"]),
        of(&["simulate", "--forward=1ms", "--backward=1ms", "--micro-batches=0"]),
        of(&["simulate", "--forward=1ms", "--backward=1ms", "--micro-batches=1", "--stages=0"]),
        of(&["plan", PROFILE, "--gpus=8", "--batch=64", "--schedule=gpip"]),
    ];
    insta::assert_snapshot!("varuna_errors", pages.join("\n"));
}

#[test]
fn work_that_would_take_minutes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let simulate = |rest: &str| {
        let line = format!("varuna simulate --forward 1ms --backward 2ms {rest}");
        complaint(&line.split_whitespace().collect::<Vec<_>>(), directory.path())
    };
    for rest in [
        "--stages 100000 --micro-batches 300",
        "--stages 1 --micro-batches 1000000 --draws 100000",
        "--stages 100 --micro-batches 40000 --schedule varuna,gpipe,1f1b",
    ] {
        let said = simulate(rest);
        assert!(said.contains("at most 20000000") && said.contains("fewer"), "{said}");
    }
    let kept = simulate("--stages 100 --micro-batches 20000 --timeline");
    assert!(kept.contains("at most 2000000 with a timeline"), "{kept}");
    let plan = [&PLAN[..], &["--uneven", "--draws", "100000"]].concat();
    let said = complaint(&plan, directory.path());
    assert!(said.contains("fewer draws"), "{said}");
}

#[test]
fn options_that_change_nothing_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (option, value) in
        [("--tp", "2"), ("--model", "x"), ("--gpu", "x"), ("--activation", "8MB")]
    {
        let said = complaint(&[&PLAN[..], &[option, value]].concat(), directory.path());
        assert!(said.contains(&format!("{option} is of no use to a profile")), "{said}");
    }
    for option in ["--compute-sigma=2ms", "--network-sigma=2ms", "--seed=3"] {
        let said = complaint(&[&PLAN[..], &[option]].concat(), directory.path());
        assert!(said.contains("--draws"), "{said}");
    }
    for option in [
        "--gpu-memory=1GB",
        "--micro-batch=2",
        "--uneven",
        "--drop-remainder",
        "--gaps=interpolate",
        "--tp=2",
    ] {
        let said = complaint(&[&FOUR[..], &[option]].concat(), directory.path());
        assert!(said.contains("PROFILE"), "{said}");
    }
}
