//! Ranks that are slower or faster than others.

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::{NodeKind, RankClass};

use crate::roles::Role;
use crate::whatif::sketch::Sketch;

/// One rank's device is slower: its kernels and copies take so many times as long; without a device,
/// its host work. A rank that others stand for is taken out of them first.
pub(super) fn slow(sketch: &mut Sketch<'_>, rank: u32, factor: f64) -> Result<()> {
    let gpus = sketch.ground.draft.gpus;
    if rank >= gpus {
        let last = gpus - 1;
        return Err(InputError::new(format!("there is no rank {rank}: the ranks are 0 to {last}")));
    }
    let recorded = sketch.classes().find(|&class| sketch.origin(class).origin.rank == rank);
    let class = match recorded {
        Some(class) => class,
        None if sketch.positions.len() == 1 => 0,
        None => {
            let ranks: Vec<String> = sketch
                .classes()
                .map(|class| sketch.origin(class).origin.rank.to_string())
                .collect();
            return Err(InputError::new(format!("rank {rank} was not recorded"))
                .hint(format!("choose one of the recorded ranks: {}", ranks.join(", "))));
        }
    };
    let class =
        if sketch.job().classes[class].multiplicity > 1 { split_off(sketch, class) } else { class };
    let on_device = |kind| matches!(kind, NodeKind::Kernel | NodeKind::Copy);
    let mut own = sketch.own_work(class, |_, kind| on_device(kind));
    if own.is_empty() {
        own = sketch.own_work(class, |_, _| true);
    }
    sketch.rework(class, own, |_, work| work.scale(factor));
    Ok(())
}

/// Makes one rank of a class a class of its own.
fn split_off(sketch: &mut Sketch<'_>, class: usize) -> usize {
    let classes = &mut sketch.job_mut().classes;
    classes[class].multiplicity -= 1;
    let graph = classes[class].graph.clone();
    classes.push(RankClass { graph, multiplicity: 1 });
    sketch.work.push(sketch.work[class].clone());
    sketch.costs.push(sketch.costs[class].clone());
    sketch.positions.push(sketch.positions[class]);
    sketch.positions.len() - 1
}

/// Kinds of work that are compared between ranks.
const KINDS: [&[NodeKind]; 4] = [
    &[NodeKind::Kernel],
    &[NodeKind::Copy],
    &[NodeKind::HostSegment, NodeKind::Optimizer, NodeKind::Sync],
    &[NodeKind::DataLoad],
];

/// Ranks that share a group other than a pipeline's do the same work. Where they are in the same
/// groups throughout, each becomes the one whose step alone is shortest; else each kind of work
/// takes each of them as long as the one that has least of it. Nobody is late at random.
pub(super) fn all_like_the_fastest(sketch: &mut Sketch<'_>) -> Result<()> {
    if sketch.positions.len() < 2 {
        return Err(InputError::new("one rank stands for all, so none is faster than another")
            .hint("give the traces of several ranks"));
    }
    let alike = alike(sketch);
    for leader in sketch.classes().filter(|&class| alike[class] == class) {
        let peers: Vec<usize> = sketch.classes().filter(|&peer| alike[peer] == leader).collect();
        if peers.len() < 2 {
            continue;
        }
        let groups = group_names(sketch, leader);
        if peers.iter().all(|&peer| group_names(sketch, peer) == groups) {
            copy_the_fastest(sketch, &peers)?;
        } else {
            level(sketch, &peers);
        }
    }
    sketch.is_late = false;
    Ok(())
}

/// Makes every peer the one whose step without the others is shortest.
fn copy_the_fastest(sketch: &mut Sketch<'_>, peers: &[usize]) -> Result<()> {
    let mut fastest = (Nanos::MAX, peers[0]);
    for &peer in peers {
        fastest = fastest.min((sketch.step_alone(peer)?, peer));
    }
    let (_, fastest) = fastest;
    let graph = sketch.graph(fastest).clone();
    for &peer in peers {
        sketch.job_mut().classes[peer].graph = graph.clone();
        sketch.work[peer] = sketch.work[fastest].clone();
        sketch.costs[peer] = sketch.costs[fastest].clone();
        sketch.positions[peer] = sketch.positions[fastest];
    }
    let rank = sketch.origin(fastest).origin.rank;
    let count = peers.len();
    sketch.notes.push(format!("fastest rank everywhere: {count} ranks become as rank {rank}"));
    Ok(())
}

/// Gives every kind of work of the peers the least total that any of them has.
fn level(sketch: &mut Sketch<'_>, peers: &[usize]) {
    for kinds in KINDS {
        let totals: Vec<Nanos> = peers.iter().map(|&peer| total(sketch, peer, kinds)).collect();
        let least = totals.iter().copied().min().unwrap_or(Nanos::ZERO);
        for (&peer, total) in peers.iter().zip(totals) {
            if least < total {
                let factor = least.nanos() as f64 / total.nanos() as f64;
                let own = sketch.own_work(peer, |_, kind| kinds.contains(&kind));
                sketch.rework(peer, own, |_, work| work.scale(factor));
            }
        }
    }
}

/// The groups of a class, in order of their names.
fn group_names(sketch: &Sketch<'_>, class: usize) -> Vec<String> {
    let mut names: Vec<String> =
        sketch.graph(class).groups.iter().map(|group| group.name.clone()).collect();
    names.sort_unstable();
    names
}

fn total(sketch: &Sketch<'_>, class: usize, kinds: &[NodeKind]) -> Nanos {
    let own = sketch.own_work(class, |_, kind| kinds.contains(&kind));
    own.into_iter().map(|id| sketch.work[class][id.index()]).sum()
}

/// Of each class, the first class that does the same work.
fn alike(sketch: &Sketch<'_>) -> Vec<usize> {
    let mut first: Vec<usize> = sketch.classes().collect();
    for a in sketch.classes() {
        for b in 0..a {
            if share_a_layer(sketch, a, b) {
                let (from, to) = (first[a].max(first[b]), first[a].min(first[b]));
                first.iter_mut().filter(|f| **f == from).for_each(|f| *f = to);
            }
        }
    }
    first
}

fn share_a_layer(sketch: &Sketch<'_>, a: usize, b: usize) -> bool {
    let names = |class: usize| {
        let origin = sketch.origin(class);
        let groups = origin.graph.groups.iter().enumerate();
        groups
            .filter(|(i, _)| {
                !matches!(origin.layout.role(*i), Role::PipelineParallel | Role::Unknown)
            })
            .map(|(_, group)| group.name.as_str())
            .collect::<Vec<_>>()
    };
    let theirs = names(b);
    names(a).iter().any(|name| theirs.contains(name))
}
