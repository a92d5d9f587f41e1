//! What goes wrong with descriptions is said in a sentence, with a way on.

use std::path::Path;

use super::{LAB, MODEL, words};
use crate::support::complaint;

fn ask(line: &str) -> String {
    complaint(&words(line), Path::new("/no/such/directory"))
}

#[test]
fn names_that_are_nearly_right() {
    let with =
        |model: &str, rest: &str| ask(&format!("estimate {model} --gpus 8 --batch 8 {rest}"));
    assert!(with("lama-3-8b", "--on dgx-h100").contains("did you mean"));
    assert!(with("nowhere.toml", "--on dgx-h100").contains("no such file"));
    assert!(with("llama-3-8b", "--on dgx-b20").contains("did you mean"));
    let software = with("llama-3-8b", "--on dgx-h100 --software megatorn");
    assert!(software.contains("did you mean \"megatron\"?"), "{software}");
    let layout = with("llama-3-8b", "--on dgx-h100 --parallel tpp=2");
    assert!(layout.contains("did you mean \"tp\"?"), "{layout}");
    assert!(with("llama-3-8b", "--on dgx-h100 --precision fp7").contains("bf16"));
    assert!(with("llama-3-8b", "--on dgx-h100 --optimizer lion").contains("adam"));
}

#[test]
fn numbers_that_do_not_go_together() {
    let with = |rest: &str| ask(&format!("estimate {MODEL} --on {LAB} {rest}"));
    let batch = with("--gpus 8 --batch 12");
    assert!(batch.contains("cannot be dealt out to dp = 8") && batch.contains("hint:"), "{batch}");
    let degrees = with("--gpus 8 --batch 8 --parallel tp=3");
    assert!(degrees.contains("does not divide 8 devices"), "{degrees}");
    let heads = with("--gpus 12 --batch 8 --parallel tp=12");
    assert!(heads.contains("does not divide"), "{heads}");
    let size = with("--gpus 64 --batch 64");
    assert!(size.contains("4 nodes"), "{size}");
    let fp8 = with("--gpus 8 --batch 8 --precision fp8");
    assert!(fp8.contains("has no f8e4m3 units") && fp8.contains("--precision bf16"), "{fp8}");
    assert!(with("--gpus 8").contains("--batch"));
    assert!(with("--gpus 8 --batch 0").contains("0"));
    let reduce = with("--gpus 8 --batch 8 --reduce-in fp16");
    assert!(reduce.contains("accumulated in f32"), "{reduce}");
    let experts = with("--gpus 8 --batch 8 --parallel ep=4");
    assert!(experts.contains("no experts"), "{experts}");
    let image = ask("estimate resnet-50 --on dgx-a100 --gpus 8 --batch 256 --sequence 128");
    assert!(image.contains("--sequence is of no use"), "{image}");
}

#[test]
fn plans_of_nothing() {
    assert!(ask("plan").contains("--scenarios") || ask("plan").contains("MODEL"));
    assert!(
        ask(&format!("plan {MODEL} --on {LAB} --gpus 8 --batch 8 --by 3d")).contains("--tokens")
    );
    let price = ask(&format!("plan {MODEL} --on {LAB} --gpus 8 --batch 8 --price dgx-h100=2"));
    assert!(price.contains("no cluster of --on"), "{price}");
    let large = ask(&format!("plan {MODEL} --on {LAB} --gpus 64 --batch 64"));
    assert!(large.contains("4 nodes"), "{large}");
    let fp8 = ask(&format!("plan {MODEL} --on {LAB} --gpus 8 --batch 8 --precision fp8"));
    assert!(fp8.contains("has no f8e4m3 units"), "{fp8}");
}
