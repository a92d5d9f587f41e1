//! What synchronisation costs a placed job, by the collective model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use foretrain_core::{Bytes, InputError};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Cluster;

use super::job::Scaling;

/// All-reduces on the nodes and links of one machine.
#[derive(Debug)]
pub struct Exchange {
    machine: Cluster,
    /// Seconds by bytes, GPUs and nodes.
    known: Mutex<BTreeMap<(u64, u32, u32), f64>>,
}

impl Exchange {
    /// On a cluster of the catalogue, whatever its size.
    pub fn new(machine: Cluster) -> Self {
        Self { machine, known: Mutex::new(BTreeMap::new()) }
    }

    /// Seconds of an all-reduce of `bytes` among GPUs spread evenly over nodes.
    ///
    /// # Errors
    /// If the machine cannot hold them.
    pub fn seconds(&self, bytes: Bytes, gpus: u32, nodes: u32) -> Result<f64, InputError> {
        if gpus <= 1 || bytes == Bytes::ZERO {
            return Ok(0.0);
        }
        let asked = (bytes.get(), gpus, nodes.clamp(1, gpus));
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seconds) = known().get(&asked) {
            return Ok(*seconds);
        }
        let per_node = gpus.div_ceil(asked.2).max(1);
        // Ranks that are this many devices apart come to so many per node.
        let stride = (self.machine.devices_per_node() / per_node).max(1);
        // What else the nodes do is not known: the job has their NICs to itself.
        let group = GroupPlacement::strided(gpus, stride).concurrent_groups(1);
        let fabric = Fabric::for_group(&self.machine, &group)?;
        let call = CollectiveCall::new(CollectiveKind::AllReduce, bytes);
        let seconds = collective_time(&call, &fabric).time.value.secs_f64();
        known().insert(asked, seconds);
        Ok(seconds)
    }
}

/// A data-parallel job of one global batch: computation is divided among its GPUs, gradients are
/// all-reduced, in part while it computes. Its unit of work is a second at the size it asked for.
#[derive(Debug)]
pub struct DataParallel {
    exchange: Arc<Exchange>,
    gradients: Bytes,
    /// GPU-seconds of computation per step.
    compute: f64,
    /// Seconds of a step at the size asked for, placed well.
    step: f64,
    /// Fewest and most GPUs.
    sizes: (u32, u32),
}

/// Share of computation behind which gradients travel: the backward pass is two thirds of a step, and
/// its last bucket has nothing to hide behind.
const HIDES: f64 = 0.5;

impl DataParallel {
    /// A job that takes `step` seconds per step on `gpus` GPUs on as few nodes as hold them, and may
    /// run on as many as `most`, and as few as `least`.
    ///
    /// # Errors
    /// If the machine cannot hold the job.
    pub fn new(
        exchange: Arc<Exchange>,
        gradients: Bytes,
        step: f64,
        gpus: u32,
        (least, most): (u32, u32),
    ) -> Result<Self, InputError> {
        let nodes = gpus.div_ceil(exchange.machine.devices_per_node().max(1));
        let sync = exchange.seconds(gradients, gpus, nodes)?;
        // The computation that leaves this step: hidden wholly, or else all but half of it.
        let hidden = sync / HIDES;
        let compute = if step >= hidden { step } else { (step - sync) / (1.0 - HIDES) };
        // Steps shorter than their own all-reduce: half of them is computation then.
        let compute = compute.max(0.5 * step) * f64::from(gpus);
        let job = Self { exchange, gradients, compute, step: 1.0, sizes: (least, most) };
        let step = job.seconds(gpus, nodes);
        Ok(Self { step, ..job })
    }

    fn seconds(&self, gpus: u32, nodes: u32) -> f64 {
        let compute = self.compute / f64::from(gpus.max(1));
        // A size that the machine cannot hold is never placed.
        let sync = self.exchange.seconds(self.gradients, gpus, nodes).unwrap_or(f64::INFINITY);
        compute + (sync - HIDES * compute).max(0.0)
    }
}

impl Scaling for DataParallel {
    fn speed(&self, gpus: u32, nodes: u32, _done: f64) -> f64 {
        self.step / self.seconds(gpus, nodes)
    }

    fn least_gpus(&self) -> u32 {
        self.sizes.0
    }

    fn most_gpus(&self) -> u32 {
        self.sizes.1
    }
}

#[cfg(test)]
mod tests {
    use foretrain_hardware::Catalogue;

    use super::*;

    fn job(step: f64) -> DataParallel {
        let machine = Catalogue::builtin().cluster("dgx-1-v100").expect("in the catalogue");
        let exchange = Arc::new(Exchange::new(machine));
        DataParallel::new(exchange, Bytes::new(1_400_000_000), step, 8, (1, 64)).expect("fits")
    }

    #[test]
    fn a_job_has_the_speed_of_its_table_where_it_asked_to_run() {
        for step in [0.005, 0.05, 0.5, 5.0] {
            assert!((job(step).speed(8, 1, 0.0) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn spreading_costs_and_more_gpus_help_less_and_less() {
        let job = job(0.1);
        let speed = |gpus, nodes| job.speed(gpus, nodes, 0.0);
        assert!(speed(8, 4) < speed(8, 1));
        assert!(speed(8, 8) <= speed(8, 4) + 1e-12);
        assert!(speed(16, 2) > speed(8, 1) && speed(16, 2) < 2.0 * speed(8, 1));
        assert!(speed(1, 1) < 0.25);
    }
}
