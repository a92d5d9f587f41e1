//! A small model, as PyTorch would record it.

use foretrain_core::Ledger;
use foretrain_ingest::execution_trace::operators;
use foretrain_workload::Model;
use foretrain_workload::model::{OpKind, SelfAttention};
use serde_json::{Value, json};

use super::of_operators;

/// A recording under construction.
#[derive(Default)]
struct Trace {
    nodes: Vec<Value>,
    /// The frame that calls come from.
    frame: u64,
}

/// A tensor: its storage, the offset in it and its extents.
#[derive(Clone)]
struct T(i64, i64, Vec<u64>);

fn t(storage: i64, shape: &[u64]) -> T {
    T(storage, 0, shape.to_vec())
}

impl Trace {
    fn new() -> Self {
        let mut trace = Self::default();
        trace.frame = trace.node("[pytorch|profiler|execution_trace|thread]", 0, &[], &[]);
        trace
    }

    fn node(&mut self, name: &str, parent: u64, inputs: &[T], outputs: &[T]) -> u64 {
        let id = self.nodes.len() as u64 + 1;
        let side = |tensors: &[T]| {
            let value = |tensor: &T| {
                let T(storage, offset, shape) = tensor;
                json!([1000 + storage, storage, offset, shape.iter().product::<u64>(), 4, "cuda:0"])
            };
            let shapes: Vec<&Vec<u64>> = tensors.iter().map(|tensor| &tensor.2).collect();
            let values: Vec<Value> = tensors.iter().map(value).collect();
            json!({"values": values, "shapes": shapes, "types": []})
        };
        self.nodes.push(json!({
            "id": id, "name": name, "ctrl_deps": parent, "attrs": [],
            "inputs": side(inputs), "outputs": side(outputs),
        }));
        id
    }

    fn call(&mut self, name: &str, inputs: &[T], output: &T) -> u64 {
        self.node(&format!("aten::{name}"), self.frame, inputs, std::slice::from_ref(output))
    }

    /// A linear layer as PyTorch calls it.
    fn linear(&mut self, data: &T, weight: i64, [inputs, outputs]: [u64; 2], output: &T) {
        let weights = [t(weight, &[outputs, inputs]), t(weight + 1, &[outputs])];
        let linear =
            self.call("linear", &[data.clone(), weights[0].clone(), weights[1].clone()], output);
        let turned = t(weight, &[inputs, outputs]);
        self.node("aten::t", linear, &weights[..1], std::slice::from_ref(&turned));
        let addmm = [weights[1].clone(), data.clone(), turned];
        self.node("aten::addmm", linear, &addmm, std::slice::from_ref(output));
    }

    fn model(&self) -> Model {
        let text = json!({"schema": "1.1.1-chakra.0.0.4", "nodes": self.nodes}).to_string();
        let calls = operators(text.as_bytes(), "own.json", &mut Ledger::new()).unwrap();
        of_operators(&calls, "own").unwrap()
    }
}

/// Batch 2, 8 tokens, width 16, 4 heads, vocabulary 32: one layer of attention written out, a tied
/// head. Weights lie in storages from 100 on.
fn transformer(trace: &mut Trace) {
    let x = |at: i64| t(at, &[2, 8, 16]);
    trace.call("embedding", &[t(100, &[32, 16]), t(1, &[2, 8])], &x(2));
    trace.call("layer_norm", &[x(2), t(0, &[]), t(102, &[16]), t(103, &[16])], &x(3));
    trace.linear(&x(3), 104, [16, 48], &t(4, &[2, 8, 48]));
    trace.call("bmm", &[t(4, &[8, 8, 4]), t(4, &[8, 4, 8])], &t(5, &[8, 8, 8]));
    trace.call("div", &[t(5, &[8, 8, 8])], &t(6, &[8, 8, 8]));
    trace.call("softmax", &[t(6, &[8, 8, 8])], &t(7, &[8, 8, 8]));
    trace.call("bmm", &[t(7, &[8, 8, 8]), t(4, &[8, 8, 4])], &t(8, &[8, 8, 4]));
    trace.linear(&t(8, &[2, 8, 16]), 106, [16, 16], &x(9));
    trace.call("add", &[x(2), x(9)], &x(10));
    let head = [x(10), t(100, &[32, 16])];
    trace.call("linear", &head, &t(11, &[2, 8, 32]));
    trace.call("cross_entropy_loss", &[t(11, &[16, 32]), t(12, &[16])], &t(13, &[]));
}

const PARAMETERS: u64 = 32 * 16 + 2 * 16 + 48 * 17 + 16 * 17;

#[test]
fn parameters_and_attention_are_found() {
    let mut trace = Trace::new();
    transformer(&mut trace);
    let model = trace.model();
    assert_eq!(model.parameters(), PARAMETERS);
    let ops: Vec<_> = model.layers().flat_map(|layer| &layer.ops).collect();
    let attention: Vec<&SelfAttention> = ops
        .iter()
        .filter_map(|op| if let OpKind::Attention(of) = &op.kind { Some(of) } else { None })
        .collect();
    let [found] = attention[..] else { panic!("one attention") };
    assert_eq!((found.heads, found.head_dim, found.value_dim, found.causal), (4, 4, 4, false));
    // Scores are scaled and weighed inside one kernel.
    assert_eq!(ops.len(), 8, "{:?}", ops.iter().map(|op| &op.name).collect::<Vec<_>>());
    let head = ops.iter().rfind(|op| matches!(op.kind, OpKind::Linear { .. })).unwrap();
    assert!(head.tied && head.parameters() == 0);
    // Per sample: products of linear layers and of attention, and eight a number of the norm.
    let linear = 2.0 * 8.0 * (16.0 * 48.0 + 16.0 * 16.0 + 16.0 * 32.0);
    let work = linear + 2.0 * 2.0 * 4.0 * 8.0 * 8.0 * 4.0 + 8.0 * 8.0 * 16.0;
    assert!((model.forward(None).get() - work).abs() < 1.0, "{}", model.forward(None).get());
    assert!(model.assumptions[0].contains("2 samples"), "{:?}", model.assumptions);
    assert!(model.assumptions[1].contains("no gradients"), "{:?}", model.assumptions);
}

/// Updates, gradients and a second step change nothing; gradients confirm the weights.
#[test]
fn a_whole_step_is_its_forward_pass() {
    let mut trace = Trace::new();
    let mut alone = Trace::new();
    transformer(&mut alone);
    for step in 0..2 {
        let frame = trace.frame;
        trace.frame = trace.node(&format!("ProfilerStep#{step}"), frame, &[], &[]);
        transformer(&mut trace);
        let engine =
            trace.node("autograd::engine::evaluate_function: MmBackward0", frame, &[], &[]);
        trace.node("aten::mm", engine, &[t(11, &[16, 32]), t(100, &[32, 16])], &[t(20, &[16, 16])]);
        for elements in [32 * 16, 16, 16, 48 * 16, 48, 16 * 16, 16] {
            trace.node("torch::autograd::AccumulateGrad", engine, &[t(30, &[elements])], &[]);
        }
        let update = trace.node("Optimizer.step#Adam.step", frame, &[], &[]);
        trace.node("aten::mul", update, &[t(100, &[32, 16])], &[t(100, &[32, 16])]);
        trace.frame = frame;
    }
    let (whole, alone) = (trace.model(), alone.model());
    assert_eq!(whole.parameters(), PARAMETERS);
    assert_eq!(whole.blocks.len(), alone.blocks.len());
    assert_eq!(whole.forward(None), alone.forward(None));
    assert_eq!(whole.assumptions.len(), 1, "{:?}", whole.assumptions);
}

/// Without marks, a second pass over the same weights is the same pass again.
#[test]
fn repetitions_are_taken_once() {
    let (mut twice, mut once) = (Trace::new(), Trace::new());
    for _ in 0..3 {
        twice.linear(&t(1, &[4, 8]), 100, [8, 16], &t(2, &[4, 16]));
        twice.call("relu", &[t(2, &[4, 16])], &t(3, &[4, 16]));
        twice.linear(&t(3, &[4, 16]), 102, [16, 8], &t(4, &[4, 8]));
    }
    once.linear(&t(1, &[4, 8]), 100, [8, 16], &t(2, &[4, 16]));
    once.call("relu", &[t(2, &[4, 16])], &t(3, &[4, 16]));
    once.linear(&t(3, &[4, 16]), 102, [16, 8], &t(4, &[4, 8]));
    assert_eq!(twice.model().forward(None), once.model().forward(None));
    assert_eq!(twice.model().parameters(), 8 * 16 + 16 + 16 * 8 + 8);
}

/// A norm written out, in half precision: copies of weights are the weights, masks are not.
#[test]
fn weights_are_told_from_masks_and_copies() {
    let mut trace = Trace::new();
    let x = |at: i64| t(at, &[2, 8, 16]);
    trace.call("embedding", &[t(100, &[32, 16]), t(1, &[2, 8])], &x(2));
    trace.call("pow", &[x(2)], &x(3));
    trace.call("mul", &[t(102, &[16]), x(3)], &x(4));
    trace.call("arange", &[], &t(50, &[8]));
    trace.call("lt", &[t(50, &[8])], &t(51, &[8]));
    trace.call("_to_copy", &[t(104, &[16, 16])], &t(60, &[16, 16]));
    trace.call("linear", &[x(4), t(60, &[16, 16])], &x(5));
    trace.call("linear", &[x(5), t(60, &[16, 16])], &x(6));
    let model = trace.model();
    assert_eq!(model.parameters(), 32 * 16 + 16 + 16 * 16);
    let names: Vec<_> = model.layers().flat_map(|layer| &layer.ops).map(|op| &op.name).collect();
    assert!(!names.iter().any(|name| name.starts_with("lt")), "{names:?}");
}

#[test]
fn what_describes_no_model_is_refused() {
    let empty = of_operators(&[], "none").unwrap_err();
    assert!(empty.message().contains("no operators of a forward pass"), "{empty}");
    let mut trace = Trace::new();
    trace.node("Optimizer.step#SGD.step", 1, &[], &[]);
    let text = json!({"schema": "1.0.1", "nodes": trace.nodes}).to_string();
    let calls = operators(text.as_bytes(), "own.json", &mut Ledger::new()).unwrap();
    assert!(of_operators(&calls, "none").is_err());
}
