//! What is wrong with rows: counted, said, never mended in silence.

use foretrain_core::{Ledger, Severity};

macro_rules! faults {
    ($($name:ident $severity:ident $code:literal $message:literal;)*) => {
        /// A kind of fault of a row or a cell.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the message of each says what it is")]
        pub enum Fault { $($name,)* }

        impl Fault {
            const ALL: &[Fault] = &[$(Fault::$name,)*];

            /// The stable name in ledgers.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

faults! {
    RaggedRow Dropped "ragged-row" "row with more or fewer cells than the header, left out";
    BrokenRow Dropped "broken-row" "row that cannot be read, left out";
    StepRow Note "step-of-a-job" "step of a Slurm job (batch, extern, 0): it is part of the job that has a row of its own, and no job";
    NotUtf8 Repaired "not-utf8" "text that is not UTF-8, read with replacement characters";
    LateKey Dropped "late-key" "key that the first rows do not have, left out";
    Unreadable Dropped "unreadable-value" "cell that is no value of its column, left out";
    ColumnUnread Warning "column-not-read" "column whose title says what it holds and whose cells do not: not read";
    ColumnTwin Warning "column-twice" "two columns hold the same: one is read, the other is not";
    DateOrder Inferred "order-of-dates" "dates whose day or month may come first: read in the order that a part above 12 tells";
    DecimalComma Note "decimal-comma" "number with a decimal comma in a table with semicolons: 2,5 is read as 2.5 (a column of lists of GPUs is --column devices=COLUMN)";
    ListsOrNumbers Note "lists-or-numbers" "numbers with decimal commas, or lists of GPUs: read as lists (numbers need a point, or semicolons between columns)";
    SeparatorLine Note "separator-line" "first line that names the separator, as spreadsheets write it: read as that";
    EndUnknown Dropped "end-unknown" "end unknown: 0, a negative or an absurd number in its place; no duration is computed from it";
    StartUnknown Dropped "start-unknown" "start unknown: 0, a negative or an absurd number in its place";
    SubmitUnknown Dropped "submit-unknown" "submission unknown: 0 among dates, a negative or an absurd number in its place";
    AttemptEndUnknown Dropped "attempt-end-unknown" "attempt before the last without an end: how long it held GPUs is not known";
    EndBeforeStart Dropped "end-before-start" "end before start: the end is left out";
    StartBeforeSubmit Dropped "start-before-submit" "start before submission: no wait is computed";
    NegativeSpan Dropped "negative-time" "negative length of time, left out";
    Decades Dropped "runs-for-decades" "run of more than ten years: the end and the duration are left out";
    DurationConflict Warning "duration-conflict" "duration is not end - start; end - start is used";
    DurationHoldsWait Warning "duration-holds-wait" "duration is end - submission, so it holds the wait; end - start is used";
    DurationUnit Warning "duration-in-another-unit" "duration is end - start times a power of 1000: one of them is in another unit; end - start is used";
    DurationBeforeSubmit Warning "duration-before-submit" "duration longer than from submission to end: one of them is wrong or in another unit";
    WaitConflict Warning "wait-conflict" "wait is not start - submission (a longer one may hold pauses of the run); start - submission is used";
    TurnaroundConflict Warning "turnaround-conflict" "turnaround is not end - submission; end - submission is used";
    GpuTimeConflict Warning "gpu-time-conflict" "GPU-time is not GPUs times the run; GPUs times the run is used";
    Unfinished Dropped "not-finished" "job that still runs or waits: what it took so far is not what it takes, left out";
    UnfinishedEnd Note "not-finished-but-ended" "job that still runs or waits by its status, and has an end: the end is used";
    InstantUnit Inferred "time-in-another-unit" "time since 1970 in another unit than its column (by its size), read in that unit";
    UnreadType Dropped "unread-type" "column of nested or unknown type, left out";
    NoGpu Note "no-gpu" "row with 0 GPUs: a job without GPUs, or a count that is missing";
    ImpossibleGpus Dropped "impossible-gpus" "negative or absurd number of GPUs, left out";
    GpusPerNode Dropped "gpus-per-node" "GPUs of each of an unknown number of nodes: the number of GPUs is not known";
    GpuShareBeyond Dropped "gpu-share-impossible" "share of a GPU below 0 or above the whole of one (1000 milli): the number of GPUs is not known";
    TooManyMachines Dropped "too-many-machines" "list of more than 65,536 machines, which no cluster has, left out";
    ImpossibleCount Dropped "impossible-count" "negative, absurd or broken number, left out";
    BusyBeyondFull Dropped "utilisation-above-100" "utilisation below 0 or above 100 %, left out";
    BusyInAnotherUnit Dropped "utilisation-in-another-unit" "utilisation above 1 in a column guessed to be shares of 1: left out; if it is percent, say --column utilisation=COLUMN:%";
    NoId Note "no-id" "row without a job id: counted, but it cannot be joined or told from others";
    UnknownStatus Note "status-unknown" "status that no known system writes, kept as \"other\"";
    UnknownClass Dropped "class-unknown" "architecture class that is none of the six, left out";
    UnknownMedium Dropped "medium-unknown" "medium that is none of Ethernet, PCIe and NVLink, left out";
}

/// How often each kind was met, and where first.
#[derive(Clone, Debug)]
pub struct Faults {
    counts: Vec<u64>,
    places: Vec<Vec<String>>,
}

impl Default for Faults {
    fn default() -> Self {
        let kinds = Fault::ALL.len();
        Self { counts: vec![0; kinds], places: vec![Vec::new(); kinds] }
    }
}

impl Faults {
    /// Places that are kept per kind.
    const PLACES: usize = Ledger::MAX_PLACES;

    /// Counts a fault; the place is only written while it would be kept.
    pub(super) fn meet(&mut self, fault: Fault, place: impl FnOnce() -> String) {
        let index = fault as usize;
        self.counts[index] += 1;
        if self.places[index].len() < Self::PLACES {
            self.places[index].push(place());
        }
    }

    /// How often it was met.
    pub fn count(&self, fault: Fault) -> u64 {
        self.counts[fault as usize]
    }

    /// Writes all that was met to a ledger.
    pub fn record(&self, ledger: &mut Ledger) {
        for &fault in Fault::ALL {
            let count = self.count(fault);
            let places = &self.places[fault as usize];
            let (severity, code, message) = (fault.severity(), fault.code(), fault.message());
            for place in places {
                ledger.record_many(severity, code, message, 1, Some(place.clone()));
            }
            ledger.record_many(severity, code, message, count - places.len() as u64, None);
        }
    }
}
