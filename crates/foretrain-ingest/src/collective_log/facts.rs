//! What the lines around a table tell about its run.

use std::collections::BTreeSet;

use foretrain_graph::CollectiveKind;

use super::kind::kind_of;
use super::nccl;
use super::number::{Printed, integer};

/// What is known of a run besides its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// The operation that a command, a banner or the document names.
    pub(super) kind: Option<CollectiveKind>,
    /// Ranks that were listed.
    pub(super) listed: BTreeSet<u32>,
    /// Rank that was listed twice.
    pub(super) listed_twice: Option<u32>,
    pub(super) hosts: BTreeSet<String>,
    pub(super) devices: BTreeSet<String>,
    /// Ranks as a communicator or document states them.
    pub(super) ranks: Option<u32>,
    /// Nodes as a document states them.
    pub(super) nodes: Option<u32>,
    /// Nodes as a communicator states them.
    pub(super) communicator_nodes: Option<u32>,
    /// Devices that the command asks for.
    pub(super) asked_for: Option<u32>,
    /// Devices of one process.
    pub(super) per_process: Option<u32>,
}

/// A line beside the rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Remark {
    /// A benchmark is started: what follows belongs to a run of this operation on as many devices.
    Program { kind: Option<CollectiveKind>, devices: Option<u32> },
    /// A run says how it was asked to run: devices per process.
    Begin { per_process: Option<u32> },
    /// A rank says where it is.
    Rank { rank: u32, host: String, device: String },
    /// A communicator says how many ranks it has.
    Communicator { ranks: u32, nodes: Option<u32> },
    /// The tool's own mean bus bandwidth.
    Average(Printed),
    /// Rows were left out by whoever made the excerpt.
    Elision,
}

/// What a line that is no row tells, if anything.
pub(super) fn remark(text: &str) -> Option<Remark> {
    let text = text.trim_start_matches(['#', ' ']).trim_end();
    // The banner at the end would be taken for the start of the next run.
    if text.contains("test concluded") {
        return None;
    }
    if matches!(text, "..." | "....." | "[...]" | "…") || text.contains("output truncated") {
        return Some(Remark::Elision);
    }
    if let Some(words) = after(text, "nThread") {
        let threads = number_at(&words, 0);
        let devices = words.iter().position(|w| w.trim_end_matches(':') == "nGpus");
        let devices = devices.and_then(|at| number_at(&words, at + 1));
        let per_process = threads.zip(devices).and_then(|(t, d)| t.checked_mul(d));
        return Some(Remark::Begin { per_process });
    }
    if let Some(rest) = text.strip_prefix("Avg bus bandwidth") {
        let number = rest.trim_start_matches([' ', '\t', ':']).split_whitespace().next()?;
        return Printed::parse(number.trim_end_matches("GB/s")).map(Remark::Average);
    }
    if text.starts_with("Rank ") {
        return rank_line(text);
    }
    if let Some((_, said)) = nccl::message(text) {
        let found = nccl::communicator(said)?;
        return Some(Remark::Communicator { ranks: found.ranks, nodes: found.nodes });
    }
    announcement(text).or_else(|| program(text))
}

/// The words after a word.
fn after<'a>(text: &'a str, word: &str) -> Option<Vec<&'a str>> {
    let rest = &text[text.find(word)? + word.len()..];
    Some(rest.trim_start_matches(':').split_whitespace().collect())
}

fn number_at(words: &[&str], at: usize) -> Option<u32> {
    integer(words.get(at)?)?.try_into().ok()
}

/// `Rank  3 Group  0 Pid 123 on host device  3 [0000:66:00] NVIDIA H100`.
fn rank_line(text: &str) -> Option<Remark> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let on = words.iter().position(|word| *word == "on")?;
    let host = (*words.get(on + 1)?).to_owned();
    let bus = words.iter().position(|word| word.starts_with('['))?;
    let device = words.get(bus + 1..)?.join(" ");
    Some(Remark::Rank { rank: number_at(&words, 1)?, host, device })
}

/// What a script says before its table: `Performance of all_reduce on 16 devices`, `The average
/// bandwidth of all_reduce over 8 ranks`.
fn announcement(text: &str) -> Option<Remark> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let among = |at: usize| matches!(words[at], "on" | "over" | "across" | "among" | "with");
    let counted = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        matches!(word.as_str(), "devices" | "ranks" | "gpus" | "processes" | "workers")
    };
    let at = (1..words.len().saturating_sub(2)).find(|at| among(*at) && counted(words[at + 2]))?;
    let kind = words[..at].last().and_then(|word| kind_of(word))?;
    Some(Remark::Program { kind: Some(kind), devices: Some(number_at(&words, at + 1)?) })
}

/// A command or banner that names a benchmark: `./build/all_reduce_perf -g 8`,
/// `nccom-test -r 32 allg`.
fn program(text: &str) -> Option<Remark> {
    let words = || text.split_whitespace();
    if let Some(at) = words().position(|word| word.ends_with("nccom-test")) {
        let kind = words().skip(at + 1).find_map(kind_of);
        return Some(Remark::Program { kind, devices: option(words().skip(at + 1), &["-r"]) });
    }
    let name = |word: &str| {
        let word = word.trim_matches(['"', '\'', '`', ',', ';', '(', ')']);
        word.rsplit('/').next().unwrap_or_default().strip_suffix("_perf").map(str::to_owned)
    };
    // Several on one line are prose or a loop, and tell nothing.
    let names: BTreeSet<String> = words().filter_map(name).collect();
    let only = names.first().filter(|_| names.len() == 1)?;
    let at = words().position(|word| name(word).is_some())?;
    Some(Remark::Program { kind: kind_of(only), devices: devices(text, at) })
}

/// Devices that a command asks for: processes of `mpirun`, threads, devices of each. Other
/// launchers have many ways to say it, so nothing is told of them.
fn devices(command: &str, program_at: usize) -> Option<u32> {
    let before = || command.split_whitespace().take(program_at);
    let after = || command.split_whitespace().skip(program_at + 1);
    let launcher = |word: &str| word.ends_with("mpirun") || word.ends_with("mpiexec");
    let processes = if before().any(launcher) {
        option(before(), &["-np", "-n"])?
    } else if before().any(|word| word.ends_with("run")) {
        return None;
    } else {
        1
    };
    let threads = option(after(), &["-t", "--nthreads"]).unwrap_or(1);
    let per_thread = option(after(), &["-g", "--ngpus"]).unwrap_or(1);
    processes.checked_mul(threads)?.checked_mul(per_thread)
}

/// The number after an option.
fn option<'a>(mut words: impl Iterator<Item = &'a str>, names: &[&str]) -> Option<u32> {
    words.find(|word| names.contains(word))?;
    integer(words.next()?)?.try_into().ok()
}

impl Facts {
    /// Takes in what a line tells about this run.
    pub(super) fn learn(&mut self, remark: Remark) {
        match remark {
            Remark::Begin { per_process } => self.per_process = per_process,
            Remark::Communicator { ranks, nodes } => {
                (self.ranks, self.communicator_nodes) = (Some(ranks), nodes);
            }
            Remark::Rank { rank, host, device } => {
                if !self.listed.insert(rank) {
                    self.listed_twice.get_or_insert(rank);
                }
                self.hosts.insert(host);
                self.devices.insert(device);
            }
            Remark::Program { kind, devices } => (self.kind, self.asked_for) = (kind, devices),
            Remark::Average(_) | Remark::Elision => {}
        }
    }

    /// Whether every rank was listed.
    pub(super) fn all_listed(&self) -> bool {
        self.listed.last().is_some_and(|last| self.listed.len() as u64 == u64::from(*last) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_tables_are_understood() {
        use CollectiveKind as K;
        let rank = |rank, host: &str, device: &str| {
            Some(Remark::Rank { rank, host: host.into(), device: device.into() })
        };
        let program = |kind, devices| Some(Remark::Program { kind: Some(kind), devices });
        for (line, want) in [
            ("srun -N 2 all_reduce_perf -g 8", program(K::AllReduce, None)),
            ("./sendrecv_perf -b 128M -t 2 -g 4", program(K::SendRecv, Some(8))),
            ("# nThread 1 nGpus 8 minBytes 8", Some(Remark::Begin { per_process: Some(8) })),
            ("# nThread: 2 nGpus: 4 minBytes: 8", Some(Remark::Begin { per_process: Some(8) })),
            (
                "#   Rank  3 Pid 112372 on localhost device  3 [0x00] A100-SXM4-40GB",
                rank(3, "localhost", "A100-SXM4-40GB"),
            ),
            (
                "#  Rank 1439 Group  0 Pid  21082 on n-073 device  3 [0x01] NVIDIA GB200",
                rank(1439, "n-073", "NVIDIA GB200"),
            ),
            (
                "h:1:2 [3] NCCL INFO comm 0x7f8c rank 3 nranks 16 cudaDev 3 - Init COMPLETE",
                Some(Remark::Communicator { ranks: 16, nodes: None }),
            ),
            (
                "h:1:2 [3] NCCL INFO comm 0x7f rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3",
                Some(Remark::Communicator { ranks: 16, nodes: Some(2) }),
            ),
            ("---- Performance of all_reduce on 16 devices -----", program(K::AllReduce, Some(16))),
            (
                "The average bandwidth of all_gather over 8 ranks (5 warmups)",
                program(K::AllGather, Some(8)),
            ),
            ("the all_reduce runs on 16 of the devices", None),
            ("# Collective test starting: all_gather_perf", program(K::AllGather, Some(1))),
            ("$ mpirun -np 16 /opt/build/alltoall_perf -b 8", program(K::AllToAll, Some(16))),
            ("nccom-test -r 32 --minbytes 1kb --check allg", program(K::AllGather, Some(32))),
            ("run all_reduce_perf or all_gather_perf", None),
            (
                "# Avg bus bandwidth    : 60.5716 ",
                Some(Remark::Average(Printed { value: 60.5716, half_step: 0.000_05 })),
            ),
            ("...", Some(Remark::Elision)),
            ("# Rank", None),
            ("# Using devices", None),
        ] {
            match (remark(line), want) {
                (Some(Remark::Average(got)), Some(Remark::Average(want))) => {
                    assert_eq!(got.value, want.value);
                }
                (got, want) => assert_eq!(got, want, "{line}"),
            }
        }
    }
}
