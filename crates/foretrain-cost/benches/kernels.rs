//! How long it takes to tell a kernel's time.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use foretrain_core::DType;
use foretrain_cost::kernels::{Attention, AttentionKernel, Gemm, KernelModel, Operation, Pass};
use foretrain_hardware::Catalogue;

fn bench(c: &mut Criterion) {
    let Ok(device) = Catalogue::builtin().device("h100-sxm5-80gb") else { return };
    let model = KernelModel::for_device(device);
    let mut group = c.benchmark_group("kernels");
    let gemm = Operation::Gemm(Gemm::new(4096, 12288, 4096, DType::Bf16));
    group.bench_function("gemm", |b| b.iter(|| model.time(black_box(&gemm))));
    let attention = Operation::Attention(Attention {
        batch: 2,
        heads: 32,
        kv_heads: 8,
        queries: 4096,
        keys: 4096,
        head_dim: 128,
        value_dim: 128,
        causal: true,
        window: None,
        dtype: DType::Bf16,
        pass: Pass::Forward,
        kernel: AttentionKernel::Tuned,
    });
    group.bench_function("attention", |b| b.iter(|| model.time(black_box(&attention))));
    group.bench_function("for_device", |b| b.iter(|| KernelModel::for_device(black_box(device))));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
