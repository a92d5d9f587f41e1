//! The operations of perceptrons and of experts.

use super::shape::{MixtureOfExperts, Perceptron};
use crate::model::{Elementwise, Experts, Op, OpKind, Split};

impl Perceptron {
    /// From the normalised stream to what is added to it.
    pub(super) fn ops(&self, prefix: &str, hidden: u64) -> Vec<Op> {
        let named = |part: &str| format!("{prefix}.{part}");
        let up = |op: Op, weight, bias| {
            let op = op.with(weight, hidden * self.inner, true);
            if self.bias { op.with(bias, self.inner, true) } else { op }
        };
        let outputs = if self.gated { 2 * self.inner } else { self.inner };
        let mut op =
            Op::new(named("up"), OpKind::Linear { inputs: hidden, outputs }, Split::Columns);
        if self.gated {
            op = up(op, "gate.weight", "gate.bias");
        }
        let what = match (self.gated, self.relu) {
            (true, _) => Elementwise::Gated,
            (false, true) => Elementwise::Relu,
            (false, false) => Elementwise::Activation,
        };
        let activation = OpKind::Elementwise { what, width: self.inner };
        let kind = OpKind::Linear { inputs: self.inner, outputs: hidden };
        let down = Op::new(named("down"), kind, Split::Rows);
        let down = down.with("weight", self.inner * hidden, true);
        vec![
            up(op, "up.weight", "up.bias"),
            Op::new(named("activation"), activation, Split::Inner),
            if self.bias { down.with("bias", hidden, false) } else { down },
        ]
    }
}

impl MixtureOfExperts {
    /// From the normalised stream to what is added to it.
    pub(super) fn ops(&self, hidden: u64) -> Vec<Op> {
        let (experts, top_k) = (self.experts, self.top_k);
        let kind = OpKind::Router { width: hidden, experts, top_k };
        let router = Op::new("router", kind, Split::Outer).with("weight", hidden * experts, false);
        let router = match self.router_bias {
            0 => router,
            biases => router.with("bias", biases * experts, false),
        };
        let shape =
            Experts { experts, top_k, width: hidden, hidden: self.inner, gated: self.gated };
        let mut routed = Op::new("experts", OpKind::Experts(shape), Split::Experts);
        // The router keeps the same input.
        routed.keeps_input = false;
        let weights = experts * hidden * self.inner;
        if self.gated {
            routed = routed.with("gate.weight", weights, true);
        }
        routed = routed.with("up.weight", weights, true).with("down.weight", weights, true);
        if self.bias {
            let ups = if self.gated { 2 } else { 1 };
            routed = routed.with("up.bias", experts * ups * self.inner, true).with(
                "down.bias",
                experts * hidden,
                true,
            );
        }
        let mut ops = vec![router, routed];
        if self.shared > 0 {
            ops.extend(self.shared_ops(hidden));
        }
        ops
    }

    fn shared_ops(&self, hidden: u64) -> Vec<Op> {
        let perceptron =
            Perceptron { inner: self.shared, gated: self.gated, relu: false, bias: self.bias };
        let mut ops = perceptron.ops("shared", hidden);
        for op in ops.iter_mut().take(1) {
            op.keeps_input = false;
        }
        if self.shared_gate {
            let kind = OpKind::Linear { inputs: hidden, outputs: 1 };
            let mut gate =
                Op::new("shared.score", kind, Split::Whole).with("weight", hidden, false);
            gate.keeps_input = false;
            let kind = OpKind::Elementwise { what: Elementwise::Scale, width: hidden };
            ops.extend([gate, Op::new("shared.scale", kind, Split::Outer)]);
        }
        ops
    }
}
