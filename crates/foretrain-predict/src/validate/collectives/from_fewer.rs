//! More ranks from fewer.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::Bytes;
use foretrain_graph::CollectiveKind;

use super::super::ValidationSet;
use super::super::corpus::Corpus;
use super::super::report::SetOutcome;
use super::given::is_given;
use super::tables::MeasuredRow;
use super::{LARGE, Split, on_tables, usable};

/// The A100 ladder of Echo: 64 and 128 GPUs from at most so many.
pub(in super::super) struct Echo {
    pub(in super::super) most: u32,
}

impl ValidationSet for Echo {
    fn name(&self) -> &'static str {
        if self.most == 16 { "collectives-echo-16" } else { "collectives-echo-32" }
    }

    fn about(&self) -> &'static str {
        if self.most == 16 {
            return "The same from the logs of up to 16 GPUs, which is two nodes. The public fit: 18.3 %, \
                    8.3 % from 1 MB.";
        }
        "NCCL all-reduce on Azure ND A100 v4 (Echo's logs, 1 KiB to 4 GiB): calibrated on 2 to 32 \
         GPUs, asked for 64 and 128. No row is left out, the known outlier (64 GPUs, 1 KiB, four \
         times its neighbours) neither. A public fit of 15 parameters on the same split has 15.1 %, \
         5.4 % from 1 MB."
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_tables(corpus, |measured, outcome| {
            let ladder: Vec<&MeasuredRow> = measured
                .rows
                .iter()
                .filter(|row| row.system.starts_with("echo_azure"))
                .filter(usable)
                .collect();
            let (given, rest): (Vec<_>, Vec<_>) =
                ladder.into_iter().partition(|row| row.ranks <= self.most);
            let asked = rest.into_iter().filter(|row| row.ranks >= 64).collect();
            let group = "64 and 128 GPUs".to_owned();
            Split { group, cluster: "azure-ndv4", given, asked }.score(outcome);
            Ok(())
        })
    }
}

/// Every machine measured at several numbers of ranks: the larger half from the smaller.
pub(in super::super) struct ScaleUp;

/// What one machine's rows are told by: table, machine, catalogue entry, collective.
type Machine<'a> = (&'static str, String, &'static str, CollectiveKind);

/// The machine of a row: its log's or system's name without numbers of GPUs and nodes.
fn machine(row: &MeasuredRow) -> Option<Machine<'_>> {
    let counts = |word: &str| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_digit());
        digits.len() < word.len()
            && matches!(digits, "" | "x" | "gpu" | "gpus" | "node" | "nodes" | "rack" | "rank")
    };
    let words = row.system.split(['_', ' ', ',']).filter(|word| !word.is_empty() && !counts(word));
    // The rest of a log's name tells the run.
    let most = if row.table == "collectives_nccl_tests" { 2 } else { usize::MAX };
    let name: Vec<&str> = words.take(most).collect();
    Some((row.table, name.join(" "), row.cluster?, row.kind))
}

impl ValidationSet for ScaleUp {
    fn name(&self) -> &'static str {
        "collectives-scale-up"
    }

    fn about(&self) -> &'static str {
        "Every machine of the logs and tables that was measured at several numbers of ranks \
         (single-node tables with sets of their own apart): calibrated on the smaller half of \
         them, asked for the larger half at 1 MiB and more. Machines are told apart by name, so a \
         group may join runs of different years and settings of one provider."
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_tables(corpus, |measured, outcome| {
            let mut machines: BTreeMap<Machine<'_>, Vec<&MeasuredRow>> = BTreeMap::new();
            let own_set = |row: &&MeasuredRow| row.table == "collectives_aiconfigurator_nccl";
            for row in measured.rows.iter().filter(usable).filter(|row| !own_set(row)) {
                if let Some(machine) = machine(row) {
                    machines.entry(machine).or_default().push(row);
                }
            }
            for ((_, name, cluster, kind), rows) in machines {
                let counts: BTreeSet<u32> = rows.iter().map(|row| row.ranks).collect();
                let counts: Vec<u32> = counts.into_iter().collect();
                if counts.len() < 2 {
                    continue;
                }
                let most = counts[counts.len().div_ceil(2) - 1];
                let (given, rest): (Vec<_>, Vec<_>) =
                    rows.into_iter().partition(|r| r.ranks <= most);
                let asked = rest.into_iter().filter(|row| row.bytes >= LARGE).collect();
                let group = format!("{name} {kind} from {most} ranks");
                Split { group, cluster, given, asked }.score(outcome);
            }
            Ok(())
        })
    }
}

/// Eight GPUs of a node from two and four.
pub(in super::super) struct EightFromFour;

impl ValidationSet for EightFromFour {
    fn name(&self) -> &'static str {
        "collectives-8-from-4"
    }

    fn about(&self) -> &'static str {
        "aiconfigurator's tables of one node (all-reduce, all-gather, reduce-scatter, all-to-all; each \
         version of the library apart): calibrated on 2 and 4 GPUs, asked for 8 at 128 KiB and \
         more. From five GPUs on NCCL reduces in the switch, which 2 and 4 GPUs do not show: there \
         all-reduce rests on the built-in constants. H200 and B300, which these were fitted to, are \
         left out."
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        const LEAST: Bytes = Bytes::from_kib(128);
        on_tables(corpus, |measured, outcome| {
            let mut machines: BTreeMap<(&str, Option<&str>, &'static str), Vec<&MeasuredRow>> =
                BTreeMap::new();
            let own = |row: &&MeasuredRow| row.table == "collectives_aiconfigurator_nccl";
            for row in measured.rows.iter().filter(own).filter(usable).filter(|row| !is_given(row))
            {
                if let Some(cluster) = row.cluster {
                    let key = (row.system.as_str(), row.library.as_deref(), cluster);
                    machines.entry(key).or_default().push(row);
                }
            }
            for ((system, library, cluster), rows) in machines {
                let (given, rest): (Vec<_>, Vec<_>) =
                    rows.into_iter().partition(|row| row.ranks <= 4);
                let asked = rest.into_iter().filter(|row| row.bytes >= LEAST).collect();
                let group = format!("{system} {}", library.unwrap_or("?"));
                Split { group, cluster, given, asked }.score(outcome);
            }
            Ok(())
        })
    }
}

/// Racks of 72 GPUs from one rack.
pub(in super::super) struct RackToRacks;

impl ValidationSet for RackToRacks {
    fn name(&self) -> &'static str {
        "collectives-gb200-1440"
    }

    fn about(&self) -> &'static str {
        "All-reduce on CoreWeave's GB200 NVL72: calibrated on the log of one rack (72 GPUs, 512 MiB to \
         8 GiB), asked for 128 and 1,440 GPUs at 16 MiB and more. One rack shows nothing of the \
         network between racks, which rests on the built-in constants alone."
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        const LEAST: Bytes = Bytes::from_mib(16);
        on_tables(corpus, |measured, outcome| {
            let racks = measured.rows.iter().filter(|row| {
                row.system.starts_with("coreweave_gb200")
                    && row.cluster.is_some()
                    && row.bytes >= LEAST
            });
            let (given, asked): (Vec<_>, Vec<_>) = racks.partition(|row| row.ranks == 72);
            for ranks in asked.iter().map(|row| row.ranks).collect::<BTreeSet<u32>>() {
                let asked = asked.iter().copied().filter(|row| row.ranks == ranks).collect();
                let group = format!("{ranks} GPUs from 72");
                let given = given.clone();
                Split { group, cluster: "gb200-nvl72", given, asked }.score(outcome);
            }
            Ok(())
        })
    }
}
