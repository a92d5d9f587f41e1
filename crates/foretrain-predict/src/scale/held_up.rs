//! What the ranks that came last were doing while the others waited for them.

use std::collections::BTreeMap;

use foretrain_core::Nanos;
use foretrain_graph::{Job, NodeId};
use foretrain_sim::{Program, Timeline};

use super::ranks::Ranks;
use crate::answer::HeldUp;
use crate::breakdown::{Owner, Segment, segments};

/// Splits the first class's straggler wait in `[from, to)` by the rank that came last and by what
/// it was doing. `positions` are the classes of the job among the recorded ranks.
pub(crate) fn held_up(
    job: &Job,
    timeline: &Timeline,
    (from, to): (Nanos, Nanos),
    ranks: &Ranks,
    positions: &[usize],
) -> Vec<HeldUp> {
    if job.classes.len() < 2 {
        return Vec::new();
    }
    let Ok(program) = Program::compile(job) else { return Vec::new() };
    let activity: Vec<Vec<Segment>> = job
        .classes
        .iter()
        .zip(&timeline.classes)
        .map(|(class, times)| segments(&class.graph, times, from, to, &|_| Nanos::ZERO))
        .collect();
    let mut found: BTreeMap<(usize, Owner), Nanos> = BTreeMap::new();
    let own = &timeline.classes[0];
    for (row, (&start, &wait)) in own.start.iter().zip(&own.wait).enumerate() {
        if wait <= Nanos::ZERO || start + wait <= from || start >= to {
            continue;
        }
        let (iteration, node) = (row / own.nodes, NodeId::from_index(row % own.nodes));
        let arrival = |&(class, node): &(usize, NodeId)| {
            let times = &timeline.classes[class];
            (times.start[times.row(iteration, node)], std::cmp::Reverse(class))
        };
        let Some((late, _)) = program.partners(0, node).into_iter().max_by_key(arrival) else {
            continue;
        };
        // Only what the wait is charged for: other work may hide it.
        for waiting in within(&activity[0], start, start + wait) {
            if waiting.owner != Owner::StragglerWait {
                continue;
            }
            for doing in within(&activity[late], waiting.start, waiting.end) {
                *found.entry((late, doing.owner)).or_default() += doing.end - doing.start;
            }
        }
    }
    let rank = |class: usize| ranks.classes[positions[class]].origin.rank;
    let mut found: Vec<HeldUp> = found
        .into_iter()
        .map(|((class, owner), time)| HeldUp { rank: rank(class), owner, time })
        .collect();
    found.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.rank.cmp(&b.rank)));
    found
}

/// The parts of segments that lie in `[from, to)`.
fn within(segments: &[Segment], from: Nanos, to: Nanos) -> impl Iterator<Item = Segment> + '_ {
    let first = segments.partition_point(|segment| segment.end <= from);
    segments[first..].iter().take_while(move |segment| segment.start < to).map(move |segment| {
        Segment {
            start: segment.start.max(from),
            end: segment.end.min(to),
            owner: segment.owner.clone(),
        }
    })
}
