//! Why a run stopped before its end.

use crate::error::SimError;
use crate::program::{NONE, Program};
use crate::state::{Columns, UNFINISHED};

const SHOWN: usize = 12;

/// Follows one unfinished task to one that it waits for, and so on, until a task comes again.
pub(crate) fn explain(program: &Program, columns: &Columns, finished: u64) -> SimError {
    let nodes = program.node_count();
    let open = |task: usize| columns.end[task] == UNFINISHED;
    let mut seen = vec![false; columns.end.len()];
    let mut path = Vec::new();
    let mut at = (0..columns.end.len()).find(|&task| open(task));
    let incoming = incoming(program);
    while let Some(task) = at {
        if seen[task] {
            path.push(task);
            break;
        }
        seen[task] = true;
        path.push(task);
        at = waits_for(program, &incoming, task, nodes, &open);
    }
    // Only the cycle itself is of interest.
    let entry = path.last().and_then(|last| path.iter().position(|task| task == last));
    let cycle = &path[entry.unwrap_or(0)..];
    let stuck = cycle.iter().take(SHOWN).map(|&task| label(program, task, nodes)).collect();
    SimError::Deadlock { finished, total: columns.end.len() as u64, stuck }
}

fn label(program: &Program, task: usize, nodes: usize) -> String {
    let slot = task % nodes;
    let (class, node) = program.node_of(slot);
    let (name, iteration) = (program.name_of(slot), task / nodes);
    format!("\"{name}\" (node {}, class {class}, iteration {iteration})", node.get())
}

type Incoming = Vec<Vec<(u32, u16)>>;

fn incoming(program: &Program) -> Incoming {
    let mut incoming = vec![Vec::new(); program.node_count()];
    for slot in 0..program.node_count() {
        for edge in program.out_of(slot) {
            incoming[edge.dst as usize].push((slot as u32, edge.distance));
        }
    }
    incoming
}

fn waits_for(
    program: &Program,
    incoming: &Incoming,
    task: usize,
    nodes: usize,
    open: &impl Fn(usize) -> bool,
) -> Option<usize> {
    let (iteration, slot) = (task / nodes, task % nodes);
    let edge = incoming[slot].iter().find_map(|&(src, distance)| {
        let source = iteration.checked_sub(distance as usize)? * nodes + src as usize;
        open(source).then_some(source)
    });
    let ready = |task: usize| {
        let (iteration, slot) = (task / nodes, task % nodes);
        !incoming[slot].iter().any(|&(src, distance)| {
            let source = iteration.checked_sub(distance as usize);
            source.is_some_and(|i| open(i * nodes + src as usize))
        })
    };
    edge.or_else(|| {
        // It could run: then it waits for a member of its collective that is not ready, or for a
        // collective that blocks its queue.
        let base = iteration * nodes;
        let meeting = program.meetings.of[slot];
        let members = (meeting != NONE).then(|| program.meetings.members(meeting as usize));
        let partner = members.and_then(|members| {
            members.iter().map(|&m| base + m as usize).find(|&m| m != task && !ready(m))
        });
        partner.or_else(|| {
            let blocks = |other: &usize| {
                let same = program.queue[other % nodes] == program.queue[slot];
                same && *other != task && open(*other) && ready(*other)
            };
            let tasks = program.row.len() * (iteration + 1);
            let blocker = (0..tasks)
                .find(|other| blocks(other) && program.meetings.of[other % nodes] != NONE);
            blocker.or_else(|| {
                let members = members?;
                members.iter().map(|&m| base + m as usize).find(|&m| m != task && open(m))
            })
        })
    })
}
