//! The trace table: one row per duration event, in structure-of-arrays form.
//!
//! Constraints: about 50 bytes per event whatever the event's JSON held; every string interned;
//! arguments that only few events have live in side tables keyed by row, sorted by row.

use std::sync::Arc;

use foretrain_core::{NameId, Names, Nanos, define_id};
use serde::{Deserialize, Serialize};

use crate::capture::Capture;
use crate::category::Category;

define_id!(
    /// A row of the track table: one host thread or device stream.
    TrackId
);

/// A host thread or a device stream, as the producer numbers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// Process id or device number; may be any string.
    pub pid: String,
    /// Thread id or stream number; may be any string.
    pub tid: String,
    /// Name from metadata events, empty if none.
    pub name: String,
}

/// A device listed in the trace's header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Index on its host.
    pub id: i64,
    /// Product name as the driver spells it.
    pub name: String,
    /// Memory in bytes, 0 if not stated.
    pub memory_bytes: u64,
    /// Compute capability, (0, 0) if not stated.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors or compute units, 0 if not stated.
    pub multiprocessors: u32,
}

/// A communicator group from `pg_config` or from collective arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// The framework's name, usually a number.
    pub name: String,
    /// Description such as "default_pg" or "mesh_dp"; may be empty.
    pub description: String,
    /// "nccl", "gloo", ...; may be empty.
    pub backend: String,
    /// Number of ranks, 0 if not stated.
    pub size: u32,
    /// Global ranks, empty if not stated.
    pub ranks: Vec<u32>,
}

/// Facts about the trace as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceMeta {
    /// File it was read from, as given.
    pub path: String,
    /// Global rank.
    pub rank: Option<u32>,
    /// How the rank is known ("distributedInfo", "file name", "assumed: only file").
    pub rank_source: String,
    /// Ranks in the job, if stated.
    pub world_size: Option<u32>,
    /// Communication backend, empty if not stated.
    pub backend: String,
    /// Communicator groups listed in the header.
    pub groups: Vec<ProcessGroup>,
    /// Devices listed in the header.
    pub devices: Vec<DeviceInfo>,
    /// Nanoseconds since the Unix epoch (or whatever the producer counts from) of the table's
    /// time zero.
    pub base_nanos: i64,
    /// Producer as far as it tells or its format shows ("PyTorch 1.8 profiler", "Kineto").
    pub producer: String,
    /// Host name if stated.
    pub host: String,
    /// Whether operator input shapes were recorded.
    pub has_shapes: bool,
    /// Whether the file broke off before its end.
    pub truncated: bool,
    /// What the recorder that wrote the trace measured beside it, if it is there.
    pub capture: Option<Arc<Capture>>,
}

/// Collective arguments of one event: a device kernel's, or those of `record_param_comms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommArgs {
    /// Row in the event table.
    pub row: u32,
    /// "allreduce", "_allgather_base", ...; empty if not stated.
    pub collective: NameId,
    /// Element type as spelled; empty if not stated.
    pub dtype: NameId,
    /// Elements in this rank's input, -1 if not stated.
    pub in_elements: i64,
    /// Elements in this rank's output, -1 if not stated.
    pub out_elements: i64,
    /// Group name; empty if not stated.
    pub group: NameId,
    /// Group description; empty if not stated.
    pub group_description: NameId,
    /// Group ranks as written ("[0, 1, 2, 3]", possibly abbreviated with "..."); empty if absent.
    pub group_ranks: NameId,
    /// Group size, 0 if not stated.
    pub group_size: u32,
    /// Sequence number, -1 if not stated. Not to be trusted for matching: some backends count
    /// over all groups or twice per operation.
    pub sequence: i64,
    /// Positional "Concrete Inputs" of old `record_param_comms`, as JSON text; empty if absent.
    pub concrete_inputs: NameId,
    /// Peer of a send or receive, -1 if not stated.
    pub peer: i64,
}

/// Launch geometry of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaunchArgs {
    /// Row in the event table.
    pub row: u32,
    /// Grid.
    pub grid: [u32; 3],
    /// Block.
    pub block: [u32; 3],
    /// Graph launch id, 0 if the kernel was not part of a graph.
    pub graph_id: u64,
}

/// Size of a copy or fill.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CopyArgs {
    /// Row in the event table.
    pub row: u32,
    /// Bytes, if stated.
    pub bytes: Option<u64>,
    /// Bandwidth in GB/s as recorded; `None` if absent, infinite or not a number.
    pub bandwidth_gb_s: Option<f64>,
}

/// What a recorded synchronisation waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncArgs {
    /// Row in the event table.
    pub row: u32,
    /// Stream whose event is waited for, -1 if none.
    pub wait_on_stream: i64,
    /// Correlation of the record call of that event, 0 if none.
    pub wait_on_record_correlation: u64,
}

/// One end of a flow arrow worth keeping (forward to backward).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Arrow id.
    pub id: u64,
    /// Time of this end.
    pub at: Nanos,
    /// Track of this end.
    pub track: TrackId,
    /// Whether this is the start of the arrow.
    pub is_start: bool,
}

/// Columnar events of one rank, as read, in file order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Facts about the trace.
    pub meta: TraceMeta,
    /// Every string.
    pub names: Names,
    /// Threads and streams.
    pub tracks: Vec<Track>,
    /// Category of each event.
    pub category: Vec<Category>,
    /// Name of each event.
    pub name: Vec<NameId>,
    /// Start, relative to `meta.base_nanos`.
    pub start: Vec<Nanos>,
    /// Duration, never negative.
    pub duration: Vec<Nanos>,
    /// Track of each event.
    pub track: Vec<TrackId>,
    /// Correlation id that ties a launch to its device work; 0 if none. Bit-cast from the
    /// producer's number, so ids beyond `i64` keep their identity.
    pub correlation: Vec<u64>,
    /// External id that ties runtime calls and kernels to operators; 0 if none.
    pub external_id: Vec<u64>,
    /// Stream of device events and of some runtime calls; -1 if none.
    pub stream: Vec<i32>,
    /// Device of device events; -1 if none.
    pub device: Vec<i16>,
    /// Input shapes as JSON text; empty if none.
    pub shapes: Vec<NameId>,
    /// Input types as JSON text; empty if none.
    pub types: Vec<NameId>,
    /// Collective arguments, sorted by row.
    pub comm_args: Vec<CommArgs>,
    /// Kernel geometry, sorted by row.
    pub launch_args: Vec<LaunchArgs>,
    /// Copy sizes, sorted by row.
    pub copy_args: Vec<CopyArgs>,
    /// Synchronisation targets, sorted by row.
    pub sync_args: Vec<SyncArgs>,
    /// Forward-to-backward arrows in file order.
    pub flows: Vec<Flow>,
}

macro_rules! side_table {
    ($method:ident, $field:ident, $type:ty) => {
        /// The side-table entry of a row.
        pub fn $method(&self, row: usize) -> Option<&$type> {
            let i = self.$field.binary_search_by_key(&(row as u32), |args| args.row).ok()?;
            self.$field.get(i)
        }
    };
}

impl Trace {
    /// Bytes that the table takes, by the rows and names it holds.
    pub fn heap_bytes(&self) -> u64 {
        /// One row of the columns, without strings and side tables.
        const ROW: usize = 55;
        let side = self.comm_args.len() * size_of::<CommArgs>()
            + self.launch_args.len() * size_of::<LaunchArgs>()
            + self.copy_args.len() * size_of::<CopyArgs>()
            + self.sync_args.len() * size_of::<SyncArgs>()
            + self.flows.len() * size_of::<Flow>();
        (self.len() * ROW + side + self.names.heap_bytes()) as u64
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.name.len()
    }
    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }
    /// Name of a row as text.
    pub fn name_of(&self, row: usize) -> &str {
        self.names.get(self.name[row])
    }
    /// End of a row.
    pub fn end(&self, row: usize) -> Nanos {
        self.start[row] + self.duration[row]
    }
    side_table!(comm_args_of, comm_args, CommArgs);
    side_table!(launch_args_of, launch_args, LaunchArgs);
    side_table!(copy_args_of, copy_args, CopyArgs);
    side_table!(sync_args_of, sync_args, SyncArgs);
}
