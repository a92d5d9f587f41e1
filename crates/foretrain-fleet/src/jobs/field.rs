//! What a column may hold, and in which unit.

use std::str::FromStr;

use foretrain_core::suggest::nearest;
use foretrain_core::{InputError, Result};

/// How a field's values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Text as it is.
    Text,
    /// A point in time: a number since some origin, or a date and time of day.
    Instant,
    /// A length of time.
    Span,
    /// A number without a unit.
    Number,
    /// A part of a whole.
    Share,
    /// Bytes.
    Size,
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident $text:literal $dimension:ident [$($also:literal),*];)*) => {
        /// A field of a [`Job`](super::Job) or of a row that belongs to one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field { $($(#[$doc])* $name,)* }

        impl Field {
            /// All fields, in the order in which tables list them.
            pub const ALL: &[Field] = &[$(Field::$name,)*];

            /// The name on the command line and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How its values are read.
            pub const fn dimension(self) -> Dimension {
                match self { $(Self::$name => Dimension::$dimension,)* }
            }

            /// Titles that tables of unknown make give it, without case, punctuation and unit.
            pub(super) const fn titles(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($also),*],)* }
            }
        }
    };
}

fields! {
    /// What identifies the job.
    Id "id" Text ["id", "jobid", "jobname", "job", "name", "uuid"];
    /// A second name of the same job, which other tables may use.
    Alias "alias" Text ["alias", "instid"];
    /// When it was submitted.
    Submit "submit" Instant ["submit", "submittime", "submissiontime", "submitted", "submittedtime", "submittedat", "arrival", "arrivaltime", "creationtime", "creationtimestamp", "submittimestamp", "submissiontimestamp", "created", "createdat", "queuedat", "queuedtime", "timestamp"];
    /// When it began to run.
    Start "start" Instant ["start", "starttime", "startat", "starttimestamp", "started", "startedat", "startedtime", "begin", "begintime", "scheduledtime"];
    /// When it ended.
    End "end" Instant ["end", "endtime", "endtimestamp", "ended", "endedat", "finish", "finishtime", "finishat", "finished", "finishedat", "finishedtime", "completiontime", "completiontimestamp", "completedat", "completedtime", "deletiontime", "deletiontimestamp", "stoptime"];
    /// How long it ran.
    Duration "duration" Span ["duration", "runtime", "elapsed", "walltime", "elapsedtime", "executiontime", "runningtime"];
    /// How long it waited before it ran.
    Wait "wait" Span ["wait", "waittime", "waitingtime", "delay", "queue", "queuetime", "queueingdelay", "queuingdelay", "queuedelay", "pendingtime", "schedulingdelay"];
    /// How long it took from submission to end.
    Turnaround "turnaround" Span ["turnaround", "jct", "jobcompletiontime"];
    /// GPUs; fractions where jobs share one.
    Gpus "gpus" Number ["gpus", "gpu", "numgpu", "numgpus", "ngpu", "ngpus", "gpunum", "gpucount", "requestgpu", "reqgpus", "allocgpus", "numberofgpus", "alloctres", "reqtres", "allocgres", "reqgres", "trespernode", "gres", "gpuspernode"];
    /// The part of each GPU that is used.
    GpuShare "gpu-share" Share ["gpushare", "gpufraction"];
    /// How many equal instances the row stands for.
    Instances "instances" Number ["instances", "instnum", "replicas", "numinstances"];
    /// Machines.
    Nodes "nodes" Number ["nodes", "node", "nodenum", "numnodes", "nnodes", "nodecount"];
    /// The kind of GPU.
    GpuKind "gpu-kind" Text ["gpukind", "gputype", "gpumodel", "gpuname", "gpuspec", "accelerator", "gpu"];
    /// The machine, or a list of them.
    Machine "machine" Text ["machine", "machines", "machineid", "node", "nodes", "nodelist", "nodename", "host", "hostname", "server", "instance", "ip"];
    /// Who submitted it.
    User "user" Text ["user", "username", "userid", "owner"];
    /// The queue, virtual cluster or cluster it was submitted to.
    Queue "queue" Text ["vc", "partition", "queue", "queuename", "virtualcluster", "cluster", "trace", "pool"];
    /// The model it trains.
    Model "model" Text ["model", "modelname", "application", "workload", "network"];
    /// Samples per step.
    Batch "batch" Number ["batch", "batchsize"];
    /// Steps it runs.
    Steps "steps" Number ["steps", "iterations", "numsteps", "totalsteps", "numiteration", "numiterations"];
    /// How long one step takes.
    StepTime "step-time" Span ["steptime", "iterationtime"];
    /// How long a step reads and prepares its input.
    InputTime "input-time" Span ["inputtime", "cpuiotime", "iotime"];
    /// How long a step computes on the GPU.
    ComputeTime "compute-time" Span ["computetime", "gpucomputetime"];
    /// How long a step communicates.
    NetworkTime "network-time" Span ["networktime", "communicationtime"];
    /// GPUs times how long they were held.
    GpuTime "gpu-time" Span ["gputime"];
    /// Its priority.
    Priority "priority" Number ["priority"];
    /// Every attempt to run it, as Philly's log lists them.
    Attempts "attempts" Text ["attempts"];
    /// How it ended.
    Status "status" Text ["status", "state", "jobstate", "podphase"];
    /// How busy its GPUs were.
    Utilisation "utilisation" Share ["utilisation", "utilization", "gpuutilization", "gpuutilisation", "gpuutil", "util", "gpuwrkutil", "avggpuutil"];
    /// Memory of the host it used or asked for.
    Memory "memory" Size ["memory", "mem", "avgmem"];
    /// Memory it took on each GPU.
    GpuMemory "gpu-memory" Size ["gpumemory", "gpumem", "avggpuwrkmem", "gpumemorypergpu"];
    /// The task, pod or instance of a job that the row is about.
    Part "part" Text ["pod", "podname", "taskname", "instname", "workername", "taskid", "podid"];
    /// Which GPUs of the machine: names or numbers in a list.
    Devices "devices" Text ["gpuids", "gpuindices", "devices", "gpus", "gpuindex", "gpuid"];
    /// The architecture class (see [`Class`](super::Class)).
    Class "class" Text ["class", "archclass", "arch", "architecture"];
    /// The medium that weight traffic takes.
    Medium "medium" Text ["medium", "interconnect"];
    /// GPUs that hold a replica of the model each.
    CNodes "cnodes" Number ["cnodes", "ncnodes", "numcnodes", "cnode"];
    /// Floating-point operations per step and replica.
    Flops "flops" Number ["flops", "flopcount", "flop"];
    /// Bytes that memory-bound operations move per step and replica.
    MemoryAccess "memory-access" Size ["memoryaccess", "memaccess", "memoryaccessbytes", "memaccessbytes"];
    /// Bytes of input copied to the device per step and replica.
    Input "input" Size ["input", "inputbytes", "inputpciebytes", "pciecopy"];
    /// Bytes of weights and gradients exchanged per step and replica.
    Traffic "traffic" Size ["traffic", "weighttraffic", "weighttrafficbytes", "networktraffic"];
    /// Which directions the traffic counts.
    TrafficCounts "traffic-counts" Text ["trafficcounts", "trafficconvention", "trafficdirection"];
    /// Bytes of dense weights, optimiser state included.
    DenseWeights "dense-weights" Size ["denseweights", "denseweightbytes", "dense"];
    /// Bytes of embedding weights, optimiser state included.
    EmbeddingWeights "embedding-weights" Size ["embeddingweights", "embeddingweightbytes", "embedding"];
    /// Bytes of embedding rows that one step touches.
    EmbeddingTouched "embedding-touched" Size ["embeddingtouched", "embeddingtouchedbytes"];
    /// Bytes of a replica's gradients of dense weights.
    Gradients "gradients" Size ["gradients", "gradientbytes"];
}

impl Field {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether a value may be a list.
    pub(super) const fn takes_lists(self) -> bool {
        matches!(self, Self::Machine | Self::Devices)
    }

    /// The position in [`Field::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl FromStr for Field {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let plain = text.trim().to_ascii_lowercase().replace('_', "-");
        if let Some(field) = Self::ALL.iter().find(|field| field.name() == plain) {
            return Ok(*field);
        }
        let titled = plain.replace('-', "");
        if let Some(field) = Self::ALL.iter().find(|field| field.titles().contains(&&*titled)) {
            return Ok(*field);
        }
        let error = InputError::new(format!("no field {text:?} in a table of jobs"));
        let names = Self::ALL.iter().map(|field| field.name());
        Err(match nearest(text, names.clone()) {
            Some(name) => error.hint(format!("did you mean {name:?}?")),
            None => error.hint(format!("fields are {}", names.collect::<Vec<_>>().join(", "))),
        })
    }
}

/// What one of a column's numbers stands for, in the base unit of its dimension: nanoseconds,
/// bytes, or one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// As people write it.
    pub name: &'static str,
    /// Base units in one.
    pub factor: f64,
}

impl Unit {
    /// The base unit of numbers and shares.
    pub const ONE: Unit = Unit { name: "1", factor: 1.0 };
    /// Hundredths.
    pub const PERCENT: Unit = Unit { name: "%", factor: 0.01 };
    /// Thousandths.
    pub const MILLI: Unit = Unit { name: "milli", factor: 1e-3 };
    /// Of columns of dates: the day comes first, as in `31/12/2024`.
    pub const DAY_FIRST: Unit = Unit { name: "dmy", factor: 1e9 };
    /// Of columns of dates: the month comes first, as in `12/31/2024`.
    pub const MONTH_FIRST: Unit = Unit { name: "mdy", factor: 1e9 };
    /// Nanoseconds.
    pub const NANOS: Unit = Unit { name: "ns", factor: 1.0 };
    /// Microseconds.
    pub const MICROS: Unit = Unit { name: "us", factor: 1e3 };
    /// Milliseconds.
    pub const MILLIS: Unit = Unit { name: "ms", factor: 1e6 };
    /// Seconds.
    pub const SECONDS: Unit = Unit { name: "s", factor: 1e9 };
    /// Minutes.
    pub const MINUTES: Unit = Unit { name: "min", factor: 60e9 };
    /// Hours.
    pub const HOURS: Unit = Unit { name: "h", factor: 3600e9 };
    /// Days.
    pub const DAYS: Unit = Unit { name: "d", factor: 86_400e9 };
    /// Bytes.
    pub const BYTES: Unit = Unit { name: "B", factor: 1.0 };
    /// Binary megabytes.
    pub const MIB: Unit = Unit { name: "MiB", factor: 1_048_576.0 };
    /// Decimal gigabytes.
    pub const GB: Unit = Unit { name: "GB", factor: 1e9 };
    /// Binary gigabytes.
    pub const GIB: Unit = Unit { name: "GiB", factor: 1_073_741_824.0 };

    /// Lengths of time, and what is only said of dates.
    const INSTANTS: [Unit; 9] = [
        Self::NANOS,
        Self::MICROS,
        Self::MILLIS,
        Self::SECONDS,
        Self::MINUTES,
        Self::HOURS,
        Self::DAYS,
        Self::DAY_FIRST,
        Self::MONTH_FIRST,
    ];
    const SIZES: [Unit; 6] = [
        Self::BYTES,
        Unit { name: "KB", factor: 1e3 },
        Unit { name: "MB", factor: 1e6 },
        Self::MIB,
        Self::GB,
        Self::GIB,
    ];
    const SHARES: [Unit; 3] = [Self::ONE, Self::PERCENT, Self::MILLI];
    const NUMBERS: [Unit; 7] = [
        Self::ONE,
        Self::PERCENT,
        Self::MILLI,
        Unit { name: "K", factor: 1e3 },
        Unit { name: "M", factor: 1e6 },
        Unit { name: "G", factor: 1e9 },
        Unit { name: "T", factor: 1e12 },
    ];

    /// The units of a dimension.
    pub const fn of(dimension: Dimension) -> &'static [Unit] {
        match dimension {
            Dimension::Text => &[],
            Dimension::Instant => &Self::INSTANTS,
            Dimension::Span => Self::INSTANTS.split_at(7).0,
            Dimension::Number => &Self::NUMBERS,
            Dimension::Share => &Self::SHARES,
            Dimension::Size => &Self::SIZES,
        }
    }

    /// The unit of a dimension that is written so.
    ///
    /// # Errors
    /// If there is none; the error names those there are.
    pub fn parse(text: &str, dimension: Dimension) -> Result<Unit> {
        let plain = match text.trim() {
            "sec" | "secs" | "second" | "seconds" => "s",
            "hour" | "hours" | "hr" => "h",
            "minute" | "minutes" | "mins" => "min",
            "day" | "days" => "d",
            "percent" | "pct" => "%",
            "bytes" => "B",
            other => other,
        };
        let units = Self::of(dimension);
        units.iter().find(|unit| unit.name == plain).copied().ok_or_else(|| {
            let error = InputError::new(format!("unknown unit {text:?}"));
            let names: Vec<&str> = units.iter().map(|unit| unit.name).collect();
            match names.is_empty() {
                true => error.hint("a column of text has no unit"),
                false => error.hint(format!("write one of {}", names.join(", "))),
            }
        })
    }
}

/// A user's word on what a column holds: `submit=My Column:ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnHint {
    /// The field.
    pub field: Field,
    /// The column's title.
    pub column: String,
    /// Its unit, if given.
    pub unit: Option<Unit>,
}

impl FromStr for ColumnHint {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let Some((field, rest)) = text.split_once('=') else {
            return Err(InputError::new(format!("{text:?} does not say what column is what"))
                .hint("write FIELD=COLUMN or FIELD=COLUMN:UNIT, as in submit=queued_at:ms"));
        };
        let field: Field = field.parse()?;
        let (column, unit) = match rest.rsplit_once(':') {
            Some((column, unit)) => (column, Some(Unit::parse(unit, field.dimension())?)),
            None => (rest, None),
        };
        Ok(Self { field, column: column.to_owned(), unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_units_are_found_by_what_people_write() {
        assert_eq!("job_id".parse(), Ok(Field::Id));
        assert_eq!("memory_access".parse(), Ok(Field::MemoryAccess));
        assert!("sumbit".parse::<Field>().unwrap_err().hints()[0].contains("submit"));
        let hint: ColumnHint = "submit=Queued at:ms".parse().unwrap();
        assert_eq!((hint.field, &*hint.column), (Field::Submit, "Queued at"));
        assert_eq!(hint.unit, Some(Unit::MILLIS));
        assert!("submit".parse::<ColumnHint>().is_err());
        assert!("submit=a:parsecs".parse::<ColumnHint>().is_err());
        assert!("user=a:ms".parse::<ColumnHint>().is_err());
    }

    #[test]
    fn fields_stand_at_their_index() {
        for (index, field) in Field::ALL.iter().enumerate() {
            assert_eq!((field.index(), field.name().parse()), (index, Ok(*field)));
        }
    }
}
