//! One operation on one group over sizes, and what can be said of the whole curve.

use foretrain_core::Bytes;
use foretrain_cost::{CollectiveCall, CollectiveTime, Fabric, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Cluster;

use super::answer::{Choice, Limit, Plateau, Point, Sweep, latency_share};
use super::notes;
use super::setting::Place;

/// Largest share of launch and propagation that is said not to matter.
const MINOR: f64 = 0.1;
/// A size at which only bandwidth counts.
const PLATEAU: u64 = 1 << 40;
/// Grid points per doubling of the size. Two changes of algorithm within 4 % are taken for one.
const PER_OCTAVE: u32 = 16;
/// How much the levels of a fabric are widened to see whether they are the limit.
const WIDENED: f64 = 1.25;
/// Least share of the time that tells.
const GAIN: f64 = 0.01;

/// The answer at `sizes` and what holds between and beyond them.
pub(super) fn sweep(
    place: &Place,
    cluster: &Cluster,
    kind: CollectiveKind,
    sizes: &[Bytes],
) -> Sweep {
    let curve = Curve { fabric: &place.fabric, kind };
    let points: Vec<Point> =
        sizes.iter().map(|&size| Point { size, predicted: curve.at(size.get()) }).collect();
    let setting = place.setting(kind);
    let plateau = plateau(&curve, place.windowed);
    let asked = sizes.iter().min().zip(sizes.iter().max());
    Sweep {
        setting,
        points,
        steps: Vec::new(),
        choices: asked.map_or_else(Vec::new, |(least, most)| choices(&curve, *least, *most)),
        latency_minor_from: latency_minor_from(&curve),
        notes: notes::of_plateau(&setting, &plateau, cluster),
        plateau,
    }
}

/// The model as a function of the size.
struct Curve<'a> {
    fabric: &'a Fabric,
    kind: CollectiveKind,
}

impl Curve<'_> {
    fn at(&self, size: u64) -> CollectiveTime {
        collective_time(&CollectiveCall::new(self.kind, Bytes::new(size)), self.fabric)
    }

    fn way(&self, size: u64) -> Choice {
        let CollectiveTime { algorithm, protocol, .. } = self.at(size);
        Choice { from: Bytes::new(size), algorithm, protocol }
    }

    fn is_minor(&self, size: u64) -> bool {
        latency_share(&self.at(size).terms) < MINOR
    }
}

/// Sizes in equal steps of their logarithm, both ends included.
fn grid(least: u64, most: u64) -> Vec<u64> {
    let (least, most) = (least.max(1), most.max(1));
    let octaves = (most as f64 / least as f64).log2().max(0.0);
    let steps = (octaves * f64::from(PER_OCTAVE)).ceil() as u32;
    let at = |step: u32| (least as f64 * (f64::from(step) / f64::from(PER_OCTAVE)).exp2()) as u64;
    let mut sizes: Vec<u64> = (0..steps).map(at).collect();
    sizes.push(most);
    sizes.dedup();
    sizes
}

/// The smallest size above `below` that has what `has` tests, if `reached` has it and `below` has not.
fn first(mut below: u64, mut reached: u64, has: impl Fn(u64) -> bool) -> u64 {
    while reached - below > 1 {
        let middle = below + (reached - below) / 2;
        if has(middle) {
            reached = middle;
        } else {
            below = middle;
        }
    }
    reached
}

/// Where latency stops to matter for good: a larger size may choose a protocol that launches later.
fn latency_minor_from(curve: &Curve<'_>) -> Option<Bytes> {
    let sizes = grid(1, PLATEAU);
    let minor = sizes.iter().rev().take_while(|&&size| curve.is_minor(size)).count();
    let (before, after) = sizes.split_at(sizes.len() - minor);
    let reached = *after.first()?;
    let Some(&below) = before.last() else { return Some(Bytes::new(reached)) };
    Some(Bytes::new(first(below, reached, |size| curve.is_minor(size))))
}

fn choices(curve: &Curve<'_>, least: Bytes, most: Bytes) -> Vec<Choice> {
    let mut found: Vec<Choice> = Vec::new();
    let mut below = least.get();
    for size in grid(least.get(), most.get()) {
        let way = curve.way(size);
        let same = |a: &Choice| (a.algorithm, a.protocol) == (way.algorithm, way.protocol);
        match found.last() {
            None => found.push(way),
            Some(last) if same(last) => {}
            Some(_) => {
                let from = first(below, size, |size| same(&curve.way(size)));
                found.push(Choice { from: Bytes::new(from), ..way });
            }
        }
        below = size;
    }
    found
}

fn plateau(curve: &Curve<'_>, windowed: bool) -> Plateau {
    let largest = curve.at(PLATEAU);
    Plateau { bus_bandwidth: largest.bus_bandwidth, limit: limit(curve, &largest, windowed) }
}

/// What keeps the largest messages from being faster.
fn limit(curve: &Curve<'_>, largest: &CollectiveTime, windowed: bool) -> Limit {
    let time = largest.time.value.nanos() as f64;
    // Arithmetic only shows where it takes longer than the transfer beside it.
    if largest.terms.reduction.nanos() as f64 > GAIN * time {
        return Limit::Reduction;
    }
    match largest.limit {
        foretrain_cost::Limit::None => Limit::None,
        foretrain_cost::Limit::Within => Limit::Links,
        foretrain_cost::Limit::Thread => Limit::Thread,
        foretrain_cost::Limit::Between if windowed => Limit::Window,
        foretrain_cost::Limit::Between => {
            let mut widened = curve.fabric.clone();
            widened.levels.iter_mut().for_each(|level| level.oversubscription /= WIDENED);
            let faster = Curve { fabric: &widened, ..*curve }.at(PLATEAU).time.value;
            let gain = 1.0 - faster.nanos() as f64 / time;
            if gain > GAIN { Limit::Oversubscription } else { Limit::Nics }
        }
    }
}

#[cfg(test)]
mod tests {
    use foretrain_hardware::Catalogue;

    use super::super::setting::{Layout, WhatIf, situate};
    use super::*;

    fn sweep_on(name: &str, ranks: u32, kind: CollectiveKind, what_if: WhatIf) -> (Place, Sweep) {
        let cluster = Catalogue::builtin().cluster(name).unwrap();
        let place = situate(&cluster, ranks, Layout::Packed, what_if).unwrap();
        let sizes = [Bytes::from_kib(1), Bytes::from_mib(4), Bytes::from_gib(8)];
        let sweep = sweep(&place, &cluster, kind, &sizes);
        (place, sweep)
    }

    #[test]
    fn latency_is_minor_from_the_size_that_is_named() {
        for (name, ranks) in
            [("dgx-a100", 8), ("dgx-a100", 32), ("dgx-h100", 1024), ("mi300x-8", 8)]
        {
            let (place, sweep) =
                sweep_on(name, ranks, CollectiveKind::AllReduce, WhatIf::default());
            let curve = Curve { fabric: &place.fabric, kind: CollectiveKind::AllReduce };
            let from = sweep.latency_minor_from.unwrap().get();
            assert!(!curve.is_minor(from - 1), "{name} {ranks}: {from} is not the first");
            for size in grid(from, PLATEAU) {
                assert!(curve.is_minor(size), "{name} {ranks}: latency matters again at {size}");
            }
        }
    }

    #[test]
    fn more_latency_needs_larger_messages() {
        let from = |micros| {
            let extra_latency = foretrain_core::Nanos::from_micros(micros);
            let what_if = WhatIf { extra_latency, ..WhatIf::default() };
            let (_, sweep) = sweep_on("dgx-a100", 32, CollectiveKind::AllReduce, what_if);
            (sweep.latency_minor_from.unwrap(), sweep.plateau.bus_bandwidth)
        };
        let (near, high) = from(0);
        let (far, also_high) = from(300);
        assert!(far.get() > 2 * near.get(), "{near} {far}");
        let ratio = also_high.get() / high.get();
        assert!((0.98..=1.0).contains(&ratio), "the plateau stays, {ratio}");
    }

    #[test]
    fn choices_change_where_they_say() {
        let (place, sweep) = sweep_on("dgx-a100", 64, CollectiveKind::AllReduce, WhatIf::default());
        let curve = Curve { fabric: &place.fabric, kind: CollectiveKind::AllReduce };
        assert!(sweep.choices.len() > 1, "{:?}", sweep.choices);
        assert_eq!(sweep.choices[0].from, Bytes::from_kib(1));
        for pair in sweep.choices.windows(2) {
            let [before, after] = pair else { unreachable!() };
            let way = |size| {
                let way = curve.way(size);
                (way.algorithm, way.protocol)
            };
            assert_eq!(way(after.from.get()), (after.algorithm, after.protocol));
            assert_eq!(way(after.from.get() - 1), (before.algorithm, before.protocol));
        }
    }

    #[test]
    fn the_limit_is_the_resource_that_counts() {
        let limit =
            |name, ranks, kind, what_if| sweep_on(name, ranks, kind, what_if).1.plateau.limit;
        let none = WhatIf::default();
        let all_reduce = CollectiveKind::AllReduce;
        assert_eq!(limit("dgx-a100", 8, all_reduce, none), Limit::Links);
        assert_eq!(limit("dgx-a100", 64, all_reduce, none), Limit::Nics);
        // 1:7 above 3,072 GPUs slows an all-to-all, and a ring not at all.
        let all_to_all = CollectiveKind::AllToAll;
        assert_eq!(limit("llama3-24k", 8192, all_to_all, none), Limit::Oversubscription);
        assert_eq!(limit("llama3-24k", 8192, all_reduce, none), Limit::Nics);
        let extra_latency = foretrain_core::Nanos::from_micros(300);
        let window = Some(Bytes::from_kib(256));
        let window = WhatIf { extra_latency, window, ..none };
        assert_eq!(limit("dgx-a100", 64, all_reduce, window), Limit::Window);
    }

    #[test]
    fn grids_hold_both_ends_and_rise() {
        for (least, most) in [(0, 0), (1, 1), (5, 5), (7, 4000), (1, PLATEAU), (9, 3)] {
            let sizes = grid(least, most);
            assert_eq!(*sizes.last().unwrap(), most.max(1), "{least} {most}");
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{least} {most}: {sizes:?}");
        }
        assert_eq!(grid(1, PLATEAU)[0], 1);
    }
}
