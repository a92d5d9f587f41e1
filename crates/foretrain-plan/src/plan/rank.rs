//! Fastest first, and of equals the simplest.

use super::search::Candidate;
use crate::layout::{Layout, Recompute, Schedule, Sharding};

/// Times within this share of each other are equal: no model tells them apart.
pub const EQUAL: f64 = 0.005;

/// How much there is to a layout: techniques in use, then how far they divide the model. Less is
/// simpler to set up, to debug and to change.
pub fn complexity(layout: &Layout) -> (u32, u32) {
    let degrees = [layout.tensor, layout.pipeline, layout.context, layout.expert];
    let divided = degrees.into_iter().filter(|&degree| degree > 1).count() as u32;
    let switches = [
        layout.virtual_stages > 1,
        layout.pipeline > 1 && layout.schedule != Schedule::default(),
        layout.recompute != Recompute::None,
        // Uneven recomputation is one more thing to tune.
        matches!(layout.recompute, Recompute::Layers(_)),
        layout.sharding >= Sharding::Gradients,
        layout.sharding == Sharding::Parameters,
        layout.shard_group.is_some(),
        layout.offload_optimiser,
        layout.offload_activations,
    ];
    let switched = switches.into_iter().map(u32::from).sum::<u32>();
    let depth = degrees.into_iter().chain([layout.virtual_stages]).map(|n| n.max(1).ilog2()).sum();
    (divided + switched, depth)
}

/// Puts candidates, which come fastest first, in order: in each run of equal times, counted from the
/// fastest of the run, the simplest comes first.
pub(super) fn settle(ranked: &mut [Candidate]) {
    let mut from = 0;
    while from < ranked.len() {
        let most = ranked[from].time.value.scale(1.0 + EQUAL);
        let run = ranked[from..].iter().take_while(|one| one.time.value <= most).count().max(1);
        ranked[from..from + run].sort_by_key(|one| (complexity(&one.layout), one.time.value));
        from += run;
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::{Bytes, Estimate, Nanos};

    use super::*;
    use crate::Wish;
    use crate::memory::Fit;

    fn candidate(layout: &str, micros: i64) -> Candidate {
        let layout = layout.parse::<Wish>().unwrap().complete(16).unwrap();
        let time = Estimate::exact(Nanos::from_micros(micros));
        Candidate { layout, time, memory: Bytes::ZERO, fit: Fit::Yes }
    }

    #[test]
    fn the_simplest_of_equals_comes_first() {
        let mut ranked = [
            candidate("tp=2,pp=4,vpp=2", 1000),
            candidate("tp=2,pp=4", 1003),
            candidate("tp=2", 1004),
            candidate("dp=16", 1006),
        ];
        settle(&mut ranked);
        let order: Vec<String> = ranked.iter().map(|one| one.layout.to_string()).collect();
        // The last is not within half a per cent of the fastest.
        let wanted = [
            "tp=2,pp=1,dp=8,mbs=1",
            "tp=2,pp=4,dp=2,mbs=1",
            "tp=2,pp=4,dp=2,vpp=2,mbs=1",
            "tp=1,pp=1,dp=16,mbs=1",
        ];
        assert_eq!(order, wanted);
    }
}
