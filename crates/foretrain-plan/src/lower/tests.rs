//! What ranks run adds up to the model's work, and what they keep to published counts.

use foretrain_core::Bytes;
use foretrain_cost::kernels::{Attention, AttentionKernel, Memory, Operation};
use foretrain_graph::CollectiveKind;
use foretrain_workload::load;
use foretrain_workload::model::{Model, Role};

use super::*;
use crate::layout::{Layout, Wish};
use crate::software::Software;
use crate::training::{Precision, Training};

fn training(sequence: u64, precision: Precision) -> Training {
    Training { precision, ..Training::of(64, sequence) }
}

fn slice(layout: &str, devices: u32, training: &Training, software: &Software) -> Slice {
    let wish: Wish = layout.parse().expect("a layout");
    let layout: Layout = wish.complete(devices).expect("of so many devices");
    Slice::of(&layout, training, software)
}

/// The operations of a pass and how often each runs.
fn operations(work: &[Work]) -> Vec<(Operation, u64)> {
    let mut all = Vec::new();
    for piece in work {
        match piece {
            Work::Kernel { operation, times, .. } => all.push((*operation, u64::from(*times))),
            Work::Comm(_) => {}
            Work::Beside { kernels, .. } => all.extend(kernels.iter().map(|(one, _)| (*one, 1))),
        }
    }
    all
}

/// FLOPs of products and attention.
fn flops(work: &[Work]) -> f64 {
    let counts = |operation: &Operation| !matches!(operation, Operation::Memory(_));
    let all = operations(work);
    all.iter().filter(|(one, _)| counts(one)).map(|(one, n)| one.flops().get() * *n as f64).sum()
}

fn body(model: &Model) -> &Layer {
    model.layers().find(|layer| layer.role == Role::Body).expect("a body")
}

#[test]
fn ranks_together_do_the_models_work() {
    for name in ["gpt-3-6.7b", "llama-3-8b", "mixtral-8x7b", "bert-large"] {
        let model = load(name).unwrap();
        let training = training(512, Precision::BF16);
        let software = Software::megatron();
        for (layout, ranks) in [("tp=1", 1.0), ("tp=8", 8.0), ("tp=8,sp", 8.0)] {
            let slice = slice(layout, 8, &training, &software);
            for layer in model.layers().filter(|layer| layer.role == Role::Body) {
                let whole = layer.forward(&model.sample, Some(512)).get();
                let lowered = lower(layer, &slice);
                let done = flops(&lowered.forward) * ranks / slice.samples as f64;
                // Routers run whole on every rank, and tokens of an expert are rounded up.
                assert!((done / whole - 1.0).abs() < 0.02, "{name} {layout}: {done} of {whole}");
            }
        }
    }
}

#[test]
fn backward_is_twice_forward_and_splits_in_two() {
    for name in ["gpt-3-13b", "mixtral-8x7b"] {
        let model = load(name).unwrap();
        let training = training(2048, Precision::BF16);
        let slice = slice("tp=2", 2, &training, &Software::named("megatron-deepspeed").unwrap());
        let lowered = lower(body(&model), &slice);
        let ratio = flops(&lowered.backward) / flops(&lowered.forward);
        assert!((ratio - 2.0).abs() < 1e-9, "{name}: {ratio}");
        let parts = flops(&lowered.inputs) + flops(&lowered.weights);
        assert!((parts / flops(&lowered.backward) - 1.0).abs() < 1e-9, "{name}");
    }
}

/// s b h (34 + 5 a s / h) bytes per layer, and what tensor and sequence parallelism leave of it
/// (Korthikanti et al., equations 1, 2 and 4).
#[test]
fn activations_are_those_of_the_sequence_parallel_paper() {
    let spec = "[transformer]\nlayers = 4\nhidden = 4096\nheads = 32\nvocabulary = 51200\n\
                positions = 2048\nactivation = \"gelu\"\ndropout = true\n";
    let Ok(model) = foretrain_workload::spec::parse(spec, "gpt") else { panic!("a model") };
    let training = training(2048, Precision::F16);
    let software = Software::named("megatron-deepspeed").unwrap();
    let (s, h, a) = (2048.0, 4096.0, 32.0);
    let square = 5.0 * a * s / h;
    for (layout, devices, per_token) in [
        ("tp=1", 1, 34.0 + square),
        ("tp=8", 8, 10.0 + 24.0 / 8.0 + square / 8.0),
        ("tp=8,sp", 8, (34.0 + square) / 8.0),
    ] {
        let slice = slice(layout, devices, &training, &software);
        let kept = lower(body(&model), &slice).kept.as_f64();
        let published = s * h * per_token * slice.samples as f64;
        assert!((kept / published - 1.0).abs() < 0.02, "{layout}: {kept} of {published}");
    }
}

#[test]
fn sequence_parallelism_moves_as_much_as_tensor_parallelism() {
    let model = load("gpt-3-13b").unwrap();
    let training = training(2048, Precision::BF16);
    let sums = |layout: &str| {
        let slice = slice(layout, 8, &training, &Software::megatron());
        let mut forward = (0_u64, 0_u64);
        for work in lower(body(&model), &slice).forward {
            let (Work::Comm(comm) | Work::Beside { comm, .. }) = work else { continue };
            match comm.kind {
                CollectiveKind::AllReduce => forward.0 += 2 * comm.bytes.get(),
                CollectiveKind::AllGather | CollectiveKind::ReduceScatter => {
                    forward.1 += comm.bytes.get();
                }
                other => panic!("{other:?} in a dense layer"),
            }
        }
        forward
    };
    let (reduced, divided) = (sums("tp=8"), sums("tp=8,sp"));
    assert_eq!((reduced.1, divided.0), (0, 0));
    assert_eq!(reduced.0, divided.1);
    // Two all-reduces of s b h numbers forward.
    assert_eq!(reduced.0 / 2, 2 * 2048 * 5140 * 2);
}

/// Casts read what enters a product once and write it along both dimensions.
#[test]
fn eight_bit_products_are_preceded_by_casts() {
    let copies = |name: &str, precision| {
        let model = load(name).unwrap();
        let layer = model.layers().filter(|layer| layer.role == Role::Body).last().unwrap();
        let slice = slice("tp=1", 1, &training(2048, precision), &Software::megatron());
        let lowered = lower(layer, &slice);
        let casts = |work: &[Work]| -> u64 {
            let all = operations(work);
            let cast = |one: &Operation| match one {
                Operation::Memory(Memory { read, written, .. }) if read == written => read.get(),
                _ => 0,
            };
            all.iter().map(|(one, n)| cast(one) * n).sum()
        };
        (casts(&lowered.forward), casts(&lowered.backward))
    };
    let tokens = 2048;
    let (plain, cast) =
        (copies("llama-3-8b", Precision::BF16), copies("llama-3-8b", Precision::F8));
    // Inputs of the four products, and the gradients of their outputs; 2 bytes each.
    assert_eq!(cast.0 - plain.0, 2 * tokens * (4096 + 4096 + 4096 + 14336));
    assert_eq!(cast.1 - plain.1, 2 * tokens * (6144 + 4096 + 28672 + 4096));
    let experts = (copies("mixtral-8x7b", Precision::BF16), copies("mixtral-8x7b", Precision::F8));
    // Two experts per token.
    assert_eq!(experts.1.0 - experts.0.0, 2 * tokens * (4096 + 4096 + 2 * (4096 + 14336)));
}

fn attentions(model: &str, layout: &str, software: &Software) -> Vec<Attention> {
    let model = load(model).unwrap();
    let slice = slice(layout, 8, &training(65_536, Precision::BF16), software);
    let all = operations(&lower(body(&model), &slice).forward);
    let attention = |(one, _): &(Operation, u64)| match one {
        Operation::Attention(attention) => Some(*attention),
        _ => None,
    };
    all.iter().filter_map(attention).collect()
}

#[test]
fn contiguous_pieces_of_a_causal_sequence_leave_the_last_rank_most_to_do() {
    let balanced = Software::megatron();
    let contiguous = Software { balanced_context: false, ..Software::megatron() };
    let pairs = |software: &Software, ranks: u64| {
        let all = attentions("llama-3-8b", &format!("cp={ranks}"), software);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].queries, 65_536 / ranks);
        all[0].pairs()
    };
    for ranks in [2, 4, 8] {
        let ratio = pairs(&contiguous, ranks) / pairs(&balanced, ranks);
        // The last of n parts sees (2 n - 1) / n times the mean.
        let expected = (2.0 * ranks as f64 - 1.0) / ranks as f64;
        assert!((ratio / expected - 1.0).abs() < 1e-3, "{ranks}: {ratio} for {expected}");
    }
}

#[test]
fn software_chooses_the_kernel_of_attention() {
    let kernel = |name: &str| attentions("llama-3-8b", "tp=1", &Software::named(name).unwrap());
    assert_eq!(kernel("megatron")[0].kernel, AttentionKernel::Tuned);
    assert_eq!(kernel("fsdp")[0].kernel, AttentionKernel::Flash2);
    assert!(kernel("megatron-deepspeed").is_empty(), "scores are written out");
    let written_out = Software { attention: None, ..Software::megatron() };
    let model = load("llama-3-8b").unwrap();
    let training = training(2048, Precision::BF16);
    let keeps =
        |software: &Software| lower(body(&model), &slice("tp=1", 1, &training, software)).kept_core;
    assert_eq!(keeps(&Software::megatron()), Bytes::ZERO);
    // Scores of 32 heads, 2 bytes each.
    assert_eq!(keeps(&written_out), Bytes::new(32 * 2048 * 2048 * 2));
    let backward = |software: &Software| {
        let all = operations(&lower(body(&model), &slice("tp=1", 1, &training, software)).backward);
        all.into_iter().filter(|(one, _)| matches!(one, Operation::Attention(_))).count()
    };
    assert_eq!((backward(&Software::megatron()), backward(&written_out)), (1, 0));
}

/// Keys end in the rotated part that all heads share, so both keys and values are written anew.
#[test]
fn latent_attention_packs_its_keys_and_values() {
    let model = load("deepseek-v2").unwrap();
    let layer = body(&model);
    let kind = |op: &&Op| matches!(op.kind, OpKind::Elementwise { what: Elementwise::Rotary, .. });
    let rotary = layer.ops.iter().find(kind).expect("rotates");
    let OpKind::Elementwise { width, .. } = rotary.kind else { panic!("elementwise") };
    assert_eq!(width, 128 * (64 + 128 + 128));
}
