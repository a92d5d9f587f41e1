//! What two layers must have in common to hold the same weights.

use std::fmt;

use foretrain_core::{Bytes, DType};

/// What a layer's weights do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Filters.
    Convolution,
    /// A matrix that inputs are multiplied by.
    Linear,
    /// A table that rows are picked from.
    Embedding,
    /// The matrices of all routed experts.
    Experts,
    /// The gates of a recurrent layer.
    Recurrent,
    /// Weights of which only the shape is known.
    Tensor,
}

/// How a convolution goes over its input. It does not change the shape of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Geometry {
    /// Steps between applications.
    pub stride: u64,
    /// Rows and columns of zeros around the input.
    pub padding: (u64, u64),
    /// Steps between the filter's own places.
    pub dilation: u64,
    /// Groups of channels that do not mix.
    pub groups: u64,
}

/// What identifies a layer that may be shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature {
    /// What its weights do.
    pub kind: Kind,
    /// Extents of the weights: of filters and matrices outputs first, then inputs.
    pub shape: Vec<u64>,
    /// Whether it adds a bias.
    pub bias: bool,
    /// Type of the weights.
    pub dtype: DType,
    /// Of a convolution, if the model's description tells; `None` of all others.
    pub geometry: Option<Geometry>,
}

/// Which layers count as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Those that are equal in all they do. GEMEL's published code collects layers so, and layers
    /// that also work at the same resolution are the likelier to agree on weights.
    #[default]
    Exact,
    /// Strides may differ, as in GEMEL's comparison of what it has collected.
    AnyStride,
    /// Weights of equal shape and type. The only rule for files that hold weights alone.
    Weights,
}

impl Signature {
    /// What must be equal under a rule.
    pub(super) fn key(&self, rule: Rule) -> Self {
        let mut key = self.clone();
        match rule {
            Rule::Exact => {}
            Rule::AnyStride => {
                if let Some(geometry) = &mut key.geometry {
                    geometry.stride = 0;
                }
            }
            Rule::Weights => {
                key.kind = Kind::Tensor;
                key.geometry = None;
            }
        }
        key
    }

    /// Whether all that a rule compares is known.
    pub(super) fn is_known(&self, rule: Rule) -> bool {
        match self.kind {
            Kind::Convolution => self.geometry.is_some() || rule == Rule::Weights,
            Kind::Tensor => rule == Rule::Weights,
            _ => true,
        }
    }

    /// Numbers that the weights and the bias hold, the bias as long as the first extent.
    pub fn elements(&self) -> u64 {
        let weights = self.shape.iter().fold(1_u64, |all, &side| all.saturating_mul(side));
        let bias = if self.bias { self.shape.first().copied().unwrap_or(0) } else { 0 };
        weights.saturating_add(bias)
    }

    /// What weights and bias take.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.dtype.bytes_of(self.elements()))
    }
}

impl fmt::Display for Signature {
    /// One line without commas, so that tables can name layers by it:
    /// `conv 64->128 3x3 stride 2 padding 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.shape.as_slice()) {
            (Kind::Convolution, &[outputs, inputs, rows, columns]) => {
                let groups = self.geometry.map_or(1, |geometry| geometry.groups);
                write!(f, "conv {}->{outputs} {rows}x{columns}", inputs.saturating_mul(groups))?;
                if let Some(geometry) = self.geometry {
                    geometry.write(f)?;
                }
            }
            (Kind::Linear, &[outputs, inputs]) => write!(f, "linear {inputs}->{outputs}")?,
            (kind, shape) => {
                let name = match kind {
                    Kind::Convolution => "conv",
                    Kind::Linear => "linear",
                    Kind::Embedding => "embedding",
                    Kind::Experts => "experts",
                    Kind::Recurrent => "recurrent",
                    Kind::Tensor => "tensor",
                };
                let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
                write!(f, "{name} {}", shape.join("x"))?;
            }
        }
        if self.bias {
            f.write_str(" bias")?;
        }
        if self.dtype == DType::F32 { Ok(()) } else { write!(f, " {}", self.dtype.as_str()) }
    }
}

impl Geometry {
    /// What is not as usual; a stride of 0 stands for any.
    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stride {
            0 => f.write_str(" any stride")?,
            1 => {}
            stride => write!(f, " stride {stride}")?,
        }
        match self.padding {
            (0, 0) => {}
            (rows, columns) if rows == columns => write!(f, " padding {rows}")?,
            (rows, columns) => write!(f, " padding {rows}x{columns}")?,
        }
        if self.dilation != 1 {
            write!(f, " dilation {}", self.dilation)?;
        }
        if self.groups != 1 {
            write!(f, " groups {}", self.groups)?;
        }
        Ok(())
    }
}
