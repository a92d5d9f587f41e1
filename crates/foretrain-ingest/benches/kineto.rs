//! Throughput of reading Kineto JSON, on a generated trace and on a real one if
//! `FORETRAIN_BENCH_TRACE` names it. Figures are per byte of uncompressed text.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Read as _;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foretrain_ingest::json::{Damage, Document, Limits, RawEvent, Sink};
use foretrain_ingest::{ReadOptions, read_trace_bytes};

/// Events in the proportions of a trace recorded with stacks and shapes, laid out as libkineto
/// does.
fn generated(events: usize) -> Vec<u8> {
    let mut out = String::from("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n");
    for i in 0..events {
        let ts = format!("{}.{:03}", 4_458_676_522_690 + i * 3, i % 1000);
        let (dur, name) = (i % 97, i * 7919 % 997);
        let event = match i % 10 {
            0..=2 => format!(
                "\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"torch/nn/modules/module.py({name}): _call_impl\", \"pid\": 2910249, \"tid\": 2910249,\n    \"ts\": {ts}, \"dur\": {dur}.125,\n    \"args\": {{\n      \"Python parent id\": {i}, \"Python id\": {i}, \"Ev Idx\": {i}\n    }}"
            ),
            3..=5 => format!(
                "\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op_{name}\", \"pid\": 2910249, \"tid\": 2910249,\n    \"ts\": {ts}, \"dur\": {dur}.125,\n    \"args\": {{\n      \"External id\": {i},\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"1\"], \"Input type\": [\"float\", \"float\", \"Scalar\"], \"Input Dims\": [[64, {dur}, 56, 56], [64], []], \"Ev Idx\": {i}\n    }}"
            ),
            6 | 7 => format!(
                "\"ph\": \"s\", \"id\": {i}, \"pid\": 2910249, \"tid\": 2910249, \"ts\": {ts},\n    \"cat\": \"ac2g\", \"name\": \"ac2g\""
            ),
            8 => format!(
                "\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 2910249, \"tid\": 2910249,\n    \"ts\": {ts}, \"dur\": {dur}.125,\n    \"args\": {{\n      \"External id\": {i},\n      \"cbid\": 211, \"correlation\": {i}\n    }}"
            ),
            _ => format!(
                "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void at::native::vectorized_elementwise_kernel<4, at::native::functor_{name}<float>, at::detail::Array<char*, 3> >(int, at::native::functor<float>, at::detail::Array<char*, 3>)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {ts}, \"dur\": {dur}.125,\n    \"args\": {{\n      \"External id\": {i},\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": {i},\n      \"registers per thread\": 32,\n      \"shared memory\": 0,\n      \"blocks per SM\": 9.259259,\n      \"warps per SM\": 37.037037,\n      \"grid\": [1000, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. achieved occupancy %\": 58\n    }}"
            ),
        };
        let comma = if i + 1 < events { "," } else { "" };
        let _ = writeln!(out, "  {{\n    {event}\n  }}{comma}");
    }
    out.push_str("  ],\n  \"traceName\": \"generated.json\"\n}\n");
    out.into_bytes()
}

struct Count(u64);

impl Sink for Count {
    type Stop = ();
    fn event(&mut self, _: &str, _: &RawEvent) -> Result<(), ()> {
        self.0 += 1;
        Ok(())
    }
    fn member(&mut self, _: &str, _: &str) -> Result<(), ()> {
        Ok(())
    }
    fn damage(&mut self, _: &Damage<'_>) -> Result<(), ()> {
        Err(())
    }
}

fn measure(criterion: &mut Criterion, name: &str, text: &[u8]) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::BytesDecimal(text.len() as u64)).sample_size(10);
    group.bench_function("walk", |bencher| {
        bencher.iter(|| {
            let mut count = Count(0);
            Document::new(text, Limits::default()).walk(&mut count).expect("reads");
            black_box(count.0)
        });
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            read_trace_bytes(black_box(text), "rank0.json", &ReadOptions::default()).expect("reads")
        });
    });
    group.finish();
}

fn kineto(criterion: &mut Criterion) {
    measure(criterion, "generated", &generated(100_000));
    if let Some(path) = std::env::var_os("FORETRAIN_BENCH_TRACE") {
        let packed = std::fs::read(path).expect("reads");
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut text).expect("reads");
        measure(criterion, "real", &text);
    }
}

criterion_group!(benches, kineto);
criterion_main!(benches);
