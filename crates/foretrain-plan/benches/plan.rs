//! Speed of planning and of the engine on planned layouts.

use std::sync::atomic::AtomicBool;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foretrain_cost::kernels::KernelModel;
use foretrain_hardware::Catalogue;
use foretrain_plan::graph::Detail;
use foretrain_plan::pipeline::{Durations, evaluate, orders};
use foretrain_plan::plan::{Question, Space, layouts, search};
use foretrain_plan::times::Machine;
use foretrain_plan::{Job, Schedule, Software, Training, Wish};

fn training(global_batch: u64, sequence: u64) -> Training {
    Training::of(global_batch, sequence)
}

fn plans(criterion: &mut Criterion) {
    let software = Software::megatron();
    let cluster = Catalogue::builtin().cluster("dgx-h100").expect("in the catalogue");
    let kernels = KernelModel::for_device(&cluster.node.device);
    let mut group = criterion.benchmark_group("plan");
    group.sample_size(10);
    for (name, devices, batch) in [("llama-3.1-405b", 4096, 2048), ("llama-3-70b", 512, 1024)] {
        let model = foretrain_workload::load(name).expect("in the library");
        let training = training(batch, 8192);
        let space = Space::of(&software, Wish::default());
        let all = layouts(&space, &model, &training, &software, &cluster, devices).len();
        group.throughput(Throughput::Elements(all as u64));
        group.bench_function(format!("{name} on {devices}"), |bencher| {
            bencher.iter(|| {
                let question = Question {
                    model: &model,
                    training: &training,
                    software: &software,
                    cluster: &cluster,
                    kernels: &kernels,
                    calibrated: None,
                    devices,
                    space: &space,
                    memory: None,
                };
                search(&question, &AtomicBool::new(false), &|_| {}).expect("a plan")
            });
        });
    }
    group.finish();
}

fn engine(criterion: &mut Criterion) {
    let software = Software::megatron();
    let cluster = Catalogue::builtin().cluster("dgx-h100").expect("in the catalogue");
    let kernels = KernelModel::for_device(&cluster.node.device);
    let machine = Machine::new(&cluster, kernels);
    let model = foretrain_workload::load("gpt-3-6.7b").expect("in the library");
    let training = training(128, 2048);
    let wish: Wish = "tp=2,pp=4,zero=1,sp".parse().expect("a layout");
    let layout = wish.complete(64).expect("a layout");
    let mut group = criterion.benchmark_group("engine");
    group.sample_size(10);
    group.bench_function("64-GPU GPT-7B, every kernel", |bencher| {
        bencher.iter(|| {
            let job = Job::new(&model, &training, &software, &machine);
            job.lay(&layout).and_then(|laid| laid.simulated(Detail::Operations)).expect("a step")
        });
    });
    group.bench_function("64 stages, 10,000 micro-batches", |bencher| {
        bencher.iter(|| {
            let orders = orders(Schedule::OneFOneB, 64, 1, 10_000).expect("a schedule");
            let each = Durations {
                forward: foretrain_core::Nanos::from_millis(10),
                backward: foretrain_core::Nanos::from_millis(20),
                ..Durations::default()
            };
            evaluate(&orders, &[each; 64], false).expect("no deadlock").end()
        });
    });
    group.finish();
}

criterion_group!(benches, plans, engine);
criterion_main!(benches);
