//! Fitting the collective model to a cluster's own benchmark logs.
//!
//! ```text
//! logs ──rows──▶ observations, what is left out ──fit──▶ calibration, report ──▶ cluster file
//!                                                   └──shortfall, reach──▶ what to say of them
//! ```

mod reach;
mod rows;
mod shortfall;

use foretrain_core::{InputError, Result};
use foretrain_cost::calibrate::{self, Report};
use foretrain_hardware::collectives::{Base, ClusterFile};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_ingest::collective_log::CollectiveLog;

pub use reach::{Reach, Width};
pub use rows::{LeftOutRows, UsedRun};
pub use shortfall::{Shortfall, Where};

use super::setting::{Layout, WhatIf};

/// How to calibrate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalibrateOptions {
    /// The new cluster's name; `my-BASE` if not given.
    pub name: Option<String>,
    /// Where the ranks sit of logs that name no hosts.
    pub layout: Layout,
}

/// A calibrated cluster and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrateAnswer {
    /// What the logs are from.
    pub cluster: String,
    /// The calibrated cluster.
    pub file: ClusterFile,
    /// Whether everybody's catalogue has what the file is based on.
    pub is_self_contained: bool,
    /// Runs that took part.
    pub used: Vec<UsedRun>,
    /// What did not, and why.
    pub left_out: Vec<LeftOutRows>,
    /// What logs say of the library: log and version.
    pub libraries: Vec<(String, String)>,
    /// Constants, residuals, findings.
    pub report: Report,
    /// Links that reach much less than they could.
    pub shortfalls: Vec<Shortfall>,
    /// Where to trust it.
    pub reach: Vec<Reach>,
}

impl CalibrateAnswer {
    /// Whether some log ran on several nodes.
    pub fn has_many_nodes(&self) -> bool {
        self.used.iter().any(|run| run.nodes > 1)
    }
}

/// Calibrates `cluster` from its logs.
///
/// # Errors
/// Without a usable row, with what is missing; and if the name is none.
pub fn calibrate_collectives(
    cluster: &Cluster,
    catalogue: &Catalogue,
    logs: &[CollectiveLog],
    options: &CalibrateOptions,
) -> Result<CalibrateAnswer> {
    let layout = options.layout;
    let machine = super::runs::Machine { cluster, catalogue, layout, what_if: WhatIf::default() };
    let rows = rows::rows(&machine, logs);
    if rows.observations.is_empty() {
        return Err(nothing(&rows.left_out));
    }
    let mut names: Vec<String> = rows.used.iter().map(|run| file_name(&run.source)).collect();
    names.dedup();
    let (calibration, report) = calibrate::calibrate(&rows.observations, names)?;
    let (base, is_self_contained) = Base::of(cluster, catalogue);
    let name = options.name.clone().unwrap_or_else(|| own_name(base.name()));
    let file = ClusterFile { name, base, calibration: calibration.rounded() };
    let calibrated = read_back(&file, catalogue)?;
    Ok(CalibrateAnswer {
        cluster: cluster.name.clone(),
        shortfalls: shortfall::shortfalls(cluster, &report)?,
        reach: reach::reach(&calibrated, &report),
        file,
        is_self_contained,
        libraries: libraries(logs),
        used: rows.used,
        left_out: rows.left_out,
        report,
    })
}

/// `my-BASE`, cut to what a name may have.
fn own_name(base: &str) -> String {
    const LONGEST: usize = 64;
    format!("my-{base}").chars().take(LONGEST).collect()
}

/// The cluster as a reader of the file gets it: a name or figure that a catalogue refuses shows now.
fn read_back(file: &ClusterFile, catalogue: &Catalogue) -> Result<Cluster> {
    let mut catalogue = catalogue.clone();
    catalogue.load_str(&file.text(&[]), "the calibrated cluster")?;
    catalogue.cluster(&file.name)
}

fn libraries(logs: &[CollectiveLog]) -> Vec<(String, String)> {
    let told = logs.iter().filter_map(|log| {
        let version = log.nccl.version.as_ref()?;
        let library = if version.starts_with("RCCL") { "" } else { "NCCL " };
        Some((file_name(&log.source), format!("{library}{version}")))
    });
    told.collect()
}

fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}

fn nothing(left_out: &[LeftOutRows]) -> InputError {
    let error = InputError::new("no row of the logs can be calibrated from");
    let mut said: Vec<String> = Vec::new();
    for rows in left_out {
        let hint = format!("{}: {}", file_name(&rows.source), rows.why);
        if !said.contains(&hint) {
            said.push(hint);
        }
    }
    const MOST: usize = 5;
    let more = said.len().saturating_sub(MOST);
    said.truncate(MOST);
    let error = said.into_iter().fold(error, InputError::hint);
    let error = if more > 0 { error.hint(format!("and {more} further reasons")) } else { error };
    error.hint(
        "a log needs the table of nccl-tests or rccl-tests with times, its operation (--collective \
         if the log does not name it) and the number of ranks, two at least",
    )
}
