//! Shapes of results from shapes of operands, for the operations that models are made of.

use super::message::NodeProto;

/// A shape with the batch dimension, all of it known.
pub(super) type Shape = Vec<u64>;

/// No tensor has more; lists of axes are no longer either.
const MOST_DIMENSIONS: usize = 64;

/// Numbers in a tensor; `None` beyond any tensor's size.
pub(super) fn numbers(shape: &[u64]) -> Option<u64> {
    const MOST: u64 = 1 << 48;
    if shape.len() > MOST_DIMENSIONS {
        return None;
    }
    shape
        .iter()
        .try_fold(1_u64, |product, side| product.checked_mul(*side))
        .filter(|numbers| *numbers <= MOST)
}

/// What a shape is inferred from.
pub(super) struct Operands<'a> {
    pub(super) node: &'a NodeProto,
    pub(super) shapes: &'a [Option<&'a Shape>],
    /// Integers of constant operands.
    pub(super) integers: &'a [Option<&'a [i64]>],
}

impl<'a> Operands<'a> {
    fn shape(&self, operand: usize) -> Option<&'a Shape> {
        self.shapes.get(operand).copied().flatten()
    }

    /// From an attribute in older versions of an operation, an operand in newer ones.
    fn list(&self, attribute: &str, operand: usize) -> Option<&'a [i64]> {
        let list = self.node.ints(attribute);
        let list = if list.is_empty() { self.integers.get(operand).copied()?? } else { list };
        (list.len() <= MOST_DIMENSIONS).then_some(list)
    }

    /// The shape of the first result; `None` where it does not follow.
    pub(super) fn infer(&self) -> Option<Shape> {
        let first = self.shape(0);
        let shape = match self.node.op_type.as_str() {
            "Conv" => self.convolved()?,
            "Gemm" => {
                let (a, b) = (first?, self.shape(1)?);
                let rows = if self.node.int("transA", 0) == 0 { a.first()? } else { a.get(1)? };
                let columns = if self.node.int("transB", 0) == 0 { b.get(1)? } else { b.first()? };
                vec![*rows, *columns]
            }
            "MatMul" => product(first?, self.shape(1)?)?,
            "MaxPool" | "AveragePool" | "LpPool" => {
                self.windowed(self.node.ints("kernel_shape"), first?)?
            }
            "GlobalAveragePool" | "GlobalMaxPool" => {
                first?.iter().enumerate().map(|(at, side)| if at < 2 { *side } else { 1 }).collect()
            }
            "Flatten" => {
                let axis = place(self.node.int("axis", 1), first?.len() + 1)?;
                let (rows, columns) = first?.split_at(axis);
                vec![numbers(rows)?, numbers(columns)?]
            }
            "Reshape" => reshaped(first?, self.integers.get(1).copied().flatten()?)?,
            "Transpose" => self.transposed(first?)?,
            "Concat" => self.concatenated()?,
            "Squeeze" => self.squeezed(first?)?,
            "Unsqueeze" => self.unsqueezed(first?)?,
            "Gather" => self.gathered(first?)?,
            "Split" => self.halved(first?)?,
            "ReduceMean" | "ReduceSum" | "ReduceMax" => self.reduced(first?)?,
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Where" | "Min" | "Max" | "PRelu" => {
                let mut shapes = self.shapes.iter();
                let start = (*shapes.next()?)?.clone();
                shapes.try_fold(start, |shape, other| broadcast(&shape, (*other)?))?
            }
            name if keeps_shape(name) => first?.clone(),
            _ => return None,
        };
        numbers(&shape).map(|_| shape)
    }

    fn convolved(&self) -> Option<Shape> {
        let (input, filter) = (self.shape(0)?, self.shape(1)?);
        let kernel: Vec<i64> =
            filter.iter().skip(2).map(|side| i64::try_from(*side).ok()).collect::<Option<_>>()?;
        let mut shape = self.windowed(&kernel, input)?;
        *shape.get_mut(1)? = *filter.first()?;
        Some(shape)
    }

    /// Sizes after a window has passed over all but the first two dimensions.
    fn windowed(&self, kernel: &[i64], input: &Shape) -> Option<Shape> {
        let (outer, inner) = (input.get(..2)?, input.get(2..)?);
        if inner.len() != kernel.len() {
            return None;
        }
        let of = |name: &str, at: usize, usual| {
            self.node
                .ints(name)
                .get(at)
                .copied()
                .map_or(Some(usual), |value| u64::try_from(value).ok())
        };
        let same = self.node.text("auto_pad").starts_with(b"SAME");
        let rounds_up = self.node.int("ceil_mode", 0) != 0;
        let mut shape = outer.to_vec();
        for (at, (&size, &window)) in inner.iter().zip(kernel).enumerate() {
            let stride = of("strides", at, 1)?.max(1);
            let spread = of("dilations", at, 1)?;
            let window =
                u64::try_from(window).ok()?.checked_sub(1)?.checked_mul(spread)?.checked_add(1)?;
            let pads = of("pads", at, 0)?.checked_add(of("pads", at + inner.len(), 0)?)?;
            shape.push(if same {
                size.div_ceil(stride)
            } else {
                let room = size.checked_add(pads)?.checked_sub(window)?;
                1 + if rounds_up { room.div_ceil(stride) } else { room / stride }
            });
        }
        Some(shape)
    }

    fn transposed(&self, input: &Shape) -> Option<Shape> {
        let order = self.node.ints("perm");
        if order.is_empty() {
            return Some(input.iter().rev().copied().collect());
        }
        order.iter().map(|at| input.get(usize::try_from(*at).ok()?).copied()).collect()
    }

    fn concatenated(&self) -> Option<Shape> {
        let mut shape = self.shape(0)?.clone();
        let axis = place(self.node.int("axis", 0), shape.len())?;
        for other in self.shapes.iter().skip(1) {
            let side = shape.get_mut(axis)?;
            *side = side.checked_add(*(*other)?.get(axis)?)?;
        }
        Some(shape)
    }

    fn squeezed(&self, input: &Shape) -> Option<Shape> {
        let axes = self.list("axes", 1)?;
        let axes: Vec<usize> =
            axes.iter().map(|axis| place(*axis, input.len())).collect::<Option<_>>()?;
        let kept = input.iter().enumerate().filter(|(at, _)| !axes.contains(at));
        Some(kept.map(|(_, side)| *side).collect())
    }

    fn unsqueezed(&self, input: &Shape) -> Option<Shape> {
        let axes = self.list("axes", 1)?;
        let rank = input.len() + axes.len();
        let axes: Vec<usize> = axes.iter().map(|axis| place(*axis, rank)).collect::<Option<_>>()?;
        let mut sides = input.iter();
        (0..rank)
            .map(|at| if axes.contains(&at) { Some(1) } else { sides.next().copied() })
            .collect()
    }

    fn gathered(&self, table: &Shape) -> Option<Shape> {
        let (indices, axis) = (self.shape(1)?, place(self.node.int("axis", 0), table.len())?);
        let (before, after) = (table.get(..axis)?, table.get(axis + 1..)?);
        Some([before, indices, after].concat())
    }

    fn halved(&self, input: &Shape) -> Option<Shape> {
        let mut shape = input.clone();
        let side = shape.get_mut(place(self.node.int("axis", 0), input.len())?)?;
        *side = match self.list("split", 1).and_then(<[i64]>::first) {
            Some(part) => u64::try_from(*part).ok()?,
            None => side.checked_div(self.node.output.len() as u64)?,
        };
        Some(shape)
    }

    fn reduced(&self, input: &Shape) -> Option<Shape> {
        let axes = self.list("axes", 1).unwrap_or_default();
        let axes: Vec<usize> =
            axes.iter().map(|axis| place(*axis, input.len())).collect::<Option<_>>()?;
        let keeps = self.node.int("keepdims", 1) != 0;
        let is_reduced = |at: usize| axes.is_empty() || axes.contains(&at);
        let sides = input.iter().enumerate().filter(|(at, _)| keeps || !is_reduced(*at));
        Some(sides.map(|(at, side)| if is_reduced(at) { 1 } else { *side }).collect())
    }
}

/// Operations whose result has their first operand's shape.
pub(super) fn keeps_shape(name: &str) -> bool {
    matches!(
        name,
        "BatchNormalization"
            | "LayerNormalization"
            | "InstanceNormalization"
            | "GroupNormalization"
            | "SimplifiedLayerNormalization"
            | "RMSNormalization"
            | "Relu"
            | "LeakyRelu"
            | "Elu"
            | "Selu"
            | "Gelu"
            | "Sigmoid"
            | "HardSigmoid"
            | "HardSwish"
            | "Swish"
            | "Mish"
            | "Tanh"
            | "Erf"
            | "Softplus"
            | "Clip"
            | "Softmax"
            | "LogSoftmax"
            | "Dropout"
            | "Identity"
            | "Cast"
            | "Sqrt"
            | "Exp"
            | "Log"
            | "Neg"
            | "Abs"
            | "Reciprocal"
            | "Cos"
            | "Sin"
            | "Not"
    )
}

/// An axis from 0; negative ones count from the end.
fn place(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

/// The shape of a product of stacks of matrices.
fn product(a: &Shape, b: &Shape) -> Option<Shape> {
    let (rows, columns) = (*a.get(a.len().checked_sub(2)?)?, *b.last()?);
    let stack = b.get(..b.len().checked_sub(2)?)?;
    let mut shape = broadcast(&a[..a.len() - 2].to_vec(), &stack.to_vec())?;
    shape.extend([rows, columns]);
    Some(shape)
}

fn broadcast(a: &Shape, b: &Shape) -> Option<Shape> {
    let rank = a.len().max(b.len());
    let side =
        |shape: &Shape, at: usize| (at + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
    (0..rank)
        .map(|at| match (side(a, at), side(b, at)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// A reshaping: 0 keeps a dimension, -1 takes what is left.
fn reshaped(input: &Shape, wanted: &[i64]) -> Option<Shape> {
    let mut shape: Vec<Option<u64>> = wanted
        .iter()
        .enumerate()
        .map(|(at, side)| match side {
            -1 => Some(None),
            0 => input.get(at).map(|side| Some(*side)),
            side => u64::try_from(*side).ok().map(Some),
        })
        .collect::<Option<_>>()?;
    let known: Vec<u64> = shape.iter().flatten().copied().collect();
    let rest = numbers(input)?.checked_div(numbers(&known)?)?;
    if let Some(open) = shape.iter_mut().find(|side| side.is_none()) {
        *open = Some(rest);
    }
    shape.into_iter().collect()
}
