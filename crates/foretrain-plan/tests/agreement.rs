//! The closed form of a step against the engine on the graphs of the same layout.

use foretrain_cost::kernels::KernelModel;
use foretrain_hardware::Catalogue;
use foretrain_plan::graph::Detail;
use foretrain_plan::times::Machine;
use foretrain_plan::{Job, Software, Training, Wish};

fn training(global_batch: u64, sequence: u64) -> Training {
    Training { expert_imbalance: 1.2, ..Training::of(global_batch, sequence) }
}

fn check(model: &str, software: &Software, batch: u64, devices: u32, layouts: &[&str]) {
    check_at(model, software, (batch, 2048), devices, layouts);
}

fn check_at(
    model: &str,
    software: &Software,
    (batch, sequence): (u64, u64),
    devices: u32,
    layouts: &[&str],
) {
    let model = foretrain_workload::load(model).expect("a known model");
    let cluster = Catalogue::builtin().cluster("dgx-h100").expect("in the catalogue");
    let kernels = KernelModel::for_device(&cluster.node.device);
    let machine = Machine::new(&cluster, kernels);
    let training = training(batch, sequence);
    let job = Job::new(&model, &training, software, &machine);
    for text in layouts {
        let layout = text.parse::<Wish>().and_then(|wish| wish.complete(devices)).expect(text);
        let laid = job.lay(&layout).unwrap_or_else(|error| panic!("{text}: {error}"));
        let step = laid.step().unwrap_or_else(|error| panic!("{text}: {error}"));
        let owned = step.parts.total().nanos() as f64 / step.time.nanos() as f64;
        assert!((owned - 1.0).abs() < 1e-3, "{text}: parts are {owned} of the step");
        let step = step.time;
        for detail in [Detail::Layers, Detail::Operations] {
            let simulated =
                laid.simulated(detail).unwrap_or_else(|error| panic!("{text}: {error}"));
            let error = step.nanos() as f64 / simulated.nanos() as f64 - 1.0;
            assert!(
                error.abs() < 1e-3,
                "{text} ({}), {detail:?}: closed form {step}, engine {simulated}, {:.3} %",
                software.name,
                100.0 * error
            );
        }
    }
}

fn named(name: &str) -> Software {
    Software::named(name).expect("known software")
}

#[test]
fn pipelines() {
    let layouts = [
        "tp=2,pp=4,mbs=1",
        "tp=2,pp=4,mbs=1,vpp=2,sp,zero=1",
        "tp=1,pp=8,mbs=2,recompute=full",
        "tp=4,pp=2,mbs=2,schedule=gpipe,recompute=selective",
        "tp=1,pp=4,mbs=1,schedule=zb-h1",
        "tp=1,pp=4,mbs=1,schedule=zb-h2,zero=1",
        "tp=1,pp=4,mbs=1,schedule=zb-v",
        "tp=1,pp=4,mbs=1,schedule=dualpipe",
        "tp=1,pp=4,mbs=1,schedule=varuna,recompute=full",
        "tp=2,pp=4,mbs=1,stages=5/7/7/5,recompute=3",
        "tp=1,pp=2,mbs=1,zero=3",
    ];
    for software in ["megatron", "megatron-deepspeed", "fsdp-compile"] {
        check("gpt-3-1.3b", &named(software), 128, 16, &layouts);
    }
}

/// Where the last stage has more to do, slack of the first rounds is used up over many of them.
#[test]
fn uneven_stages_settle_late() {
    let layouts = ["tp=1,pp=4,vpp=2,mbs=1", "tp=4,pp=2,vpp=2,mbs=4,sp", "tp=2,pp=4,schedule=zb-v"];
    for batch in [96, 160, 256, 1024] {
        check_at("bert-large", &named("megatron"), (batch, 512), 16, &layouts);
    }
}

#[test]
fn many_micro_batches_follow_the_rhythm_of_the_first() {
    let layouts =
        ["tp=1,pp=4,dp=1,mbs=1", "tp=1,pp=4,dp=1,mbs=1,vpp=2", "tp=1,pp=4,dp=1,schedule=zb-h1"];
    check("gpt-3-125m", &named("xla"), 400, 4, &layouts);
    check("gpt-3-125m", &named("megatron-deepspeed"), 402, 4, &layouts[..1]);
}

#[test]
fn replicas_and_divided_states() {
    let layouts = [
        "zero=0,mbs=2",
        "zero=1,mbs=2",
        "zero=2,mbs=1",
        "zero=3,mbs=1",
        "zero=3,hsdp=8,mbs=2,recompute=full",
        "tp=8,sp,zero=3,mbs=4",
        "zero=1,mbs=2,offload=optimiser+activations",
    ];
    for software in ["megatron", "fsdp", "xla"] {
        let mut software = named(software);
        check("llama-7b", &software, 128, 64, &layouts);
        software.overlap_tensor = true;
        software.bucket = foretrain_core::Bytes::from_mib(400);
        check("llama-7b", &software, 128, 64, &layouts);
    }
}

#[test]
fn sequences_and_experts() {
    let layouts = [
        "tp=2,cp=2,sp,zero=1",
        "tp=1,cp=4,cp-method=all-gather,zero=1",
        "tp=1,cp=4,cp-method=ulysses,pp=2,zero=1",
    ];
    check("llama-7b", &named("megatron"), 32, 32, &layouts);
    let layouts = ["tp=2,ep=4,sp,zero=1", "tp=1,ep=8,pp=2,zero=1", "tp=2,etp=2,ep=4,sp,pp=2,vpp=2"];
    check("mixtral-8x7b", &named("megatron"), 64, 32, &layouts);
}
