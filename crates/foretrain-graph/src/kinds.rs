//! The closed vocabularies of the graph.

use serde::{Deserialize, Serialize};

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),+
        }
        impl $name {
            /// Every variant, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// The word used in tables, files and queries.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
            /// The variant with this word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

word_enum!(
    /// What a node stands for.
    NodeKind {
        /// Work of a host thread between two points where it touches the rest of the system.
        HostSegment = "host",
        /// A device kernel.
        Kernel = "kernel",
        /// A memory copy or fill by a device engine.
        Copy = "copy",
        /// A collective operation of a communicator group.
        Collective = "collective",
        /// A send or receive between two ranks.
        PointToPoint = "p2p",
        /// Waiting for or producing input data.
        DataLoad = "data-load",
        /// Optimiser work that is not a kernel of its own.
        Optimizer = "optimizer",
        /// A point where a host thread waits for devices or other threads.
        Sync = "sync",
        /// A point in time without work, such as the end of a step.
        Mark = "mark",
    }
);

impl NodeKind {
    /// Whether it moves data between ranks.
    pub const fn communicates(self) -> bool {
        matches!(self, Self::Collective | Self::PointToPoint)
    }
}

word_enum!(
    /// The part of a step that a node belongs to.
    Phase {
        /// Not known.
        Unknown = "unknown",
        /// Fetching and moving input.
        Input = "input",
        /// Forward pass.
        Forward = "forward",
        /// Backward pass.
        Backward = "backward",
        /// Synchronisation of gradients or parameters.
        Sync = "sync",
        /// Parameter update.
        Optimizer = "optimizer",
    }
);

word_enum!(
    /// Why an edge is there.
    EdgeKind {
        /// Order of one device stream.
        StreamOrder = "stream-order",
        /// Order of one host thread.
        ThreadOrder = "thread-order",
        /// From the host call to the device work it launches.
        Launch = "launch",
        /// A stream waits for an event of another stream.
        EventWait = "event-wait",
        /// A host thread waits for device work.
        HostSync = "host-sync",
        /// A thread waits for another thread, or a value is passed on.
        Data = "data",
        /// Members of one collective.
        Rendezvous = "rendezvous",
        /// The launch queue is full: a launch waits for earlier device work to drain.
        LaunchQueue = "launch-queue",
    }
);

word_enum!(
    /// Whether an edge was in the recording or follows from a rule.
    EdgeOrigin {
        /// Read from the recording.
        Recorded = "recorded",
        /// Deduced.
        Inferred = "inferred",
    }
);

word_enum!(
    /// What kind of exclusive resource a queue is.
    QueueKind {
        /// A host thread.
        Thread = "thread",
        /// A device stream.
        Stream = "stream",
        /// One direction of a link.
        Link = "link",
        /// Anything else that runs one task at a time.
        Other = "other",
    }
);

word_enum!(
    /// The operation of a collective or point-to-point node.
    CollectiveKind {
        /// All ranks end with the reduction of all inputs.
        AllReduce = "all-reduce",
        /// All ranks end with the concatenation of all inputs.
        AllGather = "all-gather",
        /// Each rank ends with its shard of the reduction.
        ReduceScatter = "reduce-scatter",
        /// Each rank sends a different part to each other rank.
        AllToAll = "all-to-all",
        /// One rank's data goes to all.
        Broadcast = "broadcast",
        /// The reduction goes to one rank.
        Reduce = "reduce",
        /// All inputs go to one rank.
        Gather = "gather",
        /// One rank's parts go to their ranks.
        Scatter = "scatter",
        /// No data, only the meeting.
        Barrier = "barrier",
        /// To one peer.
        Send = "send",
        /// From one peer.
        Recv = "recv",
        /// Sends and receives issued together.
        SendRecv = "send-recv",
        /// Communication of a kind that the recording does not tell.
        Unknown = "unknown",
    }
);
