//! A model as the list of its layers that could be shared.

use foretrain_core::{Bytes, DType};
use foretrain_workload::Model;
use foretrain_workload::model::{Conv2d, Op, OpKind, Parameter};

use super::signature::{Geometry, Kind, Signature};

/// A layer that could be shared.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelLayer {
    /// Where it is in the model: `12.layer3.0.conv2`.
    pub name: String,
    /// What identifies it.
    pub signature: Signature,
    /// What its weights and bias take.
    pub bytes: Bytes,
}

/// A model's layers. Norms are no part of them: they hold little, and each model's statistics are
/// its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelLayers {
    /// The model's name.
    pub name: String,
    /// Layers that could be shared, in forward order (of files: by name).
    pub layers: Vec<ModelLayer>,
    /// What other weights take: norms and loose vectors.
    pub private: Bytes,
}

impl ModelLayers {
    /// The layers of a described model whose weights are of one type.
    pub fn of(model: &Model, dtype: DType) -> Self {
        let mut found = Self { name: model.name.clone(), ..Self::default() };
        for (number, layer) in model.layers().enumerate() {
            for op in &layer.ops {
                found.add(&format!("{number}.{}.{}", layer.name, op.name), op, dtype);
            }
        }
        found
    }

    /// What the layers that could be shared take.
    pub fn bytes(&self) -> Bytes {
        self.layers.iter().map(|layer| layer.bytes).sum()
    }

    fn add(&mut self, name: &str, op: &Op, dtype: DType) {
        // Products that an operation does as one, such as queries, keys and values, are layers of
        // their own.
        let part = |parameter: &Parameter| parameter.name.rsplit_once('.').map_or("", |(a, _)| a);
        let fused = !matches!(op.kind, OpKind::Linear { .. });
        for tensors in op.parameters.chunk_by(|a, b| fused || part(a) == part(b)) {
            let elements: u64 = tensors.iter().map(|tensor| tensor.elements).sum();
            let bytes = Bytes::new(dtype.bytes_of(elements));
            let Some(signature) = signature(&op.kind, tensors, dtype) else {
                self.private += bytes;
                continue;
            };
            let part = part(&tensors[0]);
            let dot = if part.is_empty() { "" } else { "." };
            self.layers.push(ModelLayer { name: format!("{name}{dot}{part}"), signature, bytes });
        }
    }
}

fn signature(kind: &OpKind, tensors: &[Parameter], dtype: DType) -> Option<Signature> {
    let is_bias = |tensor: &Parameter| tensor.name.ends_with("bias");
    let bias = tensors.iter().any(is_bias);
    let weights: u64 = tensors.iter().filter(|t| !is_bias(t)).map(|tensor| tensor.elements).sum();
    let (kind, shape, geometry) = match *kind {
        _ if weights == 0 => return None,
        OpKind::Convolution(conv) => (
            Kind::Convolution,
            vec![conv.outputs, conv.inputs.checked_div(conv.groups)?, conv.kernel.0, conv.kernel.1],
            geometry(&conv),
        ),
        OpKind::Linear { inputs, .. } => {
            (Kind::Linear, vec![weights.checked_div(inputs)?, inputs], None)
        }
        OpKind::Router { width, experts, .. } => (Kind::Linear, vec![experts, width], None),
        OpKind::Embedding { rows, width, .. } => (Kind::Embedding, vec![rows, width], None),
        OpKind::Experts(experts) => {
            let products = weights.checked_div(experts.experts * experts.width * experts.hidden)?;
            let shape = vec![experts.experts, products, experts.hidden, experts.width];
            (Kind::Experts, shape, None)
        }
        OpKind::Recurrent { inputs, hidden, gates, directions, .. } => {
            (Kind::Recurrent, vec![directions, gates, hidden, inputs], None)
        }
        _ => return None,
    };
    Some(Signature { kind, shape, bias, dtype, geometry })
}

fn geometry(conv: &Conv2d) -> Option<Geometry> {
    let &Conv2d { stride, dilation, groups, .. } = conv;
    Some(Geometry { stride, padding: conv.padding?, dilation, groups })
}
