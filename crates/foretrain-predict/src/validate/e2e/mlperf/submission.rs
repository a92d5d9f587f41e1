//! A result of a data-parallel benchmark: how large, how fast, on what.

use std::sync::Arc;

use foretrain_core::Result;
use foretrain_hardware::Cluster;

use super::super::machines;
use super::super::runs::left_out;
use super::step_seconds;
use crate::validate::columns::Line;

/// A submission.
#[derive(Clone)]
pub(super) struct Submission {
    pub(super) devices: u32,
    pub(super) batch: u64,
    pub(super) seconds: f64,
    pub(super) system: String,
    pub(super) cluster: Arc<Cluster>,
}

impl Submission {
    /// Samples per device and step.
    pub(super) fn each(&self) -> f64 {
        self.batch as f64 / f64::from(self.devices.max(1))
    }

    pub(super) fn of(line: Line<'_>) -> Result<Self> {
        let mut seconds = step_seconds(line)?;
        let cluster = cluster(line.text("accelerator"), line.degree("accel_per_node"))?;
        let devices = line.degree("n_accel").ok_or_else(|| left_out("no devices are given"))?;
        if counts_per_device(line) {
            seconds /= f64::from(devices);
        }
        Ok(Self {
            devices,
            batch: line.whole("global_batch").ok_or_else(|| left_out("the row gives no batch"))?,
            seconds,
            system: line.text("system").to_owned(),
            cluster,
        })
    }
}

/// The detector that replaced the first one in round 2.0 logs the rate of one device: only so do
/// rates and run times of systems of different size agree.
fn counts_per_device(line: Line<'_>) -> bool {
    let early = |round: &str| round.starts_with("v0") || round.starts_with("v1");
    matches!(line.text("benchmark"), "ssd" | "retinanet") && !early(line.text("round"))
}

/// NVIDIA's machines and PCIe servers; nodes hold as many devices as the row says.
fn cluster(accelerator: &str, each: Option<u32>) -> Result<Arc<Cluster>> {
    let upper = accelerator.to_ascii_uppercase();
    let has = |word: &str| upper.contains(word);
    let known = match () {
        () if has("PCIE") && has("A100") => machines::named("pcie-8x-a100")?,
        () if has("PCIE") && has("H100") => machines::named("pcie-8x-h100")?,
        () if has("L40S") => machines::named("pcie-8x-l40s")?,
        () if has("TPU") || has("GAUDI") => {
            return Err(left_out("its links are not described here"));
        }
        () => machines::nvidia(accelerator)?,
    };
    let node = &known.node;
    let each = each.filter(|&each| each > 0).unwrap_or(node.devices);
    if node.hosts > 1 || each == node.devices {
        return Ok(known);
    }
    let mut cluster = (*known).clone();
    cluster.node.nics = (node.nics * each).div_ceil(node.devices).max(node.nics.min(1));
    cluster.node.devices = each;
    Ok(Arc::new(cluster))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::columns::Table;

    fn of(round: &str, benchmark: &str) -> Submission {
        let text = format!(
            "round,benchmark,system,accelerator,n_accel,accel_per_node,global_batch,step_time_s_derived,flag\n\
             {round},{benchmark},s,NVIDIA A100-SXM4-80GB,64,4,256,3.2,\n"
        );
        Submission::of(Table::parse(&text).unwrap().lines().next().unwrap()).unwrap()
    }

    #[test]
    fn rates_of_one_device_become_steps_of_all() {
        assert!((of("v1.1", "ssd").seconds - 3.2).abs() < 1e-12);
        assert!((of("v2.1", "ssd").seconds - 0.05).abs() < 1e-12);
        assert!((of("v2.1", "resnet").seconds - 3.2).abs() < 1e-12);
    }

    #[test]
    fn nodes_hold_what_the_row_says() {
        let submission = of("v2.1", "resnet");
        assert_eq!((submission.cluster.node.devices, submission.cluster.node.nics), (4, 4));
        assert!((submission.each() - 4.0).abs() < 1e-12);
    }
}
