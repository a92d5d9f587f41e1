//! Arguments of one event, gathered before the event becomes a row.

use foretrain_core::{NameId, Names};
use foretrain_trace::{CommArgs, CopyArgs, LaunchArgs, SyncArgs};

use crate::json::text::decode;
use crate::json::{Arg, RawEvent, Value, number};

/// Longest argument text that is kept.
const LONGEST: usize = 16 << 10;

/// What the table keeps of an event's arguments.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) correlation: u64,
    pub(super) external_id: u64,
    pub(super) device: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) shapes: NameId,
    pub(super) types: NameId,
    pub(super) launch: Option<LaunchArgs>,
    pub(super) copy: Option<CopyArgs>,
    pub(super) sync: Option<SyncArgs>,
    pub(super) comm: Option<CommArgs>,
    pub(super) ascend_task: bool,
    /// Texts that were too long to keep.
    pub(super) too_long: u32,
}

const NO_COMM: CommArgs = CommArgs {
    row: 0,
    collective: NameId::EMPTY,
    dtype: NameId::EMPTY,
    in_elements: -1,
    out_elements: -1,
    group: NameId::EMPTY,
    group_description: NameId::EMPTY,
    group_ranks: NameId::EMPTY,
    group_size: 0,
    sequence: -1,
    concrete_inputs: NameId::EMPTY,
    peer: -1,
};

const NO_SYNC: SyncArgs = SyncArgs { row: 0, wait_on_stream: -1, wait_on_record_correlation: 0 };

impl Arguments {
    /// Gathers the arguments. `communicates` tells whether positional inputs are worth keeping,
    /// `rank` is this trace's own if known.
    pub(super) fn gather(
        event: &RawEvent,
        window: &str,
        names: &mut Names,
        communicates: bool,
        rank: Option<u32>,
    ) -> Self {
        let mut gathered = Self::default();
        let mut peers = (None, None);
        for &(arg, value) in event.args() {
            if value.is_some() {
                gathered.take(arg, value, window, names, communicates, &mut peers);
            }
        }
        let own = rank.map(i64::from);
        let (source, target) = peers;
        let peer = target.filter(|t| Some(*t) != own).or(source);
        if let (Some(peer), Some(comm)) = (peer, gathered.comm.as_mut()) {
            comm.peer = peer;
        }
        gathered
    }

    fn take(
        &mut self,
        arg: Arg,
        value: Value,
        window: &str,
        names: &mut Names,
        communicates: bool,
        peers: &mut (Option<i64>, Option<i64>),
    ) {
        let raw = value.raw(window);
        let id = || number::integer_bits(raw).unwrap_or(0);
        let signed = || number::integer(raw);
        match arg {
            Arg::Correlation => self.correlation = id(),
            Arg::ExternalId => self.external_id = id(),
            Arg::Device => self.device = signed(),
            Arg::Stream => self.stream = signed(),
            Arg::Grid => self.launch().grid = triple(raw),
            Arg::Block => self.launch().block = triple(raw),
            Arg::GraphId => self.launch().graph_id = id(),
            Arg::Bytes => self.copy().bytes = number::integer_bits(raw).filter(|b| *b >> 63 == 0),
            Arg::Bandwidth => self.copy().bandwidth_gb_s = number::finite(raw),
            Arg::WaitStream => self.sync().wait_on_stream = wait_stream(signed()),
            Arg::WaitRecord => self.sync().wait_on_record_correlation = id(),
            Arg::Shapes => self.shapes = self.text(value, window, names),
            Arg::Types => self.types = self.text(value, window, names),
            Arg::SourceRank => peers.0 = signed(),
            Arg::TargetRank => peers.1 = signed(),
            Arg::TaskType => self.ascend_task = true,
            Arg::ConcreteInputs if communicates => {
                let text = self.text(value, window, names);
                self.comm().concrete_inputs = text;
            }
            Arg::ConcreteInputs | Arg::Name | Arg::Labels => {}
            _ => self.take_comm(arg, value, window, names),
        }
    }

    fn take_comm(&mut self, arg: Arg, value: Value, window: &str, names: &mut Names) {
        let raw = value.raw(window);
        let signed = number::integer(raw);
        let text = self.text(value, window, names);
        match arg {
            Arg::Collective => self.comm().collective = text,
            Arg::InElements => self.comm().in_elements = signed.unwrap_or(-1),
            Arg::OutElements => self.comm().out_elements = signed.unwrap_or(-1),
            Arg::GroupSize => {
                let size = signed.and_then(|size| u32::try_from(size).ok());
                self.comm().group_size = size.unwrap_or(0);
            }
            Arg::GroupName => self.comm().group = text,
            Arg::GroupDescription => self.comm().group_description = text,
            Arg::GroupRanks => self.comm().group_ranks = text,
            // Other operators have a dtype too: these two only add to what is there.
            Arg::Dtype if self.comm.is_some() || text != NameId::EMPTY => {
                self.comm().dtype = text;
            }
            Arg::Sequence => self.comm().sequence = signed.unwrap_or(-1),
            _ => {}
        }
    }

    fn text(&mut self, value: Value, window: &str, names: &mut Names) -> NameId {
        if value.raw(window).len() > LONGEST {
            self.too_long += 1;
            return NameId::EMPTY;
        }
        names.intern(&decode(value, window))
    }

    fn launch(&mut self) -> &mut LaunchArgs {
        self.launch.get_or_insert_default()
    }
    fn copy(&mut self) -> &mut CopyArgs {
        self.copy.get_or_insert_default()
    }
    fn sync(&mut self) -> &mut SyncArgs {
        self.sync.get_or_insert(NO_SYNC)
    }
    fn comm(&mut self) -> &mut CommArgs {
        self.comm.get_or_insert(NO_COMM)
    }

    /// Whether the collective arguments tell more than an element type.
    pub(super) fn real_comm(&self) -> Option<CommArgs> {
        let bare = |dtype| CommArgs { dtype, ..NO_COMM };
        self.comm.filter(|comm| *comm != bare(comm.dtype))
    }
}

/// Streams beyond `i32` stand for "none" (context-wide waits are written as 2^32 - 1).
fn wait_stream(stream: Option<i64>) -> i64 {
    stream.filter(|s| i32::try_from(*s).is_ok()).unwrap_or(-1)
}

/// The first three numbers in a text such as "[512, 1, 1]"; 1 where there are fewer.
fn triple(raw: &str) -> [u32; 3] {
    let mut out = [1; 3];
    let numbers = raw.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    for (slot, part) in out.iter_mut().zip(numbers) {
        *slot = part.parse().unwrap_or(u32::MAX);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::scan_event;

    fn gather(args: &str) -> (Arguments, Names) {
        let text = format!("{{\"args\":{args}}}");
        let mut event = RawEvent::default();
        scan_event(text.as_bytes(), 0, &mut event).unwrap();
        let mut names = Names::new();
        (Arguments::gather(&event, &text, &mut names, true, Some(1)), names)
    }

    #[test]
    fn collective_arguments_are_gathered() {
        let (arguments, names) = gather(
            r#"{"Collective name":"allreduce","In msg nelems":8,"Out msg nelems":8,"Group size":2,
            "dtype":"Float","Process Group Name":"0","Process Group Ranks":"[0, 1]","Seq":3,
            "Src Rank":0,"Dst Rank":1,"correlation":10159970886766084423}"#,
        );
        let comm = arguments.real_comm().unwrap();
        assert_eq!(names.get(comm.collective), "allreduce");
        assert_eq!(names.get(comm.group_ranks), "[0, 1]");
        assert_eq!((comm.in_elements, comm.group_size, comm.sequence, comm.peer), (8, 2, 3, 0));
        assert_eq!(arguments.correlation, 10_159_970_886_766_084_423);
    }

    #[test]
    fn values_that_are_no_numbers_are_not_available() {
        let (arguments, _) = gather(
            r#"{"bytes":"200","memory bandwidth (GB/s)":null,"dtype":"Float","stream":"0x0",
            "grid":[4,2],"wait_on_stream":4294967295}"#,
        );
        let copy = arguments.copy.unwrap();
        assert_eq!((copy.bytes, copy.bandwidth_gb_s), (Some(200), None));
        assert_eq!(arguments.launch.unwrap().grid, [4, 2, 1]);
        assert_eq!(arguments.sync.unwrap().wait_on_stream, -1);
        assert_eq!((arguments.stream, arguments.real_comm()), (Some(0), None));
    }
}
