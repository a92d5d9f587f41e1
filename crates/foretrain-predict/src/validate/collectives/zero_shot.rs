//! Machines of which no row is given.

use std::sync::Arc;

use foretrain_core::{Bytes, Result};
use foretrain_cost::Observation;
use foretrain_cost::calibrate::fit_constants;
use foretrain_hardware::collectives::{Calibration, Choice, Constant, common_prior};
use foretrain_hardware::{Catalogue, Cluster};

use super::super::ValidationSet;
use super::super::corpus::Corpus;
use super::super::report::{SetOutcome, Skipped};
use super::given::is_given;
use super::tables::{Measured, MeasuredRow};
use super::{ask, observations, on_tables, usable};

const AICONFIGURATOR: &str = "collectives_aiconfigurator_nccl";
/// The sizes that peers were scored on, and people ask for.
const LEAST: Bytes = Bytes::from_kib(128);

/// One machine of aiconfigurator's table, or every machine of the other tables, with the built-in
/// constants alone.
pub(in super::super) struct ZeroShot {
    pub(in super::super) name: &'static str,
    /// The machine; `None` for all of the other tables.
    pub(in super::super) system: Option<&'static str>,
}

impl ValidationSet for ZeroShot {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        match self.system {
            Some("h100_sxm") => {
                "aiconfigurator's H100 SXM rows (2, 4 and 8 GPUs, 128 KiB to 512 MiB, all-reduce, \
                 all-gather, reduce-scatter, all-to-all) with the catalogue's constants alone. These \
                 were fitted to H200 rows of the same table and two H100 logs of other sources. ASTRA-sim \
                 with its validated H100 file misses 168 points of these rows by 42.0 %."
            }
            Some(_) => {
                "The same for another machine of the table. H200, B300 and GB300 are what the \
                 constants were fitted to, and have no set."
            }
            None => {
                "Every other log and table of GPUs that no constant was fitted to or rounded after, at \
                 128 KiB and more, with the catalogue's constants alone: other providers, PyTorch \
                 sweeps, CUDA graphs, networks that were slow when they were measured."
            }
        }
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_tables(corpus, |measured, outcome| {
            let rows: Vec<&MeasuredRow> = measured
                .rows
                .iter()
                .filter(usable)
                .filter(|row| !is_given(row) && row.bytes >= LEAST)
                .filter(|row| match self.system {
                    Some(system) => row.table == AICONFIGURATOR && row.system == system,
                    None => row.table != AICONFIGURATOR,
                })
                .collect();
            let same = |a: &&MeasuredRow, b: &&MeasuredRow| {
                (a.table, &a.system, &a.library, a.cluster)
                    == (b.table, &b.system, &b.library, b.cluster)
            };
            let mut sorted = rows;
            sorted.sort_by_key(|row| (row.table, &row.system, &row.library, row.cluster));
            for rows in sorted.chunk_by(same) {
                let Some(cluster) =
                    rows[0].cluster.and_then(|c| Catalogue::builtin().cluster(c).ok())
                else {
                    continue;
                };
                let group = match (self.system, &rows[0].library) {
                    (Some(_), Some(library)) => library.clone(),
                    _ => rows[0].system.clone(),
                };
                ask(&cluster, &group, rows, outcome);
            }
            Ok(())
        })
    }
}

/// Each GPU of aiconfigurator's table with constants fitted to the others.
pub(in super::super) struct UnseenGpu;

impl ValidationSet for UnseenGpu {
    fn name(&self) -> &'static str {
        "collectives-unseen-gpu"
    }

    fn about(&self) -> &'static str {
        "Each GPU of aiconfigurator's table as if nobody had measured it: the constants are fitted anew, \
         from values common to all interconnects, to the table's rows of other GPUs on the nearest \
         generation of the same kind of link, and asked for it at 128 KiB and more. The built-in \
         constants play no part. The RTX PRO 6000 is the only one on PCIe and rests on all others, \
         which have NVLink. L40S rows are left out: staged through the host."
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_tables(corpus, |measured, outcome| {
            let systems =
                ["a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300"];
            for system in systems.into_iter().chain(["rtx_pro_6000_server"]) {
                if let Err(error) = unseen(measured, system, outcome) {
                    outcome.skipped.push(Skipped { what: system.into(), why: error.to_string() });
                }
            }
            Ok(())
        })
    }
}

fn cluster_of(row: &MeasuredRow) -> Option<Cluster> {
    Catalogue::builtin().cluster(row.cluster?).ok()
}

fn unseen(measured: &Measured, system: &str, outcome: &mut SetOutcome) -> Result<()> {
    let usable: Vec<&MeasuredRow> = measured.rows.iter().filter(usable).collect();
    let asked: Vec<&MeasuredRow> =
        usable.iter().copied().filter(|row| row.system == system && row.bytes >= LEAST).collect();
    let Some(mut cluster) = asked.first().and_then(|row| cluster_of(row)) else { return Ok(()) };
    let link = &cluster.node.intra;
    let distance = |row: &MeasuredRow| {
        let other = cluster_of(row)?;
        let generation = |of: Option<u32>| i64::from(of.unwrap_or(1));
        let apart = generation(other.node.intra.generation) - generation(link.generation);
        (other.node.intra.kind == link.kind).then_some(apart.abs())
    };
    // One data type is enough: rows differ little by it.
    let others = || {
        usable.iter().copied().filter(|row| {
            row.table == AICONFIGURATOR
                && row.system != system
                && row.dtype.is_none_or(|dtype| dtype.bits() > 8)
        })
    };
    let nearest = others().filter_map(distance).min();
    let mut given = Vec::new();
    for row in others().filter(|row| nearest.is_none() || distance(row) == nearest) {
        if let Some(cluster) = cluster_of(row) {
            given.extend(observations(&cluster, &[row])?);
        }
    }
    cluster.collectives = Some(Arc::new(fitted(&given)));
    ask(&cluster, system, &asked, outcome);
    Ok(())
}

/// Constants fitted to several machines, as a calibration without sweeps.
fn fitted(observations: &[Observation]) -> Calibration {
    let common = common_prior();
    let (values, fitted) = fit_constants(observations, &common.values, &common.spreads);
    Calibration {
        logs: vec!["other GPUs".into()],
        choice: Choice::Tuner,
        nccl: None,
        noise: 0.1,
        constants: values.iter().collect(),
        // A machine of the kind may differ from the others by as much as machines do.
        spreads: Constant::ALL
            .into_iter()
            .map(|c| (c, fitted[c].max(0.7 * common.spreads[c])))
            .collect(),
        measured: Vec::new(),
        processors: Vec::new(),
    }
}
