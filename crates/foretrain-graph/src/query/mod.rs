//! Selecting nodes by what they are, where they run and what attributes they carry.

mod evaluate;
mod parse;
mod text;

use foretrain_core::DType;

use crate::glob::Glob;
use crate::kinds::{CollectiveKind, NodeKind, Phase};

/// A condition on nodes. Build it with the functions below or [parse](Query::parse) it from text,
/// then [select](crate::StepGraph::select) the nodes for which it holds.
///
/// # Text form
///
/// ```text
/// query   = term { "|" term }            or, also written `or`
/// term    = factor { "&" factor }        and, also written `and`; binds tighter than or
/// factor  = "!" factor | "(" query ")" | atom          `not` for "!"
/// atom    = "all" | KIND | KIND "(" GLOB ")"           kernel("*gemm*")
///         | ("collective" | "p2p") "(" OPERATION ")"   collective(all-reduce)
///         | ("kind" | "phase" | "collective" | "dtype") ":" WORD
///         | ("name" | "module" | "queue" | "group" | "role") ":" GLOB
///         | ("work" | "bytes" | "priority" | "sequence") COMPARE NUMBER    work>10us, bytes>=1MiB
///         | "attr" ":" NAME [ COMPARE VALUE ]          attr:tokens>7; without COMPARE: is set
/// COMPARE = "=" "!=" "<" "<=" ">" ">=" "~"             "~" is a glob on text
/// ```
///
/// Globs and values are bare words or stand in double quotes, in which `\"` is a quote and `\\` a
/// backslash. A cell that is not set meets no comparison, not even `!=`.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// Every node.
    All,
    /// Nodes of a kind.
    Kind(NodeKind),
    /// Nodes of a part of the step.
    Phase(Phase),
    /// Nodes whose name matches.
    Name(Glob),
    /// Nodes whose module path matches.
    Module(Glob),
    /// Nodes on a queue whose name matches.
    Queue(Glob),
    /// Nodes of a group whose name matches.
    Group(Glob),
    /// Nodes of a group whose role matches.
    Role(Glob),
    /// Collective and point-to-point nodes of an operation.
    Collective(CollectiveKind),
    /// Nodes of an element type.
    DType(DType),
    /// Nodes whose number in a column of the node table compares so.
    Field(Field, Compare, i64),
    /// Nodes that have the attribute.
    HasAttribute(String),
    /// Nodes whose attribute compares so.
    Attribute(String, Compare, Value),
    /// Nodes for which the query does not hold.
    Not(Box<Query>),
    /// Nodes for which every query holds; with none, every node.
    And(Vec<Query>),
    /// Nodes for which some query holds; with none, no node.
    Or(Vec<Query>),
}

/// A numeric column of the node table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Work in ns.
    Work,
    /// Payload in bytes.
    Bytes,
    /// Queue priority.
    Priority,
    /// Place in the sequence of the group's operations.
    Sequence,
}

impl Field {
    pub(crate) const ALL: [Self; 4] = [Self::Work, Self::Bytes, Self::Priority, Self::Sequence];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Bytes => "bytes",
            Self::Priority => "priority",
            Self::Sequence => "sequence",
        }
    }
}

/// How a cell compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less; text in code point order.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Text that matches a glob.
    Like,
}

impl Compare {
    /// The operator in the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Like => "~",
        }
    }

    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
            Self::Like => false,
        }
    }
}

/// A value to compare an attribute with. Integers and floats compare by value with either column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A finite float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text, or the glob of [`Compare::Like`].
    Text(String),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl Query {
    /// Nodes whose name matches the glob.
    pub fn name(glob: &str) -> Self {
        Self::Name(Glob::new(glob))
    }
    /// Nodes whose module path matches the glob.
    pub fn module(glob: &str) -> Self {
        Self::Module(Glob::new(glob))
    }
    /// Nodes on a queue whose name matches the glob.
    pub fn queue(glob: &str) -> Self {
        Self::Queue(Glob::new(glob))
    }
    /// Nodes of a group whose name matches the glob.
    pub fn group(glob: &str) -> Self {
        Self::Group(Glob::new(glob))
    }
    /// Kernels whose name matches the glob.
    pub fn kernel(glob: &str) -> Self {
        Self::Kind(NodeKind::Kernel).and(Self::name(glob))
    }
    /// Nodes whose attribute compares so with the value.
    pub fn attribute(name: impl Into<String>, compare: Compare, value: impl Into<Value>) -> Self {
        Self::Attribute(name.into(), compare, value.into())
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::And(mut all) => {
                all.push(other);
                Self::And(all)
            }
            first => Self::And(vec![first, other]),
        }
    }
    /// Either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Or(mut any) => {
                any.push(other);
                Self::Or(any)
            }
            first => Self::Or(vec![first, other]),
        }
    }
    /// The opposite.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "a builder step beside `and` and `or`")]
    pub fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}
