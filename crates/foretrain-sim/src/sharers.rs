//! What tasks of a job share.

use foretrain_graph::QueueKind;

use crate::error::SimError;
use crate::interference::Interference;
use crate::options::{Sharing, SimOptions};
use crate::program::{NONE, Program};

/// Everything that makes tasks share, laid out by slot and queue.
pub(crate) struct Sharers<'a> {
    pub(crate) interference: Option<&'a dyn Interference>,
    pub(crate) sharing: Sharing,
    pub(crate) capacities: Vec<f64>,
    /// Demands of each slot: resource and amount; empty if there are none at all.
    pub(crate) demands: Vec<Vec<(u32, f64)>>,
    /// Device of each queue, `NONE` for host threads.
    pub(crate) device: Vec<u32>,
    pub(crate) devices: usize,
}

impl<'a> Sharers<'a> {
    pub(crate) fn new(program: &Program, options: &'a SimOptions) -> Result<Self, SimError> {
        let mut demands = Vec::new();
        for demand in options.demands.iter().filter(|demand| demand.amount > 0.0) {
            if demand.node.index() >= program.class_nodes(demand.class) {
                return Err(SimError::Dangling {
                    what: "a demand".to_owned(),
                    class: demand.class,
                    target: format!("node {}", demand.node.get()),
                });
            }
            demands.resize(program.node_count(), Vec::new());
            let slot = program.slot_of(demand.class, demand.node) as usize;
            add(&mut demands[slot], demand.resource as u32, demand.amount);
        }
        let (device, devices) = match options.interference {
            Some(_) => devices(program),
            None => (vec![NONE; program.queues.len()], 0),
        };
        Ok(Self {
            interference: options.interference.as_deref(),
            sharing: options.sharing,
            capacities: options.resources.iter().map(|resource| resource.capacity).collect(),
            demands,
            device,
            devices,
        })
    }

    /// Whether a task may be slowed down, or slow others down.
    pub(crate) fn concerns(&self, program: &Program, slot: usize) -> bool {
        let device = self.device[program.queue[slot] as usize];
        device != NONE || self.demands.get(slot).is_some_and(|demands| !demands.is_empty())
    }

    /// Whether every task runs at full rate.
    pub(crate) fn is_empty(&self) -> bool {
        self.demands.is_empty() && self.devices == 0
    }
}

/// Adds a demand to those of a task.
pub(crate) fn add(demands: &mut Vec<(u32, f64)>, resource: u32, amount: f64) {
    match demands.iter_mut().find(|(known, _)| *known == resource) {
        Some((_, sum)) => *sum += amount,
        None => demands.push((resource, amount)),
    }
}

/// Numbers the devices of all classes.
fn devices(program: &Program) -> (Vec<u32>, usize) {
    let on_device =
        |kind: QueueKind| matches!(kind, QueueKind::Stream | QueueKind::Link).then_some(());
    let mut known: Vec<(u32, u32)> = program
        .queues
        .iter()
        .filter_map(|queue| on_device(queue.kind).map(|()| (queue.class, queue.device)))
        .collect();
    known.sort_unstable();
    known.dedup();
    let device = program.queues.iter().map(|queue| {
        let found = known.binary_search(&(queue.class, queue.device)).ok();
        on_device(queue.kind).and(found).map_or(NONE, |index| index as u32)
    });
    (device.collect(), known.len())
}
