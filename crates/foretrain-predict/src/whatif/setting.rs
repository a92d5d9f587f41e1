//! Where a scenario runs: job size, machine, gradient buckets or another strategy.

use foretrain_core::Result;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::BucketCaps;

use super::language::{Change, Scenario};

/// Job size, machine, gradient buckets or another strategy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) gpus: u32,
    pub(super) cluster: Cluster,
    /// Factor on the latency of communication.
    pub(super) latency: f64,
    pub(super) buckets: BucketCaps,
    /// Passes of the strategy, where a scenario names one.
    pub(super) strategy: Option<String>,
}

impl Setting {
    /// This setting under a scenario. Of changes that exclude each other the last counts, and
    /// factors multiply; a machine is chosen before its links are changed.
    pub(super) fn under(&self, scenario: &Scenario, catalogue: &mut Catalogue) -> Result<Self> {
        scenario.check()?;
        let mut setting = self.clone();
        for change in &scenario.changes {
            match change {
                Change::Cluster(name) => setting.cluster = catalogue.cluster_or_file(name)?,
                Change::Device(name) => {
                    setting.cluster.node.device = catalogue.device(name)?.clone();
                }
                Change::Gpus(gpus) => setting.gpus = *gpus,
                Change::Buckets(cap) => {
                    setting.buckets = BucketCaps::uniform(*cap);
                    setting.strategy = None;
                }
                Change::Strategy(passes) => setting.strategy = Some(passes.clone()),
                _ => {}
            }
        }
        for change in &scenario.changes {
            let node = &mut setting.cluster.node;
            match *change {
                Change::Bandwidth(factor) => {
                    node.nic_bandwidth = node.nic_bandwidth * factor;
                    node.intra.per_device_bandwidth = node.intra.per_device_bandwidth * factor;
                }
                Change::Nic(factor) => node.nic_bandwidth = node.nic_bandwidth * factor,
                Change::Latency(factor) => setting.latency *= factor,
                _ => {}
            }
        }
        Ok(setting)
    }
}

/// Looks up the names in scenarios, so that a misspelt one is refused before anything is read.
///
/// # Errors
/// If a cluster or device is not in the catalogue; a file that defines a cluster is added to it.
pub fn check_names<'a>(
    scenarios: impl IntoIterator<Item = &'a Scenario>,
    catalogue: &mut Catalogue,
) -> Result<()> {
    for change in scenarios.into_iter().flat_map(|scenario| &scenario.changes) {
        match change {
            Change::Cluster(name) => drop(catalogue.cluster_or_file(name)?),
            Change::Device(name) => drop(catalogue.device(name)?),
            _ => {}
        }
    }
    Ok(())
}
