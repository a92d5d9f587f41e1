//! How far measurements lie from the model, carried to sizes and ranks nearby.

use foretrain_graph::CollectiveKind;
use foretrain_hardware::collectives::Sweep;

/// Doublings of ranks over which a sweep's say falls off against other sweeps'.
const RANKS_REACH: f64 = 0.7;
/// Doublings of ranks over which a deviation fades: many have causes that stay (a slow switch-over
/// of protocols, a transport's overhead), some do not.
const RANKS_FADE: f64 = 6.0;
/// Doublings of size beyond a sweep's end over which its last deviation fades.
const SIZE_FADE: f64 = 2.0;

/// Deviations by collective and ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Field {
    sweeps: Vec<Line>,
}

/// One sweep: log of measured over modelled by log2 of size.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    kind: CollectiveKind,
    many_nodes: bool,
    /// Holds on its own ranks only.
    odd: bool,
    ranks: f64,
    sizes: Vec<f64>,
    logs: Vec<f64>,
    ways: Vec<String>,
}

/// A deviation and how far away the nearest measurements are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deviation {
    /// Log of what to multiply the model's time by.
    pub(super) log: f64,
    /// Doublings of ranks to the nearest sweep.
    pub(super) ranks_away: f64,
    /// Doublings of size beyond the sizes measured.
    pub(super) sizes_away: f64,
    /// How much of it was measured where the model takes the same way, up to 1.
    pub(super) alike: f64,
}

/// What is asked of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) kind: CollectiveKind,
    pub(super) bytes: f64,
    pub(super) ranks: u32,
    pub(super) many_nodes: bool,
    /// What the model takes, "ring Simple".
    pub(super) way: &'a str,
}

impl Field {
    pub(super) fn new(sweeps: Vec<(CollectiveKind, &Sweep)>) -> Self {
        let line = |(kind, sweep): (CollectiveKind, &Sweep)| Line {
            kind,
            many_nodes: sweep.nodes > 1,
            odd: sweep.odd,
            ranks: f64::from(sweep.ranks).log2(),
            sizes: sweep.sizes.iter().map(|size| size.as_f64().max(1.0).log2()).collect(),
            logs: sweep.ratios.iter().map(|ratio| ratio.ln()).collect(),
            ways: sweep.ways.clone(),
        };
        Self { sweeps: sweeps.into_iter().map(line).collect() }
    }

    /// The deviation for a call; `None` if the collective was not measured on one node, or on
    /// several, whichever is asked.
    pub(super) fn at(&self, asked: Asked<'_>) -> Option<Deviation> {
        let size = asked.bytes.max(1.0).log2();
        let ranks = f64::from(asked.ranks.max(1)).log2();
        let distance = |line: &Line| (line.ranks - ranks).abs();
        let alike = |line: &&Line| line.kind == asked.kind && line.many_nodes == asked.many_nodes;
        let own = |line: &&Line| line.odd && distance(line) <= SAME_RANKS;
        let off_trend = self.sweeps.iter().filter(alike).any(|line| own(&line));
        let lines = || {
            let counts = move |line: &&Line| if off_trend { own(line) } else { !line.odd };
            self.sweeps.iter().filter(alike).filter(counts)
        };
        let nearest = lines().map(distance).min_by(f64::total_cmp)?;
        // On the very ranks that were measured a switch between two sizes lies between two times.
        let way = (nearest > SAME_RANKS).then_some(asked.way);
        let (mut sum, mut alike, mut weights, mut away) = (0.0, 0.0, 0.0, f64::INFINITY);
        for line in lines() {
            // Relative to the nearest, so that far extrapolation does not underflow.
            let beyond = distance(line).powi(2) - nearest.powi(2);
            let weight = (-beyond / (2.0 * RANKS_REACH * RANKS_REACH)).exp();
            let found = line.at(size, way);
            sum += weight * found.log;
            alike += weight * found.alike;
            weights += weight;
            if distance(line) <= nearest + SAME_RANKS {
                away = away.min(found.beyond);
            }
        }
        let log = sum / weights * (-nearest / RANKS_FADE).exp();
        let alike = alike / weights;
        Some(Deviation { log, ranks_away: nearest, sizes_away: away, alike })
    }
}

/// Doublings of ranks that are none.
const SAME_RANKS: f64 = 1e-9;

/// What one sweep says.
struct Said {
    log: f64,
    alike: f64,
    beyond: f64,
}

impl Line {
    /// The deviation at a size, how much of it is of the same way, and how far the size lies beyond
    /// the sweep.
    fn at(&self, size: f64, way: Option<&str>) -> Said {
        let after = self.sizes.partition_point(|known| *known <= size);
        let alike = |at: usize| match (way, self.ways.get(at)) {
            (Some(way), Some(known)) if way != known => 0.0,
            _ => 1.0,
        };
        let end = |at: usize| {
            let beyond = (self.sizes[at] - size).abs();
            // Why a number of nodes is odd does not depend on the size.
            let fade = if self.odd { 1.0 } else { (-beyond / SIZE_FADE).exp() };
            let log = self.logs[at] * alike(at) * fade;
            Said { log, alike: alike(at), beyond }
        };
        match after {
            0 => end(0),
            _ if after == self.sizes.len() => end(after - 1),
            _ => {
                let (a, b) = (after - 1, after);
                let part = (size - self.sizes[a]) / (self.sizes[b] - self.sizes[a]);
                let (near, far) = ((1.0 - part) * alike(a), part * alike(b));
                let log = near * self.logs[a] + far * self.logs[b];
                Said { log, alike: near + far, beyond: 0.0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Bytes;

    use super::*;

    fn sweep(ranks: u32, nodes: u32, ratios: &[f64]) -> Sweep {
        let sizes = (0..ratios.len()).map(|at| Bytes::new(1024 << at)).collect();
        let ways = vec!["ring LL".to_owned(); ratios.len()];
        let (collective, ratios) = ("all-reduce".into(), ratios.to_vec());
        Sweep { collective, ranks, nodes, odd: false, sizes, ratios, ways }
    }

    fn field(sweeps: &[Sweep]) -> Field {
        Field::new(sweeps.iter().map(|s| (CollectiveKind::AllReduce, s)).collect())
    }

    fn all_reduce(bytes: f64, ranks: u32, many_nodes: bool) -> Asked<'static> {
        Asked { kind: CollectiveKind::AllReduce, bytes, ranks, many_nodes, way: "ring LL" }
    }

    #[test]
    fn a_measured_point_is_met_and_points_between_are_interpolated() {
        let field = field(&[sweep(8, 1, &[1.2, 1.2, 0.8])]);
        let at = |bytes: f64| field.at(all_reduce(bytes, 8, false)).unwrap();
        assert!((at(1024.0).log.exp() - 1.2).abs() < 1e-12);
        assert!((at(4096.0).log.exp() - 0.8).abs() < 1e-12);
        let between = at(2048.0 * 2f64.sqrt()).log.exp();
        assert!((between - (1.2f64 * 0.8).sqrt()).abs() < 1e-12);
        assert_eq!(at(1024.0).sizes_away, 0.0);
    }

    #[test]
    fn deviations_fade_beyond_what_was_measured() {
        let field = field(&[sweep(16, 2, &[1.5; 4])]);
        let at = |bytes: f64, ranks| field.at(all_reduce(bytes, ranks, true)).unwrap().log.exp();
        assert!(at(2048.0, 32) < 1.5 && at(2048.0, 32) > at(2048.0, 256));
        assert!(at(2048.0, 1 << 30) > 1.0);
        assert!(at(1e6, 16) < 1.3 && at(1e12, 16) < 1.001);
        let far = field.at(all_reduce(1e6, 64, true)).unwrap();
        assert!((far.ranks_away - 2.0).abs() < 1e-9 && far.sizes_away > 6.0);
    }

    #[test]
    fn other_collectives_and_one_node_say_nothing_of_several() {
        let field = field(&[sweep(8, 1, &[1.5])]);
        assert_eq!(field.at(all_reduce(1e3, 16, true)), None);
        assert_eq!(
            field.at(Asked { kind: CollectiveKind::AllGather, ..all_reduce(1e3, 8, false) }),
            None
        );
        assert_eq!(Field::default().at(all_reduce(1e3, 8, false)), None);
    }

    #[test]
    fn a_deviation_of_another_way_is_not_carried() {
        let field = field(&[sweep(16, 2, &[1.5, 1.5])]);
        let tree = |ranks| Asked { way: "tree LL128", ..all_reduce(1500.0, ranks, true) };
        let carried = field.at(tree(32)).unwrap();
        assert_eq!((carried.log, carried.alike), (0.0, 0.0));
        assert!(field.at(tree(16)).unwrap().log > 0.4, "on the same ranks it was measured");
    }

    #[test]
    fn an_odd_sweep_holds_on_its_own_ranks_alone() {
        let odd = Sweep { odd: true, ..sweep(24, 3, &[2.0]) };
        let trend = [sweep(16, 2, &[1.1]), sweep(32, 4, &[1.1])];
        let with = field(&[&trend[..], std::slice::from_ref(&odd)].concat());
        let without = field(&trend);
        for ranks in [16, 23, 25, 32, 64] {
            let asked = all_reduce(1024.0, ranks, true);
            assert_eq!(with.at(asked), without.at(asked), "{ranks}");
        }
        let there = with.at(all_reduce(1024.0, 24, true)).unwrap();
        assert!((there.log.exp() - 2.0).abs() < 1e-12 && there.ranks_away == 0.0, "{there:?}");
        let beyond = with.at(all_reduce(1e12, 24, true)).unwrap();
        assert!((beyond.log - there.log).abs() < 1e-12, "{beyond:?}");
        assert_eq!(field(&[odd]).at(all_reduce(1024.0, 32, true)), None);
    }

    #[test]
    fn the_nearest_ranks_say_most() {
        let field = field(&[sweep(8, 1, &[1.0]), sweep(2, 1, &[2.0])]);
        let at = |ranks| field.at(all_reduce(1024.0, ranks, false)).unwrap().log;
        assert!(at(8).exp() < 1.02 && at(2).exp() > 1.95);
        assert!((at(4).exp() - 2f64.sqrt().powf((-1.0 / RANKS_FADE).exp())).abs() < 1e-9);
    }
}
