//! Slow-downs as the engine asks for them.

use std::sync::Arc;

use foretrain_cost::interference::{
    Activity, DeviceLimits, OverlapModel, SlowdownModel, TransferLoad,
};
use foretrain_sim::{Interference, TaskView};
use smallvec::{SmallVec, smallvec};

use super::loads::Loads;

/// More seldom run at a time.
const USUAL: usize = 4;

/// A model that knows what each node of a job is.
#[derive(Clone, Debug)]
pub(crate) struct DeviceSharing {
    pub(crate) model: Arc<OverlapModel>,
    pub(crate) device: DeviceLimits,
    /// By class.
    pub(crate) loads: Vec<Arc<Loads>>,
}

impl DeviceSharing {
    /// What a task is; while it waits for other ranks it moves nothing.
    fn activity(&self, task: &TaskView) -> Option<Activity> {
        let load = *self.loads.get(task.class)?.get(task.node)?;
        Some(match load {
            Activity::Transfer(load) if task.waiting => {
                Activity::Transfer(TransferLoad { moving: 0.0, ..load })
            }
            load => load,
        })
    }
}

impl Interference for DeviceSharing {
    fn rates(&self, running: &[TaskView], rates: &mut [f64]) {
        // One thing alone is the usual case, and nothing communicates beside most others.
        if running.len() < 2 || !running.iter().any(TaskView::is_communication) {
            return;
        }
        let mut places: SmallVec<[usize; USUAL]> = SmallVec::new();
        let mut activities: SmallVec<[Activity; USUAL]> = SmallVec::new();
        for (at, task) in running.iter().enumerate() {
            if let Some(activity) = self.activity(task) {
                places.push(at);
                activities.push(activity);
            }
        }
        let mut slowdowns: SmallVec<[f64; USUAL]> = smallvec![1.0; activities.len()];
        self.model.slowdowns(&self.device, &activities, &mut slowdowns);
        for (at, slowdown) in places.into_iter().zip(slowdowns) {
            rates[at] = 1.0 / slowdown;
        }
    }
}
