//! Arrows between events.
//!
//! Forward-to-backward arrows are kept in the table. Arrows from launches to device work repeat
//! what correlation ids say, so they are only held on to as long as device events without such
//! ids turn up.

use foretrain_core::Nanos;
use foretrain_trace::{Flow, TrackId};

/// One end of a launch arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaunchEnd {
    pub(super) id: u64,
    pub(super) at: i64,
    pub(super) track: TrackId,
    pub(super) is_start: bool,
    /// Arrows of different kinds count their ids apart.
    pub(super) kind: u8,
}

/// Arrows met so far.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) forward_backward: Vec<Flow>,
    pub(super) launches: Vec<LaunchEnd>,
    pub(super) other: u64,
    pub(super) without_id: u64,
    correlated: u32,
    uncorrelated: u32,
}

/// Device events with correlation ids after which arrows are taken to be superfluous.
const ENOUGH: u32 = 64;

impl Flows {
    /// Whether a category or name is that of forward-to-backward arrows.
    fn is_forward_backward(category: &str, name: &str) -> bool {
        let known = |text: &str| matches!(text, "fwdbwd" | "forward_backward");
        known(category) || known(name)
    }

    fn launch_kind(category: &str) -> Option<u8> {
        Some(match category {
            "ac2g" | "async_gpu" | "async_cpu_to_gpu" | "async" => 0,
            "HostToDevice" => 1,
            "async_npu" => 2,
            _ => return None,
        })
    }

    /// Takes in one end.
    pub(super) fn add(
        &mut self,
        (category, name): (&str, &str),
        id: Option<u64>,
        at: i64,
        track: TrackId,
        is_start: bool,
    ) {
        let Some(id) = id else {
            self.without_id += 1;
            return;
        };
        if Self::is_forward_backward(category, name) {
            self.forward_backward.push(Flow { id, at: Nanos::from_nanos(at), track, is_start });
            return;
        }
        self.other += 1;
        if let Some(kind) = Self::launch_kind(category)
            && self.needed()
        {
            self.launches.push(LaunchEnd { id, at, track, is_start, kind });
        }
    }

    fn needed(&self) -> bool {
        self.uncorrelated > 0 || self.correlated < ENOUGH
    }

    /// Tells of one device event.
    pub(super) fn saw_device_event(&mut self, has_correlation: bool) {
        if has_correlation {
            self.correlated = self.correlated.saturating_add(1);
            if self.correlated == ENOUGH && !self.needed() {
                self.launches = Vec::new();
            }
        } else {
            self.uncorrelated = self.uncorrelated.saturating_add(1);
        }
    }

    /// Bytes held.
    pub(super) fn heap_bytes(&self) -> u64 {
        (self.launches.len() * size_of::<LaunchEnd>()
            + self.forward_backward.len() * size_of::<Flow>()) as u64
    }
}
