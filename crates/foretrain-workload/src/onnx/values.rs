//! What is known of each value of a graph: shapes, weights, small constants.

use std::collections::{BTreeMap, HashMap};

use foretrain_core::{InputError, Result};

use super::message::{NodeProto, TensorProto, ValueInfoProto};
use super::read::Graph;
use super::shape::{Operands, Shape, numbers};

/// What a symbolic dimension that is not the batch is taken to be.
const USUAL: u64 = 128;

/// More of them would not be read.
const MOST_ASSUMPTIONS: usize = 50;

/// A trainable tensor, maybe turned or reshaped.
#[derive(Clone)]
pub(super) struct Weight {
    /// Which of the file's tensors.
    pub(super) tensor: usize,
    pub(super) shape: Shape,
}

/// Everything known so far.
#[derive(Default)]
pub(super) struct Values {
    shapes: HashMap<String, Shape>,
    weights: HashMap<String, Weight>,
    integers: HashMap<String, Vec<i64>>,
    /// Whether a tensor has been counted with an operation.
    counted: Vec<bool>,
    /// Samples that the graph was written for.
    batch: u64,
    /// Values that hold scores of attention: which, and the width of a head.
    scores: HashMap<String, (usize, u64)>,
    /// Whether the scores of this number were multiplied by values.
    joined: Vec<bool>,
    assumed: Vec<String>,
    /// Operations that are not known, how many, and how many of them without a shape.
    strange: BTreeMap<String, (u64, u64)>,
}

impl Values {
    pub(super) fn of(graph: &Graph) -> Result<Self> {
        let mut values = Self { batch: 1, ..Self::default() };
        for constant in &graph.constants {
            values.add_constant(&constant.name, constant, true)?;
        }
        let is_weight = |input: &&ValueInfoProto| values.shapes.contains_key(&input.name);
        let inputs: Vec<&ValueInfoProto> = graph.inputs.iter().filter(|i| !is_weight(i)).collect();
        if let Some(first) = inputs
            .first()
            .and_then(|input| dimensions(input))
            .and_then(|d| d.first().and_then(|(size, _)| *size))
        {
            values.batch = first.max(1);
        }
        for value in inputs.into_iter().chain(&graph.values) {
            values.add_declared(value);
        }
        Ok(values)
    }

    /// A constant of the file or of a node; only those of the file are trained.
    fn add_constant(&mut self, name: &str, tensor: &TensorProto, trains: bool) -> Result<()> {
        let sides = tensor.dims.iter().map(|side| u64::try_from(*side).ok());
        let shape: Option<Shape> = sides.collect();
        let Some(shape) = shape.filter(|shape| numbers(shape).is_some()) else {
            let message = format!("the constant {:?} has an impossible shape", cut(name));
            return Err(InputError::new(message));
        };
        if let Some(integers) = tensor.integers() {
            self.integers.insert(name.to_owned(), integers);
        }
        // Scalars are settings, not weights.
        if trains && tensor.is_float() && !shape.is_empty() {
            let weight = Weight { tensor: self.counted.len(), shape: shape.clone() };
            self.counted.push(false);
            self.weights.insert(name.to_owned(), weight);
        }
        self.shapes.insert(name.to_owned(), shape);
        Ok(())
    }

    fn add_declared(&mut self, value: &ValueInfoProto) {
        let Some(dimensions) = dimensions(value) else { return };
        let mut shape = Shape::new();
        for (at, (size, symbol)) in dimensions.into_iter().enumerate() {
            shape.push(match size {
                Some(size) => size,
                None if at == 0 => self.batch,
                None => {
                    let what = format!(
                        "the dimension {:?} of the input is not given: {USUAL}",
                        cut(symbol.unwrap_or("unnamed"))
                    );
                    self.assume(what);
                    USUAL
                }
            });
        }
        if numbers(&shape).is_some() {
            self.shapes.insert(value.name.clone(), shape);
        }
    }

    pub(super) fn assume(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.assumed.len() < MOST_ASSUMPTIONS && !self.assumed.contains(&what) {
            self.assumed.push(what);
        }
    }

    /// Counts an operation that nobody knows.
    pub(super) fn stranger(&mut self, name: &str, has_shape: bool) {
        let count = self.strange.entry(cut(name).to_owned()).or_default();
        count.0 += 1;
        count.1 += u64::from(!has_shape);
    }

    /// What was assumed, and what was not understood.
    pub(super) fn assumptions(&self) -> Vec<String> {
        let mut all = self.assumed.clone();
        if self.batch > 1 {
            let batch = self.batch;
            all.push(format!("written for a batch of {batch}; all sizes are per sample"));
        }
        all.extend(self.strange.iter().map(|(name, (count, blind))| {
            let rest = match blind {
                0 => "counted by their bytes".to_owned(),
                blind => format!("{blind} of them not counted at all, as no shape is known"),
            };
            format!("{count} operations {name} are not known: {rest}")
        }));
        all
    }

    /// The shape per graph, not per sample.
    pub(super) fn shape(&self, name: &str) -> Option<&Shape> {
        self.shapes.get(name)
    }

    /// Numbers of a value in one sample.
    pub(super) fn sample_numbers(&self, name: &str) -> Option<u64> {
        self.shape(name).and_then(|shape| numbers(shape)).map(|all| self.per_sample(all))
    }

    /// A count that goes with the batch, for one sample.
    pub(super) fn per_sample(&self, count: u64) -> u64 {
        if count.is_multiple_of(self.batch) { count / self.batch } else { count }
    }

    pub(super) fn weight(&self, name: &str) -> Option<&Weight> {
        self.weights.get(name)
    }

    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.weights.contains_key(name) || self.integers.contains_key(name)
    }

    /// Numbers of a weight the first time it is asked for; later uses share it.
    pub(super) fn count(&mut self, weight: &Weight) -> Option<u64> {
        let counted = self.counted.get_mut(weight.tensor)?;
        if std::mem::replace(counted, true) { None } else { numbers(&weight.shape) }
    }

    /// A stacked product may be scores of attention.
    pub(super) fn begin_scores(&mut self, name: &str, head_dim: u64) {
        self.scores.insert(name.to_owned(), (self.joined.len(), head_dim));
        self.joined.push(false);
    }

    /// Scores stay scores when they are scaled, masked and normalised.
    pub(super) fn follow_scores(&mut self, node: &NodeProto) -> Option<usize> {
        let output = node.output.first()?;
        let found = node.input.iter().chain([output]).find_map(|name| self.scores.get(name));
        let found = *found?;
        self.scores.insert(output.clone(), found);
        Some(found.0)
    }

    /// The width of a head of these scores, which are now multiplied by values.
    pub(super) fn join_scores(&mut self, name: &str) -> Option<u64> {
        let (which, head_dim) = *self.scores.get(name)?;
        *self.joined.get_mut(which)? = true;
        Some(head_dim)
    }

    /// Whether these scores were attention's.
    pub(super) fn is_joined(&self, scores: usize) -> bool {
        self.joined.get(scores).copied().unwrap_or(false)
    }

    /// Takes a constant node's value; `false` if it is another kind of node.
    pub(super) fn take_constant(&mut self, node: &NodeProto) -> bool {
        if node.op_type != "Constant" {
            return false;
        }
        if let (Some(name), Some(tensor)) = (node.output.first(), node.tensor("value"))
            && self.add_constant(name, tensor, false).is_err()
        {
            self.assume(format!("the constant {:?} has an impossible shape", cut(name)));
        }
        true
    }

    /// Works out the shapes of a node's results, where the file does not declare them.
    pub(super) fn infer(&mut self, node: &NodeProto) {
        let Some(output) = node.output.first() else { return };
        if !self.shapes.contains_key(output) {
            let shapes: Vec<_> = node.input.iter().map(|name| self.shapes.get(name)).collect();
            let integers: Vec<_> =
                node.input.iter().map(|name| self.integers.get(name).map(Vec::as_slice)).collect();
            let operands = Operands { node, shapes: &shapes, integers: &integers };
            let Some(shape) = operands.infer() else { return };
            if node.op_type == "Split" {
                for other in node.output.iter().skip(1) {
                    self.shapes.entry(other.clone()).or_insert_with(|| shape.clone());
                }
            }
            self.shapes.insert(output.clone(), shape);
        }
        // A weight that is turned, reshaped or cast is still that weight.
        let turns = matches!(
            node.op_type.as_str(),
            "Transpose" | "Reshape" | "Cast" | "Identity" | "Squeeze" | "Unsqueeze"
        );
        if turns
            && let Some(weight) = node.input.first().and_then(|name| self.weights.get(name))
            && let Some(shape) = self.shapes.get(output)
        {
            let weight = Weight { tensor: weight.tensor, shape: shape.clone() };
            self.weights.insert(output.clone(), weight);
        }
    }
}

/// Sizes and symbols of a declared shape.
fn dimensions(value: &ValueInfoProto) -> Option<Vec<(Option<u64>, Option<&str>)>> {
    let shape = value.r#type.as_ref()?.tensor_type.as_ref()?.shape.as_ref()?;
    let size = |size: i64| u64::try_from(size).ok().filter(|size| *size > 0);
    let each = shape.dim.iter().map(|dim| (dim.dim_value.and_then(size), dim.dim_param.as_deref()));
    (shape.dim.len() <= 16).then(|| each.collect())
}

/// Enough of a name for a message.
pub(super) fn cut(name: &str) -> &str {
    name.char_indices().nth(60).map_or(name, |(at, _)| &name[..at])
}
