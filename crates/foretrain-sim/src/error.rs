//! What can be wrong with a job or with the options of a run.

use foretrain_core::InputError;

/// A job that cannot be simulated, with the names a person needs to mend it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// An edge, node or demand refers to a row that is not there.
    #[error("{what} of class {class} refers to {target}, which does not exist")]
    Dangling {
        /// The row that refers.
        what: String,
        /// Index of the rank class.
        class: usize,
        /// The row that is missing.
        target: String,
    },
    /// A node would take negative time.
    #[error("node \"{node}\" of class {class} has a negative duration of {work_ns} ns")]
    NegativeWork {
        /// Name of the node.
        node: String,
        /// Index of the rank class.
        class: usize,
        /// Its duration, ns.
        work_ns: i64,
    },
    /// A collective that some members of its group never issue: a real job would hang.
    #[error(
        "{operation} number {sequence} of group \"{group}\" is issued by class {present} but \
         never by class {missing}, which is in the group too"
    )]
    MissingMember {
        /// Name of the group.
        group: String,
        /// The operation.
        operation: String,
        /// Sequence number of the operation within the step.
        sequence: u32,
        /// Classes that issue it, comma-separated.
        present: String,
        /// Classes that do not, comma-separated.
        missing: String,
    },
    /// One class issues the same operation of a group twice.
    #[error(
        "class {class} issues {operation} number {sequence} of group \"{group}\" twice: \
         \"{first}\" and \"{second}\""
    )]
    DuplicateMember {
        /// Name of the group.
        group: String,
        /// The operation.
        operation: String,
        /// Sequence number of the operation within the step.
        sequence: u32,
        /// Index of the rank class.
        class: usize,
        /// Name of the first node.
        first: String,
        /// Name of the second node.
        second: String,
    },
    /// A send or receive in a group of more than two classes, where the peer is not known.
    #[error(
        "{operation} \"{node}\" of class {class} is in group \"{group}\" of {classes} classes, so \
         its peer is not known"
    )]
    AmbiguousPeer {
        /// Name of the group.
        group: String,
        /// The operation.
        operation: String,
        /// Name of the node.
        node: String,
        /// Index of the rank class.
        class: usize,
        /// How many classes hold the group.
        classes: usize,
    },
    /// Some nodes wait for each other for ever.
    #[error("{finished} of {total} tasks ran, then the rest waited for each other: {}", stuck.join(" waits for "))]
    Deadlock {
        /// Tasks that ended.
        finished: u64,
        /// Tasks of the run.
        total: u64,
        /// Tasks that wait for each other, each for the next; at most a dozen.
        stuck: Vec<String>,
    },
    /// The run would not fit in memory.
    #[error("{nodes} nodes over {iterations} iterations are more than {limit} tasks")]
    TooLarge {
        /// Nodes of all classes.
        nodes: u64,
        /// Iterations asked for.
        iterations: u32,
        /// The limit.
        limit: u64,
    },
    /// An option out of its range.
    #[error("{option} is {value}, expected {expected}")]
    Option {
        /// Which one.
        option: String,
        /// What it was.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
}

impl SimError {
    /// A way on, empty where the message says it all.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Dangling { .. } => "check the graph with its validate function before the run",
            Self::NegativeWork { .. } => "durations are zero or more nanoseconds",
            Self::MissingMember { .. } => {
                "every class that lists a group must issue each of its operations, as in a real job"
            }
            Self::DuplicateMember { .. } => {
                "number the operations of one kind 0, 1, 2, ... per step"
            }
            Self::AmbiguousPeer { .. } => "give each pair of classes a group of its own",
            Self::Deadlock { .. } => {
                "look for a cycle of edges, or for collectives that classes issue in different orders"
            }
            Self::TooLarge { .. } => "simulate fewer iterations; steady state needs only a few",
            Self::Option { .. } => "",
        }
    }
}

impl From<SimError> for InputError {
    fn from(error: SimError) -> Self {
        InputError::new(error.to_string()).hint(error.hint())
    }
}
